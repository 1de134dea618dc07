/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * away CGROUP: a child moves itself to the cgroup (a directory below /sys/fs/cgroup, made here) and works there
 * for 200 ms, and so does a child of its own. Then is ready.
 */

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "notify.h"

enum { BURN_MSEC = 200 };

__attribute__((noinline)) uint64_t work_away(void) {
        volatile uint64_t x = 1;

        while (clock() < BURN_MSEC * (CLOCKS_PER_SEC / 1000))
                x = x * 6364136223846793005u + 1442695040888963407u;
        return x;
}

static int move_to(const char *cgroup) {
        char path[4096];
        int fd;

        (void) mkdir(cgroup, 0755);
        snprintf(path, sizeof(path), "%s/cgroup.procs", cgroup);
        fd = open(path, O_WRONLY | O_CLOEXEC);
        return fd < 0 || write(fd, "0", 1) != 1 ? -1 : 0;
}

int main(int argc, char **argv) {
        int status;

        if (argc < 2)
                return 2;
        if (fork() == 0) {
                if (move_to(argv[1]) < 0)
                        _exit(1);
                work_away();
                if (fork() == 0) {
                        work_away();
                        _exit(0);
                }
                wait(&status);
                _exit(status == 0 ? 0 : 1);
        }
        wait(&status);
        if (status != 0)
                return 1;
        notify_ready();
        for (;;)
                pause();
}
