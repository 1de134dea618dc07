/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/options.h"
#include "common/macro.h"
#include "proto/varlink.h"

enum { ARGUMENTS_MAX = 24 };

/* A command line as the shell would split it. */
struct line {
        char *argv[ARGUMENTS_MAX + 1];
        int argc;
        char text[512];
};

static void split(struct line *line, const char *text) {
        char *rest = line->text, *word;

        line->argc = 0;
        snprintf(line->text, sizeof(line->text), "startprof %s", text);
        while ((word = strsep(&rest, " ")))
                if (*word)
                        line->argv[line->argc++] = word;
        line->argv[line->argc] = NULL;
}

static void accepts(const char *text, struct line *line, struct options *ret) {
        char *error = NULL;

        split(line, text);
        assert_int_equal(options_parse(line->argc, line->argv, ret, &error), 0);
        assert_null(error);
}

/* The line must be refused with one sentence that holds `part`, and leave the result alone. */
static void refuses(const char *text, const char *part) {
        struct options o = { .frequency_hz = 4711 };
        char *error = NULL;
        struct line line;

        split(&line, text);
        assert_int_equal(options_parse(line.argc, line.argv, &o, &error), -EINVAL);
        assert_int_equal(o.frequency_hz, 4711);
        assert_non_null(error);
        if (!strstr(error, part))
                fail_msg("'%s' says '%s', not '%s'", text, error, part);
        assert_null(strchr(error, '\n'));
        free(error);
}

static void nothing_lists_the_recordings(void **state) {
        struct options o;
        struct line line;

        accepts("", &line, &o);
        assert_int_equal(o.command, COMMAND_LIST);
        accepts("--json=short", &line, &o);
        assert_int_equal(o.command, COMMAND_LIST);
        assert_int_equal(o.json, JSON_SHORT);
}

static void a_unit_is_profiled_with_sane_defaults(void **state) {
        struct options o;
        struct line line;

        accepts("nginx", &line, &o);
        assert_int_equal(o.command, COMMAND_RUN);
        assert_int_equal(o.n_arguments, 1);
        assert_string_equal(o.arguments[0], "nginx");
        assert_int_equal(o.frequency_hz, 99);
        assert_false(o.restart);
        assert_false(o.wait);
        assert_null(o.until);
        assert_int_equal(o.until_usec, 0);
        assert_true(o.timeout_usec == UINT64_MAX);
        assert_int_equal(o.json, JSON_OFF);
        assert_string_equal(o.socket, PROFILER_SOCKET);
}

static void options_are_found_before_and_behind_the_unit(void **state) {
        struct options o;
        struct line line;

        accepts("-F 199 nginx --restart --until listen --timeout=90s --debug-dir=/a --debug-dir /b -o x.rec "
                "--flamegraph=x.svg --json=pretty --socket=/run/x",
                &line, &o);
        assert_int_equal(o.command, COMMAND_RUN);
        assert_int_equal(o.frequency_hz, 199);
        assert_true(o.restart);
        assert_string_equal(o.until, "listen");
        assert_int_equal(o.timeout_usec, 90 * USEC_PER_SEC);
        assert_int_equal(o.n_debug_dirs, 2);
        assert_string_equal(o.debug_dirs[0], "/a");
        assert_string_equal(o.debug_dirs[1], "/b");
        assert_string_equal(o.output, "x.rec");
        assert_string_equal(o.flamegraph, "x.svg");
        assert_int_equal(o.json, JSON_PRETTY);
        assert_string_equal(o.socket, "/run/x");
}

static void the_last_until_counts(void **state) {
        struct options o;
        struct line line;

        accepts("--until=exit --until=1.5s nginx", &line, &o);
        assert_null(o.until);
        assert_int_equal(o.until_usec, 1500 * USEC_PER_MSEC);
        accepts("--until=1.5s --until=exit nginx", &line, &o);
        assert_string_equal(o.until, "exit");
        assert_int_equal(o.until_usec, 0);
}

static void subcommands_take_their_arguments(void **state) {
        struct options o;
        struct line line;

        accepts("list a b c", &line, &o);
        assert_int_equal(o.command, COMMAND_LIST);
        assert_int_equal(o.n_arguments, 3);
        accepts("info", &line, &o);
        assert_int_equal(o.command, COMMAND_INFO);
        assert_int_equal(o.n_arguments, 0);
        accepts("info ./x", &line, &o);
        assert_string_equal(o.arguments[0], "./x");
        accepts("export x -o - --format=folded", &line, &o);
        assert_int_equal(o.command, COMMAND_EXPORT);
        assert_string_equal(o.output, "-");
        assert_string_equal(o.format, "folded");
        accepts("status", &line, &o);
        assert_int_equal(o.command, COMMAND_STATUS);
        accepts("--help nginx", &line, &o);
        assert_int_equal(o.command, COMMAND_HELP);
        accepts("--version", &line, &o);
        assert_int_equal(o.command, COMMAND_VERSION);
}

