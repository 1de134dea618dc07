/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

#include "common/macro.h"
#include "daemon/collect.h"
#include "daemon/start.h"
#include "daemon/store.h"
#include "daemon/systemd.h"

/*
 * One Profile call: the unit is resolved, armed, followed to its end, written, stored and told to the journal.
 *
 *   RESOLVING ──▶ FOLLOWING ──start is over──▶ FINISHING ──▶ (done callback)
 *
 * RESOLVING and FOLLOWING live on the event loop; FINISHING waits for workers in a thread of its own, so that
 * other clients are served meanwhile.
 */
struct session;

/* What all sessions share; borrowed, outlives them. */
struct session_world {
        sd_event *event;
        struct systemd *systemd;
        struct store *store;
        struct table_store *tables; /* NULL: none are kept */
        uid_t worker_uid;
        gid_t worker_gid;
        /* Loads the programs when that has not been done. On error *ret_reason is a sentence. */
        int (*collect)(void *userdata, uint32_t frequency_hz, struct collect **ret, const char **ret_reason);
        /* Does another session follow this unit? */
        bool (*is_armed)(void *userdata, const char *unit, const struct session *except);
        void *userdata;
};

struct session_options {
        uint64_t frequency_hz;
        enum start_until until;
        uint64_t until_ns; /* START_UNTIL_TIME */
};

struct session_events {
        /* Progress (an object, borrowed) for the caller. */
        void (*progress)(void *userdata, json_t *progress);
        /* It is over: with a recording, with an error by name and its parameters (borrowed, may be NULL), or
         * with neither when it was stopped before anything was queued. Called once and last; the session may be
         * freed in it. */
        void (*done)(void *userdata, const char *recording, const char *error, json_t *parameters);
};

/* Errors of systemd_follow(); -ENOMEM. All but `unit` borrowed for the session's life. */
int session_new(const struct session_world *world, uint32_t id, const char *unit,
                const struct session_options *options, const struct session_events *events, void *userdata,
                struct session **ret);
/* Nothing stays armed, and what is being written is thrown away. When it is FINISHING this waits for the thread,
 * which has deadlines of half a minute: only for the end of the daemon. NULL is fine. */
struct session *session_free(struct session *s);
DEFINE_CLEANUP(struct session *, session_free);

/* Capturing is over, and what is left needs nobody but time. */
bool session_is_finishing(const struct session *s);
/* The caller is gone: somebody else hears of the end. */
void session_hand_over(struct session *s, const struct session_events *events, void *userdata);
uint32_t session_id(const struct session *s);
const char *session_unit(const struct session *s); /* canonical once it is known */
/* In `done`: a sealed descriptor of the recording when the store could not take it (now the caller's), or -EBADF. */
int session_take_unsaved(struct session *s);
void session_mark(struct session *s, uint64_t queued_ns); /* TQ */
void session_stop(struct session *s); /* ends the capture; `done` follows */
