/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/server.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/log.h"
#include "common/unit_name.h"
#include "daemon/collect.h"
#include "daemon/peer.h"
#include "daemon/session.h"
#include "daemon/store.h"
#include "daemon/table_store.h"
#include "daemon/systemd.h"
#include "proto/recording.h"
#include "proto/varlink.h"

enum {
        CLIENTS_MAX = 64,
        CLIENTS_PER_UID_MAX = 32, /* so that one user does not shut out the rest */
        SESSIONS_PER_UID_MAX = 8,
        FREQUENCY_DEFAULT = 99, /* not in step with what happens 100 times a second */
};

struct client {
        struct server *server; /* borrowed */
        struct client *next;
        int fd; /* owned */
        struct peer peer;
        sd_event_source *source; /* owned */
        struct varlink_input input;
        struct varlink_output *output; /* owned */
        struct session *session; /* owned: of the Profile call that is being answered */
        char *unsaved; /* owned: id of this client's last recording when the store could not take it */
        int unsaved_fd; /* owned: its bytes */
        bool more, oneway; /* of the call that is being answered */
        bool dead; /* to be freed when the stack is unwound */
};

/* A session whose client went away while the recording was written: it is finished all the same. */
struct orphan {
        struct server *server; /* borrowed */
        struct session *session; /* owned; NULL: a free place */
};

struct server {
        struct server_options options;
        sd_event *event; /* reference */
        sd_event_source *listen, *idle, *reap; /* owned */
        struct systemd *systemd; /* owned */
        struct store *store; /* owned */
        struct table_store *tables; /* owned, or NULL */
        struct collect *collect; /* owned; NULL until it is needed */
        struct session_world world;
        struct client *clients; /* owned */
        struct orphan orphans[SESSION_MAX]; /* they count as sessions, so there is always a place */
        uint32_t last_session;
};

/* ---- answering ---- */

/* A client that does not read is dropped: nobody waits for it. */
static void doom(struct client *c) {
        c->dead = true;
        (void) sd_event_source_set_enabled(c->server->reap, SD_EVENT_ONESHOT);
}

static void flush(struct client *c) {
        int r = varlink_output_flush(c->output, c->fd);

        if (r < 0)
                doom(c);
        else
                (void) sd_event_source_set_io_events(c->source, EPOLLIN | (r == 0 ? EPOLLOUT : 0));
}

/* Takes the descriptor; parameters are borrowed. */
static void answer(struct client *c, const struct varlink_reply *reply, int fd) {
        _cleanup_close_ int owned = fd;
        size_t bytes;
        char *data;

        if (c->dead || c->oneway)
                return;
        if (varlink_reply_encode(reply, &data, &bytes) < 0 ||
            varlink_output_add(c->output, data, bytes, TAKE_FD(owned)) < 0) {
                doom(c);
                return;
        }
        flush(c);
}

/* Takes the reference to parameters; NULL (no memory) drops the client. */
static void answer_with(struct client *c, json_t *parameters) {
        if (parameters)
                answer(c, &(struct varlink_reply){ .parameters = parameters }, -EBADF);
        else
                doom(c);
        json_decref(parameters);
}

static void answer_error(struct client *c, const char *error, json_t *parameters) {
        answer(c, &(struct varlink_reply){ .error = error, .parameters = parameters }, -EBADF);
        json_decref(parameters);
}

static void answer_failed(struct client *c, const char *what, int error) {
        char text[256];

        snprintf(text, sizeof(text), "%s: %s", what, strerror(-error));
        answer_error(c, PROFILER_ERROR_FAILED, json_pack("{s:s}", "reason", text));
}

static void answer_invalid(struct client *c, const char *parameter) {
        answer_error(c, VARLINK_ERROR_INVALID_PARAMETER, json_pack("{s:s}", "parameter", parameter));
}

/* ---- the programs ---- */

static int need_collect(void *userdata, uint32_t frequency_hz, struct collect **ret,
                        const char **ret_reason) {
        struct server *s = userdata;
        int r;

        if (s->collect && !collect_suits(s->collect, frequency_hz))
                s->collect = collect_free(s->collect);
        if (!s->collect) {
                r = collect_new(frequency_hz, &s->collect, ret_reason);
                if (r < 0)
                        return r;
        }
        *ret = s->collect;
        return 0;
}

