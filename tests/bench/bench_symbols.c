/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * What names cost: addresses (hexadecimal, virtual) of a file from stdin, with their inline frames and lines, as a
 * new process finds them, and names from the symbol table when it is warm.
 *
 *   usage: bench_symbols FILE     prints milliseconds, nanoseconds a name, kilobytes resident, frames
 */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/resource.h>

#include "common/fd.h"
#include "symbolize/name.h"
#include "symbolize/symbols.h"

enum { ADDRESSES_MAX = 100000, ROUNDS = 100 };

static int ask(void *userdata, enum worker_role role, uint32_t attempt, const char *name, int *ret_fd,
               char path[static WORKER_PATH_MAX]) {
        const char *file = userdata;

        if (role != WORKER_ROLE_FILE || attempt > 0)
                return -ENXIO;
        *ret_fd = open(file, O_RDONLY | O_CLOEXEC);
        (void) snprintf(path, WORKER_PATH_MAX, "%s", file);
        return *ret_fd < 0 ? -errno : 0;
}

static double now_ms(void) {
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return (double) t.tv_sec * 1e3 + (double) t.tv_nsec / 1e6;
}

static size_t read_addresses(uint64_t *ret) {
        char line[64];
        size_t n = 0;

        while (n < ADDRESSES_MAX && fgets(line, sizeof(line), stdin))
                ret[n++] = strtoull(line, NULL, 16);
        return n;
}

static int name_all(struct name_module *m, const uint64_t *addresses, size_t count, size_t *ret_frames) {
        const struct elf_image *image = name_module_image(m);

        *ret_frames = 0;
        for (size_t i = 0; i < count; i++) {
                const struct name_line *lines;
                struct name name;
                uint64_t offset;
                size_t n = 0;
                int r;

                if (elf_image_offset(image, addresses[i], &offset) < 0)
                        continue;
                r = name_find(m, offset, &name);
                r = r ?: name_find_lines(m, offset, &(struct dwarf_companions){}, &lines, &n);
                if (r < 0)
                        return r;
                *ret_frames += n;
        }
        return 0;
}

static double symbol_ns(const struct elf_image *image, const uint64_t *addresses, size_t count) {
        _cleanup_(symbols_freep) struct symbols *symbols = NULL;
        struct symbol symbol;
        size_t found = 0;
        double begin;

        if (symbols_new(image, &symbols) < 0)
                return 0;
        for (size_t i = 0; i < count; i++)
                found += symbols_find(symbols, addresses[i], &symbol) == 0;
        begin = now_ms();
        for (unsigned round = 0; round < ROUNDS; round++)
                for (size_t i = 0; i < count; i++)
                        found += symbols_find(symbols, addresses[i], &symbol) == 0;
        return found > 0 ? (now_ms() - begin) * 1e6 / (double) (count * ROUNDS) : 0;
}

int main(int argc, char **argv) {
        _cleanup_(name_module_freep) struct name_module *m = NULL;
        static uint64_t addresses[ADDRESSES_MAX];
        size_t count = read_addresses(addresses), frames;
        struct rusage usage;
        double begin, end;

        if (argc < 2 || count == 0)
                return 2;
        begin = now_ms();
        if (name_module_new(&(struct name_module_options){}, ask, argv[1], &m) < 0 ||
            !name_module_image(m) || name_all(m, addresses, count, &frames) < 0)
                return 1;
        end = now_ms();
        getrusage(RUSAGE_SELF, &usage);
        printf("%.3f %.1f %ld %zu\n", end - begin, symbol_ns(name_module_image(m), addresses, count),
               usage.ru_maxrss, frames);
        return 0;
}
