/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/ledger.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/hash.h"
#include "common/text.h"
#include "daemon/address.h"
#include "daemon/text_pool.h"

enum {
        SAMPLES_MAX = 1 << 20,
        PATHS_MAX = 1 << 16,
        MILESTONES_MAX = 256,
        CALLS_MAX = CALL_KEYS_MAX,
        WAITS_MAX = 1 << 17,
        PENDING_MAX = 1024, /* mappings of images whose exec is not through */
        RECENT = 64, /* samples that say what is hottest */
        ARGUMENTS_TEXT_MAX = 1024,
};

/* A mapping of a process that is in the middle of an exec. */
struct pending {
        uint32_t process;
        struct perf_map map;
        char *path; /* owned */
};

struct program {
        uint32_t exe; /* text */
        uint32_t process; /* that executed it first */
};

struct ledger {
        struct ledger_options options;
        uint64_t end_ns; /* UINT64_MAX while running */
        struct text_pool *texts; /* owned */
        struct process_table *processes; /* owned */
        uint32_t spaces; /* given out */
        struct pending pending[PENDING_MAX];
        uint32_t n_pending;
        struct program programs[PROGRAM_MAX];
        uint32_t n_programs;
        /* Arrays of rows; their texts are numbers of `texts`. */
        struct buf samples, calls, waits, paths, dirs, milestones;
        struct hash *wait_rows; /* owned: wait_key → index in waits */
        uint32_t told; /* bit per enum rec_milestone_kind */
        uint32_t recent[RECENT]; /* processes of the last samples */
        uint32_t n_recent;
        uint64_t lost[LOSS_KIND_MAX];
        uint64_t after_end; /* samples */
};

struct ledger *ledger_new(const struct ledger_options *options) {
        _cleanup_(ledger_freep) struct ledger *l = calloc(1, sizeof(*l));

        if (!l)
                return NULL;
        l->options = *options;
        l->end_ns = UINT64_MAX;
        l->n_programs = 1; /* 0: before the first exec */
        for (uint32_t i = 0; i < PROGRAM_MAX; i++)
                l->programs[i].process = REC_NONE;
        l->texts = text_pool_new();
        l->processes = process_table_new();
        l->wait_rows = hash_new();
        if (!l->texts || !l->processes || !l->wait_rows)
                return NULL;
        return TAKE_PTR(l);
}

struct ledger *ledger_free(struct ledger *l) {
        if (!l)
                return NULL;
        for (uint32_t i = 0; i < l->n_pending; i++)
                free(l->pending[i].path);
        text_pool_free(l->texts);
        process_table_free(l->processes);
        hash_free(l->wait_rows);
        buf_done(&l->samples);
        buf_done(&l->calls);
        buf_done(&l->waits);
        buf_done(&l->paths);
        buf_done(&l->dirs);
        buf_done(&l->milestones);
        free(l);
        return NULL;
}

/* False: no room, or no memory. */
static bool add_row(struct buf *rows, const void *row, size_t bytes, size_t max) {
        if (rows->size / bytes >= max)
                return false;
        buf_append(rows, row, bytes);
        return buf_error(rows) == 0;
}

void ledger_count_lost(struct ledger *l, enum loss_kind kind, uint64_t count) {
        l->lost[kind] += count;
}

uint64_t ledger_lost(const struct ledger *l, enum loss_kind kind) {
        return l->lost[kind];
}

uint64_t ledger_after_end(const struct ledger *l) {
        return l->after_end;
}

static struct process *living(struct ledger *l, uint32_t pid, uint32_t *ret_index) {
        uint32_t index = pid == 0 ? REC_NONE : process_table_find(l->processes, pid);
        struct process *process;

        if (index == REC_NONE)
                return NULL;
        process = process_table_get(l->processes, index);
        if (process->row.end_ns != 0)
                return NULL;
        *ret_index = index;
        return process;
}

/* ---- milestones ---- */

static void add_milestone(struct ledger *l, enum rec_milestone_kind kind, uint64_t time_ns, uint32_t process,
                          uint32_t detail) {
        struct rec_milestone row = {
                .time_ns = time_ns, .kind = kind, .process = process, .detail = detail
        };
        bool first = !(l->told & 1U << kind);

        l->told |= 1U << kind;
        add_row(&l->milestones, &row, sizeof(row), MILESTONES_MAX);
        if (first && l->options.milestone &&
            (kind == REC_MILESTONE_CGROUP || kind == REC_MILESTONE_EXEC || kind == REC_MILESTONE_LISTEN))
                l->options.milestone(l->options.userdata, kind, time_ns);
}

