/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/storm.h"
#include "tests/unit/described.h"

/* Causes that are a stretch of time: sleep, readiness-missing, start-post-wait, dependency-wait, before-exec,
 * cpu-bound, fork-storm. */

#define ONE(start)                                                                                          \
        "start begin=0 until=1s " start                                                                     \
        "\nprocess 1 begin=0 exec=0 comm=app slot=ExecStart exe=/opt/app/app args=\"sleep 8\"\n"

static void a_sleep_is_the_verdict_from_a_quarter(void **state) {
        _described_ below = describe(
                ONE(""), "wait 1 clock_nanosleep blocked=249ms\nwait 1 connect blocked=751ms\n", NULL);
        _described_ at = describe(
                ONE(""), "wait 1 clock_nanosleep blocked=250ms\nwait 1 connect blocked=750ms\n", NULL);

        assert_cause(below, "none");
        assert_cause(at, "sleep");
        assert_non_null(strstr(at.analysis->findings[0].summary, "sleep 8 slept for 250ms"));
        assert_string_equal(evidence_text(at.analysis->findings, "command"), "sleep 8");
}

static void a_sleep_of_a_child_counts(void **state) {
        _described_ d = describe(
                ONE(""),
                "process 2 parent=1 begin=0 exec=1ms end=1s comm=sleep args=\"sleep 90\" slot=ExecStartPre\n"
                "wait 1 wait4 blocked=1s\nwait 2 clock_nanosleep blocked=1s\n",
                NULL);

        assert_cause(d, "sleep");
        assert_non_null(strstr(d.analysis->findings[0].summary, "sleep 90 slept"));
        assert_non_null(strstr(d.analysis->findings[0].summary, "ExecStartPre="));
}

#define THROTTLED(by, usec)                                                                                 \
        "property CPUQuotaPerSecUSec 200000\nproperty cgroup.cpu.throttled_by " by                          \
        "\nproperty cgroup.cpu.throttled_usec " usec                                                        \
        "\nproperty cgroup.cpu.periods 10\nproperty cgroup.cpu.throttled_periods 9\n"

/* As much of the time ready as the kernel counted for the cgroup; the rest waited for a CPU. */
static void a_quota_that_held_the_unit_is_the_verdict_from_a_quarter(void **state) {
        static const char times[] = "wait 1 on-cpu blocked=400ms\nwait 1 none runnable=600ms count=0\n";
        _described_ below = describe(ONE(""), THROTTLED("x.service", "249000"), times, NULL);
        _described_ at = describe(ONE(""), THROTTLED("x.service", "250000"), times, NULL);
        _described_ without = describe(ONE(""), times, NULL);

        assert_cause(below, "none");
        assert_cause(without, "none");
        assert_cause(at, "cpu-throttled");
        assert_int_equal(pieces_time(at.analysis, 1u << PIECE_THROTTLED, 0, REC_NONE), 250 * NSEC_PER_MSEC);
        assert_int_equal(pieces_time(at.analysis, 1u << PIECE_RUNNABLE, 0, REC_NONE), 350 * NSEC_PER_MSEC);
}

/* Two CPUs may be throttled at once: no more than was spent ready. */
static void throttling_is_not_longer_than_the_time_ready(void **state) {
        _described_ d = describe(ONE(""), THROTTLED("x.service", "99000000"),
                                 "wait 1 on-cpu blocked=400ms\nwait 1 none runnable=600ms count=0\n", NULL);

        assert_int_equal(pieces_time(d.analysis, 1u << PIECE_THROTTLED, 0, REC_NONE), 600 * NSEC_PER_MSEC);
        assert_int_equal(pieces_time(d.analysis, 1u << PIECE_RUNNABLE, 0, REC_NONE), 0);
}

static void the_quota_of_a_slice_is_named(void **state) {
        _described_ d = describe(ONE("unit=x.service "), THROTTLED("busy.slice", "600000"),
                                 "wait 1 on-cpu blocked=400ms\nwait 1 none runnable=600ms count=0\n", NULL);

        assert_cause(d, "cpu-throttled");
        assert_string_equal(evidence_text(d.analysis->findings, "quota"), "the CPU quota of busy.slice");
        assert_null(d.analysis->findings[0].advice[0].dropin);
}

