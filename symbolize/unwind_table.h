/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbolize/cfi.h"
#include "symbolize/unwind.h"

/*
 * Inside of struct unwind_table, for the walk. Six bytes a row: addresses and numbers of rules lie in
 * arrays of their own, and equal rules are one. What is not in six bytes is in the pool: expressions, and
 * the few rules about more than the CFA and the callee-saved registers.
 *
 *   invariant   pcs ascend strictly; rule 0 is "no CFI"; all numbers and pool offsets in the arrays are in range
 */

/* The registers that a callee saves (System V ABI, figure 3.4), in the order of unwind_rule.saved. */
enum { UNWIND_SAVED_COUNT = 6 };
extern const uint8_t unwind_saved_register[UNWIND_SAVED_COUNT];

enum unwind_rule_flags {
        UNWIND_RULE_NONE = 1 << 0, /* no CFI here */
        UNWIND_RULE_SIGNAL = 1 << 1, /* this frame was made by the kernel: its caller was interrupted */
        UNWIND_RULE_ROOT = 1 << 2, /* the return address is undefined */
};

/* No padding: rules are compared as bytes. */
struct unwind_rule {
        int32_t cfa_value; /* offset from cfa_register, or pool offset of an expression */
        uint8_t cfa_register; /* DWARF number or CFI_CFA_EXPRESSION */
        uint8_t flags;
        int16_t saved[UNWIND_SAVED_COUNT]; /* in memory at CFA + this; 0: keeps its value */
        uint16_t reserved;
        uint32_t extra; /* pool offset of struct unwind_extra[], 0: none */
};
_Static_assert(sizeof(struct unwind_rule) == 24, "no padding");

/* A rule about one register that struct unwind_rule does not hold; it wins over what that says. */
struct unwind_extra {
        uint8_t reg; /* DWARF number */
        uint8_t kind; /* enum cfi_kind */
        uint16_t reserved;
        int32_t value; /* as cfi_row.value; of expressions the pool offset */
};
_Static_assert(sizeof(struct unwind_extra) == 8, "no padding");

enum { UNWIND_PAGE_SHIFT = 9 };

struct unwind_table {
        uint64_t base; /* virtual address of pcs[…] == 0 */
        uint32_t *pcs; /* where rows begin; the last one ends the table (rule 0) */
        uint16_t *numbers; /* of the rows' rules */
        uint32_t row_count;
        struct unwind_rule *rules;
        uint32_t rule_count;
        uint8_t *pool; /* entries: u16 size, bytes */
        uint32_t pool_bytes;
        uint32_t *pages; /* number of the first row in or behind each 1 << UNWIND_PAGE_SHIFT bytes */
        uint32_t page_count; /* pages[page_count] == row_count */
        bool has_signal_frames; /* some rule has UNWIND_RULE_SIGNAL: few modules do */
};

/* Fills pages and page_count from the rows. -ENOMEM. */
int unwind_table_index(struct unwind_table *t);
/* Never NULL. */
const struct unwind_rule *unwind_table_find(const struct unwind_table *t, uint64_t vaddr);
/* The bytes of a pool entry. */
const uint8_t *unwind_table_pool(const struct unwind_table *t, uint32_t offset, size_t *ret_bytes);
