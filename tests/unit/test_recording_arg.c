/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/recording_arg.h"
#include "common/atomic_file.h"
#include "common/fd.h"
#include "common/macro.h"

/* Every test runs in an empty directory of its own. */
static int enter_directory(void **state) {
        char *directory = strdup("/tmp/startprof-test-XXXXXX");

        *state = directory;
        return directory && mkdtemp(directory) && chdir(directory) == 0 ? 0 : -1;
}

static int leave_directory(void **state) {
        char *directory = *state;

        unlink("here");
        unlink("here.service");
        assert_int_equal(chdir("/"), 0);
        assert_int_equal(rmdir(directory), 0);
        free(directory);
        return 0;
}

static void write_file(const char *name, const void *data, size_t bytes) {
        assert_int_equal(write_file_atomic_at(AT_FDCWD, name, data, bytes, 0600), 0);
}

static void nothing_means_the_newest(void **state) {
        assert_int_equal(recording_arg_kind(NULL), RECORDING_ARG_NEWEST);
}

static void a_slash_makes_a_file(void **state) {
        assert_int_equal(recording_arg_kind("./x"), RECORDING_ARG_FILE);
        assert_int_equal(recording_arg_kind("/tmp/x.service"), RECORDING_ARG_FILE);
}

static void a_suffix_makes_a_unit_and_all_else_is_an_id(void **state) {
        assert_int_equal(recording_arg_kind("nginx.service"), RECORDING_ARG_UNIT);
        assert_int_equal(recording_arg_kind("getty@tty1.service"), RECORDING_ARG_UNIT);
        assert_int_equal(recording_arg_kind("nginx"), RECORDING_ARG_ID);
        assert_int_equal(recording_arg_kind("nginx.socket"), RECORDING_ARG_ID);
        assert_int_equal(recording_arg_kind(""), RECORDING_ARG_ID);
}

static void a_file_here_counts_when_it_begins_like_a_recording(void **state) {
        const struct rec_file_header header = { .magic = RECORDING_MAGIC, .version = RECORDING_VERSION };

        write_file("here", &header, sizeof(header));
        assert_int_equal(recording_arg_kind("here"), RECORDING_ARG_FILE);
        write_file("here.service", &header, sizeof(header));
        assert_int_equal(recording_arg_kind("here.service"), RECORDING_ARG_FILE);

        write_file("here", &header, sizeof(header) - 1);
        assert_int_equal(recording_arg_kind("here"), RECORDING_ARG_ID);
        write_file("here", "something else", 15);
        assert_int_equal(recording_arg_kind("here"), RECORDING_ARG_ID);
}

static void a_fifo_here_does_not_hold_it_up(void **state) {
        assert_int_equal(mkfifo("here", 0600), 0);
        assert_int_equal(recording_arg_kind("here"), RECORDING_ARG_ID);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(nothing_means_the_newest, enter_directory, leave_directory),
                cmocka_unit_test_setup_teardown(a_slash_makes_a_file, enter_directory, leave_directory),
                cmocka_unit_test_setup_teardown(a_suffix_makes_a_unit_and_all_else_is_an_id, enter_directory,
                                                leave_directory),
                cmocka_unit_test_setup_teardown(a_file_here_counts_when_it_begins_like_a_recording,
                                                enter_directory, leave_directory),
                cmocka_unit_test_setup_teardown(a_fifo_here_does_not_hold_it_up, enter_directory,
                                                leave_directory),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