/* ---- processes ---- */

static uint32_t new_space(struct ledger *l, uint32_t from) {
        uint32_t space = l->spaces++;

        if (l->options.feed)
                feed_space(l->options.feed, space, from);
        return space;
}

/* The process has no use for its address space any more. */
static void leave_space(struct ledger *l, const struct process *process) {
        if (l->options.feed)
                feed_ended(l->options.feed, process->space);
}

static uint32_t add_process(struct ledger *l, uint32_t pid, uint32_t parent, uint64_t time_ns) {
        uint32_t index = process_table_add(l->processes, pid, parent, time_ns);

        if (index == REC_NONE)
                ledger_count_lost(l, LOSS_PROCESSES, 1);
        return index;
}

static void describe(struct ledger *l, struct process *process, const struct pins *pins) {
        if (!pins)
                return;
        if (pins->root != REC_NONE)
                process->root = pins->root;
        if (pins->exe)
                process->row.exe = text_pool_add(l->texts, pins->exe, PATH_MAX);
        if (pins->cwd)
                process->row.cwd = text_pool_add(l->texts, pins->cwd, PATH_MAX);
}

static void on_join(struct ledger *l, const struct event_join *event, const struct pins *pins) {
        uint32_t index = add_process(l, event->head.tgid, REC_NONE, event->head.time_ns);
        struct process *process;

        if (index == REC_NONE)
                return;
        process = process_table_get(l->processes, index);
        process->joined = true;
        process->row.parent_pid = event->parent_tgid;
        process->row.comm = text_pool_add(l->texts, event->comm, sizeof(event->comm));
        process->row.program = 0;
        describe(l, process, pins);
        process->space = new_space(l, REC_NONE);
        if (l->options.feed)
                feed_existing(l->options.feed, process->space, event->head.tgid, event->parent_tgid,
                              pins && pins->exe ? pins->exe : "", process->root);
}

static void on_fork(struct ledger *l, const struct event_fork *event) {
        uint32_t parent_index = process_table_find(l->processes, event->head.tgid);
        uint32_t index = add_process(l, event->child_tgid, parent_index, event->head.time_ns);
        struct process *process, *parent;

        if (index == REC_NONE)
                return;
        process = process_table_get(l->processes, index);
        if (parent_index == REC_NONE) {
                process->space = new_space(l, REC_NONE);
                return;
        }
        parent = process_table_get(l->processes, parent_index);
        process->space = new_space(l, parent->space);
        process->root = parent->root;
        process->row.comm = parent->row.comm;
        process->row.exe = parent->row.exe;
        process->row.arguments = parent->row.arguments;
        process->row.cwd = parent->row.cwd;
        process->row.program = parent->row.program;
}

/* ---- mappings ---- */

static void send_map(struct ledger *l, const struct process *process, const struct perf_map *map,
                     const char *path, uint32_t file) {
        struct module_owner owner = { process->space, process->row.pid };
        struct module_key key = {
                .path = path,
                .build_id = map->build_id,
                .build_id_bytes = map->build_id_bytes,
                .device = map->device,
                .inode = map->inode,
                .root = process->root,
                .file = file,
                .owner = &owner,
        };
        uint32_t module = mappings_module(l->options.mappings, &key);
        /* Code without a file is known by its address. */
        bool anonymous = mappings_kind_of_path(path) == REC_MODULE_ANONYMOUS;

        if (module != REC_NONE && l->options.feed)
                feed_map(l->options.feed, process->space, module, map->start, map->start + map->bytes,
                         anonymous ? map->start : map->file_offset);
}

/* The exec is through, or its end was lost. The first file that it mapped is the executable itself. */
static void flush_pending(struct ledger *l, uint32_t index, uint32_t file) {
        struct process *process = process_table_get(l->processes, index);
        uint32_t kept = 0;

        process->in_exec = false;
        for (uint32_t i = 0; i < l->n_pending; i++) {
                struct pending *pending = &l->pending[i];

                if (pending->process != index) {
                        l->pending[kept++] = *pending;
                        continue;
                }
                send_map(l, process, &pending->map, pending->path, file);
                if (mappings_kind_of_path(pending->path) == REC_MODULE_FILE ||
                    mappings_kind_of_path(pending->path) == REC_MODULE_DELETED)
                        file = REC_NONE;
                free(pending->path);
        }
        l->n_pending = kept;
}

