/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/feed.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <time.h>

#include "common/fd.h"
#include "common/config.h"
#include "common/dir_files.h"
#include "common/hash.h"
#include "common/log.h"
#include "common/procfs.h"
#include "daemon/code_maps.h"
#include "proto/recording.h"
#include "proto/worker_link.h"

enum {
        SEND_TIMEOUT_SEC = 20, /* for one message; a worker that takes longer hangs */
        WORKER_NICE = 19,
        HURRY_NICE = -15,
        LONG_QUEUE = FEED_BYTES_MAX / 16,
        GRACE_MSEC = 300, /* past the deadline, for the thread to notice it */
};

enum item_kind {
        ITEM_SPACE,
        ITEM_MAP,
        ITEM_EXISTING,
        ITEM_ENDED,
        ITEM_STACK,
        ITEM_BLOCKED, /* a stack that is still to be read */
};

struct item {
        struct item *next;
        enum item_kind kind;
        size_t queued_bytes;
        uint32_t space;
        union {
                uint32_t from;
                struct {
                        uint32_t module;
                        uint64_t start, end, file_offset;
                } map;
                struct {
                        uint32_t pid, parent, root;
                } existing;
                struct {
                        struct worker_stack head;
                        uint32_t tgid, tid; /* BLOCKED */
                        uint64_t switches;
                } stack;
        };
        uint8_t data[]; /* of a stack; of EXISTING: the executable, or "" */
};

/* Shared by the thread and its owner; whoever is last frees it. */
struct feed {
        pthread_mutex_t lock;
        pthread_cond_t changed;
        pthread_t thread;
        struct feed_options options;
        struct mappings *mappings; /* owned reference */
        struct worker_link *link; /* owned by the thread */
        uint32_t announced; /* modules; the thread's */
        bool tainted; /* the worker has read a file that others than root can write; the thread's */
        struct code_maps *code_maps; /* owned by the thread */
        struct dir_files *debug_files; /* owned by the thread; of startprofd.conf; NULL: none */

        /* below lock */
        struct item *first, **last;
        size_t queued_bytes;
        pid_t worker; /* its process; 0: there is none */
        pid_t tid; /* of the thread */
        size_t hurry_above; /* bytes queued from which on both go before the service */
        bool finishing; /* nothing is queued any more: ask for the layer when done */
        bool stopping; /* leave as soon as possible */
        bool abandoned; /* the owner is gone: free everything */
        bool done; /* the thread has nothing left to say */
        uint64_t deadline_ns;
        void *layer; /* owned */
        size_t layer_bytes;
        const char *problem; /* static; NULL: none so far */
        uint64_t cpu_ns; /* of the thread, when done */
};

static uint64_t clock_ns(clockid_t clock) {
        struct timespec ts;

        if (clock_gettime(clock, &ts) < 0)
                return 0;
        return (uint64_t) ts.tv_sec * NSEC_PER_SEC + (uint64_t) ts.tv_nsec;
}

static uint64_t now_ns(void) {
        return clock_ns(CLOCK_MONOTONIC);
}

/* ---- the queue ---- */

/* Below lock. */
static void set_nice(struct feed *f, int nice) {
        if (f->worker > 0)
                (void) setpriority(PRIO_PROCESS, (id_t) f->worker, nice);
        if (f->tid > 0)
                (void) setpriority(PRIO_PROCESS, (id_t) f->tid, MIN(nice, 0));
}

/* Between the threads of a service that wants every CPU, an ordinary worker would not be run often enough: while the
 * queue grows it goes before them, for the little that it takes. */
static void balance(struct feed *f) {
        if (f->finishing)
                return;
        if (f->queued_bytes > f->hurry_above) {
                set_nice(f, HURRY_NICE);
                f->hurry_above *= 2;
        } else if (f->queued_bytes == 0 && f->hurry_above > LONG_QUEUE) {
                set_nice(f, WORKER_NICE);
                f->hurry_above = LONG_QUEUE;
        }
}

