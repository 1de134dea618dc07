/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/event.h"

/*
 * The memory and registers of a stopped thread, as far as they were copied, and DWARF expressions over
 * them (DWARF 5, section 2.5) as call frame information uses them: PLT entries, frames with realigned
 * stacks, signal frames.
 */

struct stack_range {
        uint64_t address;
        const uint8_t *bytes; /* borrowed */
        size_t size;
        uint32_t holes; /* bit n: the page n above that of `address` was not copied */
};

enum { STACK_RANGES = 2 }; /* the stack, and the one that a signal on an alternate stack interrupted */

struct stack_memory {
        struct stack_range ranges[STACK_RANGES];
};

/* Reads `bytes` (1 to 8) little-endian. False: not in the copy; *ret untouched. */
bool stack_memory_read(const struct stack_memory *m, uint64_t address, size_t bytes, uint64_t *ret);

struct registers {
        uint64_t value[REG_COUNT]; /* by DWARF number */
        uint32_t valid; /* bit per register: its value is known */
};

enum expression_result {
        EXPRESSION_OK,
        EXPRESSION_UNSUPPORTED, /* unknown, malformed, too long, or needs an unknown register */
        EXPRESSION_NOT_COPIED, /* needs memory outside the copy */
};

enum {
        EXPRESSION_STACK_MAX = 32,
        EXPRESSION_STEPS_MAX = 256, /* real ones have ten; DW_OP_bra can loop */
};

/* Runs an expression; cfa, unless NULL, is on its stack at the beginning (rules of registers other than
 * the CFA). *ret is set for EXPRESSION_OK only. */
enum expression_result expression_run(const uint8_t *code, size_t bytes, const struct registers *registers,
                                      const struct stack_memory *memory, const uint64_t *cfa, uint64_t *ret);
