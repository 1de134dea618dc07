/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/macro.h"
#include "proto/recording.h"

/*
 * One start of one unit, as systemd's signals tell it: queued, begun, up or failed, and when. Pure: values
 * with times go in, an outcome comes out; it asks nobody and never reads a clock. So recorded sequences of
 * signals test it, and nothing is read back from a unit that is gone (a finished oneshot is unloaded).
 *
 * Times are CLOCK_MONOTONIC nanoseconds. TQ, T0, T1 of the design are queued_ns, begin_ns, end_ns.
 *
 *   ARMED ──job or mark──▶ QUEUED ──new invocation──▶ STARTING ──▶ DONE
 *     ▲───── a job that was not a start ended ────┘       └ skipped, dependency, canceled: QUEUED ──▶ DONE
 */
struct start;

enum start_type {
        START_SIMPLE, /* simple, idle: "active" means forked, not up */
        START_ONESHOT,
        START_NOTIFYING, /* all others: systemd knows when they are up */
};

enum start_until { START_UNTIL_ACTIVE, START_UNTIL_LISTEN, START_UNTIL_EXIT, START_UNTIL_TIME };

struct start_options {
        enum start_type type;
        bool remain_after_exit;
        bool has_start_post; /* ExecStartPost= is not empty */
        enum start_until until;
        uint64_t until_ns; /* START_UNTIL_TIME: after T0 */
};

enum {
        START_STATE_MAX = 32, /* "activating", "final-sigterm", "start-limit-hit": all below 28 */
        START_MILESTONE_MAX = 6,
};

/* What the signals of a unit say, both interfaces together; in microseconds as systemd has them. */
struct start_values {
        char active_state[START_STATE_MAX], sub_state[START_STATE_MAX], result[START_STATE_MAX];
        uint8_t invocation_id[16]; /* zero: never started */
        uint64_t state_change_usec, inactive_exit_usec, active_enter_usec, inactive_enter_usec;
        uint64_t exec_main_exit_usec; /* of the last main process */
        uint64_t condition_usec; /* conditions were checked */
        uint32_t main_pid, control_pid; /* main: ExecMainPID, which outlives the process */
        bool condition_result;
};

enum start_phase { START_ARMED, START_QUEUED, START_STARTING, START_DONE };

struct start_milestone {
        enum rec_milestone_kind kind; /* only those that systemd is the witness of */
        uint64_t time_ns;
};

struct start_outcome {
        enum start_phase phase;
        uint64_t queued_ns; /* 0: not yet */
        uint64_t begin_ns; /* 0: not yet, or never */
        uint64_t end_ns; /* 0: not DONE */
        enum rec_result result; /* when DONE */
        enum rec_end end;
        uint32_t attempts; /* starts seen; goes on to count when DONE */
        uint8_t invocation_id[16]; /* of the first attempt */
        char job_result[START_STATE_MAX]; /* "" or JobRemoved's */
        char unit_result[START_STATE_MAX]; /* Result= when it ended */
        struct start_milestone milestones[START_MILESTONE_MAX];
        uint32_t milestone_count;
};

/* before: the unit as it was when the signals began to be followed; its invocation is not the start that is
 * waited for. NULL: no memory. */
struct start *start_new(const struct start_options *options, const struct start_values *before);
struct start *start_free(struct start *s);
DEFINE_CLEANUP(struct start *, start_free);

/* The caller is about to ask for the start: TQ. */
void start_mark(struct start *s, uint64_t queued_ns);
/* now_ns: when the signal arrived; the fallback where systemd's times say nothing. */
void start_job_new(struct start *s, uint32_t job, uint64_t now_ns);
void start_job_removed(struct start *s, uint32_t job, const char *result, uint64_t now_ns);
void start_unit_changed(struct start *s, const struct start_values *values, uint64_t now_ns);
void start_unit_removed(struct start *s, uint64_t now_ns);
/* From the capture, before the signals that follow them: the unit's cgroup was made; its first listen(). */
void start_cgroup(struct start *s, uint64_t time_ns);
void start_listen(struct start *s, uint64_t time_ns);
/* At least every 100 ms while STARTING: is anything of the unit on a CPU or in I/O wait, and when did it
 * last leave a CPU? Ends simple units that rest, --until=TIME, and waits for signals that do not come. */
void start_tick(struct start *s, bool busy, uint64_t last_on_cpu_ns, uint64_t now_ns);
/* Ctrl-C, --timeout, the client is gone. */
void start_interrupt(struct start *s, uint64_t now_ns);

/* Borrowed; valid until the next call. */
const struct start_outcome *start_outcome(const struct start *s);

/* What ControlPID runs in a sub state ("start-pre" → REC_SLOT_START_PRE). */
enum rec_slot start_control_slot(const char *sub_state);
