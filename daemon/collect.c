/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/collect.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/procfs.h"
#include "daemon/feed.h"
#include "daemon/ledger.h"
#include "daemon/mappings.h"
#include "daemon/merge.h"
#include "daemon/probe.h"

enum {
        LOOK_MSEC = 50, /* bulk events do not wake the collector; the ring holds seconds of them */
        LAG_MSEC = 2, /* an event is in its ring this long after its time stamp, at the latest */
        COLLECTOR_PRIORITY = 1, /* SCHED_FIFO: a normal thread misses one in seven processes of 0.6 ms */
        FEATURES_MAX = 16,
        COST_CALL_NS = 150, /* of a counted call: 100 for the tracepoint, 50 for the counting, measured */
        COST_SWITCH_NS = 700, /* of a switch and its wakeup, measured */
};

/* Kinds of merge items. */
enum {
        ITEM_EVENT, /* numbers: root, file; texts: exe, cwd */
        ITEM_MAP, /* struct perf_map, then the path */
        ITEM_IMAGE, /* numbers[0]: pid */
};

struct collect {
        pthread_mutex_t lock; /* around everything below but the thread */
        pthread_t thread;
        bool has_thread;
        bool stopping;
        int wake_fd, epoll_fd, proc_fd; /* owned */
        struct probe *probe; /* owned */
        struct merge *merge; /* owned */
        struct capture *captures[SESSION_MAX]; /* borrowed */
        unsigned n_captures;
        struct collect_feature features[FEATURES_MAX];
        unsigned n_features;
        uint32_t frequency_hz; /* that the rings are made for */
};

struct capture {
        struct collect *collect; /* borrowed */
        uint32_t session;
        uint32_t frequency_hz;
        bool stopped;
        struct mappings *mappings; /* owned */
        struct feed *feed; /* owned */
        struct ledger *ledger; /* owned */
        uint64_t armed_ns;
        uint64_t collector_ns_before; /* CPU time of the collector */
        uint64_t cost_ns;
        struct session_stat stat; /* at the stop */
        uint64_t switches; /* of the unit's threads */
};

static uint64_t clock_ns(clockid_t clock) {
        struct timespec ts;

        if (clock_gettime(clock, &ts) < 0)
                return 0;
        return (uint64_t) ts.tv_sec * NSEC_PER_SEC + (uint64_t) ts.tv_nsec;
}

/* ---- the first look at an event: pin what may go away ---- */

static char *link_text(struct collect *c, uint32_t pid, const char *name) {
        char *text = NULL;

        return procfs_link(c->proc_fd, pid, name, &text) < 0 ? NULL : text;
}

static void pin(struct collect *c, const struct event_head *head, struct merge_item *item) {
        struct mappings *mappings = c->captures[head->session]->mappings;

        item->numbers[0] = mappings_pin_root(mappings, head->tgid);
        item->numbers[1] = head->type == EVENT_EXEC ? mappings_pin_exe(mappings, head->tgid) : REC_NONE;
        item->texts[0] = link_text(c, head->tgid, "exe");
        item->texts[1] = link_text(c, head->tgid, "cwd");
}

static enum loss_kind loss_of(uint32_t type) {
        switch (type) {
        case EVENT_SAMPLE: return LOSS_SAMPLE;
        case EVENT_WAIT: return LOSS_WAIT;
        case EVENT_PATH: return LOSS_PATH;
        default: return LOSS_EVENT;
        }
}

static void on_event(void *userdata, const struct event_head *head, size_t bytes) {
        struct collect *c = userdata;
        struct merge_item *item;

        if (!c->captures[head->session])
                return;
        item = merge_add(c->merge, head->time_ns, ITEM_EVENT, head, bytes);
        if (!item) {
                ledger_count_lost(c->captures[head->session]->ledger, loss_of(head->type), 1);
                return;
        }
        if (head->tgid != 0 && (head->type == EVENT_EXEC || head->type == EVENT_JOIN))
                pin(c, head, item);
}

/* Whose it was is not known: each capture may miss it. */
static void count_lost_mappings(struct collect *c, uint64_t count) {
        for (unsigned i = 0; i < SESSION_MAX; i++)
                if (c->captures[i])
                        ledger_count_lost(c->captures[i]->ledger, LOSS_MAPPING, count);
}

