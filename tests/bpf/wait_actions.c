/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/bpf/actions.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/macro.h"

/*
 * Waits of `msec` each, in functions of their own: the tests look for their names in the stacks.
 */

/* Keeps the call from being the last thing that the function does. */
#define KEEP_FRAME() __asm__ volatile("" ::: "memory")

static void pause_msec(unsigned long msec) {
        struct timespec ts = { .tv_sec = (time_t) (msec / 1000),
                               .tv_nsec = (long) (msec % 1000 * NSEC_PER_MSEC) };

        while (nanosleep(&ts, &ts) < 0)
                continue;
}

struct later {
        unsigned long msec;
        int fd;
        pthread_t thread;
};

static void *write_later(void *userdata) {
        struct later *later = userdata;

        pause_msec(later->msec);
        return (void *) (intptr_t) (write(later->fd, "x", 1) != 1);
}

__attribute__((noinline)) static int wait_in_read(unsigned long msec) {
        struct later later = { .msec = msec };
        int pipes[2], r;
        char byte;

        if (pipe(pipes) < 0)
                return 1;
        later.fd = pipes[1];
        if (pthread_create(&later.thread, NULL, write_later, &later) != 0)
                return 1;
        (void) pthread_setname_np(later.thread, "waker");
        r = read(pipes[0], &byte, 1) != 1;
        pthread_join(later.thread, NULL);
        return r;
}

__attribute__((noinline)) static int wait_in_futex(unsigned long msec) {
        struct timespec timeout = { .tv_nsec = (long) (msec * NSEC_PER_MSEC) };
        uint32_t word = 0;
        long r = syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &timeout, NULL, 0);

        KEEP_FRAME();
        return !(r < 0 && errno == ETIMEDOUT);
}

__attribute__((noinline)) static int wait_in_poll(unsigned long msec) {
        int r = poll(NULL, 0, (int) msec);

        KEEP_FRAME();
        return r != 0;
}

__attribute__((noinline)) static int wait_in_nanosleep(unsigned long msec) {
        pause_msec(msec);
        KEEP_FRAME();
        return 0;
}

__attribute__((noinline)) static int wait_in_flock(unsigned long msec) {
        int fd = memfd_create("lock", MFD_CLOEXEC), other, r;
        char path[64];
        pid_t pid;

        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        other = open(path, O_RDWR | O_CLOEXEC); /* a lock belongs to an open file */
        if (other < 0 || flock(other, LOCK_EX) < 0)
                return 1;
        pid = fork();
        if (pid == 0) {
                pause_msec(msec);
                _exit(flock(other, LOCK_UN) < 0);
        }
        r = flock(fd, LOCK_EX);
        KEEP_FRAME();
        return r < 0 || waitpid(pid, NULL, 0) != pid;
}

static void *accept_later(void *userdata) {
        struct later *later = userdata;

        pause_msec(later->msec);
        return (void *) (intptr_t) (accept(later->fd, NULL, NULL) < 0);
}

/* A queue of one place, which is taken. */
__attribute__((noinline)) static int wait_in_connect(unsigned long msec) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        socklen_t size = sizeof(address);
        struct later later = { .msec = msec };
        int clients[2], r;

        later.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (bind(later.fd, (struct sockaddr *) &address, sizeof(sa_family_t)) < 0 ||
            getsockname(later.fd, (struct sockaddr *) &address, &size) < 0 || listen(later.fd, 0) < 0)
                return 1;
        for (size_t i = 0; i < ARRAY_SIZE(clients); i++)
                clients[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (connect(clients[0], (struct sockaddr *) &address, size) < 0 ||
            pthread_create(&later.thread, NULL, accept_later, &later) != 0)
                return 1;
        r = connect(clients[1], (struct sockaddr *) &address, size);
        pthread_join(later.thread, NULL);
        return r < 0;
}

int wait_everywhere(unsigned long msec) {
        return wait_in_read(msec) || wait_in_futex(msec) || wait_in_poll(msec) || wait_in_nanosleep(msec) ||
               wait_in_flock(msec) || wait_in_connect(msec);
}

/* ---- pages of a file that are not in memory ---- */

static int make_cold_file(size_t bytes) {
        const char *directory = getenv("STARTPROF_TEST_DISK");
        static char block[1 << 20];
        int fd = open(directory ?: "/var/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

        memset(block, 1, sizeof(block));
        for (size_t done = 0; fd >= 0 && done < bytes; done += sizeof(block))
                if (write(fd, block, sizeof(block)) != (ssize_t) sizeof(block))
                        return -1;
        if (fd < 0 || fsync(fd) < 0 || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) != 0)
                return -1;
        return fd;
}

__attribute__((noinline)) static uint64_t touch_pages(const volatile uint8_t *memory, size_t bytes) {
        uint64_t sum = 0;

        for (size_t at = 0; at < bytes; at += 4096)
                sum += memory[at];
        return sum;
}

