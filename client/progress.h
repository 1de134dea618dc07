/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <jansson.h>

#include "common/macro.h"

/* One line on the terminal that says how far a capture is; nothing at all when stderr is none. */
struct progress;

/* unit is borrowed. NULL: no memory. */
struct progress *progress_new(const char *unit);
struct progress *progress_free(struct progress *p); /* takes the line away */
DEFINE_CLEANUP(struct progress *, progress_free);
/* reply: the Progress object of the daemon. */
void progress_show(struct progress *p, json_t *reply);
/* Takes the line away, for a message; the next reply brings it back. */
void progress_clear(struct progress *p);
/* The line itself, without the cursor's movements: malloc()ed, NULL: no memory. columns: where it is cut. */
char *progress_line(const char *unit, json_t *reply, unsigned columns);
