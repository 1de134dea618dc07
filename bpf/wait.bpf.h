/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Where the time of a thread goes: on a CPU, waiting for one, or blocked, and in which call.
 *
 *      RUNNING ──preempted──▶ RUNNABLE ──▶ RUNNING
 *      RUNNING ──blocks────▶ BLOCKED ──waking──▶ WOKEN ──▶ RUNNING
 *
 * sched_waking is used rather than sched_wakeup: it fires in the context of the waker.
 *
 * A switch is missed now and then, at moments when somebody else attaches to the same tracepoint or leaves it
 * (measured: 4 to 28 ms of a busy thread). That time is taken as on a CPU, so that the sums stay right.
 *
 * A wait is told with the user stack that waited. When the thread comes in its address space is not mapped yet,
 * so all but registers and stack is put into the slot of the CPU, and it is pending until the thread, which
 * stays on this CPU meanwhile, leaves the call or the fault that it waited in. Where that is not seen it is the
 * next time that it leaves the CPU, for another wait in the same call; else there is no stack.
 */

#include "bpf/stack.bpf.h"

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
        t->kernel_frames = 0;
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

/* ---- waits that are told ---- */

static __always_inline struct thread_state *thread_of(__u32 host_tid) {
        return bpf_map_lookup_elem(&threads, &host_tid);
}

/* A wait of the thread that comes in on this CPU is to be told. */
static __always_inline void begin_telling(const struct thread_state *t, struct task_struct *task, __u64 now,
                                          const struct wait_value *wait, __u64 weight) {
        struct stack_slot *slot = slot_number(wait_slot_number());
        struct cpu_state *cpu = this_cpu();
        struct event_sample *event;

        if (!slot || !cpu)
                return;
        event = &slot->event;
        event->head.type = EVENT_WAIT;
        event->head.session = t->session;
        event->head.time_ns = now;
        event->head.tgid = t->tgid;
        event->head.tid = t->tid;
        event->head.host_tgid = BPF_CORE_READ(task, tgid);
        event->head.host_tid = BPF_CORE_READ(task, pid);
        event->cpu = bpf_get_smp_processor_id();
        event->syscall = t->syscall;
        bpf_probe_read_kernel(event->comm, sizeof(event->comm), &task->comm);
        event->wait.blocked_ns = wait->blocked_ns;
        event->wait.runnable_ns = wait->runnable_ns;
        event->wait.weight_ns = weight;
        event->wait.flags = t->flags;
        event->wait.waker_tgid = t->waker_tgid;
        event->wait.waker_tid = t->waker_tid;
        __builtin_memcpy(event->wait.waker_comm, t->waker_comm, sizeof(event->wait.waker_comm));
        event->kernel_frames = t->kernel_frames;
        __builtin_memcpy(event->kernel, t->kernel, sizeof(event->kernel));
        cpu->pending_ip = t->ip;
        cpu->pending_tid = event->head.host_tid;
}

/* Is the thread with these registers still, or again, where it waited? */
static __always_inline bool is_where_it_waited(const struct event_sample *event,
                                               const struct saved_regs *saved, __u64 ip, __u32 table) {
        if (event->syscall == SYSCALL_FAULT)
                return (__s64) saved->orig_ax == -1 && saved->ip == ip;
        return event->syscall != SYSCALL_NONE && call_number(saved->orig_ax, table) == event->syscall;
}

enum { FINISH_WITH_STACK, FINISH_WITHOUT_STACK, FINISH_EXEC };

/* Tells the wait that is pending on this CPU; the thread is current. A function of its own without pointers, so
 * that the verifier reads it once. */
__noinline int finish_telling(__u32 how) {
        struct task_struct *task = (void *) bpf_get_current_task();
        __u32 number = wait_slot_number(), table = call_table(task);
        struct stack_slot *slot = slot_number(number);
        struct cpu_state *cpu = this_cpu();
        struct saved_regs saved = {};
        struct event_sample *event;
        bool known;

        if (!slot || !cpu)
                return 0;
        cpu->pending_tid = 0;
        event = &slot->event;
        known = how == FINISH_WITH_STACK && read_saved_regs(task, &saved) &&
                is_where_it_waited(event, &saved, cpu->pending_ip, table);
        if (how == FINISH_EXEC)
                event->wait.flags |= WAIT_EXEC;
        if (known) {
                __u32 syscall = event->syscall;

                describe(event, &saved, false, table);
                event->syscall = syscall;
                copy_regs(event->regs, &saved);
                take_stack(number, slot, task, thread_of(event->head.host_tid));
        } else
                describe_nothing(event);
        __sync_fetch_and_add(&stat_of(event->head.session)->waits, 1);
        if (send_slot(slot) < 0)
                count_lost(event->head.session, LOSS_WAIT);
        return 0;
}

static __always_inline bool is_pending(__u32 host_tid) {
        struct cpu_state *cpu = this_cpu();

        return cpu && cpu->pending_tid != 0 && cpu->pending_tid == host_tid;
}

/* ---- the programs ---- */

