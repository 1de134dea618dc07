/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unwind/sampler.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/macro.h"

enum {
        TASKS_MAX = 4096,
        PROCESSES_MAX = 4096,
        MODULES_MAX = 4096,
        MAPS_BYTES_MAX = 1 << 20,
};

struct task {
        pid_t tid;
        struct user_regs_struct regs; /* at the last stop */
};

struct sampler {
        const struct sampler_options *options;
        sample_fn sample;
        void *userdata;
        struct task tasks[TASKS_MAX];
        size_t task_count;
        struct process *processes[PROCESSES_MAX];
        size_t process_count;
        struct module modules[MODULES_MAX];
        size_t module_count;
        unsigned taken;
        unsigned random;
        unsigned patience; /* factor of the gap */
        uint8_t *copy, *second;
};

/* ---- mappings ---- */

static struct elf_image *open_image(const char *path) {
        struct elf_image *image;
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);

        return fd >= 0 && elf_image_new(fd, &image) == 0 ? image : NULL;
}

static uint32_t find_module(struct sampler *s, const char *path) {
        struct module *m;
        char beside[PATH_MAX];

        for (uint32_t i = 0; i < s->module_count; i++)
                if (streq(s->modules[i].path, path))
                        return i;
        if (s->module_count == MODULES_MAX)
                return REC_NONE;

        m = &s->modules[s->module_count];
        m->path = strdup(path);
        m->image = open_image(path);
        (void) snprintf(beside, sizeof(beside), "%s.dbg", path);
        m->debug = open_image(beside);
        if (m->image && unwind_table_new(m->image, m->debug, &m->table) < 0)
                fprintf(stderr, "# no table for %s\n", path);
        return (uint32_t) s->module_count++;
}

/* The vdso is the same in all processes. */
static uint32_t find_vdso(struct sampler *s, pid_t pid, uint64_t start, uint64_t end) {
        struct module *m;
        uint8_t *bytes;

        for (uint32_t i = 0; i < s->module_count; i++)
                if (streq(s->modules[i].path, "[vdso]"))
                        return i;

        m = &s->modules[s->module_count];
        bytes = malloc(end - start);
        if (!bytes || process_vm_readv(pid, &(struct iovec){ bytes, end - start }, 1,
                                       &(struct iovec){ (void *) start, end - start }, 1, 0) < 0) {
                free(bytes);
                return REC_NONE;
        }
        m->path = strdup("[vdso]");
        if (elf_image_from_memory(bytes, end - start, &m->image) < 0 ||
            unwind_table_new(m->image, NULL, &m->table) < 0)
                fprintf(stderr, "# no table for the vdso\n");
        return (uint32_t) s->module_count++;
}

/* By the segment with code: its first page may begin with the end of the segment before, which lies
 * elsewhere. */
static bool find_bias(const struct elf_image *image, const struct unwind_mapping *m, uint64_t *ret) {
        const struct elf_segment *segments;
        unsigned count = elf_image_segments(image, &segments);

        for (unsigned i = 0; i < count; i++) {
                const struct elf_segment *segment = &segments[i];

                if (!segment->executable || m->offset + (m->end - m->start) <= segment->offset ||
                    m->offset >= segment->offset + segment->file_bytes)
                        continue;
                *ret = m->start - (segment->vaddr - segment->offset + m->offset);
                return true;
        }

        return false;
}

static void add_mapping(struct sampler *s, struct process *p, const char *line) {
        struct unwind_mapping m = { .module = REC_NONE };
        char flags[5], path[4096] = "";

        if (sscanf(line, "%lx-%lx %4s %lx %*s %*s %4095[^\n]", &m.start, &m.end, flags, &m.offset, path) < 4)
                return;
        if (streq(path, "[stack]")) {
                p->stack_start = m.start;
                p->stack_end = m.end;
        }
        if (flags[2] != 'x' || streq(path, "[vsyscall]"))
                return;

        if (streq(path, "[vdso]"))
                m.module = find_vdso(s, p->pid, m.start, m.end);
        else if (path[0] == '/')
                m.module = find_module(s, path);
        if (m.module != REC_NONE) {
                const struct module *module = &s->modules[m.module];

                if (module->image && find_bias(module->image, &m, &m.bias)) {
                        m.image = module->image;
                        m.table = module->table;
                }
        }

        p->mappings = realloc(p->mappings, (p->mapping_count + 1) * sizeof(m));
        p->mappings[p->mapping_count++] = m;
}

