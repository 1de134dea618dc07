/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "common/macro.h"

/*
 * The recordings that are kept: one compressed file a start, ID.startprof, and beside it ID.json with what a
 * list shows (a Recording of the interface, without "id" and "size"), so that listing opens no recording.
 * The id is a name in the store's directory, never a path: it comes from clients.
 */
struct store;

enum { STORE_ID_MAX = 240 }; /* NAME_MAX less the suffixes */

/* Makes the directory (0700) when it is not there. Errors of mkdir(2) and open(2). */
int store_open(const char *directory, struct store **ret);
struct store *store_close(struct store *s);
DEFINE_CLEANUP(struct store *, store_close);

/* UNIT.BOOT.INVOCATION; without an invocation (the start was skipped) the time instead. *ret is malloc()ed. */
int store_make_id(const char *unit, const uint8_t boot_id[static 16], const uint8_t invocation_id[static 16],
                  uint64_t realtime_usec, char **ret);
/* Both files, atomically each, the recording last. Errors of open(2), write(2); -EINVAL: no id. */
int store_write(struct store *s, const char *id, const void *data, size_t bytes, json_t *summary);
/* A read-only descriptor of a recording. -ENOENT; -EINVAL: no id. */
int store_fd(struct store *s, const char *id);
/* Recordings, newest first, as an array of the interface's Recording. unit: NULL for all. */
int store_list(struct store *s, const char *unit, json_t **ret);
