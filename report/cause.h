/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "report/analysis.h"

/*
 * Causes: each looks at the analysis so far and either says nothing or fills
 * one finding. The table in cause.c is the vocabulary; startprof-causes(7)
 * documents it. To add one: a cause_NAME.c with its function, a row, a
 * paragraph in the manual, and a test on both sides of each threshold.
 */

struct cause {
        const char *id; /* stable */
        const char *title;
        /* 1: found, and `f` is filled but for cause and title. 0: not. Negative errno. The findings of the
         * rows above are in a->findings. */
        int (*find)(const struct analysis *a, struct finding *f);
        uint32_t verdict_percent; /* of the start that it must explain to be the verdict */
        uint64_t verdict_usec;
        bool beats_time; /* explains the end of the start: a verdict before any that took longer */
};

extern const struct cause causes[];
extern const size_t n_causes;

/* Thresholds that several causes share (design §7). */
enum {
        CAUSE_CALLS_MIN = 1000, /* for those that are about number */
        CAUSE_PERCENT = 25,
        CAUSE_USEC = 50000,
        FINDING_PERCENT = 5, /* below, a finding is not worth a line */
        FINDING_USEC = 20000,
};

/* Looks for all causes and puts them in order. 0, -ENOMEM. */
int causes_find(struct analysis *a);
/* An earlier row has found this one, for this program (REC_NONE: any). */
bool cause_found(const struct analysis *a, const char *id, uint32_t program);

int cause_inotify_find(const struct analysis *a, struct finding *f);
int cause_sync_find(const struct analysis *a, struct finding *f);
int cause_close_find(const struct analysis *a, struct finding *f);
int cause_missing_find(const struct analysis *a, struct finding *f);
int cause_walk_find(const struct analysis *a, struct finding *f);
int cause_fork_find(const struct analysis *a, struct finding *f);
int cause_readiness_find(const struct analysis *a, struct finding *f);
int cause_inotify_limit_find(const struct analysis *a, struct finding *f);
int cause_pidfile_find(const struct analysis *a, struct finding *f);
int cause_start_post_find(const struct analysis *a, struct finding *f);
int cause_sleep_find(const struct analysis *a, struct finding *f);
int cause_cpu_throttled_find(const struct analysis *a, struct finding *f);
int cause_memory_throttled_find(const struct analysis *a, struct finding *f);
int cause_dns_find(const struct analysis *a, struct finding *f);
int cause_names_find(const struct analysis *a, struct finding *f);
int cause_dbus_find(const struct analysis *a, struct finding *f);
int cause_entropy_find(const struct analysis *a, struct finding *f);
int cause_connect_find(const struct analysis *a, struct finding *f);
int cause_socket_find(const struct analysis *a, struct finding *f);
int cause_fifo_find(const struct analysis *a, struct finding *f);
int cause_lock_find(const struct analysis *a, struct finding *f);
int cause_dependency_find(const struct analysis *a, struct finding *f);
int cause_before_exec_find(const struct analysis *a, struct finding *f);
int cause_cpu_find(const struct analysis *a, struct finding *f);
int cause_call_find(const struct analysis *a, struct finding *f);
