/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdint.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

#include "common/macro.h"

/*
 * The socket: connections, who may what, and the methods of org.startprof.Profiler. Owns the sessions, the
 * store, the connection to systemd and, from the first request that needs it, the BPF programs.
 */
struct server;

struct server_options {
        int listen_fd; /* owned by the server from here on */
        const char *state_directory; /* of the store */
        uid_t worker_uid;
        gid_t worker_gid;
        uint64_t idle_usec; /* leave the event loop after so long without clients; 0: never */
};

/* Errors of store_open(), systemd_new() and sd-event; logged. event is referenced. */
int server_new(sd_event *event, const struct server_options *options, struct server **ret);
struct server *server_free(struct server *s); /* ends all sessions */
DEFINE_CLEANUP(struct server *, server_free);
