/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * The kernel side for real: arms a cgroup of its own, starts "services" in it (tests/bpf/actions.c), and
 * asserts counts and orders on the recording that comes out.
 *
 * usage: harness CGROUP2-MOUNT [CASE]        prints `ok CASE` or `not ok CASE: why`
 */

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/log.h"
#include "common/macro.h"
#include "daemon/collect.h"
#include "proto/recording.h"
#include "tests/bpf/actions.h"
#include "tests/bpf/harness.h"

enum {
        WRITE_TIMEOUT_SEC = 20,
};

static const char *mount_point; /* of the v2 hierarchy */
static struct collect *collect;
static char slice[PATH_BYTES / 2]; /* directory of this run, below the mount point */

/* ---- failing ---- */

static char failure[1024];

bool expect(bool holds, const char *format, ...) {
        va_list arguments;

        if (holds || failure[0])
                return holds;
        va_start(arguments, format);
        vsnprintf(failure, sizeof(failure), format, arguments);
        va_end(arguments);
        return false;
}

/* ---- units ---- */

uint64_t now_ns(void) {
        struct timespec ts;

        clock_gettime(CLOCK_MONOTONIC, &ts);
        return (uint64_t) ts.tv_sec * NSEC_PER_SEC + (uint64_t) ts.tv_nsec;
}

void name_unit(struct unit *unit, const char *name) {
        memset(unit, 0, sizeof(*unit));
        snprintf(unit->path, sizeof(unit->path), "%s/%s", slice + strlen(mount_point), name);
        snprintf(unit->dir, sizeof(unit->dir), "%s/%s", slice, name);
}

struct target target_of(const struct unit *unit) {
        struct target target = {};
        struct stat st;

        target.path_size = (uint32_t) snprintf(target.path, sizeof(target.path), "%s", unit->path) + 1;
        for (const char *c = unit->path; *c; c++)
                target.depth += *c == '/';
        if (stat(mount_point, &st) == 0)
                target.root_id = st.st_ino;
        return target;
}

void arm_at(struct unit *unit, uint32_t frequency_hz) {
        struct capture_options options = { .target = target_of(unit),
                                           .cgroup_dir = unit->dir,
                                           .frequency_hz = frequency_hz };
        int r;

        options.worker_uid = options.worker_gid = 65534;
        r = capture_new(collect, &options, &unit->capture);
        expect(r == 0, "arming %s: %s", unit->path, strerror(-r));
}

void arm(struct unit *unit) {
        arm_at(unit, FREQUENCY);
}

void make_cgroup(const char *dir) {
        expect(mkdir(dir, 0755) == 0, "%s: %s", dir, strerror(errno));
}

/* What systemd's child does before its exec. */
static void join_and_exec(const char *dir, const char *action, const char *number) {
        char procs[PATH_BYTES + 32];
        int fd;

        snprintf(procs, sizeof(procs), "%s/cgroup.procs", dir);
        fd = open(procs, O_WRONLY | O_CLOEXEC);
        if (fd < 0 || write(fd, "0", 1) != 1)
                _exit(126);
        execl("/proc/self/exe", "harness", "--do", action, number, (char *) NULL);
        _exit(125);
}

pid_t start(const char *dir, const char *action, const char *number) {
        pid_t pid = fork();

        if (pid == 0)
                join_and_exec(dir, action, number);
        expect(pid > 0, "fork: %s", strerror(errno));
        return pid;
}

static bool file_begins(const char *path, const char *text) {
        _cleanup_free_ char *data = NULL;

        return read_file_at(AT_FDCWD, path, 65536, &data, NULL) == 0 &&
               (text ? startswith(data, text) != NULL : data[0] != '\0');
}

/* Until somebody is in the cgroup. */
static void wait_until_in(const char *dir) {
        char path[PATH_BYTES + 32];

        snprintf(path, sizeof(path), "%s/cgroup.procs", dir);
        for (int i = 0; i < POLLS_MAX && !file_begins(path, NULL); i++)
                usleep(1000);
        expect(file_begins(path, NULL), "nobody came into %s", dir);
}

void wait_until_in_call(pid_t pid, int syscall_nr) {
        char path[64], call[16];

        snprintf(path, sizeof(path), "/proc/%d/syscall", (int) pid);
        snprintf(call, sizeof(call), "%d ", syscall_nr);
        for (int i = 0; i < POLLS_MAX && !file_begins(path, call); i++)
                usleep(1000);
        expect(file_begins(path, call), "%d is not in call %d", (int) pid, syscall_nr);
}

