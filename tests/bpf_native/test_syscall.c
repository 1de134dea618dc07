/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "bpf/syscall.bpf.h"
#include "tests/bpf_native/host.h"

static struct {
        struct task_struct task;
        struct pid pid;
        struct pt_regs regs;
} process;

static int setup(void **state) {
        host_reset();
        memset(stats, 0, sizeof(stats));
        memset(path_counts, 0, sizeof(path_counts));
        memset(&process, 0, sizeof(process));
        members_epoch++;
        process.pid.numbers[0].nr = 100;
        process.task.pid = process.task.tgid = 100;
        process.task.thread_pid = &process.pid;
        process.task.group_leader = &process.task;
        host.task = &process.task;
        host.tgid = host.tid = 100;
        host.now_ns = 1000;
        return 0;
}

static void enlist(uint16_t session, uint16_t program) {
        struct member member = { .tgid = 100, .session = session, .program = program };
        uint32_t key = 100;

        assert_int_equal(bpf_map_update_elem(&members, &key, &member, BPF_ANY), 0);
        members_changed();
}

static void call(uint64_t nr, const void *first, const void *second, uint64_t third, long result) {
        process.regs = (struct pt_regs){
                .orig_ax = nr, .di = (uintptr_t) first, .si = (uintptr_t) second, .dx = third
        };
        on_syscall_exit(&process.regs, result);
}

static uint64_t counted(uint16_t session, uint16_t program, uint16_t nr, uint16_t error) {
        struct call_key key = { .program = program, .syscall = nr, .error = error, .session = session };
        struct call_value *value;

        flush_session(session);
        value = bpf_map_lookup_elem(&calls, &key);
        return value ? value->count : 0;
}

static const struct event_path *told(size_t i) {
        assert_true(i < host.n_records);
        assert_int_equal(host.records[i].bytes, sizeof(struct event_path));
        return (const struct event_path *) host.records[i].data;
}

static uint64_t below(uint16_t kind, const char *dir) {
        struct dir_key key = { .session = 2, .program = 5, .kind = kind };
        uint64_t *count;

        memcpy(key.dir, dir, strlen(dir));
        count = bpf_map_lookup_elem(&dirs, &key);
        return count ? *count : 0;
}

static void calls_are_counted_by_program_call_and_error(void **state) {
        enlist(2, 5);
        for (int i = 0; i < 1000; i++)
                call(3, NULL, NULL, 0, -9);
        call(3, NULL, NULL, 0, 0);
        call(39, NULL, NULL, 0, 100);

        assert_int_equal(counted(2, 5, 3, 9), 1000);
        assert_int_equal(counted(2, 5, 3, 0), 1);
        assert_int_equal(counted(2, 5, 39, 0), 1);
        assert_int_equal(counted(2, 5, 3, 2), 0);
}

/* More keys than slots, so that slots are shared; nothing may be lost. */
static void every_call_of_many_kinds_is_counted(void **state) {
        enlist(2, 5);
        for (int round = 0; round < 3; round++)
                for (int nr = 0; nr < SYSCALL_NR_MAX; nr++)
                        call((uint64_t) nr, NULL, NULL, 0, -38);
        for (int nr = 0; nr < SYSCALL_NR_MAX; nr++)
                assert_int_equal(counted(2, 5, (uint16_t) nr, 38), 3);
}

static void times_are_those_of_the_first_and_last_call(void **state) {
        struct call_key key = { .program = 5, .syscall = 3, .session = 2 };
        struct call_value *value;

        enlist(2, 5);
        host.now_ns = 1000;
        call(3, NULL, NULL, 0, 0);
        host.now_ns = 5000;
        host.jiffies = 7;
        call(3, NULL, NULL, 0, 0);
        flush_session(2);
        value = bpf_map_lookup_elem(&calls, &key);
        assert_int_equal(value->first_ns, 1000);
        assert_int_equal(value->last_ns, 5000);
}

static void strangers_are_not_counted_until_they_join(void **state) {
        call(3, NULL, NULL, 0, 0);
        call(3, NULL, NULL, 0, 0);
        enlist(2, 5);
        call(3, NULL, NULL, 0, 0);
        enlist(2, 6); /* an exec */
        call(3, NULL, NULL, 0, 0);
        assert_int_equal(counted(2, 5, 3, 0), 1);
        assert_int_equal(counted(2, 6, 3, 0), 1);
}

