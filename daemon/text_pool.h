/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/macro.h"

/* Texts by number, each kept once: thousands of samples share a few names. Number 0 is "". */
struct text_pool;

enum { TEXT_POOL_BYTES_MAX = 16 * 1024 * 1024 };

struct text_pool *text_pool_new(void); /* NULL: no memory */
struct text_pool *text_pool_free(struct text_pool *p); /* NULL is fine */
DEFINE_CLEANUP(struct text_pool *, text_pool_free);

/* Up to `max` bytes or the NUL, whichever is first. 0 when there is no room. */
uint32_t text_pool_add(struct text_pool *p, const char *text, size_t max);
const char *text_pool_get(const struct text_pool *p,
                          uint32_t number); /* never NULL; valid until the pool goes */
uint32_t text_pool_count(const struct text_pool *p); /* numbers are below it */
