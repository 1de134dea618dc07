/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/daemon.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "client/message.h"
#include "common/macro.h"

/* The first connection may start the daemon, which loads its programs; a busy machine takes its time. */
enum { PATIENCE_SECONDS = 30 };

uint64_t daemon_now(void) {
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t) now.tv_sec * NSEC_PER_SEC + (uint64_t) now.tv_nsec;
}

static uint64_t patience(void) {
        return daemon_now() + PATIENCE_SECONDS * NSEC_PER_SEC;
}

int daemon_connect(const char *socket, struct varlink_client **ret) {
        int r;

        r = varlink_client_new(socket, patience(), ret);
        if (r >= 0)
                return 0;
        if (r == -ENOENT || r == -ECONNREFUSED)
                return message_fail(
                        EXIT_CANNOT_PROFILE,
                        "no daemon listens on %s: enable it with 'systemctl enable --now startprofd.socket'",
                        socket);
        if (r == -EACCES || r == -EPERM)
                return message_fail(EXIT_CANNOT_PROFILE, "you may not connect to %s: %s", socket,
                                    strerror(-r));
        return message_fail(EXIT_CANNOT_PROFILE, "cannot connect to the daemon at %s: %s", socket,
                            strerror(-r));
}

int daemon_gone(int error) {
        if (error == -ETIMEDOUT)
                return message_fail(EXIT_CANNOT_PROFILE,
                                    "the daemon does not answer: see 'systemctl status startprofd'");
        if (error == -EBADMSG || error == -EMSGSIZE)
                return message_fail(EXIT_CANNOT_PROFILE,
                                    "the daemon's answer makes no sense: is it of another version?");
        if (error == -ENOMEM)
                return message_no_memory();
        return message_fail(EXIT_CANNOT_PROFILE, "the daemon went away: see 'journalctl -u startprofd'");
}

int daemon_send(struct varlink_client *client, const char *method, json_t *parameters, bool more) {
        _cleanup_free_ char *name = NULL;
        int r;

        if (!parameters)
                return message_no_memory();
        if (asprintf(&name, PROFILER_INTERFACE ".%s", method) < 0) {
                name = NULL;
                json_decref(parameters);
                return message_no_memory();
        }
        r = varlink_client_call(client, name, parameters, more, patience());
        json_decref(parameters);
        return r < 0 ? daemon_gone(r) : 0;
}

int daemon_ask(struct varlink_client *client, const char *method, json_t *parameters,
               struct varlink_answer *ret) {
        uint64_t deadline;
        int r;

        r = daemon_send(client, method, parameters, false);
        if (r != 0)
                return r;
        deadline = patience();
        do
                r = varlink_client_next(client, deadline, ret);
        while (r == -EINTR);
        return r < 0 ? daemon_gone(r) : 0;
}

int daemon_call(struct varlink_client *client, const char *method, json_t *parameters,
                struct varlink_answer *ret) {
        _cleanup_(varlink_answer_done) struct varlink_answer answer = VARLINK_ANSWER_NULL;
        int r;

        r = daemon_ask(client, method, parameters, &answer);
        if (r != 0)
                return r;
        if (answer.error)
                return daemon_refused(&answer);
        *ret = answer;
        answer = VARLINK_ANSWER_NULL;
        return 0;
}

/* ---- errors ---- */

static const char *parameter(const struct varlink_answer *answer, const char *name) {
        const char *text = "?";

        (void) varlink_get_string(answer->parameters, name, &text);
        return text;
}

static int too_many(const struct varlink_answer *answer, char **ret) {
        uint64_t limit = 0;

        (void) varlink_get_u64(answer->parameters, "limit", &limit);
        return message_make(EXIT_CANNOT_PROFILE, ret,
                            "the daemon is busy: it takes at most %" PRIu64 " %s, try again later", limit,
                            parameter(answer, "what"));
}

int daemon_refusal(const struct varlink_answer *answer, char **ret_message) {
        const char *error = answer->error;

        if (streq(error, VARLINK_ERROR_PERMISSION_DENIED))
                return message_make(
                        EXIT_CANNOT_PROFILE, ret_message,
                        "you may not profile: use sudo, or become a member of the group startprof "
                        "(its members see the paths and peers of every unit) and log in again");
        if (streq(error, PROFILER_ERROR_ALREADY_ARMED))
                return message_make(EXIT_CANNOT_PROFILE, ret_message,
                                    "%s is being profiled by another client already: let it finish",
                                    parameter(answer, "unit"));
        if (streq(error, PROFILER_ERROR_TOO_MANY))
                return too_many(answer, ret_message);
        if (streq(error, PROFILER_ERROR_CANNOT_PROFILE))
                return message_make(EXIT_CANNOT_PROFILE, ret_message, "cannot profile on this machine: %s",
                                    parameter(answer, "reason"));
        if (streq(error, PROFILER_ERROR_NO_SUCH_UNIT))
                return message_make(EXIT_NOT_FOUND, ret_message, "there is no unit %s",
                                    parameter(answer, "unit"));
        if (streq(error, PROFILER_ERROR_NO_SUCH_RECORDING))
                return message_make(EXIT_NOT_FOUND, ret_message,
                                    "there is no recording '%s': 'startprof list' shows them",
                                    parameter(answer, "recording"));
        if (streq(error, PROFILER_ERROR_FAILED))
                return message_make(EXIT_CANNOT_PROFILE, ret_message, "the daemon failed: %s",
                                    parameter(answer, "reason"));
        if (streq(error, VARLINK_ERROR_INVALID_PARAMETER))
                return message_make(EXIT_CANNOT_PROFILE, ret_message,
                                    "the daemon does not take the parameter '%s': is it of another version?",
                                    parameter(answer, "parameter"));
        return message_make(EXIT_CANNOT_PROFILE, ret_message,
                            "the daemon says %s: is it of another version?", error);
}

int daemon_refused(const struct varlink_answer *answer) {
        _cleanup_free_ char *message = NULL;
        int status;

        status = daemon_refusal(answer, &message);
        return message_fail_made(status, message);
}
