/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "client/daemon.h"
#include "client/message.h"
#include "client/progress.h"
#include "common/macro.h"

static void refused_as(const char *error, json_t *parameters, int status, const char *part) {
        const struct varlink_answer answer = { .error = error, .parameters = parameters, .fd = -EBADF };
        _cleanup_free_ char *message = NULL;

        assert_int_equal(daemon_refusal(&answer, &message), status);
        if (!strstr(message, part))
                fail_msg("'%s' does not say '%s'", message, part);
        json_decref(parameters);
}

static void errors_of_the_daemon_say_what_to_do(void **state) {
        refused_as(VARLINK_ERROR_PERMISSION_DENIED, NULL, EXIT_CANNOT_PROFILE, "group startprof");
        refused_as(PROFILER_ERROR_ALREADY_ARMED, json_pack("{s:s}", "unit", "x.service"),
                   EXIT_CANNOT_PROFILE, "x.service is being profiled by another client");
        refused_as(PROFILER_ERROR_TOO_MANY, json_pack("{s:s, s:i}", "what", "sessions", "limit", 16),
                   EXIT_CANNOT_PROFILE, "at most 16 sessions");
        refused_as(PROFILER_ERROR_CANNOT_PROFILE, json_pack("{s:s}", "reason", "the kernel has no BTF"),
                   EXIT_CANNOT_PROFILE, "the kernel has no BTF");
        refused_as(PROFILER_ERROR_NO_SUCH_UNIT, json_pack("{s:s}", "unit", "x.service"), EXIT_NOT_FOUND,
                   "x.service");
        refused_as(PROFILER_ERROR_NO_SUCH_RECORDING, json_pack("{s:s}", "recording", "x"), EXIT_NOT_FOUND,
                   "startprof list");
        refused_as(PROFILER_ERROR_FAILED, json_pack("{s:s}", "reason", "it broke"), EXIT_CANNOT_PROFILE,
                   "it broke");
        refused_as(VARLINK_ERROR_METHOD_NOT_FOUND, NULL, EXIT_CANNOT_PROFILE, "another version");
        refused_as("com.example.New", NULL, EXIT_CANNOT_PROFILE, "com.example.New");
}

static void errors_without_their_parameters_are_told_all_the_same(void **state) {
        refused_as(PROFILER_ERROR_CANNOT_PROFILE, NULL, EXIT_CANNOT_PROFILE, "cannot profile");
        refused_as(PROFILER_ERROR_TOO_MANY, json_pack("{s:s}", "limit", "many"), EXIT_CANNOT_PROFILE,
                   "busy");
        refused_as(PROFILER_ERROR_ALREADY_ARMED, json_pack("{s:i}", "unit", 7), EXIT_CANNOT_PROFILE,
                   "another client");
}

static void progress_is(json_t *progress, unsigned columns, const char *expected) {
        _cleanup_free_ char *line = progress_line("x.service", progress, columns);

        assert_string_equal(line, expected);
        json_decref(progress);
}

static void the_progress_line_tells_what_there_is(void **state) {
        progress_is(json_pack("{s:s, s:i, s:i, s:i, s:i, s:i, s:s}", "state", "starting", "elapsed_usec",
                              3200000, "samples", 312, "calls", 140222, "inotify_watches", 46259,
                              "processes", 3, "hottest", "inotify_add_watch"),
                    200,
                    "x.service: starting for 3.2s, 312 samples, 140,222 calls, 46,259 inotify watches, 3 "
                    "processes, "
                    "hottest: inotify_add_watch");
        progress_is(json_pack("{s:s, s:i, s:n}", "state", "armed", "samples", 0, "hottest"), 200,
                    "x.service: waiting for its start");
        progress_is(json_pack("{s:s, s:i, s:i}", "state", "queued", "processes", 1, "samples", 1), 200,
                    "x.service: queued, 1 sample, 1 process");
        progress_is(NULL, 200, "x.service: ");
}

static void the_progress_line_fits_and_is_safe(void **state) {
        progress_is(json_pack("{s:s, s:s}", "state", "starting", "hottest", "a\x1b[2Jb"), 200,
                    "x.service: starting, hottest: a\\x1b[2Jb");
        progress_is(json_pack("{s:s}", "state", "starting"), 12, "x.service: s");
        /* never half a character */
        progress_is(json_pack("{s:s}", "state", "\xc3\xa4\xc3\xb6\xc3\xbc"), 12, "x.service: \xc3\xa4");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(errors_of_the_daemon_say_what_to_do),
                cmocka_unit_test(errors_without_their_parameters_are_told_all_the_same),
                cmocka_unit_test(the_progress_line_tells_what_there_is),
                cmocka_unit_test(the_progress_line_fits_and_is_safe),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
