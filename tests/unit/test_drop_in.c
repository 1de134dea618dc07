/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/drop_in.h"
#include "client/perf_map.h"
#include "common/fd.h"

#define LINES "[Service]\nEnvironment=A=1\n"

/* A directory as /run/systemd/system, and how often systemd was told to read it again. */
static char directory[64];
static int directory_fd = -EBADF, reloads_fd = -EBADF, reload_error;

/* In the keeper, too, which has closed what we had open. */
static int count_reload(void) {
        _cleanup_close_ int fd = -EBADF;
        char path[128];

        snprintf(path, sizeof(path), "%s/reloads", directory);
        fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
        if (fd < 0 || write(fd, "r", 1) != 1)
                return -EBADF;
        return reload_error;
}

static int reloads(void) {
        struct stat st;

        assert_int_equal(fstat(reloads_fd, &st), 0);
        return (int) st.st_size;
}

static int setup(void **state) {
        snprintf(directory, sizeof(directory), "/tmp/startprof-dropin-XXXXXX");
        assert_non_null(mkdtemp(directory));
        directory_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(directory_fd >= 0);
        reloads_fd = openat(directory_fd, "reloads", O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        assert_true(reloads_fd >= 0);
        reload_error = 0;
        return 0;
}

static int teardown(void **state) {
        static const char *const files[] = { "x.service.d/zz-startprof.conf",
                                             "x.service.d/.zz-startprof.half", "x.service.d/mine.conf",
                                             "reloads" };

        for (size_t i = 0; i < ARRAY_SIZE(files); i++)
                (void) unlinkat(directory_fd, files[i], 0);
        (void) unlinkat(directory_fd, "x.service.d", AT_REMOVEDIR);
        reloads_fd = fd_close(reloads_fd);
        directory_fd = fd_close(directory_fd);
        return rmdir(directory);
}

static bool is_there(const char *name) {
        return faccessat(directory_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void put(const char *name, const char *text) {
        _cleanup_close_ int fd = -EBADF;

        (void) mkdirat(directory_fd, "x.service.d", 0755);
        fd = openat(directory_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        assert_true(fd >= 0);
        assert_int_equal(fd_write_full(fd, text, strlen(text)), 0);
}

static struct drop_in *make(void) {
        struct drop_in *d = NULL;

        assert_int_equal(drop_in_new(directory, "x.service", LINES, count_reload, &d), 0);
        return d;
}

static void it_is_there_until_it_is_removed(void **state) {
        struct drop_in *d = make();
        _cleanup_free_ char *text = NULL;

        assert_int_equal(reloads(), 1);
        assert_int_equal(read_file_at(directory_fd, "x.service.d/zz-startprof.conf", 4096, &text, NULL), 0);
        assert_non_null(startswith(text, "# Made by startprof"));
        assert_non_null(endswith(text, "\n" LINES));
        assert_int_equal(drop_in_remove(d), 0);
        assert_int_equal(reloads(), 2);
        assert_false(is_there("x.service.d"));
}

static void what_others_have_there_stays(void **state) {
        put("x.service.d/mine.conf", "[Service]\n");
        assert_int_equal(drop_in_remove(make()), 0);
        assert_true(is_there("x.service.d/mine.conf"));
        assert_false(is_there("x.service.d/zz-startprof.conf"));
}

static void a_second_one_for_the_unit_leaves_the_first_alone(void **state) {
        struct drop_in *first = make(), *second = NULL;

        assert_int_equal(drop_in_new(directory, "x.service", LINES, count_reload, &second), -EBUSY);
        assert_null(second);
        assert_true(is_there("x.service.d/zz-startprof.conf"));
        assert_false(is_there("x.service.d/.zz-startprof.half"));
        assert_int_equal(drop_in_remove(first), 0);
        assert_false(is_there("x.service.d"));
}

static void without_a_reload_nothing_is_left(void **state) {
        struct drop_in *d = NULL;

        reload_error = -EIO;
        assert_int_equal(drop_in_new(directory, "x.service", LINES, count_reload, &d), -EIO);
        assert_null(d);
        assert_false(is_there("x.service.d"));
}

static void a_directory_that_is_not_there_is_an_error(void **state) {
        struct drop_in *d = NULL;

        assert_int_equal(drop_in_new("/nonexistent", "x.service", LINES, count_reload, &d), -ENOENT);
        assert_int_equal(drop_in_sweep("/nonexistent", count_reload), 0);
        assert_int_equal(reloads(), 0);
}

/* Waits for the keeper of a drop-in whose maker was killed: it holds a lock for as long as it lives. */
static void when_its_maker_is_killed_the_keeper_removes_it(void **state) {
        _cleanup_close_ int file = -EBADF;
        int go[2], status;
        pid_t pid;
        char c;

        assert_int_equal(pipe2(go, O_CLOEXEC), 0);
        pid = fork();
        if (pid == 0) {
                struct drop_in *d = NULL;

                if (drop_in_new(directory, "x.service", LINES, count_reload, &d) < 0 ||
                    write(go[1], "g", 1) != 1)
                        _exit(1);
                pause();
                _exit(1);
        }
        fd_close(go[1]);
        assert_int_equal(read(go[0], &c, 1), 1);
        file = openat(directory_fd, "x.service.d/zz-startprof.conf", O_RDONLY | O_CLOEXEC);
        assert_true(file >= 0);
        assert_int_equal(flock(file, LOCK_EX | LOCK_NB), -1);
        assert_int_equal(drop_in_sweep(directory, count_reload), 0); /* it lives */

        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(flock(file, LOCK_EX), 0);
        assert_false(is_there("x.service.d"));
        assert_int_equal(reloads(), 2);
        fd_close(go[0]);
}

static void what_a_crash_left_is_swept(void **state) {
        _cleanup_free_ char *text = NULL;
        struct drop_in *d = make();

        assert_int_equal(read_file_at(directory_fd, "x.service.d/zz-startprof.conf", 4096, &text, NULL), 0);
        assert_int_equal(drop_in_remove(d), 0);
        put("x.service.d/zz-startprof.conf", text);
        put("x.service.d/.zz-startprof.half", "");
        assert_int_equal(drop_in_sweep(directory, count_reload), 2);
        assert_int_equal(reloads(), 3);
        assert_false(is_there("x.service.d"));
        assert_int_equal(drop_in_sweep(directory, count_reload), 0);
        assert_int_equal(reloads(), 3);
}

static void a_file_of_that_name_that_is_not_ours_is_not_swept(void **state) {
        put("x.service.d/zz-startprof.conf", "[Service]\nEnvironment=MINE=1\n");
        assert_int_equal(drop_in_sweep(directory, count_reload), 0);
        assert_true(is_there("x.service.d/zz-startprof.conf"));
        assert_int_equal(unlinkat(directory_fd, "x.service.d/zz-startprof.conf", 0), 0);
        assert_int_equal(symlinkat("/etc/passwd", directory_fd, "x.service.d/zz-startprof.conf"), 0);
        assert_int_equal(drop_in_sweep(directory, count_reload), 0);
        assert_true(is_there("x.service.d/zz-startprof.conf"));
        assert_int_equal(reloads(), 0);
}

static void the_lines_of_a_perf_map_keep_what_node_is_told_already(void **state) {
        _cleanup_free_ char *plain = perf_map_lines(NULL), *more = perf_map_lines("--a=\"50%\" \\x\n--b");

        assert_string_equal(plain, "[Service]\n"
                                   "Environment=DOTNET_PerfMapEnabled=1\n"
                                   "Environment=PYTHONPERFSUPPORT=1\n"
                                   "Environment=\"NODE_OPTIONS=--perf-basic-prof\"\n");
        assert_non_null(strstr(
                more, "Environment=\"NODE_OPTIONS=--a=\\\"50%%\\\" \\\\x\\x0a--b --perf-basic-prof\"\n"));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(it_is_there_until_it_is_removed),
                TEST(what_others_have_there_stays),
                TEST(a_second_one_for_the_unit_leaves_the_first_alone),
                TEST(without_a_reload_nothing_is_left),
                TEST(a_directory_that_is_not_there_is_an_error),
                TEST(when_its_maker_is_killed_the_keeper_removes_it),
                TEST(what_a_crash_left_is_swept),
                TEST(a_file_of_that_name_that_is_not_ours_is_not_swept),
                cmocka_unit_test(the_lines_of_a_perf_map_keep_what_node_is_told_already),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