/* ---- Profile ---- */

static bool is_armed(void *userdata, const char *unit, const struct session *except) {
        const struct server *s = userdata;

        for (const struct client *c = s->clients; c; c = c->next)
                if (c->session && c->session != except && streq(session_unit(c->session), unit))
                        return true;
        return false;
}

static void on_progress(void *userdata, json_t *progress) {
        struct client *c = userdata;
        struct varlink_reply reply = { .continues = true };

        /* The first one may come from inside session_new(). */
        reply.parameters =
                json_pack("{s:I, s:O}", "session",
                          (json_int_t) (c->session ? session_id(c->session) : c->server->last_session),
                          "progress", progress);
        if (reply.parameters)
                answer(c, &reply, -EBADF);
        json_decref(reply.parameters);
}

static void take_calls(struct client *c);

static void keep_unsaved(struct client *c, const char *recording) {
        fd_close(c->unsaved_fd);
        free(c->unsaved);
        c->unsaved_fd = session_take_unsaved(c->session);
        c->unsaved = c->unsaved_fd >= 0 ? strdup(recording) : NULL;
}

static void on_done(void *userdata, const char *recording, const char *error, json_t *parameters) {
        struct client *c = userdata;
        json_int_t id = session_id(c->session);

        keep_unsaved(c, recording);
        if (error)
                answer_error(c, error, json_incref(parameters));
        else
                answer_with(c,
                            json_pack("{s:I, s:{s:s, s:i, s:i, s:i, s:i, s:i}, s:s?}", "session", id,
                                      "progress", "state", "done", "elapsed_usec", 0, "samples", 0, "calls",
                                      0, "inotify_watches", 0, "processes", 0, "recording", recording));
        c->session = session_free(c->session);
        take_calls(c);
}

static const struct session_events session_events = { .progress = on_progress, .done = on_done };

/* The parameter that is wrong, or NULL. */
static const char *parse_options(json_t *options, struct session_options *ret, bool *ret_wait) {
        struct session_options o = { .frequency_hz = FREQUENCY_DEFAULT };
        const char *until = "active";
        uint64_t until_usec = 0;
        int r;

        if (varlink_get_u64(options, "frequency", &o.frequency_hz) < 0 ||
            o.frequency_hz < PROFILER_FREQUENCY_MIN || o.frequency_hz > PROFILER_FREQUENCY_MAX)
                return "frequency";
        if (varlink_get_string(options, "until", &until) < 0)
                return "until";
        if (streq(until, "active"))
                o.until = START_UNTIL_ACTIVE;
        else if (streq(until, "listen"))
                o.until = START_UNTIL_LISTEN;
        else if (streq(until, "exit"))
                o.until = START_UNTIL_EXIT;
        else
                return "until";
        r = varlink_get_u64(options, "until_usec", &until_usec);
        if (r < 0 || until_usec > UINT64_MAX / NSEC_PER_USEC)
                return "until_usec";
        if (r > 0) {
                o.until = START_UNTIL_TIME;
                o.until_ns = until_usec * NSEC_PER_USEC;
        }
        if (varlink_get_bool(options, "wait", ret_wait) < 0)
                return "wait";
        *ret = o;
        return NULL;
}

static unsigned count_sessions(const struct server *s, const struct peer *of /* NULL: everybody's */) {
        unsigned n = 0;

        for (const struct client *c = s->clients; c; c = c->next)
                n += c->session && (!of || c->peer.uid == of->uid);
        for (size_t i = 0; !of && i < ARRAY_SIZE(s->orphans); i++)
                n += !!s->orphans[i].session;
        return n;
}

static bool answer_too_many(struct client *c) {
        unsigned limit = 0;

        if (count_sessions(c->server, NULL) >= SESSION_MAX)
                limit = SESSION_MAX;
        else if (c->peer.uid != 0 && count_sessions(c->server, &c->peer) >= SESSIONS_PER_UID_MAX)
                limit = SESSIONS_PER_UID_MAX;
        if (limit > 0)
                answer_error(c, PROFILER_ERROR_TOO_MANY,
                             json_pack("{s:s, s:i}", "what", "captures at a time", "limit", (int) limit));
        return limit > 0;
}

/* PID 1 closes its connections when it executes itself anew (daemon-reexec, its own upgrade). The sessions of
 * that time have ended or follow nothing any more. */
