/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The frames of a stopped process by gdb, without debug files: its program counters, innermost first. 0:
 * gdb could not be run. Takes half a second. */
size_t debugger_unwind(pid_t pid, uint64_t *ret, size_t max);
