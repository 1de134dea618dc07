/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/session.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/parse.h"
#include "common/procfs.h"
#include "common/unit_name.h"
#include "daemon/cgroup_stat.h"
#include "daemon/journal.h"
#include "proto/recording.h"
#include "proto/varlink.h"
#include "proto/worker_link.h"

enum {
        TICK_MSEC = 50, /* start_tick() wants 100 ms at most */
        PROGRESS_TICKS = 4, /* progress goes out every so many */
        HOTTEST_MAX = 96,
        WITNESSED_MAX = 8, /* milestones of the capture: each kind is told once */
        FINISH_SECONDS = 20, /* the worker names everything within; a hang costs names, not the recording */
        REPORT_SECONDS = 10,
        WORKER_NICE = 5,
};

enum phase { PHASE_RESOLVING, PHASE_FOLLOWING, PHASE_FINISHING, PHASE_DONE };

/* What the collector thread saw and the event loop has not heard yet. */
struct witnessed {
        enum rec_milestone_kind kind;
        uint64_t time_ns;
};

/* Made by the thread of FINISHING, read when it has been joined. */
struct finished {
        int error; /* no recording: negative errno */
        char *recording; /* owned: the id */
        int unsaved_fd; /* owned: the recording itself when the store could not take it; else -EBADF */
        char *cause, *message; /* owned; NULL: the worker had no word */
        uint64_t duration_usec;
        uint32_t result;
        uint8_t invocation_id[16];
};

struct session {
        /* borrowed */
        const struct session_world *world;
        const struct session_events *events;
        void *userdata;
        /* owned */
        char *unit;
        struct systemd_unit *systemd_unit;
        struct start *start;
        struct capture *capture;
        char *cgroup_dir, *cgroup_root; /* the unit's, and the manager's */
        sd_event_source *tick, *wake;
        int wake_fd;
        struct finished finished;

        uint32_t id;
        enum phase phase;
        struct session_options options;
        uint64_t armed_ns;
        uint64_t realtime_offset_usec; /* CLOCK_REALTIME - CLOCK_MONOTONIC at arming */
        unsigned ticks;
        bool queued_told;
        struct cgroup_stat cgroup_before, cgroup_now;
        pthread_t thread; /* FINISHING */
        pthread_mutex_t lock; /* around witnessed */
        struct witnessed witnessed[WITNESSED_MAX];
        unsigned n_witnessed;
};

static uint64_t clock_ns(clockid_t clock) {
        struct timespec ts;

        clock_gettime(clock, &ts);
        return (uint64_t) ts.tv_sec * NSEC_PER_SEC + (uint64_t) ts.tv_nsec;
}

uint32_t session_id(const struct session *s) {
        return s->id;
}

const char *session_unit(const struct session *s) {
        return s->unit;
}

/* ---- telling the caller ---- */

static void disarm(struct session *s) {
        s->tick = sd_event_source_disable_unref(s->tick);
        s->capture = capture_free(s->capture);
        s->start = start_free(s->start);
        s->systemd_unit = systemd_unit_free(s->systemd_unit);
}

/* The session may be gone when this returns. Takes the reference to parameters. */
static void fail(struct session *s, const char *error, json_t *parameters) {
        s->phase = PHASE_DONE;
        disarm(s);
        s->events->done(s->userdata, NULL, error, parameters);
        json_decref(parameters);
}

static void fail_errno(struct session *s, const char *what, int error) {
        char text[256];

        snprintf(text, sizeof(text), "%s: %s", what, strerror(-error));
        fail(s, PROFILER_ERROR_FAILED, json_pack("{s:s}", "reason", text));
}

static void tell(struct session *s, const char *state) {
        const struct start_outcome *outcome = start_outcome(s->start);
        struct session_stat stat = {};
        char hottest[HOTTEST_MAX] = "";
        uint64_t now = clock_ns(CLOCK_MONOTONIC), since = outcome->begin_ns ?: outcome->queued_ns;
        json_t *progress;

        capture_stat(s->capture, &stat);
        capture_hottest(s->capture, hottest, sizeof(hottest));
        progress = json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:o*}", "state", state, "elapsed_usec",
                             (json_int_t) (since > 0 && now > since ? (now - since) / NSEC_PER_USEC : 0),
                             "samples", (json_int_t) stat.samples, "calls", (json_int_t) stat.calls,
                             "inotify_watches", (json_int_t) stat.inotify_watches, "processes",
                             (json_int_t) capture_process_count(s->capture), "hottest",
                             hottest[0] ? varlink_string(hottest) : NULL);
        if (progress)
                s->events->progress(s->userdata, progress);
        json_decref(progress);
}

