/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What a thread is doing: its user registers and a copy of its live user stack, made in place in a slot of the
 * CPU and then sent. Only for the thread that is current, whose address space is the one that is mapped.
 */

#include "bpf/common.bpf.h"

struct stack_slot {
        struct event_sample event;
        __u8 stack[STACK_COPY_MAX + STACK_PAGE]; /* the last page only gives the verifier room */
        __u32 copied; /* bytes in `stack` */
        __u32 present; /* of those, up to the end of the last page that was there */
        __u32 holes; /* as in the event */
        __u32 reserved;
};

/*
 * Two for each CPU, since the clock interrupts whoever fills a slot: first those of the clock, then those of
 * waits. An array: a per-CPU map cannot hold values of this size.
 */
struct {
        __uint(type, BPF_MAP_TYPE_ARRAY);
        __type(key, __u32);
        __type(value, struct stack_slot);
        __uint(max_entries, 2); /* the probe sets it to twice the number of CPUs */
} stack_slots SEC(".maps");

const volatile __u32 cpu_count = 1; /* set by the probe */

static __always_inline struct stack_slot *slot_number(__u32 number) {
        return bpf_map_lookup_elem(&stack_slots, &number);
}

static __always_inline __u32 wait_slot_number(void) {
        return cpu_count + bpf_get_smp_processor_id();
}

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
 * How many bytes from sp on can belong to the stack. The main thread's ends where the program began, with the
 * number of its arguments, by which an unwinder knows the place: above lie they and the environment, which are
 * nobody's business. Of other threads, libcs put the thread's descriptor (at fsbase) on top of the stack.
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
 * Copies what lies from `address` on, page by page, since one missing page fails a whole read, behind what the
 * slot has already; flags of the event say what ended it. Pages that nobody has written to yet are not there: a
 * young stack has them in the middle, where a large buffer lies, and at its end while the kernel is handling the
 * fault. They become holes of zeros (which the helper leaves, kernel/trace/bpf_trace.c), unless nothing follows.
 * What is done so far is kept in memory, not in a register: the verifier follows every value of a register
 * through all turns, but takes memory as it comes. A function of its own with plain numbers as arguments, so
 * that the verifier reads it once.
 */
__noinline int copy_range(__u32 number, __u64 address, __u32 size) {
        struct stack_slot *slot = slot_number(number);
        __u32 begin;

        if (!slot)
                return 0;
        begin = slot->copied;
        slot->present = begin;
        slot->holes = 0;
        for (int i = 0; i < STACK_COPY_MAX / STACK_PAGE + 1; i++) {
                __u32 at = *(volatile __u32 *) &slot->copied, done = at - begin;
                __u32 step = STACK_PAGE - ((address + done) & (STACK_PAGE - 1));

                if (done >= size || at >= STACK_COPY_MAX)
                        break;
                if (step > size - done)
                        step = size - done;
                asm volatile(
                        ""
                        : "+r"(step),
                          "+r"(at)); /* or the next checks are left out, which kernels before 6.8 need */
                if (step > STACK_PAGE || at >= STACK_COPY_MAX)
                        break; /* cannot be; for the verifier */
                if (bpf_probe_read_user(slot->stack + at, step, (void *) (address + done)) < 0)
                        *(volatile __u32 *) &slot->holes |= 1U << i;
                else
                        *(volatile __u32 *) &slot->present = at + step;
                slot->copied = at + step;
        }
        if (slot->present < slot->copied)
                slot->event.flags |= SAMPLE_STACK_FAULT;
        else if (slot->copied >= STACK_COPY_MAX)
                slot->event.flags |= SAMPLE_STACK_CUT;
        slot->copied = slot->present;
        if (slot->copied > STACK_COPY_MAX)
                slot->copied = STACK_COPY_MAX; /* the last step may have gone beyond */
        return 0;
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

/* Of a thread of which nothing more than that it is there can be said. */
static __always_inline void describe_nothing(struct event_sample *event) {
        event->flags = SAMPLE_NO_REGS;
        event->stack_bytes = event->second_bytes = 0;
        event->holes = event->second_holes = 0;
        __builtin_memset(event->regs, 0, sizeof(event->regs));
}

/* Where the live stack of a thread that is at sp ends. A handler on the alternate stack has two: the second is
 * what it interrupted. */
static __always_inline __u32 live_bytes(struct task_struct *task, __u64 sp) {
        bool main_thread = BPF_CORE_READ(task, pid) == BPF_CORE_READ(task, tgid);
        __u64 begin = main_thread ? BPF_CORE_READ(task, mm, start_stack) : 0;

        return stack_size(sp, begin > 0 ? begin + sizeof(__u64) : 0, BPF_CORE_READ(task, thread.fsbase));
}

static __always_inline void take_stack(__u32 number, struct stack_slot *slot, struct task_struct *task,
                                       const struct thread_state *t) {
        struct event_sample *event = &slot->event;
        __u64 sp = event->regs[DWARF_RSP];

        slot->copied = 0;
        event->stack_bytes = event->second_bytes = 0;
        event->second_address = 0;
        event->holes = event->second_holes = 0;
        if (event->flags & (SAMPLE_NO_REGS | SAMPLE_COMPAT))
                return;
        if (t && sp >= t->alternate_begin && sp < t->alternate_end) {
                copy_range(number, sp, t->alternate_end - sp);
                event->stack_bytes = slot->copied;
                event->holes = slot->holes;
                event->second_address = t->interrupted_sp;
                copy_range(number, t->interrupted_sp, live_bytes(task, t->interrupted_sp));
                event->second_bytes = slot->copied - event->stack_bytes;
                event->second_holes = slot->holes;
                return;
        }
        copy_range(number, sp, live_bytes(task, sp));
        event->stack_bytes = slot->copied;
        event->holes = slot->holes;
}

/* The collector looks by itself often enough, unless the ring fills. */
static __always_inline __u64 wakeup_for_bulk(void) {
        __u64 waiting = bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA);

        return waiting > bpf_ringbuf_query(&events, BPF_RB_RING_SIZE) / 4 ? BPF_RB_FORCE_WAKEUP
                                                                          : BPF_RB_NO_WAKEUP;
}

static __always_inline long send_slot(struct stack_slot *slot) {
        __u32 bytes = slot->event.stack_bytes + slot->event.second_bytes;
        __u64 wakeup = wakeup_for_bulk();

        asm volatile("" : "+r"(bytes));
        if (bytes > STACK_COPY_MAX)
                return -1; /* cannot be; for the verifier */
        return bpf_ringbuf_output(&events, slot, sizeof(slot->event) + bytes, wakeup);
}