void ledger_map(struct ledger *l, const struct perf_map *map) {
        struct process *process;
        uint32_t index;
        char *path;

        if (map->time_ns < l->options.begin_ns || map->time_ns > l->end_ns ||
            map->start + map->bytes < map->start)
                return;
        process = living(l, map->pid, &index);
        if (!process)
                return;
        path = process->in_exec && l->n_pending < PENDING_MAX ? strdup(map->path) : NULL;
        if (!path) {
                send_map(l, process, map, map->path, REC_NONE);
                return;
        }
        l->pending[l->n_pending++] = (struct pending){ .process = index, .map = *map, .path = path };
}

void ledger_image(struct ledger *l, uint32_t pid, uint64_t time_ns) {
        struct process *process;
        uint32_t index;

        if (time_ns < l->options.begin_ns || time_ns > l->end_ns)
                return;
        process = living(l, pid, &index);
        if (!process)
                return;
        if (process->in_exec)
                flush_pending(l, index, REC_NONE);
        leave_space(l, process);
        process->space = new_space(l, REC_NONE);
        process->in_exec = true;
}

/* ---- exec and exit ---- */

static uint32_t arguments_text(struct ledger *l, const char *arguments, size_t bytes) {
        char text[ARGUMENTS_TEXT_MAX];
        size_t n = MIN(bytes, sizeof(text));

        memcpy(text, arguments, n);
        while (n > 0 && text[n - 1] == '\0')
                n--;
        for (size_t i = 0; i < n; i++)
                if (text[i] == '\0')
                        text[i] = ' ';
        return text_pool_add(l->texts, text, n);
}

static bool is_executor(const char *exe, const char *path) {
        return endswith(exe, "/systemd-executor") || startswith(path, "/proc/self/fd/") ||
               startswith(path, "/dev/fd/");
}

static void on_exec(struct ledger *l, const struct event_exec *event, size_t bytes,
                    const struct pins *pins) {
        char path[EVENT_PATH_MAX + 1] = "";
        struct process *process;
        const char *exe;
        uint32_t index;

        process = living(l, event->head.tgid, &index);
        if (!process) {
                index = add_process(l, event->head.tgid, REC_NONE, event->head.time_ns);
                if (index == REC_NONE)
                        return;
                process = process_table_get(l->processes, index);
        }
        memcpy(path, event->path, MIN(event->path_size, (uint32_t) EVENT_PATH_MAX));
        if (!process->in_exec) {
                leave_space(l, process);
                process->space = new_space(l, REC_NONE);
        }
        process->row.exe = text_pool_add(l->texts, path, sizeof(path));
        process->row.cwd = 0;
        process->row.comm = text_pool_add(l->texts, event->comm, sizeof(event->comm));
        process->row.arguments = arguments_text(l, (const char *) (event + 1), bytes - sizeof(*event));
        process->row.program = event->program < PROGRAM_MAX ? event->program : 0;
        describe(l, process, pins);
        flush_pending(l, index, pins ? pins->file : REC_NONE);

        if (event->program > 0 && event->program < PROGRAM_MAX &&
            l->programs[event->program].process == REC_NONE)
                l->programs[event->program] = (struct program){ process->row.exe, index };

        exe = text_pool_get(l->texts, process->row.exe);
        if (is_executor(exe, path)) {
                add_milestone(l, REC_MILESTONE_EXECUTOR, event->head.time_ns, index, process->row.exe);
                return;
        }
        if (process->row.exec_ns == 0)
                process->row.exec_ns = event->head.time_ns;
        if (process->joined)
                add_milestone(l, REC_MILESTONE_EXEC, event->head.time_ns, index, process->row.arguments);
}

static void on_end(struct ledger *l, const struct event_exit *event) {
        struct process *process;
        uint32_t index;

        process = living(l, event->head.tgid, &index);
        if (!process)
                return;
        if (process->in_exec)
                flush_pending(l, index, REC_NONE);
        leave_space(l, process);
        process->row.end_ns = event->head.time_ns;
        process->row.exit_code = event->exit_code;
}

/* ---- samples ---- */

static uint32_t sample_flags_of(uint32_t flags, uint32_t stack_bytes) {
        return (flags & SAMPLE_COMPAT ? REC_SAMPLE_COMPAT : 0) |
               (flags & SAMPLE_STACK_CUT ? REC_SAMPLE_CUT : 0) |
               (flags & SAMPLE_ON_FAULT ? REC_SAMPLE_IN_FAULT : 0) |
               (stack_bytes == 0 ? REC_SAMPLE_NO_STACK : 0);
}