/* ---- finishing: in a thread ---- */

static void add_property(void *userdata, const char *name, const char *value) {
        struct recording_writer *w = userdata;
        struct rec_property row = {
                .name = recording_writer_text(w, name),
                .value = recording_writer_text(w, value),
        };

        recording_writer_rows(w, REC_PROPERTIES, &row, sizeof(row), 1);
}

static void add_host(struct recording_writer *w) {
        struct utsname name;

        if (uname(&name) >= 0)
                add_property(w, "host.kernel", name.release);
        add_property(w, "host.version", STARTPROF_VERSION);
}

static void add_limits(struct rec_start *start) {
        _cleanup_close_ int proc = -EBADF;

        if (procfs_open(&proc) < 0)
                return;
        (void) procfs_u64(proc, "sys/fs/inotify/max_user_watches", &start->watch_limit);
        (void) procfs_u64(proc, "sys/fs/inotify/max_user_instances", &start->instance_limit);
}

static void read_boot_id(uint8_t ret[static 16]) {
        _cleanup_close_ int proc = -EBADF;
        _cleanup_free_ char *text = NULL;
        char hex[33];
        size_t bytes, n = 0;

        if (procfs_open(&proc) < 0 || read_file_at(proc, "sys/kernel/random/boot_id", 64, &text, &bytes) < 0)
                return;
        for (size_t i = 0; i < bytes && n < 32; i++)
                if (text[i] != '-' && text[i] != '\n')
                        hex[n++] = text[i];
        hex[n] = '\0';
        (void) parse_hex(hex, ret, 16);
}

static void add_start(struct session *s, struct recording_writer *w, struct rec_start *start) {
        const struct start_outcome *outcome = start_outcome(s->start);

        start->queued_ns = outcome->queued_ns ?: outcome->begin_ns;
        start->begin_ns = outcome->begin_ns;
        start->end_ns = outcome->end_ns;
        start->realtime_usec = start->queued_ns / NSEC_PER_USEC + s->realtime_offset_usec;
        memcpy(start->invocation_id, outcome->invocation_id, 16);
        read_boot_id(start->boot_id);
        start->result = outcome->result;
        start->end = outcome->end;
        start->attempts = outcome->attempts;
        start->unit = recording_writer_text(w, s->unit);
        start->type = recording_writer_text(w, systemd_unit_property(s->systemd_unit, "Type"));
        add_limits(start);

        for (uint32_t i = 0; i < outcome->milestone_count; i++) {
                struct rec_milestone row = {
                        .time_ns = outcome->milestones[i].time_ns,
                        .kind = outcome->milestones[i].kind,
                        .process = REC_NONE,
                };

                recording_writer_rows(w, REC_MILESTONES, &row, sizeof(row), 1);
        }
        if (outcome->job_result[0])
                add_property(w, "JobResult", outcome->job_result);
        if (outcome->unit_result[0])
                add_property(w, "Result", outcome->unit_result);
        systemd_unit_properties(s->systemd_unit, add_property, w);
        cgroup_stat_tell(&s->cgroup_before, &s->cgroup_now, s->cgroup_dir, add_property, w);
        add_host(w);
}

/* The journal's sentence, from a worker of its own: the recording holds what strangers' files said. */
static void ask_report(struct session *s, const void *data, size_t bytes, json_t **ret) {
        const struct worker_options options = {
                .uid = s->world->worker_uid,
                .gid = s->world->worker_gid,
                .nice = WORKER_NICE,
        };
        _cleanup_(worker_link_freep) struct worker_link *link = NULL;
        uint64_t deadline = clock_ns(CLOCK_MONOTONIC) + REPORT_SECONDS * NSEC_PER_SEC;
        _cleanup_close_ int fd = -EBADF;
        _cleanup_free_ char *text = NULL;
        int r;

        fd = fd_new_sealed("recording", data, bytes);
        r = fd < 0 ? fd : worker_link_new(&options, NULL, NULL, &link);
        if (r >= 0)
                r = worker_link_report(link, fd, deadline, &text);
        if (r < 0) {
                (void) log_error_errno(r, "%s: the worker could not sum up the recording", s->unit);
                return;
        }
        *ret = json_loads(text, 0, NULL);
        if (!json_is_object(*ret)) {
                json_decref(*ret);
                *ret = NULL;
        }
}

