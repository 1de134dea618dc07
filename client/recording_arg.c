/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/recording_arg.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/daemon.h"
#include "client/message.h"
#include "common/fd.h"
#include "common/macro.h"
#include "common/unit_name.h"
#include "proto/varlink.h"

/* A FIFO must not hold us up. Negative errno. */
static int open_file(const char *path) {
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

        return fd < 0 ? -errno : fd;
}

static bool begins_like_a_recording(const char *path) {
        _cleanup_close_ int fd = open_file(path);
        char begin[sizeof(struct rec_file_header)];
        struct stat st;
        ssize_t n;

        if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
                return false;
        n = fd_read_full(fd, begin, sizeof(begin));
        return n >= 0 && recording_magic(begin, (size_t) n);
}

enum recording_arg recording_arg_kind(const char *arg) {
        if (!arg)
                return RECORDING_ARG_NEWEST;
        if (strchr(arg, '/') || begins_like_a_recording(arg))
                return RECORDING_ARG_FILE;
        if (unit_name_is_valid(arg) && unit_name_is_service(arg))
                return RECORDING_ARG_UNIT;
        return RECORDING_ARG_ID;
}

static int load_file(const char *path, struct answer *ret) {
        _cleanup_close_ int fd = open_file(path);

        if (fd < 0)
                return message_fail(EXIT_FILE, "cannot read %s: %s", path, strerror(-fd));
        return answer_load(fd, path, ret);
}

/* ---- from the store ---- */

static int load_fetched(struct varlink_answer *fetched, const char *id, struct answer *ret) {
        if (fetched->fd < 0)
                return daemon_gone(-EBADMSG);
        return answer_load(fetched->fd, id, ret);
}

int recording_arg_fetch(struct varlink_client *client, const char *id, struct answer *ret) {
        _cleanup_(varlink_answer_done) struct varlink_answer fetched = VARLINK_ANSWER_NULL;
        int r;

        r = daemon_call(client, "Fetch", json_pack("{s:o}", "recording", varlink_string(id)), &fetched);
        return r != 0 ? r : load_fetched(&fetched, id, ret);
}

/* The newest of a unit, or of all (NULL). */
static int load_newest(struct varlink_client *client, const char *unit, struct answer *ret) {
        _cleanup_(varlink_answer_done) struct varlink_answer list = VARLINK_ANSWER_NULL;
        const char *id;
        int r;

        r = daemon_call(client, "List",
                        unit ? json_pack("{s:o}", "unit", varlink_string(unit)) : json_object(), &list);
        if (r != 0)
                return r;
        if (varlink_get_string(json_array_get(json_object_get(list.parameters, "recordings"), 0), "id",
                               &id) <= 0)
                return unit ? message_fail(EXIT_NOT_FOUND,
                                           "there is no recording of %s: 'startprof list' shows all", unit)
                            : message_fail(EXIT_NOT_FOUND,
                                           "there are no recordings yet: 'startprof UNIT' makes one");
        return recording_arg_fetch(client, id, ret);
}

/* "foo" is an id first, else the unit foo.service. */
static int load_id(struct varlink_client *client, const char *arg, struct answer *ret) {
        _cleanup_(varlink_answer_done) struct varlink_answer fetched = VARLINK_ANSWER_NULL;
        _cleanup_free_ char *unit = NULL;
        int r;

        r = daemon_ask(client, "Fetch", json_pack("{s:o}", "recording", varlink_string(arg)), &fetched);
        if (r != 0)
                return r;
        if (!fetched.error)
                return load_fetched(&fetched, arg, ret);
        if (!streq(fetched.error, PROFILER_ERROR_NO_SUCH_RECORDING))
                return daemon_refused(&fetched);
        if (access(arg, F_OK) >= 0)
                return message_fail(EXIT_FILE, "%s is not a recording, or a damaged one", arg);
        if (unit_name_mangle(arg, &unit) < 0)
                return daemon_refused(&fetched);
        return load_newest(client, unit, ret);
}

int recording_arg_load(const struct options *options, struct answer *ret) {
        _cleanup_(varlink_client_freep) struct varlink_client *client = NULL;
        const char *arg = options->n_arguments > 0 ? options->arguments[0] : NULL;
        enum recording_arg kind = recording_arg_kind(arg);
        int r;

        if (kind == RECORDING_ARG_FILE)
                return load_file(arg, ret);
        r = daemon_connect(options->socket, &client);
        if (r != 0)
                return r;
        return kind == RECORDING_ARG_ID ? load_id(client, arg, ret) : load_newest(client, arg, ret);
}