static void push(struct feed *f, struct item *item) {
        pthread_mutex_lock(&f->lock);
        if (f->finishing || f->done) {
                pthread_mutex_unlock(&f->lock);
                free(item);
                return;
        }
        item->next = NULL;
        *f->last = item;
        f->last = &item->next;
        f->queued_bytes += item->queued_bytes;
        balance(f);
        pthread_cond_signal(&f->changed);
        pthread_mutex_unlock(&f->lock);
}

static struct item *new_item(enum item_kind kind, uint32_t space, size_t data_bytes) {
        struct item *item = calloc(1, sizeof(*item) + data_bytes);

        if (!item)
                return NULL; /* the worker will miss a mapping: frames without a module */
        item->kind = kind;
        item->space = space;
        item->queued_bytes = sizeof(*item) + data_bytes;
        return item;
}

void feed_space(struct feed *f, uint32_t space, uint32_t from) {
        struct item *item = new_item(ITEM_SPACE, space, 0);

        if (!item)
                return;
        item->from = from;
        push(f, item);
}

void feed_map(struct feed *f, uint32_t space, uint32_t module, uint64_t start, uint64_t end,
              uint64_t file_offset) {
        struct item *item = new_item(ITEM_MAP, space, 0);

        if (!item)
                return;
        item->map.module = module;
        item->map.start = start;
        item->map.end = end;
        item->map.file_offset = file_offset;
        push(f, item);
}

void feed_existing(struct feed *f, uint32_t space, uint32_t pid, uint32_t parent, const char *exe,
                   uint32_t root) {
        size_t bytes = strlen(exe) + 1;
        struct item *item = new_item(ITEM_EXISTING, space, bytes);

        if (!item)
                return;
        memcpy(item->data, exe, bytes);
        item->existing.pid = pid;
        item->existing.parent = parent;
        item->existing.root = root;
        push(f, item);
}

void feed_ended(struct feed *f, uint32_t space) {
        struct item *item = new_item(ITEM_ENDED, space, 0);

        if (item)
                push(f, item);
}

static bool has_room(struct feed *f, size_t bytes) {
        bool room;

        pthread_mutex_lock(&f->lock);
        room = f->queued_bytes + bytes <= FEED_BYTES_MAX && !f->problem;
        pthread_mutex_unlock(&f->lock);
        return room;
}

static size_t stack_bytes(const struct worker_stack *stack) {
        return (size_t) stack->stack_bytes + stack->second_bytes;
}

static struct item *new_stack(struct feed *f, enum item_kind kind, const struct worker_stack *stack) {
        size_t bytes = stack_bytes(stack);
        struct item *item = has_room(f, bytes) ? new_item(kind, stack->space, bytes) : NULL;

        if (item)
                item->stack.head = *stack;
        return item;
}

bool feed_stack(struct feed *f, const struct worker_stack *stack, const void *bytes) {
        struct item *item = new_stack(f, ITEM_STACK, stack);

        if (!item)
                return false;
        memcpy(item->data, bytes, stack_bytes(stack));
        push(f, item);
        return true;
}

bool feed_blocked(struct feed *f, const struct worker_stack *stack, const struct blocked_thread *thread) {
        struct item *item = new_stack(f, ITEM_BLOCKED, stack);

        if (!item)
                return false;
        item->stack.tgid = thread->tgid;
        item->stack.tid = thread->tid;
        item->stack.switches = thread->switches;
        push(f, item);
        return true;
}

/* ---- the thread ---- */

/* A table of a file that root alone can write, by a key that begins with its build-id as the kernel told it. */
static bool may_share_table(struct feed *f, uint32_t module, const char *key) {
        char path[WORKER_PATH_MAX], digits[2 * sizeof(((struct module_info *) NULL)->build_id) + 2] = "-";
        _cleanup_close_ int fd = -EBADF;
        struct module_info info;

        if (!f->options.tables || mappings_info(f->mappings, module, &info) < 0 ||
            info.build_id_bytes == 0 ||
            mappings_open(f->mappings, module, WORKER_ROLE_FILE, 0, "", &fd, path) < 0)
                return false;
        for (uint32_t i = 0; i < info.build_id_bytes; i++)
                snprintf(digits + 2 * i, 4, "%02x-", info.build_id[i]);
        return table_store_trusts(fd) && startswith(key, digits);
}