/* A member that the worker sent; a copy, or NULL. */
static char *word(json_t *report, const char *name) {
        const char *text = json_string_value(json_object_get(report, name));

        return text ? strdup(text) : NULL;
}

static int store_it(struct session *s, const struct rec_start *start, const void *data, size_t bytes,
                    json_t *report) {
        char invocation[33] = "", boot[33] = "";
        _cleanup_free_ char *id = NULL;
        json_t *summary;
        int r;

        for (size_t i = 0; i < 16; i++) {
                snprintf(invocation + 2 * i, 3, "%02x", start->invocation_id[i]);
                snprintf(boot + 2 * i, 3, "%02x", start->boot_id[i]);
        }
        r = store_make_id(s->unit, start->boot_id, start->invocation_id, start->realtime_usec, &id);
        if (r < 0)
                return r;
        summary = json_pack("{s:o, s:s, s:s, s:I, s:I, s:s, s:O*, s:O*}", "unit", varlink_string(s->unit),
                            "invocation_id", invocation, "boot_id", boot, "realtime_usec",
                            (json_int_t) start->realtime_usec, "duration_usec",
                            (json_int_t) s->finished.duration_usec, "result",
                            recording_result_str(start->result), "cause", json_object_get(report, "cause"),
                            "summary", json_object_get(report, "summary"));
        if (!summary)
                return -ENOMEM;
        r = store_write(s->world->store, id, data, bytes, summary);
        json_decref(summary);
        if (r < 0) {
                /* A full disk must not cost the answer: the start cannot be had again. */
                (void) log_error_errno(r, "%s: the recording is not kept", s->unit);
                s->finished.unsaved_fd = fd_new_sealed("startprof-recording", data, bytes);
                if (s->finished.unsaved_fd < 0)
                        return r;
        }
        s->finished.recording = TAKE_PTR(id);
        return 0;
}

/* The file's bytes. The worker's layer comes from somebody who reads strangers' files: when the whole cannot be
 * opened with it, it is left out, and the recording has no names. */
static int finish_file(struct session *s, struct recording_writer *w, void **ret, size_t *ret_bytes) {
        struct recording *checked;
        int r;

        r = recording_writer_finish(w, true, ret, ret_bytes);
        if (r < 0)
                return r;
        if (recording_open(*ret, *ret_bytes, &checked) >= 0) {
                recording_free(checked);
                return 0;
        }
        log_warning("%s: what the worker said makes no sense and is left out", s->unit);
        free(*ret);
        *ret = NULL;
        recording_writer_drop_layers(w);
        return recording_writer_finish(w, true, ret, ret_bytes);
}

static int finish(struct session *s) {
        uint64_t deadline = clock_ns(CLOCK_MONOTONIC) + FINISH_SECONDS * NSEC_PER_SEC;
        struct recording_writer *w = recording_writer_new(true);
        struct rec_start start = {};
        const char *problem = NULL;
        _cleanup_free_ void *data = NULL;
        json_t *report = NULL;
        size_t bytes;
        int r;

        if (!w)
                return -ENOMEM;
        add_start(s, w, &start);
        r = capture_write(s->capture, deadline, w, &start, &problem);
        if (r >= 0) {
                if (problem)
                        log_warning("%s: %s", s->unit, problem);
                recording_writer_rows(w, REC_START, &start, sizeof(start), 1);
                r = finish_file(s, w, &data, &bytes);
        }
        recording_writer_free(w);
        if (r < 0)
                return r;

        s->finished.duration_usec =
                start.end_ns > start.queued_ns ? (start.end_ns - start.queued_ns) / NSEC_PER_USEC : 0;
        s->finished.result = start.result;
        memcpy(s->finished.invocation_id, start.invocation_id, 16);
        ask_report(s, data, bytes, &report);
        s->finished.cause = word(report, "cause");
        s->finished.message = word(report, "message");
        r = store_it(s, &start, data, bytes, report);
        json_decref(report);
        return r;
}

