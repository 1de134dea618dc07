/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/macro.h"
#include "daemon/mappings.h"
#include "daemon/table_store.h"
#include "proto/event.h"
#include "proto/worker_msg.h"

/*
 * The ordinary thread of a capture: starts its worker, hands on what the collector queues, in order, and
 * does everything that may block on something that the profiled service controls: opening its files and
 * reading /proc/PID/maps.
 *
 * The queue holds FEED_BYTES_MAX: a worker that is behind costs stacks, never memory, and never the order.
 */
struct feed;

enum { FEED_BYTES_MAX = 16 * 1024 * 1024 };

struct feed_options {
        uid_t worker_uid;
        gid_t worker_gid;
        int proc_fd; /* borrowed; must outlive the feed, also an abandoned one */
        struct table_store *tables; /* likewise; NULL: none are kept */
};

/* Starts the thread. The feed keeps a reference to the mappings. -ENOMEM, errors of pthread_create(3). */
int feed_new(const struct feed_options *options, struct mappings *mappings, struct feed **ret);
/* Stops the thread and its worker. A thread that hangs in a hostile file system is left behind with all that
 * it owns. NULL is fine. */
struct feed *feed_free(struct feed *f);
DEFINE_CLEANUP(struct feed *, feed_free);

/* All of these only queue. */
void feed_space(struct feed *f, uint32_t space, uint32_t from /* REC_NONE: empty */);
void feed_map(struct feed *f, uint32_t space, uint32_t module, uint64_t start, uint64_t end,
              uint64_t file_offset);
/* The space is that of a process that joined: what it has mapped already is read from /proc/PID/maps, of its parent as
 * long as that runs the same executable. exe: what the process ran when it joined; "": unknown. */
void feed_existing(struct feed *f, uint32_t space, uint32_t pid, uint32_t parent, const char *exe,
                   uint32_t root);
/* The process of the space ends, or executes another program: what it says of code that it made is kept. */
void feed_ended(struct feed *f, uint32_t space);
/* As worker_link_stack(). False: the queue is full, the stack was dropped. */
bool feed_stack(struct feed *f, const struct worker_stack *stack, const void *bytes);
/* The stack of a thread that is blocked: its stack_bytes are read from its memory, if it has not run until then. */
bool feed_blocked(struct feed *f, const struct worker_stack *stack, const struct blocked_thread *thread);

/*
 * Waits until everything is handed over and the worker has named its frames. *ret is malloc()ed, a layer for
 * recording_writer_layer(); NULL when there is none, and then *ret_problem says why (static). Once only.
 */
void feed_finish(struct feed *f, uint64_t deadline_ns, void **ret, size_t *ret_bytes,
                 const char **ret_problem);

/* CPU time of the thread and, while it runs, of the worker, so far. */
uint64_t feed_cpu_ns(struct feed *f);
