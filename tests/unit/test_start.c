/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

#include "daemon/start.h"

/* Sequences of signals as systemd 252 and 257 send them, shortened. Milliseconds since boot. */

#define MS(n)   ((uint64_t) (n) *NSEC_PER_MSEC)
#define USEC(n) ((uint64_t) (n) *USEC_PER_MSEC)

enum { OLD = 1, NEW = 2, LATER = 3 }; /* invocations */

static struct start_values values(const char *active, const char *sub, uint8_t invocation,
                                  uint64_t change_ms) {
        struct start_values v = { .result = "success", .condition_result = true };

        snprintf(v.active_state, sizeof(v.active_state), "%s", active);
        snprintf(v.sub_state, sizeof(v.sub_state), "%s", sub);
        v.invocation_id[0] = invocation;
        v.state_change_usec = USEC(change_ms);
        return v;
}

static struct start *new_start(enum start_type type) {
        const struct start_options options = { .type = type };
        const struct start_values before = values("inactive", "dead", OLD, 10);
        struct start *s = start_new(&options, &before);

        assert_non_null(s);
        return s;
}

static void changed(struct start *s, struct start_values v, uint64_t now_ms) {
        start_unit_changed(s, &v, MS(now_ms));
}

static void expect(struct start *s, enum rec_result result, uint64_t queued_ms, uint64_t begin_ms,
                   uint64_t end_ms) {
        const struct start_outcome *o = start_outcome(s);

        assert_int_equal(o->phase, START_DONE);
        assert_string_equal(recording_result_str(o->result), recording_result_str(result));
        assert_int_equal(o->queued_ns, MS(queued_ms));
        assert_int_equal(o->begin_ns, MS(begin_ms));
        assert_int_equal(o->end_ns, MS(end_ms));
}

static void queue(struct start *s) {
        start_mark(s, MS(100));
        start_job_new(s, 7, MS(101));
}

static struct start_values active(uint64_t enter_ms) {
        struct start_values v = values("active", "running", NEW, enter_ms);

        v.active_enter_usec = USEC(enter_ms);
        return v;
}

static void notify_units_are_up_when_systemd_says_so(void **state) {
        _cleanup_(start_freep) struct start *s = new_start(START_NOTIFYING);

        queue(s);
        changed(s, values("activating", "start", NEW, 120), 122);
        changed(s, active(500), 502);
        expect(s, REC_RESULT_ACTIVE, 100, 120, 500);
}

static void a_new_invocation_of_a_dead_unit_is_not_its_end(void **state) {
        _cleanup_(start_freep) struct start *s = new_start(START_NOTIFYING);

        queue(s);
        changed(s, values("inactive", "dead", NEW, 10), 118);
        assert_int_equal(start_outcome(s)->phase, START_QUEUED);
        changed(s, values("activating", "start", NEW, 120), 122);
        changed(s, active(500), 502);
        expect(s, REC_RESULT_ACTIVE, 100, 120, 500);
}

static void merged_signals_begin_when_the_cgroup_was_made(void **state) {
        _cleanup_(start_freep) struct start *s = new_start(START_NOTIFYING);

        queue(s);
        start_cgroup(s, MS(119));
        changed(s, active(500), 502);
        expect(s, REC_RESULT_ACTIVE, 100, 119, 500);
}

static void a_failed_start_ends_with_its_failure(void **state) {
        _cleanup_(start_freep) struct start *s = new_start(START_NOTIFYING);
        struct start_values failed = values("failed", "failed", NEW, 300);

        snprintf(failed.result, sizeof(failed.result), "exit-code");
        failed.inactive_enter_usec = USEC(300);
        queue(s);
        changed(s, values("activating", "start", NEW, 120), 121);
        changed(s, failed, 301);
        expect(s, REC_RESULT_FAILED, 100, 120, 300);
        assert_string_equal(start_outcome(s)->unit_result, "exit-code");
}

static void a_timeout_is_called_one(void **state) {
        _cleanup_(start_freep) struct start *s = new_start(START_NOTIFYING);
        struct start_values killed = values("failed", "failed", NEW, 2300);

        snprintf(killed.result, sizeof(killed.result), "timeout");
        killed.inactive_enter_usec = USEC(2300);
        queue(s);
        changed(s, values("activating", "start", NEW, 120), 121);
        changed(s, killed, 2301);
        expect(s, REC_RESULT_TIMEOUT, 100, 120, 2300);
}

static void with_restart_the_first_attempt_is_reported_and_the_rest_counted(void **state) {
        _cleanup_(start_freep) struct start *s = new_start(START_NOTIFYING);
        struct start_values again = values("activating", "auto-restart", NEW, 300);

        snprintf(again.result, sizeof(again.result), "exit-code");
        again.inactive_enter_usec = USEC(300);
        queue(s);
        changed(s, values("activating", "start", NEW, 120), 121);
        changed(s, again, 301);
        expect(s, REC_RESULT_FAILED, 100, 120, 300);
        changed(s, values("activating", "start", LATER, 400), 401);
        assert_int_equal(start_outcome(s)->attempts, 2);
}

static void a_oneshot_ends_with_its_last_command(void **state) {
        _cleanup_(start_freep) struct start *s = new_start(START_ONESHOT);
        struct start_values dead = values("inactive", "dead", NEW, 410);

        dead.exec_main_exit_usec = USEC(405);
        dead.inactive_enter_usec = USEC(410);
        queue(s);
        changed(s, values("activating", "start", NEW, 120), 121);
        changed(s, dead, 411);
        expect(s, REC_RESULT_EXITED, 100, 120, 405);
}

