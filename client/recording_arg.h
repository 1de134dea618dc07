/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "client/answer.h"
#include "client/options.h"

/* What a user means by ID|UNIT|FILE. */

enum recording_arg {
        RECORDING_ARG_NEWEST, /* nothing was given */
        RECORDING_ARG_FILE, /* has a slash, or names a file here that begins like a recording */
        RECORDING_ARG_UNIT, /* "x.service" */
        RECORDING_ARG_ID, /* a name in the store; failing that a unit without its suffix */
};

/* arg may be NULL. Looks at the working directory. */
enum recording_arg recording_arg_kind(const char *arg);

/* Finds and loads it, from the file or from the daemon. 0 or an exit status. */
int recording_arg_load(const struct options *options, struct answer *ret);

/* Fetches a recording of the store. 0 or an exit status. */
struct varlink_client;
int recording_arg_fetch(struct varlink_client *client, const char *id, struct answer *ret);