static int open_table(struct feed *f, uint32_t module, const char *key, int *ret_fd) {
        int fd = may_share_table(f, module, key) ? table_store_get(f->options.tables, key) : -ENOENT;

        if (fd < 0)
                return -ENOENT;
        *ret_fd = fd;
        return 0;
}

/* Once it has read a file of a stranger, what the worker makes of others is not to be trusted either. */
static void keep_table(void *userdata, uint32_t module, const char *key, int fd) {
        struct feed *f = userdata;

        if (!f->tainted && may_share_table(f, module, key))
                (void) table_store_put(f->options.tables, key, fd);
}

static void note_file(struct feed *f, int fd) {
        f->tainted |= !fd_is_sealed(fd) && !table_store_trusts(fd);
}

/* The administrator's directories are ours, not those of the process's root. */
static int open_debug_file(struct feed *f, uint32_t number, int *ret_fd, char path[static WORKER_PATH_MAX]) {
        const char *file = f->debug_files ? dir_files_path(f->debug_files, number) : NULL;

        if (!file)
                return -ENXIO;
        if (snprintf(path, WORKER_PATH_MAX, "%s", file) >= WORKER_PATH_MAX)
                return -ENOENT;
        return fd_open_regular(file, ret_fd) < 0 ? -ENOENT : 0;
}

static int open_for_worker(void *userdata, uint32_t module, enum worker_role role, uint32_t attempt,
                           const char *name, int *ret_fd, char path[static WORKER_PATH_MAX]) {
        struct feed *f = userdata;
        int r;

        if (role == WORKER_ROLE_TABLE)
                return attempt == 0 ? open_table(f, module, name, ret_fd) : -ENXIO;
        if (role == WORKER_ROLE_PERF_MAP)
                r = attempt == 0 ? code_maps_open(f->code_maps, module, ret_fd, path) : -ENXIO;
        else if (role == WORKER_ROLE_DEBUG_DIRECTORY)
                r = open_debug_file(f, attempt, ret_fd, path);
        else
                r = mappings_open(f->mappings, module, role, attempt, name, ret_fd, path);
        if (r >= 0)
                note_file(f, *ret_fd);
        return r;
}

/* Modules are announced in order, before the first mapping of one. The file is opened now, while its name is
 * likely to be there. */
static int announce(struct feed *f, uint32_t module, uint64_t deadline_ns) {
        int r = 0;

        for (; f->announced <= module && r >= 0; f->announced++) {
                struct module_info info;

                r = mappings_info(f->mappings, f->announced, &info);
                if (r < 0)
                        return r;
                if (info.owned)
                        code_maps_add(f->code_maps, f->announced, &info.owner);
                (void) mappings_hold(f->mappings, f->announced);
                r = worker_link_module(f->link, f->announced, info.kind, info.build_id, info.build_id_bytes,
                                       info.path, deadline_ns);
        }
        return r;
}

static int send_map(struct feed *f, uint32_t space, uint32_t module, uint64_t start, uint64_t end,
                    uint64_t file_offset, uint64_t deadline_ns) {
        int r = announce(f, module, deadline_ns);

        code_maps_look(f->code_maps, module);
        return r < 0 ? r : worker_link_map(f->link, space, module, start, end, file_offset, deadline_ns);
}

struct existing {
        struct feed *feed;
        uint32_t space, pid, root;
        uint64_t deadline_ns;
};

static int send_existing_map(const struct procfs_mapping *mapping, void *userdata) {
        struct existing *existing = userdata;
        struct module_owner owner = { existing->space, existing->pid };
        struct module_key key = {
                .path = mapping->path,
                .device = makedev(mapping->major, mapping->minor),
                .inode = mapping->inode,
                .root = existing->root,
                .file = REC_NONE,
                .owner = &owner,
        };
        enum rec_module_kind kind = mappings_kind_of_path(mapping->path);
        uint32_t module;

        if (mapping->permissions[2] != 'x' || streq(mapping->path, "[vsyscall]"))
                return 0;
        module = mappings_module(existing->feed->mappings, &key);
        if (module == REC_NONE)
                return 0;
        return send_map(existing->feed, existing->space, module, mapping->start, mapping->end,
                        kind == REC_MODULE_ANONYMOUS ? mapping->start : mapping->offset,
                        existing->deadline_ns);
}

