/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "bpf/wait.bpf.h"
#include "tests/bpf_native/host.h"

enum { MSEC = 1000000 };

/* A process of one thread that is visible in the daemon's namespace under its own number. */
struct fake {
        struct task_struct task;
        struct pid pid;
        struct mm_struct mm;
        struct signal_struct signal;
        _Alignas(8) uint8_t stack[THREAD_SIZE];
};

static void make(struct fake *f, int number) {
        memset(f, 0, sizeof(*f));
        f->pid.numbers[0].nr = number;
        f->task.pid = f->task.tgid = number;
        f->task.thread_pid = &f->pid;
        f->task.group_leader = f->task.real_parent = &f->task;
        f->task.signal = &f->signal;
        f->task.stack = f->stack;
        f->task.mm = &f->mm;
}

static struct saved_regs *regs_of(struct fake *f) {
        return (struct saved_regs *) (f->stack + THREAD_SIZE - sizeof(struct saved_regs));
}

/* The state is the first member of its flavour and so lies over thread_info.status: bit 1 would be TS_COMPAT. */
static void set_state(struct fake *f, unsigned state) {
        ((struct task_struct___new *) &f->task)->__state = state;
}

static void enlist(struct fake *f, uint16_t session) {
        struct member member = { .tgid = (uint32_t) f->task.tgid,
                                 .session = session,
                                 .joined_ns = host.now_ns };
        uint32_t key = (uint32_t) f->task.tgid;

        assert_int_equal(bpf_map_update_elem(&members, &key, &member, BPF_ANY), 0);
}

static struct wait_value *sum_of(struct fake *f, uint32_t session, uint32_t syscall) {
        struct wait_key key = { session, (uint32_t) f->task.tgid, (uint32_t) f->task.pid, syscall };

        return bpf_map_lookup_elem(&waits, &key);
}

static struct fake idle, thread, other;

static int setup(void **state) {
        host_reset();
        memset(stats, 0, sizeof(stats));
        wait_period_ns = 10 * MSEC;
        make(&idle, 0);
        idle.task.flags = PF_KTHREAD;
        make(&thread, 100);
        make(&other, 200);
        return 0;
}

static void switch_to(struct fake *from, struct fake *to, uint64_t now_ns, bool preempted) {
        host.now_ns = now_ns;
        host.task = &from->task;
        on_switch(preempted, &from->task, &to->task);
}

/* What a thread does that comes out of its call. */
static void leave_call(struct fake *f) {
        host.task = &f->task;
        host.tgid = (uint32_t) f->task.tgid;
        host.tid = (uint32_t) f->task.pid;
        if (is_pending(host.tid))
                finish_telling(FINISH_WITH_STACK);
}

static const struct event_sample *record(size_t number) {
        assert_true(number < host.n_records);
        return (const struct event_sample *) host.records[number].data;
}

static void a_wait_is_split_into_blocked_and_runnable(void **state) {
        struct wait_value *sum;

        enlist(&thread, 3);
        switch_to(&idle, &thread, 1 * MSEC, false);
        regs_of(&thread)->orig_ax = 7; /* poll */
        set_state(&thread, 1);
        switch_to(&thread, &idle, 2 * MSEC, false);
        host.now_ns = 5 * MSEC;
        host.task = &other.task;
        host.tgid = host.tid = 200;
        host.comm = "waker";
        on_waking(&thread.task);
        switch_to(&idle, &thread, 6 * MSEC, false);

        sum = sum_of(&thread, 3, 7);
        assert_non_null(sum);
        assert_int_equal(sum->blocked_ns, 3 * MSEC);
        assert_int_equal(sum->runnable_ns, 1 * MSEC);
        assert_int_equal(sum->io_ns, 0);
        assert_int_equal(sum->count, 1);
        assert_int_equal(host.n_records, 0); /* shorter than the period */
}

