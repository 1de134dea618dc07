/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * The programs and what they are attached to; daemon/probe.c loads them. Attached only while a unit is
 * armed. Tracepoints by their BTF signature or raw, never by their text format (6.16 changed some of those),
 * and neither kprobes nor fentry, which some kernels lack.
 */

#include "bpf/sample.bpf.h"
#include "bpf/syscall.bpf.h"
#include "bpf/target.bpf.h"
#include "bpf/wait.bpf.h"

#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "GPL";

/* Raw, since before 5.17 (bb6728d75611) a program with BTF may not load a `const char *` argument. */
SEC("raw_tp/cgroup_mkdir")
int cgroup_mkdir(struct bpf_raw_tracepoint_args *context) {
        return on_cgroup_mkdir((void *) context->args[0], (void *) context->args[1]);
}

SEC("raw_tp/cgroup_attach_task")
int cgroup_attach_task(struct bpf_raw_tracepoint_args *context) {
        return on_cgroup_attach((void *) context->args[0], (void *) context->args[2]);
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(sched_process_fork, struct task_struct *parent, struct task_struct *child) {
        return on_fork(parent, child);
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(sched_process_exec, struct task_struct *task, int old_host_tid, struct linux_binprm *bprm) {
        rename_thread(old_host_tid, task);
        return on_exec(task, bprm);
}

/* Every thread of the machine passes here. */
SEC("tp_btf/sched_process_exit")
int BPF_PROG(sched_process_exit, struct task_struct *task) {
        struct member *member = member_of(task->tgid);

        if (!member)
                return 0;
        end_thread(task, member);
        on_exit(task, member);
        return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(sched_switch, bool preempt, struct task_struct *prev, struct task_struct *next) {
        return on_switch(preempt, prev, next);
}

SEC("tp_btf/sched_waking")
int BPF_PROG(sched_waking, struct task_struct *task) {
        return on_waking(task);
}

SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(sched_wakeup_new, struct task_struct *task) {
        return on_wakeup_new(task);
}

SEC("tp_btf/sys_exit")
int BPF_PROG(sys_exit, struct pt_regs *regs, long result) {
        return on_syscall_exit(regs, result);
}

SEC("tp_btf/signal_deliver")
int BPF_PROG(signal_deliver, int signal, void *info, struct k_sigaction *action) {
        return on_signal(action);
}

SEC("perf_event")
int major_fault(void *context) {
        return on_major_fault();
}

SEC("iter/task")
int blocked_threads(struct bpf_iter__task *context) {
        return on_iterated(context);
}

/* The context of a perf event begins with the interrupted registers, to be read in pieces of 8 bytes. */
SEC("perf_event")
int tick(struct saved_regs *interrupted) {
        return on_tick(interrupted);
}

/* Run by the probe on each CPU when a session has ended, with the session as its argument: moves the counters
 * that the CPU has at hand into the map. */
SEC("raw_tp/sys_enter")
int flush_calls(struct bpf_raw_tracepoint_args *context) {
        return flush_session(context->args[0]);
}

/* Run once by BPF_PROG_TEST_RUN, which raw tracepoint programs have from 5.10 on (1b4d60ec162f), so in the
 * daemon: which pid namespace is it in, and what does this kernel have? */
SEC("raw_tp/sys_enter")
int find_facts(void *context) {
        struct task_struct *task = (void *) bpf_get_current_task();
        struct pid *pid = BPF_CORE_READ(task, thread_pid);
        struct upid upid = {};
        __u32 level = BPF_CORE_READ(pid, level);

        bpf_probe_read_kernel(&upid, sizeof(upid), upid_at(pid, level));
        facts.pid_namespace = (__u64) upid.ns;
        facts.pid_level = level;
        facts.task_regs_helper = has_task_regs_helper();
        facts.ran = 1;
        return 0;
}

/* Run by the probe before anything is attached, to write the whole ring once: the first record in fresh pages
 * costs 15 times one in warm ones. The records are EVENT_NULL, which nobody reads. */
SEC("raw_tp/sys_enter")
int warm_ring(void *context) {
        struct stack_slot *slot = slot_number(0);

        if (slot)
                bpf_ringbuf_output(&events, slot, STACK_COPY_MAX, BPF_RB_NO_WAKEUP);
        return 0;
}
