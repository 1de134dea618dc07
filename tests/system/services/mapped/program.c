/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * A program that burns 200 ms in a function called WORK (-DWORK=name). Others of it differ in that name only.
 *
 * program [replace WITH | memfd | exec PROGRAM]
 *
 * replace   first puts the file WITH into the place of its own; without a WITH, removes itself
 * memfd     first becomes a copy of itself that has no name
 * exec      becomes PROGRAM after its own work
 */

#include <stdio.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <fcntl.h>
#include <stdint.h>
#include <time.h>

#include "../notify.h"

#ifndef SECTION
#define SECTION ".text"
#endif

enum { BURN_MSEC = 200 };

static uint64_t cpu_ms(void) {
        struct timespec ts;

        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
        return (uint64_t) ts.tv_sec * 1000 + (uint64_t) ts.tv_nsec / 1000000;
}

static __attribute__((noinline, section(SECTION))) uint64_t WORK(uint64_t n) {
        volatile uint64_t x = 1;

        for (uint64_t i = 0; i < n; i++)
                x = x * 6364136223846793005u + 1442695040888963407u;
        return x;
}

static void become_a_memfd(char **argv) {
        int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), fd = memfd_create("nameless", MFD_CLOEXEC);
        char *again[] = { argv[0], NULL };
        struct stat st;

        if (from < 0 || fd < 0 || fstat(from, &st) < 0 ||
            sendfile(fd, from, NULL, (size_t) st.st_size) != st.st_size)
                _exit(1);
        fexecve(fd, again, environ);
        _exit(1);
}

static int replace(const char *with) {
        char path[4096];
        ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

        if (n < 0)
                return -1;
        path[n] = '\0';
        return with ? rename(with, path) : unlink(path);
}

int main(int argc, char **argv) {
        const char *action = argc > 1 ? argv[1] : "";
        uint64_t begin;

        if (strcmp(action, "memfd") == 0)
                become_a_memfd(argv);
        if (strcmp(action, "replace") == 0 && replace(argv[2]) < 0)
                return 1;
        for (begin = cpu_ms(); cpu_ms() - begin < BURN_MSEC;)
                WORK(100000);
        if (strcmp(action, "exec") == 0) {
                execv(argv[2], argv + 2);
                return 1;
        }
        notify_ready();
        for (;;)
                pause();
}
