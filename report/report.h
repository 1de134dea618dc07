/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "proto/recording.h"

/* The answer: one recording → text, JSON, pictures. The only entry into report/ for others. */

enum report_format {
        REPORT_TEXT,
        REPORT_JSON,
        REPORT_JSON_PRETTY,
        REPORT_FOLDED,
        REPORT_SVG,
        REPORT_SPEEDSCOPE,
        REPORT_PPROF,
        REPORT_FIREFOX,
        REPORT_TRACE,
        REPORT_PERF,
        REPORT_FORMAT_MAX
};

enum report_view { /* of flame graphs and folded stacks */
                   REPORT_CPU, /* where the CPU time went */
                   REPORT_WAITS, /* where threads were blocked */
                   REPORT_WALL, /* both, and the time runnable: the life of each thread */
                   REPORT_VIEW_MAX
};

struct report_options {
        enum report_view view;
        bool kernel; /* flame graphs and folded stacks go on into the kernel, where that was recorded */
        bool color; /* terminal colours, as systemd's */
        unsigned columns; /* of the terminal; 0: 80 */
        const char *recording; /* id or path, for the "recording" key and hints; may be NULL */
};

/* Format from a name ("folded") or from a file name ("x.svg", "x.folded"); -EINVAL. */
int report_format_from_name(const char *name, enum report_format *ret);
int report_format_from_file(const char *file, enum report_format *ret);
int report_view_from_name(const char *name, enum report_view *ret); /* "cpu", "waits", "wall"; -EINVAL */
const char *report_format_list(void); /* "folded, svg, …" for messages */

/* Writes the whole report. -ENOMEM, or -EIO when writing to `out` failed (the caller closes and says). */
int report_write(const struct recording *r, enum report_format format, const struct report_options *options,
                 FILE *out);

/*
 * For the journal (run in the worker): a JSON object, malloc()ed:
 * {"unit","result","cause","summary","message","duration_usec","share"}; `message` is a sentence as in
 * "myservice.service took 9.2s to start: inotify watch storm: …", one line, escaped for a terminal.
 */
int report_journal(const struct recording *r, char **ret);