static uint32_t count_rows(const struct buf *rows, size_t bytes) {
        return (uint32_t) (rows->size / bytes);
}

/* The kernel as a module; REC_NONE: no memory. */
static uint32_t kernel_module(struct ledger *l) {
        struct module_key key = { .path = MAPPINGS_KERNEL, .root = REC_NONE, .file = REC_NONE };

        return mappings_module(l->options.mappings, &key);
}

/* Its stack is gone: the kernel has begun to release the memory, or to replace it. */
static bool is_gone(const struct event_sample *event) {
        if (event->stack_bytes > 0 || !(event->flags & SAMPLE_STACK_FAULT) ||
            !(event->flags & SAMPLE_SYSCALL))
                return false;
        switch (event->syscall) {
        case SYS_execve:
        case SYS_execveat:
        case SYS_exit:
        case SYS_exit_group: return true;
        default: return false;
        }
}

/* Hands on what was copied for the sample, which is the next row. False: the stack is lost. */
static bool send_stack(struct ledger *l, const struct process *process, const struct event_sample *event,
                       size_t bytes) {
        struct worker_stack stack = {
                .sample = count_rows(&l->samples, sizeof(struct rec_sample)),
                .space = process->space,
                .flags = event->flags | (is_gone(event) ? SAMPLE_GONE : 0),
                .stack_bytes = (uint32_t) MIN((size_t) event->stack_bytes, bytes),
                .kernel_frames = MIN(event->kernel_frames, (uint32_t) KERNEL_FRAMES_MAX),
                .holes = event->holes,
                .second_holes = event->second_holes,
                .second_address = event->second_address,
        };

        if (!l->options.feed)
                return false;
        stack.second_bytes = (uint32_t) MIN((size_t) event->second_bytes, bytes - stack.stack_bytes);
        memcpy(stack.regs, event->regs, sizeof(stack.regs));
        memcpy(stack.kernel, event->kernel, sizeof(stack.kernel));
        if (stack.kernel_frames > 0)
                stack.kernel_module = kernel_module(l);
        if (stack.kernel_module == REC_NONE)
                stack.kernel_frames = stack.kernel_module = 0;
        return feed_stack(l->options.feed, &stack, event + 1);
}

static bool add_sample(struct ledger *l, struct rec_sample *row, const struct event_sample *event,
                       size_t bytes) {
        const struct process *process = process_table_get(l->processes, row->process);

        if ((event->stack_bytes > 0 || event->kernel_frames > 0 || is_gone(event)) &&
            !send_stack(l, process, event, bytes - sizeof(*event))) {
                ledger_count_lost(l, LOSS_STACK_QUEUE, 1);
                row->flags |= REC_SAMPLE_NO_STACK;
        }
        return add_row(&l->samples, row, sizeof(*row), SAMPLES_MAX);
}

static void on_sample(struct ledger *l, const struct event_sample *event, size_t bytes) {
        uint32_t index;
        struct process *process = living(l, event->head.tgid, &index);
        struct rec_sample row = {
                .time_ns = event->head.time_ns,
                .weight_ns = l->options.period_ns,
                .tid = event->head.tid,
                .comm = text_pool_add(l->texts, event->comm, sizeof(event->comm)),
                .kind = event->flags & SAMPLE_USER ? REC_SAMPLE_CPU_USER : REC_SAMPLE_CPU_KERNEL,
                .flags = sample_flags_of(event->flags, event->stack_bytes),
                .syscall = event->syscall,
                .cpu = event->cpu,
                .stack = REC_NONE,
                .kernel_stack = REC_NONE,
        };

        if (!process) {
                ledger_count_lost(l, LOSS_SAMPLE, 1);
                return;
        }
        row.process = index;
        if (!add_sample(l, &row, event, bytes)) {
                ledger_count_lost(l, LOSS_SAMPLE, 1);
                return;
        }
        process->samples++;
        l->recent[l->n_recent++ % RECENT] = index;
}

static uint32_t wait_flags_of(uint32_t flags) {
        return (flags & WAIT_IO ? REC_SAMPLE_IO : 0) | (flags & WAIT_EXEC ? REC_SAMPLE_EXEC : 0);
}

