/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#include "client/answer.h"
#include "client/commands.h"
#include "client/daemon.h"
#include "client/drop_in.h"
#include "client/message.h"
#include "client/output.h"
#include "client/perf_map.h"
#include "client/progress.h"
#include "client/recording_arg.h"
#include "client/terminal.h"
#include "client/unit.h"

/*
 * startprof UNIT.
 *
 *   connect ─▶ Profile ─▶ "armed" ─▶ Mark, StartUnit ─▶ progress … ─▶ recording ─▶ Fetch, report
 *                                            │
 *                          Ctrl-C, --timeout └─▶ Stop: the capture ends, not systemd's job
 *
 * When the start is over is the daemon's judgement alone: it sees systemd's signals, too, and more. The job
 * is followed here only for starts that never begin.
 */

/* After the job is gone without a start, the daemon should be ready at once. */
enum { GRACE_USEC = 5 * 1000 * 1000 };

struct run {
        const struct options *options; /* borrowed */
        struct unit unit;
        bool restart;
        sd_event *event;
        sd_bus *bus;
        struct varlink_client *profile; /* busy with Profile until its end, then Fetch */
        struct varlink_client *control; /* Mark, Stop */
        struct progress *progress;
        struct drop_in *drop_in; /* of --perf-map */
        uint64_t session;
        bool armed, begun, stopped; /* begun: the daemon has seen the start or its job */
        char *job; /* path of systemd's job; NULL: not queued by us (yet) */
        char *recording; /* id; NULL: none (yet) */
};

static void run_done(struct run *run) {
        (void) drop_in_remove(run->drop_in);
        progress_free(run->progress);
        varlink_client_free(run->profile);
        varlink_client_free(run->control);
        if (run->bus)
                sd_bus_detach_event(run->bus);
        sd_bus_flush_close_unref(run->bus);
        sd_event_unref(run->event);
        unit_done(&run->unit);
        free(run->job);
        free(run->recording);
}

/* Ends the event loop with this exit status. Returns 0, as its handlers do: errors are never left to sd-event. */
static int leave(struct run *run, int status) {
        sd_event_exit(run->event, status);
        return 0;
}

/* ---- ending early ---- */

/* The capture ends, and the Profile call gets what was seen. The reply to Stop itself says nothing and is not
 * waited for: a second Ctrl-C must be heard meanwhile. */
static int stop(struct run *run) {
        int r;

        if (run->stopped)
                return 0;
        run->stopped = true;
        r = daemon_send(run->control, "Stop", json_pack("{s:I}", "session", (json_int_t) run->session),
                        false);
        return r != 0 ? leave(run, r) : 0;
}

static int on_signal(sd_event_source *source, const struct signalfd_siginfo *info, void *userdata) {
        struct run *run = userdata;

        progress_clear(run->progress);
        if (!run->armed)
                return leave(run, message_fail(EXIT_INTERRUPTED, "interrupted before %s was started",
                                               run->unit.id));
        if (run->stopped && info->ssi_signo == SIGINT)
                return leave(run, message_fail(EXIT_GIVEN_UP,
                                               "given up: the recording may still get into the store"));
        if (run->begun)
                message_note("ending the capture of %s; its start goes on", run->unit.id);
        else
                message_note("no longer waiting for the start of %s", run->unit.id);
        return stop(run);
}

static int on_timeout(sd_event_source *source, uint64_t usec, void *userdata) {
        struct run *run = userdata;

        progress_clear(run->progress);
        message_note("--timeout is over: ending the capture of %s", run->unit.id);
        return stop(run);
}

static int on_grace_over(sd_event_source *source, uint64_t usec, void *userdata) {
        return stop(userdata);
}

/* One-shot; the event loop keeps it. */
static int add_timer(struct run *run, uint64_t usec, sd_event_time_handler_t handler) {
        int r;

        r = sd_event_add_time_relative(run->event, NULL, CLOCK_MONOTONIC, usec, 0, handler, run);
        return r < 0 ? leave(run, message_fail(EXIT_CANNOT_PROFILE, "cannot set a timer: %s", strerror(-r)))
                     : 0;
}

/* ---- starting the unit ---- */

