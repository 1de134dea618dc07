/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stddef.h>

#include "client/options.h"
#include "proto/recording.h"
#include "report/report.h"

/* A recording in hand: read, named better where possible, shown and written. */
struct answer {
        char *data; /* the bytes of its file, with the layers that were added here */
        size_t bytes;
        struct recording *recording;
        char *name; /* id or path, for the reader */
};

#define ANSWER_NULL                                                                                         \
        (struct answer) {                                                                                   \
        }
void answer_done(struct answer *a);

/* Reads the whole of fd (borrowed). 0 or an exit status. */
int answer_load(int fd, const char *name, struct answer *ret);
/* Adds names from files that the caller may open, when some are missing or directories were given. What
 * cannot be named stays as it is: that is no error. */
void answer_improve(struct answer *a, const struct options *options);
/* On standard output, as text or as --json= says. 0 or an exit status. */
int answer_print(const struct answer *a, const struct options *options);
/* Into a file, "-" for standard output; of the options --view= and --kernel count. 0 or an exit status. */
int answer_export(const struct answer *a, enum report_format format, const struct options *o,
                  const char *path);
