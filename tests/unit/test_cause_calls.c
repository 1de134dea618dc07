/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/described.h"

#define START                                                                                               \
        "start begin=0 until=1s\nprocess 1 begin=0 exec=0 comm=app slot=ExecStart exe=/opt/app/app "        \
        "args=\"app -R /srv\"\n"
#define REST(t) "wait 1 connect blocked=" t "\n"

/* ---- fd-close-storm ---- */

static void closing_what_is_not_open_is_a_storm_from_a_thousand(void **state) {
        _described_ below =
                describe(START REST("100ms"),
                         "wait 1 close blocked=900ms\ncall 1 close error=EBADF count=999\n", NULL);
        _described_ at = describe(START REST("100ms"),
                                  "wait 1 close blocked=900ms\ncall 1 close error=EBADF count=1000\n", NULL);

        assert_null(finding_of(&below, "fd-close-storm"));
        assert_cause(at, "fd-close-storm");
        assert_string_equal(at.analysis->findings[0].advice[0].dropin,
                            "[Service]\nLimitNOFILE=1024:524288\n");
}

static void closing_open_files_is_none(void **state) {
        _described_ d = describe(START REST("100ms"),
                                 "wait 1 close blocked=900ms\ncall 1 close error=EBADF count=2000\n"
                                 "call 1 close count=1000\n",
                                 NULL);

        assert_null(finding_of(&d, "fd-close-storm"));
}

static void setting_close_on_exec_on_all_counts_too(void **state) {
        _described_ d = describe(START REST("100ms"),
                                 "wait 1 fcntl blocked=900ms\ncall 1 fcntl error=EBADF count=20000\n", NULL);

        assert_cause(d, "fd-close-storm");
}

/* ---- missing-file-storm ---- */

static void missing_files_are_a_storm_from_a_thousand(void **state) {
        _described_ below =
                describe(START REST("100ms"),
                         "wait 1 openat blocked=900ms\ncall 1 openat error=ENOENT count=999\n", NULL);
        _described_ at = describe(START REST("100ms"),
                                  "wait 1 openat blocked=900ms\ncall 1 openat error=ENOENT count=600\n"
                                  "call 1 newfstatat error=ENOENT count=400\n",
                                  NULL);

        assert_null(finding_of(&below, "missing-file-storm"));
        assert_cause(at, "missing-file-storm");
        assert_int_equal(evidence_number(at.analysis->findings, "missing"), 1000);
}

static void only_the_failing_part_of_the_time_counts(void **state) {
        _described_ d = describe(START REST("200ms"),
                                 "wait 1 openat blocked=800ms\ncall 1 openat error=ENOENT count=3000\n"
                                 "call 1 openat count=1000\n",
                                 NULL);
        _described_ mostly_there =
                describe(START REST("200ms"),
                         "wait 1 openat blocked=800ms\n"
                         "call 1 openat error=ENOENT count=3000\ncall 1 openat count=3001\n",
                         NULL);

        assert_int_equal(finding_of(&d, "missing-file-storm")->duration_ns, 600 * NSEC_PER_MSEC);
        assert_null(finding_of(&mostly_there, "missing-file-storm"));
}

/* ---- file-walk ---- */

static void a_recursive_chown_is_a_walk(void **state) {
        _described_ below = describe(START REST("100ms"),
                                     "wait 1 fchownat blocked=900ms\ncall 1 fchownat count=999\n"
                                     "call 1 getdents64 count=50\n",
                                     NULL);
        _described_ at = describe(START REST("100ms"),
                                  "wait 1 fchownat blocked=900ms\ncall 1 fchownat count=1000\n"
                                  "call 1 getdents64 count=50\n",
                                  NULL);

        assert_null(finding_of(&below, "file-walk"));
        assert_cause(at, "file-walk");
        assert_non_null(strstr(at.analysis->findings[0].summary, "1,000 owners or modes set"));
        assert_string_equal(evidence_text(at.analysis->findings, "command"), "app -R /srv");
}

static void looking_at_files_by_name_is_no_walk(void **state) {
        _described_ d = describe(START REST("100ms"),
                                 "wait 1 newfstatat blocked=900ms\ncall 1 newfstatat count=90000\n"
                                 "call 1 getdents64 count=10\n",
                                 NULL);
        _described_ none =
                describe(START REST("100ms"),
                         "wait 1 newfstatat blocked=900ms\ncall 1 newfstatat count=90000\n", NULL);

        assert_null(finding_of(&d, "file-walk"));
        assert_null(finding_of(&none, "file-walk"));
}

