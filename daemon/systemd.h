/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "common/macro.h"
#include "daemon/start.h"

/*
 * PID 1 over D-Bus: which unit a name means, and what happens to it. Root talks over systemd's private
 * socket, which needs no bus daemon, so boots are seen from the start; else the system bus. All calls are
 * asynchronous: a busy PID 1 must not stop the service of other clients.
 */
#define SYSTEMD_VERSION_UNKNOWN UINT_MAX /* treated as the newest */

struct systemd;
struct systemd_unit; /* one unit that is followed */

/* All on the event loop. No call after systemd_unit_free(); it may be called from any of them. */
struct systemd_events {
        /* The unit's values and properties are there. error: 0; -EHOSTDOWN: no answer from systemd; else with
         * a message of its own (borrowed). Once, before all others. */
        void (*resolved)(void *userdata, int error, const char *message);
        void (*changed)(void *userdata); /* systemd_unit_values() are new */
        void (*job_new)(void *userdata, uint32_t job);
        void (*job_removed)(void *userdata, uint32_t job, const char *result);
        void (*removed)(void *userdata); /* unloaded */
        void (*lost)(void *userdata); /* the connection is gone: nothing more will come */
};

/* Errors of sd_bus_start(3). event is referenced. */
int systemd_new(sd_event *event, struct systemd **ret);
struct systemd *systemd_free(struct systemd *s); /* units must be freed before */
DEFINE_CLEANUP(struct systemd *, systemd_free);
bool systemd_is_connected(const struct systemd *s);
/* Of the manager: 252, 257. Known before any unit of it is resolved; SYSTEMD_VERSION_UNKNOWN when it did not
 * tell. */
unsigned systemd_version(const struct systemd *s);

/* Loads the unit of that name (an alias, too) and follows it. -ENOMEM and errors of sd-bus. */
int systemd_follow(struct systemd *s, const char *name, const struct systemd_events *events, void *userdata,
                   struct systemd_unit **ret);
/* No more events; values and properties stay as they are, and may be read by one other thread. */
void systemd_unit_stop(struct systemd_unit *u);
struct systemd_unit *systemd_unit_free(struct systemd_unit *u);
DEFINE_CLEANUP(struct systemd_unit *, systemd_unit_free);

/* After `resolved`. All borrowed; texts never NULL. */
const char *systemd_unit_id(const struct systemd_unit *u); /* canonical */
const char *systemd_unit_property(const struct systemd_unit *u, const char *name); /* NULL: has none */
const struct start_values *systemd_unit_values(const struct systemd_unit *u);
uint32_t systemd_unit_job(const struct systemd_unit *u); /* queued now; 0: none */
/* Calls f for each property that is worth a place in a recording. */
void systemd_unit_properties(const struct systemd_unit *u,
                             void (*f)(void *userdata, const char *name, const char *value), void *userdata);