static bool runs(const struct feed *f, uint32_t pid, const char *exe) {
        _cleanup_free_ char *now = NULL;

        return pid > 0 && *exe && procfs_link(f->options.proc_fd, pid, "exe", &now) == 0 && streq(now, exe);
}

/* A process may be gone or have become something else meanwhile. Its parent, the manager most often, stays, and as
 * long as both run the same executable it has the mappings that the process was born with. */
static int send_existing(struct feed *f, const struct item *item, uint64_t deadline_ns) {
        struct existing existing = { f, item->space, item->existing.pid, item->existing.root, deadline_ns };
        uint32_t parent = item->existing.parent;
        uint32_t pid = runs(f, parent, (const char *) item->data) ? parent : item->existing.pid;
        int r = procfs_maps(f->options.proc_fd, pid, send_existing_map, &existing);

        return r == -EPROTO || r == -ETIMEDOUT ? r : 0;
}

/* Page by page, since nothing may be mapped above the stack. */
static uint32_t read_memory(pid_t pid, uint64_t address, uint8_t *data, uint32_t bytes) {
        uint32_t done = 0;

        while (done < bytes) {
                uint32_t step = MIN(bytes - done, (uint32_t) (STACK_PAGE - (address + done) % STACK_PAGE));
                struct iovec here = { data + done, step }, there = { (void *) (address + done), step };

                if (process_vm_readv(pid, &here, 1, &there, 1, 0) != (ssize_t) step)
                        break;
                done += step;
        }
        return done;
}

/* Nothing is sent of a thread that has run meanwhile: its registers are not those of its stack, or it is even
 * another one with the same number. */
static int send_blocked(struct feed *f, struct item *item, uint64_t deadline_ns) {
        struct worker_stack *stack = &item->stack.head;
        uint32_t wanted = stack->stack_bytes;
        uint64_t switches;

        stack->stack_bytes =
                read_memory((pid_t) item->stack.tid, stack->regs[DWARF_RSP], item->data, wanted);
        if (procfs_switches(f->options.proc_fd, item->stack.tgid, item->stack.tid, &switches) < 0 ||
            switches != item->stack.switches) {
                explicit_bzero(item->data, wanted);
                return 0;
        }
        if (stack->stack_bytes < wanted)
                stack->flags |= SAMPLE_STACK_FAULT;
        return worker_link_stack(f->link, stack, item->data, deadline_ns);
}

static int send_stack(struct feed *f, const struct item *item, uint64_t deadline_ns) {
        const struct worker_stack *stack = &item->stack.head;
        int r = stack->kernel_frames > 0 ? announce(f, stack->kernel_module, deadline_ns) : 0;

        return r < 0 ? r : worker_link_stack(f->link, stack, item->data, deadline_ns);
}

static int send_item(struct feed *f, struct item *item) {
        uint64_t deadline_ns = now_ns() + SEND_TIMEOUT_SEC * NSEC_PER_SEC;

        switch (item->kind) {
        case ITEM_SPACE: return worker_link_space(f->link, item->space, item->from, deadline_ns);
        case ITEM_MAP:
                return send_map(f, item->space, item->map.module, item->map.start, item->map.end,
                                item->map.file_offset, deadline_ns);
        case ITEM_EXISTING: return send_existing(f, item, deadline_ns);
        case ITEM_ENDED: code_maps_keep(f->code_maps, item->space); return 0;
        case ITEM_STACK: return send_stack(f, item, deadline_ns);
        case ITEM_BLOCKED: return send_blocked(f, item, deadline_ns);
        }
        return -EINVAL;
}

/* The next item; NULL: all is done, or it is time to leave. */
static struct item *next_item(struct feed *f) {
        struct item *item;

