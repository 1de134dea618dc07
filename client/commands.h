/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "client/options.h"

/* The subcommands; each returns the exit status of the program. */

int run_main(const struct options *options); /* run.c: startprof UNIT */
int list_main(const struct options *options);
int info_main(const struct options *options);
int export_main(const struct options *options);
int status_main(const struct options *options);
