/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/bpf/actions.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/macro.h"

static uint64_t cpu_ns(void) {
        struct timespec ts;

        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
        return (uint64_t) ts.tv_sec * NSEC_PER_SEC + (uint64_t) ts.tv_nsec;
}

/* Named in the tests: must stay a function of its own. */
__attribute__((noinline)) static uint64_t burn_cpu(unsigned long msec) {
        volatile uint64_t sum = 0;
        uint64_t end = cpu_ns() + msec * NSEC_PER_MSEC;

        do
                for (unsigned i = 0; i < 100000; i++)
                        sum += i;
        while (cpu_ns() < end);
        return sum;
}

static int burn(unsigned long msec) {
        return burn_cpu(msec) == 0;
}

static int close_many(unsigned long count) {
        for (unsigned long i = 0; i < count; i++)
                (void) syscall(SYS_close, -1);
        return 0;
}

static int miss_files(unsigned long count) {
        for (unsigned long i = 0; i < count; i++)
                (void) open("/nonexistent/startprof/file", O_RDONLY);
        return 0;
}

static int sleep_once(unsigned long msec) {
        struct timespec ts = { .tv_sec = (time_t) (msec / 1000),
                               .tv_nsec = (long) (msec % 1000 * NSEC_PER_MSEC) };

        return nanosleep(&ts, NULL) != 0;
}

/* Children that exit at once. */
static int fork_many(unsigned long count) {
        for (unsigned long i = 0; i < count; i++) {
                pid_t pid = fork();

                if (pid < 0)
                        return 1;
                if (pid == 0)
                        _exit(0);
                if (waitpid(pid, NULL, 0) != pid)
                        return 1;
        }
        return 0;
}

static int exec_self(const char *action, const char *number) {
        execl("/proc/self/exe", "harness", "--do", action, number, (char *) NULL);
        return 1;
}

/* Children that execute something which burns 5 ms. */
static int spawn_many(unsigned long count) {
        for (unsigned long i = 0; i < count; i++) {
                pid_t pid = fork();
                int status;

                if (pid < 0)
                        return 1;
                if (pid == 0)
                        _exit(exec_self("burn", "5"));
                if (waitpid(pid, &status, 0) != pid || status != 0)
                        return 1;
        }
        return 0;
}

static int watch_many(unsigned long count) {
        char directory[] = "/tmp/startprof-watch-XXXXXX", name[64];
        int fd = inotify_init1(IN_CLOEXEC), r = 0;

        if (fd < 0 || !mkdtemp(directory))
                return 1;
        for (unsigned long i = 0; i < count && r == 0; i++) {
                snprintf(name, sizeof(name), "%s/%lu", directory, i);
                if (mkdir(name, 0700) < 0 || inotify_add_watch(fd, name, IN_CREATE) < 0)
                        r = 1;
                rmdir(name);
        }
        rmdir(directory);
        return r;
}

static int listen_and_notify(unsigned long unused) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        int pair[2], fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        static const char text[] = "STATUS=up\nREADY=1\nMAINPID=1";

        /* Bound to an abstract name of the kernel's choice. */
        if (fd < 0 || bind(fd, (struct sockaddr *) &address, sizeof(sa_family_t)) < 0 || listen(fd, 1) < 0)
                return 1;
        if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair) < 0)
                return 1;
        return send(pair[0], text, strlen(text), 0) < 0;
}

static void *burn_in_thread(void *userdata) {
        burn_cpu(*(unsigned long *) userdata);
        return NULL;
}

static int burn_in_threads(unsigned long msec) {
        pthread_t threads[2];

        for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
                if (pthread_create(&threads[i], NULL, burn_in_thread, &msec) != 0)
                        return 1;
        for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
                pthread_join(threads[i], NULL);
        return 0;
}

/* Kilobytes of live stack below the work. */
static void *burn_deep(void *userdata) {
        volatile uint8_t live[24 * 1024];

        memset((void *) live, 1, sizeof(live));
        burn_cpu(*(unsigned long *) userdata);
        return live[0] == 1 ? NULL : userdata;
}

/* Many more threads than CPUs, until the process has used so much CPU time. */
static int crowd(void *(*work)(void *userdata), unsigned long msec) {
        pthread_t threads[64];

        for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
                if (pthread_create(&threads[i], NULL, work, &msec) != 0)
                        return 1;
        for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
                pthread_join(threads[i], NULL);
        return 0;
}

static int be_busy(unsigned long msec) {
        return crowd(burn_in_thread, msec);
}

static int be_busy_and_deep(unsigned long msec) {
        return crowd(burn_deep, msec);
}

/* Leaves the cgroup for $STARTPROF_TEST_ELSEWHERE, then makes children there. */
static int move_out(unsigned long count) {
        const char *elsewhere = getenv("STARTPROF_TEST_ELSEWHERE");
        int fd = elsewhere ? open(elsewhere, O_WRONLY | O_CLOEXEC) : -1;

        if (fd < 0 || write(fd, "0", 1) != 1)
                return 1;
        close(fd);
        return fork_many(count);
}

static int exit_with(unsigned long status) {
        return (int) status;
}

int actions_run(const char *action, unsigned long number) {
        static const struct {
                const char *name;
                int (*run)(unsigned long number);
        } actions[] = {
                { "burn", burn },
                { "close", close_many },
                { "miss", miss_files },
                { "sleep", sleep_once },
                { "fork", fork_many },
                { "spawn", spawn_many },
                { "watch", watch_many },
                { "listen", listen_and_notify },
                { "move-out", move_out },
                { "exit", exit_with },
                { "threads", burn_in_threads },
                { "busy", be_busy },
                { "busy-deep", be_busy_and_deep },
                { "wait", wait_everywhere },
                { "fault", fault_many },
                { "pause", pause_for_ever },
                { "exec", exec_leased },
                { "ping-pong", ping_pong },
                { "alternate", handle_on_alternate_stack },
                { "marks", wait_with_marks },
        };

        for (size_t i = 0; i < ARRAY_SIZE(actions); i++)
                if (streq(action, actions[i].name))
                        return actions[i].run(number);
        return 127;
}
