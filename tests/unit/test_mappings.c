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
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/fd.h"
#include "daemon/mappings.h"

/*
 * A captured process: pid 7 of a /proc below a temporary directory, whose "root" is a directory there. What
 * the kernel offers as magic links are ordinary ones here.
 */
struct world {
        char dir[64];
        int proc_fd;
        struct mappings *mappings;
};

static void put(const char *dir, const char *name, const char *text) {
        _cleanup_close_ int fd = -EBADF;
        char path[256];

        snprintf(path, sizeof(path), "%s/%s", dir, name);
        fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        assert_true(fd >= 0);
        assert_int_equal(fd_write_full(fd, text, strlen(text)), 0);
}

static void make_dir(const char *dir, const char *name) {
        char path[256];

        snprintf(path, sizeof(path), "%s/%s", dir, name);
        assert_int_equal(mkdir(path, 0700), 0);
}

static void make_link(const char *dir, const char *name, const char *target) {
        char path[256];

        snprintf(path, sizeof(path), "%s/%s", dir, name);
        assert_int_equal(symlink(target, path), 0);
}

static int setup(void **state) {
        static const char *const dirs[] = { "root",
                                            "root/bin",
                                            "root/bin/.debug",
                                            "root/usr",
                                            "root/usr/lib",
                                            "root/usr/lib/debug",
                                            "root/usr/lib/debug/bin",
                                            "root/usr/lib/debug/.build-id",
                                            "root/usr/lib/debug/.build-id/01",
                                            "proc",
                                            "proc/7",
                                            "proc/7/ns" };
        struct world *w = calloc(1, sizeof(*w));
        char path[128];

        assert_non_null(w);
        snprintf(w->dir, sizeof(w->dir), "/tmp/startprof-mappings-XXXXXX");
        assert_non_null(mkdtemp(w->dir));
        for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
                make_dir(w->dir, dirs[i]);
        put(w->dir, "root/bin/app", "app");
        put(w->dir, "root/bin/app.dbg", "beside");
        put(w->dir, "root/bin/.debug/app.link", "link in .debug");
        put(w->dir, "root/usr/lib/debug/bin/app.link", "link in /usr/lib/debug");
        put(w->dir, "root/usr/lib/debug/.build-id/01/0203.debug", "by build-id");
        put(w->dir, "secret", "outside of the root");
        put(w->dir, "proc/7/ns/mnt", "");
        make_link(w->dir, "proc/7/root", "../../root");
        make_link(w->dir, "proc/7/exe", "../../root/bin/app");
        make_link(w->dir, "root/bin/escape", "../../secret");
        snprintf(path, sizeof(path), "%s/root/bin/fifo", w->dir);
        assert_int_equal(mkfifo(path, 0600), 0);

        snprintf(path, sizeof(path), "%s/proc", w->dir);
        w->proc_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(w->proc_fd >= 0);
        w->mappings = mappings_new(w->proc_fd);
        assert_non_null(w->mappings);
        *state = w;
        return 0;
}

static int teardown(void **state) {
        struct world *w = *state;
        pid_t pid;

        mappings_unref(w->mappings);
        fd_close(w->proc_fd);
        pid = fork();
        if (pid == 0) {
                execlp("rm", "rm", "-rf", w->dir, (char *) NULL);
                _exit(127);
        }
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        free(w);
        return 0;
}

static uint32_t add(struct world *w, const char *path, uint8_t id, uint32_t root) {
        uint8_t build_id[3] = { id, 2, 3 };
        struct module_key key = { .path = path,
                                  .build_id = build_id,
                                  .build_id_bytes = id ? 3 : 0,
                                  .root = root,
                                  .file = REC_NONE };

        return mappings_module(w->mappings, &key);
}

static void expect_open(struct world *w, uint32_t module, enum worker_role role, uint32_t attempt,
                        const char *name, const char *text, const char *found) {
        _cleanup_free_ char *data = NULL;
        _cleanup_close_ int fd = -EBADF;
        char path[WORKER_PATH_MAX];

        assert_int_equal(mappings_open(w->mappings, module, role, attempt, name, &fd, path), 0);
        assert_string_equal(path, found);
        assert_int_equal(fd_read_file(fd, 4096, &data, NULL), 0);
        assert_string_equal(data, text);
}

static int try_open(struct world *w, uint32_t module, enum worker_role role, uint32_t attempt,
                    const char *name) {
        char path[WORKER_PATH_MAX];
        int fd = -EBADF, r;

        r = mappings_open(w->mappings, module, role, attempt, name, &fd, path);
        fd_close(fd);
        return r;
}

