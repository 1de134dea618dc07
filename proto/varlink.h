/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/macro.h"

/*
 * The wire between the daemon and its clients: Varlink (https://varlink.org/Service,
 * org.varlink.service), that is JSON objects, each with a NUL behind it, over an AF_UNIX stream.
 *
 *   call    {"method": …, "parameters": {…}, "more"?: true, "oneway"?: true}
 *   reply   {"parameters": {…}, "continues"?: true} or {"error": …, "parameters": {…}}
 *
 * Replies come in the order of the calls. A call with "more" gets replies with "continues" until the last
 * one without; no other call on the same connection is answered before that (so Mark and Stop of
 * org.startprof.Profiler need a connection of their own while Profile runs). A descriptor travels by
 * SCM_RIGHTS with the first byte of the reply it belongs to. Members that nobody knows are ignored, so both
 * sides may be older than the other.
 *
 * Both sides take the other for hostile: sizes are limited before anything is parsed.
 */

#define PROFILER_SOCKET    "/run/startprof/org.startprof.Profiler"
#define PROFILER_INTERFACE "org.startprof.Profiler"
#define VARLINK_SERVICE    "org.varlink.service"

#define VARLINK_ERROR_INTERFACE_NOT_FOUND VARLINK_SERVICE ".InterfaceNotFound"
#define VARLINK_ERROR_METHOD_NOT_FOUND    VARLINK_SERVICE ".MethodNotFound"
#define VARLINK_ERROR_INVALID_PARAMETER   VARLINK_SERVICE ".InvalidParameter"
#define VARLINK_ERROR_EXPECTED_MORE       VARLINK_SERVICE ".ExpectedMore"
#define VARLINK_ERROR_PERMISSION_DENIED   VARLINK_SERVICE ".PermissionDenied"
#define PROFILER_ERROR_NO_SUCH_RECORDING  PROFILER_INTERFACE ".NoSuchRecording"
#define PROFILER_ERROR_NO_SUCH_SESSION    PROFILER_INTERFACE ".NoSuchSession"
#define PROFILER_ERROR_NO_SUCH_UNIT       PROFILER_INTERFACE ".NoSuchUnit"
#define PROFILER_ERROR_ALREADY_ARMED      PROFILER_INTERFACE ".AlreadyArmed"
#define PROFILER_ERROR_TOO_MANY           PROFILER_INTERFACE ".TooMany"
#define PROFILER_ERROR_CANNOT_PROFILE     PROFILER_INTERFACE ".CannotProfile"
#define PROFILER_ERROR_FAILED             PROFILER_INTERFACE ".Failed"

enum {
        VARLINK_CALL_MAX = 64 * 1024, /* a unit name and a few numbers; what the daemon reads */
        VARLINK_REPLY_MAX = 16 * 1024 * 1024, /* a list of recordings; what systemd's clients accept, too */
        VARLINK_READ_BYTES = 64 * 1024, /* at once from a socket */
};

/* Options.frequency, samples per second and CPU. Above, the copies of stacks alone would take a tenth of it. */
enum { PROFILER_FREQUENCY_MIN = 1, PROFILER_FREQUENCY_MAX = 10000 };

/* The interface texts beside this file, for GetInterfaceDescription. */
extern const char varlink_profiler_description[];
extern const char varlink_service_description[];

/* ---- messages ---- */

struct varlink_call {
        const char *method; /* "org.startprof.Profiler.Profile" */
        json_t *parameters; /* decoded: an object or NULL */
        bool more, oneway;
};

struct varlink_reply {
        const char *error; /* NULL: a result */
        json_t *parameters; /* decoded: an object or NULL */
        bool continues;
};

/* The bytes with their NUL, malloc()ed; all pointers of the message are borrowed. *ret_bytes counts the NUL.
 * -ENOMEM; -EINVAL: parameters are no object. */
int varlink_call_encode(const struct varlink_call *call, char **ret, size_t *ret_bytes);
int varlink_reply_encode(const struct varlink_reply *reply, char **ret, size_t *ret_bytes);

/* What is in *ret points into the message. -EBADMSG: not a call (reply): no method, a member of the wrong
 * type, "upgrade". */
int varlink_call_decode(json_t *message, struct varlink_call *ret);
int varlink_reply_decode(json_t *message, struct varlink_reply *ret);

/* A JSON string of a text that may be no UTF-8 (invalid bytes become U+FFFD). NULL: no memory. */
json_t *varlink_string(const char *text);

