/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "common/fd.h"
#include "daemon/ledger.h"

enum { SHELL = 10, CHILD = 11, MSEC = 1000000 };

struct world {
        struct mappings *mappings;
        struct ledger *ledger;
        struct recording *recording;
        int proc_fd;
        unsigned told[REC_MILESTONE_MAX];
};

static void on_milestone(void *userdata, enum rec_milestone_kind kind, uint64_t time_ns) {
        ((struct world *) userdata)->told[kind]++;
}

static int setup(void **state) {
        struct world *w = calloc(1, sizeof(*w));
        struct ledger_options options = { .begin_ns = 100,
                                          .period_ns = 10 * MSEC,
                                          .milestone = on_milestone };

        assert_non_null(w);
        w->proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        w->mappings = mappings_new(w->proc_fd);
        options.mappings = w->mappings;
        options.proc_fd = w->proc_fd;
        options.userdata = w;
        w->ledger = ledger_new(&options);
        assert_non_null(w->ledger);
        *state = w;
        return 0;
}

static int teardown(void **state) {
        struct world *w = *state;

        recording_free(w->recording);
        ledger_free(w->ledger);
        mappings_unref(w->mappings);
        fd_close(w->proc_fd);
        free(w);
        return 0;
}

static struct event_head head(enum event_type type, uint32_t tgid, uint64_t time_ns) {
        return (struct event_head){ .type = type, .time_ns = time_ns, .tgid = tgid, .tid = tgid };
}

static void join(struct world *w, uint32_t pid, uint64_t time_ns) {
        struct event_join event = { .head = head(EVENT_JOIN, pid, time_ns),
                                    .parent_tgid = 1,
                                    .comm = "(shell)" };

        ledger_event(w->ledger, &event.head, sizeof(event), NULL);
}

static void fork_child(struct world *w, uint32_t parent, uint32_t pid, uint64_t time_ns) {
        struct event_fork event = { .head = head(EVENT_FORK, parent, time_ns), .child_tgid = pid };

        ledger_event(w->ledger, &event.head, sizeof(event), NULL);
}

static void exec_as(struct world *w, uint32_t pid, const char *path, uint32_t program, uint64_t time_ns,
                    const struct pins *pins) {
        struct {
                struct event_exec event;
                char arguments[8];
        } record = { .event = { .head = head(EVENT_EXEC, pid, time_ns), .program = program, .comm = "comm" },
                     .arguments = "sh\0-c\0x" };

        record.event.path_size = (uint32_t) strlen(path) + 1;
        memcpy(record.event.path, path, record.event.path_size);
        ledger_event(w->ledger, &record.event.head, sizeof(record), pins);
}

static void end(struct world *w, uint32_t pid, uint32_t code, uint64_t time_ns) {
        struct event_exit event = { .head = head(EVENT_EXIT, pid, time_ns), .exit_code = code };

        ledger_event(w->ledger, &event.head, sizeof(event), NULL);
}

static void sample(struct world *w, uint32_t pid, uint32_t flags, uint64_t time_ns) {
        struct event_sample event = { .head = head(EVENT_SAMPLE, pid, time_ns),
                                      .flags = flags,
                                      .syscall = SYSCALL_NONE,
                                      .comm = "thread" };

        ledger_event(w->ledger, &event.head, sizeof(event), NULL);
}

static void path(struct world *w, uint32_t pid, enum path_kind kind, const char *text, uint64_t time_ns) {
        struct event_path event = { .head = head(EVENT_PATH, pid, time_ns), .kind = kind };

        event.path_size = (uint32_t) strlen(text) + 1;
        memcpy(event.path, text, event.path_size);
        ledger_event(w->ledger, &event.head, sizeof(event), NULL);
}

static const struct recording *record(struct world *w) {
        struct recording_writer *writer = recording_writer_new(true);
        struct rec_start start = {};
        _cleanup_free_ void *data = NULL;
        size_t bytes;

        recording_writer_rows(writer, REC_START, &start, sizeof(start), 1);
        assert_int_equal(ledger_write(w->ledger, writer), 0);
        assert_int_equal(recording_writer_finish(writer, false, &data, &bytes), 0);
        assert_int_equal(recording_open(data, bytes, &w->recording), 0);
        recording_writer_free(writer);
        return w->recording;
}

static const char *text(struct world *w, uint32_t number) {
        return recording_text(w->recording, number);
}

