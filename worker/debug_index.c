/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "worker/debug_index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/fd.h"
#include "common/hash.h"
#include "common/text.h"
#include "symbolize/debug_file.h"

struct debug_index {
        struct hash *numbers; /* owned; build-id in hex → number */
};

/* Of two files of one build the first counts, as in the order of directories. What is no debug file is nothing. */
static int add(struct debug_index *index, uint32_t number, int fd) {
        _cleanup_(elf_image_freep) struct elf_image *image = NULL;
        _cleanup_(buf_done) struct buf hex = BUF_NULL;
        struct build_id id = BUILD_ID_NULL;
        uint64_t first;
        int r;

        r = elf_image_new(fd, &image);
        if (r < 0)
                return r == -ENOMEM ? r : 0;
        if (elf_image_build_id(image, &id) < 0 || !debug_file_is_useful(image))
                return 0;
        text_hex(&hex, id.bytes, id.size);
        if (buf_error(&hex) < 0)
                return buf_error(&hex);
        r = hash_intern(index->numbers, buf_text(&hex), strlen(buf_text(&hex)), number, &first);
        return r < 0 ? r : 0;
}

int debug_index_new(struct channel *channel, uint32_t module, struct debug_index **ret) {
        _cleanup_(debug_index_freep) struct debug_index *index = calloc(1, sizeof(*index));

        if (index)
                index->numbers = hash_new();
        if (!index || !index->numbers)
                return -ENOMEM;

        for (uint32_t i = 0; i < DEBUG_INDEX_FILES_MAX; i++) {
                _cleanup_close_ int fd = -EBADF;
                char path[WORKER_PATH_MAX];
                int r;

                r = channel_ask_file(channel, module, WORKER_ROLE_DEBUG_DIRECTORY, i, "", &fd, path);
                if (r == -ENXIO)
                        break;
                if (r == -EBADMSG || r == -ENOTCONN)
                        return r;
                if (r == 0)
                        r = add(index, i, fd);
                if (r == -ENOMEM)
                        return r;
        }
        *ret = TAKE_PTR(index);
        return 0;
}

struct debug_index *debug_index_free(struct debug_index *index) {
        if (!index)
                return NULL;

        hash_free(index->numbers);
        free(index);
        return NULL;
}

int debug_index_find(const struct debug_index *index, const char *build_id, uint32_t *ret) {
        uint64_t number;

        if (hash_get(index->numbers, build_id, strlen(build_id), &number) < 0)
                return -ENXIO;
        *ret = (uint32_t) number;
        return 0;
}