static int need_systemd(struct server *s) {
        struct systemd *anew;
        int r;

        if (systemd_is_connected(s->systemd))
                return 0;
        r = systemd_new(s->event, &anew);
        if (r < 0)
                return r;
        systemd_free(s->systemd);
        s->systemd = s->world.systemd = anew;
        return 0;
}

static void method_profile(struct client *c, json_t *parameters) {
        struct session_options options;
        json_t *given = NULL;
        const char *unit = NULL, *wrong;
        bool wait = false;
        int r;

        if (!c->more) {
                answer_error(c, VARLINK_ERROR_EXPECTED_MORE, NULL);
                return;
        }
        if (varlink_get_string(parameters, "unit", &unit) <= 0 || !unit_name_is_valid(unit) ||
            unit_name_is_template(unit) || !unit_name_is_service(unit)) {
                answer_invalid(c, "unit");
                return;
        }
        if (varlink_get_object(parameters, "options", &given) < 0) {
                answer_invalid(c, "options");
                return;
        }
        wrong = parse_options(given, &options, &wait);
        if (wrong) {
                answer_invalid(c, wrong);
                return;
        }
        if (answer_too_many(c))
                return;
        r = need_systemd(c->server);
        if (r < 0) {
                answer_failed(c, "cannot talk to systemd", r);
                return;
        }
        r = session_new(&c->server->world, ++c->server->last_session, unit, &options, &session_events, c,
                        &c->session);
        if (r < 0)
                answer_failed(c, "cannot follow the unit", r);
}

/* ---- the other methods ---- */

/* The session that a call names, when it is the caller's or the caller is root. */
static struct session *named_session(struct client *c, json_t *parameters) {
        uint64_t id = 0;

        if (varlink_get_u64(parameters, "session", &id) <= 0) {
                answer_invalid(c, "session");
                return NULL;
        }
        for (struct client *o = c->server->clients; o; o = o->next)
                if (o->session && session_id(o->session) == id &&
                    (c->peer.uid == 0 || c->peer.uid == o->peer.uid))
                        return o->session;
        answer_error(c, PROFILER_ERROR_NO_SUCH_SESSION, json_pack("{s:I}", "session", (json_int_t) id));
        return NULL;
}

static void method_mark(struct client *c, json_t *parameters) {
        struct session *session = named_session(c, parameters);
        uint64_t usec = 0;

        if (!session)
                return;
        if (varlink_get_u64(parameters, "queued_usec", &usec) <= 0 || usec > UINT64_MAX / NSEC_PER_USEC) {
                answer_invalid(c, "queued_usec");
                return;
        }
        session_mark(session, usec * NSEC_PER_USEC);
        answer_with(c, json_object());
}

static void method_stop(struct client *c, json_t *parameters) {
        struct session *session = named_session(c, parameters);

        if (!session)
                return;
        session_stop(session);
        answer_with(c, json_object());
}

/* The stored file as it is: its sections are compressed, and clients read that. */
static int sealed_copy(int fd, size_t *ret_bytes) {
        _cleanup_free_ char *data = NULL;
        size_t bytes;
        int r;

        r = fd_read_file(fd, RECORDING_SIZE_MAX, &data, &bytes);
        if (r < 0)
                return r;
        *ret_bytes = bytes;
        return fd_new_sealed("startprof-recording", data, bytes);
}

static void method_fetch(struct client *c, json_t *parameters) {
        _cleanup_close_ int file = -EBADF, sealed = -EBADF;
        const char *id = NULL;
        json_t *reply;
        size_t bytes;

        if (varlink_get_string(parameters, "recording", &id) <= 0) {
                answer_invalid(c, "recording");
                return;
        }
        if (c->unsaved && streq(c->unsaved, id))
                file = fcntl(c->unsaved_fd, F_DUPFD_CLOEXEC, 3);
        else
                file = store_fd(c->server->store, id);
        if (file == -ENOENT || file == -EINVAL) {
                answer_error(c, PROFILER_ERROR_NO_SUCH_RECORDING,
                             json_pack("{s:o}", "recording", varlink_string(id)));
                return;
        }
        sealed = file < 0 ? file : sealed_copy(file, &bytes);
        if (sealed < 0) {
                answer_failed(c, "cannot read the recording", sealed);
                return;
        }
        reply = json_pack("{s:I}", "size", (json_int_t) bytes);
        answer(c, &(struct varlink_reply){ .parameters = reply }, TAKE_FD(sealed));
        json_decref(reply);
}

