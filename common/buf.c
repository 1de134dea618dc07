/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/buf.h"

#include <stdarg.h>

enum { FIRST_ALLOCATION = 64 };

void buf_done(struct buf *b) {
        free(b->data);
        *b = BUF_NULL;
}

void buf_reset(struct buf *b) {
        b->size = 0;
        b->error = 0;
        if (b->data)
                b->data[0] = '\0';
}

/* Room for `bytes` more and the NUL. Cannot overflow: both sizes are at most BUF_MAX when they are added. */
static int reserve(struct buf *b, size_t bytes) {
        size_t need, allocated;
        char *data;

        if (b->error < 0)
                return b->error;
        if (bytes > BUF_MAX || b->size + bytes > BUF_MAX)
                return b->error = -EFBIG;

        need = b->size + bytes + 1;
        if (need <= b->allocated)
                return 0;

        allocated = MAX(b->allocated, (size_t) FIRST_ALLOCATION);
        while (allocated < need)
                allocated *= 2;
        data = realloc(b->data, allocated);
        if (!data)
                return b->error = -ENOMEM;
        b->data = data;
        b->allocated = allocated;
        b->data[b->size] = '\0';
        return 0;
}

void *buf_extend(struct buf *b, size_t bytes) {
        char *p;

        if (reserve(b, bytes) < 0)
                return NULL;

        p = b->data + b->size;
        memset(p, 0, bytes + 1);
        b->size += bytes;
        return p;
}

void buf_append(struct buf *b, const void *data, size_t bytes) {
        if (bytes == 0 || reserve(b, bytes) < 0)
                return;

        memcpy(b->data + b->size, data, bytes);
        b->size += bytes;
        b->data[b->size] = '\0';
}

void buf_puts(struct buf *b, const char *text) {
        buf_append(b, text, strlen(text));
}

void buf_putc(struct buf *b, char c) {
        buf_append(b, &c, 1);
}

void buf_printf(struct buf *b, const char *format, ...) {
        va_list ap;
        int n;

        va_start(ap, format);
        n = vsnprintf(NULL, 0, format, ap);
        va_end(ap);
        if (n < 0) {
                if (b->error == 0)
                        b->error = -EFBIG; /* the only failure of a valid format: more than INT_MAX */
                return;
        }
        if (reserve(b, (size_t) n) < 0)
                return;

        va_start(ap, format);
        vsnprintf(b->data + b->size, (size_t) n + 1, format, ap);
        va_end(ap);
        b->size += (size_t) n;
}

int buf_error(const struct buf *b) {
        return b->error;
}

int buf_take(struct buf *b, char **ret, size_t *ret_size) {
        if (reserve(b, 0) < 0)
                return b->error;

        if (ret_size)
                *ret_size = b->size;
        *ret = TAKE_PTR(b->data);
        *b = BUF_NULL;
        return 0;
}

const char *buf_text(const struct buf *b) {
        return b->data ?: "";
}
