/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "proto/recording.h"

/*
 * Exact times of each thread, and what its samples say of them. A thread's on_cpu_ns + blocked_ns +
 * runnable_ns are its life; samples stand for a part of it.
 */
struct thread_time {
        uint32_t process; /* index */
        uint32_t tid;
        uint32_t comm; /* text, 0: unknown */
        uint32_t cpu_samples;
        uint64_t on_cpu_ns, blocked_ns, runnable_ns;
        uint64_t wait_weight_ns; /* blocked time that samples of waits stand for */
};

struct thread_times {
        struct thread_time *threads; /* owned */
        size_t n_threads;
        struct hash *index; /* owned */
};

#define THREAD_TIMES_NULL                                                                                   \
        (struct thread_times) {                                                                             \
        }

int thread_times_init(const struct recording *r, struct thread_times *ret); /* -ENOMEM */
void thread_times_done(struct thread_times *t);
/* NULL: a thread of no known process. */
struct thread_time *thread_times_find(const struct thread_times *t, uint32_t process, uint32_t tid);
