/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stddef.h>

#include "common/macro.h"

/*
 * All files below some directories, in a list that does not change: sorted by name within each directory, files before
 * what lies deeper. Links to directories are not followed, links to files are files. A list is cut at
 * DIR_FILES_MAX: somebody may have named a directory that holds a whole system.
 */
struct dir_files;

enum {
        DIR_FILES_MAX = 8192, /* files, and directories, of one list */
        DIR_FILES_DEPTH_MAX = 8,
};

/* What is no directory or cannot be read is left out. -ENOMEM. */
int dir_files_new(const char *const *directories, size_t count, struct dir_files **ret);
struct dir_files *dir_files_free(struct dir_files *d);
DEFINE_CLEANUP(struct dir_files *, dir_files_free);

/* NULL: there is none of this number. Valid as long as d. */
const char *dir_files_path(const struct dir_files *d, size_t number);