static void method_list(struct client *c, json_t *parameters) {
        const char *unit = NULL;
        json_t *recordings;
        int r;

        if (varlink_get_string(parameters, "unit", &unit) < 0) {
                answer_invalid(c, "unit");
                return;
        }
        r = store_list(c->server->store, unit, &recordings);
        if (r < 0)
                answer_failed(c, "cannot list the recordings", r);
        else
                answer_with(c, json_pack("{s:o}", "recordings", recordings));
}

static json_t *feature_list(struct server *s) {
        const struct collect_feature *features;
        const char *reason = NULL;
        struct collect *collect;
        json_t *list;
        unsigned n;
        int r;

        r = need_collect(s, FREQUENCY_DEFAULT, &collect, &reason);
        if (r < 0)
                return json_pack("[{s:s, s:b, s:s}]", "name", "profiling", "available", 0, "reason",
                                 reason ?: strerror(-r));
        list = json_pack("[{s:s, s:b}]", "name", "profiling", "available", 1);
        n = collect_features(collect, &features);
        for (unsigned i = 0; list && i < n; i++)
                json_array_append_new(list, json_pack("{s:s, s:b, s:s*}", "name", features[i].name,
                                                      "available", (int) features[i].available, "reason",
                                                      features[i].available ? NULL : features[i].reason));
        return list;
}

static void method_status(struct client *c, json_t *parameters) {
        answer_with(c,
                    json_pack("{s:s, s:i, s:o}", "version", STARTPROF_VERSION, "sessions",
                              (int) count_sessions(c->server, NULL), "features", feature_list(c->server)));
}

static void method_info(struct client *c, json_t *parameters) {
        answer_with(c, json_pack("{s:s, s:s, s:s, s:s, s:[s, s]}", "vendor", "startprof", "product",
                                 "startprofd", "version", STARTPROF_VERSION, "url", "", "interfaces",
                                 VARLINK_SERVICE, PROFILER_INTERFACE));
}

static void method_description(struct client *c, json_t *parameters) {
        const char *name = NULL, *text = NULL;

        if (varlink_get_string(parameters, "interface", &name) <= 0) {
                answer_invalid(c, "interface");
                return;
        }
        if (streq(name, PROFILER_INTERFACE))
                text = varlink_profiler_description;
        else if (streq(name, VARLINK_SERVICE))
                text = varlink_service_description;
        if (text)
                answer_with(c, json_pack("{s:s}", "description", text));
        else
                answer_error(c, VARLINK_ERROR_INTERFACE_NOT_FOUND,
                             json_pack("{s:o}", "interface", varlink_string(name)));
}

/* ---- calls ---- */

static const struct {
        const char *name;
        void (*call)(struct client *c, json_t *parameters);
        bool anybody; /* also strangers */
} methods[] = {
        { PROFILER_INTERFACE ".Profile", method_profile, false },
        { PROFILER_INTERFACE ".Mark", method_mark, false },
        { PROFILER_INTERFACE ".Stop", method_stop, false },
        { PROFILER_INTERFACE ".Fetch", method_fetch, false },
        { PROFILER_INTERFACE ".List", method_list, false },
        { PROFILER_INTERFACE ".Status", method_status, false },
        { VARLINK_SERVICE ".GetInfo", method_info, true },
        { VARLINK_SERVICE ".GetInterfaceDescription", method_description, true },
};

static void answer_unknown(struct client *c, const char *method) {
        const char *dot = strrchr(method, '.');
        size_t length = dot ? (size_t) (dot - method) : 0;
        bool ours = length == strlen(PROFILER_INTERFACE) && strncmp(method, PROFILER_INTERFACE, length) == 0;
        bool service = length == strlen(VARLINK_SERVICE) && strncmp(method, VARLINK_SERVICE, length) == 0;
        char interface[256];

        if (ours || service) {
                answer_error(c, VARLINK_ERROR_METHOD_NOT_FOUND,
                             json_pack("{s:o}", "method", varlink_string(method)));
                return;
        }
        snprintf(interface, sizeof(interface), "%.*s", (int) MIN(length, sizeof(interface) - 1), method);
        answer_error(c, VARLINK_ERROR_INTERFACE_NOT_FOUND,
                     json_pack("{s:o}", "interface", varlink_string(interface)));
}