static void refresh_mappings(struct sampler *s, struct process *p) {
        char path[64];
        _cleanup_free_ char *maps = calloc(1, MAPS_BYTES_MAX);
        size_t bytes = 0;
        ssize_t n;
        int fd;

        (void) snprintf(path, sizeof(path), "/proc/%d/maps", p->pid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || !maps)
                return;
        while ((n = read(fd, maps + bytes, MAPS_BYTES_MAX - 1 - bytes)) > 0)
                bytes += (size_t) n;
        close(fd);
        if (p->maps && streq(p->maps, maps))
                return;

        p->mapping_count = 0;
        for (char *line = maps, *next; *line; line = next) {
                next = strchrnul(line, '\n');
                if (*next)
                        next++;
                add_mapping(s, p, line);
        }
        free(p->maps);
        p->maps = TAKE_PTR(maps);
        p->generation++;
}

bool process_find(void *userdata, uint64_t address, struct unwind_mapping *ret) {
        const struct process *p = userdata;
        size_t low = 0, high = p->mapping_count;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (p->mappings[middle].end <= address)
                        low = middle + 1;
                else
                        high = middle;
        }
        if (low == p->mapping_count || address < p->mappings[low].start)
                return false;
        *ret = p->mappings[low];
        return true;
}

const struct module *sampler_module(const struct sampler *s, uint32_t index) {
        return &s->modules[index];
}

/* The process of a thread. */
static struct process *find_process(struct sampler *s, pid_t tid) {
        char path[64], line[256];
        _cleanup_fclose_ FILE *f = NULL;
        pid_t tgid = tid;

        (void) snprintf(path, sizeof(path), "/proc/%d/status", tid);
        f = fopen(path, "re");
        while (f && fgets(line, sizeof(line), f))
                if (sscanf(line, "Tgid: %d", &tgid) == 1)
                        break;

        for (size_t i = 0; i < s->process_count; i++)
                if (s->processes[i]->pid == tgid)
                        return s->processes[i];
        if (s->process_count == PROCESSES_MAX)
                return NULL;
        s->processes[s->process_count] = calloc(1, sizeof(struct process));
        s->processes[s->process_count]->pid = tgid;
        return s->processes[s->process_count++];
}

/* ---- copying ---- */

static struct task *find_task(struct sampler *s, pid_t tid) {
        for (size_t i = 0; i < s->task_count; i++)
                if (s->tasks[i].tid == tid)
                        return &s->tasks[i];
        return NULL;
}

static size_t copy_memory(pid_t pid, uint64_t address, size_t max, uint8_t *ret) {
        struct iovec local = { ret, max }, remote[STACK_COPY_MAX / STACK_PAGE + 2];
        size_t pages = 0, bytes = 0;
        ssize_t n;

        while (bytes < max && pages < ARRAY_SIZE(remote)) {
                size_t part = MIN(STACK_PAGE - (address + bytes) % STACK_PAGE, max - bytes);

                remote[pages++] = (struct iovec){ (void *) (address + bytes), part };
                bytes += part;
        }
        n = process_vm_readv(pid, &local, 1, remote, pages, 0);
        return n > 0 ? (size_t) n : 0;
}

static void copy_registers(const struct user_regs_struct *r, uint64_t ret[REG_COUNT]) {
        const uint64_t regs[REG_COUNT] = {
                r->rax, r->rdx, r->rcx, r->rbx, r->rsi, r->rdi, r->rbp, r->rsp, r->r8,
                r->r9,  r->r10, r->r11, r->r12, r->r13, r->r14, r->r15, r->rip,
        };

        memcpy(ret, regs, sizeof(regs));
}