/* Of a pointer that the verifier knows: a plain load is ten times cheaper than a read by helper. */
static __always_inline bool is_blocking(struct task_struct *task) {
        if (bpf_core_field_exists(struct task_struct___new, __state))
                return ((struct task_struct___new *) task)->__state != 0;
        return ((struct task_struct___old *) task)->state != 0;
}

/* The call that the thread which is still current is about to wait in, and where it made it. */
static __always_inline __u32 waiting_in(struct task_struct *task, __u64 *ip) {
        struct entry_regs entry;
        __u32 syscall, table;

        if (task->flags & PF_EXITING || !read_entry_regs(task, &entry))
                return SYSCALL_NONE;
        *ip = entry.ip;
        table = task->thread_info.status & TS_COMPAT ? SYSCALL_IA32 : 0;
        syscall = call_number(entry.orig_ax, table);
        /* A thread of user space that is in the kernel without a call and blocks does so for a page. */
        return syscall == SYSCALL_NONE && (__s64) entry.orig_ax == -1 ? SYSCALL_FAULT : syscall;
}

/* What a thread begins as. Made on the stack, it would not fit into the 512 bytes that a program and what it
 * calls share. */
static const volatile struct thread_state thread_null;

/* State of a thread not seen before; since when it has been in `phase` is for the caller to say. */
static __always_inline struct thread_state *new_thread(struct task_struct *task, const struct member *member,
                                                       enum thread_phase phase, __u64 since_ns) {
        __u32 host_tid = BPF_CORE_READ(task, pid);
        struct thread_state *t;

        if (bpf_map_update_elem(&threads, &host_tid, (const void *) &thread_null, BPF_ANY) < 0) {
                count_lost(member->session, LOSS_WAIT_KEYS);
                return NULL;
        }
        t = thread_of(host_tid);
        if (!t)
                return NULL;
        t->session = member->session;
        t->tgid = member->tgid;
        t->tid = visible_tid(task);
        t->phase = phase;
        t->since_ns = since_ns;
        return t;
}

/* The wait of a thread ended. */
static __always_inline void end_wait(struct thread_state *t, struct task_struct *task, __u64 now,
                                     const struct wait_value *wait) {
        __u64 weight = wait_weight(t, wait->blocked_ns, wait_period_ns);

        add_wait(t, t->syscall, wait);
        if (weight > 0)
                begin_telling(t, task, now, wait, weight);
}

static __always_inline void switch_out(struct task_struct *task, const struct member *member, bool preempted,
                                       __u64 now) {
        __u32 syscall, flags = 0;
        struct thread_state *t = thread_of(task->pid);
        struct session_stat *stat = stat_of(member->session);
        bool blocks = !preempted && is_blocking(task), known = t;
        struct wait_value wait = {};
        __u64 ip = 0;

        if (!t) {
                if (task->flags & PF_EXITING)
                        return; /* its books are closed */
                t = new_thread(task, member, THREAD_RUNNING, member->joined_ns);
                if (!t)
                        return;
        }

        syscall = blocks ? waiting_in(task, &ip) : SYSCALL_NONE;
        if (syscall == SYSCALL_FAULT)
                flags |= WAIT_FAULT;
        if (blocks && BPF_CORE_READ_BITFIELD(task, in_iowait))
                flags |= WAIT_IO;
        if (known && t->phase == THREAD_RUNNING)
                __sync_fetch_and_add(&stat->on_cpu, -1);
        if (t->phase == THREAD_BLOCKED && t->flags & WAIT_IO)
                __sync_fetch_and_add(&stat->in_io, -1);
        /* It came in unseen: runnable and on the CPU since it was woken. */
        if (t->phase == THREAD_WOKEN && thread_in(t, t->since_ns, &wait))
                end_wait(t, task, now, &wait);
        if (is_pending(task->pid))
                finish_telling(FINISH_WITH_STACK);
        thread_out(t, now, blocks, syscall, flags);
        t->ip = ip;
        if (flags & WAIT_IO)
                __sync_fetch_and_add(&stat->in_io, 1);
        stat->last_on_cpu_ns = now;
}

