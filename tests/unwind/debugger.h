/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "tests/unwind/sampler.h"

/* The frames of a sample by gdb, which gets a core file of it and looks at the files by itself: program
 * counters, innermost first. Debug files only beside the program. 0: gdb could not be run. Takes half a
 * second. */
size_t debugger_unwind(const struct sampler *sampler, const struct process *p,
                       const struct unwind_stack *stack, uint64_t *ret, size_t max);