/* A thread may be stopped again before it had a CPU: such samples do not count, and more time must pass. */
static bool has_moved(struct sampler *s, pid_t tid, const struct user_regs_struct *regs) {
        struct task *task = find_task(s, tid);

        if (!task || memcmp(&task->regs, regs, sizeof(*regs)) == 0) {
                s->patience = MIN(2 * s->patience, 32u);
                return false;
        }
        task->regs = *regs;
        s->patience = 1;
        return true;
}

static void take_sample(struct sampler *s, pid_t tid) {
        struct unwind_stack stack = {};
        struct user_regs_struct regs;
        struct process *p = find_process(s, tid);

        if (!p || ptrace(PTRACE_GETREGS, tid, NULL, &regs) < 0 || !has_moved(s, tid, &regs))
                return;
        refresh_mappings(s, p);

        copy_registers(&regs, stack.regs);
        stack.flags = (int64_t) regs.orig_rax >= 0 ? SAMPLE_SYSCALL : SAMPLE_USER;
        stack.size = copy_memory(tid, regs.rsp, s->options->stack_bytes, s->copy);
        stack.flags |= stack.size == s->options->stack_bytes ? SAMPLE_STACK_CUT : SAMPLE_STACK_FAULT;
        stack.bytes = s->copy;
        if (s->options->second && (regs.rsp < p->stack_start || regs.rsp >= p->stack_end)) {
                size_t max = MIN(p->stack_end - p->stack_start, (uint64_t) STACK_COPY_MAX);

                stack.second_address = p->stack_end - max;
                stack.second_size = copy_memory(tid, stack.second_address, max, s->second);
                stack.second = s->second;
        }

        s->taken++;
        s->sample(s->userdata, s, p, &stack);
}

/* ---- ptrace ---- */

static void on_exit_of(struct sampler *s, pid_t tid) {
        struct task *task = find_task(s, tid);

        if (task)
                *task = s->tasks[--s->task_count];
}

/* The signal to pass on when a task goes on from this stop. */
static int signal_of(int status) {
        return status >> 16 == 0 && WSTOPSIG(status) != SIGTRAP ? WSTOPSIG(status) : 0;
}

static void on_stop(struct sampler *s, pid_t tid, int status) {
        if (WIFEXITED(status) || WIFSIGNALED(status))
                on_exit_of(s, tid);
        else if (!find_task(s, tid) && s->task_count < TASKS_MAX)
                s->tasks[s->task_count++] = (struct task){ .tid = tid };
}

static void go_on(pid_t tid, int status) {
        if (WIFSTOPPED(status))
                ptrace(PTRACE_CONT, tid, NULL, (void *) (intptr_t) signal_of(status));
}

/* Waits until `target` stops (its status is returned) or is gone (-1); all others go on. */
static int wait_for(struct sampler *s, pid_t target) {
        while (s->task_count > 0) {
                int status;
                pid_t tid = waitpid(-1, &status, __WALL);

                if (tid < 0)
                        return -1;
                on_stop(s, tid, status);
                if (tid == target)
                        return WIFSTOPPED(status) ? status : -1;
                go_on(tid, status);
        }

        return -1;
}

/* wait_for() may always be told of its target first: then a new thread would never begin. */
static void let_others_go_on(struct sampler *s) {
        int status;
        pid_t tid;

        while ((tid = waitpid(-1, &status, __WALL | WNOHANG)) > 0) {
                on_stop(s, tid, status);
                go_on(tid, status);
        }
}

static unsigned next_random(struct sampler *s) {
        s->random = s->random * 1103515245u + 12345u;
        return s->random >> 16;
}

/* A task that has stopped for another reason must not be interrupted too: it would stop again at once
 * when it goes on, without an instruction in between, and so on forever. */