static void long_waits_are_told_with_their_waker(void **state) {
        const struct event_sample *event;
        uint8_t stack[64] = "live";

        enlist(&thread, 3);
        thread.mm.start_stack = (uintptr_t) stack + sizeof(stack) - 8; /* where argc lies, which is copied */
        regs_of(&thread)->sp = (uintptr_t) stack;
        regs_of(&thread)->cs = 0x33;
        host.kernel_stack[0] = 0xffffffff81000000;
        switch_to(&idle, &thread, 0, false);
        regs_of(&thread)->orig_ax = 0; /* read */
        thread.task.in_iowait = 1;
        set_state(&thread, 1);
        switch_to(&thread, &idle, 1 * MSEC, false);
        assert_int_equal(stats[3].in_io, 1);
        host.now_ns = 21 * MSEC;
        host.task = &other.task;
        host.tgid = host.tid = 200;
        host.comm = "waker";
        on_waking(&thread.task);
        assert_int_equal(stats[3].in_io, 0);
        switch_to(&idle, &thread, 22 * MSEC, false);

        assert_int_equal(host.n_records, 0); /* its memory is not mapped yet */
        leave_call(&thread);
        leave_call(&thread);

        assert_int_equal(host.n_records, 1);
        event = record(0);
        assert_int_equal(host.records[0].bytes, sizeof(*event) + sizeof(stack));
        assert_memory_equal(event + 1, stack, sizeof(stack));
        assert_int_equal(event->flags & (SAMPLE_SYSCALL | SAMPLE_NO_REGS), SAMPLE_SYSCALL);
        assert_int_equal(event->kernel_frames, 1);
        assert_int_equal(event->kernel[0], 0xffffffff81000000);
        assert_int_equal(stats[3].waits, 1);
        assert_int_equal(event->head.type, EVENT_WAIT);
        assert_int_equal(event->head.session, 3);
        assert_int_equal(event->head.tgid, 100);
        assert_int_equal(event->wait.blocked_ns, 20 * MSEC);
        assert_int_equal(event->wait.weight_ns, 20 * MSEC);
        assert_int_equal(event->wait.flags, WAIT_IO);
        assert_int_equal(event->wait.waker_tgid, 200);
        assert_string_equal(event->wait.waker_comm, "waker");
        assert_int_equal(sum_of(&thread, 3, 0)->io_ns, 20 * MSEC);
}

static void short_waits_are_told_when_they_add_up(void **state) {
        enlist(&thread, 0);
        regs_of(&thread)->orig_ax = 202;
        set_state(&thread, 1);
        for (unsigned i = 0; i < 8; i++) {
                switch_to(&idle, &thread, (2 * i) * 2 * MSEC, false);
                switch_to(&thread, &idle, (2 * i + 1) * 2 * MSEC, false);
        }
        /* Seven waits of 2 ms have ended: 14 ms, one record that stands for the first 10. */
        assert_int_equal(sum_of(&thread, 0, 202)->blocked_ns, 14 * MSEC);
        assert_int_equal(host.n_records, 1); /* told when it blocked again in the same call */
        assert_int_equal(record(0)->wait.weight_ns, 10 * MSEC);
}

static void preemption_is_no_wait(void **state) {
        enlist(&thread, 0);
        switch_to(&idle, &thread, 0, false);
        set_state(&thread, 1); /* about to block, but preempted before: still runnable */
        switch_to(&thread, &idle, 5 * MSEC, true);
        switch_to(&idle, &thread, 9 * MSEC, false);
        host.now_ns = 10 * MSEC;
        thread.task.flags = PF_EXITING;
        end_thread(&thread.task, member_of(100));

        assert_int_equal(sum_of(&thread, 0, SYSCALL_ON_CPU)->blocked_ns, 6 * MSEC);
        assert_int_equal(sum_of(&thread, 0, SYSCALL_NONE)->runnable_ns, 4 * MSEC);
        assert_int_equal(sum_of(&thread, 0, SYSCALL_NONE)->blocked_ns, 0);
        assert_int_equal(stats[0].on_cpu, 0);
}