static void dispatch(struct client *c, const struct varlink_call *call) {
        c->more = call->more;
        c->oneway = call->oneway;
        for (size_t i = 0; i < ARRAY_SIZE(methods); i++) {
                if (!streq(methods[i].name, call->method))
                        continue;
                if (methods[i].anybody || c->peer.may_profile)
                        methods[i].call(c, call->parameters);
                else
                        answer_error(c, VARLINK_ERROR_PERMISSION_DENIED, NULL);
                return;
        }
        answer_unknown(c, call->method);
}

/* Answers what has arrived, in order; while a Profile call runs, the rest waits. */
static void take_calls(struct client *c) {
        while (!c->dead && !c->session) {
                struct varlink_call call;
                json_t *message;
                int r;

                r = varlink_input_next(&c->input, &message);
                if (r == 0)
                        return;
                if (r < 0) {
                        doom(c);
                        return;
                }
                if (varlink_call_decode(message, &call) < 0)
                        doom(c);
                else
                        dispatch(c, &call);
                json_decref(message);
        }
}

static int on_client(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        struct client *c = userdata;
        char data[VARLINK_READ_BYTES / 16];
        ssize_t n;

        if (events & EPOLLOUT)
                flush(c);
        if (!(events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
                return 0;
        n = recv(fd, data, sizeof(data), MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return 0;
        /* A caller that goes away ends its capture. More calls while one runs: at most one message's worth. */
        if (n <= 0 || (c->session && c->input.data.size > VARLINK_CALL_MAX) ||
            varlink_input_feed(&c->input, data, (size_t) n) < 0) {
                doom(c);
                return 0;
        }
        take_calls(c);
        return 0;
}

/* ---- clients ---- */

static void set_idle(struct server *s);

static void on_orphan_done(void *userdata, const char *recording, const char *error, json_t *parameters) {
        struct orphan *o = userdata;

        o->session = session_free(o->session);
        set_idle(o->server);
}

static const struct session_events orphan_events = { .done = on_orphan_done };

/* Waiting here for a session that is being finished would keep all other clients waiting, too. */
static void abandon(struct server *s, struct session *session) {
        for (size_t i = 0; session && session_is_finishing(session) && i < ARRAY_SIZE(s->orphans); i++)
                if (!s->orphans[i].session) {
                        s->orphans[i] = (struct orphan){ .server = s, .session = session };
                        session_hand_over(session, &orphan_events, &s->orphans[i]);
                        return;
                }
        session_free(session);
}

static struct client *client_free(struct client *c) {
        if (!c)
                return NULL;
        abandon(c->server, c->session);
        sd_event_source_disable_unref(c->source);
        fd_close(c->fd);
        varlink_input_done(&c->input);
        varlink_output_free(c->output);
        fd_close(c->unsaved_fd);
        free(c->unsaved);
        free(c);
        return NULL;
}
DEFINE_CLEANUP(struct client *, client_free);

static void set_idle(struct server *s) {
        if (!s->idle)
                return;
        if (s->clients || count_sessions(s, NULL) > 0) {
                (void) sd_event_source_set_enabled(s->idle, SD_EVENT_OFF);
                return;
        }
        (void) sd_event_source_set_time_relative(s->idle, s->options.idle_usec);
        (void) sd_event_source_set_enabled(s->idle, SD_EVENT_ONESHOT);
}

/* Frees the clients that are dead, when no function of theirs is on the stack. */
static int on_reap(sd_event_source *source, void *userdata) {
        struct server *s = userdata;

        for (struct client **p = &s->clients; *p;) {
                struct client *c = *p;

                if (!c->dead) {
                        p = &c->next;
                        continue;
                }
                *p = c->next;
                client_free(c);
        }
        set_idle(s);
        return 0;
}

static bool is_full(const struct server *s, const struct peer *peer) {
        unsigned all = 0, same = 0;

        for (const struct client *c = s->clients; c; c = c->next) {
                all++;
                same += c->peer.uid == peer->uid;
        }
        return all >= CLIENTS_MAX || (peer->uid != 0 && same >= CLIENTS_PER_UID_MAX);
}

static int client_new(struct server *s, int fd, struct client **ret) {
        _cleanup_(client_freep) struct client *c = NULL;
        int r;

        c = calloc(1, sizeof(*c));
        if (!c) {
                fd_close(fd);
                return -ENOMEM;
        }
        c->server = s;
        c->fd = fd;
        c->unsaved_fd = -EBADF;
        c->input = VARLINK_INPUT(VARLINK_CALL_MAX);
        c->output = varlink_output_new(VARLINK_REPLY_MAX);
        if (!c->output)
                return -ENOMEM;
        r = peer_of(fd, &c->peer);
        if (r < 0)
                return r;
        if (is_full(s, &c->peer))
                return -EUSERS;
        r = sd_event_add_io(s->event, &c->source, fd, EPOLLIN, on_client, c);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(c);
        return 0;
}

static int on_listen(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        struct server *s = userdata;
        struct client *c;
        int r, client;

        client = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (client < 0) {
                if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
                        (void) log_error_errno(-errno, "cannot accept a client");
                return 0;
        }
        r = client_new(s, client, &c);
        if (r < 0) {
                (void) log_error_errno(r, "cannot serve a client");
                return 0;
        }
        c->next = s->clients;
        s->clients = c;
        set_idle(s);
        return 0;
}

static int on_idle(sd_event_source *source, uint64_t usec, void *userdata) {
        struct server *s = userdata;

        return s->clients || count_sessions(s, NULL) > 0 ? 0 : sd_event_exit(s->event, 0);
}

/* ---- life ---- */

struct server *server_free(struct server *s) {
        if (!s)
                return NULL;
        while (s->clients) {
                struct client *c = s->clients;

                s->clients = c->next;
                client_free(c);
        }
        for (size_t i = 0; i < ARRAY_SIZE(s->orphans); i++)
                session_free(s->orphans[i].session);
        sd_event_source_disable_unref(s->listen);
        sd_event_source_disable_unref(s->idle);
        sd_event_source_disable_unref(s->reap);
        collect_free(s->collect);
        systemd_free(s->systemd);
        store_close(s->store);
        table_store_close(s->tables);
        fd_close(s->options.listen_fd);
        sd_event_unref(s->event);
        free(s);
        return NULL;
}

static int add_sources(struct server *s) {
        int r;

        r = sd_event_add_io(s->event, &s->listen, s->options.listen_fd, EPOLLIN, on_listen, s);
        if (r < 0)
                return r;
        r = sd_event_add_defer(s->event, &s->reap, on_reap, s);
        if (r < 0)
                return r;
        r = sd_event_source_set_enabled(s->reap, SD_EVENT_OFF);
        if (r < 0 || s->options.idle_usec == 0)
                return r;
        return sd_event_add_time_relative(s->event, &s->idle, CLOCK_MONOTONIC, s->options.idle_usec,
                                          USEC_PER_SEC, on_idle, s);
}

/* Without them each capture makes its own. */
static void open_tables(struct server *s) {
        _cleanup_free_ char *directory = NULL;

        if (asprintf(&directory, "%s/tables", s->options.state_directory) < 0 ||
            table_store_open(directory, &s->tables) < 0)
                log_warning("Tables for the unwinder cannot be kept below %s.", s->options.state_directory);
}

int server_new(sd_event *event, const struct server_options *options, struct server **ret) {
        _cleanup_(server_freep) struct server *s = NULL;
        int r;

        s = calloc(1, sizeof(*s));
        if (!s)
                return log_error_errno(-ENOMEM, "cannot start");
        s->options = *options;
        s->event = sd_event_ref(event);
        r = store_open(options->state_directory, &s->store);
        if (r < 0)
                return log_error_errno(r, "cannot open %s", options->state_directory);
        open_tables(s);
        r = systemd_new(event, &s->systemd);
        if (r < 0)
                return log_error_errno(r, "cannot talk to systemd");
        r = add_sources(s);
        if (r < 0)
                return log_error_errno(r, "cannot watch the socket");
        s->world = (struct session_world){
                .event = event,
                .systemd = s->systemd,
                .store = s->store,
                .tables = s->tables,
                .worker_uid = options->worker_uid,
                .worker_gid = options->worker_gid,
                .collect = need_collect,
                .is_armed = is_armed,
                .userdata = s,
        };
        *ret = TAKE_PTR(s);
        return 0;
}