static void wake(struct session *s) {
        uint64_t one = 1;

        (void) !write(s->wake_fd, &one, sizeof(one));
}

static void *finish_thread(void *userdata) {
        struct session *s = userdata;

        s->finished.error = finish(s);
        wake(s);
        return NULL;
}

static void start_finishing(struct session *s) {
        int r;

        s->tick = sd_event_source_disable_unref(s->tick);
        tell(s, "finishing");
        s->phase = PHASE_FINISHING;
        cgroup_stat_read(s->cgroup_dir, s->cgroup_root, &s->cgroup_now);
        capture_stop(s->capture, start_outcome(s->start)->end_ns);
        /* The thread reads the unit's properties, and a late signal would change them under it. */
        systemd_unit_stop(s->systemd_unit);
        r = pthread_create(&s->thread, NULL, finish_thread, s);
        if (r != 0)
                fail_errno(s, "cannot start a thread", -r);
}

static void write_journal(struct session *s) {
        const struct journal_entry entry = {
                .unit = s->unit,
                .cause = s->finished.cause ?: "none",
                .recording = s->finished.recording,
                .message = s->finished.message,
                .result = recording_result_str(s->finished.result),
                .duration_usec = s->finished.duration_usec,
                .invocation_id = s->finished.invocation_id,
        };
        int r;

        r = journal_send(&entry);
        if (r < 0)
                (void) log_error_errno(r, "%s: no journal entry", s->unit);
}

static void end_finishing(struct session *s) {
        pthread_join(s->thread, NULL);
        s->phase = PHASE_DONE;
        disarm(s);
        if (s->finished.error < 0) {
                fail_errno(s, "the recording could not be written", s->finished.error);
                return;
        }
        write_journal(s);
        s->events->done(s->userdata, s->finished.recording, NULL, NULL);
}

/* ---- following ---- */

/* What systemd says about its processes: which command line each of them runs. */
static void set_slots(struct session *s, const struct start_values *values) {
        enum rec_slot slot = start_control_slot(values->sub_state);

        if (values->control_pid > 0 && slot != REC_SLOT_UNKNOWN)
                capture_set_slot(s->capture, values->control_pid, slot);
        if (values->main_pid > 0)
                capture_set_slot(s->capture, values->main_pid, REC_SLOT_START);
}

/* After anything that start_*() was told. The session may be gone when this returns. */
static void advance(struct session *s) {
        const struct start_outcome *outcome = start_outcome(s->start);

        if (outcome->phase == START_DONE)
                start_finishing(s);
        else if (outcome->phase != START_ARMED && !s->queued_told) {
                s->queued_told = true;
                tell(s, "queued");
        }
}

static void hear_witnesses(struct session *s) {
        struct witnessed heard[WITNESSED_MAX];
        unsigned n;

        pthread_mutex_lock(&s->lock);
        n = s->n_witnessed;
        memcpy(heard, s->witnessed, n * sizeof(heard[0]));
        s->n_witnessed = 0;
        pthread_mutex_unlock(&s->lock);

        for (unsigned i = 0; i < n; i++)
                if (heard[i].kind == REC_MILESTONE_CGROUP) {
                        start_cgroup(s->start, heard[i].time_ns);
                        cgroup_stat_forget_own(&s->cgroup_before);
                        cgroup_stat_forget_own(&s->cgroup_now);
                } else if (heard[i].kind == REC_MILESTONE_LISTEN)
                        start_listen(s->start, heard[i].time_ns);
}

/* On the collector thread. */
static void on_witnessed(void *userdata, enum rec_milestone_kind kind, uint64_t time_ns) {
        struct session *s = userdata;

        pthread_mutex_lock(&s->lock);
        if (s->n_witnessed < WITNESSED_MAX)
                s->witnessed[s->n_witnessed++] = (struct witnessed){ .kind = kind, .time_ns = time_ns };
        pthread_mutex_unlock(&s->lock);
        wake(s);
}

static int on_wake(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        struct session *s = userdata;
        uint64_t count;

        (void) !read(fd, &count, sizeof(count));
        if (s->phase == PHASE_FOLLOWING) {
                hear_witnesses(s);
                advance(s);
        } else if (s->phase == PHASE_FINISHING)
                end_finishing(s);
        return 0;
}

