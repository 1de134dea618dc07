/* SPDX-License-Identifier: GPL-2.0-or-later */

/* spawn COUNT PROGRAM [ARGUMENT...]: runs PROGRAM COUNT times, one after the other, then is ready. */

#include <spawn.h>
#include <sys/wait.h>

#include "notify.h"

int main(int argc, char **argv) {
        if (argc < 3)
                return 2;
        for (unsigned long i = strtoul(argv[1], NULL, 10); i > 0; i--) {
                pid_t pid;

                if (posix_spawn(&pid, argv[2], NULL, NULL, argv + 2, environ) != 0)
                        return 1;
                waitpid(pid, NULL, 0);
        }
        notify_ready();
        for (;;)
                pause();
}
