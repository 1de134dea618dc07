/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdint.h>

#include "common/macro.h"
#include "daemon/mappings.h"

/*
 * What the run-times of a capture (JavaScript, .NET, Python, Java) say of the code that they made: each
 * writes /tmp/perf-PID.map, with its own idea of what /tmp is and which pid it has. The map is held open from
 * the moment it is seen, since systemd removes the /tmp of PrivateTmp= as soon as the last process has ended,
 * and copied when its process ends, or when the worker asks for it: later it may be another's (a pid namespace
 * begins with 1 each time).
 *
 * The file is a stranger's: a regular one, not linked to from elsewhere, of the process's own user or root's,
 * and of it PERF_MAP_FILE_MAX. Reading it may block; all functions are for the feed's thread.
 */
struct code_maps;

enum {
        PERF_MAP_FILE_MAX = 64 * 1024 * 1024, /* a large server writes 10 MB */
        PERF_MAPS_TOTAL_MAX = 128 * 1024 * 1024, /* copied, of one capture; they lie in memory */
};

/* Both are borrowed. NULL: no memory. */
struct code_maps *code_maps_new(int proc_fd, struct mappings *mappings);
struct code_maps *code_maps_free(struct code_maps *c);
DEFINE_CLEANUP(struct code_maps *, code_maps_free);

/* A module of code that its owner makes, which lives: what it calls itself is read now. */
void code_maps_add(struct code_maps *c, uint32_t module, const struct module_owner *owner);
/* The module has grown: its owner may have begun its map. */
void code_maps_look(struct code_maps *c, uint32_t module);
/* The owner of the space ends: copies its map, if there is one. */
void code_maps_keep(struct code_maps *c, uint32_t space);
/* The map of a module's owner, as it was when that ended, or is now: a sealed copy, the caller's, and its
 * path as the process saw it. -ENOENT: it wrote none that could be taken. */
int code_maps_open(struct code_maps *c, uint32_t module, int *ret_fd, char path[static WORKER_PATH_MAX]);
