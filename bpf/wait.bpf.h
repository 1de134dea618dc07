/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Where the time of a thread goes: on a CPU, waiting for one, or blocked, and in which call. Only clocks are
 * read here, never user memory: the incoming thread's address space is not mapped yet.
 *
 *      RUNNING ──preempted──▶ RUNNABLE ──▶ RUNNING
 *      RUNNING ──blocks────▶ BLOCKED ──waking──▶ WOKEN ──▶ RUNNING
 *
 * sched_waking is used rather than sched_wakeup: it fires in the context of the waker.
 *
 * A switch is missed now and then, at moments when somebody else attaches to the same tracepoint or leaves it
 * (measured: 4 to 28 ms of a busy thread). That time is taken as on a CPU, so that the sums stay right.
 */

#include "bpf/common.bpf.h"

struct {
        __uint(type, BPF_MAP_TYPE_HASH);
        __type(key, __u32); /* host tid */
        __type(value, struct thread_state);
        __uint(max_entries, THREADS_MAX);
} threads SEC(".maps");

struct {
        __uint(type, BPF_MAP_TYPE_HASH);
        __type(key, struct wait_key);
        __type(value, struct wait_value);
        __uint(max_entries, WAIT_KEYS_MAX);
} waits SEC(".maps");

/* ---- the clock of one thread; no helpers, no maps ---- */

static __always_inline void thread_out(struct thread_state *t, __u64 now, bool blocks, __u32 syscall,
                                       __u32 flags) {
        if (t->phase == THREAD_RUNNING || t->phase == THREAD_RUNNABLE) /* the latter: it came in unseen */
                t->on_cpu_ns += now - t->since_ns;
        t->switches++;
        t->since_ns = now;
        t->phase = blocks ? THREAD_BLOCKED : THREAD_RUNNABLE;
        t->syscall = syscall;
        t->flags = flags;
        t->waker_tgid = t->waker_tid = 0;
}

/* False: it was not blocked. */
static __always_inline bool thread_woken(struct thread_state *t, __u64 now) {
        if (t->phase != THREAD_BLOCKED)
                return false;
        t->blocked_ns = now - t->since_ns;
        t->since_ns = now;
        t->phase = THREAD_WOKEN;
        return true;
}

/* It runs again. True: a wait ended, *ret says how long it was blocked and then runnable. */
static __always_inline bool thread_in(struct thread_state *t, __u64 now, struct wait_value *ret) {
        enum thread_phase phase = t->phase;
        __u64 passed = now - t->since_ns;

        t->phase = THREAD_RUNNING;
        t->since_ns = now;
        if (phase == THREAD_RUNNABLE)
                t->preempted_ns += passed;
        if (phase == THREAD_RUNNING) /* it left unseen */
                t->on_cpu_ns += passed;
        if (phase != THREAD_BLOCKED && phase != THREAD_WOKEN)
                return false;

        /* BLOCKED: the wakeup came while it was still switching out, or was missed. */
        ret->blocked_ns = phase == THREAD_WOKEN ? t->blocked_ns : passed;
        ret->runnable_ns = phase == THREAD_WOKEN ? passed : 0;
        ret->io_ns = t->flags & WAIT_IO ? ret->blocked_ns : 0;
        ret->longest_ns = ret->blocked_ns;
        ret->count = 1;
        return true;
}

/* Every so much blocked time one record is sent, however it was made up. The weight of the record, or 0. */
static __always_inline __u64 wait_weight(struct thread_state *t, __u64 blocked_ns, __u64 period_ns) {
        __u64 weight;

        t->unpaid_ns += blocked_ns;
        if (period_ns == 0 || t->unpaid_ns < period_ns)
                return 0;
        weight = t->unpaid_ns;
        t->unpaid_ns = 0;
        return weight;
}

static __always_inline void wait_sum(struct wait_value *sum, const struct wait_value *more) {
        sum->blocked_ns += more->blocked_ns;
        sum->io_ns += more->io_ns;
        sum->runnable_ns += more->runnable_ns;
        sum->count += more->count;
        if (more->longest_ns > sum->longest_ns)
                sum->longest_ns = more->longest_ns;
}

/* ---- the programs ---- */