static void memory_that_is_short_is_the_verdict_from_a_quarter(void **state) {
        static const char wait[] = "wait 1 none blocked=1s\n";
        _described_ below = describe(
                ONE(""), "property cgroup.memory.high 40\nproperty cgroup.memory.stall_usec 249000\n", wait,
                NULL);
        _described_ at = describe(
                ONE(""), "property cgroup.memory.high 40\nproperty cgroup.memory.stall_usec 250000\n", wait,
                NULL);
        _described_ unmet = describe(
                ONE(""), "property cgroup.memory.high 0\nproperty cgroup.memory.stall_usec 250000\n", wait,
                NULL);

        assert_cause(below, "none");
        assert_cause(unmet, "none"); /* pressure of the machine, not of the limit */
        assert_cause(at, "memory-throttled");
        assert_string_equal(evidence_text(at.analysis->findings, "limit"), "MemoryHigh=");
}

static void a_lock_is_waited_for(void **state) {
        _described_ below =
                describe(ONE(""), "wait 1 flock blocked=249ms\nwait 1 connect blocked=751ms\n", NULL);
        _described_ at =
                describe(ONE(""), "wait 1 fcntl blocked=250ms\nwait 1 connect blocked=750ms\n", NULL);

        assert_cause(below, "none");
        assert_cause(at, "lock-wait");
        assert_non_null(strstr(at.analysis->findings[0].summary, "app waited 250ms"));
}

/* The descriptor of the lock call is the one that an open before it returned. */
static void a_lock_has_its_file(void **state) {
        _described_ d =
                describe(ONE(""),
                         "wait 1 flock blocked=900ms\n"
                         "samples 1 wait call=flock from=901ms to=902ms weight=900ms blocked=900ms\n",
                         "path open 1 /run/old.lock at=1ms result=3\n"
                         "path open 1 /run/app.lock at=2ms result=3\n"
                         "path open 1 /etc/other at=3ms result=4\n"
                         "path lock 1 - at=901ms argument=3\n"
                         "path open 1 /etc/later at=950ms result=3\n",
                         NULL);

        assert_cause(d, "lock-wait");
        assert_string_equal(evidence_text(d.analysis->findings, "path"), "/run/app.lock");
        assert_non_null(strstr(d.analysis->findings[0].summary, "for the lock on /run/app.lock"));
}

static void start_post_beats_sleep(void **state) {
        _described_ d = describe(
                ONE(""),
                "process 2 begin=200ms exec=200ms end=1s comm=post args=wait-for-port slot=ExecStartPost\n"
                "wait 1 epoll_wait blocked=1s\nwait 2 clock_nanosleep blocked=800ms\n",
                NULL);

        assert_cause(d, "start-post-wait");
        assert_null(finding_of(&d, "sleep"));
        assert_string_equal(evidence_text(d.analysis->findings, "command"), "wait-for-port");
}

/* ---- readiness-missing ---- */

#define IDLE(part, rest) "wait 1 epoll_wait blocked=" part "\nwait 1 on-cpu blocked=" rest "\n"

static void an_idle_service_that_never_said_ready(void **state) {
        _described_ below = describe(ONE("type=notify result=timeout"), IDLE("499ms", "501ms"), NULL);
        _described_ at = describe(ONE("type=notify result=timeout"), IDLE("500ms", "500ms"), NULL);

        assert_null(finding_of(&below, "readiness-missing"));
        assert_cause(at, "readiness-missing");
        assert_string_equal(at.analysis->findings[0].advice[0].dropin, "[Service]\nType=exec\n");
}

static void sleep_infinity_is_idle_too(void **state) {
        _described_ d =
                describe(ONE("type=notify result=timeout"), "wait 1 clock_nanosleep blocked=1s\n", NULL);

        assert_cause(d, "readiness-missing");
        assert_null(finding_of(&d, "sleep"));
}

