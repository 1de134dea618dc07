/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "bpf/target.bpf.h"
#include "tests/bpf_native/host.h"

enum { ROOT_ID = 1000, SLICE_ID, UNIT_ID, BELOW_ID, OTHER_ID };

/* root / system.slice / foo.service / payload, and a cgroup elsewhere. */
static struct kernfs_node nodes[5];
static struct cgroup_root hierarchy, old_hierarchy;
static struct cgroup tree[5];
static struct cgroup_subsys_state above; /* the root has no parent: all zero is what BPF would read */

struct fake {
        struct task_struct task;
        struct pid pid;
        struct signal_struct signal;
        struct mm_struct mm;
        struct css_set cgroups;
};

static struct fake systemd, child, grandchild;

static void make(struct fake *f, int number, struct fake *parent, uint64_t start_time) {
        memset(f, 0, sizeof(*f));
        f->pid.numbers[0].nr = number + 1; /* another number in the daemon's namespace */
        f->task.pid = f->task.tgid = number;
        f->task.thread_pid = &f->pid;
        f->task.group_leader = &f->task;
        f->task.real_parent = parent ? &parent->task : &f->task;
        f->task.signal = &f->signal;
        f->task.mm = &f->mm;
        f->task.start_time = start_time;
        f->task.cgroups = &f->cgroups;
        f->cgroups.dfl_cgrp = parent ? parent->cgroups.dfl_cgrp : &tree[0];
}

static int setup(void **state) {
        host_reset();
        memset(stats, 0, sizeof(stats));
        memset(controls, 0, sizeof(controls));
        old_hierarchy.hierarchy_id = 5;
        for (int i = 0; i < 5; i++) {
                nodes[i].id = ROOT_ID + (uint64_t) i;
                tree[i].kn = &nodes[i];
                tree[i].root = &hierarchy;
                tree[i].self.cgroup = &tree[i];
                tree[i].self.parent = i == 0 ? &above : i == 4 ? &tree[0].self : &tree[i - 1].self;
        }
        make(&systemd, 1, NULL, 1);
        make(&child, 100, &systemd, 2000);
        make(&grandchild, 200, &child, 3000);
        host.task = &systemd.task;
        host.now_ns = 5000;
        return 0;
}

static void arm(uint32_t session, const char *path, uint32_t depth, uint64_t root) {
        struct target target = { .root_id = root, .depth = depth };

        target.path_size = (uint32_t) snprintf(target.path, sizeof(target.path), "%s", path) + 1;
        controls[session].target = target;
        controls[session].armed_ns = 1500;
}

static void enter(struct fake *f, struct cgroup *cgroup) {
        f->cgroups.dfl_cgrp = cgroup;
        on_cgroup_attach(cgroup, &f->task);
}

static const void *event(size_t i, enum event_type type, size_t bytes) {
        assert_true(i < host.n_records);
        assert_int_equal(((const struct event_head *) host.records[i].data)->type, type);
        assert_int_equal(host.records[i].bytes, bytes);
        return host.records[i].data;
}

static void the_cgroup_is_recognised_by_the_end_of_its_path(void **state) {
        const struct event_cgroup *made;

        arm(3, "/system.slice/foo.service", 2, ROOT_ID);
        on_cgroup_mkdir(&tree[2], "/machine.slice/c1/payload/system.slice/foo.service");
        made = event(0, EVENT_CGROUP, sizeof(*made));
        assert_int_equal(made->head.session, 3);
        assert_int_equal(made->cgroup_id, UNIT_ID);
        assert_int_equal(stats[3].cgroup_id, UNIT_ID);
        assert_int_equal(stats[3].cgroup_time_ns, 5000);
}

static void other_cgroups_are_not(void **state) {
        arm(0, "/system.slice/foo.service", 2, ROOT_ID);
        on_cgroup_mkdir(&tree[2], "/system.slice/foo.servic");
        on_cgroup_mkdir(&tree[2], "/system.slice/foo.service2");
        on_cgroup_mkdir(&tree[2], "/system.slice/xfoo.service");
        on_cgroup_mkdir(&tree[2], "/foo.service");
        on_cgroup_mkdir(&tree[2], "");
        on_cgroup_mkdir(&tree[2], NULL);
        assert_int_equal(host.n_records, 0);
}