static int on_job_queued(sd_bus_message *answer, void *userdata, sd_bus_error *unused) {
        const sd_bus_error *error = sd_bus_message_get_error(answer);
        _cleanup_free_ char *message = NULL;
        struct run *run = userdata;
        const char *path;
        int r;

        if (error) {
                progress_clear(run->progress);
                r = unit_start_refusal(&run->unit, error, &message);
                return leave(run, message_fail_made(r, message));
        }
        if (sd_bus_message_read(answer, "o", &path) < 0)
                return leave(run, message_fail(EXIT_CANNOT_PROFILE, "systemd's answer makes no sense"));
        run->job = strdup(path);
        return run->job ? 0 : leave(run, message_no_memory());
}

/* Did the job end before there was a start? A failed start takes its time to clean up: left to the daemon. */
static bool never_began(const char *result) {
        return !streq(result, "done") && !streq(result, "failed") && !streq(result, "timeout");
}

static int on_job_removed(sd_bus_message *signal, void *userdata, sd_bus_error *unused) {
        struct run *run = userdata;
        const char *path, *result;

        if (sd_bus_message_read(signal, "uoss", NULL, &path, NULL, &result) < 0)
                return 0;
        if (!run->job || !streq(run->job, path) || !never_began(result))
                return 0;
        return add_timer(run, GRACE_USEC, on_grace_over);
}

/* Tells the daemon when the start was asked for. Where a password may be asked for first, the moment that
 * systemd queues the job counts instead, which the daemon sees itself. */
static int mark(struct run *run) {
        _cleanup_(varlink_answer_done) struct varlink_answer answer = VARLINK_ANSWER_NULL;
        json_int_t now;

        if (geteuid() != 0)
                return 0;
        now = (json_int_t) (daemon_now() / NSEC_PER_USEC);
        return daemon_call(run->control, "Mark",
                           json_pack("{s:I, s:I}", "session", (json_int_t) run->session, "queued_usec", now),
                           &answer);
}

static int start(struct run *run) {
        int r;

        r = mark(run);
        if (r != 0)
                return leave(run, r);
        r = unit_start(run->bus, &run->unit, run->restart, on_job_queued, run);
        return r < 0 ? leave(run,
                             message_fail(EXIT_CANNOT_PROFILE, "cannot talk to systemd: %s", strerror(-r)))
                     : 0;
}

/* ---- the daemon's replies ---- */

static int armed(struct run *run, json_t *parameters) {
        if (varlink_get_u64(parameters, "session", &run->session) <= 0)
                return leave(run, daemon_gone(-EBADMSG));
        run->armed = true;
        if (run->options->timeout_usec != UINT64_MAX)
                add_timer(run, run->options->timeout_usec, on_timeout);
        return run->options->wait ? 0 : start(run);
}

static int finished(struct run *run, json_t *parameters) {
        const char *id = NULL;

        (void) varlink_get_string(parameters, "recording", &id);
        if (!id || (run->stopped && !run->begun))
                return leave(run, run->stopped ? message_fail(EXIT_INTERRUPTED,
                                                              "%s did not start: there is nothing to show",
                                                              run->unit.id)
                                               : daemon_gone(-EBADMSG));
        run->recording = strdup(id);
        return leave(run, run->recording ? 0 : message_no_memory());
}

static int on_reply(struct run *run, const struct varlink_answer *answer) {
        const char *state = "armed";
        json_t *progress = NULL;

        if (answer->error) {
                progress_clear(run->progress);
                return leave(run, daemon_refused(answer));
        }
        (void) varlink_get_object(answer->parameters, "progress", &progress);
        if (!answer->continues)
                return finished(run, answer->parameters);
        progress_show(run->progress, progress);
        (void) varlink_get_string(progress, "state", &state);
        run->begun = run->begun || streq(state, "queued") || streq(state, "starting");
        return run->armed ? 0 : armed(run, answer->parameters);
}

static int on_daemon(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        struct run *run = userdata;
        int r;

        while (sd_event_get_state(run->event) != SD_EVENT_FINISHED) {
                _cleanup_(varlink_answer_done) struct varlink_answer answer = VARLINK_ANSWER_NULL;

                r = varlink_client_next(run->profile, 0, &answer);
                if (r == -ETIMEDOUT || r == -EINTR)
                        return 0;
                if (r < 0) {
                        progress_clear(run->progress);
                        return leave(run, daemon_gone(r));
                }
                on_reply(run, &answer);
                if (!answer.continues)
                        return 0;
        }
        return 0;
}

