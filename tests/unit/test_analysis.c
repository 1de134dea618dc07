/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/described.h"

/* One process from T0 to T1. */
#define ONE "start begin=0 until=1s\nprocess 1 begin=0 exec=0 comm=one exe=/bin/one slot=ExecStart\n"

static void assert_adds_up(const struct described *d) {
        uint64_t ns = 0, usec = 0;

        for (size_t i = 0; i < d->analysis->path.n_pieces; i++)
                ns += d->analysis->path.pieces[i].duration_ns;
        for (size_t i = 0; i < d->analysis->breakdown.n_rows; i++)
                usec += d->analysis->breakdown.rows[i].duration_usec;
        assert_int_equal(ns, d->analysis->duration_ns);
        assert_int_equal(usec, d->analysis->duration_usec);
}

static void parts_add_up_and_differ_by_less_than_one(void **state) {
        const uint64_t weights[] = { 1, 1, 1, 0, 7, UINT64_MAX };
        uint64_t parts[ARRAY_SIZE(weights)], sum = 0;

        spread(1000, weights, 3, parts);
        for (size_t i = 0; i < 3; i++) {
                sum += parts[i];
                assert_in_range(parts[i], 333, 334);
        }
        assert_int_equal(sum, 1000);
        spread(UINT64_MAX, weights, ARRAY_SIZE(weights), parts);
        assert_int_equal(parts[3], 0);
        spread(5, weights + 3, 1, parts);
        assert_int_equal(parts[0], 0);
}

static void time_before_the_start_is_queue(void **state) {
        _described_ d = describe(
                "start begin=300ms until=1s\nprocess 1 begin=310ms exec=350ms comm=one slot=ExecStart\n"
                "wait 1 on-cpu blocked=650ms\n",
                NULL);

        assert_adds_up(&d);
        assert_int_equal(row_usec(&d, PIECE_QUEUE, NULL), 300000);
        assert_int_equal(row_usec(&d, PIECE_BEFORE_EXEC, NULL), 50000);
        assert_int_equal(row_usec(&d, PIECE_CPU_USER, NULL), 650000);
        assert_int_equal(d.analysis->path.before_exec_ns, 50 * NSEC_PER_MSEC);
}

static void a_start_that_never_began_is_all_queue(void **state) {
        _described_ d = describe("start until=2s result=dependency\n", NULL);

        assert_adds_up(&d);
        assert_int_equal(row_usec(&d, PIECE_QUEUE, NULL), 2000000);
}

static void exact_times_make_the_rows(void **state) {
        _described_ d = describe(
                ONE "wait 1 on-cpu blocked=400ms\nwait 1 read blocked=350ms io=300ms runnable=50ms\n"
                    "wait 1 fault blocked=200ms\n",
                NULL);

        assert_adds_up(&d);
        assert_int_equal(row_usec(&d, PIECE_CPU_USER, NULL), 400000);
        assert_int_equal(row_usec(&d, PIECE_WAIT, "read"), 350000);
        assert_int_equal(row_usec(&d, PIECE_RUNNABLE, NULL), 50000);
        assert_int_equal(row_usec(&d, PIECE_FAULT, NULL), 200000);
}

static void samples_say_what_the_cpu_time_was(void **state) {
        _described_ d = describe(ONE "wait 1 on-cpu blocked=1s\nsamples 1 user from=0 to=1s count=60\n"
                                     "samples 1 kernel call=openat from=0 to=1s count=30\n"
                                     "samples 1 kernel flags=16 from=0 to=1s count=10\n",
                                 NULL);

        assert_adds_up(&d);
        assert_int_equal(row_usec(&d, PIECE_CPU_USER, NULL), 600000);
        assert_int_equal(row_usec(&d, PIECE_CPU_KERNEL, "openat"), 300000);
        assert_int_equal(row_usec(&d, PIECE_CPU_KERNEL, NULL), 400000);
}

static void waiting_for_a_child_is_the_childs_time(void **state) {
        _described_ d = describe(ONE "process 2 parent=1 begin=100ms exec=101ms end=900ms comm=two\n"
                                     "wait 1 on-cpu blocked=200ms\nwait 1 wait4 blocked=800ms\n"
                                     "wait 2 clock_nanosleep blocked=790ms\nwait 2 on-cpu blocked=10ms\n",
                                 NULL);

        assert_adds_up(&d);
        assert_int_equal(row_usec(&d, PIECE_WAIT, "clock_nanosleep"), 790000);
        assert_int_equal(row_usec(&d, PIECE_WAIT, "wait4"), 0);
}

static void a_shell_that_reads_waits_for_its_child(void **state) {
        static const char rest[] =
                "process 2 parent=1 begin=0 exec=1ms end=1s comm=two\nwait 1 read blocked=1s\n"
                "wait 2 on-cpu blocked=1s\n";
        _described_ shell =
                describe("start begin=0 until=1s\nprocess 1 begin=0 exec=0 exe=/bin/dash slot=ExecStart\n",
                         rest, NULL);
        _described_ other =
                describe("start begin=0 until=1s\nprocess 1 begin=0 exec=0 exe=/bin/reader slot=ExecStart\n",
                         rest, NULL);

        assert_int_equal(row_usec(&shell, PIECE_CPU_USER, NULL), 1000000);
        assert_int_equal(row_usec(&other, PIECE_WAIT, "read"), 1000000);
}