/* Members of parameters, for both sides. 1 found; 0 absent or null (*ret untouched); -EINVAL wrong type, or
 * negative where unsigned. Strings are borrowed from the object; `object` may be NULL (all absent). */
int varlink_get_string(json_t *object, const char *name, const char **ret);
int varlink_get_u64(json_t *object, const char *name, uint64_t *ret);
int varlink_get_bool(json_t *object, const char *name, bool *ret);
int varlink_get_object(json_t *object, const char *name, json_t **ret);

/* ---- framing ---- */

/* Bytes in, messages out, in whatever pieces the bytes arrive. */
struct varlink_input {
        struct buf data;
        size_t begin; /* of the message that is next */
        size_t scanned; /* no NUL in [begin, scanned) */
        uint64_t dropped; /* bytes of the stream before data[0] */
        size_t max; /* bytes of one message, with its NUL */
};

#define VARLINK_INPUT(max_bytes)                                                                            \
        (struct varlink_input) {                                                                            \
                .max = (max_bytes)                                                                          \
        }

void varlink_input_done(struct varlink_input *in);
/* -ENOMEM. At most `max` bytes plus one feed are kept when every message is taken between feeds. */
int varlink_input_feed(struct varlink_input *in, const void *data, size_t bytes);
/* 1: *ret is the caller's, json_decref(). 0: incomplete, feed more. -EBADMSG: not a JSON object; -EMSGSIZE:
 * longer than max. After an error the stream is of no use any more. */
int varlink_input_next(struct varlink_input *in, json_t **ret);
/* Position in the stream behind the message that was returned last. */
uint64_t varlink_input_position(const struct varlink_input *in);

/* Messages out, as far as the socket takes them. */
struct varlink_output;

struct varlink_output *varlink_output_new(size_t max_bytes); /* NULL: no memory */
struct varlink_output *varlink_output_free(struct varlink_output *out);
DEFINE_CLEANUP(struct varlink_output *, varlink_output_free);
/* Takes the bytes (malloc()ed) and the descriptor (-1: none), also on failure. -ENOBUFS: the reader is slow
 * and max_bytes are waiting; -ENOMEM. */
int varlink_output_add(struct varlink_output *out, char *data, size_t bytes, int fd);
/* Sends without blocking. 1: all sent; 0: the socket is full; errors of sendmsg(2) (never SIGPIPE). */
int varlink_output_flush(struct varlink_output *out, int socket_fd);
bool varlink_output_empty(const struct varlink_output *out);

/* ---- a blocking client ---- */

/* Deadlines: CLOCK_MONOTONIC in nanoseconds; 0: do not wait, UINT64_MAX: for ever. */
struct varlink_client;

/* -ENOENT no such socket, -ECONNREFUSED nobody listens, -EACCES, -ETIMEDOUT, -ENAMETOOLONG. */
int varlink_client_new(const char *path, uint64_t deadline_ns, struct varlink_client **ret);
struct varlink_client *varlink_client_free(struct varlink_client *c);
DEFINE_CLEANUP(struct varlink_client *, varlink_client_free);
/* For poll(): readable when varlink_client_next() may get something. But next() may hold more messages
 * already: call it with deadline 0 until -ETIMEDOUT before going to poll. Borrowed. */
int varlink_client_fd(const struct varlink_client *c);

/* Sends a call; parameters (NULL: none) are borrowed. -ETIMEDOUT, -EPIPE, -ECONNRESET, -ENOMEM. */
int varlink_client_call(struct varlink_client *c, const char *method, json_t *parameters, bool more,
                        uint64_t deadline_ns);

struct varlink_answer {
        json_t *message; /* owned; the rest points into it */
        const char *error; /* full name, NULL: a result */
        json_t *parameters; /* object or NULL */
        bool continues; /* more replies of this call follow */
        int fd; /* owned; -EBADF: none came */
};

#define VARLINK_ANSWER_NULL                                                                                 \
        (struct varlink_answer) {                                                                           \
                .fd = -EBADF                                                                                \
        }
void varlink_answer_done(struct varlink_answer *a); /* twice is fine */

/* The next reply, any error of the method included (that is 0 with ret->error). Filled on success only.
 * -ETIMEDOUT; -EINTR: a signal came, call again to go on; -ECONNRESET: the daemon is gone; -EBADMSG,
 * -EMSGSIZE: nonsense came; -ENOMEM. */
int varlink_client_next(struct varlink_client *c, uint64_t deadline_ns, struct varlink_answer *ret);