static __always_inline void switch_in(struct task_struct *task, const struct member *member, __u64 now) {
        struct thread_state *t = thread_of(task->pid);
        struct session_stat *stat = stat_of(member->session);
        struct wait_value wait = {};
        bool in_io;

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
        if (thread_in(t, now, &wait))
                end_wait(t, task, now, &wait);
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

/* Where in the kernel it sleeps. The task is the one that the tracepoint gave. */
static __always_inline void take_sleeping_stack(struct thread_state *t, struct task_struct *task) {
        long bytes;

        if (use_fallbacks ||
            !bpf_core_enum_value_exists(enum bpf_func_id___late, BPF_FUNC_get_task_stack___late))
                return;
        bytes = bpf_get_task_stack(task, t->kernel, sizeof(t->kernel), 0);
        t->kernel_frames = bytes > 0 ? (__u32) bytes / sizeof(t->kernel[0]) : 0;
}

static __always_inline void note_waker(struct thread_state *t) {
        struct task_struct *waker = (void *) bpf_get_current_task();

        if ((__u32) bpf_get_current_pid_tgid() == 0)
                return; /* the idle thread: an interrupt did it */
        t->waker_tgid = visible_tgid(waker);
        t->waker_tid = visible_tid(waker);
        bpf_get_current_comm(t->waker_comm, sizeof(t->waker_comm));
}

static __always_inline int on_waking(struct task_struct *task) {
        struct member *member = task->flags & PF_KTHREAD ? NULL : member_of(task->tgid);
        __u32 host_tid = task->pid;
        struct thread_state *t;

        if (!member)
                return 0;
        t = bpf_map_lookup_elem(&threads, &host_tid);
        if (!t || !thread_woken(t, bpf_ktime_get_ns()))
                return 0;
        if (t->flags & WAIT_IO)
                __sync_fetch_and_add(&stat_of(member->session)->in_io, -1);
        /* What only a wait that is told needs. */
        if (wait_period_ns != 0 && t->unpaid_ns + t->blocked_ns >= wait_period_ns) {
                take_sleeping_stack(t, task);
                note_waker(t);
        }
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
        struct thread_state *t = thread_of(host_tid);
        struct session_stat *stat = stat_of(member->session);
        struct wait_value on_cpu = {}, preempted = {};

        if (is_pending(task->pid))
                finish_telling(FINISH_WITHOUT_STACK);
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

/* The exec is through. One by a thread that is no leader took over the leader's pid: its own is gone. */
static __always_inline void rename_thread(__u32 old_host_tid, struct task_struct *task) {
        if (is_pending(old_host_tid))
                finish_telling(FINISH_EXEC);
        if (old_host_tid != (__u32) task->pid)
                bpf_map_delete_elem(&threads, &old_host_tid);
}

/* A signal is about to end the thread, or to be handled; a wait outside all calls ends here when it kills. */
static __always_inline int on_signal(const struct k_sigaction *action) {
        struct task_struct *task = (void *) bpf_get_current_task();
        struct member *member = member_of(bpf_get_current_pid_tgid() >> 32);
        struct thread_state *t;
        struct saved_regs saved;
        __u64 begin, size;

        if (!member)
                return 0;
        if (is_pending(bpf_get_current_pid_tgid()))
                finish_telling(FINISH_WITH_STACK);
        if (!(BPF_CORE_READ(action, sa.sa_flags) & SA_ONSTACK))
                return 0;
        t = thread_of(bpf_get_current_pid_tgid());
        if (!t) { /* it has not left the CPU since it joined */
                t = new_thread(task, member, THREAD_RUNNING, member->joined_ns);
                if (t)
                        __sync_fetch_and_add(&stat_of(member->session)->on_cpu, 1);
        }
        begin = BPF_CORE_READ(task, sas_ss_sp);
        size = BPF_CORE_READ(task, sas_ss_size);
        if (!t || size == 0 || size > ALTERNATE_STACK_MAX || !read_saved_regs(task, &saved))
                return 0;
        if (saved.sp >= begin && saved.sp < begin + size)
                return 0; /* already on it: what that interrupted is known */
        t->alternate_begin = begin;
        t->alternate_end = begin + size;
        t->interrupted_sp = saved.sp;
        return 0;
}

/* A page had to be read from a disk; the thread is still in the fault. */
static __always_inline int on_major_fault(void) {
        if (is_pending(bpf_get_current_pid_tgid()))
                finish_telling(FINISH_WITH_STACK);
        return 0;
}

/* ---- at the end: threads that are still blocked ---- */

/* The task is not current, and may run on meanwhile: `switches` tells the reader. */
static __always_inline bool describe_blocked(struct task_struct *task, const struct thread_state *t,
                                             struct blocked_thread *ret) {
        struct saved_regs saved;
        __u32 table = call_table(task);

        ret->switches = BPF_CORE_READ(task, nvcsw) + BPF_CORE_READ(task, nivcsw);
        if (t->phase != THREAD_BLOCKED || !is_blocking(task) || !read_regs_of(task, &saved))
                return false;
        ret->session = t->session;
        ret->tgid = t->tgid;
        ret->tid = t->tid;
        ret->syscall = t->syscall;
        ret->flags = t->flags;
        ret->since_ns = t->since_ns;
        ret->unpaid_ns = t->unpaid_ns;
        ret->sample_flags = (saved.cs & USER_CS_MASK) == USER32_CS ? SAMPLE_COMPAT : 0;
        if (call_number(saved.orig_ax, table) != SYSCALL_NONE)
                ret->sample_flags |= SAMPLE_SYSCALL;
        ret->stack_end = saved.sp + live_bytes(task, saved.sp);
        copy_regs(ret->regs, &saved);
        bpf_probe_read_kernel(ret->comm, sizeof(ret->comm), &task->comm);
        return true;
}

static __always_inline int on_iterated(struct bpf_iter__task *context) {
        struct task_struct *task = context->task;
        struct blocked_thread thread = {};
        struct thread_state *t;

        t = task ? thread_of(task->pid) : NULL;
        if (t && describe_blocked(task, t, &thread))
                bpf_seq_write(context->meta->seq, &thread, sizeof(thread));
        return 0;
}