        pthread_mutex_lock(&f->lock);
        while (!f->first && !f->finishing && !f->stopping)
                pthread_cond_wait(&f->changed, &f->lock);
        item = f->stopping ? NULL : f->first;
        if (item) {
                f->first = item->next;
                if (!f->first)
                        f->last = &f->first;
                f->queued_bytes -= item->queued_bytes;
                balance(f);
        }
        pthread_mutex_unlock(&f->lock);
        return item;
}

static void set_problem(struct feed *f, const char *problem) {
        pthread_mutex_lock(&f->lock);
        if (!f->problem)
                f->problem = problem;
        pthread_mutex_unlock(&f->lock);
}

/* Stack copies may hold secrets. */
static void free_item(struct item *item) {
        if (item->kind == ITEM_STACK || item->kind == ITEM_BLOCKED)
                explicit_bzero(item->data, item->queued_bytes - sizeof(*item));
        free(item);
}

static void hand_over(struct feed *f) {
        struct item *item;
        int r = 0;

        while ((item = next_item(f))) {
                if (r >= 0)
                        r = send_item(f, item);
                free_item(item);
                if (r < 0)
                        set_problem(f, r == -ETIMEDOUT ? "The worker that unwinds stacks hung and was ended."
                                                       : "The worker that unwinds stacks failed.");
        }
}

static void ask_for_layer(struct feed *f) {
        void *layer = NULL;
        size_t bytes = 0;
        uint64_t deadline_ns;
        bool wanted;
        int r;

        pthread_mutex_lock(&f->lock);
        wanted = f->finishing && !f->stopping && !f->problem;
        deadline_ns = f->deadline_ns;
        pthread_mutex_unlock(&f->lock);
        if (!wanted)
                return;

        r = worker_link_finish(f->link, deadline_ns, &layer, &bytes);
        if (r < 0) {
                set_problem(f, r == -ETIMEDOUT ? "Naming the frames took longer than it may."
                                               : "The worker that names frames failed.");
                return;
        }
        pthread_mutex_lock(&f->lock);
        f->layer = layer;
        f->layer_bytes = bytes;
        pthread_mutex_unlock(&f->lock);
}

static void destroy(struct feed *f) {
        while (f->first) {
                struct item *item = f->first;

                f->first = item->next;
                free_item(item);
        }
        code_maps_free(f->code_maps);
        dir_files_free(f->debug_files);
        mappings_unref(f->mappings);
        free(f->layer);
        pthread_cond_destroy(&f->changed);
        pthread_mutex_destroy(&f->lock);
        free(f);
}

static void complain(const char *path, unsigned line, const char *what) {
        log_warning("%s:%u: %s", path, line, what);
}

/* Read anew for each capture: nobody has to tell the daemon of a change. Without memory there are none. */
static void find_debug_files(struct feed *f) {
        _cleanup_(config_done) struct config config = CONFIG_NULL;

        if (config_load("", complain, &config) == 0)
                (void) dir_files_new((const char *const *) config.debug_directories,
                                     config.n_debug_directories, &f->debug_files);
}

static void tell_worker(struct feed *f, pid_t pid) {
        pthread_mutex_lock(&f->lock);
        f->worker = pid;
        /* The start is over, nothing can be disturbed any more, and somebody waits for the answer. */
        set_nice(f, f->finishing ? 0 : f->hurry_above > LONG_QUEUE ? HURRY_NICE : WORKER_NICE);
        pthread_mutex_unlock(&f->lock);
}

static void *run(void *userdata) {
        struct feed *f = userdata;
        struct worker_options options = { .uid = f->options.worker_uid,
                                          .gid = f->options.worker_gid,
                                          .table = keep_table };
        bool abandoned;

        pthread_mutex_lock(&f->lock);
        f->tid = gettid();
        set_nice(f, HURRY_NICE); /* the worker begins with it: it should be there before the service is */
        pthread_mutex_unlock(&f->lock);
        find_debug_files(f);
        if (worker_link_new(&options, open_for_worker, f, &f->link) < 0)
                set_problem(f, "The worker that unwinds stacks could not be started.");
        if (f->link) {
                tell_worker(f, worker_link_pid(f->link));
                hand_over(f);
                ask_for_layer(f);
                tell_worker(f, 0); /* its number may be given to another */
        }
        f->link = worker_link_free(f->link);

        pthread_mutex_lock(&f->lock);
        f->done = true;
        f->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        abandoned = f->abandoned;
        pthread_cond_broadcast(&f->changed);
        pthread_mutex_unlock(&f->lock);
        if (abandoned)
                destroy(f);
        return NULL;
}