static void a_futex_is_the_work_of_the_other_thread(void **state) {
        _described_ d =
                describe(ONE "wait 1 futex blocked=900ms\nwait 1 on-cpu blocked=100ms\n"
                             "wait 1 on-cpu tid=7 blocked=600ms\nwait 1 connect tid=7 blocked=300ms\n"
                             "wait 1 epoll_wait tid=8 blocked=1s\n",
                         NULL);

        assert_adds_up(&d);
        assert_int_equal(row_usec(&d, PIECE_CPU_USER, NULL), 700000);
        assert_int_equal(row_usec(&d, PIECE_WAIT, "connect"), 300000);
        assert_int_equal(row_usec(&d, PIECE_WAIT, "futex"), 0);
}

static void commands_follow_one_another(void **state) {
        _described_ d = describe(
                "start begin=0 until=1s\n"
                "process 1 begin=0 exec=10ms end=300ms comm=pre slot=ExecStartPre\n"
                "process 2 begin=320ms exec=340ms comm=main slot=ExecStart\n"
                "process 3 begin=700ms exec=710ms end=990ms comm=post slot=ExecStartPost\n"
                "wait 1 on-cpu blocked=290ms\nwait 2 read blocked=680ms\nwait 3 poll blocked=290ms\n",
                NULL);

        assert_adds_up(&d);
        assert_int_equal(row_usec(&d, PIECE_CPU_USER, NULL), 290000);
        assert_int_equal(row_usec(&d, PIECE_WAIT, "read"), 360000); /* until ExecStartPost= began */
        assert_int_equal(row_usec(&d, PIECE_WAIT, "poll"), 280000);
        assert_int_equal(row_usec(&d, PIECE_BEFORE_EXEC, NULL), 40000);
        assert_int_equal(row_usec(&d, PIECE_SYSTEMD, NULL), 30000);
}

/* The main process works for 20 ms and idles while ExecStartPost= runs: it was on the path for the first part. */
static void a_part_of_a_life_is_what_happened_then(void **state) {
        static const char start[] =
                "start begin=0 until=1s\nprocess 1 begin=0 exec=0 comm=main slot=ExecStart\n"
                "process 2 begin=30ms exec=30ms end=1s comm=post slot=ExecStartPost\n"
                "wait 1 on-cpu blocked=20ms\nwait 1 pause blocked=970ms\nwait 2 poll blocked=970ms\n";
        _described_ work_first = describe(start, NULL);
        _described_ known_wait = describe(start,
                                          "wait 1 openat blocked=10ms\n"
                                          "samples 1 wait call=openat from=25ms to=25ms count=1\n",
                                          NULL);

        assert_adds_up(&work_first);
        assert_int_equal(row_usec(&work_first, PIECE_CPU_USER, NULL), 20000);
        assert_int_equal(row_usec(&work_first, PIECE_WAIT, "pause"), 10000);
        assert_adds_up(&known_wait);
        assert_int_equal(row_usec(&known_wait, PIECE_WAIT, "openat"), 10000);
        assert_int_equal(row_usec(&known_wait, PIECE_WAIT, "pause"), 0);
}

static void after_ready_it_is_systemds_time(void **state) {
        _described_ d =
                describe(ONE "wait 1 on-cpu blocked=1s\nmilestone ready-sent at=600ms process=1\n", NULL);
        _described_ failed =
                describe("start begin=0 until=1s result=timeout\nprocess 1 begin=0 exec=0 slot=ExecStart\n"
                         "wait 1 on-cpu blocked=1s\nmilestone ready-sent at=600ms process=1\n",
                         NULL);

        assert_adds_up(&d);
        assert_int_equal(row_usec(&d, PIECE_SYSTEMD, NULL), 400000);
        assert_int_equal(row_usec(&failed, PIECE_SYSTEMD, NULL), 0);
}

static void a_daemon_left_behind_is_waited_for(void **state) {
        _described_ d = describe("start begin=0 until=1s type=forking\n"
                                 "process 1 begin=0 exec=0 end=200ms comm=parent slot=ExecStart\n"
                                 "process 2 parent=1 begin=190ms comm=daemon slot=ExecStart\n"
                                 "wait 1 on-cpu blocked=200ms\nwait 2 connect blocked=810ms\n",
                                 NULL);

        assert_adds_up(&d);
        assert_int_equal(row_usec(&d, PIECE_WAIT, "connect"), 800000);
}

