/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbolize/dwarf_unit.h"

/*
 * Which function the code at an address is of, and what was inlined there: the functions of one unit and the
 * inlined ones in them, with their ranges made flat. Only what code there is and how it nests is kept; names
 * are read when one is shown.
 */
struct dwarf_scopes;

#define DWARF_SCOPE_NONE UINT32_MAX

struct dwarf_scope {
        uint64_t entry; /* offset in .debug_info */
        uint32_t parent; /* what it was inlined into, or DWARF_SCOPE_NONE */
        bool inlined;
};

enum {
        DWARF_SCOPES_MAX = 1 << 22, /* of a unit */
        DWARF_DEPTH_MAX = 1024, /* of entries inside each other */
};

/* Scans the entries of u, which is borrowed only for that. -EBADMSG, -ENOTSUP, -E2BIG, -ENOMEM. */
int dwarf_scopes_new(const struct dwarf_unit *u, struct dwarf_scopes **ret);
struct dwarf_scopes *dwarf_scopes_free(struct dwarf_scopes *s);
DEFINE_CLEANUP(struct dwarf_scopes *, dwarf_scopes_free);

/* The innermost one; -ENOENT. */
int dwarf_scopes_find(const struct dwarf_scopes *s, uint64_t address, uint32_t *ret);
/* index: of dwarf_scopes_find() or a parent. */
const struct dwarf_scope *dwarf_scopes_get(const struct dwarf_scopes *s, uint32_t index);
size_t dwarf_scopes_bytes(const struct dwarf_scopes *s);