static void readiness_is_not_missed_where_it_was_sent_or_not_expected(void **state) {
        static const char *const starts[] = { ONE("type=simple result=timeout"),
                                              ONE("type=notify result=active") };
        _described_ sent = describe(ONE("type=notify result=timeout"), IDLE("900ms", "100ms"),
                                    "path notify 1 READY=1 at=10ms\n", NULL);
        _described_ asking = describe(ONE("type=notify result=timeout"), "wait 1 poll blocked=1s\n",
                                      "path connect 1 inet:127.0.0.53:53 at=10ms\n", NULL);

        for (size_t i = 0; i < ARRAY_SIZE(starts); i++) {
                _described_ d = describe(starts[i], IDLE("900ms", "100ms"), NULL);

                assert_null(finding_of(&d, "readiness-missing"));
        }
        assert_null(finding_of(&sent, "readiness-missing"));
        assert_null(finding_of(&asking, "readiness-missing"));
}

/* ---- pidfile-missing ---- */

#define FORKING(result, exit)                                                                               \
        "start begin=0 until=1s type=forking result=" result "\nproperty PIDFile /run/x.pid\n"              \
        "process 1 begin=0 exec=0 end=100ms comm=x slot=ExecStart exit=" exit "\n"                          \
        "process 2 parent=1 begin=50ms comm=x slot=ExecStart\nwait 1 on-cpu blocked=100ms\n"                \
        "wait 2 clock_nanosleep blocked=950ms\n"

static void a_daemon_without_its_pid_file(void **state) {
        _described_ d = describe(FORKING("timeout", "0"), NULL);
        _described_ up = describe(FORKING("active", "0"), NULL);
        _described_ failed = describe(FORKING("timeout", "256"), NULL);

        assert_cause(d, "pidfile-missing");
        assert_int_equal(d.analysis->findings[0].duration_ns, 900 * NSEC_PER_MSEC);
        assert_string_equal(evidence_text(d.analysis->findings, "pid_file"), "/run/x.pid");
        assert_null(finding_of(&up, "pidfile-missing"));
        assert_null(finding_of(&failed, "pidfile-missing"));
}

/* ---- phases ---- */

static void waiting_in_the_queue_is_not_the_services_fault(void **state) {
        static const char process[] =
                "process 1 begin=250ms exec=250ms comm=app slot=ExecStart\nwait 1 connect blocked=750ms\n";
        _described_ below = describe("start begin=249ms until=1s\n", process, NULL);
        _described_ at = describe("start begin=250ms until=1s\nproperty WaitedFor network-online.target\n",
                                  process, NULL);

        assert_cause(below, "none");
        assert_cause(at, "dependency-wait");
        assert_string_equal(evidence_text(at.analysis->findings, "waited_for"), "network-online.target");
}

static void time_before_exec_is_systemds(void **state) {
        _described_ below =
                describe("start begin=0 until=1s\nprocess 1 begin=1ms exec=249ms comm=app slot=ExecStart\n"
                         "wait 1 connect blocked=751ms\n",
                         NULL);
        _described_ at =
                describe("start begin=0 until=1s\nprocess 1 begin=1ms exec=250ms comm=app slot=ExecStart\n"
                         "wait 1 connect blocked=750ms\n",
                         NULL);

        assert_cause(below, "none");
        assert_cause(at, "before-exec");
}

static void small_things_get_no_line(void **state) {
        _described_ d =
                describe("start begin=0 until=100ms\nprocess 1 begin=1ms exec=19ms comm=app slot=ExecStart\n"
                         "wait 1 connect blocked=81ms\n",
                         NULL);

        assert_int_equal(d.analysis->n_findings, 0);
}

/* ---- work ---- */

static void cpu_bound_needs_seven_tenths_and_half_a_second(void **state) {
        static const char app[] = "process 1 begin=0 exec=0 comm=app slot=ExecStart exe=/opt/app/app\n";
        _described_ below =
                describe(ONE(""), "wait 1 on-cpu blocked=699ms\nwait 1 connect blocked=301ms\n", NULL);
        _described_ at =
                describe(ONE(""), "wait 1 on-cpu blocked=700ms\nwait 1 connect blocked=300ms\n", NULL);
        _described_ shorter =
                describe("start begin=0 until=499ms\n", app, "wait 1 on-cpu blocked=499ms\n", NULL);
        _described_ long_enough =
                describe("start begin=0 until=500ms\n", app, "wait 1 on-cpu blocked=500ms\n", NULL);

        assert_cause(below, "none");
        assert_cause(at, "cpu-bound");
        assert_cause(shorter, "none");
        assert_cause(long_enough, "cpu-bound");
}

