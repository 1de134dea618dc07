/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/macro.h"

/*
 * A map from keys of bytes (copied) to 64-bit values: an index into an array, or a pointer by cast.
 * Open addressing, doubled at 3/4 full; seeded, since keys may be chosen by the profiled service.
 */
struct hash;

struct hash *hash_new(void); /* NULL: no memory */
struct hash *hash_free(struct hash *h); /* NULL is fine; values are not freed */
DEFINE_CLEANUP(struct hash *, hash_free);

/* 0 and *ret; -ENOENT leaves *ret alone. */
int hash_get(const struct hash *h, const void *key, size_t key_bytes, uint64_t *ret);
/* 1 added, 0 replaced, -ENOMEM. */
int hash_put(struct hash *h, const void *key, size_t key_bytes, uint64_t value);
/* Adds `value` unless the key is there; *ret is what is there now. 1 added, 0 was there, -ENOMEM. */
int hash_intern(struct hash *h, const void *key, size_t key_bytes, uint64_t value, uint64_t *ret);
bool hash_remove(struct hash *h, const void *key, size_t key_bytes); /* true: was there */
size_t hash_count(const struct hash *h);
/* Every entry once, in no order: start with *position 0; false at the end. No changes meanwhile. */
bool hash_next(const struct hash *h, size_t *position, const void **key, size_t *key_bytes, uint64_t *value);
