/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/recording.h"

/*
 * Who belongs to whom in a recording: the tree of processes, and the rows of
 * each process found without a search. Parents come from pids, which a long
 * start uses twice: the parent is the process of that pid that began last
 * before the child. So the tree has no circles, whatever a file says.
 */

struct process_index {
        const struct recording *recording; /* borrowed */
        uint32_t *parents; /* n_processes; REC_NONE: systemd's own child */
        uint32_t *children, *first_child; /* rows of i: [first[i], first[i + 1]); by time of birth */
        uint32_t *samples, *first_sample; /* in the order of the file */
        uint32_t *waits, *first_wait; /* by thread */
        uint32_t *tops; /* systemd's own children, by time of birth */
        size_t n_tops;
        struct cpu_mix *program_mixes; /* n_programs, and one for processes without a program */
};

#define PROCESS_INDEX_NULL                                                                                  \
        (struct process_index) {                                                                            \
        }

/* What CPU samples were doing. */
enum {
        CPU_MIX_MAX = 128, /* distinct calls; any further one counts as the first */
        CPU_MIX_USER = 0xf0000, /* in place of a call: user code */
};

struct cpu_mix {
        size_t n;
        uint64_t weights[CPU_MIX_MAX];
        uint32_t syscalls[CPU_MIX_MAX];
};

#define CPU_MIX_NULL                                                                                        \
        (struct cpu_mix) {                                                                                  \
        }

bool sample_is_cpu(const struct rec_sample *s);
void cpu_mix_add(struct cpu_mix *mix, const struct rec_sample *s);

/* 0, -ENOMEM (*ret untouched). */
int process_index_init(const struct recording *r, struct process_index *ret);
void process_index_done(struct process_index *x); /* twice is fine */

/* Number of rows, and where they are; `process` is an index below n_processes. */
size_t process_index_samples(const struct process_index *x, uint32_t process, const uint32_t **ret);
size_t process_index_waits(const struct process_index *x, uint32_t process, const uint32_t **ret);
size_t process_index_children(const struct process_index *x, uint32_t process, const uint32_t **ret);
/* Without those of ExecReload= and ExecStop=. */
size_t process_index_tops(const struct process_index *x, const uint32_t **ret);
const struct cpu_mix *process_index_program_mix(const struct process_index *x, uint32_t process);

/* The thread that stands for the process: its first one, or, when that has no times, the one with most.
 * False: no thread of it has any. */
bool process_index_main_thread(const struct process_index *x, uint32_t process, uint32_t *ret_tid);
/* The first-born descendant that lives beyond this time; false: there is none. */
bool process_index_survivor(const struct process_index *x, uint32_t process, uint64_t time_ns,
                            uint32_t *ret);
bool process_index_is_shell(const struct process_index *x, uint32_t process);
/* Time between two CPU samples. */
uint64_t process_index_period_ns(const struct process_index *x);