static void add_map(struct collect *c, const struct perf_map *map) {
        size_t path_bytes = strlen(map->path) + 1;
        char buffer[sizeof(*map) + PATH_MAX];

        if (path_bytes > PATH_MAX) {
                count_lost_mappings(c, 1);
                return;
        }
        memcpy(buffer, map, sizeof(*map));
        memcpy(buffer + sizeof(*map), map->path, path_bytes);
        if (!merge_add(c->merge, map->time_ns, ITEM_MAP, buffer, sizeof(*map) + path_bytes))
                count_lost_mappings(c, 1);
}

static void on_mapping(void *userdata, const struct perf_record *record) {
        struct collect *c = userdata;
        struct merge_item *item;

        switch (record->kind) {
        case PERF_RING_MAP: add_map(c, &record->map); break;
        case PERF_RING_IMAGE:
                item = merge_add(c->merge, record->time_ns, ITEM_IMAGE, NULL, 0);
                if (item)
                        item->numbers[0] = record->pid;
                else
                        count_lost_mappings(c, 1);
                break;
        case PERF_RING_LOST: count_lost_mappings(c, record->lost); break;
        case PERF_RING_OTHER: break;
        }
}

/* ---- the second look, in the order of time ---- */

static void dispatch_map(struct collect *c, const struct merge_item *item) {
        struct perf_map map;

        memcpy(&map, item->data, sizeof(map));
        map.path = (const char *) item->data + sizeof(map);
        for (unsigned i = 0; i < SESSION_MAX; i++)
                if (c->captures[i])
                        ledger_map(c->captures[i]->ledger, &map);
}

static void dispatch_event(struct collect *c, const struct merge_item *item) {
        const struct event_head *head = (const struct event_head *) item->data;
        struct capture *capture = c->captures[head->session];
        struct pins pins = {
                .root = item->numbers[0],
                .file = item->numbers[1],
                .exe = item->texts[0],
                .cwd = item->texts[1],
        };
        bool pinned = head->type == EVENT_EXEC || head->type == EVENT_JOIN;

        if (capture)
                ledger_event(capture->ledger, head, item->bytes, pinned ? &pins : NULL);
}

static void dispatch(void *userdata, struct merge_item *item) {
        struct collect *c = userdata;

        if (item->kind == ITEM_EVENT)
                dispatch_event(c, item);
        else if (item->kind == ITEM_MAP)
                dispatch_map(c, item);
        else
                for (unsigned i = 0; i < SESSION_MAX; i++)
                        if (c->captures[i])
                                ledger_image(c->captures[i]->ledger, item->numbers[0], item->time_ns);
}

/* Below the lock. */
static void drain(struct collect *c) {
        const struct probe_sink sink = { .event = on_event, .mapping = on_mapping, .userdata = c };
        uint64_t now = clock_ns(CLOCK_MONOTONIC);

        probe_drain(c->probe, &sink);
        merge_release(c->merge, now - LAG_MSEC * NSEC_PER_MSEC, dispatch, c);
}

/* ---- the thread ---- */

static void *run(void *userdata) {
        struct collect *c = userdata;
        struct sched_param priority = { .sched_priority = COLLECTOR_PRIORITY };
        bool stopping = false, busy;
        uint64_t count;

        if (sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &priority) < 0)
                log_warning("No real-time priority for the collector: short processes may be missed "
                            "(CAP_SYS_NICE)");

        while (!stopping) {
                struct epoll_event events[2];

                pthread_mutex_lock(&c->lock);
                busy = c->n_captures > 0;
                pthread_mutex_unlock(&c->lock);

                if (epoll_wait(c->epoll_fd, events, ARRAY_SIZE(events), busy ? LOOK_MSEC : -1) < 0 &&
                    errno != EINTR)
                        break;
                (void) !read(c->wake_fd, &count, sizeof(count)); /* non-blocking; only empties it */

                pthread_mutex_lock(&c->lock);
                if (c->n_captures > 0)
                        drain(c);
                stopping = c->stopping;
                pthread_mutex_unlock(&c->lock);
        }
        return NULL;
}

