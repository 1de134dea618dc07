/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/fd.h"
#include "daemon/code_maps.h"

/*
 * A captured process: pid 7 of a /proc below a temporary directory, in whose own namespaces it is 42 and has a
 * root of its own. What the kernel offers as magic links are ordinary ones here.
 */
struct world {
        char dir[64];
        int dir_fd, proc_fd;
        struct mappings *mappings;
        struct code_maps *maps;
        uint32_t module;
};

static const struct module_owner owner = { .space = 3, .pid = 7 };

static void put(const struct world *w, const char *name, const char *text) {
        _cleanup_close_ int fd = openat(w->dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

        assert_true(fd >= 0);
        assert_int_equal(fd_write_full(fd, text, strlen(text)), 0);
}

static void put_status(const struct world *w, unsigned uid) {
        char text[128];

        snprintf(text, sizeof(text), "Name:\tjit\nUid:\t%u\t%u\t%u\t%u\nNSpid:\t7\t42\n", uid, uid, uid,
                 uid);
        put(w, "proc/7/status", text);
}

static int setup(void **state) {
        static const char *const dirs[] = { "root", "root/tmp", "proc", "proc/7", "proc/7/ns" };
        struct world *w = calloc(1, sizeof(*w));

        assert_non_null(w);
        snprintf(w->dir, sizeof(w->dir), "/tmp/startprof-code-XXXXXX");
        assert_non_null(mkdtemp(w->dir));
        w->dir_fd = open(w->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(w->dir_fd >= 0);
        for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
                assert_int_equal(mkdirat(w->dir_fd, dirs[i], 0700), 0);
        put(w, "proc/7/ns/mnt", "");
        put_status(w, getuid());
        assert_int_equal(symlinkat("../../root", w->dir_fd, "proc/7/root"), 0);

        w->proc_fd = openat(w->dir_fd, "proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        w->mappings = mappings_new(w->proc_fd);
        w->maps = code_maps_new(w->proc_fd, w->mappings);
        assert_non_null(w->maps);
        w->module =
                mappings_module(w->mappings, &(struct module_key){ .path = "//anon",
                                                                   .root = mappings_pin_root(w->mappings, 7),
                                                                   .file = REC_NONE,
                                                                   .owner = &owner });
        assert_int_equal(w->module, 0);
        *state = w;
        return 0;
}

static int teardown(void **state) {
        struct world *w = *state;
        pid_t pid;

        code_maps_free(w->maps);
        mappings_unref(w->mappings);
        fd_close(w->proc_fd);
        fd_close(w->dir_fd);
        pid = fork();
        if (pid == 0) {
                execlp("rm", "rm", "-rf", w->dir, (char *) NULL);
                _exit(127);
        }
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        free(w);
        return 0;
}

/* The valgrind of Debian 12 does not know the system call; under it these tests have nothing to say. */
static void need_openat2(void) {
        struct open_how how = { .flags = O_PATH | O_CLOEXEC };
        _cleanup_close_ int fd = (int) syscall(SYS_openat2, AT_FDCWD, "/", &how, sizeof(how));

        if (fd < 0 && errno == ENOSYS)
                skip();
}

enum { TEXT_MAX = 64 };

static int open_map(struct world *w, char text[static TEXT_MAX]) {
        _cleanup_close_ int fd = -EBADF;
        char path[WORKER_PATH_MAX];
        ssize_t n;
        int r;

        r = code_maps_open(w->maps, w->module, &fd, path);
        if (r < 0)
                return r;
        assert_string_equal(path, "/tmp/perf-42.map");
        assert_true(fd_is_sealed(fd));
        n = fd_pread_full(fd, text, TEXT_MAX - 1, 0);
        assert_true(n >= 0);
        text[n] = '\0';
        return 0;
}

static void expect_map(struct world *w, const char *text) {
        char data[TEXT_MAX];

        assert_int_equal(open_map(w, data), 0);
        assert_string_equal(data, text);
}

static void expect_none(struct world *w, int error) {
        char data[TEXT_MAX];

        assert_int_equal(open_map(w, data), error);
}

static void the_map_has_the_pid_that_the_process_itself_knows(void **state) {
        struct world *w = *state;

        need_openat2();
        put(w, "root/tmp/perf-7.map", "1000 10 of another process\n");
        put(w, "root/tmp/perf-42.map", "1000 10 mine\n");
        code_maps_add(w->maps, w->module, &owner);
        expect_map(w, "1000 10 mine\n");
}

static void a_map_is_kept_when_its_process_ends(void **state) {
        struct world *w = *state;

        need_openat2();
        code_maps_add(w->maps, w->module, &owner);
        put(w, "root/tmp/perf-42.map", "1000 10 first\n");
        code_maps_keep(w->maps, owner.space + 1); /* another process */
        put(w, "root/tmp/perf-42.map", "1000 10 last\n");
        code_maps_keep(w->maps, owner.space);
        put(w, "root/tmp/perf-42.map", "1000 10 of the next process 42\n");
        expect_map(w, "1000 10 last\n");
        assert_int_equal(unlinkat(w->dir_fd, "root/tmp/perf-42.map", 0), 0);
        code_maps_keep(w->maps, owner.space);
        expect_map(w, "1000 10 last\n");
}

static void a_map_that_was_seen_is_held_when_its_directory_goes(void **state) {
        struct world *w = *state;

        need_openat2();
        code_maps_add(w->maps, w->module, &owner);
        code_maps_look(w->maps, w->module); /* not there yet */
        put(w, "root/tmp/perf-42.map", "1000 10 first\n");
        code_maps_look(w->maps, w->module);
        put(w, "root/tmp/perf-42.map", "1000 10 last\n"); /* the same file */
        assert_int_equal(unlinkat(w->dir_fd, "root/tmp/perf-42.map", 0), 0);
        assert_int_equal(unlinkat(w->dir_fd, "root/tmp", AT_REMOVEDIR), 0);
        code_maps_keep(w->maps, owner.space);
        expect_map(w, "1000 10 last\n");
}

static void a_process_that_ended_without_one_does_not_get_the_next_ones(void **state) {
        struct world *w = *state;

        need_openat2();
        code_maps_add(w->maps, w->module, &owner);
        code_maps_keep(w->maps, owner.space);
        put(w, "root/tmp/perf-42.map", "1000 10 of the next process 42\n");
        expect_none(w, -ENOENT);
}

static void only_a_file_of_its_own_is_taken(void **state) {
        struct world *w = *state;

        need_openat2();
        code_maps_add(w->maps, w->module, &owner);
        put(w, "root/secret", "1000 10 secret\n");
        expect_none(w, -ENOENT);
        assert_int_equal(symlinkat("../secret", w->dir_fd, "root/tmp/perf-42.map"), 0);
        expect_none(w, -ENOENT);
        assert_int_equal(unlinkat(w->dir_fd, "root/tmp/perf-42.map", 0), 0);
        assert_int_equal(linkat(w->dir_fd, "root/secret", w->dir_fd, "root/tmp/perf-42.map", 0), 0);
        expect_none(w, -ENOENT);
        assert_int_equal(unlinkat(w->dir_fd, "root/tmp/perf-42.map", 0), 0);
        assert_int_equal(mkfifoat(w->dir_fd, "root/tmp/perf-42.map", 0600), 0);
        expect_none(w, -ENOENT);
        assert_int_equal(unlinkat(w->dir_fd, "root/tmp/perf-42.map", 0), 0);
        assert_int_equal(mkdirat(w->dir_fd, "root/tmp/perf-42.map", 0700), 0);
        expect_none(w, -ENOENT);
        assert_int_equal(unlinkat(w->dir_fd, "root/tmp/perf-42.map", AT_REMOVEDIR), 0);
        put(w, "root/tmp/perf-42.map", "1000 10 mine\n");
        expect_map(w, "1000 10 mine\n");
}

static void a_file_of_another_user_is_refused(void **state) {
        struct world *w = *state;

        need_openat2();
        if (getuid() != 0)
                skip();
        put_status(w, 1000);
        code_maps_add(w->maps, w->module, &owner);
        put(w, "root/tmp/perf-42.map", "1000 10 forged\n");
        assert_int_equal(fchownat(w->dir_fd, "root/tmp/perf-42.map", 1001, 1001, 0), 0);
        expect_none(w, -ENOENT);
        assert_int_equal(fchownat(w->dir_fd, "root/tmp/perf-42.map", 1000, 1000, 0), 0);
        expect_map(w, "1000 10 forged\n");
}

static void a_map_without_end_is_copied_up_to_the_limit(void **state) {
        struct world *w = *state;
        _cleanup_close_ int fd = -EBADF, copy = -EBADF;
        char path[WORKER_PATH_MAX];
        struct stat st;

        need_openat2();
        code_maps_add(w->maps, w->module, &owner);
        put(w, "root/tmp/perf-42.map", "1000 10 first\n");
        fd = openat(w->dir_fd, "root/tmp/perf-42.map", O_WRONLY | O_CLOEXEC);
        assert_int_equal(ftruncate(fd, 4LL << 30), 0); /* sparse */
        assert_int_equal(code_maps_open(w->maps, w->module, &copy, path), 0);
        assert_int_equal(fstat(copy, &st), 0);
        assert_int_equal(st.st_size, PERF_MAP_FILE_MAX);
}

static void a_module_that_nobody_told_of_has_none(void **state) {
        struct world *w = *state;

        put(w, "root/tmp/perf-42.map", "1000 10 mine\n");
        expect_none(w, -ENOENT);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(the_map_has_the_pid_that_the_process_itself_knows, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(a_map_is_kept_when_its_process_ends, setup, teardown),
                cmocka_unit_test_setup_teardown(a_map_that_was_seen_is_held_when_its_directory_goes, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(a_process_that_ended_without_one_does_not_get_the_next_ones,
                                                setup, teardown),
                cmocka_unit_test_setup_teardown(only_a_file_of_its_own_is_taken, setup, teardown),
                cmocka_unit_test_setup_teardown(a_file_of_another_user_is_refused, setup, teardown),
                cmocka_unit_test_setup_teardown(a_map_without_end_is_copied_up_to_the_limit, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(a_module_that_nobody_told_of_has_none, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
