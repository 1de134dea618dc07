/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/protobuf.h"

#include "common/macro.h"

enum { WIRE_VARINT = 0, WIRE_BYTES = 2 };

static void put_varint(struct buf *b, uint64_t value) {
        for (; value >= 0x80; value >>= 7)
                buf_putc(b, (char) (value | 0x80));
        buf_putc(b, (char) value);
}

void protobuf_number(struct buf *b, uint32_t field, uint64_t value) {
        put_varint(b, field << 3 | WIRE_VARINT);
        put_varint(b, value);
}

void protobuf_bytes(struct buf *b, uint32_t field, const void *data, size_t bytes) {
        put_varint(b, field << 3 | WIRE_BYTES);
        put_varint(b, bytes);
        buf_append(b, data, bytes);
}

void protobuf_text(struct buf *b, uint32_t field, const char *text) {
        protobuf_bytes(b, field, text, strlen(text));
}

void protobuf_packed(struct buf *b, uint32_t field, const uint64_t *values, size_t n) {
        _cleanup_(buf_done) struct buf packed = BUF_NULL;

        for (size_t i = 0; i < n; i++)
                put_varint(&packed, values[i]);
        protobuf_message(b, field, &packed);
}

void protobuf_message(struct buf *b, uint32_t field, const struct buf *message) {
        if (buf_error(message) < 0)
                b->error = b->error ?: buf_error(message);
        protobuf_bytes(b, field, buf_text(message), message->size);
}