static void a_condition_that_does_not_hold_skips_the_start(void **state) {
        _cleanup_(start_freep) struct start *s = new_start(START_NOTIFYING);
        struct start_values skipped = values("inactive", "dead", OLD, 10);

        skipped.condition_result = false;
        skipped.condition_usec = USEC(110);
        queue(s);
        changed(s, skipped, 111);
        start_job_removed(s, 7, "done", MS(112));
        assert_int_equal(start_outcome(s)->phase, START_DONE);
        assert_int_equal(start_outcome(s)->result, REC_RESULT_SKIPPED);
        assert_int_equal(start_outcome(s)->begin_ns, 0);
}

static void a_failed_dependency_is_named(void **state) {
        _cleanup_(start_freep) struct start *s = new_start(START_NOTIFYING);

        queue(s);
        start_job_removed(s, 7, "dependency", MS(300));
        expect(s, REC_RESULT_DEPENDENCY, 100, 0, 300);
}

static void other_jobs_do_not_count(void **state) {
        _cleanup_(start_freep) struct start *s = new_start(START_NOTIFYING);

        queue(s);
        start_job_removed(s, 6, "dependency", MS(300));
        assert_int_equal(start_outcome(s)->phase, START_QUEUED);
}

static void the_stop_of_a_running_unit_is_not_start_time(void **state) {
        const struct start_options options = { .type = START_NOTIFYING };
        const struct start_values before = values("active", "running", OLD, 10);
        _cleanup_(start_freep) struct start *s = start_new(&options, &before);
        struct start_values stopped = values("inactive", "dead", OLD, 700);

        stopped.inactive_enter_usec = USEC(700);
        queue(s);
        changed(s, values("deactivating", "stop-sigterm", OLD, 102), 103);
        changed(s, stopped, 701);
        changed(s, values("activating", "start", NEW, 710), 711);
        changed(s, active(900), 901);
        expect(s, REC_RESULT_ACTIVE, 700, 710, 900);
}

static void simple_units_end_where_their_rest_began(void **state) {
        _cleanup_(start_freep) struct start *s = new_start(START_SIMPLE);

        queue(s);
        changed(s, active(125), 126);
        for (uint64_t now = 200; now < 1000; now += 100)
                start_tick(s, true, MS(now), MS(now));
        for (uint64_t now = 1000; now < 2890; now += 100)
                start_tick(s, false, MS(950), MS(now));
        assert_int_equal(start_outcome(s)->phase, START_STARTING);
        start_tick(s, false, MS(950), MS(2960));
        assert_int_equal(start_outcome(s)->phase, START_DONE);
        assert_int_equal(start_outcome(s)->result, REC_RESULT_RUNNING);
        assert_int_equal(start_outcome(s)->end_ns, MS(950));
}

static void simple_units_that_listen_are_up_then(void **state) {
        _cleanup_(start_freep) struct start *s = new_start(START_SIMPLE);

        queue(s);
        changed(s, active(125), 126);
        start_listen(s, MS(400));
        assert_int_equal(start_outcome(s)->result, REC_RESULT_RUNNING);
        assert_int_equal(start_outcome(s)->end_ns, MS(400));
}

static void an_interrupt_ends_it_where_it_is(void **state) {
        _cleanup_(start_freep) struct start *s = new_start(START_NOTIFYING);

        queue(s);
        changed(s, values("activating", "start", NEW, 120), 121);
        start_interrupt(s, MS(900));
        expect(s, REC_RESULT_INTERRUPTED, 100, 120, 900);
}

static void a_command_that_is_killed_keeps_its_slot(void **state) {
        assert_int_equal(start_control_slot("start-pre"), REC_SLOT_START_PRE);
        assert_int_equal(start_control_slot("start-post"), REC_SLOT_START_POST);
        assert_int_equal(start_control_slot("stop"), REC_SLOT_STOP);
        assert_int_equal(start_control_slot("stop-sigterm"), REC_SLOT_UNKNOWN);
        assert_int_equal(start_control_slot("final-sigkill"), REC_SLOT_UNKNOWN);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(notify_units_are_up_when_systemd_says_so),
                cmocka_unit_test(a_new_invocation_of_a_dead_unit_is_not_its_end),
                cmocka_unit_test(merged_signals_begin_when_the_cgroup_was_made),
                cmocka_unit_test(a_failed_start_ends_with_its_failure),
                cmocka_unit_test(a_timeout_is_called_one),
                cmocka_unit_test(with_restart_the_first_attempt_is_reported_and_the_rest_counted),
                cmocka_unit_test(a_oneshot_ends_with_its_last_command),
                cmocka_unit_test(a_condition_that_does_not_hold_skips_the_start),
                cmocka_unit_test(a_failed_dependency_is_named),
                cmocka_unit_test(other_jobs_do_not_count),
                cmocka_unit_test(the_stop_of_a_running_unit_is_not_start_time),
                cmocka_unit_test(simple_units_end_where_their_rest_began),
                cmocka_unit_test(simple_units_that_listen_are_up_then),
                cmocka_unit_test(an_interrupt_ends_it_where_it_is),
                cmocka_unit_test(a_command_that_is_killed_keeps_its_slot),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
