/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/config.h"
#include "common/fd.h"
#include "common/macro.h"

static unsigned complaints, last_line;

static void count(const char *path, unsigned line, const char *what) {
        complaints++;
        last_line = line;
}

static void put(const char *root, const char *path, const char *text) {
        char whole[512];
        FILE *f;

        snprintf(whole, sizeof(whole), "%s%s", root, path);
        for (char *slash = whole + strlen(root); (slash = strchr(slash + 1, '/'));) {
                *slash = '\0';
                (void) mkdir(whole, 0755);
                *slash = '/';
        }
        f = fopen(whole, "w");
        assert_non_null(f);
        fputs(text, f);
        fclose(f);
}

static int make_root(void **state) {
        char *root = strdup("/tmp/startprof-config-XXXXXX");

        complaints = last_line = 0;
        *state = mkdtemp(root);
        return *state ? 0 : -1;
}

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *where) {
        return remove(path);
}

static int remove_root(void **state) {
        int r = nftw(*state, remove_entry, 8, FTW_DEPTH | FTW_PHYS);

        free(*state);
        return r;
}

static void says(const char *root, const char *wanted) {
        _cleanup_(config_done) struct config c = CONFIG_NULL;
        char all[1024] = "";

        assert_int_equal(config_load(root, count, &c), 0);
        for (size_t i = 0; i < c.n_debug_directories; i++)
                snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s;", c.debug_directories[i]);
        assert_string_equal(all, wanted);
}

static void no_file_is_no_setting(void **state) {
        says(*state, "");
        assert_int_equal(complaints, 0);
}

static void only_the_first_main_file_counts(void **state) {
        put(*state, "/usr/lib/startprof/startprofd.conf", "[Symbols]\nDebugDirectories=/vendor\n");
        says(*state, "/vendor;");
        put(*state, "/etc/startprof/startprofd.conf", "[Symbols]\nDebugDirectories=/a \"/b c\"\t'/d'\n");
        says(*state, "/a;/b c;/d;");
}

static void drop_ins_are_read_by_name_and_the_nearer_hides_the_other(void **state) {
        put(*state, "/etc/startprof/startprofd.conf", "[Symbols]\nDebugDirectories=/main\n");
        put(*state, "/etc/startprof/startprofd.conf.d/20-b.conf", "[Symbols]\nDebugDirectories=/b\n");
        put(*state, "/usr/lib/startprof/startprofd.conf.d/10-a.conf", "[Symbols]\nDebugDirectories=/a\n");
        put(*state, "/usr/lib/startprof/startprofd.conf.d/20-b.conf",
            "[Symbols]\nDebugDirectories=/hidden\n");
        put(*state, "/run/startprof/startprofd.conf.d/15-none.other", "[Symbols]\nDebugDirectories=/no\n");
        says(*state, "/main;/a;/b;");
        put(*state, "/run/startprof/startprofd.conf.d/10-a.conf", "");
        says(*state, "/main;/b;");
        put(*state, "/run/startprof/startprofd.conf.d/15.conf", "[Symbols]\nDebugDirectories=\n");
        says(*state, "/b;");
}

static void comments_and_long_lines_are_those_of_systemd(void **state) {
        put(*state, "/etc/startprof/startprofd.conf",
            "# none\n; none\n\n[Symbols]\n  DebugDirectories = /a \\\n# between\n  /b\\\n /c  \n[Other]\n");
        says(*state, "/a;/b;/c;");
        assert_int_equal(complaints, 0);
}

static void what_is_wrong_is_told_and_left_out(void **state) {
        static const char *const lines[] = { "nonsense", "[Symbols", "DebugDirectory=/a",
                                             "DebugDirectories=a" };

        for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
                char text[256];

                complaints = 0;
                snprintf(text, sizeof(text), "[Symbols]\n%s\nDebugDirectories=/good\n", lines[i]);
                put(*state, "/etc/startprof/startprofd.conf", text);
                says(*state, "/good;");
                assert_int_equal(complaints, 1);
                assert_int_equal(last_line, 2);
        }
        complaints = 0;
        put(*state, "/etc/startprof/startprofd.conf", "[Other]\nDebugDirectories=/a\n");
        says(*state, "");
        assert_int_equal(complaints, 1);
}

static void every_truncation_is_read(void **state) {
        static const char text[] = "[Symbols]\nDebugDirectories=\"/a b\" \\\n/c\n";

        for (size_t cut = 0; cut < sizeof(text); cut++) {
                char copy[sizeof(text)];
                _cleanup_(config_done) struct config c = CONFIG_NULL;

                memcpy(copy, text, sizeof(text));
                copy[cut] = '\0';
                put(*state, "/etc/startprof/startprofd.conf", copy);
                assert_int_equal(config_load(*state, NULL, &c), 0);
        }
}

static void too_many_directories_are_cut(void **state) {
        char text[4096] = "[Symbols]\nDebugDirectories=";
        _cleanup_(config_done) struct config c = CONFIG_NULL;

        for (int i = 0; i < 2 * CONFIG_DIRECTORIES_MAX; i++)
                snprintf(text + strlen(text), sizeof(text) - strlen(text), "/%d ", i);
        put(*state, "/etc/startprof/startprofd.conf", text);
        assert_int_equal(config_load(*state, count, &c), 0);
        assert_int_equal(c.n_debug_directories, CONFIG_DIRECTORIES_MAX);
        assert_int_equal(complaints, 1);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(no_file_is_no_setting, make_root, remove_root),
                cmocka_unit_test_setup_teardown(only_the_first_main_file_counts, make_root, remove_root),
                cmocka_unit_test_setup_teardown(drop_ins_are_read_by_name_and_the_nearer_hides_the_other,
                                                make_root, remove_root),
                cmocka_unit_test_setup_teardown(comments_and_long_lines_are_those_of_systemd, make_root,
                                                remove_root),
                cmocka_unit_test_setup_teardown(what_is_wrong_is_told_and_left_out, make_root, remove_root),
                cmocka_unit_test_setup_teardown(every_truncation_is_read, make_root, remove_root),
                cmocka_unit_test_setup_teardown(too_many_directories_are_cut, make_root, remove_root),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
