/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/*
 * A place in a run of bytes of a .NET NativeAOT executable ("blob"). Reading past the end gives zeroes and marks
 * the cursor bad, for good: a reader looks once, after a few fields.
 */
struct nativeaot_blob {
        const uint8_t *data; /* inside the image */
        size_t bytes;
        uint64_t vaddr; /* of data[0] */
};

struct nativeaot_cursor {
        const struct nativeaot_blob *blob;
        size_t at; /* ≤ blob->bytes */
        bool bad;
};

static inline struct nativeaot_cursor nativeaot_at(const struct nativeaot_blob *blob, uint64_t offset) {
        if (offset > blob->bytes)
                return (struct nativeaot_cursor){ .blob = blob, .at = blob->bytes, .bad = true };
        return (struct nativeaot_cursor){ .blob = blob, .at = (size_t) offset };
}

/* bytes: 0..8, little-endian */
static inline uint64_t nativeaot_uint(struct nativeaot_cursor *c, unsigned bytes) {
        uint64_t value = 0;

        if (c->bad || bytes > c->blob->bytes - c->at) {
                c->bad = true;
                return 0;
        }
        memcpy(&value, c->blob->data + c->at, bytes);
        c->at += bytes;
        return value;
}

static inline void nativeaot_skip(struct nativeaot_cursor *c, uint64_t bytes) {
        if (c->bad || bytes > c->blob->bytes - c->at)
                c->bad = true;
        else
                c->at += (size_t) bytes;
}

/* An address that is written as the distance from where it is written. */
static inline uint64_t nativeaot_relative(struct nativeaot_cursor *c) {
        uint64_t place = c->blob->vaddr + c->at;

        return place + (uint64_t) (int64_t) (int32_t) nativeaot_uint(c, 4);
}

/*
 * The runtime's integers of variable length: as many low one-bits in the first byte as bytes follow it. Up to
 * four bytes hold the value behind those bits, five hold it in the last four. The form of nine bytes is for
 * 64-bit values, which nothing here has.
 */
static inline uint64_t nativeaot_raw(struct nativeaot_cursor *c, unsigned *ret_bits) {
        uint8_t first = c->bad || c->at >= c->blob->bytes ? 0xff : c->blob->data[c->at];

        for (unsigned bytes = 1; bytes <= 4; bytes++)
                if (!(first & 1u << (bytes - 1))) {
                        *ret_bits = 7 * bytes;
                        return nativeaot_uint(c, bytes) >> bytes;
                }
        *ret_bits = 32;
        if (first & 0x10) {
                c->bad = true;
                return 0;
        }
        return nativeaot_uint(c, 5) >> 8;
}

static inline uint32_t nativeaot_unsigned(struct nativeaot_cursor *c) {
        unsigned bits;

        return (uint32_t) nativeaot_raw(c, &bits);
}

static inline int32_t nativeaot_signed(struct nativeaot_cursor *c) {
        unsigned bits;
        uint32_t value = (uint32_t) nativeaot_raw(c, &bits);

        return (int32_t) (value << (32 - bits)) >> (32 - bits);
}