static void missed_switches_leave_no_hole(void **state) {
        enlist(&thread, 0);
        switch_to(&idle, &thread, 0, false);
        switch_to(&idle, &thread, 5 * MSEC, false); /* it left unseen */
        switch_to(&thread, &idle, 7 * MSEC, true);
        switch_to(&thread, &idle, 12 * MSEC, true); /* it came in unseen */
        switch_to(&idle, &thread, 13 * MSEC, false);
        host.now_ns = 14 * MSEC;
        end_thread(&thread.task, member_of(100));
        assert_int_equal(sum_of(&thread, 0, SYSCALL_ON_CPU)->blocked_ns, 13 * MSEC);
        assert_int_equal(sum_of(&thread, 0, SYSCALL_NONE)->runnable_ns, 1 * MSEC);
        assert_int_equal(stats[0].on_cpu, 0);
}

static void waiting_outside_of_a_call_is_a_page_fault(void **state) {
        enlist(&thread, 0);
        switch_to(&idle, &thread, 0, false);
        regs_of(&thread)->orig_ax = (uint64_t) -1;
        set_state(&thread, 1);
        switch_to(&thread, &idle, 1 * MSEC, false);
        switch_to(&idle, &thread, 3 * MSEC, false);
        assert_int_equal(sum_of(&thread, 0, SYSCALL_FAULT)->blocked_ns, 2 * MSEC);
}

/* From blocking at 1 ms to running again at 30. */
static void wait_long(struct fake *f, uint64_t orig_ax, uint64_t ip) {
        enlist(f, 0);
        switch_to(&idle, f, 0, false);
        regs_of(f)->orig_ax = orig_ax;
        regs_of(f)->ip = ip;
        regs_of(f)->cs = 0x33;
        set_state(f, 1);
        switch_to(f, &idle, 1 * MSEC, false);
        switch_to(&idle, f, 30 * MSEC, false);
}

static void another_place_has_not_the_stack_of_the_wait(void **state) {
        wait_long(&thread, (uint64_t) -1, 0x1000);
        regs_of(&thread)->ip = 0x1004; /* the fault was left unseen */
        leave_call(&thread);
        assert_int_equal(record(0)->flags, SAMPLE_NO_REGS);
        assert_int_equal(record(0)->stack_bytes, 0);
        assert_int_equal(record(0)->wait.flags, WAIT_FAULT);
        assert_int_equal(record(0)->syscall, SYSCALL_FAULT);
}

static void the_same_fault_has_it(void **state) {
        wait_long(&thread, (uint64_t) -1, 0x1000);
        leave_call(&thread);
        assert_int_equal(record(0)->flags & SAMPLE_NO_REGS, 0);
        assert_int_equal(record(0)->regs[DWARF_RIP], 0x1000);
}

static void an_exec_takes_the_stack_away(void **state) {
        wait_long(&thread, 59, 0x1000);
        host.task = &thread.task;
        rename_thread(100, &thread.task);
        assert_int_equal(host.n_records, 1);
        assert_int_equal(record(0)->flags, SAMPLE_NO_REGS);
        assert_int_equal(record(0)->wait.flags & WAIT_EXEC, WAIT_EXEC);
        leave_call(&thread);
        assert_int_equal(host.n_records, 1);
}

static void the_end_of_a_thread_tells_its_wait(void **state) {
        wait_long(&thread, 60, 0x1000);
        thread.task.flags = PF_EXITING;
        host.task = &thread.task;
        end_thread(&thread.task, member_of(100));
        assert_int_equal(host.n_records, 1);
        assert_int_equal(record(0)->flags, SAMPLE_NO_REGS);
}

/* Woken at 5 ms, and next seen when it leaves again at 9. */
static void a_wait_that_ended_unseen_is_counted(void **state) {
        enlist(&thread, 0);
        switch_to(&idle, &thread, 0, false);
        set_state(&thread, 1);
        switch_to(&thread, &idle, 1 * MSEC, false);
        host.now_ns = 5 * MSEC;
        on_waking(&thread.task);
        switch_to(&thread, &idle, 9 * MSEC, true);
        switch_to(&idle, &thread, 9 * MSEC, false);
        host.now_ns = 10 * MSEC;
        end_thread(&thread.task, member_of(100));
        assert_int_equal(sum_of(&thread, 0, 0)->blocked_ns, 4 * MSEC);
        assert_int_equal(sum_of(&thread, 0, SYSCALL_ON_CPU)->blocked_ns, 6 * MSEC);
}

