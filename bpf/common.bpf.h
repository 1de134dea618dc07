/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What all programs use: who is a member, the ring buffer, the counters that the daemon sees live, and pids
 * as the daemon's namespace has them.
 */

#include <linux/bpf.h>
#include <stdbool.h>
#include <stddef.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/kernel.h"
#include "bpf/maps.h"

/* Set by the probe before loading. Tests: pretend that no helper newer than 5.10 exists. */
const volatile __u32 use_fallbacks;

/* Shared memory: the probe writes controls and reads the rest. */
struct probe_facts facts;
struct control controls[SESSION_MAX];
struct session_stat stats[SESSION_MAX];
struct path_counts path_counts[SESSION_MAX][PROGRAM_MAX];
__u64 members_epoch; /* raised with every change of `members` */
__u64 wait_period_ns; /* blocked time that one EVENT_WAIT stands for */

struct {
        __uint(type, BPF_MAP_TYPE_RINGBUF);
        __uint(max_entries, 1 << 20); /* the probe sizes it by CPUs */
} events SEC(".maps");

struct {
        __uint(type, BPF_MAP_TYPE_HASH);
        __type(key, __u32); /* host tgid */
        __type(value, struct member);
        __uint(max_entries, MEMBERS_MAX);
} members SEC(".maps");

/* After a change: what CPUs remember of the last process may not be true any more. */
static __always_inline void members_changed(void) {
        __sync_fetch_and_add(&members_epoch, 1);
}

static __always_inline struct member *member_of(__u32 host_tgid) {
        return bpf_map_lookup_elem(&members, &host_tgid);
}

/* Sessions are always in range; the mask tells the verifier, and the empty statement keeps the compiler from
 * moving it to where the verifier has lost it again. */
static __always_inline __u32 in_range(__u32 session) {
        session &= SESSION_MAX - 1;
        asm volatile("" : "+r"(session));
        return session;
}

static __always_inline struct session_stat *stat_of(__u32 session) {
        return &stats[in_range(session)];
}

static __always_inline struct control *control_of(__u32 session) {
        return &controls[in_range(session)];
}

static __always_inline void count_lost(__u32 session, enum loss_kind kind) {
        __sync_fetch_and_add(&stat_of(session)->lost[kind], 1);
}

struct {
        __uint(type, BPF_MAP_TYPE_ARRAY);
        __uint(map_flags, BPF_F_MMAPABLE);
        __type(key, __u32);
        __type(value, struct cpu_state);
        __uint(max_entries, 1); /* the probe sets the number of CPUs */
} cpu_states SEC(".maps");

static __always_inline struct cpu_state *this_cpu(void) {
        __u32 number = bpf_get_smp_processor_id();

        return bpf_map_lookup_elem(&cpu_states, &number);
}

static __always_inline void *upid_at(struct pid *pid, __u32 level) {
        return (char *) pid + bpf_core_field_offset(struct pid, numbers) + level * sizeof(struct upid);
}

/* The number of `pid` in the daemon's pid namespace; 0 when it is not visible there. (The helper
 * bpf_get_ns_current_pid_tgid() fails for tasks in nested namespaces.) */
static __always_inline __u32 visible_pid(struct pid *pid) {
        struct upid upid = {};

        if (!pid || BPF_CORE_READ(pid, level) < facts.pid_level)
                return 0;
        bpf_probe_read_kernel(&upid, sizeof(upid), upid_at(pid, facts.pid_level));
        return (__u64) upid.ns == facts.pid_namespace ? upid.nr : 0;
}

static __always_inline __u32 visible_tid(struct task_struct *task) {
        return visible_pid(BPF_CORE_READ(task, thread_pid));
}

static __always_inline __u32 visible_tgid(struct task_struct *task) {
        return visible_pid(BPF_CORE_READ(task, group_leader, thread_pid));
}

/* The front of a record about `task`. */
static __always_inline void fill_head(struct event_head *head, enum event_type type, __u32 session,
                                      __u64 now, struct task_struct *task) {
        head->type = type;
        head->session = session;
        head->time_ns = now;
        head->tgid = visible_tgid(task);
        head->tid = visible_tid(task);
        head->host_tgid = BPF_CORE_READ(task, tgid);
        head->host_tid = BPF_CORE_READ(task, pid);
}

static __always_inline bool has_task_regs_helper(void) {
        return !use_fallbacks &&
               bpf_core_enum_value_exists(enum bpf_func_id___late, BPF_FUNC_get_current_task_btf___late) &&
               bpf_core_enum_value_exists(enum bpf_func_id___late, BPF_FUNC_task_pt_regs___late);
}

/* Kernels before 5.15 have no FRED, so nothing lies above the registers. */
static __always_inline bool read_regs_by_stack(struct task_struct *task, struct saved_regs *ret) {
        char *stack = BPF_CORE_READ(task, stack);

        return stack && bpf_probe_read_kernel(ret, sizeof(*ret), stack + THREAD_SIZE - sizeof(*ret)) == 0;
}

/* The registers with which a task entered the kernel. `task` is a pointer that the verifier knows. */
static __always_inline bool read_regs_of(struct task_struct *task, struct saved_regs *ret) {
        if (has_task_regs_helper())
                return bpf_probe_read_kernel(ret, sizeof(*ret), (void *) bpf_task_pt_regs((void *) task)) ==
                       0;
        return read_regs_by_stack(task, ret);
}

/* Only what says where the current task, of which the verifier knows the pointer, entered the kernel. */
static __always_inline bool read_entry_regs(struct task_struct *task, struct entry_regs *ret) {
        const __u32 offset = offsetof(struct saved_regs, orig_ax);
        char *stack;

        if (has_task_regs_helper())
                return bpf_probe_read_kernel(ret, sizeof(*ret),
                                             (char *) bpf_task_pt_regs((void *) task) + offset) == 0;
        stack = task->stack;
        return stack && bpf_probe_read_kernel(ret, sizeof(*ret),
                                              stack + THREAD_SIZE - sizeof(struct saved_regs) + offset) == 0;
}

/* The same of `task`, which is the current one. False: it has none (kernel thread). */
static __always_inline bool read_saved_regs(struct task_struct *task, struct saved_regs *ret) {
        if (has_task_regs_helper())
                return read_regs_of((void *) bpf_get_current_task_btf(), ret);
        return read_regs_by_stack(task, ret);
}

/* Is the current thread in a call of the ia32 table? Only while it is in the kernel for a call. */
static __always_inline __u32 call_table(struct task_struct *task) {
        return BPF_CORE_READ(task, thread_info.status) & TS_COMPAT ? SYSCALL_IA32 : 0;
}

/* The same of the current thread, cheaper where the kernel gives its task with its type. */
static __always_inline __u32 current_call_table(void) {
        struct task_struct *task;

        if (!use_fallbacks &&
            bpf_core_enum_value_exists(enum bpf_func_id___late, BPF_FUNC_get_current_task_btf___late)) {
                task = (struct task_struct *) bpf_get_current_task_btf();
                return task->thread_info.status & TS_COMPAT ? SYSCALL_IA32 : 0;
        }
        return call_table((struct task_struct *) bpf_get_current_task());
}

/* The call that a thread is in, by the orig_ax of its saved registers: the entry code puts −1 there for
 * everything that is no system call (faults, interrupts), and sigreturn does as well. */
static __always_inline __u32 call_number(__u64 orig_ax, __u32 table) {
        return orig_ax < SYSCALL_NR_MAX ? (__u32) orig_ax | table : SYSCALL_NONE;
}