/* ---- before ---- */

static int check_outputs(const struct options *o) {
        enum report_format format;
        int r;

        if (o->output && report_format_from_file(o->output, &format) >= 0)
                return message_fail(EXIT_USAGE,
                                    "-o writes the recording, and %s would be none: use --flamegraph= for a "
                                    "picture, 'startprof export' for the rest",
                                    o->output);
        if (o->output && o->flamegraph && streq(o->output, o->flamegraph))
                return message_fail(EXIT_USAGE, "-o and --flamegraph= cannot both write %s", o->output);
        r = o->output ? output_check(o->output) : 0;
        if (r == 0 && o->flamegraph)
                r = output_check(o->flamegraph);
        return r;
}

static int load_unit(struct run *run, const char *name) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        _cleanup_free_ char *message = NULL;
        int r;

        r = unit_bus_open(&run->bus);
        if (r < 0)
                return message_fail(EXIT_CANNOT_PROFILE, "cannot talk to systemd: %s", strerror(-r));
        r = unit_load(run->bus, name, &run->unit, &error);
        if (r < 0)
                return message_fail(EXIT_CANNOT_PROFILE, "systemd does not tell about %s: %s", name,
                                    error.message ?: strerror(-r));
        r = unit_refusal(&run->unit, run->options->wait, run->options->restart, terminal_can_ask(),
                         &message);
        if (r != 0)
                return message_fail_made(r, message);
        if (run->unit.need_reload)
                message_note("the file of %s changed: 'systemctl daemon-reload' would make systemd use it",
                             run->unit.id);
        return 0;
}

/* Asks where that is needed. The daemon is not kept waiting meanwhile. */
static int decide_restart(struct run *run) {
        _cleanup_free_ char *question = NULL;

        run->restart = unit_needs_restart(&run->unit) && !run->options->wait;
        if (!run->restart || run->options->restart)
                return 0;
        question = unit_question(&run->unit);
        if (!question)
                return message_no_memory();
        if (!terminal_ask(question))
                return message_fail(EXIT_INTERRUPTED, "%s was not restarted", run->unit.id);
        return 0;
}

/* ---- the drop-in of --perf-map ---- */

/* Before the unit is loaded. What stays is the next one's: this start can be profiled all the same. */
static void sweep_drop_ins(void) {
        int r = geteuid() == 0 ? drop_in_sweep(DROP_IN_DIRECTORY, unit_reload_all) : 0;

        if (r > 0)
                message_note("removed what a startprof that was killed had left in " DROP_IN_DIRECTORY);
        else if (r < 0)
                message_note("cannot tidy " DROP_IN_DIRECTORY ": %s", strerror(-r));
}

static int add_drop_in(struct run *run) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        _cleanup_free_ char *node_options = NULL, *lines = NULL;
        int r;

        if (!run->options->perf_map)
                return 0;
        r = unit_environment(run->bus, &run->unit, "NODE_OPTIONS", &node_options, &error);
        if (r < 0)
                return message_fail(EXIT_CANNOT_PROFILE, "systemd does not tell about %s: %s", run->unit.id,
                                    error.message ?: strerror(-r));
        lines = perf_map_lines(node_options);
        if (!lines)
                return message_no_memory();
        r = drop_in_new(DROP_IN_DIRECTORY, run->unit.id, lines, unit_reload_all, &run->drop_in);
        if (r == -EBUSY)
                return message_fail(EXIT_CANNOT_PROFILE, "another startprof has changed %s for its start",
                                    run->unit.id);
        return r < 0 ? message_fail(EXIT_CANNOT_PROFILE, "cannot add a drop-in to %s: %s", run->unit.id,
                                    strerror(-r))
                     : 0;
}

/* As soon as the start is over. */
static void remove_drop_in(struct run *run) {
        if (drop_in_remove(TAKE_PTR(run->drop_in)) < 0)
                message_note("the drop-in in " DROP_IN_DIRECTORY "/%s.d may still be there", run->unit.id);
}

static int connect_daemon(struct run *run) {
        int r;

        r = daemon_connect(run->options->socket, &run->profile);
        return r != 0 ? r : daemon_connect(run->options->socket, &run->control);
}

/* ---- the capture ---- */

