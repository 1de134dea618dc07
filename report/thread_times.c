/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/thread_times.h"

#include <errno.h>
#include <stdlib.h>

#include "common/hash.h"
#include "common/macro.h"

struct key {
        uint32_t process, tid;
};

void thread_times_done(struct thread_times *t) {
        free(t->threads);
        hash_free(t->index);
        *t = THREAD_TIMES_NULL;
}

static int add(struct thread_times *t, uint32_t process, uint32_t tid, struct thread_time **ret) {
        struct key key = { process, tid };
        uint64_t number;
        int r = hash_intern(t->index, &key, sizeof(key), t->n_threads, &number);

        if (r < 0)
                return r;
        if (r > 0)
                t->threads[t->n_threads++] = (struct thread_time){ .process = process, .tid = tid };
        *ret = t->threads + number;
        return 0;
}

static int add_waits(struct thread_times *t, const struct recording *r) {
        for (uint32_t i = 0; i < r->n_waits; i++) {
                const struct rec_wait *w = r->waits + i;
                struct thread_time *thread;
                int error;

                if (w->process >= r->n_processes)
                        continue;
                error = add(t, w->process, w->tid, &thread);
                if (error < 0)
                        return error;
                if (w->syscall == REC_CALL_ON_CPU) {
                        thread->on_cpu_ns += w->blocked_ns;
                        continue;
                }
                thread->blocked_ns += w->blocked_ns;
                thread->runnable_ns += w->runnable_ns;
        }
        return 0;
}

static int add_samples(struct thread_times *t, const struct recording *r) {
        for (uint32_t i = 0; i < r->n_samples; i++) {
                const struct rec_sample *s = r->samples + i;
                struct thread_time *thread;
                int error;

                if (s->process >= r->n_processes)
                        continue;
                error = add(t, s->process, s->tid, &thread);
                if (error < 0)
                        return error;
                thread->comm = s->comm;
                if (s->kind == REC_SAMPLE_CPU_USER || s->kind == REC_SAMPLE_CPU_KERNEL)
                        thread->cpu_samples++;
                else
                        thread->wait_weight_ns += s->weight_ns;
        }
        return 0;
}

int thread_times_init(const struct recording *r, struct thread_times *ret) {
        _cleanup_(thread_times_done) struct thread_times t = THREAD_TIMES_NULL;
        int error;

        t.threads = calloc((size_t) r->n_waits + r->n_samples + 1, sizeof(*t.threads));
        t.index = hash_new();
        if (!t.threads || !t.index)
                return -ENOMEM;
        error = add_waits(&t, r);
        if (error >= 0)
                error = add_samples(&t, r);
        if (error < 0)
                return error;
        *ret = t;
        t = THREAD_TIMES_NULL;
        return 0;
}

struct thread_time *thread_times_find(const struct thread_times *t, uint32_t process, uint32_t tid) {
        struct key key = { process, tid };
        uint64_t number;

        return hash_get(t->index, &key, sizeof(key), &number) == 0 ? t->threads + number : NULL;
}