static int on_tick(sd_event_source *source, uint64_t usec, void *userdata) {
        struct session *s = userdata;
        struct session_stat stat = {};
        enum start_phase phase;

        (void) sd_event_source_set_time_relative(source, TICK_MSEC * USEC_PER_MSEC);
        hear_witnesses(s);
        phase = start_outcome(s->start)->phase;
        if (phase == START_STARTING) {
                cgroup_stat_read(s->cgroup_dir, s->cgroup_root, &s->cgroup_now);
                capture_stat(s->capture, &stat);
                start_tick(s->start, stat.on_cpu > 0 || stat.in_io > 0, stat.last_on_cpu_ns,
                           clock_ns(CLOCK_MONOTONIC));
        }
        if (s->ticks++ % PROGRESS_TICKS == 0 && phase != START_ARMED)
                tell(s, phase == START_STARTING ? "starting" : "queued");
        advance(s);
        return 0;
}

static void on_changed(void *userdata) {
        struct session *s = userdata;
        const struct start_values *values = systemd_unit_values(s->systemd_unit);

        if (s->phase != PHASE_FOLLOWING)
                return;
        hear_witnesses(s);
        start_unit_changed(s->start, values, clock_ns(CLOCK_MONOTONIC));
        if (start_outcome(s->start)->phase >= START_STARTING)
                set_slots(s, values);
        advance(s);
}

static void on_job_new(void *userdata, uint32_t job) {
        struct session *s = userdata;

        if (s->phase != PHASE_FOLLOWING)
                return;
        start_job_new(s->start, job, clock_ns(CLOCK_MONOTONIC));
        advance(s);
}

static void on_job_removed(void *userdata, uint32_t job, const char *result) {
        struct session *s = userdata;

        if (s->phase != PHASE_FOLLOWING)
                return;
        hear_witnesses(s);
        start_job_removed(s->start, job, result, clock_ns(CLOCK_MONOTONIC));
        advance(s);
}

static void on_removed(void *userdata) {
        struct session *s = userdata;

        if (s->phase != PHASE_FOLLOWING)
                return;
        start_unit_removed(s->start, clock_ns(CLOCK_MONOTONIC));
        advance(s);
}

static void on_lost(void *userdata) {
        struct session *s = userdata;

        if (s->phase == PHASE_RESOLVING || s->phase == PHASE_FOLLOWING)
                fail(s, PROFILER_ERROR_FAILED,
                     json_pack("{s:s}", "reason", "the connection to systemd was lost"));
}

/* ---- arming ---- */

/* The manager's own cgroup: what ControlGroup= of units is relative to. PID 1 sits in init.scope below it. */
static int manager_cgroup(int proc_fd, char **ret) {
        _cleanup_free_ char *path = NULL;
        const char *scope;
        int r;

        r = procfs_cgroup(proc_fd, 1, &path);
        if (r < 0)
                return r;
        scope = endswith(path, "/init.scope");
        if (scope)
                path[scope - path] = '\0';
        *ret = TAKE_PTR(path);
        return 0;
}

/* Path of the unit's cgroup below the manager's. */
static int unit_cgroup(const struct systemd_unit *unit, unsigned version, char **ret) {
        const char *slice = systemd_unit_property(unit, "Slice");
        _cleanup_free_ char *above = NULL, *name = NULL;
        int r;

        r = unit_slice_cgroup(slice && *slice ? slice : "system.slice", version, &above);
        if (r < 0)
                return r;
        r = unit_name_cgroup(systemd_unit_id(unit), version, &name);
        if (r < 0)
                return r;
        return asprintf(ret, "%s/%s", above, name) < 0 ? -ENOMEM : 0;
}

static uint32_t components(const char *path) {
        uint32_t n = 0;

        for (; *path; path++)
                n += *path == '/';
        return n;
}