static json_t *profile_parameters(const struct run *run) {
        const struct options *o = run->options;
        json_t *options = json_object();

        json_object_set_new(options, "frequency", json_integer(o->frequency_hz));
        if (o->until)
                json_object_set_new(options, "until", json_string(o->until));
        if (o->until_usec > 0)
                json_object_set_new(options, "until_usec", json_integer((json_int_t) o->until_usec));
        if (o->wait)
                json_object_set_new(options, "wait", json_true());
        return json_pack("{s:o, s:o}", "unit", varlink_string(run->unit.id), "options", options);
}

static int add_sources(struct run *run) {
        int r;

        if ((r = sd_event_add_signal(run->event, NULL, SIGINT, on_signal, run)) < 0 ||
            (r = sd_event_add_signal(run->event, NULL, SIGTERM, on_signal, run)) < 0 ||
            (r = sd_event_add_io(run->event, NULL, varlink_client_fd(run->profile), EPOLLIN, on_daemon,
                                 run)) < 0 ||
            (r = sd_bus_attach_event(run->bus, run->event, SD_EVENT_PRIORITY_NORMAL)) < 0)
                return r;
        return run->options->wait ? 0 : unit_follow_jobs(run->bus, on_job_removed, run);
}

/* Signals are blocked while it runs. 0 with run->recording, or an exit status. */
static int capture(struct run *run) {
        int r;

        r = sd_event_new(&run->event);
        if (r >= 0)
                r = add_sources(run);
        if (r < 0)
                return message_fail(EXIT_CANNOT_PROFILE, "cannot follow the start: %s", strerror(-r));
        run->progress = progress_new(run->unit.id);
        if (!run->progress)
                return message_no_memory();
        r = daemon_send(run->profile, "Profile", profile_parameters(run), true);
        if (r != 0)
                return r;
        r = sd_event_loop(run->event);
        progress_clear(run->progress);
        return r < 0 ? message_fail(EXIT_CANNOT_PROFILE, "cannot follow the start: %s", strerror(-r)) : r;
}

static int capture_with_signals_blocked(struct run *run) {
        sigset_t signals, before;
        int r;

        sigemptyset(&signals);
        sigaddset(&signals, SIGINT);
        sigaddset(&signals, SIGTERM);
        sigprocmask(SIG_BLOCK, &signals, &before);
        r = add_drop_in(run);
        if (r == 0)
                r = capture(run);
        remove_drop_in(run);
        sigprocmask(SIG_SETMASK, &before, NULL);
        return r;
}

/* ---- after ---- */

static int status_of(uint32_t result) {
        switch (result) {
        case REC_RESULT_ACTIVE:
        case REC_RESULT_RUNNING:
        case REC_RESULT_EXITED: return EXIT_UP;
        case REC_RESULT_INTERRUPTED: return EXIT_INTERRUPTED;
        default: return EXIT_START_FAILED;
        }
}

/* Tries every output before the first failure counts: the start cannot be had again. */
static int show(const struct answer *answer, const struct options *o) {
        int r, status = 0;

        if (o->output)
                status = output_write(o->output, answer->data, answer->bytes);
        if (o->flamegraph) {
                r = answer_export(answer, REPORT_SVG, o, o->flamegraph);
                status = status ?: r;
        }
        r = answer_print(answer, o);
        status = status ?: r;
        return status ?: status_of(answer->recording->start->result);
}

int run_main(const struct options *options) {
        _cleanup_(answer_done) struct answer answer = ANSWER_NULL;
        _cleanup_(run_done) struct run run = { .options = options };
        _cleanup_free_ char *name = NULL, *message = NULL;
        int r;

        r = unit_name_typed(options->arguments[0], &name, &message);
        if (r != 0)
                return message_fail_made(r, message);
        if (options->perf_map && geteuid() != 0)
                return message_fail(EXIT_CANNOT_PROFILE,
                                    "--perf-map changes the unit for one start, which only root "
                                    "may do");
        sweep_drop_ins();
        if ((r = check_outputs(options)) != 0 || (r = connect_daemon(&run)) != 0 ||
            (r = load_unit(&run, name)) != 0 || (r = decide_restart(&run)) != 0 ||
            (r = capture_with_signals_blocked(&run)) != 0)
                return r;
        r = recording_arg_fetch(run.profile, run.recording, &answer);
        if (r != 0)
                return r;
        answer_improve(&answer, options);
        return show(&answer, options);
}