static void a_unit_may_have_the_name_of_a_subcommand(void **state) {
        struct options o;
        struct line line;

        accepts("list.service", &line, &o);
        assert_int_equal(o.command, COMMAND_RUN);
}

static void the_frequency_has_a_range(void **state) {
        struct options o;
        struct line line;

        accepts("-F1 x", &line, &o);
        assert_int_equal(o.frequency_hz, 1);
        accepts("-F10000 x", &line, &o);
        assert_int_equal(o.frequency_hz, 10000);
        refuses("-F0 x", "from 1 to 10000");
        refuses("-F10001 x", "from 1 to 10000");
        refuses("--frequency=-1 x", "from 1 to 10000");
        refuses("--frequency=99Hz x", "--frequency=99Hz");
        refuses("--frequency=99999999999999999999 x", "from 1 to 10000");
        refuses("--frequency= x", "--frequency=");
}

static void nonsense_is_named(void **state) {
        refuses("--frobnicate x", "unknown option '--frobnicate'");
        refuses("-z x", "unknown option '-z'");
        refuses("--wait=yes x", "--wait takes no value");
        refuses("x --output", "--output needs a value");
        refuses("x -o", "--output needs a value");
        refuses("--until=soon x", "'active', 'listen', 'exit' or a time");
        refuses("--until=0 x", "--until=0");
        refuses("--until=infinity x", "--until=infinity");
        refuses("--timeout=never x", "--timeout=never");
        refuses("--timeout=0 x", "--timeout=0");
        refuses("--json=xml x", "'short', 'pretty' or 'off'");
        refuses("a b", "what is 'b' for?");
        refuses("info a b", "what is 'b' for?");
        refuses("status a", "takes no arguments");
        refuses("--wait --restart x", "choose one");
        refuses("export x", "where to?");
}

static void options_of_another_command_are_named(void **state) {
        refuses("info --restart x", "--restart means nothing to 'startprof info'");
        refuses("--format=svg nginx", "--format means nothing to 'startprof UNIT'");
        refuses("list --flamegraph=x.svg", "--flamegraph means nothing to 'startprof list'");
        refuses("--restart", "--restart needs a unit: startprof --restart UNIT");
        refuses("--until=exit", "--until needs a unit: startprof --until=WHEN UNIT");
}

static void what_is_not_there_yet_says_so(void **state) {
        refuses("--user nginx", "not supported yet");
        refuses("-H host nginx", "not supported yet");
        refuses("--host=host nginx", "not supported yet");
        refuses("-M box nginx", "not supported");
        refuses("diff a b", "cannot be compared yet");
}

static void too_many_directories_are_refused(void **state) {
        char text[512] = "x";

        for (int i = 0; i <= DEBUG_DIR_MAX; i++)
                snprintf(text + strlen(text), sizeof(text) - strlen(text), " --debug-dir=/%d", i);
        refuses(text, "at most 16");
}

static void help_names_every_option_that_can_be_used(void **state) {
        static const char *const names[] = { "--frequency=HZ",  "--restart",    "--wait",
                                             "--until=",        "--timeout=",   "--flamegraph",
                                             "--output=",       "--format=",    "--debug-dir=",
                                             "--json=",         "--socket=",    "--help",
                                             "--version",       "-F, ",         "startprof info",
                                             "--no-debuginfod", "--all-symbols" };
        _cleanup_free_ char *text = NULL;
        size_t bytes;
        FILE *out = open_memstream(&text, &bytes);

        options_help(out);
        fclose(out);
        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (!strstr(text, names[i]))
                        fail_msg("--help does not say %s", names[i]);
        assert_null(strstr(text, "--user"));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(nothing_lists_the_recordings),
                cmocka_unit_test(a_unit_is_profiled_with_sane_defaults),
                cmocka_unit_test(options_are_found_before_and_behind_the_unit),
                cmocka_unit_test(the_last_until_counts),
                cmocka_unit_test(subcommands_take_their_arguments),
                cmocka_unit_test(a_unit_may_have_the_name_of_a_subcommand),
                cmocka_unit_test(the_frequency_has_a_range),
                cmocka_unit_test(nonsense_is_named),
                cmocka_unit_test(options_of_another_command_are_named),
                cmocka_unit_test(what_is_not_there_yet_says_so),
                cmocka_unit_test(too_many_directories_are_refused),
                cmocka_unit_test(help_names_every_option_that_can_be_used),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
