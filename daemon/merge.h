/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/macro.h"

/*
 * Several streams, each nearly in the order of time, made one: items are kept until nothing older can come.
 */
struct merge;

struct merge_item {
        uint64_t time_ns;
        uint64_t order; /* of arrival: equal times keep it */
        uint32_t kind; /* the caller's */
        uint32_t numbers[2]; /* the caller's */
        char *texts[2]; /* owned, may be NULL */
        size_t bytes;
        _Alignas(8) uint8_t data[];
};

typedef void (*merge_fn)(void *userdata, struct merge_item *item);

struct merge *merge_new(void); /* NULL: no memory */
struct merge *merge_free(struct merge *m); /* NULL is fine */
DEFINE_CLEANUP(struct merge *, merge_free);

/* Copies the bytes. The item may still be filled until the next call; NULL: no memory. */
struct merge_item *merge_add(struct merge *m, uint64_t time_ns, uint32_t kind, const void *data,
                             size_t bytes);
/* Hands over, in order, everything up to and including that time, and forgets it. f must not add. */
void merge_release(struct merge *m, uint64_t until_ns, merge_fn f, void *userdata);
