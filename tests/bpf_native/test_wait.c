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
        const struct event_wait *event = (const struct event_wait *) host.records[0].data;

        enlist(&thread, 3);
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

        assert_int_equal(host.n_records, 1);
        assert_int_equal(host.records[0].bytes, sizeof(*event));
        assert_int_equal(event->head.type, EVENT_WAIT);
        assert_int_equal(event->head.session, 3);
        assert_int_equal(event->head.tgid, 100);
        assert_int_equal(event->blocked_ns, 20 * MSEC);
        assert_int_equal(event->weight_ns, 20 * MSEC);
        assert_int_equal(event->flags, WAIT_IO);
        assert_int_equal(event->waker_tgid, 200);
        assert_string_equal(event->waker_comm, "waker");
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
        assert_int_equal(host.n_records, 1);
        assert_int_equal(((const struct event_wait *) host.records[0].data)->weight_ns, 10 * MSEC);
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
        set_state(&thread, TASK_DEAD);
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
                cmocka_unit_test_setup(a_full_map_keeps_the_sums_right, setup),
                cmocka_unit_test_setup(a_full_ring_is_counted, setup),
                cmocka_unit_test_setup(an_exiting_thread_opens_no_new_books, setup),
                cmocka_unit_test_setup(strangers_leave_no_trace, setup),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
