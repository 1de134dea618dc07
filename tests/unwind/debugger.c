/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unwind/debugger.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/macro.h"

static const char script[] = "f = gdb.newest_frame()\n"
                             "while f:\n"
                             "    print('frame %x' % f.pc())\n"
                             "    f = f.older()\n";

static void run(int output, const char *pid, const char *path) {
        dup2(output, STDOUT_FILENO);
        dup2(output, STDERR_FILENO);
        execlp("gdb", "gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off", "-iex",
               "set debug-file-directory /nonexistent", "-iex", "set auto-load off", "-ex",
               "set backtrace past-main on", "-ex", "set backtrace past-entry on", "-p", pid, "-x", path,
               (char *) NULL);
        _exit(127);
}

static pid_t start(const char *pid, const char *path, FILE **ret) {
        int pipes[2];
        pid_t child;

        if (pipe(pipes) < 0)
                return -1;
        child = fork();
        if (child == 0)
                run(pipes[1], pid, path);
        close(pipes[1]);
        *ret = fdopen(pipes[0], "r");
        return child;
}

/* gdb takes a script by name. */
static int write_script(char *path) {
        int fd = mkstemps(path, 3);

        if (fd < 0)
                return -errno;
        if (write(fd, script, sizeof(script) - 1) < 0) {
                close(fd);
                return -errno;
        }
        return close(fd);
}

size_t debugger_unwind(pid_t pid, uint64_t *ret, size_t max) {
        char path[] = "/tmp/startprof-frames-XXXXXX.py", text[16], line[512];
        _cleanup_fclose_ FILE *f = NULL;
        size_t count = 0;
        pid_t child;

        if (write_script(path) < 0)
                return 0;
        (void) snprintf(text, sizeof(text), "%d", pid);
        child = start(text, path, &f);
        while (f && fgets(line, sizeof(line), f))
                if (count < max && sscanf(line, "frame %lx", &ret[count]) == 1)
                        count++;
        if (child > 0)
                waitpid(child, NULL, 0);
        unlink(path);
        return count;
}
