/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolize/mini_debuginfo.h"

#include <errno.h>
#include <lzma.h>
#include <stdlib.h>

#include "common/buf.h"

enum { PIECE_BYTES = 1 << 18 };

struct mini_debuginfo {
        struct buf data; /* what the image reads */
        struct elf_image *image;
};

/* Until the stream ends: the size is not known before. */
static int run(lzma_stream *stream, struct buf *out) {
        for (;;) {
                uint8_t *piece = buf_extend(out, PIECE_BYTES);
                lzma_ret r;

                if (!piece)
                        return buf_error(out);
                stream->next_out = piece;
                stream->avail_out = PIECE_BYTES;
                r = lzma_code(stream, LZMA_FINISH);
                out->size -= stream->avail_out;

                if (r == LZMA_STREAM_END)
                        return 0;
                if (r == LZMA_MEM_ERROR)
                        return -ENOMEM;
                if (r == LZMA_MEMLIMIT_ERROR || out->size >= MINI_DEBUGINFO_BYTES_MAX)
                        return -EFBIG;
                if (r != LZMA_OK)
                        return -EBADMSG;
        }
}

static int unpack(const struct elf_section *section, struct buf *out) {
        lzma_stream stream = LZMA_STREAM_INIT;
        int r;

        if (lzma_stream_decoder(&stream, MINI_DEBUGINFO_MEMORY_MAX, 0) != LZMA_OK)
                return -ENOMEM;
        stream.next_in = section->data;
        stream.avail_in = section->bytes;
        r = run(&stream, out);
        lzma_end(&stream);
        return r;
}

int mini_debuginfo_new(const struct elf_image *image, struct mini_debuginfo **ret) {
        const struct elf_section *section = elf_image_section(image, ".gnu_debugdata");
        _cleanup_(mini_debuginfo_freep) struct mini_debuginfo *m = NULL;
        int r;

        if (!section || !section->data)
                return -ENODATA;
        m = calloc(1, sizeof(*m));
        if (!m)
                return -ENOMEM;
        r = unpack(section, &m->data);
        r = r ?: elf_image_from_memory(m->data.data, m->data.size, &m->image);
        if (r < 0)
                return r;

        *ret = TAKE_PTR(m);
        return 0;
}

struct mini_debuginfo *mini_debuginfo_free(struct mini_debuginfo *m) {
        if (!m)
                return NULL;

        elf_image_free(m->image);
        buf_done(&m->data);
        free(m);
        return NULL;
}

const struct elf_image *mini_debuginfo_image(const struct mini_debuginfo *m) {
        return m->image;
}