static void one_huge_directory_is_a_walk(void **state) {
        _described_ d = describe(START REST("100ms"),
                                 "wait 1 getdents64 blocked=900ms\ncall 1 getdents64 count=1200000\n", NULL);

        assert_cause(d, "file-walk");
        assert_non_null(strstr(d.analysis->findings[0].summary, "1,200,000 directory reads"));
}

static void a_watch_storm_is_not_called_a_walk(void **state) {
        _described_ d =
                describe(START REST("100ms"),
                         "wait 1 getdents64 blocked=900ms\ncall 1 getdents64 count=40000\n"
                         "call 1 inotify_add_watch count=20000\ncall 1 openat error=ENOENT count=2000\n",
                         NULL);

        assert_cause(d, "inotify-watch-storm");
        assert_null(finding_of(&d, "file-walk"));
        assert_null(finding_of(&d, "missing-file-storm"));
}

/* ---- sync-storm ---- */

static void one_long_sync_is_enough(void **state) {
        _described_ below = describe(START REST("751ms"),
                                     "wait 1 sync blocked=249ms longest=249ms\ncall 1 sync count=1\n", NULL);
        _described_ at = describe(START REST("750ms"),
                                  "wait 1 sync blocked=250ms longest=250ms\ncall 1 sync count=1\n", NULL);

        assert_cause(below, "none");
        assert_cause(at, "sync-storm");
        assert_int_equal(evidence_number(at.analysis->findings, "longest_usec"), 250000);
}

static void many_fsyncs_are_counted(void **state) {
        _described_ d = describe(START REST("20ms"),
                                 "wait 1 fsync blocked=900ms\nwait 1 fdatasync blocked=80ms\n"
                                 "call 1 fsync count=41203\ncall 1 fdatasync count=7\n",
                                 NULL);

        assert_cause(d, "sync-storm");
        assert_int_equal(evidence_number(d.analysis->findings, "syncs"), 41210);
        assert_int_equal(evidence_number(d.analysis->findings, "fsync"), 41203);
        assert_int_equal(evidence_number(d.analysis->findings, "fdatasync"), 7);
        assert_int_equal(d.analysis->findings[0].duration_ns, 980 * NSEC_PER_MSEC);
        assert_non_null(strstr(d.analysis->findings[0].summary,
                               "41,203 calls of fsync() and 7 of fdatasync() took"));
}

/* An innocent-looking call behind which is sync(): nothing of it is in any path. */
static void calls_of_sync_say_what_they_wait_for(void **state) {
        _described_ sync = describe(START REST("20ms"),
                                    "wait 1 sync blocked=980ms longest=2ms\ncall 1 sync count=4000\n"
                                    "path sync 1 /dev/null at=1ms call=sync\n",
                                    NULL);
        _described_ fs =
                describe(START REST("20ms"),
                         "wait 1 syncfs blocked=980ms longest=2ms\ncall 1 syncfs count=4000\n", NULL);

        assert_cause(sync, "sync-storm");
        assert_non_null(strstr(sync.analysis->findings[0].summary, "4,000 calls of sync() took"));
        assert_non_null(strstr(sync.analysis->findings[0].detail[0], "every file system"));
        assert_int_equal(sync.analysis->findings[0].n_detail, 1);
        assert_non_null(strstr(fs.analysis->findings[0].detail[0], "to that file system"));
}

static void synced_files_are_named(void **state) {
        _described_ many = describe(START REST("20ms"),
                                    "wait 1 fsync blocked=980ms\ncall 1 fsync count=4000\n"
                                    "path sync 1 /srv/db/base at=1ms count=30 to=900ms\n"
                                    "path sync 1 /srv/db/base/d3 at=950ms\n"
                                    "path sync 1 /srv/db/wal/1 at=990ms\n"
                                    "path sync 1 socket:[77] at=995ms\n",
                                    NULL);
        _described_ one = describe(START REST("20ms"),
                                   "wait 1 fsync blocked=980ms\ncall 1 fsync count=4000\n"
                                   "path sync 1 /srv/lock at=1ms\npath sync 1 /srv/lock at=2ms\n",
                                   NULL);

        assert_cause(many, "sync-storm");
        assert_int_equal(evidence_number(many.analysis->findings, "files_seen"), 32);
        assert_string_equal(evidence_text(many.analysis->findings, "top_directory"), "/srv/db");
        assert_string_equal(evidence_text(many.analysis->findings, "first_path"), "/srv/db/base");
        assert_int_equal(evidence_number(one.analysis->findings, "files_seen"), 1);
        assert_non_null(strstr(one.analysis->findings[0].detail[0], "/srv/lock each time"));
}

