/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unwind/debugger.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/macro.h"
#include "tests/unwind/core.h"

/* Until ld.so has run, a debugger knows no library: the mappings tell it. */
static const char script_start[] =
        "import os\n"
        "def module(path, start, bias):\n"
        "    if not gdb.solib_name(start) and not os.path.samefile(path, program):\n"
        "        gdb.execute('add-symbol-file %s -o %d' % (path, bias))\n";
static const char script_end[] = "f = gdb.newest_frame()\n"
                                 "while f:\n"
                                 "    if f.type() != gdb.INLINE_FRAME:\n"
                                 "        print('frame %x' % f.pc())\n"
                                 "    f = f.older()\n";

struct names {
        char core[64], script[64], program[64], root[4096 + 16];
};

static void run(int output, const struct names *n) {
        dup2(output, STDOUT_FILENO);
        dup2(output, STDERR_FILENO);
        execlp("timeout", "timeout", "30", "gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off",
               "-iex", "set debug-file-directory /nonexistent", "-iex", "set auto-load off", "-iex", n->root,
               "-ex", "set backtrace past-main on", "-ex", "set backtrace past-entry on", "-ex",
               "set backtrace limit unlimited", n->program, "-c", n->core, "-x", n->script, (char *) NULL);
        _exit(127);
}

static pid_t start(const struct names *n, FILE **ret) {
        int pipes[2];
        pid_t child;

        if (pipe(pipes) < 0)
                return -1;
        child = fork();
        if (child == 0)
                run(pipes[1], n);
        close(pipes[1]);
        *ret = fdopen(pipes[0], "r");
        return child;
}

/* Names in the process are below its root, but the ones of /proc/PID/maps below ours. */
static void set_root(const struct process *p, struct names *n) {
        char path[64], root[4096];
        ssize_t bytes;

        (void) snprintf(path, sizeof(path), "/proc/%d/root", p->pid);
        bytes = readlink(path, root, sizeof(root) - 1);
        root[MAX(bytes, 0)] = 0;
        (void) snprintf(n->root, sizeof(n->root), "set sysroot %s", streq(root, "/") ? "" : root);
}

/* gdb takes a script by name. Paths here are the ones of programs of the tests. */
static int write_script(const struct sampler *sampler, const struct process *p, struct names *n) {
        int fd = mkstemps(n->script, 3);
        _cleanup_fclose_ FILE *f = fd >= 0 ? fdopen(fd, "w") : NULL;

        if (!f)
                return -errno;
        fprintf(f, "program = '%s'\n%s", n->program, script_start);
        for (size_t i = 0; i < p->mapping_count; i++) {
                const struct unwind_mapping *m = &p->mappings[i];

                if (m->image && !streq(sampler_module(sampler, m->module)->path, "[vdso]"))
                        fprintf(f, "module('%s', %" PRIu64 ", %" PRIu64 ")\n",
                                sampler_module(sampler, m->module)->path, m->start, m->bias);
        }
        fputs(script_end, f);
        return 0;
}

size_t debugger_unwind(const struct sampler *sampler, const struct process *p,
                       const struct unwind_stack *stack, uint64_t *ret, size_t max) {
        struct names n = { .core = "/tmp/startprof-core-XXXXXX",
                           .script = "/tmp/startprof-frames-XXXXXX.py" };
        char line[4096];
        _cleanup_fclose_ FILE *f = NULL;
        size_t count = 0;
        pid_t child = -1;
        int fd = mkstemp(n.core);

        if (fd < 0)
                return 0;
        close(fd);
        (void) snprintf(n.program, sizeof(n.program), "/proc/%d/exe", p->pid);
        if (write_script(sampler, p, &n) == 0) {
                set_root(p, &n);
                if (core_write(n.core, p, stack) == 0)
                        child = start(&n, &f);
                while (f && fgets(line, sizeof(line), f))
                        if (count < max && sscanf(line, "frame %lx", &ret[count]) == 1)
                                count++;
                if (child > 0)
                        waitpid(child, NULL, 0);
                unlink(n.script);
        }
        unlink(n.core);
        return count;
}
