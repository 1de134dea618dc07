/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/collect.h"
#include "proto/recording.h"

/* What the cases share: units in cgroups of their own, what runs in them, and questions to the recording. */

enum {
        FREQUENCY = 99,
        PATH_BYTES = 512,
        POLLS_MAX = 10000, /* of a millisecond */
};

struct unit {
        char path[TARGET_PATH_MAX]; /* as systemd would say: below the mount point */
        char dir[PATH_BYTES];
        struct capture *capture;
        struct recording *recording;
        struct rec_start start;
};

/* Keeps the first failure of a case. Returns `holds`. */
__attribute__((format(printf, 2, 3))) bool expect(bool holds, const char *format, ...);
uint64_t now_ns(void);

void name_unit(struct unit *unit, const char *name);
struct target target_of(const struct unit *unit);
void arm(struct unit *unit);
void arm_at(struct unit *unit, uint32_t frequency_hz);
void make_cgroup(const char *dir);
/* Starts an action of tests/bpf/actions.c in the cgroup, as systemd's child would. */
pid_t start(const char *dir, const char *action, const char *number);
int wait_for(pid_t pid);
void run(const char *dir, const char *action, const char *number);
void wait_until_in_call(pid_t pid, int syscall_nr);
void finish(struct unit *unit);
void done(struct unit *unit);

uint32_t count_samples(const struct recording *r, enum rec_sample_kind kind);
uint64_t sum_waits(const struct recording *r, uint32_t call);
const struct rec_process *find_process(const struct recording *r, const char *argument);
/* Has the stack, which may be REC_NONE, a frame of that name? */
bool has_frame(const struct recording *r, uint32_t stack, const char *name);
void expect_nothing_lost(const struct unit *unit);

/* ---- the cases of wait_cases.c ---- */

void waits_have_their_stacks(void);
void major_faults_have_their_stacks(void);
void killed_threads_have_their_stacks(void);
void threads_blocked_at_the_end_have_their_stacks(void);
void waits_before_an_exec_say_so(void);
void a_storm_of_switches_is_bounded(void);
void copies_hold_nothing_of_other_processes(void);
void both_stacks_of_a_signal_handler_are_taken(void);

/* ---- the cases of loss_cases.c ---- */

void nothing_is_lost_at_an_ordinary_frequency(void);
void what_is_lost_at_an_extreme_frequency_is_counted(void);
void waits_lost_at_an_extreme_frequency_are_counted(void);