/* ---- inotify-limit ---- */

#define FAILED_START(exit)                                                                                  \
        "start begin=0 until=12ms result=failed end=exit max-instances=128 max-watches=65536\n"             \
        "process 1 begin=0 exec=0 end=11ms exit=" exit " comm=app slot=ExecStart exe=/opt/app/app\n"        \
        "wait 1 on-cpu blocked=10ms\n"

static void no_instance_left_is_why_the_start_failed(void **state) {
        _described_ d = describe(FAILED_START("34304"), "call 1 inotify_init1 error=EMFILE count=1\n", NULL);
        const struct finding *f = finding_of(&d, "inotify-limit");

        assert_cause(d, "inotify-limit");
        assert_string_equal(evidence_text(f, "limit"), "fs.inotify.max_user_instances");
        assert_int_equal(evidence_number(f, "limit_value"), 128);
}

static void no_watch_left_is_why_the_start_failed(void **state) {
        _described_ d = describe(FAILED_START("256"),
                                 "call 1 inotify_init1 count=1\n"
                                 "call 1 inotify_add_watch error=ENOSPC count=1\n"
                                 "path inotify-limit 1 /opt/app/conf at=9ms result=-28\n",
                                 NULL);
        const struct finding *f = finding_of(&d, "inotify-limit");

        assert_cause(d, "inotify-limit");
        assert_string_equal(evidence_text(f, "path"), "/opt/app/conf");
        assert_int_equal(evidence_number(f, "limit_value"), 65536);
}

static void other_ends_are_not_for_the_inotify_limit(void **state) {
        _described_ copes = describe(FAILED_START("0"), "call 1 inotify_init1 error=EMFILE count=1\n", NULL);
        _described_ up = describe(START REST("900ms"), "call 1 inotify_init1 error=EMFILE count=1\n", NULL);
        _described_ descriptors = describe(FAILED_START("256"),
                                           "call 1 inotify_init1 error=EMFILE count=1\n"
                                           "call 1 openat error=EMFILE count=3\n",
                                           NULL);
        _described_ other = describe(FAILED_START("256"), "call 1 inotify_init1 count=1\n", NULL);

        assert_null(finding_of(&copes, "inotify-limit"));
        assert_null(finding_of(&up, "inotify-limit"));
        assert_null(finding_of(&descriptors, "inotify-limit"));
        assert_null(finding_of(&other, "inotify-limit"));
}

/* ---- call-storm ---- */

static void another_call_is_a_storm_of_its_own(void **state) {
        _described_ below =
                describe(START REST("100ms"), "wait 1 mmap blocked=900ms\ncall 1 mmap count=999\n", NULL);
        _described_ at =
                describe(START REST("100ms"), "wait 1 mmap blocked=900ms\ncall 1 mmap count=1000\n", NULL);

        assert_cause(below, "none");
        assert_cause(at, "call-storm");
        assert_string_equal(evidence_text(at.analysis->findings, "call"), "mmap");
}

static void idle_calls_are_no_storm(void **state) {
        _described_ d = describe(START REST("100ms"),
                                 "wait 1 epoll_wait blocked=900ms\ncall 1 epoll_wait count=100000\n", NULL);

        assert_null(finding_of(&d, "call-storm"));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(closing_what_is_not_open_is_a_storm_from_a_thousand),
                cmocka_unit_test(closing_open_files_is_none),
                cmocka_unit_test(setting_close_on_exec_on_all_counts_too),
                cmocka_unit_test(missing_files_are_a_storm_from_a_thousand),
                cmocka_unit_test(only_the_failing_part_of_the_time_counts),
                cmocka_unit_test(a_recursive_chown_is_a_walk),
                cmocka_unit_test(looking_at_files_by_name_is_no_walk),
                cmocka_unit_test(one_huge_directory_is_a_walk),
                cmocka_unit_test(a_watch_storm_is_not_called_a_walk),
                cmocka_unit_test(one_long_sync_is_enough),
                cmocka_unit_test(many_fsyncs_are_counted),
                cmocka_unit_test(calls_of_sync_say_what_they_wait_for),
                cmocka_unit_test(synced_files_are_named),
                cmocka_unit_test(no_instance_left_is_why_the_start_failed),
                cmocka_unit_test(no_watch_left_is_why_the_start_failed),
                cmocka_unit_test(other_ends_are_not_for_the_inotify_limit),
                cmocka_unit_test(another_call_is_a_storm_of_its_own),
                cmocka_unit_test(idle_calls_are_no_storm),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