static void on_wait(struct ledger *l, const struct event_sample *event, size_t bytes) {
        const struct event_wait *wait = &event->wait;
        uint32_t index;
        struct process *process = living(l, event->head.tgid, &index);
        struct rec_sample row = {
                .time_ns = event->head.time_ns - wait->runnable_ns,
                .weight_ns = wait->weight_ns,
                .blocked_ns = wait->blocked_ns,
                .tid = event->head.tid,
                .comm = text_pool_add(l->texts, event->comm, sizeof(event->comm)),
                .kind = wait->flags & WAIT_FAULT ? REC_SAMPLE_FAULT : REC_SAMPLE_WAIT,
                .flags = sample_flags_of(event->flags & ~SAMPLE_ON_FAULT, event->stack_bytes) |
                         wait_flags_of(wait->flags),
                .syscall = event->syscall,
                .cpu = event->cpu,
                .waker_pid = wait->waker_tgid,
                .stack = REC_NONE,
                .kernel_stack = REC_NONE,
        };

        if (!process) {
                ledger_count_lost(l, LOSS_WAIT, 1);
                return;
        }
        row.process = index;
        if (wait->waker_tgid != 0)
                row.waker_comm = text_pool_add(l->texts, wait->waker_comm, sizeof(wait->waker_comm));
        if (!add_sample(l, &row, event, bytes))
                ledger_count_lost(l, LOSS_WAIT, 1);
}

static void send_blocked(struct ledger *l, const struct process *process, struct rec_sample *row,
                         const struct blocked_thread *thread) {
        struct worker_stack stack = {
                .sample = count_rows(&l->samples, sizeof(struct rec_sample)),
                .space = process->space,
                .flags = thread->sample_flags,
        };
        uint64_t sp = thread->regs[DWARF_RSP];

        if (thread->sample_flags & SAMPLE_COMPAT || thread->stack_end <= sp)
                return;
        stack.stack_bytes = (uint32_t) MIN(thread->stack_end - sp, (uint64_t) STACK_COPY_MAX);
        if (stack.stack_bytes == STACK_COPY_MAX)
                stack.flags |= SAMPLE_STACK_CUT;
        memcpy(stack.regs, thread->regs, sizeof(stack.regs));
        if (l->options.feed && feed_blocked(l->options.feed, &stack, thread))
                row->flags &= ~(uint32_t) REC_SAMPLE_NO_STACK;
}

void ledger_add_blocked(struct ledger *l, const struct blocked_thread *thread) {
        uint32_t index;
        struct process *process = living(l, thread->tgid, &index);
        struct rec_sample row = {
                .time_ns = l->end_ns,
                .blocked_ns = l->end_ns - thread->since_ns,
                .tid = thread->tid,
                .comm = text_pool_add(l->texts, thread->comm, sizeof(thread->comm)),
                .kind = thread->flags & WAIT_FAULT ? REC_SAMPLE_FAULT : REC_SAMPLE_WAIT,
                .flags = REC_SAMPLE_OPEN | REC_SAMPLE_NO_STACK | wait_flags_of(thread->flags),
                .syscall = thread->syscall,
                .stack = REC_NONE,
                .kernel_stack = REC_NONE,
        };

        if (!process || thread->since_ns >= l->end_ns)
                return;
        row.process = index;
        row.weight_ns = thread->unpaid_ns + row.blocked_ns;
        send_blocked(l, process, &row, thread);
        if (!add_row(&l->samples, &row, sizeof(row), SAMPLES_MAX))
                ledger_count_lost(l, LOSS_WAIT, 1);
}

void ledger_hottest(struct ledger *l, struct buf *b) {
        uint32_t n = MIN(l->n_recent, (uint32_t) RECENT), best = REC_NONE, best_count = 0;

        for (uint32_t i = 0; i < n; i++) {
                uint32_t count = 0;

                for (uint32_t k = 0; k < n; k++)
                        count += l->recent[k] == l->recent[i];
                if (count > best_count) {
                        best_count = count;
                        best = l->recent[i];
                }
        }
        if (best != REC_NONE)
                text_escape_terminal(
                        b, text_pool_get(l->texts, process_table_get(l->processes, best)->row.comm));
}

/* ---- paths ---- */

