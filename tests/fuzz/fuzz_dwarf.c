/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * A debug file from a stranger, and the file that it refers to: sections, units, ranges, lines, names, split and
 * alternate files, mini debug info. The input is the size of the first file (32 bits, little-endian), that file,
 * and the other one, which is the answer to every question.
 *
 * Corpus (corpus/dwarf), from dwarf.sh.
 */

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "symbolize/mini_debuginfo.h"
#include "symbolize/name_lines.h"

enum { ADDRESSES = 64, HEADER_BYTES = 4 };

struct parent {
        const uint8_t *other;
        size_t bytes;
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int ask(void *userdata, enum worker_role role, uint32_t attempt, const char *name, int *ret_fd,
               char path[static WORKER_PATH_MAX]) {
        const struct parent *p = userdata;
        int fd;

        if (strchr(name, '/'))
                abort();
        if (attempt > 0 || p->bytes == 0)
                return -ENXIO;
        fd = memfd_create("other", MFD_CLOEXEC);
        if (fd < 0)
                return -errno;
        if (write(fd, p->other, p->bytes) != (ssize_t) p->bytes) {
                close(fd);
                return -EIO;
        }
        path[0] = 0;
        *ret_fd = fd;
        return 0;
}

static size_t check_frames(const struct name_line *lines, size_t count) {
        size_t length = 0;

        if (count > DWARF_FRAMES_MAX)
                abort();
        for (size_t i = 0; i < count; i++) {
                length += lines[i].text ? strlen(lines[i].text) : 0;
                length += lines[i].file ? strlen(lines[i].file) : 0;
        }
        return length;
}

static void look_up(const struct elf_image *image, const struct dwarf_companions *companions) {
        _cleanup_(name_lines_freep) struct name_lines *lines = NULL;
        const struct elf_segment *segments;
        unsigned n = elf_image_segments(image, &segments);
        const struct name_line *found;
        size_t count;

        if (name_lines_new(image, NULL, &lines) < 0)
                return;
        for (unsigned i = 0; i < n && i < ADDRESSES; i++)
                for (uint64_t a = 0; segments[i].executable && a < ADDRESSES; a++)
                        if (name_lines_find(lines,
                                            segments[i].vaddr + a * (segments[i].memory_bytes / ADDRESSES),
                                            companions, &found, &count) == 0)
                                (void) check_frames(found, count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_(elf_image_freep) struct elf_image *image = NULL;
        struct mini_debuginfo *mini = NULL;
        struct parent parent = {};
        uint32_t first;

        if (size < HEADER_BYTES)
                return 0;
        memcpy(&first, data, sizeof(first));
        data += HEADER_BYTES;
        size -= HEADER_BYTES;
        if (first < size) {
                parent = (struct parent){ .other = data + first, .bytes = size - first };
                size = first;
        }
        if (elf_image_from_memory(data, size, &image) < 0)
                return 0;
        look_up(image, &(struct dwarf_companions){ .ask = ask, .userdata = &parent });
        if (mini_debuginfo_new(image, &mini) == 0)
                mini_debuginfo_free(mini);
        return 0;
}