static void sessions_end_apart(void **state) {
        enlist(2, 5);
        call(3, NULL, NULL, 0, 0);
        enlist(4, 5);
        call(3, NULL, NULL, 0, 0);
        assert_int_equal(counted(2, 5, 3, 0), 1);
        call(3, NULL, NULL, 0, 0);
        assert_int_equal(counted(4, 5, 3, 0), 2);
}

static void restarted_calls_are_interrupted_ones(void **state) {
        assert_int_equal(error_of(-512), ERROR_INTR);
        assert_int_equal(error_of(-516), ERROR_INTR);
        assert_int_equal(error_of(-511), 511);
        assert_int_equal(error_of(-9), 9);
        assert_int_equal(error_of(0), 0);
        assert_int_equal(error_of(7), 0);
        assert_int_equal(error_of(-4096), 0); /* mmap returns addresses like that */
}

static void watches_are_counted_by_directory_and_some_are_told(void **state) {
        enlist(2, 5);
        for (int i = 0; i < 600; i++)
                call(NR_INOTIFY_ADD_WATCH, NULL, "/usr/share/zoneinfo/Europe", 0x100, i + 1);
        call(NR_INOTIFY_ADD_WATCH, NULL, "/etc", 0x100, 601);

        assert_int_equal(stats[2].inotify_watches, 601);
        assert_int_equal(below(PATH_INOTIFY, "/usr/share"), 600);
        assert_int_equal(below(PATH_INOTIFY, "/etc"), 1);
        assert_int_equal(host.n_records, PATHS_FIRST + 1); /* and number 512 */
        assert_int_equal(told(0)->kind, PATH_INOTIFY);
        assert_int_equal(told(0)->argument, 0x100);
        assert_string_equal(told(0)->path, "/usr/share/zoneinfo/Europe");
}

static void missing_files_count_for_their_directory(void **state) {
        enlist(2, 5);
        call(NR_OPENAT, NULL, "/etc/foo.conf", 0, -2);
        call(NR_NEWFSTATAT, NULL, "/usr/lib/python3/x.py", 0, -2);
        call(NR_OPEN, "/x", NULL, 0, -2);
        call(NR_OPENAT, NULL, "/etc/shadow", 0, -13); /* not missing */
        call(NR_OPENAT, NULL, "", 0, -2);

        assert_int_equal(below(PATH_MISSING, "/etc"), 1);
        assert_int_equal(below(PATH_MISSING, "/usr/lib"), 1);
        assert_int_equal(below(PATH_MISSING, "/"), 1);
        assert_int_equal(host.n_records, 4);
}

static void limits_of_inotify_are_told(void **state) {
        enlist(2, 5);
        call(NR_INOTIFY_INIT1, NULL, NULL, 0, -ERROR_MFILE);
        call(NR_INOTIFY_ADD_WATCH, NULL, "/srv/data", 2, -ERROR_NOSPC);
        assert_int_equal(host.n_records, 2);
        assert_int_equal(told(0)->kind, PATH_INOTIFY_LIMIT);
        assert_int_equal(told(0)->path_size, 0);
        assert_string_equal(told(1)->path, "/srv/data");
        assert_int_equal(told(1)->result, -ERROR_NOSPC);
}

static void only_the_ready_line_of_a_message_is_kept(void **state) {
        static const char first[] = "READY=1", later[] = "STATUS=token abc\nREADY=1\n",
                          none[] = "STATUS=READY=1";
        struct {
                const void *base;
                uint64_t size;
        } piece = { later, sizeof(later) - 1 };
        struct {
                uint64_t name[2];
                void *pieces;
        } message = { .pieces = &piece };

        enlist(2, 5);
        call(NR_SENDTO, NULL, first, 7, 7);
        call(NR_SENDMSG, NULL, &message, 0, 20);
        call(NR_WRITE, NULL, none, sizeof(none) - 1, 14);
        call(NR_WRITE, NULL, "READY=", 6, 6);
        call(NR_SENDTO, NULL, first, 7, -111); /* refused: nobody heard it */
        call(NR_WRITE, NULL, NULL, 100, 100);

        assert_int_equal(host.n_records, 2);
        for (size_t i = 0; i < 2; i++) {
                assert_int_equal(told(i)->kind, PATH_NOTIFY);
                assert_int_equal(told(i)->path_size, 8);
                assert_string_equal(told(i)->path, "READY=1");
                for (size_t k = 8; k < EVENT_PATH_MAX; k++)
                        assert_int_equal(told(i)->path[k], 0);
        }
}

