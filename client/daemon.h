/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "proto/varlink.h"

/* The daemon as the commands use it: calls whose failures are told to the user. */

/* CLOCK_MONOTONIC now, nanoseconds. */
uint64_t daemon_now(void);

/* Connects (which may start the daemon). 0 or an exit status. */
int daemon_connect(const char *socket, struct varlink_client **ret);

/* Sends a call of the Profiler interface ("Mark"); parameters are taken over, NULL means no memory. */
int daemon_send(struct varlink_client *client, const char *method, json_t *parameters, bool more);
/* Sends it and waits for its one result or error, which *ret is filled with. 0 or an exit status. */
int daemon_ask(struct varlink_client *client, const char *method, json_t *parameters,
               struct varlink_answer *ret);
/* The same, but an error of the daemon is told and becomes an exit status, too. */
int daemon_call(struct varlink_client *client, const char *method, json_t *parameters,
                struct varlink_answer *ret);

/* What an error of the daemon means: an exit status and a line (malloc()ed; NULL: no memory). */
int daemon_refusal(const struct varlink_answer *answer, char **ret_message);
int daemon_refused(const struct varlink_answer *answer); /* says it */
/* The same for a connection that failed (negative errno). */
int daemon_gone(int error);