int wait_for(pid_t pid) {
        int status = -1;

        expect(waitpid(pid, &status, 0) == pid, "waitpid: %s", strerror(errno));
        return status;
}

void run(const char *dir, const char *action, const char *number) {
        int status = wait_for(start(dir, action, number));

        expect(status == 0, "%s %s: wait status %#x", action, number, (unsigned) status);
}

void finish(struct unit *unit) {
        _cleanup_free_ void *data = NULL;
        struct recording_writer *w = recording_writer_new(true);
        const char *problem = NULL;
        size_t bytes;
        int r;

        if (!unit->capture)
                return;
        capture_stop(unit->capture, now_ns());
        r = capture_write(unit->capture, now_ns() + WRITE_TIMEOUT_SEC * NSEC_PER_SEC, w, &unit->start,
                          &problem);
        expect(r == 0, "writing: %s", strerror(-r));
        expect(!problem, "writing: %s", problem);
        recording_writer_rows(w, REC_START, &unit->start, sizeof(unit->start), 1);
        r = recording_writer_finish(w, false, &data, &bytes);
        if (r == 0)
                r = recording_open(data, bytes, &unit->recording);
        expect(r == 0, "opening the recording: %s", strerror(-r));
        recording_writer_free(w);
        unit->capture = capture_free(unit->capture);
}

void done(struct unit *unit) {
        unit->capture = capture_free(unit->capture);
        recording_free(unit->recording);
        for (int i = 0; i < 1000 && rmdir(unit->dir) < 0 && errno == EBUSY; i++)
                usleep(1000); /* the last task is dead, but not yet out of its cgroup */
}

/* ---- questions ---- */

const struct rec_process *find_process(const struct recording *r, const char *argument) {
        for (uint32_t i = 0; r && i < r->n_processes; i++)
                if (strstr(recording_text(r, r->processes[i].arguments), argument))
                        return &r->processes[i];
        return NULL;
}

static uint32_t count_processes(const struct recording *r, const char *argument) {
        uint32_t n = 0;

        for (uint32_t i = 0; r && i < r->n_processes; i++)
                n += strstr(recording_text(r, r->processes[i].arguments), argument) != NULL;
        return n;
}

static uint64_t count_calls(const struct recording *r, uint32_t syscall_nr, uint32_t error) {
        uint64_t n = 0;

        for (uint32_t i = 0; r && i < r->n_calls; i++)
                if (r->calls[i].syscall == syscall_nr && r->calls[i].error == error)
                        n += r->calls[i].count;
        return n;
}

uint64_t sum_waits(const struct recording *r, uint32_t call) {
        uint64_t ns = 0;

        for (uint32_t i = 0; r && i < r->n_waits; i++)
                if (r->waits[i].syscall == call)
                        ns += r->waits[i].blocked_ns;
        return ns;
}

uint32_t count_samples(const struct recording *r, enum rec_sample_kind kind) {
        uint32_t n = 0;

        for (uint32_t i = 0; r && i < r->n_samples; i++)
                n += r->samples[i].kind == kind;
        return n;
}

static const struct rec_milestone *find_milestone(const struct recording *r, enum rec_milestone_kind kind) {
        for (uint32_t i = 0; r && i < r->n_milestones; i++)
                if (r->milestones[i].kind == kind)
                        return &r->milestones[i];
        return NULL;
}

bool has_frame(const struct recording *r, uint32_t stack, const char *name) {
        const struct rec_stack *row = stack < r->n_stacks ? &r->stacks[stack] : NULL;

        for (uint32_t k = 0; row && k < row->count; k++) {
                uint32_t frame = r->stack_frames[row->first + k];

                for (uint32_t j = r->frame_names[frame]; j < r->frame_names[frame + 1]; j++)
                        if (streq(recording_text(r, r->names[j].name), name))
                                return true;
        }
        return false;
}

/* Samples whose stack has a frame of that name. */
static uint32_t count_named(const struct recording *r, const char *name) {
        uint32_t n = 0;

        for (uint32_t i = 0; r && i < r->n_samples; i++)
                n += has_frame(r, r->samples[i].stack, name);
        return n;
}