static __always_inline void add_wait(const struct thread_state *t, __u32 syscall,
                                     const struct wait_value *more) {
        struct wait_key key = {
                .session = t->session,
                .tgid = t->tgid,
                .tid = t->tid,
                .syscall = syscall,
        };
        struct wait_value *sum = bpf_map_lookup_elem(&waits, &key);

        if (sum) { /* only the thread itself adds here, so nothing is atomic */
                wait_sum(sum, more);
                return;
        }
        if (bpf_map_update_elem(&waits, &key, more, BPF_NOEXIST) == 0)
                return;

        /* Full: sums stay right in the row that the probe made for this. */
        count_lost(t->session, LOSS_WAIT_KEYS);
        key.tgid = key.tid = 0;
        key.syscall = SYSCALL_NONE;
        sum = bpf_map_lookup_elem(&waits, &key);
        if (sum && syscall != SYSCALL_ON_CPU) {
                __sync_fetch_and_add(&sum->blocked_ns, more->blocked_ns);
                __sync_fetch_and_add(&sum->io_ns, more->io_ns);
                __sync_fetch_and_add(&sum->runnable_ns, more->runnable_ns);
                __sync_fetch_and_add(&sum->count, more->count);
        }
}

static __always_inline void tell_wait(const struct thread_state *t, struct task_struct *task, __u64 now,
                                      const struct wait_value *wait, __u64 weight) {
        struct event_wait *event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);

        if (!event) {
                count_lost(t->session, LOSS_WAIT);
                return;
        }
        event->head.type = EVENT_WAIT;
        event->head.session = t->session;
        event->head.time_ns = now;
        event->head.tgid = t->tgid;
        event->head.tid = t->tid;
        event->head.host_tgid = BPF_CORE_READ(task, tgid);
        event->head.host_tid = BPF_CORE_READ(task, pid);
        event->blocked_ns = wait->blocked_ns;
        event->runnable_ns = wait->runnable_ns;
        event->weight_ns = weight;
        event->syscall = t->syscall;
        event->flags = t->flags;
        event->waker_tgid = t->waker_tgid;
        event->waker_tid = t->waker_tid;
        __builtin_memcpy(event->waker_comm, t->waker_comm, sizeof(event->waker_comm));
        bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
}

static __always_inline bool is_blocking(struct task_struct *task) {
        if (bpf_core_field_exists(struct task_struct___new, __state))
                return BPF_CORE_READ((struct task_struct___new *) task, __state) != 0;
        return BPF_CORE_READ((struct task_struct___old *) task, state) != 0;
}

/* The call that the thread which is still current is about to wait in. */
static __always_inline __u32 waiting_in(struct task_struct *task) {
        struct saved_regs saved;
        __u32 syscall;

        if (task->flags & PF_EXITING || !read_saved_regs(task, &saved))
                return SYSCALL_NONE;
        syscall = call_number(saved.orig_ax, call_table(task));
        /* A thread of user space that is in the kernel without a call and blocks does so for a page. */
        return syscall == SYSCALL_NONE && (__s64) saved.orig_ax == -1 ? SYSCALL_FAULT : syscall;
}

/* State of a thread not seen before; since when it has been in `phase` is for the caller to say. */
static __always_inline struct thread_state *new_thread(struct task_struct *task, const struct member *member,
                                                       enum thread_phase phase, __u64 since_ns) {
        __u32 host_tid = task->pid;
        struct thread_state state = {
                .session = member->session,
                .tgid = member->tgid,
                .tid = visible_tid(task),
                .phase = phase,
                .since_ns = since_ns,
        };

        if (bpf_map_update_elem(&threads, &host_tid, &state, BPF_ANY) < 0) {
                count_lost(member->session, LOSS_WAIT_KEYS);
                return NULL;
        }
        return bpf_map_lookup_elem(&threads, &host_tid);
}

static __always_inline void switch_out(struct task_struct *task, const struct member *member, bool preempted,
                                       __u64 now) {
        __u32 host_tid = task->pid, syscall, flags = 0;
        struct thread_state *t = bpf_map_lookup_elem(&threads, &host_tid);
        struct session_stat *stat = stat_of(member->session);
        bool blocks = !preempted && is_blocking(task), known = t;

        if (!t) {
                if (task->flags & PF_EXITING)
                        return; /* its books are closed */
                t = new_thread(task, member, THREAD_RUNNING, member->joined_ns);
                if (!t)
                        return;
        }

        syscall = blocks ? waiting_in(task) : SYSCALL_NONE;
        if (syscall == SYSCALL_FAULT)
                flags |= WAIT_FAULT;
        if (blocks && BPF_CORE_READ_BITFIELD(task, in_iowait))
                flags |= WAIT_IO;
        if (known && t->phase == THREAD_RUNNING)
                __sync_fetch_and_add(&stat->on_cpu, -1);
        if (t->phase == THREAD_BLOCKED && t->flags & WAIT_IO)
                __sync_fetch_and_add(&stat->in_io, -1);
        thread_out(t, now, blocks, syscall, flags);
        if (flags & WAIT_IO)
                __sync_fetch_and_add(&stat->in_io, 1);
        stat->last_on_cpu_ns = now;
}