static void what_nobody_saw_is_not_observed(void **state) {
        _described_ late = describe(
                "start begin=0 armed=500ms until=1s\nprocess 1 begin=500ms exec=500ms slot=ExecStart\n"
                "wait 1 on-cpu blocked=500ms\n",
                NULL);
        _described_ lossy = describe(ONE "lost waits=1\nwait 1 on-cpu blocked=300ms\n", NULL);
        _described_ blocked = describe(ONE "wait 1 on-cpu blocked=300ms\n", NULL);

        assert_int_equal(row_usec(&late, PIECE_NOT_OBSERVED, NULL), 500000);
        assert_int_equal(row_usec(&lossy, PIECE_NOT_OBSERVED, NULL), 700000);
        assert_int_equal(row_usec(&blocked, PIECE_WAIT, NULL), 700000);
        assert_int_equal(row_usec(&blocked, PIECE_NOT_OBSERVED, NULL), 0);
}

static void a_pid_used_twice_has_the_later_parent(void **state) {
        _described_ d = describe(ONE "process 2 parent=1 begin=0 exec=0 end=200ms comm=first\n"
                                     "process 2 parent=1 begin=300ms exec=300ms end=1s comm=second\n"
                                     "process 3 parent=2 begin=310ms exec=310ms end=1s comm=grandchild\n"
                                     "wait 1 wait4 blocked=1s\n",
                                 NULL);

        assert_adds_up(&d);
}

/* Any times, parents and rows: the pieces add up, and it ends. */
static void any_numbers_add_up(void **state) {
        srandom(3);
        for (unsigned round = 0; round < 300; round++) {
                _cleanup_(buf_done) struct buf b = BUF_NULL;

                buf_printf(&b, "start begin=%ldms armed=%ldms until=%ldms type=forking result=%s\n",
                           random() % 900, random() % 900, random() % 1500,
                           random() % 2 ? "active" : "timeout");
                for (unsigned i = 1; i <= 12; i++)
                        buf_printf(&b,
                                   "process %ld parent=%ld begin=%ldms exec=%ldms %s=%ldms exe=/bin/sh "
                                   "slot=%s\n",
                                   random() % 5 + 1, random() % 6, random() % 1500, random() % 1500,
                                   random() % 3 ? "end" : "x", random() % 1500,
                                   random() % 2 ? "ExecStart" : "ExecStop");
                for (unsigned i = 0; i < 30; i++)
                        buf_printf(
                                &b, "wait * %s blocked=%ldms io=%ldms runnable=%ldms tid=%ld\n",
                                (const char *[]){ "wait4", "futex", "read", "on-cpu", "none" }[random() % 5],
                                random() % 2000, random() % 2000, random() % 50, random() % 4);
                buf_printf(&b, "samples * user from=0 to=%ldms count=%ld\n", random() % 1000, random() % 50);
                {
                        _described_ d = describe(buf_text(&b), NULL);

                        assert_adds_up(&d);
                }
        }
}

static void the_headline_is_the_result(void **state) {
        static const struct {
                const char *start, *words;
        } cases[] = {
                { "result=active", "demo.service took 2s to start" },
                { "result=failed", "demo.service failed to start after 2s" },
                { "result=timeout", "demo.service timed out after 2s" },
                { "result=exited", "demo.service finished in 2s" },
                { "result=running end=listen", "demo.service was listening after 2s" },
                { "result=running end=idle", "demo.service was at rest after 2s" },
                { "result=interrupted", "demo.service was still starting after 2s, when profiling ended" },
                { "result=skipped", "demo.service was skipped after 2s: a condition was not met" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _described_ d = describe("start begin=0 until=2s ", cases[i].start, "\n", NULL);
                _cleanup_(buf_done) struct buf b = BUF_NULL;

                analysis_headline(d.analysis, &b);
                assert_string_equal(buf_text(&b), cases[i].words);
        }
}

static void milestones_come_in_the_order_of_time(void **state) {
        _described_ d = describe(
                ONE "milestone active at=1s\nmilestone begin at=0\nmilestone exec at=10ms process=1\n",
                NULL);

        assert_int_equal(d.recording->milestones[d.analysis->milestones[0]].kind, REC_MILESTONE_BEGIN);
        assert_int_equal(d.recording->milestones[d.analysis->milestones[2]].kind, REC_MILESTONE_ACTIVE);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(parts_add_up_and_differ_by_less_than_one),
                cmocka_unit_test(time_before_the_start_is_queue),
                cmocka_unit_test(a_start_that_never_began_is_all_queue),
                cmocka_unit_test(exact_times_make_the_rows),
                cmocka_unit_test(samples_say_what_the_cpu_time_was),
                cmocka_unit_test(waiting_for_a_child_is_the_childs_time),
                cmocka_unit_test(a_shell_that_reads_waits_for_its_child),
                cmocka_unit_test(a_futex_is_the_work_of_the_other_thread),
                cmocka_unit_test(commands_follow_one_another),
                cmocka_unit_test(a_part_of_a_life_is_what_happened_then),
                cmocka_unit_test(after_ready_it_is_systemds_time),
                cmocka_unit_test(a_daemon_left_behind_is_waited_for),
                cmocka_unit_test(what_nobody_saw_is_not_observed),
                cmocka_unit_test(a_pid_used_twice_has_the_later_parent),
                cmocka_unit_test(any_numbers_add_up),
                cmocka_unit_test(the_headline_is_the_result),
                cmocka_unit_test(milestones_come_in_the_order_of_time),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