/* The file behind a descriptor, while the process still has it. */
static uint32_t descriptor_text(struct ledger *l, uint32_t pid, uint64_t descriptor) {
        char link[64], target[PATH_MAX];
        ssize_t n;

        if (descriptor > INT_MAX)
                return 0;
        snprintf(link, sizeof(link), "%" PRIu32 "/fd/%" PRIu64, pid, descriptor);
        n = readlinkat(l->options.proc_fd, link, target, sizeof(target));
        return n > 0 ? text_pool_add(l->texts, target, (size_t) n) : 0;
}

static bool is_socket(const struct event_path *event) {
        uint64_t kind = event->argument >> OBJECT_KIND_SHIFT;

        return kind >= OBJECT_TCP && kind <= OBJECT_SOCKET;
}

/* The whole path while the process lives; after that the last part of it, which the kernel told. A call that opens has
 * no descriptor yet, and its path is whole. */
static uint32_t object_text(struct ledger *l, const struct event_path *event, size_t bytes) {
        uint32_t fd = (uint32_t) event->argument, text = 0;

        if (event->syscall != SYS_open && event->syscall != SYS_openat)
                text = descriptor_text(l, event->head.tgid, fd);
        return text != 0 ? text : text_pool_add(l->texts, event->path, bytes);
}

static uint32_t path_text(struct ledger *l, const struct event_path *event) {
        size_t bytes = MIN(event->path_size, (uint32_t) EVENT_PATH_MAX);
        _cleanup_(buf_done) struct buf b = BUF_NULL;

        if (event->kind == PATH_SYNC || event->kind == PATH_LOCK)
                return descriptor_text(l, event->head.tgid, event->argument);
        if (event->kind == PATH_OBJECT && !is_socket(event))
                return object_text(l, event, bytes);
        if (event->kind != PATH_CONNECT && event->kind != PATH_OBJECT)
                return text_pool_add(l->texts, event->path, bytes);
        address_text(&b, event->path, bytes);
        return text_pool_add(l->texts, buf_text(&b), b.size);
}

static enum rec_path_kind path_kind_of(uint32_t kind) {
        static const enum rec_path_kind kinds[PATH_KIND_MAX] = {
                [PATH_INOTIFY] = REC_PATH_INOTIFY, [PATH_MISSING] = REC_PATH_MISSING,
                [PATH_CONNECT] = REC_PATH_CONNECT, [PATH_LISTEN] = REC_PATH_LISTEN,
                [PATH_NOTIFY] = REC_PATH_NOTIFY,   [PATH_CHDIR] = REC_PATH_CHDIR,
                [PATH_OPEN] = REC_PATH_OPEN,       [PATH_SYNC] = REC_PATH_SYNC,
                [PATH_LOCK] = REC_PATH_LOCK,       [PATH_INOTIFY_LIMIT] = REC_PATH_INOTIFY_LIMIT,
                [PATH_OBJECT] = REC_PATH_OBJECT,
        };

        return kind < PATH_KIND_MAX ? kinds[kind] : 0;
}

static void on_path(struct ledger *l, const struct event_path *event) {
        struct rec_path row = {
                .time_ns = event->head.time_ns,
                .argument = event->argument,
                .kind = path_kind_of(event->kind),
                .syscall = event->syscall,
                .result = event->result,
                .tid = event->head.tid,
        };
        uint32_t index;
        struct process *process = living(l, event->head.tgid, &index);

        if (!process)
                ledger_count_lost(l, LOSS_PATH, 1);
        if (!process || row.kind == 0)
                return;
        row.process = index;
        row.path = path_text(l, event);
        if (event->kind == PATH_CHDIR && row.path != 0)
                process->row.cwd = row.path;
        if (!add_row(&l->paths, &row, sizeof(row), PATHS_MAX))
                ledger_count_lost(l, LOSS_PATH, 1);
        if (event->kind == PATH_LISTEN && !(l->told & 1U << REC_MILESTONE_LISTEN))
                add_milestone(l, REC_MILESTONE_LISTEN, event->head.time_ns, index, process->row.comm);
        if (event->kind == PATH_NOTIFY)
                add_milestone(l, REC_MILESTONE_READY_SENT, event->head.time_ns, index, process->row.comm);
}

static bool is_of_wait(const struct event_head *head) {
        return head->type == EVENT_WAIT ||
               (head->type == EVENT_PATH && ((const struct event_path *) head)->kind == PATH_OBJECT);
}