static __always_inline void switch_in(struct task_struct *task, const struct member *member, __u64 now) {
        __u32 host_tid = task->pid;
        struct thread_state *t = bpf_map_lookup_elem(&threads, &host_tid);
        struct session_stat *stat = stat_of(member->session);
        struct wait_value wait = {};
        bool in_io;
        __u64 weight;

        if (!t) {
                if (task->flags & PF_EXITING)
                        return;
                t = new_thread(task, member, THREAD_RUNNING, now);
                if (t)
                        __sync_fetch_and_add(&stat->on_cpu, 1);
                return;
        }

        in_io = t->phase == THREAD_BLOCKED && t->flags & WAIT_IO;
        if (t->phase != THREAD_RUNNING)
                __sync_fetch_and_add(&stat->on_cpu, 1);
        if (in_io)
                __sync_fetch_and_add(&stat->in_io, -1);
        if (!thread_in(t, now, &wait))
                return;
        add_wait(t, t->syscall, &wait);
        weight = wait_weight(t, wait.blocked_ns, wait_period_ns);
        if (weight > 0)
                tell_wait(t, task, now, &wait, weight);
}

static __always_inline int on_switch(bool preempted, struct task_struct *prev, struct task_struct *next) {
        struct member *out = prev->flags & PF_KTHREAD ? NULL : member_of(prev->tgid);
        struct member *in = next->flags & PF_KTHREAD ? NULL : member_of(next->tgid);
        __u64 now = 0;

        if (out) {
                now = bpf_ktime_get_ns();
                switch_out(prev, out, preempted, now);
        }
        if (in)
                switch_in(next, in, now ? now : bpf_ktime_get_ns());
        return 0;
}

static __always_inline int on_waking(struct task_struct *task) {
        struct member *member = task->flags & PF_KTHREAD ? NULL : member_of(task->tgid);
        struct task_struct *waker = (void *) bpf_get_current_task();
        __u32 host_tid = task->pid;
        struct session_stat *stat;
        struct thread_state *t;

        if (!member)
                return 0;
        stat = stat_of(member->session);
        t = bpf_map_lookup_elem(&threads, &host_tid);
        if (!t || !thread_woken(t, bpf_ktime_get_ns()))
                return 0;
        if (t->flags & WAIT_IO)
                __sync_fetch_and_add(&stat->in_io, -1);
        if ((__u32) bpf_get_current_pid_tgid() == 0)
                return 0; /* the idle thread: an interrupt did it */
        t->waker_tgid = visible_tgid(waker);
        t->waker_tid = visible_tid(waker);
        bpf_get_current_comm(t->waker_comm, sizeof(t->waker_comm));
        return 0;
}

static __always_inline int on_wakeup_new(struct task_struct *task) {
        struct member *member = member_of(task->tgid);

        if (member)
                new_thread(task, member, THREAD_RUNNABLE, bpf_ktime_get_ns());
        return 0;
}

/* Closes the books of a thread. What it does after this (letting go of its memory) is not counted. */
static __always_inline void end_thread(struct task_struct *task, const struct member *member) {
        __u32 host_tid = task->pid;
        struct thread_state *t = bpf_map_lookup_elem(&threads, &host_tid);
        struct session_stat *stat = stat_of(member->session);
        struct wait_value on_cpu = {}, preempted = {};

        if (!t)
                return;
        on_cpu.blocked_ns = t->on_cpu_ns;
        if (t->phase == THREAD_RUNNING)
                on_cpu.blocked_ns += bpf_ktime_get_ns() - t->since_ns;
        on_cpu.count = t->switches + 1;
        preempted.runnable_ns = t->preempted_ns;
        add_wait(t, SYSCALL_ON_CPU, &on_cpu);
        if (preempted.runnable_ns > 0)
                add_wait(t, SYSCALL_NONE, &preempted);
        if (t->phase == THREAD_RUNNING)
                __sync_fetch_and_add(&stat->on_cpu, -1);
        stat->last_on_cpu_ns = bpf_ktime_get_ns();
        bpf_map_delete_elem(&threads, &host_tid);
}

/* An exec by a thread that is no leader took over the leader's pid: its own is gone. */
static __always_inline void rename_thread(__u32 old_host_tid, struct task_struct *task) {
        if (old_host_tid != (__u32) task->pid)
                bpf_map_delete_elem(&threads, &old_host_tid);
}