/* The same names below another manager: a container's foo.service is not the host's. */
static void the_tail_must_begin_in_the_managers_cgroup(void **state) {
        arm(0, "/system.slice/foo.service", 2, OTHER_ID);
        arm(1, "/system.slice/foo.service", 1, ROOT_ID);
        arm(2, "/system.slice/foo.service", 24, ROOT_ID);
        on_cgroup_mkdir(&tree[2], "/system.slice/foo.service");
        assert_int_equal(host.n_records, 0);
        arm(3, "/system.slice/foo.service", 2, ROOT_ID);
        on_cgroup_mkdir(&tree[2], "/system.slice/foo.service");
        assert_int_equal(host.n_records, 1);
}

static void old_hierarchies_and_free_sessions_do_not_match(void **state) {
        arm(0, "/system.slice/foo.service", 2, ROOT_ID);
        tree[2].root = &old_hierarchy;
        on_cgroup_mkdir(&tree[2], "/system.slice/foo.service");
        tree[2].root = &hierarchy;
        controls[0].armed_ns = 0;
        on_cgroup_mkdir(&tree[2], "/system.slice/foo.service");
        assert_int_equal(host.n_records, 0);
}

static void the_longest_names_match(void **state) {
        char path[TARGET_PATH_MAX], whole[TARGET_PATH_MAX + 16];

        memset(path, 'x', sizeof(path) - 1);
        path[0] = '/';
        path[sizeof(path) - 1] = '\0';
        snprintf(whole, sizeof(whole), "/before%s", path);
        arm(0, path, 1, SLICE_ID);
        on_cgroup_mkdir(&tree[2], whole);
        assert_int_equal(host.n_records, 1);
        whole[9] = 'y';
        on_cgroup_mkdir(&tree[2], whole);
        assert_int_equal(host.n_records, 1);
}

static void who_joins_is_a_member_and_so_are_its_children(void **state) {
        const struct event_join *joined;
        const struct event_fork *forked;

        arm(3, "/system.slice/foo.service", 2, ROOT_ID);
        on_cgroup_mkdir(&tree[2], "/system.slice/foo.service");
        enter(&child, &tree[2]);
        joined = event(1, EVENT_JOIN, sizeof(*joined));
        assert_int_equal(joined->head.session, 3);
        assert_int_equal(joined->head.tgid, 101);
        assert_int_equal(joined->head.host_tgid, 100);
        assert_int_equal(joined->parent_tgid, 2);
        assert_int_equal(joined->born, 0);

        child.cgroups.dfl_cgrp = &tree[4]; /* moved out: it stays in */
        grandchild.cgroups.dfl_cgrp = &tree[4];
        on_fork(&child.task, &grandchild.task);
        forked = event(2, EVENT_FORK, sizeof(*forked));
        assert_int_equal(forked->head.tgid, 101);
        assert_int_equal(forked->child_tgid, 201);
        assert_int_equal(forked->child_host_tgid, 200);
        assert_int_equal(member_of(200)->session, 3);
}

static void joining_twice_is_joining_once(void **state) {
        arm(3, "/system.slice/foo.service", 2, ROOT_ID);
        on_cgroup_mkdir(&tree[2], "/system.slice/foo.service");
        enter(&child, &tree[2]);
        enter(&child, &tree[2]);
        assert_int_equal(host.n_records, 2);
}

static void cgroups_below_belong_to_the_unit(void **state) {
        arm(3, "/system.slice/foo.service", 2, ROOT_ID);
        on_cgroup_mkdir(&tree[2], "/system.slice/foo.service");
        on_cgroup_mkdir(&tree[3], "/system.slice/foo.service/payload");
        assert_int_equal(host.n_records, 1); /* only the unit's own is told */
        enter(&child, &tree[3]);
        assert_int_equal(member_of(100)->session, 3);
}

static void threads_are_no_processes(void **state) {
        arm(3, "/system.slice/foo.service", 2, ROOT_ID);
        on_cgroup_mkdir(&tree[2], "/system.slice/foo.service");
        enter(&child, &tree[2]);
        grandchild.task.tgid = 100;
        grandchild.task.group_leader = &child.task;
        on_fork(&child.task, &grandchild.task);
        assert_int_equal(host.n_records, 2);
}

