/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "common/buf.h"
#include "proto/recording.h"

/* What to do about a module without names. Appends one sentence, raw, that ends in the command where there is one;
 * nothing for reasons that nobody can do anything about. */
void symbol_advice(struct buf *b, const struct recording *r, uint32_t reason);