void ledger_event(struct ledger *l, const struct event_head *head, size_t bytes, const struct pins *pins) {
        /* A wait is told when it is over, with what it was for; what of it lies before the end counts. */
        if (head->time_ns < l->options.begin_ns || (head->time_ns > l->end_ns && !is_of_wait(head))) {
                l->after_end += head->type == EVENT_SAMPLE && head->time_ns > l->end_ns;
                return;
        }
        switch (head->type) {
        case EVENT_CGROUP: add_milestone(l, REC_MILESTONE_CGROUP, head->time_ns, REC_NONE, 0); break;
        case EVENT_JOIN: on_join(l, (const struct event_join *) head, pins); break;
        case EVENT_FORK: on_fork(l, (const struct event_fork *) head); break;
        case EVENT_EXEC: on_exec(l, (const struct event_exec *) head, bytes, pins); break;
        case EVENT_EXIT: on_end(l, (const struct event_exit *) head); break;
        case EVENT_SAMPLE: on_sample(l, (const struct event_sample *) head, bytes); break;
        case EVENT_WAIT: on_wait(l, (const struct event_sample *) head, bytes); break;
        case EVENT_PATH: on_path(l, (const struct event_path *) head); break;
        }
}

void ledger_end(struct ledger *l, uint64_t end_ns) {
        l->end_ns = end_ns;
}

/* ---- counters ---- */

static void use_program(struct ledger *l, uint32_t program) {
        l->n_programs = MAX(l->n_programs, program + 1);
}

void ledger_add_call(struct ledger *l, const struct call_key *key, const struct call_value *value) {
        struct rec_call row = {
                .count = value->count,
                .first_ns = value->first_ns,
                .last_ns = value->last_ns,
                .program = key->program,
                .syscall = key->syscall,
                .error = key->error,
        };

        if (key->program >= PROGRAM_MAX)
                return;
        use_program(l, key->program);
        if (!add_row(&l->calls, &row, sizeof(row), CALLS_MAX))
                ledger_count_lost(l, LOSS_CALL_KEYS, 1);
}

void ledger_add_wait(struct ledger *l, const struct wait_key *key, const struct wait_value *value) {
        uint32_t number = count_rows(&l->waits, sizeof(struct rec_wait));
        struct rec_wait row = { .tid = key->tid, .syscall = key->syscall, .process = REC_NONE }, *sum;
        uint64_t known;

        if (hash_intern(l->wait_rows, key, sizeof(*key), number, &known) < 0)
                return;
        if (known == number) {
                if (key->tgid != 0)
                        row.process = process_table_find(l->processes, key->tgid);
                if (!add_row(&l->waits, &row, sizeof(row), WAITS_MAX)) {
                        hash_remove(l->wait_rows, key, sizeof(*key));
                        ledger_count_lost(l, LOSS_WAIT_KEYS, 1);
                        return;
                }
        }
        sum = (struct rec_wait *) l->waits.data + known;
        sum->blocked_ns += value->blocked_ns;
        sum->io_ns += value->io_ns;
        sum->runnable_ns += value->runnable_ns;
        sum->longest_ns = MAX(sum->longest_ns, (uint64_t) value->longest_ns);
        sum->count += value->count;
}

void ledger_add_dir(struct ledger *l, const struct dir_key *key, uint64_t count) {
        struct rec_dir row = {
                .count = count,
                .kind = path_kind_of(key->kind),
                .program = key->program,
                .path = text_pool_add(l->texts, key->dir, sizeof(key->dir)),
        };

        if (key->program >= PROGRAM_MAX || row.kind == 0)
                return;
        use_program(l, key->program);
        (void) add_row(&l->dirs, &row, sizeof(row), DIR_KEYS_MAX);
}

void ledger_set_slot(struct ledger *l, uint32_t pid, enum rec_slot slot) {
        process_table_set_slot(l->processes, pid, slot);
}

uint32_t ledger_process_count(const struct ledger *l) {
        return process_table_count(l->processes);
}

/* ---- writing ---- */

/* From numbers of the pool to offsets of the writer. */
static uint32_t *translate(struct ledger *l, struct recording_writer *w) {
        uint32_t count = text_pool_count(l->texts);
        uint32_t *offsets = calloc(count, sizeof(*offsets));

        for (uint32_t i = 1; offsets && i < count; i++)
                offsets[i] = recording_writer_text(w, text_pool_get(l->texts, i));
        return offsets;
}