static int stop(struct sampler *s, pid_t target) {
        int status;

        if (waitpid(target, &status, __WALL | WNOHANG) <= 0) {
                if (ptrace(PTRACE_INTERRUPT, target, NULL, NULL) == 0)
                        return wait_for(s, target);
                on_exit_of(s, target);
                return -1;
        }
        if (WIFSTOPPED(status))
                return status;
        on_exit_of(s, target);
        return -1;
}

static void sample_once(struct sampler *s) {
        pid_t target;
        int status;

        let_others_go_on(s);
        if (s->task_count == 0)
                return;
        target = s->tasks[next_random(s) % s->task_count].tid;
        status = stop(s, target);
        if (status < 0)
                return;
        take_sample(s, target);

        for (unsigned i = 0; i < s->options->steps && s->taken < s->options->samples; i++) {
                if (ptrace(PTRACE_SINGLESTEP, target, NULL, (void *) (intptr_t) signal_of(status)) < 0)
                        break;
                status = wait_for(s, target);
                if (status < 0)
                        return;
                take_sample(s, target);
        }
        ptrace(PTRACE_CONT, target, NULL, (void *) (intptr_t) signal_of(status));
}

enum {
        TRACE_OPTIONS = PTRACE_O_TRACEEXEC | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
                        PTRACE_O_EXITKILL
};

static pid_t start(char **argv) {
        int pipes[2];
        pid_t pid;

        if (pipe(pipes) < 0)
                return -errno;
        pid = fork();
        if (pid == 0) {
                char go;

                close(pipes[1]);
                if (read(pipes[0], &go, 1) == 1) {
                        close(pipes[0]);
                        execvp(argv[0], argv);
                }
                _exit(127);
        }

        close(pipes[0]);
        if (pid > 0) {
                ptrace(PTRACE_SEIZE, pid, NULL, (void *) (intptr_t) TRACE_OPTIONS);
                if (write(pipes[1], "", 1) != 1)
                        pid = -EIO;
        }
        close(pipes[1]);
        return pid;
}

static void sampler_done(struct sampler *s, pid_t first) {
        pid_t tid;
        int status;

        for (size_t i = 0; i < s->task_count; i++)
                kill(s->tasks[i].tid, SIGKILL);
        kill(first, SIGKILL);
        while ((tid = waitpid(-1, &status, __WALL)) > 0)
                if (WIFSTOPPED(status)) /* a child that nobody had met yet */
                        kill(tid, SIGKILL);
        for (size_t i = 0; i < s->process_count; i++) {
                free(s->processes[i]->maps);
                free(s->processes[i]->mappings);
                free(s->processes[i]);
        }
        for (size_t i = 0; i < s->module_count; i++) {
                unwind_table_free(s->modules[i].table);
                elf_image_free(s->modules[i].image);
                elf_image_free(s->modules[i].debug);
                free(s->modules[i].path);
        }
        free(s->copy);
        free(s->second);
        free(s);
}

int sampler_run(char **argv, const struct sampler_options *options, sample_fn sample, void *userdata) {
        struct sampler *s = calloc(1, sizeof(*s));
        pid_t first = start(argv);
        int status;

        if (first < 0 || !s) {
                free(s);
                return first < 0 ? first : -ENOMEM;
        }
        s->options = options;
        s->sample = sample;
        s->userdata = userdata;
        s->random = 1;
        s->patience = 1;
        s->copy = malloc(STACK_COPY_MAX);
        s->second = malloc(STACK_COPY_MAX);
        s->tasks[s->task_count++] = (struct task){ .tid = first };

        status = wait_for(s, first); /* exec */
        if (status >= 0) {
                take_sample(s, first);
                ptrace(PTRACE_CONT, first, NULL, NULL);
        }
        while (s->task_count > 0 && s->taken < options->samples) {
                struct timespec gap = { 0, (long) (next_random(s) % (2 * options->gap_us)) * 1000 *
                                                   s->patience };

                nanosleep(&gap, NULL);
                sample_once(s);
        }

        sampler_done(s, first);
        return 0;
}