/* As systemd 254 and newer starts a command. */
static void who_is_born_inside_is_a_member(void **state) {
        const struct event_join *joined;

        arm(3, "/system.slice/foo.service", 2, ROOT_ID);
        on_cgroup_mkdir(&tree[2], "/system.slice/foo.service");
        child.cgroups.dfl_cgrp = &tree[2];
        on_fork(&systemd.task, &child.task);
        joined = event(1, EVENT_JOIN, sizeof(*joined));
        assert_int_equal(joined->born, 1);
        assert_int_equal(joined->head.host_tgid, 100);
}

static void leftovers_and_their_children_stay_out(void **state) {
        uint64_t id = UNIT_ID, below = BELOW_ID;
        uint32_t session = 3;

        arm(3, "/system.slice/foo.service", 2, ROOT_ID);
        bpf_map_update_elem(&cgroups, &id, &session, BPF_ANY);
        bpf_map_update_elem(&cgroups, &below, &session, BPF_ANY);
        make(&child, 100, &systemd, 1400); /* older than the arming */
        child.cgroups.dfl_cgrp = &tree[2];
        enter(&child, &tree[3]); /* changes within its unit */
        grandchild.cgroups.dfl_cgrp = &tree[3];
        on_fork(&child.task, &grandchild.task);
        assert_int_equal(host.n_records, 0);
        assert_null(member_of(100));
        assert_null(member_of(200));
}

static uint32_t exec_as(struct fake *f, const char *path) {
        struct linux_binprm bprm = { .filename = path };
        static const char arguments[] = "prog\0-x\0";

        f->mm.arg_start = (uintptr_t) arguments;
        f->mm.arg_end = (uintptr_t) arguments + sizeof(arguments) - 1;
        host.n_records = 0;
        on_exec(&f->task, &bprm);
        return ((const struct event_exec *) event(0, EVENT_EXEC, sizeof(struct event_exec) + 8))->program;
}

static void programs_are_told_apart_by_path_and_command(void **state) {
        const struct event_exec *event_exec = (const struct event_exec *) host.records[0].data;
        uint32_t pre, start;

        arm(3, "/system.slice/foo.service", 2, ROOT_ID);
        on_cgroup_mkdir(&tree[2], "/system.slice/foo.service");
        enter(&child, &tree[2]);
        pre = exec_as(&child, "/usr/bin/prog");
        assert_int_equal(event_exec->path_size, sizeof("/usr/bin/prog"));
        assert_string_equal(event_exec->path, "/usr/bin/prog");
        assert_memory_equal(event_exec + 1, "prog\0-x\0", 8);
        assert_int_equal(member_of(100)->program, pre);
        assert_int_not_equal(exec_as(&child, "/usr/bin/other"), pre);
        assert_int_equal(exec_as(&child, "/usr/bin/prog"), pre);

        host.now_ns = 6000; /* the next command of the unit */
        make(&child, 100, &systemd, 5500);
        bpf_map_delete_elem(&members, &child.task.pid);
        enter(&child, &tree[2]);
        start = exec_as(&child, "/usr/bin/prog");
        assert_int_not_equal(start, pre);
        assert_true(pre > 0 && start > 0);
}

static void arguments_that_cannot_be_read_are_left_out(void **state) {
        struct linux_binprm bprm = { .filename = "/x" };

        arm(3, "/system.slice/foo.service", 2, ROOT_ID);
        on_cgroup_mkdir(&tree[2], "/system.slice/foo.service");
        enter(&child, &tree[2]);
        host.n_records = 0;
        child.mm.arg_start = 0;
        child.mm.arg_end = UINT64_MAX; /* as a hostile process can make it with prctl(2) */
        on_exec(&child.task, &bprm);
        event(0, EVENT_EXEC, sizeof(struct event_exec));
}

static void too_many_programs_share_number_0(void **state) {
        arm(3, "/system.slice/foo.service", 2, ROOT_ID);
        on_cgroup_mkdir(&tree[2], "/system.slice/foo.service");
        enter(&child, &tree[2]);
        for (unsigned i = 1; i < PROGRAM_MAX; i++) {
                char path[32];

                snprintf(path, sizeof(path), "/usr/bin/%u", i);
                assert_int_equal(exec_as(&child, path), i);
        }
        assert_int_equal(exec_as(&child, "/usr/bin/one-more"), 0);
        assert_int_equal(stats[3].lost[LOSS_PROGRAMS], 1);
}