/* The valgrind of Debian 12 does not know the system call; under it these tests have nothing to say. */
static void need_openat2(void) {
        struct open_how how = { .flags = O_PATH | O_CLOEXEC };
        _cleanup_close_ int fd = (int) syscall(SYS_openat2, AT_FDCWD, "/", &how, sizeof(how));

        if (fd < 0 && errno == ENOSYS)
                skip();
}

static void a_module_is_a_path_with_a_build_id(void **state) {
        struct world *w = *state;
        struct module_info info;
        uint32_t a = add(w, "/bin/app", 1, REC_NONE);

        assert_int_equal(a, 0);
        assert_int_equal(add(w, "/bin/app", 1, 5), a); /* wherever it was seen */
        assert_int_equal(add(w, "/bin/app", 9, REC_NONE), 1); /* replaced by an upgrade */
        assert_int_equal(add(w, "/bin/other", 1, REC_NONE), 2);
        assert_int_equal(mappings_count(w->mappings), 3);
        assert_int_equal(mappings_info(w->mappings, a, &info), 0);
        assert_string_equal(info.path, "/bin/app");
        assert_int_equal(info.build_id_bytes, 3);
        assert_int_equal(mappings_info(w->mappings, 3, &info), -ENOENT);
}

static void without_build_ids_inodes_tell_files_apart(void **state) {
        struct world *w = *state;
        struct module_key key = {
                .path = "/bin/app", .device = 1, .inode = 2, .root = REC_NONE, .file = REC_NONE
        };

        assert_int_equal(mappings_module(w->mappings, &key), 0);
        assert_int_equal(mappings_module(w->mappings, &key), 0);
        key.inode = 3;
        assert_int_equal(mappings_module(w->mappings, &key), 1);
}

static void code_without_a_file_is_one_module(void **state) {
        struct world *w = *state;

        assert_int_equal(add(w, "//anon", 0, REC_NONE), 0);
        assert_int_equal(add(w, "/memfd:doublemapper (deleted)", 0, 3), 0);
        assert_int_equal(add(w, "[heap]", 0, 3), 0);
        assert_int_equal(mappings_kind_of_path("[vdso]"), REC_MODULE_VDSO);
        assert_int_equal(mappings_kind_of_path("/bin/x (deleted)"), REC_MODULE_DELETED);
        assert_int_equal(mappings_kind_of_path("/bin/x"), REC_MODULE_FILE);
}

static void roots_and_executables_are_pinned_once(void **state) {
        struct world *w = *state;

        assert_int_equal(mappings_pin_root(w->mappings, 7), 0);
        assert_int_equal(mappings_pin_root(w->mappings, 7), 0);
        assert_int_equal(mappings_pin_root(w->mappings, 8), REC_NONE);
        assert_int_equal(mappings_pin_exe(w->mappings, 7), 0);
        assert_int_equal(mappings_pin_exe(w->mappings, 7), 0);
        assert_int_equal(mappings_pin_exe(w->mappings, 8), REC_NONE);
}

static void a_held_file_survives_its_name(void **state) {
        struct world *w = *state;
        uint32_t module = add(w, "/bin/app", 1, mappings_pin_root(w->mappings, 7));
        char path[128];

        need_openat2();
        assert_int_equal(mappings_hold(w->mappings, module), 0);
        snprintf(path, sizeof(path), "%s/root/bin/app", w->dir);
        assert_int_equal(unlink(path), 0);
        expect_open(w, module, WORKER_ROLE_FILE, 0, "", "app", "/bin/app");
        assert_int_equal(try_open(w, module, WORKER_ROLE_FILE, 1, ""), -ENXIO);
}

static void an_exe_that_was_deleted_is_read_from_its_pin(void **state) {
        struct world *w = *state;
        struct module_key key = { .path = "/bin/app (deleted)", .root = REC_NONE };
        char path[128];
        uint32_t module;

        key.file = mappings_pin_exe(w->mappings, 7);
        snprintf(path, sizeof(path), "%s/root/bin/app", w->dir);
        assert_int_equal(unlink(path), 0);
        module = mappings_module(w->mappings, &key);
        expect_open(w, module, WORKER_ROLE_FILE, 0, "", "app", "/bin/app (deleted)");
}