static void a_process_has_a_life(void **state) {
        static const struct pins pins = { REC_NONE, REC_NONE, "/usr/bin/dash", "/srv" };
        struct world *w = *state;
        const struct recording *r;

        join(w, SHELL, 200);
        exec_as(w, SHELL, "/bin/sh", 1, 300, &pins);
        fork_child(w, SHELL, CHILD, 400);
        exec_as(w, CHILD, "bin/tool", 2, 500, NULL); /* gone before it could be looked at */
        end(w, CHILD, 9, 600);
        r = record(w);

        assert_int_equal(r->n_processes, 2);
        assert_int_equal(r->processes[0].parent_pid, 1);
        assert_int_equal(r->processes[0].begin_ns, 200);
        assert_int_equal(r->processes[0].exec_ns, 300);
        assert_int_equal(r->processes[0].end_ns, 0);
        assert_string_equal(text(w, r->processes[0].exe), "/usr/bin/dash");
        assert_string_equal(text(w, r->processes[0].cwd), "/srv");
        assert_string_equal(text(w, r->processes[0].arguments), "sh -c x");
        assert_int_equal(r->processes[1].parent_pid, SHELL);
        assert_string_equal(text(w, r->processes[1].exe), "bin/tool");
        assert_int_equal(r->processes[1].end_ns, 600);
        assert_int_equal(r->processes[1].exit_code, 9);
        assert_int_equal(r->n_programs, 3);
        assert_string_equal(text(w, r->programs[2].exe), "bin/tool");
}

static void a_reused_pid_is_a_new_process(void **state) {
        struct world *w = *state;
        const struct recording *r;

        join(w, SHELL, 200);
        end(w, SHELL, 0, 300);
        sample(w, SHELL, SAMPLE_USER, 350); /* whose? nobody's */
        join(w, SHELL, 400);
        sample(w, SHELL, SAMPLE_USER, 450);
        r = record(w);
        assert_int_equal(r->n_processes, 2);
        assert_int_equal(r->n_samples, 1);
        assert_int_equal(r->samples[0].process, 1);
        assert_int_equal(ledger_lost(w->ledger, LOSS_SAMPLE), 1);
}

static void events_outside_of_the_capture_are_not_in_it(void **state) {
        struct world *w = *state;

        join(w, SHELL, 99);
        join(w, SHELL, 100);
        ledger_end(w->ledger, 500);
        sample(w, SHELL, SAMPLE_USER, 500);
        sample(w, SHELL, SAMPLE_USER, 501);
        assert_int_equal(record(w)->n_samples, 1);
        assert_int_equal(w->recording->n_processes, 1);
        assert_int_equal(w->recording->samples[0].weight_ns, 10 * MSEC);
        assert_int_equal(ledger_after_end(w->ledger), 1);
        assert_int_equal(ledger_lost(w->ledger, LOSS_SAMPLE), 0);
}

/* The event that told of it was lost itself. */
static void what_comes_of_an_unknown_process_is_lost(void **state) {
        struct event_sample wait = { .head = head(EVENT_WAIT, CHILD, 300), .wait = { .weight_ns = MSEC } };
        struct world *w = *state;

        join(w, SHELL, 200);
        sample(w, 0, SAMPLE_USER, 300);
        wait.head.tgid = 0;
        ledger_event(w->ledger, &wait.head, sizeof(wait), NULL);
        path(w, 0, PATH_OPEN, "/etc/passwd", 300);
        assert_int_equal(ledger_lost(w->ledger, LOSS_SAMPLE), 1);
        assert_int_equal(ledger_lost(w->ledger, LOSS_WAIT), 1);
        assert_int_equal(ledger_lost(w->ledger, LOSS_PATH), 1);
        assert_int_equal(record(w)->n_samples, 0);
        assert_int_equal(w->recording->n_paths, 0);
}

static void milestones_are_told_once_per_kind(void **state) {
        static const struct pins executor = { REC_NONE, REC_NONE, "/usr/lib/systemd/systemd-executor", "/" };
        struct event_cgroup cgroup = { .head = head(EVENT_CGROUP, 1, 150) };
        struct world *w = *state;
        const struct recording *r;

        ledger_event(w->ledger, &cgroup.head, sizeof(cgroup), NULL);
        join(w, SHELL, 200);
        exec_as(w, SHELL, "/proc/self/fd/9", 1, 250, &executor);
        assert_int_equal(w->told[REC_MILESTONE_EXEC], 0);
        exec_as(w, SHELL, "/bin/sh", 2, 300, NULL);
        exec_as(w, SHELL, "/bin/sh", 2, 310, NULL);
        fork_child(w, SHELL, CHILD, 320);
        exec_as(w, CHILD, "/bin/tool", 3, 330, NULL); /* a child of the unit's own: no milestone */
        path(w, SHELL, PATH_LISTEN, "", 400);
        path(w, SHELL, PATH_LISTEN, "", 410);
        path(w, SHELL, PATH_NOTIFY, "READY=1", 420);
        r = record(w);

        assert_int_equal(w->told[REC_MILESTONE_CGROUP], 1);
        assert_int_equal(w->told[REC_MILESTONE_EXEC], 1);
        assert_int_equal(w->told[REC_MILESTONE_LISTEN], 1);
        assert_int_equal(r->n_milestones, 6);
        assert_int_equal(r->milestones[0].kind, REC_MILESTONE_CGROUP);
        assert_int_equal(r->milestones[0].process, REC_NONE);
        assert_int_equal(r->milestones[1].kind, REC_MILESTONE_EXECUTOR);
        assert_int_equal(r->milestones[2].kind, REC_MILESTONE_EXEC);
        assert_string_equal(text(w, r->milestones[2].detail), "sh -c x");
        assert_int_equal(r->milestones[4].kind, REC_MILESTONE_LISTEN);
        assert_int_equal(r->milestones[5].kind, REC_MILESTONE_READY_SENT);
        assert_int_equal(r->processes[0].exec_ns, 300); /* not the executor's */
        assert_string_equal(text(w, r->programs[1].exe), "/usr/lib/systemd/systemd-executor");
}

