/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/buf.h"
#include "proto/recording.h"

/* Paths as texts: the machine they belong to is not here, so nothing is looked up. */

/* Absolute and without "//", "." and a slash at the end; ".." is kept, it may cross a symbolic link.
 * *ret is malloc()ed. 0, -ENOMEM. */
int path_absolute(const char *cwd, const char *path, char **ret);
/* Of absolute, normal paths: is it `top` or inside of it? */
bool path_is_below(const char *path, const char *top);
/* Directly in it. */
bool path_is_child(const char *path, const char *top);
/* All before the last slash, "/" for what lies there, "" for a plain name. malloc()ed, NULL: no memory. */
char *path_directory(const char *path);
void path_list_free(char **paths, size_t n);

/* Working directory of a process at a time: that of its exec, or of its last chdir() before. Times of 0: at
 * exec. *ret is malloc()ed, "" when nobody knows. 0, -ENOMEM. */
int process_cwd(const struct recording *r, uint32_t process, uint64_t time_ns, char **ret);

enum { TOP_DIRS_MAX = 5 };

struct top_dir {
        const char *path; /* valid as long as r */
        uint64_t count;
};

/* The directories with most paths of one kind (enum rec_path_kind), most first. How many were filled. */
size_t top_dirs(const struct recording *r, uint32_t kind, uint32_t program,
                struct top_dir ret[static TOP_DIRS_MAX]);

/* Appends a path as the value of a setting that takes one (systemd.unit(5)): "%" doubled. False, and nothing
 * appended, for one that a drop-in cannot hold: relative, control characters, a space at the end. */
bool dropin_put_path(struct buf *b, const char *path);
