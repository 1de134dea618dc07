/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/described.h"

/* A start of one second, of which the walk takes `blocked`; EXE and CWD of the process as given. */
#define START(exe, cwd)                                                                                     \
        "start begin=0 until=1s max-watches=2000\nprocess 1 begin=0 exec=0 comm=app slot=ExecStart "        \
        "exe=" exe " cwd=" cwd "\n"
#define TIME(blocked, rest) "wait 1 inotify_add_watch blocked=" blocked "\nwait 1 connect blocked=" rest "\n"
#define WATCHES(n)          "call 1 inotify_add_watch count=" n "\n"
#define WALK_ROOT           "path inotify 1 / at=20ms count=50 to=800ms\n"

static void a_thousand_watches_are_a_storm(void **state) {
        _described_ below = describe(START("/opt/app/app", "/"), TIME("900ms", "100ms"), WATCHES("999"),
                                     WALK_ROOT, NULL);
        _described_ at = describe(START("/opt/app/app", "/"), TIME("900ms", "100ms"), WATCHES("1000"),
                                  WALK_ROOT, NULL);

        assert_null(finding_of(&below, "inotify-watch-storm"));
        assert_cause(at, "inotify-watch-storm");
        assert_int_equal(evidence_number(at.analysis->findings, "watches"), 1000);
        assert_int_equal(at.analysis->findings[0].duration_ns, 900 * NSEC_PER_MSEC);
}

static void ten_watches_are_not_accused(void **state) {
        _described_ d =
                describe(START("/opt/app/app", "/"), TIME("900ms", "100ms"), WATCHES("10"), WALK_ROOT, NULL);

        assert_null(finding_of(&d, "inotify-watch-storm"));
}

static void failed_watches_do_not_count(void **state) {
        _described_ d = describe(START("/opt/app/app", "/"), TIME("900ms", "100ms"),
                                 "call 1 inotify_add_watch error=ENOSPC count=5000\n", NULL);

        assert_null(finding_of(&d, "inotify-watch-storm"));
}

static void it_is_the_verdict_from_a_quarter_of_the_start(void **state) {
        _described_ below = describe(START("/opt/app/app", "/"), TIME("249ms", "751ms"), WATCHES("5000"),
                                     WALK_ROOT, NULL);
        _described_ at = describe(START("/opt/app/app", "/"), TIME("250ms", "750ms"), WATCHES("5000"),
                                  WALK_ROOT, NULL);

        assert_cause(below, "none");
        assert_non_null(finding_of(&below, "inotify-watch-storm"));
        assert_cause(at, "inotify-watch-storm");
}

static void it_is_the_verdict_from_fifty_milliseconds(void **state) {
        static const char process[] =
                "process 1 begin=0 exec=0 comm=app slot=ExecStart exe=/opt/app/app cwd=/\n";
        _described_ below = describe("start begin=0 until=100ms\n", process, TIME("49ms", "51ms"),
                                     WATCHES("5000"), NULL);
        _described_ at = describe("start begin=0 until=100ms\n", process, TIME("50ms", "50ms"),
                                  WATCHES("5000"), NULL);

        assert_cause(below, "none");
        assert_cause(at, "inotify-watch-storm");
}

/* A minute of other work with a thousand watches in between: the watches explain little of it. */
static void watches_among_other_work_explain_little(void **state) {
        _described_ d = describe(
                "start begin=0 until=60s\nprocess 1 begin=0 exec=0 comm=app slot=ExecStart exe=/opt/a\n",
                "wait 1 on-cpu blocked=60s\nsamples 1 user from=0 to=60s count=5900\n",
                "samples 1 kernel call=inotify_add_watch from=1s to=59s count=10\n",
                "call 1 inotify_add_watch count=1500 first=100ms last=59s\n", NULL);

        assert_null(finding_of(&d, "inotify-watch-storm"));
        assert_cause(d, "cpu-bound");
}

static void user_code_around_the_calls_belongs_to_it(void **state) {
        _described_ d = describe(
                START("/opt/app/app", "/"), "wait 1 on-cpu blocked=1s\n",
                "samples 1 user from=500ms to=900ms count=30\nsamples 1 user from=0 to=490ms count=30\n",
                "samples 1 kernel call=inotify_add_watch from=500ms to=900ms count=40\n",
                "call 1 inotify_add_watch count=4000 first=490ms last=900ms\n", NULL);

        /* 400 ms in the calls and 300 of the 600 ms in user code; the span holds 410 ms. */
        assert_int_equal(finding_of(&d, "inotify-watch-storm")->duration_ns, 410 * NSEC_PER_MSEC);
}

