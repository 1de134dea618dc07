/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "report/report.h"

/* The command line: which command, on what, how. */

enum command {
        COMMAND_RUN,
        COMMAND_LIST,
        COMMAND_INFO,
        COMMAND_EXPORT,
        COMMAND_STATUS,
        COMMAND_HELP,
        COMMAND_VERSION,
        COMMAND_MAX,
};

enum options_json { JSON_OFF, JSON_SHORT, JSON_PRETTY };

enum { DEBUG_DIR_MAX = 16 };

struct options { /* all texts are borrowed from argv */
        enum command command;
        char *const *arguments; /* what is left: unit, recording … */
        unsigned n_arguments;
        uint32_t frequency_hz;
        bool restart, wait, perf_map, kernel, no_debuginfod, all_symbols;
        const char *until; /* "active", "listen", "exit"; NULL: not said */
        uint64_t until_usec; /* 0: not said; at most one of the two is */
        uint64_t timeout_usec; /* UINT64_MAX: none */
        const char *debug_dirs[DEBUG_DIR_MAX];
        unsigned n_debug_dirs;
        const char *flamegraph, *output, *format; /* NULL: not said */
        enum report_view view; /* of flame graphs and folded stacks */
        enum options_json json;
        const char *socket; /* of the daemon */
};

/*
 * argv is permuted as getopt_long(3) does.
 *
 * 0           *ret is filled
 * -EINVAL     *ret_error is a line that says what is wrong and what to do: the caller's, free(); *ret is
 *             untouched
 * -ENOMEM
 */
int options_parse(int argc, char *argv[], struct options *ret, char **ret_error);

/* The text of --help. */
void options_help(FILE *out);