static void write_processes(struct ledger *l, struct recording_writer *w, const uint32_t *texts) {
        process_table_spread_slots(l->processes);
        for (uint32_t i = 0; i < process_table_count(l->processes); i++) {
                struct rec_process row = process_table_get(l->processes, i)->row;

                row.comm = texts[row.comm];
                row.exe = texts[row.exe];
                row.arguments = texts[row.arguments];
                row.cwd = texts[row.cwd];
                if (row.program != REC_NONE)
                        use_program(l, row.program);
                recording_writer_rows(w, REC_PROCESSES, &row, sizeof(row), 1);
        }
}

static void write_programs(struct ledger *l, struct recording_writer *w, const uint32_t *texts) {
        for (uint32_t i = 0; i < l->n_programs; i++) {
                const struct program *program = &l->programs[i];
                struct rec_program row = { .exe = texts[program->exe] };

                if (program->process != REC_NONE)
                        row.slot = process_table_get(l->processes, program->process)->row.slot;
                recording_writer_rows(w, REC_PROGRAMS, &row, sizeof(row), 1);
        }
}

static int write_modules(struct ledger *l, struct recording_writer *w) {
        _cleanup_free_ struct module_info *info = malloc(sizeof(*info));

        if (!info)
                return -ENOMEM;
        for (uint32_t i = 0; mappings_info(l->options.mappings, i, info) >= 0; i++) {
                struct rec_module row = { .path = recording_writer_text(w, info->path),
                                          .kind = info->kind,
                                          .build_id_bytes = info->build_id_bytes };

                memcpy(row.build_id, info->build_id, sizeof(row.build_id));
                recording_writer_rows(w, REC_MODULES, &row, sizeof(row), 1);
        }
        return 0;
}

#define EACH_ROW(type, row, rows)                                                                           \
        for (struct type *row = (struct type *) (rows)->data;                                               \
             row && (const char *) row < (rows)->data + (rows)->size; row++)

/* Rows stay, since others know their numbers, but what lies behind the end weighs nothing. */
static void clip_sample(struct rec_sample *sample, uint64_t end_ns) {
        uint64_t beyond = sample->time_ns > end_ns ? sample->time_ns - end_ns : 0;

        if (beyond == 0)
                return;
        sample->time_ns = end_ns;
        sample->weight_ns =
                sample->blocked_ns > beyond && sample->weight_ns > beyond ? sample->weight_ns - beyond : 0;
        sample->blocked_ns = sample->blocked_ns > beyond ? sample->blocked_ns - beyond : 0;
        sample->flags |=
                sample->kind == REC_SAMPLE_WAIT || sample->kind == REC_SAMPLE_FAULT ? REC_SAMPLE_OPEN : 0;
}

static void translate_rows(struct ledger *l, const uint32_t *texts) {
        EACH_ROW(rec_sample, sample, &l->samples) {
                clip_sample(sample, l->end_ns);
                sample->comm = texts[sample->comm];
                sample->waker_comm = texts[sample->waker_comm];
        }
        EACH_ROW(rec_path, path, &l->paths)
        path->path = texts[path->path];
        EACH_ROW(rec_dir, dir, &l->dirs)
        dir->path = texts[dir->path];
        EACH_ROW(rec_milestone, milestone, &l->milestones) {
                milestone->detail = texts[milestone->detail];
                if (milestone->process != REC_NONE)
                        milestone->slot = process_table_get(l->processes, milestone->process)->row.slot;
        }
}

static void write_rows(struct recording_writer *w, enum rec_section section, const struct buf *rows,
                       size_t bytes) {
        if (rows->size > 0)
                recording_writer_rows(w, section, rows->data, bytes, rows->size / bytes);
}

int ledger_write(struct ledger *l, struct recording_writer *w) {
        _cleanup_free_ uint32_t *texts = translate(l, w);
        int r;

        if (!texts)
                return -ENOMEM;
        write_processes(l, w, texts);
        write_programs(l, w, texts);
        r = write_modules(l, w);
        if (r < 0)
                return r;
        translate_rows(l, texts);
        write_rows(w, REC_SAMPLES, &l->samples, sizeof(struct rec_sample));
        write_rows(w, REC_CALLS, &l->calls, sizeof(struct rec_call));
        write_rows(w, REC_WAITS, &l->waits, sizeof(struct rec_wait));
        write_rows(w, REC_PATHS, &l->paths, sizeof(struct rec_path));
        write_rows(w, REC_DIRS, &l->dirs, sizeof(struct rec_dir));
        write_rows(w, REC_MILESTONES, &l->milestones, sizeof(struct rec_milestone));
        return 0;
}