/* The kernel marks removed files so, and nothing keeps others from being called so. */
static void a_name_may_really_end_in_deleted(void **state) {
        struct world *w = *state;
        uint32_t module = add(w, "/bin/app (deleted)", 1, mappings_pin_root(w->mappings, 7));
        char path[128];

        need_openat2();
        assert_int_equal(mappings_hold(w->mappings, module), -ENOENT); /* and never /bin/app */
        assert_int_equal(try_open(w, module, WORKER_ROLE_FILE, 0, ""), -ENOENT);
        snprintf(path, sizeof(path), "%s/root/bin", w->dir);
        put(path, "app (deleted)", "called so");
        assert_int_equal(mappings_hold(w->mappings, module), 0);
        expect_open(w, module, WORKER_ROLE_FILE, 0, "", "called so", "/bin/app (deleted)");
}

static void without_a_build_id_another_inode_is_another_file(void **state) {
        struct world *w = *state;
        struct module_key key = { .path = "/bin/app", .file = REC_NONE };
        char path[128];
        struct stat st;
        uint32_t module;

        need_openat2();
        snprintf(path, sizeof(path), "%s/root/bin/app", w->dir);
        assert_int_equal(stat(path, &st), 0);
        key.root = mappings_pin_root(w->mappings, 7);
        key.inode = st.st_ino + 1;
        module = mappings_module(w->mappings, &key);
        assert_int_equal(mappings_hold(w->mappings, module), -ENOENT);
        assert_int_equal(try_open(w, module, WORKER_ROLE_FILE, 0, ""), -ENOENT);
        key.inode = st.st_ino;
        module = mappings_module(w->mappings, &key);
        expect_open(w, module, WORKER_ROLE_FILE, 0, "", "app", "/bin/app");
        assert_int_equal(mappings_hold(w->mappings, module), 0);
}

static void debug_files_are_found_in_the_processs_root(void **state) {
        struct world *w = *state;
        uint32_t module = add(w, "/bin/app", 1, mappings_pin_root(w->mappings, 7));

        need_openat2();
        expect_open(w, module, WORKER_ROLE_DEBUG_BESIDE, 0, ".dbg", "beside", "/bin/app.dbg");
        assert_int_equal(try_open(w, module, WORKER_ROLE_DEBUG_BESIDE, 0, ".debug"), -ENOENT);
        assert_int_equal(try_open(w, module, WORKER_ROLE_DEBUG_BESIDE, 1, ".dbg"), -ENXIO);
        assert_int_equal(try_open(w, module, WORKER_ROLE_DEBUG_LINK, 0, "app.link"), -ENOENT);
        expect_open(w, module, WORKER_ROLE_DEBUG_LINK, 1, "app.link", "link in .debug",
                    "/bin/.debug/app.link");
        expect_open(w, module, WORKER_ROLE_DEBUG_LINK, 2, "app.link", "link in /usr/lib/debug",
                    "/usr/lib/debug/bin/app.link");
        assert_int_equal(try_open(w, module, WORKER_ROLE_DEBUG_LINK, 3, "app.link"), -ENXIO);
        expect_open(w, module, WORKER_ROLE_DEBUG_BUILD_ID, 0, "", "by build-id",
                    "/usr/lib/debug/.build-id/01/0203.debug");
}

/* The worker has read the name in a file of a stranger. */
static void names_cannot_leave_their_directory(void **state) {
        struct world *w = *state;
        uint32_t root = mappings_pin_root(w->mappings, 7), module = add(w, "/bin/app", 1, root);

        need_openat2();
        assert_int_equal(try_open(w, module, WORKER_ROLE_DEBUG_LINK, 0, "../bin/app"), -ENOENT);
        assert_int_equal(try_open(w, module, WORKER_ROLE_DEBUG_LINK, 0, ".."), -ENOENT);
        assert_int_equal(try_open(w, module, WORKER_ROLE_DEBUG_LINK, 0, ""), -ENOENT);
        assert_int_equal(try_open(w, module, WORKER_ROLE_DEBUG_BESIDE, 0, "/../app"), -ENOENT);
        assert_int_equal(try_open(w, add(w, "/bin/escape", 1, root), WORKER_ROLE_FILE, 0, ""), -ENOENT);
        assert_int_equal(try_open(w, add(w, "/../../secret", 1, root), WORKER_ROLE_FILE, 0, ""), -ENOENT);
}

