/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/macro.h"
#include "common/procfs.h"

/* A small /proc of our own making, so that what is in it can be hostile. */
struct tree {
        char path[64];
        int fd;
};

static void put(const struct tree *t, const char *name, const char *text, size_t bytes) {
        _cleanup_close_ int fd = openat(t->fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

        assert_true(fd >= 0);
        assert_int_equal(fd_write_full(fd, text, bytes), 0);
}

#define PUT(t, name, text) put(t, name, text, sizeof(text) - 1)

static int set_up(void **state) {
        struct tree *t = calloc(1, sizeof(*t));

        assert_non_null(t);
        snprintf(t->path, sizeof(t->path), "/tmp/test_procfs.XXXXXX");
        assert_non_null(mkdtemp(t->path));
        t->fd = open(t->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_int_equal(mkdirat(t->fd, "7", 0700), 0);
        assert_int_equal(mkdirat(t->fd, "self", 0700), 0);
        *state = t;
        return 0;
}

static int tear_down(void **state) {
        static const char *const files[] = { "7/status",       "7/stat",   "7/cmdline",
                                             "7/maps",         "7/cgroup", "7/exe",
                                             "self/mountinfo", "n",        "7/task/8/status" };
        struct tree *t = *state;

        for (size_t i = 0; i < ARRAY_SIZE(files); i++)
                (void) unlinkat(t->fd, files[i], 0);
        (void) unlinkat(t->fd, "7/task/8", AT_REMOVEDIR);
        (void) unlinkat(t->fd, "7/task", AT_REMOVEDIR);
        (void) unlinkat(t->fd, "7", AT_REMOVEDIR);
        (void) unlinkat(t->fd, "self", AT_REMOVEDIR);
        fd_close(t->fd);
        (void) rmdir(t->path);
        free(t);
        return 0;
}

#define STAT_TAIL " S 3 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4242 9 10\n"

static void a_name_ends_at_the_last_parenthesis(void **state) {
        struct procfs_stat stat;
        struct tree *t = *state;

        PUT(t, "7/stat", "7 (a) R 1 (x\n)" STAT_TAIL);
        assert_int_equal(procfs_stat(t->fd, 7, &stat), 0);
        assert_string_equal(stat.comm, "a) R 1 (x\n");
        assert_int_equal(stat.state, 'S');
        assert_int_equal(stat.parent, 3);
        assert_int_equal(stat.start_ticks, 4242);
}

static void half_lines_are_refused(void **state) {
        static const char whole[] = "7 (sh)" STAT_TAIL;
        struct procfs_stat stat = { .parent = 99 };
        struct tree *t = *state;

        for (size_t cut = 0; cut < sizeof("7 (sh) S 3") - 1; cut++) {
                put(t, "7/stat", whole, cut);
                assert_true(procfs_stat(t->fd, 7, &stat) < 0);
                assert_int_equal(stat.parent, 99);
        }
        assert_true(procfs_stat(t->fd, 8, &stat) < 0);
}

static void the_innermost_pid_and_all_users_are_read(void **state) {
        struct tree *t = *state;
        struct procfs_status status = {};

        PUT(t, "7/status",
            "Name:\tx\\nUid:\t9\nState:\tS (sleeping)\nUid:\t1\t2\t3\t4\nGid:\t5\t5\t5\t5\n"
            "NSpid:\t7\t42\t1\nThreads:\t1\n");
        assert_int_equal(procfs_status(t->fd, 7, &status), 0);
        assert_int_equal(status.inner_pid, 1);
        for (uint32_t i = 0; i < 4; i++)
                assert_int_equal(status.uids[i], i + 1);
        PUT(t, "7/status", "Name:\tx\nUid:\t0\t0\t0\t0\nNSpid:\t7\n");
        assert_int_equal(procfs_status(t->fd, 7, &status), 0);
        assert_int_equal(status.inner_pid, 7);
}

static void a_status_without_its_lines_is_refused(void **state) {
        static const char *const texts[] = {
                "",
                "Name:\tx\n",
                "Name:\tx\nUid:\t0\t0\t0\t0\n",
                "Name:\tx\nNSpid:\t7\n",
                "Name:\tx\nUid:\t0\t0\t0\nNSpid:\t7\n",
                "Name:\tx\nUid:\t0\t0\t0\tx\nNSpid:\t7\n",
                "Name:\tx\nUid:\t0\t0\t0\t0\nNSpid:\n",
                "Name:\tx\nUid:\t0\t0\t0\t0\nNSpid:\t7",
                "Name:\tx\nUid:\t0\t0\t0\t0\nNSpid:\t99999999999\n",
                "Name:\tx\nUid:\t0\t0\t0\t0\nNSpid:\t99999999999999999999\n",
        };
        struct tree *t = *state;

        for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
                struct procfs_status status = { .inner_pid = 5 };

                put(t, "7/status", texts[i], strlen(texts[i]));
                assert_int_equal(procfs_status(t->fd, 7, &status), -EBADMSG);
                assert_int_equal(status.inner_pid, 5);
        }
}

static void arguments_are_joined_and_cut(void **state) {
        _cleanup_free_ char *whole = NULL, *cut = NULL, *none = NULL;
        struct tree *t = *state;

        PUT(t, "7/cmdline", "sh\0-c\0echo hi\0");
        assert_int_equal(procfs_arguments(t->fd, 7, 100, &whole), 0);
        assert_string_equal(whole, "sh -c echo hi");
        assert_int_equal(procfs_arguments(t->fd, 7, 5, &cut), 0);
        assert_string_equal(cut, "sh -c");
        PUT(t, "7/cmdline", "");
        assert_int_equal(procfs_arguments(t->fd, 7, 5, &none), 0);
        assert_string_equal(none, "");
}

static void the_unified_line_is_found_on_a_hybrid_host(void **state) {
        _cleanup_free_ char *path = NULL;
        struct tree *t = *state;

        PUT(t, "7/cgroup", "9:name=systemd:/wrong\n1:cpu:/wrong\n0::/system.slice/a b:c.service\n");
        assert_int_equal(procfs_cgroup(t->fd, 7, &path), 0);
        assert_string_equal(path, "/system.slice/a b:c.service");
        PUT(t, "7/cgroup", "9:name=systemd:/wrong\n");
        {
                _cleanup_free_ char *none = NULL;

                assert_true(procfs_cgroup(t->fd, 7, &none) < 0);
                assert_null(none);
        }
}

static void the_v2_mount_is_found_beside_others(void **state) {
        _cleanup_free_ char *path = NULL;
        struct tree *t = *state;

        PUT(t, "self/mountinfo",
            "25 1 0:22 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"
            "26 25 0:23 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
            "27 25 0:24 / /sys/fs/cgroup/uni\\040fied rw,nosuid shared:4 - cgroup2 cgroup2 rw\n");
        assert_int_equal(procfs_cgroup_root(t->fd, &path), 0);
        assert_string_equal(path, "/sys/fs/cgroup/uni fied");
}

static int count(const struct procfs_mapping *m, void *userdata) {
        (*(unsigned *) userdata)++;
        if (strcmp(m->path, "/bin/a b (deleted)") == 0)
                assert_int_equal(m->offset, 0x1000);
        return 0;
}

static void maps_hold_names_of_every_kind(void **state) {
        struct tree *t = *state;
        unsigned n = 0;

        PUT(t, "7/maps",
            "400000-401000 r-xp 00001000 08:01 12                             /bin/a b (deleted)\n"
            "7f0000000000-7f0000001000 rw-p 00000000 00:00 0 \n"
            "7ffc00000000-7ffc00001000 r-xp 00000000 00:00 0                          [vdso]\n"
            "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n");
        assert_int_equal(procfs_maps(t->fd, 7, count, &n), 0);
        assert_int_equal(n, 4);
        PUT(t, "7/maps", "nonsense\n");
        assert_int_equal(procfs_maps(t->fd, 7, count, &n), -EBADMSG);
}

static void numbers_and_links_are_read(void **state) {
        _cleanup_free_ char *exe = NULL;
        struct tree *t = *state;
        uint64_t n = 5;

        PUT(t, "n", "1048576\n");
        assert_int_equal(procfs_u64(t->fd, "n", &n), 0);
        assert_int_equal(n, 1048576);
        PUT(t, "n", "many\n");
        assert_true(procfs_u64(t->fd, "n", &n) < 0);
        assert_int_equal(symlinkat("/bin/x", t->fd, "7/exe"), 0);
        assert_int_equal(procfs_link(t->fd, 7, "exe", &exe), 0);
        assert_string_equal(exe, "/bin/x");
}

static void switches_of_both_kinds_are_added(void **state) {
        struct tree *t = *state;
        uint64_t n = 5;

        assert_int_equal(mkdirat(t->fd, "7/task", 0700), 0);
        assert_int_equal(mkdirat(t->fd, "7/task/8", 0700), 0);
        PUT(t, "7/task/8/status",
            "Name:\tx\\nvoluntary_ctxt_switches:\t9\nvoluntary_ctxt_switches:\t30\n"
            "nonvoluntary_ctxt_switches:\t4\n");
        assert_int_equal(procfs_switches(t->fd, 7, 8, &n), 0);
        assert_int_equal(n, 34);
        PUT(t, "7/task/8/status", "Name:\tx\nvoluntary_ctxt_switches:\t\n");
        assert_int_equal(procfs_switches(t->fd, 7, 8, &n), -EBADMSG);
        assert_int_equal(procfs_switches(t->fd, 7, 9, &n), -ENOENT);
        assert_int_equal(n, 34);
}

static void the_real_one_knows_us(void **state) {
        struct procfs_status status;
        struct procfs_stat stat;
        _cleanup_close_ int proc = -EBADF;

        assert_int_equal(procfs_open(&proc), 0);
        assert_int_equal(prctl(PR_SET_NAME, "x) R 9 (y"), 0);
        assert_int_equal(procfs_stat(proc, (uint32_t) getpid(), &stat), 0);
        assert_string_equal(stat.comm, "x) R 9 (y");
        assert_int_equal(stat.parent, getppid());
        assert_int_equal(procfs_status(proc, (uint32_t) getpid(), &status), 0);
        assert_int_equal(status.uids[1], geteuid());
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
        const struct CMUnitTest tests[] = {
                TEST(a_name_ends_at_the_last_parenthesis),
                TEST(half_lines_are_refused),
                TEST(arguments_are_joined_and_cut),
                TEST(the_unified_line_is_found_on_a_hybrid_host),
                TEST(the_v2_mount_is_found_beside_others),
                TEST(maps_hold_names_of_every_kind),
                TEST(the_innermost_pid_and_all_users_are_read),
                TEST(a_status_without_its_lines_is_refused),
                TEST(numbers_and_links_are_read),
                TEST(switches_of_both_kinds_are_added),
                cmocka_unit_test(the_real_one_knows_us),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
