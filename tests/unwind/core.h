/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "tests/unwind/sampler.h"

/*
 * Writes a core file of a stopped process as one thread of it was sampled: registers, what is mapped from
 * which file, and the memory that may differ from the files (of heaps the first CORE_MAPPING_BYTES, of the
 * read-only no larger ones than CORE_READ_ONLY_BYTES); a debugger reads the rest from the files. 0; negative
 * errno.
 */
enum { CORE_MAPPING_BYTES = 32 << 20, CORE_READ_ONLY_BYTES = 4 << 20 };

int core_write(const char *path, const struct process *p, const struct unwind_stack *stack);