/* Opening a FIFO for reading would wait for a writer. */
static void only_regular_files_are_opened(void **state) {
        struct world *w = *state;
        uint32_t root = mappings_pin_root(w->mappings, 7);

        need_openat2();
        assert_int_equal(try_open(w, add(w, "/bin/fifo", 1, root), WORKER_ROLE_FILE, 0, ""), -ENOENT);
        assert_int_equal(mappings_hold(w->mappings, add(w, "/bin/fifo", 1, root)), -ENOENT);
        assert_int_equal(try_open(w, add(w, "/bin", 1, root), WORKER_ROLE_FILE, 0, ""), -ENOENT);
        assert_int_equal(try_open(w, add(w, "//anon", 0, root), WORKER_ROLE_FILE, 0, ""), -ENOENT);
}

static void the_vdso_is_our_own(void **state) {
        struct module_key key = { .path = "[vdso]", .root = REC_NONE, .file = REC_NONE };
        _cleanup_close_ int proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd = -EBADF;
        _cleanup_(mappings_unrefp) struct mappings *m = NULL;
        char path[WORKER_PATH_MAX], magic[4];

        if (getauxval(AT_SYSINFO_EHDR) == 0)
                skip(); /* valgrind hides it */
        m = mappings_new(proc_fd);
        assert_int_equal(mappings_open(m, mappings_module(m, &key), WORKER_ROLE_FILE, 0, "", &fd, path), 0);
        assert_int_equal(pread(fd, magic, sizeof(magic), 0), sizeof(magic));
        assert_memory_equal(magic, "\177ELF", 4);
}

static uint32_t add_owned(struct world *w, uint32_t space) {
        struct module_owner owner = { .space = space, .pid = 7 };
        struct module_key key = { .path = "//anon", .root = REC_NONE, .file = REC_NONE, .owner = &owner };

        return mappings_module(w->mappings, &key);
}

static void code_made_at_run_time_is_its_processs(void **state) {
        struct world *w = *state;
        struct module_info info;
        uint32_t shared = add(w, "//anon", 0, REC_NONE), first = add_owned(w, 0), last = 0;

        assert_int_not_equal(first, shared);
        assert_int_equal(add_owned(w, 0), first);
        assert_int_equal(mappings_info(w->mappings, first, &info), 0);
        assert_true(info.owned);
        assert_int_equal(info.owner.pid, 7);
        assert_int_equal(info.kind, REC_MODULE_ANONYMOUS);
        assert_int_equal(mappings_info(w->mappings, shared, &info), 0);
        assert_false(info.owned);

        for (uint32_t i = 1; i < OWNED_MAX; i++)
                last = add_owned(w, i);
        assert_int_not_equal(last, shared);
        assert_int_equal(add_owned(w, OWNED_MAX), shared);
        assert_int_equal(add_owned(w, 0), first);
}

static void modules_are_limited(void **state) {
        struct world *w = *state;
        char path[32];

        for (uint32_t i = 0; i < MODULES_MAX; i++) {
                snprintf(path, sizeof(path), "/lib/%u", i);
                assert_int_equal(add(w, path, 1, REC_NONE), i);
        }
        assert_int_equal(add(w, "/lib/more", 1, REC_NONE), REC_NONE);
        assert_int_equal(add(w, "/lib/5", 1, REC_NONE), 5);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(a_module_is_a_path_with_a_build_id, setup, teardown),
                cmocka_unit_test_setup_teardown(without_build_ids_inodes_tell_files_apart, setup, teardown),
                cmocka_unit_test_setup_teardown(code_without_a_file_is_one_module, setup, teardown),
                cmocka_unit_test_setup_teardown(code_made_at_run_time_is_its_processs, setup, teardown),
                cmocka_unit_test_setup_teardown(roots_and_executables_are_pinned_once, setup, teardown),
                cmocka_unit_test_setup_teardown(a_held_file_survives_its_name, setup, teardown),
                cmocka_unit_test_setup_teardown(a_name_may_really_end_in_deleted, setup, teardown),
                cmocka_unit_test_setup_teardown(without_a_build_id_another_inode_is_another_file, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(an_exe_that_was_deleted_is_read_from_its_pin, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(debug_files_are_found_in_the_processs_root, setup, teardown),
                cmocka_unit_test_setup_teardown(names_cannot_leave_their_directory, setup, teardown),
                cmocka_unit_test_setup_teardown(only_regular_files_are_opened, setup, teardown),
                cmocka_unit_test(the_vdso_is_our_own),
                cmocka_unit_test_setup_teardown(modules_are_limited, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
