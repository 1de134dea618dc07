/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stddef.h>

#include "client/unit.h"

/* --perf-map: what makes the run-times of languages say where the code is that they make. */

/*
 * Lines of a drop-in that sets all of the switches, since which run-time it is shows only later; the others do
 * not look. node_options: what the unit sets $NODE_OPTIONS to, which is kept, or NULL. Malloc()ed, NULL: no
 * memory.
 */
char *perf_map_lines(const char *node_options);
