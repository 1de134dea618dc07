/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdbool.h>

#include "client/options.h"
#include "proto/recording.h"

/*
 * Debug files from debuginfod servers for the modules that still have functions without names: those with the most
 * samples first, with a line of progress on the terminal, for FETCH_SECONDS at most. What could not be had is said.
 * Ctrl-C ends this and nothing else.
 *
 * True: something was fetched, naming again is worth it.
 */
enum { FETCH_SECONDS = 10 };

bool fetch_debug_files(const struct recording *r, const struct options *options);
