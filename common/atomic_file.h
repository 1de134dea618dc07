/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "common/macro.h"

/*
 * A file that is there completely or not at all: without a name (O_TMPFILE), or under one that nobody can have chosen
 * where the file system cannot do that, until atomic_file_commit() gives it its own.
 */
struct atomic_file {
        int dir_fd; /* borrowed */
        int fd; /* for writing */
        char temporary[40]; /* its name so far; "": none */
};

#define ATOMIC_FILE_NULL                                                                                    \
        (struct atomic_file) {                                                                              \
                .dir_fd = -EBADF, .fd = -EBADF                                                              \
        }

int atomic_file_open(int dir_fd, struct atomic_file *ret);
/* fsync, then `name` (no slashes) is it, in place of what had the name. mode: of the new file. */
int atomic_file_commit(struct atomic_file *f, const char *name, mode_t mode);
/* Without a commit nothing is left. Twice is fine. */
void atomic_file_done(struct atomic_file *f);

/* The three in one. */
int write_file_atomic_at(int dir_fd, const char *name, const void *data, size_t bytes, mode_t mode);