void expect_nothing_lost(const struct unit *unit) {
        for (int i = 0; i < REC_LOST_MAX; i++)
                expect(unit->start.lost[i] == 0, "%llu lost of kind %d",
                       (unsigned long long) unit->start.lost[i], i);
}

/* ---- cases ---- */

static void the_first_exec_is_caught(void) {
        const struct rec_milestone *cgroup, *exec;
        const struct rec_process *process;
        struct unit unit;
        uint32_t user;

        name_unit(&unit, "first.service");
        arm(&unit);
        make_cgroup(unit.dir);
        run(unit.dir, "burn", "200");
        finish(&unit);

        cgroup = find_milestone(unit.recording, REC_MILESTONE_CGROUP);
        exec = find_milestone(unit.recording, REC_MILESTONE_EXEC);
        process = find_process(unit.recording, "--do burn 200");
        user = count_samples(unit.recording, REC_SAMPLE_CPU_USER);
        expect(cgroup && exec && cgroup->time_ns < exec->time_ns,
               "cgroup and exec are no milestones in this order");
        expect(process && process->end_ns > process->exec_ns && process->exec_ns >= process->begin_ns,
               "the process has no life");
        /* 200 ms of CPU at 99 Hz are 20 samples, give or take what others take from it. */
        expect(user >= 12 && user <= 30, "%u samples in user code", user);
        expect(count_named(unit.recording, "burn_cpu") * 10 >= user * 9,
               "%u of %u samples are named burn_cpu", count_named(unit.recording, "burn_cpu"), user);
        /* The kernel does not tell each switch at the moment when another attaches: 28 ms were missed at most. */
        expect(sum_waits(unit.recording, REC_CALL_ON_CPU) >= 150 * NSEC_PER_MSEC, "time on CPU is missing");
        expect_nothing_lost(&unit);
        done(&unit);
}

static void calls_are_counted_exactly(void) {
        struct unit unit;
        uint64_t dirs = 0;

        name_unit(&unit, "calls.service");
        arm(&unit);
        make_cgroup(unit.dir);
        run(unit.dir, "close", "100000");
        run(unit.dir, "miss", "700");
        finish(&unit);

        expect(count_calls(unit.recording, SYS_close, EBADF) == 100000, "%llu closes",
               (unsigned long long) count_calls(unit.recording, SYS_close, EBADF));
        expect(count_calls(unit.recording, SYS_openat, ENOENT) >= 700, "missing files are not counted");
        for (uint32_t i = 0; unit.recording && i < unit.recording->n_dirs; i++)
                if (streq(recording_text(unit.recording, unit.recording->dirs[i].path),
                          "/nonexistent/startprof"))
                        dirs += unit.recording->dirs[i].count;
        expect(dirs == 700, "%llu below the directory", (unsigned long long) dirs);
        done(&unit);
}

static void two_hundred_short_processes_are_seen_and_named(void) {
        struct unit unit;
        uint32_t ended = 0, users;

        name_unit(&unit, "short.service");
        arm(&unit);
        make_cgroup(unit.dir);
        run(unit.dir, "spawn", "200");
        finish(&unit);

        expect(count_processes(unit.recording, "--do burn 5") == 200, "%u processes",
               count_processes(unit.recording, "--do burn 5"));
        for (uint32_t i = 0; unit.recording && i < unit.recording->n_processes; i++)
                ended += unit.recording->processes[i].end_ns > 0;
        expect(ended == 201, "%u processes ended", ended);
        users = count_samples(unit.recording, REC_SAMPLE_CPU_USER);
        expect(users >= 40, "%u samples", users);
        /* The rest of each short life is ld.so's. */
        expect(count_named(unit.recording, "burn_cpu") * 10 >= users * 6, "%u of %u samples are named",
               count_named(unit.recording, "burn_cpu"), users);
        expect_nothing_lost(&unit);
        done(&unit);
}

static void siblings_are_not_in(void) {
        struct unit unit, sibling;
        pid_t other;

        name_unit(&unit, "mine.service");
        name_unit(&sibling, "yours.service");
        arm(&unit);
        make_cgroup(sibling.dir);
        other = start(sibling.dir, "burn", "150");
        make_cgroup(unit.dir);
        run(unit.dir, "burn", "100");
        wait_for(other);
        finish(&unit);

        expect(count_processes(unit.recording, "burn 150") == 0, "the sibling is in");
        expect(unit.recording && unit.recording->n_processes == 1, "%u processes",
               unit.recording ? unit.recording->n_processes : 0);
        done(&unit);
        done(&sibling);
}