static void slots_reach_processes_programs_and_milestones(void **state) {
        struct world *w = *state;
        const struct recording *r;

        ledger_set_slot(w->ledger, SHELL, REC_SLOT_START_PRE);
        join(w, SHELL, 200);
        exec_as(w, SHELL, "/bin/sh", 1, 300, NULL);
        fork_child(w, SHELL, CHILD, 400);
        r = record(w);
        assert_int_equal(r->processes[1].slot, REC_SLOT_START_PRE);
        assert_int_equal(r->programs[1].slot, REC_SLOT_START_PRE);
        assert_int_equal(r->milestones[0].slot, REC_SLOT_START_PRE);
}

static void map(struct world *w, uint32_t pid, const char *file, uint64_t time_ns) {
        struct perf_map m = { .pid = pid,
                              .time_ns = time_ns,
                              .start = 0x1000,
                              .bytes = 0x1000,
                              .path = file,
                              .build_id = { 1, 2, 3 },
                              .build_id_bytes = 3 };

        ledger_map(w->ledger, &m);
}

static void only_members_have_modules(void **state) {
        struct world *w = *state;
        const struct recording *r;

        join(w, SHELL, 200);
        map(w, CHILD, "/lib/other.so", 210);
        ledger_image(w->ledger, SHELL, 220);
        map(w, SHELL, "/bin/sh", 230);
        assert_int_equal(mappings_count(w->mappings), 0); /* until the exec says where it lives */
        exec_as(w, SHELL, "/bin/sh", 1, 300, NULL);
        map(w, SHELL, "/lib/libc.so.6", 310);
        end(w, SHELL, 0, 400);
        map(w, SHELL, "/lib/late.so", 410);
        r = record(w);
        assert_int_equal(r->n_modules, 2);
        assert_string_equal(text(w, r->modules[0].path), "/bin/sh");
        assert_int_equal(r->modules[0].build_id_bytes, 3);
        assert_string_equal(text(w, r->modules[1].path), "/lib/libc.so.6");
}

static void waits_of_a_thread_and_call_are_one_row(void **state) {
        struct wait_key key = { .tgid = SHELL, .tid = SHELL, .syscall = 7 },
                        rest = { .syscall = SYSCALL_NONE };
        struct wait_value a = { 10, 4, 1, 10, 1 }, b = { 20, 0, 2, 20, 2 };
        struct world *w = *state;
        const struct recording *r;

        join(w, SHELL, 200);
        ledger_add_wait(w->ledger, &key, &a);
        ledger_add_wait(w->ledger, &key, &b);
        ledger_add_wait(w->ledger, &rest, &a);
        r = record(w);
        assert_int_equal(r->n_waits, 2);
        assert_int_equal(r->waits[0].blocked_ns, 30);
        assert_int_equal(r->waits[0].io_ns, 4);
        assert_int_equal(r->waits[0].runnable_ns, 3);
        assert_int_equal(r->waits[0].longest_ns, 20);
        assert_int_equal(r->waits[0].count, 3);
        assert_int_equal(r->waits[0].process, 0);
        assert_int_equal(r->waits[1].process, REC_NONE);
}