static void both_stacks_of_a_handler_are_copied(void **state) {
        static uint8_t stack[256], alternate[512];
        struct k_sigaction action = { .sa.sa_flags = SA_ONSTACK };

        wait_long(&thread, 7, 0x1000);
        leave_call(&thread);
        thread.mm.start_stack = (uintptr_t) stack + 192;
        thread.task.sas_ss_sp = (uintptr_t) alternate;
        thread.task.sas_ss_size = sizeof(alternate);
        regs_of(&thread)->sp = (uintptr_t) stack + 40;
        stack[40] = 7;
        alternate[100] = 9;
        on_signal(&action);
        regs_of(&thread)->sp = (uintptr_t) alternate + 100;
        set_state(&thread, 1);
        switch_to(&thread, &idle, 40 * MSEC, false);
        switch_to(&idle, &thread, 70 * MSEC, false);
        leave_call(&thread);
        assert_int_equal(record(1)->stack_bytes, 412);
        assert_int_equal(record(1)->second_address, (uintptr_t) stack + 40);
        assert_int_equal(record(1)->second_bytes, 160);
        assert_int_equal(((const uint8_t *) (record(1) + 1))[0], 9);
        assert_int_equal(((const uint8_t *) (record(1) + 1))[412], 7);
}

/* A thread that handles a signal before it has left the CPU for the first time. */
static void a_signal_may_be_the_first_that_is_seen(void **state) {
        static uint8_t stack[256], alternate[512];
        struct k_sigaction action = { .sa.sa_flags = SA_ONSTACK };
        uint32_t tid = 100;
        const struct thread_state *t;

        enlist(&thread, 0);
        host.task = &thread.task;
        host.tgid = host.tid = 100;
        thread.task.sas_ss_sp = (uintptr_t) alternate;
        thread.task.sas_ss_size = sizeof(alternate);
        regs_of(&thread)->sp = (uintptr_t) stack + 40;
        on_signal(&action);
        t = bpf_map_lookup_elem(&threads, &tid);
        assert_non_null(t);
        assert_int_equal(t->interrupted_sp, (uintptr_t) stack + 40);
        assert_int_equal(stats[0].on_cpu, 1);
        switch_to(&thread, &idle, 5 * MSEC, true);
        assert_int_equal(stats[0].on_cpu, 0);
}

static void blocked_threads_are_told_at_the_end(void **state) {
        struct bpf_iter_meta meta = {};
        struct bpf_iter__task context = { &meta, &thread.task };
        const struct blocked_thread *blocked = (const struct blocked_thread *) host.records[0].data;

        enlist(&thread, 4);
        switch_to(&idle, &thread, 0, false);
        on_iterated(&context);
        assert_int_equal(host.n_records, 0); /* it runs */
        regs_of(&thread)->orig_ax = 7;
        regs_of(&thread)->sp = 0x7000;
        thread.mm.start_stack = 0x7100;
        set_state(&thread, 1);
        switch_to(&thread, &idle, 2 * MSEC, false);
        thread.task.nvcsw = 5;
        thread.task.nivcsw = 2;
        on_iterated(&context);
        assert_int_equal(host.n_records, 1);
        assert_int_equal(host.records[0].bytes, sizeof(*blocked));
        assert_int_equal(blocked->session, 4);
        assert_int_equal(blocked->tid, 100);
        assert_int_equal(blocked->syscall, 7);
        assert_int_equal(blocked->since_ns, 2 * MSEC);
        assert_int_equal(blocked->switches, 7);
        assert_int_equal(blocked->stack_end, 0x7108);
        context.task = NULL;
        on_iterated(&context);
        context.task = &other.task;
        on_iterated(&context);
        assert_int_equal(host.n_records, 1);
}

