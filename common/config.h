/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stddef.h>

/*
 * startprofd.conf(5): the settings of the administrator, written and found as those of systemd's own daemons are. The
 * first startprof/startprofd.conf in /etc, /run, /usr/local/lib and /usr/lib is read, then the *.conf files in
 * startprofd.conf.d/ beside all four, sorted by their names; of equal names the first directory's counts, and an
 * empty one (or a link to /dev/null) hides the others. `systemd-analyze cat-config startprof/startprofd.conf` shows
 * the same.
 *
 * A line that cannot be understood is told and left out: a typing error must not keep a daemon from starting.
 */

enum {
        CONFIG_FILE_BYTES_MAX = 64 * 1024,
        CONFIG_FILES_MAX = 256, /* drop-ins */
        CONFIG_DIRECTORIES_MAX = 32, /* of DebugDirectories= */
};

struct config {
        /* [Symbols] */
        char *debug_directories[CONFIG_DIRECTORIES_MAX]; /* owned; absolute */
        size_t n_debug_directories;
};

#define CONFIG_NULL                                                                                         \
        (struct config) {                                                                                   \
        }

/* One line about a file, with the number of the line. */
typedef void (*config_complain_fn)(const char *path, unsigned line, const char *what);

/* root: where /etc and so on are looked for, "" for the system's. complain: NULL keeps silent. -ENOMEM (*ret untouched). */
int config_load(const char *root, config_complain_fn complain, struct config *ret);
void config_done(struct config *c);
