/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "tests/unwind/sampler.h"

/* The same stacks by libdwfl, from the same copies; kept warm, one Dwfl a process. */
struct oracle;

/* Reads the mappings of the (stopped) process anew when they changed. NULL: libdwfl cannot. */
struct oracle *oracle_get(struct process *p);
void oracle_free(struct process *p);

/* Addresses as struct unwind_frame has them, but the pc itself in a system call. *ret_complete: libdwfl
 * ended without an error. */
size_t oracle_unwind(struct oracle *o, const struct unwind_stack *stack, uint64_t *ret, size_t max,
                     bool *ret_complete);