static void long_waits_are_samples(void **state) {
        struct event_sample event = { .head = head(EVENT_WAIT, SHELL, 300 + 2 * MSEC),
                                      .syscall = 7,
                                      .comm = "main",
                                      .wait = { .blocked_ns = 100,
                                                .runnable_ns = 2 * MSEC,
                                                .weight_ns = 20 * MSEC,
                                                .flags = WAIT_IO,
                                                .waker_tgid = 5,
                                                .waker_comm = "kworker" } };
        struct event_sample fault = { .head = head(EVENT_WAIT, SHELL, 310),
                                      .syscall = SYSCALL_FAULT,
                                      .wait = { .weight_ns = 10 * MSEC, .flags = WAIT_FAULT } };
        struct world *w = *state;
        const struct recording *r;

        join(w, SHELL, 200);
        ledger_event(w->ledger, &event.head, sizeof(event), NULL);
        ledger_event(w->ledger, &fault.head, sizeof(fault), NULL);
        r = record(w);
        assert_int_equal(r->samples[0].kind, REC_SAMPLE_WAIT);
        assert_int_equal(r->samples[0].weight_ns, 20 * MSEC);
        assert_int_equal(r->samples[0].blocked_ns, 100);
        assert_int_equal(r->samples[0].time_ns, 300);
        assert_string_equal(text(w, r->samples[0].comm), "main");
        assert_int_equal(r->samples[0].flags, REC_SAMPLE_IO | REC_SAMPLE_NO_STACK);
        assert_string_equal(text(w, r->samples[0].waker_comm), "kworker");
        assert_int_equal(r->samples[1].kind, REC_SAMPLE_FAULT);
        assert_int_equal(r->samples[1].syscall, REC_CALL_FAULT);
}

static void paths_and_directories_are_kept(void **state) {
        static const uint8_t address[16] = { 2, 0, 0, 53, 127, 0, 0, 1 };
        struct event_path connect = {
                .head = head(EVENT_PATH, SHELL, 320), .kind = PATH_CONNECT, .path_size = 16, .result = -115
        };
        struct dir_key dir = { .program = 4, .kind = PATH_INOTIFY, .dir = "/usr/share" };
        struct world *w = *state;
        const struct recording *r;

        memcpy(connect.path, address, sizeof(address));
        join(w, SHELL, 200);
        path(w, SHELL, PATH_INOTIFY, "/usr/share/x", 300);
        path(w, SHELL, PATH_CHDIR, "/opt/app", 310);
        ledger_event(w->ledger, &connect.head, sizeof(connect), NULL);
        ledger_add_dir(w->ledger, &dir, 600);
        r = record(w);
        assert_int_equal(r->n_paths, 3);
        assert_int_equal(r->paths[0].kind, REC_PATH_INOTIFY);
        assert_string_equal(text(w, r->paths[0].path), "/usr/share/x");
        assert_string_equal(text(w, r->paths[2].path), "inet:127.0.0.1:53");
        assert_int_equal(r->paths[2].result, -115);
        assert_string_equal(text(w, r->processes[0].cwd), "/opt/app");
        assert_int_equal(r->dirs[0].count, 600);
        assert_string_equal(text(w, r->dirs[0].path), "/usr/share");
        assert_true(r->dirs[0].program < r->n_programs);
}

static void the_hottest_process_is_the_one_with_most_samples(void **state) {
        _cleanup_(buf_done) struct buf b = BUF_NULL;
        struct world *w = *state;

        ledger_hottest(w->ledger, &b);
        assert_string_equal(buf_text(&b), "");
        join(w, SHELL, 200);
        join(w, CHILD, 210);
        exec_as(w, CHILD, "/x", 1, 220, NULL);
        sample(w, SHELL, SAMPLE_USER, 300);
        sample(w, CHILD, SAMPLE_USER, 310);
        sample(w, CHILD, SAMPLE_USER, 320);
        ledger_hottest(w->ledger, &b);
        assert_string_equal(buf_text(&b), "comm");
}

/* The kernel side is ours, yet no number of it may lead outside of a table. */
static void odd_numbers_do_no_harm(void **state) {
        struct call_key call = { .program = 0xffff, .syscall = 1 };
        struct call_value once = { 1, 1, 1 };
        struct dir_key dir = { .program = 0xffff, .kind = 0xffff };
        struct world *w = *state;
        const struct recording *r;

        exec_as(w, CHILD, "/x", 100000, 220, NULL); /* never joined: an event was lost */
        sample(w, 0, SAMPLE_USER, 300);
        fork_child(w, 77, 78, 310); /* of a parent that is not known */
        ledger_add_call(w->ledger, &call, &once);
        ledger_add_dir(w->ledger, &dir, 1);
        r = record(w);
        assert_int_equal(r->n_processes, 2);
        assert_int_equal(r->n_calls, 0);
        assert_int_equal(r->n_dirs, 0);
}

#define WORLD(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void) {
        const struct CMUnitTest tests[] = {
                WORLD(a_process_has_a_life),
                WORLD(a_reused_pid_is_a_new_process),
                WORLD(events_outside_of_the_capture_are_not_in_it),
                WORLD(what_comes_of_an_unknown_process_is_lost),
                WORLD(milestones_are_told_once_per_kind),
                WORLD(slots_reach_processes_programs_and_milestones),
                WORLD(only_members_have_modules),
                WORLD(waits_of_a_thread_and_call_are_one_row),
                WORLD(long_waits_are_samples),
                WORLD(paths_and_directories_are_kept),
                WORLD(the_hottest_process_is_the_one_with_most_samples),
                WORLD(odd_numbers_do_no_harm),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