static void the_working_directory_gets_a_drop_in(void **state) {
        _described_ d = describe(START("/opt/app/app", "/"), TIME("900ms", "100ms"), WATCHES("1800"),
                                 WALK_ROOT, NULL);
        const struct finding *f = d.analysis->findings;

        assert_int_equal(f->n_advice, 1);
        assert_string_equal(f->advice[0].dropin, "[Service]\nWorkingDirectory=/opt/app\n");
        assert_string_equal(evidence_text(f, "root"), "/");
        assert_string_equal(evidence_text(f, "working_directory"), "/");
        assert_non_null(strstr(f->summary, "the working directory is /"));
        assert_int_equal(evidence_number(f, "max_user_watches_percent"), 90);
        assert_non_null(strstr(f->detail[0], "ENOSPC"));
}

static void dotnet_is_told_by_its_threads_and_gets_the_variable(void **state) {
        static const char *const signs[] = {
                "samples 1 user from=0 to=1ms comm=\".NET Finalizer\"\n",
                "path missing 1 /appsettings.Production.json at=1ms\n",
                "module /usr/lib/dotnet/libcoreclr.so\nstack s\nframe f /usr/lib/dotnet/libcoreclr.so\n"
                "samples 1 user stack=s from=0 to=1ms\n",
                "module /opt/app/app\nstack s\nframe Program.Main /opt/app/app source=nativeaot\n"
                "samples 1 user stack=s from=0 to=1ms\n",
        };

        for (size_t i = 0; i < ARRAY_SIZE(signs); i++) {
                _described_ d = describe(START("/opt/app/app", "/"), TIME("900ms", "100ms"), WATCHES("1800"),
                                         signs[i], WALK_ROOT, NULL);
                const struct finding *f = finding_of(&d, "inotify-watch-storm");

                assert_int_equal(f->n_advice, 2);
                assert_string_equal(
                        f->advice[1].dropin,
                        "[Service]\nEnvironment=DOTNET_hostBuilder__reloadConfigOnChange=false\n");
        }
}

static void a_system_directory_is_never_advised(void **state) {
        static const char *const exes[] = { "/usr/bin/app", "/usr/local/bin/app", "/bin/app",
                                            "/usr/lib/app/app" };

        for (size_t i = 0; i < ARRAY_SIZE(exes); i++) {
                _described_ plain = describe(
                        "start begin=0 until=1s\nprocess 1 begin=0 exec=0 comm=app cwd=/ exe=", exes[i],
                        "\n", TIME("900ms", "100ms"), WATCHES("1800"), WALK_ROOT, NULL);
                _described_ state_dir =
                        describe("start begin=0 until=1s\nproperty StateDirectory app\n"
                                 "process 1 begin=0 exec=0 comm=app cwd=/ exe=",
                                 exes[i], "\n", TIME("900ms", "100ms"), WATCHES("1800"), WALK_ROOT, NULL);

                assert_null(plain.analysis->findings[0].advice[0].dropin);
                assert_string_equal(state_dir.analysis->findings[0].advice[0].dropin,
                                    "[Service]\nWorkingDirectory=/var/lib/app\n");
        }
}

static void dotnet_in_a_system_directory_gets_only_the_variable(void **state) {
        _described_ d = describe(
                START("/usr/bin/app", "/"), TIME("900ms", "100ms"), WATCHES("1800"), WALK_ROOT,
                "path open 1 /appsettings.json at=1ms\npath missing 1 /appsettings.X.json at=1ms\n", NULL);

        assert_int_equal(d.analysis->findings[0].n_advice, 1);
        assert_non_null(strstr(d.analysis->findings[0].advice[0].dropin, "DOTNET_"));
}

static void a_directory_that_already_is_the_working_directory_is_not_advised(void **state) {
        _described_ d = describe(START("/srv/app/app", "/srv/app"), TIME("900ms", "100ms"), WATCHES("1800"),
                                 "path inotify 1 /srv/app at=1ms count=50 to=900ms\n", NULL);

        assert_int_equal(d.analysis->findings[0].n_advice, 1);
        assert_null(d.analysis->findings[0].advice[0].dropin);
}

static void values_in_drop_ins_are_escaped(void **state) {
        _described_ percent = describe(START("\"/opt/50% off/app\"", "/"), TIME("900ms", "100ms"),
                                       WATCHES("1800"), WALK_ROOT, NULL);
        _described_ newline = describe(START("\"/opt/a\\nExecStart=b/app\"", "/"), TIME("900ms", "100ms"),
                                       WATCHES("1800"), WALK_ROOT, NULL);

        assert_string_equal(percent.analysis->findings[0].advice[0].dropin,
                            "[Service]\nWorkingDirectory=/opt/50%% off\n");
        assert_null(newline.analysis->findings[0].advice[0].dropin);
}

