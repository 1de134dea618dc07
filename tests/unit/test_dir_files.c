/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/dir_files.h"
#include "common/fd.h"

static int make_root(void **state) {
        *state = strdup("/tmp/startprof-files-XXXXXX");
        return mkdtemp(*state) && chdir(*state) == 0 ? 0 : -1;
}

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *where) {
        return remove(path);
}

static int remove_root(void **state) {
        int r = chdir("/") == 0 ? nftw(*state, remove_entry, 16, FTW_DEPTH | FTW_PHYS) : -1;

        free(*state);
        return r;
}

static void touch(const char *name) {
        int fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

        assert_true(fd >= 0);
        close(fd);
}

static void all_files_are_listed_and_links_to_directories_are_not_followed(void **state) {
        const char *const directories[] = { ".", "missing" };
        static const char *const wanted[] = { "./b", "./loop", "./a/one", "./a/two" };
        _cleanup_(dir_files_freep) struct dir_files *d = NULL;

        assert_int_equal(mkdir("a", 0700), 0);
        assert_int_equal(symlink(".", "loop"), 0);
        assert_int_equal(mkfifo("fifo", 0600), 0);
        touch("b");
        touch("a/two");
        touch("a/one");
        assert_int_equal(dir_files_new(directories, ARRAY_SIZE(directories), &d), 0);
        for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
                assert_string_equal(dir_files_path(d, i), wanted[i]);
        assert_null(dir_files_path(d, ARRAY_SIZE(wanted)));
        assert_null(dir_files_path(d, SIZE_MAX));
}

static void depth_is_limited(void **state) {
        const char *const directories[] = { "." };
        _cleanup_(dir_files_freep) struct dir_files *d = NULL;
        char path[128] = ".";

        for (int i = 0; i < DIR_FILES_DEPTH_MAX + 1; i++) {
                snprintf(path + strlen(path), sizeof(path) - strlen(path), "/d");
                assert_int_equal(mkdir(path, 0700), 0);
        }
        snprintf(path + strlen(path), sizeof(path) - strlen(path), "/f");
        touch(path);
        assert_int_equal(dir_files_new(directories, 1, &d), 0);
        assert_null(dir_files_path(d, 0));
}

static void nothing_is_an_empty_list(void **state) {
        _cleanup_(dir_files_freep) struct dir_files *d = NULL;

        assert_int_equal(dir_files_new(NULL, 0, &d), 0);
        assert_null(dir_files_path(d, 0));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(
                        all_files_are_listed_and_links_to_directories_are_not_followed, make_root,
                        remove_root),
                cmocka_unit_test_setup_teardown(depth_is_limited, make_root, remove_root),
                cmocka_unit_test(nothing_is_an_empty_list),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
