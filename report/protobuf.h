/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdint.h>

#include "common/buf.h"

/* Protocol buffers' wire format (protobuf.dev, "Encoding"), as far as pprof's profile.proto needs it. Errors stick in
 * the buffer. A value of 0 is the default of a field and may be left out. */

void protobuf_number(struct buf *b, uint32_t field, uint64_t value);
void protobuf_bytes(struct buf *b, uint32_t field, const void *data, size_t bytes);
void protobuf_text(struct buf *b, uint32_t field, const char *text);
/* A repeated number field in one piece. */
void protobuf_packed(struct buf *b, uint32_t field, const uint64_t *values, size_t n);
/* A message as a field of another one. */
void protobuf_message(struct buf *b, uint32_t field, const struct buf *message);
