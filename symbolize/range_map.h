/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"

/*
 * Which of many nested ranges is the innermost at an address: ranges are added in any order, made flat once
 * (each address belongs to the deepest range there), then searched by halves.
 *
 *   life   zeroed, range_map_add()…, range_map_seal(), range_map_find()…, range_map_done()
 */
struct range_map {
        struct buf ranges; /* as they were added; empty when sealed */
        struct buf pieces; /* flat, by address */
};

enum { RANGE_MAP_MAX = 1 << 22 }; /* ranges; a program as one LTO unit has 1.2 million */

/* [begin, end) with begin < end; depth: of the nesting, from 0. value: any but UINT32_MAX. -E2BIG, -ENOMEM. */
int range_map_add(struct range_map *m, uint64_t begin, uint64_t end, uint32_t depth, uint32_t value);
/* -ENOMEM. Where ranges overlap without nesting, the one that begins later wins. */
int range_map_seal(struct range_map *m);
/* -ENOENT. */
int range_map_find(const struct range_map *m, uint64_t address, uint32_t *ret);
size_t range_map_bytes(const struct range_map *m);
void range_map_done(struct range_map *m);