int fault_many(unsigned long megabytes) {
        size_t bytes = megabytes << 20;
        int fd = make_cold_file(bytes);
        uint8_t *memory;

        if (fd < 0)
                return 1;
        memory = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
        if (memory == MAP_FAILED || madvise(memory, bytes, MADV_RANDOM) < 0)
                return 1;
        return touch_pages(memory, bytes) != bytes / 4096;
}

/* ---- until a signal comes ---- */

__attribute__((noinline)) static int wait_for_the_end(void) {
        int r = pause();

        KEEP_FRAME();
        return r;
}

int pause_for_ever(unsigned long unused) {
        return wait_for_the_end();
}

/* ---- a wait in execve(2): for the lease that another process has on the file ---- */

static int copy_self(char *path) {
        _cleanup_close_ int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), to = mkstemp(path);
        ssize_t n;

        if (from < 0 || to < 0 || fchmod(to, 0700) < 0)
                return 1;
        while ((n = sendfile(to, from, NULL, 1 << 20)) > 0)
                continue;
        return n < 0;
}

static void hold_lease(const char *path, int ready_fd, unsigned long msec) {
        int fd = open(path, O_RDONLY | O_CLOEXEC);

        (void) signal(SIGIO, SIG_IGN);
        if (fd < 0 || fcntl(fd, F_SETLEASE, F_WRLCK) < 0 || write(ready_fd, "x", 1) != 1)
                _exit(1);
        pause_msec(msec);
        unlink(path);
        _exit(fcntl(fd, F_SETLEASE, F_UNLCK) < 0);
}

int exec_leased(unsigned long msec) {
        char path[] = "/var/tmp/startprof-exec-XXXXXX", byte;
        int pipes[2];
        pid_t pid;

        if (copy_self(path) || pipe2(pipes, O_CLOEXEC) < 0)
                return 1;
        pid = fork();
        if (pid == 0)
                hold_lease(path, pipes[1], msec);
        if (pid < 0 || read(pipes[0], &byte, 1) != 1)
                return 1;
        execl(path, "harness", "--do", "exit", "0", (char *) NULL);
        return 1;
}

/* ---- many switches ---- */

struct ping {
        int in, out;
        unsigned long count;
};

static int play(const struct ping *ping) {
        char byte = 0;

        for (unsigned long i = 0; i < ping->count; i++)
                if (write(ping->out, &byte, 1) != 1 || read(ping->in, &byte, 1) != 1)
                        return 1;
        return 0;
}

static void *play_in_thread(void *userdata) {
        return (void *) (intptr_t) play(userdata);
}

int ping_pong(unsigned long count) {
        int a[2], b[2], r;
        struct ping here, there;
        pthread_t thread;

        if (pipe(a) < 0 || pipe(b) < 0)
                return 1;
        here = (struct ping){ a[0], b[1], count };
        there = (struct ping){ b[0], a[1], count };
        if (pthread_create(&thread, NULL, play_in_thread, &there) != 0)
                return 1;
        r = play(&here);
        pthread_join(thread, NULL);
        return r;
}

/* ---- memory that tells whose it is ---- */

/* Fills a piece of stack with words that hold the process's number, and waits below it. */
__attribute__((noinline)) static int wait_below_marks(unsigned long rounds) {
        volatile uint64_t marks[MARKS];
        uint64_t mark = MARK | (uint32_t) getpid(), wrong = 0;

        for (size_t i = 0; i < MARKS; i++)
                marks[i] = mark;
        for (unsigned long i = 0; i < rounds; i++) {
                struct timespec ts = { .tv_nsec = (long) ((1 + i % 20) * NSEC_PER_MSEC) };

                if (i % 2)
                        (void) poll(NULL, 0, (int) (1 + i % 20));
                else
                        (void) nanosleep(&ts, NULL);
                wrong |= marks[i % MARKS] ^ mark;
        }
        return wrong != 0;
}

int wait_with_marks(unsigned long rounds) {
        return wait_below_marks(rounds);
}

/* ---- a handler on the alternate stack ---- */

static uint64_t cpu_ns(void) {
        struct timespec ts;

        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
        return (uint64_t) ts.tv_sec * NSEC_PER_SEC + (uint64_t) ts.tv_nsec;
}

static volatile uint64_t handler_end_ns;

static void burn_in_handler(int signal) {
        while (cpu_ns() < handler_end_ns)
                continue;
        pause_msec(30);
}

__attribute__((noinline)) static int raise_below_here(void) {
        int r = raise(SIGUSR1);

        KEEP_FRAME();
        return r;
}

int handle_on_alternate_stack(unsigned long msec) {
        static uint8_t memory[64 * 1024];
        stack_t stack = { .ss_sp = memory, .ss_size = sizeof(memory) };
        struct sigaction action = { .sa_handler = burn_in_handler, .sa_flags = SA_ONSTACK };

        handler_end_ns = cpu_ns() + msec * NSEC_PER_MSEC;
        return sigaltstack(&stack, NULL) < 0 || sigaction(SIGUSR1, &action, NULL) < 0 || raise_below_here();
}