static void addresses_of_connects_are_told(void **state) {
        static const uint8_t address[16] = { 2, 0, 0, 53, 127, 0, 0, 1 };

        enlist(2, 5);
        call(NR_CONNECT, NULL, address, sizeof(address), -115);
        assert_int_equal(told(0)->kind, PATH_CONNECT);
        assert_int_equal(told(0)->path_size, sizeof(address));
        assert_memory_equal(told(0)->path, address, sizeof(address));
}

static void locks_are_told_only_when_they_wait(void **state) {
        uint32_t argument;

        assert_int_equal(classify(NR_FCNTL, 0, COMMAND_SETLKW, &argument), PATH_LOCK);
        assert_int_equal(classify(NR_FCNTL, 0, 6, &argument), PATH_NULL); /* F_SETLK */
        assert_int_equal(classify(NR_FLOCK, 0, 2, &argument), PATH_LOCK);
}

static void top_directories_of_odd_paths(void **state) {
        static const struct {
                const char *path, *whole, *file;
        } paths[] = {
                { "/", "/", "/" },
                { "/usr", "/usr", "/" },
                { "/usr/share", "/usr/share", "/usr" },
                { "/usr/share/x/y", "/usr/share", "/usr/share" },
                { "a/b/c", "a/b", "a/b" },
                { "a", "a", "" },
                { "", "", "" },
                { "/0123456789012345678901234567890123456789012345678901234567890123456789/x", "/", "/" },
        };
        static struct path_scratch scratch;

        for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
                memset(&scratch, 0xee, sizeof(scratch));
                memcpy(scratch.event.path, paths[i].path, strlen(paths[i].path) + 1);
                top_directory(&scratch, true);
                assert_string_equal(scratch.dir.dir, paths[i].whole);
                top_directory(&scratch, false);
                assert_string_equal(scratch.dir.dir, paths[i].file);
        }
}

static void a_full_ring_and_full_maps_are_counted(void **state) {
        enlist(2, 5);
        host.records_limit = 1;
        call(NR_OPENAT, NULL, "/a/b/c", 0, -2);
        call(NR_OPENAT, NULL, "/a/b/c", 0, -2);
        assert_int_equal(stats[2].lost[LOSS_PATH], 1);
        host.map_limit = 1;
        call(NR_OPENAT, NULL, "/x/y/z", 0, -2);
        assert_int_equal(stats[2].lost[LOSS_PATH], 3);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(calls_are_counted_by_program_call_and_error, setup),
                cmocka_unit_test_setup(every_call_of_many_kinds_is_counted, setup),
                cmocka_unit_test_setup(times_are_those_of_the_first_and_last_call, setup),
                cmocka_unit_test_setup(strangers_are_not_counted_until_they_join, setup),
                cmocka_unit_test_setup(sessions_end_apart, setup),
                cmocka_unit_test(restarted_calls_are_interrupted_ones),
                cmocka_unit_test_setup(watches_are_counted_by_directory_and_some_are_told, setup),
                cmocka_unit_test_setup(missing_files_count_for_their_directory, setup),
                cmocka_unit_test_setup(limits_of_inotify_are_told, setup),
                cmocka_unit_test_setup(only_the_ready_line_of_a_message_is_kept, setup),
                cmocka_unit_test_setup(addresses_of_connects_are_told, setup),
                cmocka_unit_test(locks_are_told_only_when_they_wait),
                cmocka_unit_test(top_directories_of_odd_paths),
                cmocka_unit_test_setup(a_full_ring_and_full_maps_are_counted, setup),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
