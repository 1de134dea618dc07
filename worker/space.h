/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdint.h>

#include "common/macro.h"

/*
 * Address spaces as the mapping events tell of them. A fork shares the mappings of its parent until either
 * changes; an exec begins empty; a new mapping overlays what was there.
 */
struct spaces;

enum {
        SPACES_MAX = 1 << 20, /* numbers are below this */
        SPACE_MAPPINGS_MAX = 65536, /* of one space: vm.max_map_count */
};

struct space_mapping {
        uint64_t start, end;
        uint64_t offset; /* in the file, of `start` */
        uint32_t module;
        uint32_t reserved;
};

struct spaces *spaces_new(void); /* NULL: no memory */
struct spaces *spaces_free(struct spaces *s);
DEFINE_CLEANUP(struct spaces *, spaces_free);

/* Begins space `number` anew: empty when from is REC_NONE, else as `from` is now (an unknown one is empty).
 * -ERANGE, -ENOMEM. */
int spaces_begin(struct spaces *s, uint32_t number, uint32_t from);

/* Maps; an unknown space begins empty. -EINVAL: no bytes. -ERANGE: a number or count past its limit. -ENOMEM. */
int spaces_map(struct spaces *s, uint32_t number, const struct space_mapping *mapping);

/* Numbers are below this. */
uint32_t spaces_count(const struct spaces *s);
/* All mappings of a space by address: how many. Valid until the next change. */
uint32_t spaces_mappings(const struct spaces *s, uint32_t number, const struct space_mapping **ret);

/* The mapping that holds the address, NULL. Valid until the next change. */
const struct space_mapping *spaces_find(const struct spaces *s, uint32_t number, uint64_t address);
