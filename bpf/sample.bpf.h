/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Samples: when the clock ticks on a member, what it is doing.
 */

#include "bpf/stack.bpf.h"
#include "bpf/wait.bpf.h"

static __always_inline void take_kernel_stack(void *context, struct event_sample *event) {
        long bytes = bpf_get_stack(context, event->kernel, sizeof(event->kernel), 0);

        event->kernel_frames = bytes > 0 ? (__u32) bytes / sizeof(event->kernel[0]) : 0;
}

/* `interrupted` is the context of a perf event, which begins with the interrupted registers. */
static __always_inline int on_tick(struct saved_regs *interrupted) {
        __u64 begin = bpf_ktime_get_ns(), ids = bpf_get_current_pid_tgid();
        struct member *member = member_of(ids >> 32);
        struct task_struct *task = (void *) bpf_get_current_task();
        bool user = (interrupted->cs & USER_RPL) == USER_RPL;
        struct saved_regs saved = *interrupted;
        struct stack_slot *slot;
        __u32 cpu = bpf_get_smp_processor_id(), session;
        struct session_stat *stat;

        if (!member)
                return 0;
        session = member->session;
        stat = stat_of(session);
        slot = slot_number(cpu);
        if (!slot)
                return 0;
        if (!user && !read_saved_regs(task, &saved))
                saved.cs = 0;

        fill_head(&slot->event.head, EVENT_SAMPLE, session, begin, task);
        slot->event.cpu = cpu;
        describe(&slot->event, &saved, user, user ? 0 : call_table(task));
        copy_regs(slot->event.regs, &saved);
        bpf_get_current_comm(slot->event.comm, sizeof(slot->event.comm));
        slot->event.kernel_frames = 0;
        if (!user)
                take_kernel_stack(interrupted, &slot->event);
        take_stack(cpu, slot, task, thread_of(ids));
        __sync_fetch_and_add(&stat->samples, 1);
        if (send_slot(slot) < 0)
                count_lost(session, LOSS_SAMPLE);
        __sync_fetch_and_add(&stat->self_ns, bpf_ktime_get_ns() - begin);
        return 0;
}