/* FC-16: the working directory is right, the root is not it. */
static void a_missing_directory_is_named_with_the_root(void **state) {
        _described_ d =
                describe(START("/opt/app/app", "/opt/app"), TIME("900ms", "100ms"), WATCHES("1800"),
                         "path missing 1 /etc/ld.so.preload at=1ms\npath missing 1 /myapp/conf at=10ms\n"
                         "path missing 1 /myapp at=11ms\n",
                         WALK_ROOT, "path missing 1 /later at=900ms\n", NULL);
        const struct finding *f = d.analysis->findings;

        assert_string_equal(evidence_text(f, "root"), "/");
        assert_string_equal(evidence_text(f, "missing_path"), "/myapp");
        assert_non_null(strstr(f->summary, "watches under / in"));
        assert_non_null(strstr(f->summary, "/myapp does not exist"));
        assert_int_equal(f->n_advice, 1);
        assert_null(f->advice[0].dropin);
        assert_non_null(strstr(f->advice[0].text, "Create /myapp"));
}

/* A host watches its own directory first, before it looks for the missing one. */
static void the_look_up_before_the_root_counts_not_before_the_first_watch(void **state) {
        _described_ d = describe(START("/opt/app/app", "/opt/app"), TIME("900ms", "100ms"), WATCHES("1800"),
                                 "path inotify 1 /opt/app/ at=5ms\npath missing 1 /myapp at=11ms\n",
                                 WALK_ROOT, NULL);

        assert_string_equal(evidence_text(d.analysis->findings, "missing_path"), "/myapp");
}

static void the_root_is_what_most_watches_lie_below(void **state) {
        _described_ d = describe(
                START("/opt/app/app", "/opt/app"), TIME("900ms", "100ms"), WATCHES("1800"),
                "path inotify 1 /etc/localtime at=1ms\npath inotify 1 /srv/data at=2ms count=60 to=900ms\n",
                NULL);

        assert_string_equal(evidence_text(d.analysis->findings, "root"), "/srv/data");
        assert_string_equal(evidence_text(d.analysis->findings, "first_path"), "/etc/localtime");
}

static void relative_paths_follow_the_working_directory(void **state) {
        _described_ d = describe(START("/opt/app/app", "/"), TIME("900ms", "100ms"), WATCHES("1800"),
                                 "path chdir 1 /srv at=1ms\npath chdir 1 x at=2ms\npath inotify 1 . at=3ms "
                                 "count=60 to=900ms\n",
                                 NULL);

        assert_string_equal(evidence_text(d.analysis->findings, "working_directory"), "/srv/x");
        assert_string_equal(evidence_text(d.analysis->findings, "root"), "/srv/x");
}

static void the_function_is_the_one_behind_the_wrappers(void **state) {
        _described_ d = describe(
                START("/opt/app/app", "/"),
                "wait 1 on-cpu blocked=1s\nmodule /opt/app/app\nmodule /lib/libc.so.6\n",
                "stack s\nframe inotify_add_watch /lib/libc.so.6\n"
                "frame \"Watcher::add_tree(std::string const&)\" /opt/app/app\nframe main /opt/app/app\n"
                "samples 1 kernel call=inotify_add_watch stack=s from=0 to=1s count=90\n",
                WATCHES("1800"), WALK_ROOT, NULL);
        const struct finding *f = d.analysis->findings;

        assert_string_equal(evidence_text(f, "function"), "Watcher::add_tree");
        assert_int_not_equal(f->stack, REC_NONE);
}

static void without_any_path_the_storm_is_still_told(void **state) {
        _described_ d = describe(START("/opt/app/app", "/"), TIME("900ms", "100ms"), WATCHES("1800"), NULL);

        assert_cause(d, "inotify-watch-storm");
        assert_string_equal(evidence_text(d.analysis->findings, "root"), "");
        assert_null(d.analysis->findings[0].advice[0].dropin);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_thousand_watches_are_a_storm),
                cmocka_unit_test(ten_watches_are_not_accused),
                cmocka_unit_test(failed_watches_do_not_count),
                cmocka_unit_test(it_is_the_verdict_from_a_quarter_of_the_start),
                cmocka_unit_test(it_is_the_verdict_from_fifty_milliseconds),
                cmocka_unit_test(watches_among_other_work_explain_little),
                cmocka_unit_test(user_code_around_the_calls_belongs_to_it),
                cmocka_unit_test(the_working_directory_gets_a_drop_in),
                cmocka_unit_test(dotnet_is_told_by_its_threads_and_gets_the_variable),
                cmocka_unit_test(a_system_directory_is_never_advised),
                cmocka_unit_test(dotnet_in_a_system_directory_gets_only_the_variable),
                cmocka_unit_test(a_directory_that_already_is_the_working_directory_is_not_advised),
                cmocka_unit_test(values_in_drop_ins_are_escaped),
                cmocka_unit_test(a_missing_directory_is_named_with_the_root),
                cmocka_unit_test(the_look_up_before_the_root_counts_not_before_the_first_watch),
                cmocka_unit_test(the_root_is_what_most_watches_lie_below),
                cmocka_unit_test(relative_paths_follow_the_working_directory),
                cmocka_unit_test(the_function_is_the_one_behind_the_wrappers),
                cmocka_unit_test(without_any_path_the_storm_is_still_told),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