static void wake(struct collect *c) {
        uint64_t one = 1;

        (void) !write(c->wake_fd, &one, sizeof(one));
}

static int add_to_epoll(struct collect *c, int fd) {
        struct epoll_event event = { .events = EPOLLIN };

        return epoll_ctl(c->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

static int start_thread(struct collect *c) {
        sigset_t all, old;
        int r;

        c->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        c->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
        if (c->wake_fd < 0 || c->epoll_fd < 0)
                return -errno;
        r = add_to_epoll(c, c->wake_fd);
        if (r >= 0)
                r = add_to_epoll(c, probe_poll_fd(c->probe));
        if (r < 0)
                return r;

        /* Signals are the main thread's. */
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &old);
        r = -pthread_create(&c->thread, NULL, run, c);
        pthread_sigmask(SIG_SETMASK, &old, NULL);
        c->has_thread = r == 0;
        return r;
}

/* ---- life ---- */

/* The collector must not wait for a thread that nobody lets run. */
static void init_lock(pthread_mutex_t *lock) {
        pthread_mutexattr_t attributes;

        pthread_mutexattr_init(&attributes);
        pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
        pthread_mutex_init(lock, &attributes);
        pthread_mutexattr_destroy(&attributes);
}

static void copy_features(struct collect *c) {
        const struct probe_feature *features;
        unsigned n = probe_features(c->probe, &features);

        c->n_features = MIN(n, (unsigned) FEATURES_MAX);
        for (unsigned i = 0; i < c->n_features; i++)
                c->features[i] = (struct collect_feature){ features[i].name, features[i].available,
                                                           features[i].reason };
}

DEFINE_CLEANUP(struct collect *, collect_free);

int collect_new(uint32_t frequency_hz, struct collect **ret, const char **ret_reason) {
        _cleanup_(collect_freep) struct collect *c = calloc(1, sizeof(*c));
        int r;

        *ret_reason = "There is not enough memory.";
        if (!c)
                return -ENOMEM;
        c->wake_fd = c->epoll_fd = c->proc_fd = -EBADF;
        init_lock(&c->lock);
        c->merge = merge_new();
        if (!c->merge)
                return -ENOMEM;
        r = procfs_open(&c->proc_fd);
        if (r < 0) {
                *ret_reason = "/proc could not be opened.";
                return r;
        }
        c->frequency_hz = frequency_hz;
        r = probe_new(frequency_hz, &c->probe, ret_reason);
        if (r < 0)
                return r;
        copy_features(c);
        r = start_thread(c);
        if (r < 0) {
                *ret_reason = "The collector thread could not be started.";
                return r;
        }
        *ret = TAKE_PTR(c);
        return 0;
}

bool collect_suits(struct collect *c, uint32_t frequency_hz) {
        bool busy = false;

        for (unsigned i = 0; i < SESSION_MAX; i++)
                busy = busy || c->captures[i];
        return busy || frequency_hz <= c->frequency_hz;
}

struct collect *collect_free(struct collect *c) {
        if (!c)
                return NULL;
        if (c->has_thread) {
                pthread_mutex_lock(&c->lock);
                c->stopping = true;
                pthread_mutex_unlock(&c->lock);
                wake(c);
                pthread_join(c->thread, NULL);
        }
        probe_free(c->probe);
        merge_free(c->merge);
        fd_close(c->wake_fd);
        fd_close(c->epoll_fd);
        fd_close(c->proc_fd);
        pthread_mutex_destroy(&c->lock);
        free(c);
        return NULL;
}

unsigned collect_features(struct collect *c, const struct collect_feature **ret) {
        *ret = c->features;
        return c->n_features;
}

static uint64_t collector_cpu_ns(struct collect *c) {
        clockid_t clock;

        return pthread_getcpuclockid(c->thread, &clock) == 0 ? clock_ns(clock) : 0;
}

/* ---- captures ---- */

static int new_parts(struct capture *capture, const struct capture_options *options) {
        struct collect *c = capture->collect;
        struct feed_options feed = {
                .worker_uid = options->worker_uid,
                .worker_gid = options->worker_gid,
                .tables = options->tables,
                .proc_fd = c->proc_fd,
        };
        struct ledger_options ledger = {
                .proc_fd = c->proc_fd,
                .begin_ns = capture->armed_ns,
                .period_ns = NSEC_PER_SEC / capture->frequency_hz,
                .milestone = options->milestone,
                .userdata = options->userdata,
        };
        int r;

        capture->mappings = mappings_new(c->proc_fd);
        if (!capture->mappings)
                return -ENOMEM;
        r = feed_new(&feed, capture->mappings, &capture->feed);
        if (r < 0)
                return r;
        ledger.mappings = capture->mappings;
        ledger.feed = capture->feed;
        capture->ledger = ledger_new(&ledger);
        return capture->ledger ? 0 : -ENOMEM;
}

/* Below the lock. The parts exist before the first event can come. */
static int arm(struct capture *capture, const struct capture_options *options) {
        struct collect *c = capture->collect;
        int r;

        r = probe_arm(c->probe, &options->target, options->cgroup_dir, options->frequency_hz,
                      &capture->session, &capture->frequency_hz);
        if (r < 0)
                return r;
        r = new_parts(capture, options);
        if (r < 0) {
                probe_release(c->probe, capture->session);
                return r;
        }
        c->captures[capture->session] = capture;
        c->n_captures++;
        return 0;
}

DEFINE_CLEANUP(struct capture *, capture_free);

int capture_new(struct collect *c, const struct capture_options *options, struct capture **ret) {
        _cleanup_(capture_freep) struct capture *capture = calloc(1, sizeof(*capture));
        int r;

        if (!capture)
                return -ENOMEM;
        capture->collect = c;
        capture->session = REC_NONE;
        capture->stopped = true; /* until it is armed */
        capture->armed_ns = clock_ns(CLOCK_MONOTONIC);
        capture->collector_ns_before = collector_cpu_ns(c);

        pthread_mutex_lock(&c->lock);
        r = arm(capture, options);
        pthread_mutex_unlock(&c->lock);
        if (r < 0)
                return r;
        capture->stopped = false;
        wake(c);
        *ret = TAKE_PTR(capture);
        return 0;
}

void capture_stat(struct capture *capture, struct session_stat *ret) {
        struct collect *c = capture->collect;

        pthread_mutex_lock(&c->lock);
        if (capture->stopped)
                *ret = capture->stat;
        else
                probe_stat(c->probe, capture->session, ret);
        pthread_mutex_unlock(&c->lock);
}

uint32_t capture_process_count(struct capture *capture) {
        uint32_t count;

        pthread_mutex_lock(&capture->collect->lock);
        count = ledger_process_count(capture->ledger);
        pthread_mutex_unlock(&capture->collect->lock);
        return count;
}

void capture_hottest(struct capture *capture, char *text, size_t bytes) {
        _cleanup_(buf_done) struct buf b = BUF_NULL;

        pthread_mutex_lock(&capture->collect->lock);
        ledger_hottest(capture->ledger, &b);
        pthread_mutex_unlock(&capture->collect->lock);
        snprintf(text, bytes, "%s", buf_text(&b));
}

void capture_set_slot(struct capture *capture, uint32_t pid, enum rec_slot slot) {
        pthread_mutex_lock(&capture->collect->lock);
        ledger_set_slot(capture->ledger, pid, slot);
        pthread_mutex_unlock(&capture->collect->lock);
}

static void on_call(void *userdata, const struct call_key *key, const struct call_value *value) {
        ledger_add_call(userdata, key, value);
}

static void on_wait(void *userdata, const struct wait_key *key, const struct wait_value *value) {
        struct capture *capture = userdata;

        ledger_add_wait(capture->ledger, key, value);
        if (key->syscall == SYSCALL_ON_CPU)
                capture->switches += value->count;
}

static void on_dir(void *userdata, const struct dir_key *key, uint64_t count) {
        ledger_add_dir(userdata, key, count);
}

static void on_blocked(void *userdata, const struct blocked_thread *thread) {
        buf_append(userdata, thread, sizeof(*thread));
}

/* Below the lock, while hooks are attached. Some threads may run on before this is used. */
static void read_blocked(struct capture *capture, struct buf *threads) {
        if (probe_read_blocked(capture->collect->probe, capture->session, on_blocked, threads) < 0)
                log_debug("Threads that are still blocked could not be read.");
}

static void add_blocked(struct capture *capture, const struct buf *threads) {
        const struct blocked_thread *thread = (const struct blocked_thread *) threads->data;

        for (size_t i = 0; i < threads->size / sizeof(*thread); i++)
                ledger_add_blocked(capture->ledger, &thread[i]);
}

/* Below the lock. */
static void read_counters(struct capture *capture, uint64_t end_ns) {
        struct probe *p = capture->collect->probe;

        probe_stat(p, capture->session, &capture->stat);
        if (probe_read_calls(p, capture->session, on_call, capture->ledger) < 0)
                ledger_count_lost(capture->ledger, LOSS_CALL_KEYS, 1);
        (void) probe_read_waits(p, capture->session, end_ns, on_wait, capture);
        (void) probe_read_dirs(p, capture->session, on_dir, capture->ledger);
}

void capture_stop(struct capture *capture, uint64_t end_ns) {
        const struct timespec lag = { .tv_nsec = 2 * LAG_MSEC * (long) NSEC_PER_MSEC };
        _cleanup_(buf_done) struct buf blocked = BUF_NULL;
        struct collect *c = capture->collect;

        if (capture->stopped)
                return;
        pthread_mutex_lock(&c->lock);
        read_blocked(capture, &blocked);
        probe_disarm(c->probe, capture->session);
        pthread_mutex_unlock(&c->lock);

        /* What happened until now is in the rings and old enough to be put in order after this. */
        (void) clock_nanosleep(CLOCK_MONOTONIC, 0, &lag, NULL);

        pthread_mutex_lock(&c->lock);
        ledger_end(capture->ledger, end_ns);
        drain(c);
        add_blocked(capture, &blocked);
        read_counters(capture, end_ns);
        probe_release(c->probe, capture->session);
        c->captures[capture->session] = NULL;
        c->n_captures--;
        capture->stopped = true;
        pthread_mutex_unlock(&c->lock);

        capture->cost_ns = capture->stat.self_ns + capture->stat.calls * COST_CALL_NS +
                           capture->switches * COST_SWITCH_NS + collector_cpu_ns(c) -
                           capture->collector_ns_before + feed_cpu_ns(capture->feed);
}

static void fill_start(struct capture *capture, struct rec_start *start) {
        for (int i = 0; i < LOSS_KIND_MAX; i++)
                start->lost[i] = capture->stat.lost[i] + ledger_lost(capture->ledger, i);
        start->cost_ns = capture->cost_ns;
        start->samples_generated = capture->stat.samples - ledger_after_end(capture->ledger);
        start->cgroup_ns = capture->stat.cgroup_time_ns;
        start->armed_ns = capture->armed_ns;
        start->features = probe_feature_bits(capture->collect->probe);
        start->cpu_count = probe_cpu_count(capture->collect->probe);
        start->frequency_hz = capture->frequency_hz;
}

int capture_write(struct capture *capture, uint64_t deadline_ns, struct recording_writer *w,
                  struct rec_start *start, const char **ret_problem) {
        _cleanup_free_ void *layer = NULL;
        size_t layer_bytes;
        int r;

        /* First, since handing over to the worker still adds modules. */
        feed_finish(capture->feed, deadline_ns, &layer, &layer_bytes, ret_problem);
        r = ledger_write(capture->ledger, w);
        if (r < 0)
                return r;
        if (layer)
                recording_writer_layer(w, layer, layer_bytes);
        fill_start(capture, start);
        return 0;
}

struct capture *capture_free(struct capture *capture) {
        if (!capture)
                return NULL;
        if (!capture->stopped)
                capture_stop(capture, clock_ns(CLOCK_MONOTONIC));
        capture->feed = feed_free(capture->feed);
        ledger_free(capture->ledger);
        mappings_unref(capture->mappings);
        free(capture);
        return NULL;
}
