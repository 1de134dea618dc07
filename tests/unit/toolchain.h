/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Real ELF files for tests: compiled and taken apart by the tools of this machine, in a directory of the test. */

#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/macro.h"

struct toolchain {
        char dir[64];
};

static inline int toolchain_spawn(char *const *arguments) {
        extern char **environ;
        pid_t pid;
        int status;

        if (posix_spawnp(&pid, arguments[0], NULL, NULL, arguments, environ) != 0)
                return -1;
        if (waitpid(pid, &status, 0) != pid)
                return -1;
        return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
}

/* Words separated by single spaces; an "@" in a word stands for the directory. 0, or -1. */
static inline _unused_ int toolchain_run(const struct toolchain *t, const char *command) {
        char words[24][PATH_MAX], *arguments[25] = {};
        size_t n = 0;

        for (const char *p = command; *p && n < ARRAY_SIZE(words); n++) {
                int length = (int) strcspn(p, " "), before = (int) strcspn(p, "@");

                if (before < length)
                        (void) snprintf(words[n], sizeof(words[n]), "%.*s%s/%.*s", before, p, t->dir,
                                        length - before - 1, p + before + 1);
                else
                        (void) snprintf(words[n], sizeof(words[n]), "%.*s", length, p);
                arguments[n] = words[n];
                p += length + (p[length] == ' ');
        }
        return toolchain_spawn(arguments);
}

static inline _unused_ int toolchain_init(struct toolchain *t) {
        (void) snprintf(t->dir, sizeof(t->dir), "/tmp/startprof-test-XXXXXX");
        return mkdtemp(t->dir) ? 0 : -1;
}

static inline _unused_ void toolchain_done(const struct toolchain *t) {
        char *arguments[] = { (char *) "rm", (char *) "-rf", (char *) t->dir, NULL };

        (void) toolchain_spawn(arguments);
}

/* "DIR/NAME"; the buffer is the caller's. */
static inline _unused_ const char *toolchain_path(const struct toolchain *t, const char *name,
                                                  char path[static PATH_MAX]) {
        (void) snprintf(path, PATH_MAX, "%s/%s", t->dir, name);
        return path;
}

static inline _unused_ int toolchain_write(const struct toolchain *t, const char *name, const void *data,
                                           size_t bytes) {
        char path[PATH_MAX];
        FILE *f = fopen(toolchain_path(t, name, path), "we");
        int r;

        if (!f)
                return -1;
        r = fwrite(data, 1, bytes, f) == bytes ? 0 : -1;
        return fclose(f) == 0 ? r : -1;
}

static inline _unused_ int toolchain_source(const struct toolchain *t, const char *name, const char *text) {
        return toolchain_write(t, name, text, strlen(text));
}