static void the_last_thread_ends_the_member(void **state) {
        const struct event_exit *ended;

        arm(3, "/system.slice/foo.service", 2, ROOT_ID);
        on_cgroup_mkdir(&tree[2], "/system.slice/foo.service");
        enter(&child, &tree[2]);
        child.signal.live.counter = 1;
        on_exit(&child.task, member_of(100));
        assert_int_equal(host.n_records, 2);

        child.signal.live.counter = 0;
        child.task.exit_code = 3 << 8;
        on_exit(&child.task, member_of(100));
        ended = event(2, EVENT_EXIT, sizeof(*ended));
        assert_int_equal(ended->exit_code, 3 << 8);
        assert_int_equal(ended->head.tgid, 101);
        assert_null(member_of(100));
}

static void a_killed_process_ends_with_its_signal(void **state) {
        const struct event_exit *ended;

        arm(3, "/system.slice/foo.service", 2, ROOT_ID);
        on_cgroup_mkdir(&tree[2], "/system.slice/foo.service");
        enter(&child, &tree[2]);
        child.task.exit_code = 0;
        child.signal.flags = SIGNAL_GROUP_EXIT;
        child.signal.group_exit_code = 9;
        on_exit(&child.task, member_of(100));
        ended = event(2, EVENT_EXIT, sizeof(*ended));
        assert_int_equal(ended->exit_code, 9);
}

static void pids_outside_of_our_namespace_are_0(void **state) {
        struct {
                struct pid pid;
                struct upid more;
        } nested = { .pid = { .level = 1, .numbers = { { 100, NULL } } }, .more = { 7, (void *) 0x77 } };

        facts.pid_level = 1;
        facts.pid_namespace = 0x77;
        assert_int_equal(visible_pid(&nested.pid), 7);
        assert_int_equal(visible_pid(&child.pid), 0); /* it lives above us */
        facts.pid_namespace = 0x78;
        assert_int_equal(visible_pid(&nested.pid), 0); /* a sibling namespace */
        assert_int_equal(visible_pid(NULL), 0);
        facts.pid_level = 0;
        facts.pid_namespace = 0;
}

static void a_full_member_table_is_counted(void **state) {
        arm(3, "/system.slice/foo.service", 2, ROOT_ID);
        on_cgroup_mkdir(&tree[2], "/system.slice/foo.service");
        enter(&child, &tree[2]);
        host.map_limit = 1;
        on_fork(&child.task, &grandchild.task);
        assert_int_equal(stats[3].lost[LOSS_PROCESSES], 1);
        assert_int_equal(host.n_records, 2);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(the_cgroup_is_recognised_by_the_end_of_its_path, setup),
                cmocka_unit_test_setup(other_cgroups_are_not, setup),
                cmocka_unit_test_setup(the_tail_must_begin_in_the_managers_cgroup, setup),
                cmocka_unit_test_setup(old_hierarchies_and_free_sessions_do_not_match, setup),
                cmocka_unit_test_setup(the_longest_names_match, setup),
                cmocka_unit_test_setup(who_joins_is_a_member_and_so_are_its_children, setup),
                cmocka_unit_test_setup(joining_twice_is_joining_once, setup),
                cmocka_unit_test_setup(cgroups_below_belong_to_the_unit, setup),
                cmocka_unit_test_setup(threads_are_no_processes, setup),
                cmocka_unit_test_setup(who_is_born_inside_is_a_member, setup),
                cmocka_unit_test_setup(leftovers_and_their_children_stay_out, setup),
                cmocka_unit_test_setup(programs_are_told_apart_by_path_and_command, setup),
                cmocka_unit_test_setup(arguments_that_cannot_be_read_are_left_out, setup),
                cmocka_unit_test_setup(too_many_programs_share_number_0, setup),
                cmocka_unit_test_setup(the_last_thread_ends_the_member, setup),
                cmocka_unit_test_setup(a_killed_process_ends_with_its_signal, setup),
                cmocka_unit_test_setup(pids_outside_of_our_namespace_are_0, setup),
                cmocka_unit_test_setup(a_full_member_table_is_counted, setup),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