static void a_full_map_keeps_the_sums_right(void **state) {
        struct wait_key rest = { .session = 0, .syscall = SYSCALL_NONE };
        struct wait_value none = {}, *sum;

        assert_int_equal(bpf_map_update_elem(&waits, &rest, &none, BPF_ANY), 0);
        enlist(&thread, 0);
        switch_to(&idle, &thread, 0, false);
        host.map_limit = 1;
        set_state(&thread, 1);
        switch_to(&thread, &idle, 1 * MSEC, false);
        switch_to(&idle, &thread, 3 * MSEC, false);
        sum = bpf_map_lookup_elem(&waits, &rest);
        assert_int_equal(sum->blocked_ns, 2 * MSEC);
        assert_int_equal(stats[0].lost[LOSS_WAIT_KEYS], 1);
}

static void a_full_ring_is_counted(void **state) {
        enlist(&thread, 0);
        switch_to(&idle, &thread, 0, false);
        set_state(&thread, 1);
        switch_to(&thread, &idle, 1 * MSEC, false);
        host.records_limit = host.n_records = HOST_RECORDS_MAX;
        switch_to(&idle, &thread, 30 * MSEC, false);
        leave_call(&thread);
        assert_int_equal(stats[0].lost[LOSS_WAIT], 1);
        assert_int_equal(sum_of(&thread, 0, 0)->blocked_ns, 29 * MSEC);
}

static void an_exiting_thread_opens_no_new_books(void **state) {
        struct wait_key key = { 0, 100, 100, SYSCALL_ON_CPU };
        uint32_t tid = 100;

        enlist(&thread, 0);
        switch_to(&idle, &thread, 0, false);
        thread.task.flags = PF_EXITING;
        host.now_ns = 2 * MSEC;
        end_thread(&thread.task, member_of(100));
        set_state(&thread, 0x80 /* TASK_DEAD */);
        switch_to(&thread, &idle, 3 * MSEC, false);
        assert_null(bpf_map_lookup_elem(&threads, &tid));
        assert_int_equal(((struct wait_value *) bpf_map_lookup_elem(&waits, &key))->blocked_ns, 2 * MSEC);
        assert_int_equal(stats[0].on_cpu, 0);
}

static void strangers_leave_no_trace(void **state) {
        uint32_t tid = 100;

        switch_to(&idle, &thread, 0, false);
        set_state(&thread, 1);
        switch_to(&thread, &other, 1 * MSEC, false);
        on_waking(&thread.task);
        on_wakeup_new(&thread.task);
        assert_null(bpf_map_lookup_elem(&threads, &tid));
        assert_int_equal(stats[0].last_on_cpu_ns, 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(a_wait_is_split_into_blocked_and_runnable, setup),
                cmocka_unit_test_setup(long_waits_are_told_with_their_waker, setup),
                cmocka_unit_test_setup(short_waits_are_told_when_they_add_up, setup),
                cmocka_unit_test_setup(preemption_is_no_wait, setup),
                cmocka_unit_test_setup(missed_switches_leave_no_hole, setup),
                cmocka_unit_test_setup(waiting_outside_of_a_call_is_a_page_fault, setup),
                cmocka_unit_test_setup(another_place_has_not_the_stack_of_the_wait, setup),
                cmocka_unit_test_setup(the_same_fault_has_it, setup),
                cmocka_unit_test_setup(an_exec_takes_the_stack_away, setup),
                cmocka_unit_test_setup(the_end_of_a_thread_tells_its_wait, setup),
                cmocka_unit_test_setup(a_wait_that_ended_unseen_is_counted, setup),
                cmocka_unit_test_setup(both_stacks_of_a_handler_are_copied, setup),
                cmocka_unit_test_setup(a_signal_may_be_the_first_that_is_seen, setup),
                cmocka_unit_test_setup(blocked_threads_are_told_at_the_end, setup),
                cmocka_unit_test_setup(a_full_map_keeps_the_sums_right, setup),
                cmocka_unit_test_setup(a_full_ring_is_counted, setup),
                cmocka_unit_test_setup(an_exiting_thread_opens_no_new_books, setup),
                cmocka_unit_test_setup(strangers_leave_no_trace, setup),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
