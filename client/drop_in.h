/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "common/macro.h"

/*
 * A runtime drop-in that is there for one start, and goes whatever happens.
 *
 *   us ──pipe──▶ keeper (a child in a session of its own, deaf to signals)
 *                   │  the pipe closes: we are done, or gone
 *                   └─▶ removes the drop-in, daemon-reload, ends
 *
 * Both hold a lock on the file while they live. What a crash of both left behind has our name, our first
 * line and no lock: the next startprof of root removes it. All of it needs root.
 */
struct drop_in;

#define DROP_IN_DIRECTORY "/run/systemd/system"

/* Makes systemd read its units again. 0, or negative errno. Called in the keeper, too. */
typedef int (*drop_in_reload_fn)(void);

/*
 * Writes DIRECTORY/UNIT.d/ with these lines, and reloads.
 *
 * -EBUSY     another startprof has one there for this unit
 * errors of mkdirat(2), openat(2), fork(2), reload(); nothing is left behind then
 */
int drop_in_new(const char *directory, const char *unit, const char *lines, drop_in_reload_fn reload,
                struct drop_in **ret);
/* Lets the keeper remove it, and waits until it has, and has reloaded. 0, or -EIO: it could not. NULL is fine. */
int drop_in_remove(struct drop_in *d);
static inline _unused_ void drop_in_removep(struct drop_in **d) {
        (void) drop_in_remove(*d);
}

/* Removes what crashes left in DIRECTORY, and reloads when there was something. How many, or negative errno. */
int drop_in_sweep(const char *directory, drop_in_reload_fn reload);
