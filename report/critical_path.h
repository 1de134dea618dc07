/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/recording.h"

/*
 * The critical path: what systemd was waiting for, moment by moment, from the
 * request to the end of the start, cut into pieces that add up exactly.
 *
 *   TQ ── queue ── T0 ── before exec ── ExecStartPre ── ExecStart ── … ── T1
 *                                            │
 *                       the process that systemd waits for: its main thread's
 *                       exact times, and where that thread waits for a child
 *                       or for another thread, theirs in its place
 *
 * Exact times per thread come from REC_WAITS (they cover a whole life; a
 * thread that was on the path for a part of it is scaled down to that part),
 * what the CPU time went into from the CPU samples.
 */

enum piece_kind { /* in the order that they happen; words in piece_kind_str() */
                  PIECE_QUEUE, /* the job waited for other units */
                  PIECE_BEFORE_EXEC, /* systemd set up the process */
                  PIECE_CPU_USER,
                  PIECE_CPU_KERNEL, /* in `syscall`; REC_CALL_FAULT: for a page fault or an interrupt */
                  PIECE_WAIT, /* blocked in `syscall`; REC_CALL_NONE: it is not known in what */
                  PIECE_FAULT, /* blocked in a page fault */
                  PIECE_RUNNABLE, /* ready, but other threads had the CPUs */
                  PIECE_THROTTLED, /* ready, but its cgroup had used up its CPUQuota= */
                  PIECE_SYSTEMD, /* no process of the unit was waited for */
                  PIECE_NOT_OBSERVED, /* armed late, events lost */
                  PIECE_KIND_MAX,
};

/* Time of one kind that one process spent on the critical path. */
struct piece {
        uint64_t duration_ns;
        uint32_t kind; /* enum piece_kind */
        uint32_t syscall;
        uint32_t process; /* index or REC_NONE */
        bool io; /* PIECE_WAIT: the disk */
};

struct critical_path {
        uint64_t origin_ns; /* TQ; all times of a report are relative to it */
        uint64_t end_ns; /* T1 */
        uint64_t queue_ns, before_exec_ns;
        struct piece *pieces; /* owned; their sum is end_ns - origin_ns */
        size_t n_pieces;
};

#define CRITICAL_PATH_NULL                                                                                  \
        (struct critical_path) {                                                                            \
        }

/* Any recording has one, however odd its times are. 0, -ENOMEM (*ret untouched). */
int critical_path_init(const struct recording *r, struct critical_path *ret);
void critical_path_done(struct critical_path *c);

/* The word of the JSON: "cpu-user". */
const char *piece_kind_str(uint32_t kind);

/* When the process ended, or T1 for one that lives on; within the start in any case. */
uint64_t critical_path_process_end(const struct critical_path *c, const struct rec_process *p);

/*
 * Splits `total` in proportion to the weights, exactly: the parts add up to it (to 0 when all weights are 0).
 * No part differs from its exact share by 1 or more.
 */
void spread(uint64_t total, const uint64_t *weights, size_t n, uint64_t *ret_parts);