static void leftovers_are_not_in(void) {
        struct unit unit;
        pid_t leftover;

        name_unit(&unit, "left.service");
        make_cgroup(unit.dir);
        leftover = start(unit.dir, "fork", "100000000");
        wait_until_in(unit.dir);
        arm(&unit);
        run(unit.dir, "burn", "60");
        kill(leftover, SIGKILL);
        wait_for(leftover);
        finish(&unit);

        expect(unit.recording && unit.recording->n_processes == 1, "%u processes",
               unit.recording ? unit.recording->n_processes : 0);
        expect(find_process(unit.recording, "burn 60"), "what joined the old cgroup is not in");
        expect(unit.start.cgroup_ns == 0, "the old cgroup counts as made");
        done(&unit);
}

static void moved_processes_stay_in(void) {
        char elsewhere[PATH_BYTES + 32];
        struct unit unit;

        name_unit(&unit, "moved.service");
        snprintf(elsewhere, sizeof(elsewhere), "%s/cgroup.procs", slice);
        setenv("STARTPROF_TEST_ELSEWHERE", elsewhere, 1);
        arm(&unit);
        make_cgroup(unit.dir);
        run(unit.dir, "move-out", "5");
        finish(&unit);

        expect(unit.recording && unit.recording->n_processes == 6, "%u processes",
               unit.recording ? unit.recording->n_processes : 0);
        done(&unit);
}

static void a_fork_storm_is_counted(void) {
        struct unit unit;
        uint32_t ended = 0;

        name_unit(&unit, "storm.service");
        arm(&unit);
        make_cgroup(unit.dir);
        run(unit.dir, "fork", "3000");
        finish(&unit);

        for (uint32_t i = 0; unit.recording && i < unit.recording->n_processes; i++)
                ended += unit.recording->processes[i].end_ns > 0;
        expect(unit.recording && unit.recording->n_processes == 3001 && ended == 3001,
               "%u processes, %u ended", unit.recording ? unit.recording->n_processes : 0, ended);
        expect_nothing_lost(&unit);
        done(&unit);
}

static void waits_are_measured(void) {
        struct unit unit;
        uint64_t blocked;

        name_unit(&unit, "waits.service");
        arm(&unit);
        make_cgroup(unit.dir);
        run(unit.dir, "sleep", "150");
        finish(&unit);

        blocked = sum_waits(unit.recording, SYS_nanosleep) + sum_waits(unit.recording, SYS_clock_nanosleep);
        expect(blocked >= 145 * NSEC_PER_MSEC, "blocked for %llu ns", (unsigned long long) blocked);
        expect(count_samples(unit.recording, REC_SAMPLE_WAIT) >= 1, "no sample of the wait");
        done(&unit);
}

/* A process that still waits at the end has waited until then. */
static void open_waits_count_to_the_end(void) {
        struct unit unit;
        uint64_t blocked;
        pid_t pid;

        name_unit(&unit, "open.service");
        arm(&unit);
        make_cgroup(unit.dir);
        pid = start(unit.dir, "sleep", "100000");
        wait_until_in_call(pid, SYS_clock_nanosleep);
        usleep(150000); /* the time that is measured */
        finish(&unit);
        kill(pid, SIGKILL);
        wait_for(pid);

        blocked = sum_waits(unit.recording, SYS_nanosleep) + sum_waits(unit.recording, SYS_clock_nanosleep);
        expect(blocked >= 100 * NSEC_PER_MSEC && blocked <= 1000 * NSEC_PER_MSEC, "blocked for %llu ns",
               (unsigned long long) blocked);
        expect(find_process(unit.recording, "sleep") && find_process(unit.recording, "sleep")->end_ns == 0,
               "it did not end");
        done(&unit);
}

