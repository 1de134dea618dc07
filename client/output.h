/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stddef.h>
#include <stdio.h>

#include "common/atomic_file.h"

/* Files that the user asked for: there completely or not at all, and never over anything but a regular file. All
 * return 0 or an exit status, with a message said. The umask applies. */

struct output {
        const char *path, *name; /* borrowed; name: its last part */
        int dir_fd;
        struct atomic_file file;
        FILE *stream; /* to write to */
};

#define OUTPUT_NULL                                                                                         \
        (struct output) {                                                                                   \
                .dir_fd = -EBADF, .file = ATOMIC_FILE_NULL                                                  \
        }

/* Before there is anything to write: could it be written? */
int output_check(const char *path);
/* path is borrowed until output_done(). */
int output_open(const char *path, struct output *ret);
int output_finish(struct output *o); /* without it nothing is left */
void output_done(struct output *o);
int output_write(const char *path, const void *data, size_t bytes);