static void a_particular_cause_is_not_also_called_cpu_bound(void **state) {
        _described_ d = describe(
                ONE(""),
                "wait 1 on-cpu blocked=1s\nsamples 1 user from=0 to=1s count=75\n"
                "samples 1 kernel call=close from=0 to=1s count=25\ncall 1 close error=EBADF count=900000\n",
                NULL);

        assert_cause(d, "fd-close-storm");
        assert_null(finding_of(&d, "cpu-bound"));
}

static void two_hundred_short_processes_are_a_storm(void **state) {
        static const char parent[] =
                "start begin=0 until=1s\nprocess 1 begin=0 exec=0 comm=sh exe=/bin/sh slot=ExecStart\n"
                "wait 1 wait4 blocked=1s\n";
        _described_ below = describe(
                parent,
                "many 199 pid=100 parent=1 begin=1ms every=4ms life=4ms on-cpu=4ms comm=ipt exe=/sbin/ipt\n",
                NULL);
        _described_ at = describe(
                parent,
                "many 200 pid=100 parent=1 begin=1ms every=4ms life=4ms on-cpu=4ms comm=ipt exe=/sbin/ipt\n",
                NULL);

        assert_null(finding_of(&below, "fork-storm"));
        assert_cause(at, "fork-storm");
        assert_int_equal(evidence_number(at.analysis->findings, "processes"), 200);
}

static void long_lived_workers_are_no_fork_storm(void **state) {
        _described_ d = describe(
                "start begin=0 until=1s\nprocess 1 begin=0 exec=0 comm=sh exe=/bin/sh slot=ExecStart\n"
                "wait 1 wait4 blocked=1s\n"
                "many 400 pid=100 parent=1 begin=1ms every=1ms life=101ms on-cpu=4ms comm=w exe=/bin/w\n",
                NULL);

        assert_null(finding_of(&d, "fork-storm"));
}

static void without_a_cause_the_line_says_what_it_consists_of(void **state) {
        _described_ d =
                describe(ONE(""), "wait 1 on-cpu blocked=400ms\nwait 1 connect blocked=600ms\n", NULL);

        assert_cause(d, "none");
        assert_string_equal(analysis_summary(d.analysis),
                            "no single cause: 60% waiting in connect, 40% on CPU in user code");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_sleep_is_the_verdict_from_a_quarter),
                cmocka_unit_test(a_sleep_of_a_child_counts),
                cmocka_unit_test(a_quota_that_held_the_unit_is_the_verdict_from_a_quarter),
                cmocka_unit_test(throttling_is_not_longer_than_the_time_ready),
                cmocka_unit_test(the_quota_of_a_slice_is_named),
                cmocka_unit_test(memory_that_is_short_is_the_verdict_from_a_quarter),
                cmocka_unit_test(a_lock_is_waited_for),
                cmocka_unit_test(a_lock_has_its_file),
                cmocka_unit_test(start_post_beats_sleep),
                cmocka_unit_test(an_idle_service_that_never_said_ready),
                cmocka_unit_test(sleep_infinity_is_idle_too),
                cmocka_unit_test(readiness_is_not_missed_where_it_was_sent_or_not_expected),
                cmocka_unit_test(a_daemon_without_its_pid_file),
                cmocka_unit_test(waiting_in_the_queue_is_not_the_services_fault),
                cmocka_unit_test(time_before_exec_is_systemds),
                cmocka_unit_test(small_things_get_no_line),
                cmocka_unit_test(cpu_bound_needs_seven_tenths_and_half_a_second),
                cmocka_unit_test(a_particular_cause_is_not_also_called_cpu_bound),
                cmocka_unit_test(two_hundred_short_processes_are_a_storm),
                cmocka_unit_test(long_lived_workers_are_no_fork_storm),
                cmocka_unit_test(without_a_cause_the_line_says_what_it_consists_of),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