static void watches_are_counted_and_sampled(void) {
        struct session_stat stat;
        struct unit unit;
        uint64_t below_tmp = 0;
        uint32_t paths = 0;

        name_unit(&unit, "watch.service");
        arm(&unit);
        make_cgroup(unit.dir);
        run(unit.dir, "watch", "600");
        capture_stat(unit.capture, &stat);
        finish(&unit);

        expect(stat.inotify_watches == 600, "%llu watches", (unsigned long long) stat.inotify_watches);
        for (uint32_t i = 0; unit.recording && i < unit.recording->n_paths; i++)
                paths += unit.recording->paths[i].kind == REC_PATH_INOTIFY;
        for (uint32_t i = 0; unit.recording && i < unit.recording->n_dirs; i++)
                if (unit.recording->dirs[i].kind == REC_PATH_INOTIFY &&
                    startswith(recording_text(unit.recording, unit.recording->dirs[i].path),
                               "/tmp/startprof-watch-"))
                        below_tmp += unit.recording->dirs[i].count;
        expect(paths == 256 + 1, "%u paths", paths); /* the first 256, then every 256th */
        expect(below_tmp == 600, "%llu in the histogram", (unsigned long long) below_tmp);
        done(&unit);
}

static void listen_and_ready_are_milestones(void) {
        struct unit unit;

        name_unit(&unit, "ready.service");
        arm(&unit);
        make_cgroup(unit.dir);
        run(unit.dir, "listen", "0");
        finish(&unit);

        expect(find_milestone(unit.recording, REC_MILESTONE_LISTEN), "no listen");
        expect(find_milestone(unit.recording, REC_MILESTONE_READY_SENT), "no READY=1");
        for (uint32_t i = 0; unit.recording && i < unit.recording->n_paths; i++)
                if (unit.recording->paths[i].kind == REC_PATH_NOTIFY)
                        expect(streq(recording_text(unit.recording, unit.recording->paths[i].path),
                                     "READY=1"),
                               "more of the message than READY=1 was kept");
        done(&unit);
}

static void threads_are_sampled(void) {
        struct unit unit;
        uint32_t users, named;

        name_unit(&unit, "threads.service");
        arm(&unit);
        make_cgroup(unit.dir);
        run(unit.dir, "threads", "200");
        finish(&unit);

        users = count_samples(unit.recording, REC_SAMPLE_CPU_USER);
        named = count_named(unit.recording, "burn_in_thread");
        expect(users >= 10, "%u samples", users);
        expect(named * 10 >= users * 8, "%u of %u are named burn_in_thread", named, users);
        done(&unit);
}

static void two_units_at_once_are_kept_apart(void) {
        struct unit a, b;
        pid_t pid;

        name_unit(&a, "a.service");
        name_unit(&b, "b.service");
        arm(&a);
        arm(&b);
        make_cgroup(a.dir);
        make_cgroup(b.dir);
        pid = start(a.dir, "close", "2000");
        run(b.dir, "close", "3000");
        wait_for(pid);
        finish(&a);
        finish(&b);

        expect(count_calls(a.recording, SYS_close, EBADF) == 2000, "%llu closes of a",
               (unsigned long long) count_calls(a.recording, SYS_close, EBADF));
        expect(count_calls(b.recording, SYS_close, EBADF) == 3000, "%llu closes of b",
               (unsigned long long) count_calls(b.recording, SYS_close, EBADF));
        done(&a);
        done(&b);
}

static void a_second_start_is_a_new_capture(void) {
        struct unit unit;

        for (int i = 0; i < 3; i++) {
                name_unit(&unit, "again.service");
                arm(&unit);
                make_cgroup(unit.dir);
                run(unit.dir, "close", "500");
                finish(&unit);
                expect(count_calls(unit.recording, SYS_close, EBADF) == 500, "%llu closes in start %d",
                       (unsigned long long) count_calls(unit.recording, SYS_close, EBADF), i);
                expect(unit.start.cgroup_ns > 0, "start %d did not see its cgroup", i);
                done(&unit);
        }
}