/* ---- the owner ---- */

static int start_thread(struct feed *f) {
        sigset_t all, old;
        int r;

        /* Signals are the main thread's. */
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &old);
        r = -pthread_create(&f->thread, NULL, run, f);
        pthread_sigmask(SIG_SETMASK, &old, NULL);
        return r;
}

int feed_new(const struct feed_options *options, struct mappings *mappings, struct feed **ret) {
        struct feed *f = calloc(1, sizeof(*f));
        pthread_condattr_t clock;
        pthread_mutexattr_t inherit;
        int r;

        if (!f)
                return -ENOMEM;
        f->options = *options;
        f->mappings = mappings_ref(mappings);
        f->hurry_above = LONG_QUEUE;
        f->last = &f->first;
        f->code_maps = code_maps_new(options->proc_fd, mappings);
        if (!f->code_maps) {
                mappings_unref(f->mappings);
                free(f);
                return -ENOMEM;
        }
        pthread_mutexattr_init(&inherit);
        pthread_mutexattr_setprotocol(&inherit, PTHREAD_PRIO_INHERIT);
        pthread_mutex_init(&f->lock, &inherit);
        pthread_mutexattr_destroy(&inherit);
        pthread_condattr_init(&clock);
        pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
        pthread_cond_init(&f->changed, &clock);
        pthread_condattr_destroy(&clock);

        r = start_thread(f);
        if (r < 0) {
                destroy(f);
                return r;
        }
        *ret = f;
        return 0;
}

/* Waits, below the lock, until the thread is done. */
static bool wait_done(struct feed *f, uint64_t deadline_ns) {
        struct timespec until = { .tv_sec = (time_t) (deadline_ns / NSEC_PER_SEC),
                                  .tv_nsec = (long) (deadline_ns % NSEC_PER_SEC) };

        while (!f->done)
                if (pthread_cond_timedwait(&f->changed, &f->lock, &until) == ETIMEDOUT)
                        break;
        return f->done;
}

void feed_finish(struct feed *f, uint64_t deadline_ns, void **ret, size_t *ret_bytes,
                 const char **ret_problem) {
        pthread_mutex_lock(&f->lock);
        f->finishing = true;
        f->deadline_ns = deadline_ns;
        set_nice(f, 0);
        pthread_cond_broadcast(&f->changed);
        if (!wait_done(f, deadline_ns + GRACE_MSEC * NSEC_PER_MSEC))
                f->problem =
                        "Reading the service's files took longer than it may; names and stacks are missing.";
        *ret = TAKE_PTR(f->layer);
        *ret_bytes = f->layer_bytes;
        *ret_problem = *ret ? NULL : f->problem;
        pthread_mutex_unlock(&f->lock);
}

struct feed *feed_free(struct feed *f) {
        bool done;

        if (!f)
                return NULL;
        pthread_mutex_lock(&f->lock);
        f->stopping = true;
        pthread_cond_broadcast(&f->changed);
        done = wait_done(f, now_ns() + GRACE_MSEC * NSEC_PER_MSEC);
        f->abandoned = !done;
        pthread_mutex_unlock(&f->lock);
        if (!done) {
                pthread_detach(f->thread);
                return NULL;
        }
        pthread_join(f->thread, NULL);
        destroy(f);
        return NULL;
}

uint64_t feed_cpu_ns(struct feed *f) {
        clockid_t clock;
        uint64_t ns;

        pthread_mutex_lock(&f->lock);
        if (f->done)
                ns = f->cpu_ns;
        else
                ns = pthread_getcpuclockid(f->thread, &clock) == 0 ? clock_ns(clock) : 0;
        if (f->worker > 0 && clock_getcpuclockid(f->worker, &clock) == 0)
                ns += clock_ns(clock);
        pthread_mutex_unlock(&f->lock);
        return ns;
}
