/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/macro.h"
#include "daemon/feed.h"
#include "daemon/mappings.h"
#include "daemon/perf_ring.h"
#include "daemon/probe.h"
#include "daemon/process_table.h"
#include "proto/event.h"
#include "proto/recording.h"

/*
 * What one capture has learnt: processes, samples, waits, paths, milestones, as rows of a recording. Fed with
 * kernel events in the order of time; hands mappings and stacks on to the feed. No threads, no kernel: the
 * caller locks, and tests replay events.
 */
struct ledger;

struct ledger_options {
        struct mappings *mappings; /* borrowed, must outlive the ledger */
        struct feed *feed; /* likewise; NULL: stacks are dropped */
        int proc_fd; /* borrowed */
        uint64_t begin_ns; /* events before it are not this capture's */
        uint64_t period_ns; /* of sampling */
        /* Told once per kind: CGROUP, EXEC (the first that is not systemd's executor), LISTEN. May be NULL. */
        void (*milestone)(void *userdata, enum rec_milestone_kind kind, uint64_t time_ns);
        void *userdata;
};

/* What was pinned when an exec or a join was seen first, before anything else. */
struct pins {
        uint32_t root, file; /* numbers of mappings, or REC_NONE */
        const char *exe, *cwd; /* NULL: the process was gone */
};

struct ledger *ledger_new(const struct ledger_options *options); /* NULL: no memory */
struct ledger *ledger_free(struct ledger *l); /* NULL is fine */
DEFINE_CLEANUP(struct ledger *, ledger_free);

/* `bytes` is at least the struct of the event's type. pins may be NULL. */
void ledger_event(struct ledger *l, const struct event_head *head, size_t bytes, const struct pins *pins);
/* Of any process of the machine; those of others are ignored. */
void ledger_map(struct ledger *l, const struct perf_map *map);
void ledger_image(struct ledger *l, uint32_t pid, uint64_t time_ns);
/* Later events are not this capture's any more. */
void ledger_end(struct ledger *l, uint64_t end_ns);

/* What was counted in the kernel. Waits of the same thread and call are summed. */
void ledger_add_call(struct ledger *l, const struct call_key *key, const struct call_value *value);
void ledger_add_wait(struct ledger *l, const struct wait_key *key, const struct wait_value *value);
/* After ledger_end(): a thread that was blocked then. */
void ledger_add_blocked(struct ledger *l, const struct blocked_thread *thread);
void ledger_add_dir(struct ledger *l, const struct dir_key *key, uint64_t count);

void ledger_set_slot(struct ledger *l, uint32_t pid, enum rec_slot slot);
uint32_t ledger_process_count(const struct ledger *l);
/* "comm: running", for a progress line, of the busiest process lately; escaped. Nothing when there is none. */
void ledger_hottest(struct ledger *l, struct buf *b);
/* Lost on this side, by enum loss_kind. */
uint64_t ledger_lost(const struct ledger *l, enum loss_kind kind);
void ledger_count_lost(struct ledger *l, enum loss_kind kind, uint64_t count);
/* Samples that came, but of a time after the end: neither rows nor lost. */
uint64_t ledger_after_end(const struct ledger *l);

/* Adds PROCESSES, PROGRAMS, MODULES, SAMPLES, CALLS, WAITS, PATHS, DIRS and MILESTONES. Once, at the end.
 * -ENOMEM. */
int ledger_write(struct ledger *l, struct recording_writer *w);
