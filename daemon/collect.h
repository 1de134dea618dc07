/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/table_store.h"
#include "proto/event.h"
#include "proto/recording.h"

/*
 * From kernel events to a recording. One struct collect per daemon: it owns the probe (programs, perf
 * events) and the real-time thread that drains the rings; one struct capture per session, fed by that thread.
 * A second, ordinary thread per capture feeds its worker. All functions below are for the main thread.
 */
struct collect;
struct capture;

struct collect_feature {
        const char *name; /* "build-id mmap events" */
        bool available;
        const char *reason; /* when not: a sentence; else "" */
};

/* Loads programs and opens perf events (design §4), with rings for samples of that frequency. On error *ret_reason is a sentence for the user
 * (borrowed, static): no BTF, locked down, cgroup v1 only, not permitted … and the return value negative errno. */
int collect_new(uint32_t frequency_hz, struct collect **ret, const char **ret_reason);
/* Are its rings large enough? While there are captures nothing can be made anew: then the answer is yes. */
bool collect_suits(struct collect *c, uint32_t frequency_hz);
struct collect *collect_free(struct collect *c);
unsigned collect_features(struct collect *c, const struct collect_feature **ret);

struct capture_options {
        struct target target; /* path and root of the unit's cgroup */
        const char *cgroup_dir; /* the same as a directory below the mounted hierarchy, it need not exist;
                                           when it does, it is armed by id and processes in it are left out */
        uint32_t frequency_hz;
        uid_t worker_uid;
        gid_t worker_gid;
        struct table_store *tables; /* borrowed, must outlive the daemon's captures; NULL: none are kept */
        /* Called on the main thread's event loop is not promised: on the collector thread, must not block.
         * Told once per kind: cgroup made, first exec, first listen(). */
        void (*milestone)(void *userdata, enum rec_milestone_kind kind, uint64_t time_ns);
        void *userdata;
};

/* Armed when it returns: every process of the unit from now on is in. -EBUSY: no free slot; -ENOMEM;
 * errors of bpf(2). */
int capture_new(struct collect *c, const struct capture_options *options, struct capture **ret);
/* Live numbers; cheap (one map read). */
void capture_stat(struct capture *capture, struct session_stat *ret);
uint32_t capture_process_count(struct capture *capture);
/* The busiest call or process lately, for the progress line; "" when nothing. Escaped for terminals. */
void capture_hottest(struct capture *capture, char *text, size_t bytes);

/* Ends the capture at end_ns (events after it are dropped), detaches what nobody else needs, reads the
 * counters. Idempotent. */
void capture_stop(struct capture *capture, uint64_t end_ns);
/* Slot of a process systemd told us about (ExecMainPID, ControlPID); may be called any time before
 * capture_write(); children inherit it. */
void capture_set_slot(struct capture *capture, uint32_t pid, enum rec_slot slot);
/* After capture_stop(): adds every section but START, PROPERTIES and systemd's milestones to w, waits for
 * the worker (until deadline_ns) and adds its layer; fills lost, cost_ns, samples_generated, cgroup_ns,
 * armed_ns, features, cpu_count, frequency_hz of *start. A worker that failed costs names and stacks, not
 * the recording: 0 then, and *ret_problem a sentence (static) or NULL. -ENOMEM. */
int capture_write(struct capture *capture, uint64_t deadline_ns, struct recording_writer *w,
                  struct rec_start *start, const char **ret_problem);
struct capture *capture_free(struct capture *capture);