static int find_target(const struct systemd_unit *unit, unsigned version, struct target *target,
                       char **ret_dir, char **ret_root) {
        _cleanup_free_ char *hierarchy = NULL, *manager = NULL, *path = NULL, *root = NULL;
        _cleanup_close_ int proc = -EBADF;
        struct stat st;
        int r;

        if ((r = procfs_open(&proc)) < 0 || (r = procfs_cgroup_root(proc, &hierarchy)) < 0 ||
            (r = manager_cgroup(proc, &manager)) < 0 || (r = unit_cgroup(unit, version, &path)) < 0)
                return r;
        if (strlen(path) >= sizeof(target->path))
                return -ENAMETOOLONG;
        if (asprintf(&root, "%s%s", hierarchy, streq(manager, "/") ? "" : manager) < 0) {
                root = NULL;
                return -ENOMEM;
        }
        if (stat(root, &st) < 0)
                return -errno;
        if (asprintf(ret_dir, "%s%s", root, path) < 0)
                return -ENOMEM;
        *ret_root = TAKE_PTR(root);
        *target = (struct target){
                .root_id = st.st_ino, /* the id of a cgroup is its inode number, kernel 5.5 */
                .depth = components(path),
                .path_size = (uint32_t) strlen(path) + 1,
        };
        memcpy(target->path, path, target->path_size);
        return 0;
}

static int arm(struct session *s, struct collect *collect) {
        struct capture_options options = {
                .frequency_hz = (uint32_t) s->options.frequency_hz,
                .worker_uid = s->world->worker_uid,
                .worker_gid = s->world->worker_gid,
                .tables = s->world->tables,
                .milestone = on_witnessed,
                .userdata = s,
        };
        int r;

        r = find_target(s->systemd_unit, systemd_version(s->world->systemd), &options.target, &s->cgroup_dir,
                        &s->cgroup_root);
        if (r < 0)
                return r;
        options.cgroup_dir = s->cgroup_dir;
        cgroup_stat_read(s->cgroup_dir, s->cgroup_root, &s->cgroup_before);
        s->cgroup_now = s->cgroup_before;
        return capture_new(collect, &options, &s->capture);
}

static enum start_type start_type_of(const char *type) {
        if (!type || streq(type, "simple") || streq(type, "idle"))
                return START_SIMPLE;
        return streq(type, "oneshot") ? START_ONESHOT : START_NOTIFYING;
}

static bool has_text(const struct systemd_unit *unit, const char *name) {
        const char *text = systemd_unit_property(unit, name);

        return text && *text && !streq(text, "no");
}

static int new_start(struct session *s) {
        const struct start_options options = {
                .type = start_type_of(systemd_unit_property(s->systemd_unit, "Type")),
                .remain_after_exit = has_text(s->systemd_unit, "RemainAfterExit"),
                .has_start_post = has_text(s->systemd_unit, "ExecStartPost"),
                .until = s->options.until,
                .until_ns = s->options.until_ns,
        };

        s->start = start_new(&options, systemd_unit_values(s->systemd_unit));
        return s->start ? 0 : -ENOMEM;
}

static int follow(struct session *s, struct collect *collect) {
        int r;

        r = new_start(s);
        if (r < 0)
                return r;
        r = arm(s, collect);
        if (r < 0)
                return r;
        s->armed_ns = clock_ns(CLOCK_MONOTONIC);
        s->realtime_offset_usec = (clock_ns(CLOCK_REALTIME) - s->armed_ns) / NSEC_PER_USEC;
        r = sd_event_add_time_relative(s->world->event, &s->tick, CLOCK_MONOTONIC, TICK_MSEC * USEC_PER_MSEC,
                                       USEC_PER_MSEC, on_tick, s);
        if (r < 0)
                return r;
        r = sd_event_source_set_enabled(s->tick, SD_EVENT_ON);
        if (r < 0)
                return r;
        s->phase = PHASE_FOLLOWING;
        if (systemd_unit_job(s->systemd_unit) > 0)
                start_job_new(s->start, systemd_unit_job(s->systemd_unit), s->armed_ns);
        return 0;
}

static int take_id(struct session *s) {
        char *id = strdup(systemd_unit_id(s->systemd_unit));

        if (!id)
                return -ENOMEM;
        free(s->unit);
        s->unit = id;
        return 0;
}