/* As systemd 254 and newer starts its executor. */
static void processes_born_inside_are_in(void) {
        struct clone_args arguments = { .flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD };
        struct unit unit;
        pid_t pid;
        int fd;

        name_unit(&unit, "born.service");
        arm(&unit);
        make_cgroup(unit.dir);
        fd = open(unit.dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
        arguments.cgroup = (uint64_t) fd;
        pid = (pid_t) syscall(SYS_clone3, &arguments, sizeof(arguments));
        if (pid == 0) {
                execl("/proc/self/exe", "harness", "--do", "exit", "3", (char *) NULL);
                _exit(125);
        }
        expect(pid > 0, "clone3: %s", strerror(errno));
        expect(WEXITSTATUS(wait_for(pid)) == 3, "wrong exit status");
        fd_close(fd);
        finish(&unit);

        expect(unit.recording && unit.recording->n_processes == 1, "%u processes",
               unit.recording ? unit.recording->n_processes : 0);
        expect(find_process(unit.recording, "exit 3") &&
                       find_process(unit.recording, "exit 3")->exit_code == 3 << 8,
               "the exit status is not in the recording");
        done(&unit);
}

static void cgroups_below_are_in(void) {
        char below[PATH_BYTES + 16];
        struct unit unit;

        name_unit(&unit, "deep.service");
        arm(&unit);
        make_cgroup(unit.dir);
        snprintf(below, sizeof(below), "%s/payload", unit.dir);
        make_cgroup(below);
        run(below, "exit", "0");
        finish(&unit);
        expect(unit.recording && unit.recording->n_processes == 1, "%u processes",
               unit.recording ? unit.recording->n_processes : 0);
        for (int i = 0; i < 1000 && rmdir(below) < 0 && errno == EBUSY; i++)
                usleep(1000);
        done(&unit);
}

/* ---- running ---- */

static const struct {
        const char *name;
        void (*run)(void);
} cases[] = {
        { "first-exec", the_first_exec_is_caught },
        { "counts", calls_are_counted_exactly },
        { "short-processes", two_hundred_short_processes_are_seen_and_named },
        { "siblings", siblings_are_not_in },
        { "leftovers", leftovers_are_not_in },
        { "moved", moved_processes_stay_in },
        { "fork-storm", a_fork_storm_is_counted },
        { "waits", waits_are_measured },
        { "open-waits", open_waits_count_to_the_end },
        { "watches", watches_are_counted_and_sampled },
        { "listen-ready", listen_and_ready_are_milestones },
        { "threads", threads_are_sampled },
        { "two-units", two_units_at_once_are_kept_apart },
        { "again", a_second_start_is_a_new_capture },
        { "born-inside", processes_born_inside_are_in },
        { "below", cgroups_below_are_in },
        { "wait-stacks", waits_have_their_stacks },
        { "fault-stacks", major_faults_have_their_stacks },
        { "killed", killed_threads_have_their_stacks },
        { "still-blocked", threads_blocked_at_the_end_have_their_stacks },
        { "exec-waits", waits_before_an_exec_say_so },
        { "switch-storm", a_storm_of_switches_is_bounded },
        { "own-memory", copies_hold_nothing_of_other_processes },
        { "alternate-stack", both_stacks_of_a_signal_handler_are_taken },
        { "busy", nothing_is_lost_at_an_ordinary_frequency },
        { "extreme", what_is_lost_at_an_extreme_frequency_is_counted },
        { "extreme-waits", waits_lost_at_an_extreme_frequency_are_counted },
};

static int run_cases(const char *only, const char *prefix) {
        int failed = 0;

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                if (only && !streq(only, cases[i].name))
                        continue;
                failure[0] = '\0';
                cases[i].run();
                if (failure[0])
                        printf("not ok %s%s: %s\n", prefix, cases[i].name, failure);
                else
                        printf("ok %s%s\n", prefix, cases[i].name);
                fflush(stdout);
                failed += failure[0] != '\0';
        }
        return failed ? 1 : 0;
}

int main(int argc, char **argv) {
        const char *reason = NULL;
        int r;

        if (argc == 4 && streq(argv[1], "--do"))
                return actions_run(argv[2], strtoul(argv[3], NULL, 10));
        if (argc < 3) {
                fprintf(stderr, "usage: harness CGROUP2-MOUNT PREFIX [CASE]\n");
                return 2;
        }

        mount_point = argv[1];
        log_set_max_level(LOG_LEVEL_DEBUG);
        r = collect_new(99, &collect, &reason);
        if (r < 0) {
                printf("not ok %sload: %s (%s)\n", argv[2], reason, strerror(-r));
                return 1;
        }
        snprintf(slice, sizeof(slice), "%s/startprof%d.slice", mount_point, getpid());
        if (mkdir(slice, 0755) < 0)
                return 1;
        r = run_cases(argc > 3 ? argv[3] : NULL, argv[2]);
        rmdir(slice);
        collect_free(collect);
        return r;
}
