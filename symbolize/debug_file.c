/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolize/debug_file.h"

#include <errno.h>
#include <string.h>
#include <zlib.h>

#include "common/buf.h"
#include "common/fd.h"
#include "common/macro.h"
#include "common/text.h"

struct search {
        const struct elf_image *image;
        struct build_id build_id;
        uint32_t crc; /* of .gnu_debuglink */
        bool stale; /* a file of another build was seen */

        /* borrowed */
        debug_file_ask_fn ask;
        void *userdata;
};

int debug_file_link(const struct elf_image *image, const char **ret_name, uint32_t *ret_crc) {
        const struct elf_section *section = elf_image_section(image, ".gnu_debuglink");
        size_t length, crc_offset;

        if (!section || !section->data)
                return -ENODATA;
        length = strnlen((const char *) section->data, section->bytes);
        crc_offset = (length + 1 + 3) & ~(size_t) 3;
        if (length == 0 || length > DEBUG_FILE_LINK_MAX || length == section->bytes ||
            crc_offset + sizeof(*ret_crc) > section->bytes)
                return -EBADMSG;
        if (memchr(section->data, '/', length) || streq((const char *) section->data, ".") ||
            streq((const char *) section->data, ".."))
                return -EBADMSG;

        memcpy(ret_crc, section->data + crc_offset, sizeof(*ret_crc));
        *ret_name = (const char *) section->data;
        return 0;
}

bool debug_file_is_useful(const struct elf_image *image) {
        static const char *const names[] = { ".symtab", ".debug_frame", ".debug_info" };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                const struct elf_section *section = elf_image_section(image, names[i]);

                if (section && section->data)
                        return true;
        }
        return false;
}

/* Same build? The CRC is only read where there is nothing better: it takes the whole file. */
static bool belongs(const struct search *s, enum worker_role role, const struct elf_image *candidate) {
        struct build_id id = BUILD_ID_NULL;
        const uint8_t *data;
        size_t bytes;

        (void) elf_image_build_id(candidate, &id);
        if (s->build_id.size > 0 || id.size > 0)
                return build_id_equal(&s->build_id, &id);
        if (role != WORKER_ROLE_DEBUG_LINK)
                return false;
        data = elf_image_data(candidate, &bytes);
        return crc32_z(0, data, bytes) == s->crc;
}

static int try_candidate(struct search *s, enum worker_role role, int fd, struct elf_image **ret) {
        _cleanup_(elf_image_freep) struct elf_image *candidate = NULL;
        int r;

        r = elf_image_new(fd, &candidate);
        if (r == -ENOMEM)
                return r;
        if (r < 0) { /* what lies there is no debug file at all */
                s->stale = true;
                return -ENOENT;
        }
        if (!belongs(s, role, candidate)) {
                s->stale = true;
                return -ENOENT;
        }
        if (!debug_file_is_useful(candidate))
                return -ENOENT;

        *ret = TAKE_PTR(candidate);
        return 0;
}

static int try_role(struct search *s, enum worker_role role, const char *name, struct elf_image **ret,
                    char path[static WORKER_PATH_MAX]) {
        for (uint32_t attempt = 0; attempt < DEBUG_FILE_ATTEMPTS_MAX; attempt++) {
                _cleanup_close_ int fd = -EBADF;
                char found[WORKER_PATH_MAX] = "";
                int r;

                r = s->ask(s->userdata, role, attempt, name, &fd, found);
                if (r == -ENXIO)
                        break;
                if (r < 0)
                        continue;
                r = try_candidate(s, role, fd, ret);
                if (r == 0)
                        memcpy(path, found, sizeof(found));
                if (r != -ENOENT)
                        return r;
        }

        return -ENOENT;
}

static int try_directories(struct search *s, struct elf_image **ret, char path[static WORKER_PATH_MAX]) {
        _cleanup_(buf_done) struct buf id = BUF_NULL;

        text_hex(&id, s->build_id.bytes, s->build_id.size);
        if (buf_error(&id) < 0)
                return buf_error(&id);
        return try_role(s, WORKER_ROLE_DEBUG_DIRECTORY, buf_text(&id), ret, path);
}

int debug_file_find(const struct elf_image *image, debug_file_ask_fn ask, void *userdata,
                    struct elf_image **ret, char path[static WORKER_PATH_MAX]) {
        struct search s = { .image = image, .ask = ask, .userdata = userdata };
        const char *link = NULL;
        int r = -ENOENT;

        (void) elf_image_build_id(image, &s.build_id);
        (void) debug_file_link(image, &link, &s.crc);

        if (s.build_id.size > 0) {
                r = try_directories(&s, ret, path);
                if (r == -ENOENT)
                        r = try_role(&s, WORKER_ROLE_DEBUG_BESIDE, ".dbg", ret, path);
                if (r == -ENOENT)
                        r = try_role(&s, WORKER_ROLE_DEBUG_BESIDE, ".debug", ret, path);
        }
        if (r == -ENOENT && link)
                r = try_role(&s, WORKER_ROLE_DEBUG_LINK, link, ret, path);
        if (r == -ENOENT && s.build_id.size > 0) {
                r = try_role(&s, WORKER_ROLE_DEBUG_BUILD_ID, "", ret, path);
                if (r == -ENOENT)
                        r = try_role(&s, WORKER_ROLE_DEBUG_CACHE, "", ret, path);
        }

        return r == -ENOENT && s.stale ? -ESTALE : r;
}
