/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/macro.h"

/*
 * The unwinder's tables that workers made of large libraries, one file each, named by a key (build-id and hash,
 * see symbolize/unwind_store.h). A worker may be in the hand of a hostile file that it has read, and what it
 * gives is read by later ones that see other units: so only tables of files that root alone can write are kept,
 * and only from a worker that has seen no others.
 *
 * Thread-safe: each call opens, reads and writes for itself.
 */
struct table_store;

enum {
        TABLES_MAX = 256, /* then the oldest go */
        TABLES_BYTES_MAX = 256 * 1024 * 1024,
};

/* directory: made (0700) when it is not there. Errors of mkdir(2) and open(2). */
int table_store_open(const char *directory, struct table_store **ret);
struct table_store *table_store_close(struct table_store *s);
DEFINE_CLEANUP(struct table_store *, table_store_close);

/* Is it a file that only root can write, as far as its own mode tells? */
bool table_store_trusts(int fd);
/* A read-only descriptor. -ENOENT; -EINVAL: no key. */
int table_store_get(struct table_store *s, const char *key);
/* Copies the sealed memory file. -EINVAL: no key; -EFBIG; errors of write(2). */
int table_store_put(struct table_store *s, const char *key, int fd);
