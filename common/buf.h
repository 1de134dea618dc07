/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/macro.h"

/*
 * A growing run of bytes that always has a NUL behind it, so `data` is a C
 * string when the bytes are text. An error (no memory, more than BUF_MAX)
 * sticks: later calls do nothing, and buf_error() or buf_take() tells, so that
 * a writer of many pieces checks once.
 *
 *   invariant   data == NULL → size == 0; data[size] == '\0'
 *   life        BUF_NULL, any calls, buf_done() or buf_take()
 */
struct buf {
        char *data;
        size_t size, allocated;
        int error;
};

#define BUF_NULL                                                                                            \
        (struct buf) {                                                                                      \
        }
enum { BUF_MAX = 1 << 30 };

void buf_done(struct buf *b);
void buf_reset(struct buf *b); /* empty again, memory kept, error cleared */
void buf_append(struct buf *b, const void *data, size_t bytes);
void buf_puts(struct buf *b, const char *text);
void buf_putc(struct buf *b, char c);
void buf_printf(struct buf *b, const char *format, ...) _printf_(2, 3);
/* `bytes` more, zeroed, to be filled by the caller; NULL on error. Valid until the next call. */
void *buf_extend(struct buf *b, size_t bytes);
int buf_error(const struct buf *b); /* 0, -ENOMEM, -EFBIG */
/* The bytes become the caller's (malloc()ed, never NULL on success); the buffer is empty again. */
int buf_take(struct buf *b, char **ret, size_t *ret_size /* may be NULL */);
const char *buf_text(const struct buf *b); /* never NULL */
