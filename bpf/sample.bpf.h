/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Samples: when the clock ticks on a member, its user registers and a copy of its live user stack.
 */

#include "bpf/common.bpf.h"

struct sample_slot {
        struct event_sample event;
        __u8 stack[STACK_COPY_MAX + STACK_PAGE]; /* the last page only gives the verifier room */
};

/* Indexed by CPU: a per-CPU map cannot hold values of this size. The clock does not interrupt itself. */
struct {
        __uint(type, BPF_MAP_TYPE_ARRAY);
        __type(key, __u32);
        __type(value, struct sample_slot);
        __uint(max_entries, 1); /* the probe sets the number of CPUs */
} sample_slots SEC(".maps");

static __always_inline void copy_regs(__u64 regs[static REG_COUNT], const struct saved_regs *saved) {
        regs[DWARF_RAX] = saved->ax;
        regs[DWARF_RDX] = saved->dx;
        regs[DWARF_RCX] = saved->cx;
        regs[DWARF_RBX] = saved->bx;
        regs[DWARF_RSI] = saved->si;
        regs[DWARF_RDI] = saved->di;
        regs[DWARF_RBP] = saved->bp;
        regs[DWARF_RSP] = saved->sp;
        regs[DWARF_R8] = saved->r8;
        regs[DWARF_R9] = saved->r9;
        regs[DWARF_R10] = saved->r10;
        regs[DWARF_R11] = saved->r11;
        regs[DWARF_R12] = saved->r12;
        regs[DWARF_R13] = saved->r13;
        regs[DWARF_R14] = saved->r14;
        regs[DWARF_R15] = saved->r15;
        regs[DWARF_RIP] = saved->ip;
}

/*
 * How many bytes from sp on can belong to the stack. The main thread's ends where the program began: above
 * lie arguments and environment, which are nobody's business. Of other threads, libcs put the thread's
 * descriptor (at fsbase) on top of the stack.
 */
static __always_inline __u32 stack_size(__u64 sp, __u64 stack_top, __u64 fsbase) {
        __u64 end = sp + STACK_COPY_MAX;

        if (stack_top > sp && stack_top < end)
                end = stack_top;
        if (fsbase > sp && fsbase < end)
                end = fsbase;
        return end - sp;
}

/*
 * Copies page by page, since one missing page fails a whole read, into slot->stack and stack_bytes; flags say
 * what ended it. The bytes done so far are kept in memory, not in a register: the verifier follows every
 * value of a register through all turns, but takes memory as it comes.
 */
static __always_inline void copy_stack(struct sample_slot *slot, __u64 sp, __u32 size) {
        struct event_sample *event = &slot->event;

        event->stack_bytes = 0;
        for (int i = 0; i < STACK_COPY_MAX / STACK_PAGE + 1; i++) {
                __u32 done = *(volatile __u32 *) &event->stack_bytes;
                __u32 step = STACK_PAGE - ((sp + done) & (STACK_PAGE - 1));

                if (done >= size || done >= STACK_COPY_MAX)
                        break;
                if (step > size - done)
                        step = size - done;
                asm volatile(
                        ""
                        : "+r"(step)); /* or the next check is left out, which kernels before 6.8 need */
                if (step > STACK_PAGE)
                        break; /* cannot be; for the verifier */
                if (bpf_probe_read_user(slot->stack + done, step, (void *) (sp + done)) < 0) {
                        event->flags |= SAMPLE_STACK_FAULT;
                        return;
                }
                event->stack_bytes = done + step;
        }
        if (size >= STACK_COPY_MAX)
                event->flags |= SAMPLE_STACK_CUT;
}

/* What the thread was doing, from the registers it was interrupted with and those it entered the kernel
 * with. `user` is false when the tick found it in the kernel. */
static __always_inline void describe(struct event_sample *event, const struct saved_regs *saved, bool user,
                                     __u32 table) {
        __u64 cs = saved->cs & USER_CS_MASK;

        event->flags = user ? SAMPLE_USER : 0;
        event->syscall = SYSCALL_NONE;
        if ((cs & USER_RPL) != USER_RPL) {
                event->flags |= SAMPLE_NO_REGS;
                return;
        }
        if (cs == USER32_CS)
                event->flags |= SAMPLE_COMPAT;
        if (!user) {
                event->syscall = call_number(saved->orig_ax, table);
                event->flags |= event->syscall == SYSCALL_NONE ? SAMPLE_ON_FAULT : SAMPLE_SYSCALL;
        }
}

static __always_inline void take_stack(struct sample_slot *slot, struct task_struct *task) {
        struct event_sample *event = &slot->event;
        bool main_thread = event->head.host_tgid == event->head.host_tid;
        __u64 sp = event->regs[DWARF_RSP], top;

        event->stack_bytes = 0;
        if (event->flags & (SAMPLE_NO_REGS | SAMPLE_COMPAT))
                return;
        top = main_thread ? BPF_CORE_READ(task, mm, start_stack) : 0;
        copy_stack(slot, sp, stack_size(sp, top, BPF_CORE_READ(task, thread.fsbase)));
}

/* The collector looks by itself often enough, unless the ring fills. */
static __always_inline __u64 wakeup_for_bulk(void) {
        __u64 waiting = bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA);

        return waiting > bpf_ringbuf_query(&events, BPF_RB_RING_SIZE) / 4 ? BPF_RB_FORCE_WAKEUP
                                                                          : BPF_RB_NO_WAKEUP;
}

static __always_inline long send_sample(struct sample_slot *slot, __u32 bytes) {
        __u64 wakeup = wakeup_for_bulk();

        asm volatile("" : "+r"(bytes));
        if (bytes > STACK_COPY_MAX)
                return -1; /* cannot be; for the verifier */
        return bpf_ringbuf_output(&events, slot, sizeof(slot->event) + bytes, wakeup);
}

static __always_inline int on_tick(const struct saved_regs *interrupted) {
        __u64 begin = bpf_ktime_get_ns(), ids = bpf_get_current_pid_tgid();
        struct member *member = member_of(ids >> 32);
        struct task_struct *task = (void *) bpf_get_current_task();
        bool user = (interrupted->cs & USER_RPL) == USER_RPL;
        struct saved_regs saved = *interrupted;
        struct sample_slot *slot;
        __u32 cpu = bpf_get_smp_processor_id(), session;
        struct session_stat *stat;

        if (!member)
                return 0;
        session = member->session;
        stat = stat_of(session);
        slot = bpf_map_lookup_elem(&sample_slots, &cpu);
        if (!slot)
                return 0;
        if (!user && !read_saved_regs(task, &saved))
                saved.cs = 0;

        fill_head(&slot->event.head, EVENT_SAMPLE, session, begin, task);
        slot->event.cpu = cpu;
        describe(&slot->event, &saved, user, user ? 0 : call_table(task));
        copy_regs(slot->event.regs, &saved);
        bpf_get_current_comm(slot->event.comm, sizeof(slot->event.comm));
        take_stack(slot, task);
        __sync_fetch_and_add(&stat->samples, 1);
        if (send_sample(slot, slot->event.stack_bytes) < 0)
                count_lost(session, LOSS_SAMPLE);
        __sync_fetch_and_add(&stat->self_ns, bpf_ktime_get_ns() - begin);
        return 0;
}