static void on_resolved(void *userdata, int error, const char *message) {
        struct session *s = userdata;
        const char *reason = NULL, *load_state;
        struct collect *collect;
        int r;

        if (error < 0) {
                fail(s, PROFILER_ERROR_FAILED,
                     json_pack("{s:o}", "reason", varlink_string(message ?: "systemd does not answer")));
                return;
        }
        load_state = systemd_unit_property(s->systemd_unit, "LoadState");
        if (load_state && streq(load_state, "not-found")) {
                fail(s, PROFILER_ERROR_NO_SUCH_UNIT, json_pack("{s:o}", "unit", varlink_string(s->unit)));
                return;
        }
        r = take_id(s);
        if (r < 0) {
                fail_errno(s, "cannot follow the unit", r);
                return;
        }
        if (s->world->is_armed(s->world->userdata, s->unit, s)) {
                fail(s, PROFILER_ERROR_ALREADY_ARMED, json_pack("{s:o}", "unit", varlink_string(s->unit)));
                return;
        }
        r = s->world->collect(s->world->userdata, (uint32_t) s->options.frequency_hz, &collect, &reason);
        if (r < 0) {
                fail(s, PROFILER_ERROR_CANNOT_PROFILE, json_pack("{s:s}", "reason", reason ?: strerror(-r)));
                return;
        }
        r = follow(s, collect);
        if (r < 0) {
                fail_errno(s, "cannot arm the unit", r);
                return;
        }
        tell(s, "armed");
        advance(s);
}

/* ---- life ---- */

static const struct systemd_events systemd_events = {
        .resolved = on_resolved,
        .changed = on_changed,
        .job_new = on_job_new,
        .job_removed = on_job_removed,
        .removed = on_removed,
        .lost = on_lost,
};

struct session *session_free(struct session *s) {
        if (!s)
                return NULL;
        if (s->phase == PHASE_FINISHING)
                pthread_join(s->thread, NULL);
        disarm(s);
        sd_event_source_disable_unref(s->wake);
        fd_close(s->wake_fd);
        pthread_mutex_destroy(&s->lock);
        fd_close(s->finished.unsaved_fd);
        free(s->cgroup_dir);
        free(s->cgroup_root);
        free(s->finished.recording);
        free(s->finished.cause);
        free(s->finished.message);
        free(s->unit);
        free(s);
        return NULL;
}

int session_new(const struct session_world *world, uint32_t id, const char *unit,
                const struct session_options *options, const struct session_events *events, void *userdata,
                struct session **ret) {
        _cleanup_(session_freep) struct session *s = NULL;
        int r;

        s = calloc(1, sizeof(*s));
        if (!s)
                return -ENOMEM;
        *s = (struct session){
                .world = world,
                .events = events,
                .userdata = userdata,
                .id = id,
                .options = *options,
                .finished.unsaved_fd = -EBADF,
                .lock = PTHREAD_MUTEX_INITIALIZER,
        };
        s->unit = strdup(unit);
        s->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (!s->unit || s->wake_fd < 0)
                return -ENOMEM;
        r = sd_event_add_io(world->event, &s->wake, s->wake_fd, EPOLLIN, on_wake, s);
        if (r < 0)
                return r;
        r = systemd_follow(world->systemd, unit, &systemd_events, s, &s->systemd_unit);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(s);
        return 0;
}

bool session_is_finishing(const struct session *s) {
        return s->phase == PHASE_FINISHING;
}

void session_hand_over(struct session *s, const struct session_events *events, void *userdata) {
        s->events = events;
        s->userdata = userdata;
}

int session_take_unsaved(struct session *s) {
        return TAKE_FD(s->finished.unsaved_fd);
}

void session_mark(struct session *s, uint64_t queued_ns) {
        if (s->phase != PHASE_FOLLOWING)
                return;
        start_mark(s->start, queued_ns);
        advance(s);
}

void session_stop(struct session *s) {
        if (s->phase == PHASE_RESOLVING) {
                fail(s, PROFILER_ERROR_FAILED,
                     json_pack("{s:s}", "reason", "stopped before the unit was armed"));
                return;
        }
        if (s->phase != PHASE_FOLLOWING)
                return;
        hear_witnesses(s);
        if (start_outcome(s->start)->phase == START_ARMED) {
                /* Nothing was queued: there is no start that a recording could tell about. */
                s->phase = PHASE_DONE;
                disarm(s);
                s->events->done(s->userdata, NULL, NULL, NULL);
                return;
        }
        start_interrupt(s->start, clock_ns(CLOCK_MONOTONIC));
        advance(s);
}
