/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "symbolize/debug_section.h"

/*
 * A place in DWARF data, which may hold anything. Reading past the end gives zeroes and marks the cursor failed:
 * a reader looks once, after a few fields. Little-endian, like all that startprof reads.
 */
struct dwarf_cursor {
        const uint8_t *at, *end;
        bool failed;
};

static inline struct dwarf_cursor dwarf_cursor_at(const struct debug_span *span, uint64_t offset) {
        if (!span->data || offset > span->bytes)
                return (struct dwarf_cursor){ .failed = true };
        return (struct dwarf_cursor){ .at = span->data + offset, .end = span->data + span->bytes };
}

static inline size_t dwarf_left(const struct dwarf_cursor *c) {
        return (size_t) (c->end - c->at);
}

static inline void dwarf_fail(struct dwarf_cursor *c) {
        c->failed = true;
        c->at = c->end;
}

static inline void dwarf_skip(struct dwarf_cursor *c, uint64_t bytes) {
        if (bytes > dwarf_left(c))
                dwarf_fail(c);
        else
                c->at += bytes;
}

/* bytes: 0..8 */
static inline uint64_t dwarf_uint(struct dwarf_cursor *c, unsigned bytes) {
        uint64_t value = 0;

        if (!c->at || bytes > dwarf_left(c)) {
                dwarf_fail(c);
                return 0;
        }
        memcpy(&value, c->at, bytes);
        c->at += bytes;
        return value;
}

static inline uint8_t dwarf_u8(struct dwarf_cursor *c) {
        if (!c->at || c->at == c->end) {
                c->failed = true;
                return 0;
        }
        return *c->at++;
}

/* Bits beyond the 64th are lost, as in every reader; padding with 0x80 is legal. */
static inline uint64_t dwarf_uleb(struct dwarf_cursor *c) {
        uint64_t value = 0;
        unsigned shift = 0;
        uint8_t byte;

        do {
                byte = dwarf_u8(c);
                if (shift < 64)
                        value |= (uint64_t) (byte & 0x7f) << shift;
                shift += 7;
        } while (byte & 0x80);
        return value;
}

static inline int64_t dwarf_sleb(struct dwarf_cursor *c) {
        uint64_t value = 0;
        unsigned shift = 0;
        uint8_t byte;

        do {
                byte = dwarf_u8(c);
                if (shift < 64)
                        value |= (uint64_t) (byte & 0x7f) << shift;
                shift += 7;
        } while (byte & 0x80);
        if (shift < 64 && (byte & 0x40))
                value |= ~UINT64_C(0) << shift;
        return (int64_t) value;
}

/* A text with its NUL inside the data; NULL when it runs past the end. */
static inline const char *dwarf_text(struct dwarf_cursor *c) {
        const uint8_t *begin = c->at, *nul = c->at == c->end ? NULL : memchr(c->at, 0, dwarf_left(c));

        if (!nul) {
                dwarf_fail(c);
                return NULL;
        }
        c->at = nul + 1;
        return (const char *) begin;
}

/* The length of a unit, and with it the size of its offsets: 4, or 8 after the escape 0xffffffff. */
static inline uint64_t dwarf_length(struct dwarf_cursor *c, uint8_t *ret_offset_bytes) {
        uint64_t length = dwarf_uint(c, 4);

        *ret_offset_bytes = 4;
        if (length == UINT32_MAX) {
                *ret_offset_bytes = 8;
                length = dwarf_uint(c, 8);
        }
        return length;
}
