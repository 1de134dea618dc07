/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proto/varlink.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/text.h"

/* The interface texts go into the program as they lie in the tree (the Makefile knows that they do). */
#define EMBED(symbol, file)                                                                                 \
        __asm__(".pushsection .rodata\n"                                                                    \
                ".global " #symbol "\n"                                                                     \
                ".type " #symbol ", @object\n" #symbol ":\n"                                                \
                ".incbin \"" file "\"\n"                                                                    \
                ".byte 0\n"                                                                                 \
                ".size " #symbol ", . - " #symbol "\n"                                                      \
                ".popsection\n")

EMBED(varlink_profiler_description, "proto/org.startprof.Profiler.varlink");
EMBED(varlink_service_description, "proto/org.varlink.service.varlink");

/* ---- messages ---- */

static int encode(json_t *message, char **ret, size_t *ret_bytes) {
        char *text;

        text = json_dumps(message, JSON_COMPACT);
        if (!text)
                return -ENOMEM;
        *ret_bytes = strlen(text) + 1;
        *ret = text;
        return 0;
}

/* Reference counts hold what they refer to, so nothing is copied. -EINVAL, -ENOMEM. */
static int put_parameters(json_t *message, json_t *parameters) {
        if (!parameters)
                return 0;
        if (!json_is_object(parameters))
                return -EINVAL;
        return json_object_set(message, "parameters", parameters) < 0 ? -ENOMEM : 0;
}

static int put_true(json_t *message, const char *name, bool value) {
        return value && json_object_set_new(message, name, json_true()) < 0 ? -ENOMEM : 0;
}

int varlink_call_encode(const struct varlink_call *call, char **ret, size_t *ret_bytes) {
        _cleanup_(json_decrefp) json_t *message = json_object();
        int r;

        if (!message || json_object_set_new(message, "method", json_string(call->method)) < 0)
                return -ENOMEM;
        r = put_parameters(message, call->parameters);
        if (r >= 0)
                r = put_true(message, "more", call->more);
        if (r >= 0)
                r = put_true(message, "oneway", call->oneway);
        return r < 0 ? r : encode(message, ret, ret_bytes);
}

int varlink_reply_encode(const struct varlink_reply *reply, char **ret, size_t *ret_bytes) {
        _cleanup_(json_decrefp) json_t *message = json_object();
        int r;

        if (!message)
                return -ENOMEM;
        if (reply->error && json_object_set_new(message, "error", json_string(reply->error)) < 0)
                return -ENOMEM;
        /* Some clients insist on parameters, even empty ones. */
        if (!reply->parameters && json_object_set_new(message, "parameters", json_object()) < 0)
                return -ENOMEM;
        r = put_parameters(message, reply->parameters);
        if (r >= 0)
                r = put_true(message, "continues", reply->continues);
        return r < 0 ? r : encode(message, ret, ret_bytes);
}

int varlink_call_decode(json_t *message, struct varlink_call *ret) {
        struct varlink_call call = {};
        bool upgrade = false;

        if (varlink_get_string(message, "method", &call.method) <= 0 ||
            varlink_get_object(message, "parameters", &call.parameters) < 0 ||
            varlink_get_bool(message, "more", &call.more) < 0 ||
            varlink_get_bool(message, "oneway", &call.oneway) < 0 ||
            varlink_get_bool(message, "upgrade", &upgrade) < 0 || upgrade)
                return -EBADMSG;

        *ret = call;
        return 0;
}

int varlink_reply_decode(json_t *message, struct varlink_reply *ret) {
        struct varlink_reply reply = {};

        if (varlink_get_string(message, "error", &reply.error) < 0 ||
            varlink_get_object(message, "parameters", &reply.parameters) < 0 ||
            varlink_get_bool(message, "continues", &reply.continues) < 0)
                return -EBADMSG;
        /* An error is the end of a call. */
        if (reply.error && reply.continues)
                return -EBADMSG;

        *ret = reply;
        return 0;
}

json_t *varlink_string(const char *text) {
        struct buf b = BUF_NULL;
        json_t *s = NULL;

        text_utf8(&b, text);
        if (buf_error(&b) == 0)
                s = json_string(buf_text(&b));
        buf_done(&b);
        return s;
}

static json_t *member(json_t *object, const char *name) {
        json_t *value = json_object_get(object, name); /* NULL for no object */

        return json_is_null(value) ? NULL : value;
}

int varlink_get_string(json_t *object, const char *name, const char **ret) {
        json_t *value = member(object, name);

        if (!value)
                return 0;
        if (!json_is_string(value))
                return -EINVAL;
        *ret = json_string_value(value);
        return 1;
}

int varlink_get_u64(json_t *object, const char *name, uint64_t *ret) {
        json_t *value = member(object, name);

        if (!value)
                return 0;
        if (!json_is_integer(value) || json_integer_value(value) < 0)
                return -EINVAL;
        *ret = (uint64_t) json_integer_value(value);
        return 1;
}

int varlink_get_bool(json_t *object, const char *name, bool *ret) {
        json_t *value = member(object, name);

        if (!value)
                return 0;
        if (!json_is_boolean(value))
                return -EINVAL;
        *ret = json_is_true(value);
        return 1;
}

int varlink_get_object(json_t *object, const char *name, json_t **ret) {
        json_t *value = member(object, name);

        if (!value)
                return 0;
        if (!json_is_object(value))
                return -EINVAL;
        *ret = value;
        return 1;
}

/* ---- framing ---- */

void varlink_input_done(struct varlink_input *in) {
        buf_done(&in->data);
        *in = VARLINK_INPUT(in->max);
}

int varlink_input_feed(struct varlink_input *in, const void *data, size_t bytes) {
        if (in->begin > 0) {
                in->data.size -= in->begin;
                memmove(in->data.data, in->data.data + in->begin, in->data.size);
                in->data.data[in->data.size] = 0;
                in->dropped += in->begin;
                in->scanned -= in->begin;
                in->begin = 0;
        }
        buf_append(&in->data, data, bytes);
        return buf_error(&in->data);
}

int varlink_input_next(struct varlink_input *in, json_t **ret) {
        const char *start, *end;
        json_t *message;

        if (in->scanned == in->data.size)
                return 0;
        start = in->data.data + in->begin;
        end = memchr(in->data.data + in->scanned, 0, in->data.size - in->scanned);
        if (!end) {
                in->scanned = in->data.size;
                return in->data.size - in->begin >= in->max ? -EMSGSIZE : 0;
        }
        if ((size_t) (end - start) + 1 > in->max)
                return -EMSGSIZE;

        message = json_loadb(start, (size_t) (end - start), JSON_REJECT_DUPLICATES, NULL);
        if (!json_is_object(message)) {
                json_decref(message);
                return -EBADMSG;
        }
        in->begin = in->scanned = (size_t) (end - in->data.data) + 1;
        *ret = message;
        return 1;
}

uint64_t varlink_input_position(const struct varlink_input *in) {
        return in->dropped + in->begin;
}

struct output_message {
        struct output_message *next;
        char *data;
        size_t bytes, sent;
        int fd; /* goes with the first byte */
};

struct varlink_output {
        struct output_message *first, *last;
        size_t queued_bytes, max_bytes;
};

static void message_free(struct output_message *m) {
        free(m->data);
        fd_close(m->fd);
        free(m);
}

struct varlink_output *varlink_output_new(size_t max_bytes) {
        struct varlink_output *out = calloc(1, sizeof(*out));

        if (out)
                out->max_bytes = max_bytes;
        return out;
}

static void drop_first(struct varlink_output *out) {
        struct output_message *m = out->first;

        out->first = m->next;
        if (!out->first)
                out->last = NULL;
        out->queued_bytes -= m->bytes;
        message_free(m);
}

struct varlink_output *varlink_output_free(struct varlink_output *out) {
        if (!out)
                return NULL;
        while (out->first)
                drop_first(out);
        free(out);
        return NULL;
}

int varlink_output_add(struct varlink_output *out, char *data, size_t bytes, int fd) {
        struct output_message *m;
        int r = -ENOMEM;

        m = calloc(1, sizeof(*m));
        if (m && bytes <= out->max_bytes - out->queued_bytes) {
                *m = (struct output_message){ .data = data, .bytes = bytes, .fd = fd };
                if (out->last)
                        out->last->next = m;
                else
                        out->first = m;
                out->last = m;
                out->queued_bytes += bytes;
                return 0;
        }

        if (m)
                r = -ENOBUFS;
        free(m);
        free(data);
        fd_close(fd);
        return r;
}

int varlink_output_flush(struct varlink_output *out, int socket_fd) {
        while (out->first) {
                struct output_message *m = out->first;
                struct iovec rest = { m->data + m->sent, m->bytes - m->sent };
                ssize_t n;

                n = fd_send(socket_fd, &rest, 1, m->fd, MSG_DONTWAIT);
                if (n == -EINTR)
                        continue;
                if (n == -EAGAIN)
                        return 0;
                if (n < 0)
                        return (int) n;
                m->fd = fd_close(m->fd);
                m->sent += (size_t) n;
                if (m->sent == m->bytes)
                        drop_first(out);
        }
        return 1;
}

bool varlink_output_empty(const struct varlink_output *out) {
        return !out->first;
}

/* ---- a blocking client ---- */

struct varlink_client {
        int fd;
        struct varlink_input input;
        uint64_t received; /* bytes of the stream */
        int passed_fd; /* came, and no message took it yet */
        uint64_t passed_at; /* its message holds the byte before this position */
};

static uint64_t now_ns(void) {
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return (uint64_t) t.tv_sec * NSEC_PER_SEC + (uint64_t) t.tv_nsec;
}

/* 0 ready; -ETIMEDOUT, -EINTR and other errors of ppoll(2). */
static int wait_for(int fd, short events, uint64_t deadline_ns) {
        struct pollfd p = { .fd = fd, .events = events };
        struct timespec left = {};
        int n;

        if (deadline_ns != 0 && deadline_ns != UINT64_MAX) {
                uint64_t now = now_ns(), ns = deadline_ns > now ? deadline_ns - now : 0;

                left.tv_sec = (time_t) (ns / NSEC_PER_SEC);
                left.tv_nsec = (long) (ns % NSEC_PER_SEC);
        }
        n = ppoll(&p, 1, deadline_ns == UINT64_MAX ? NULL : &left, NULL);
        if (n < 0)
                return -errno;
        return n == 0 ? -ETIMEDOUT : 0;
}

/* A connect() to an AF_UNIX stream is over at once, unless the queue of the listener is full: -EAGAIN,
 * and no poll tells when it is not. */
static int connect_until(int fd, const struct sockaddr_un *address, uint64_t deadline_ns) {
        for (;;) {
                struct timespec pause = { .tv_nsec = 10 * NSEC_PER_MSEC };

                if (connect(fd, (const struct sockaddr *) address, sizeof(*address)) == 0)
                        return 0;
                if (errno != EAGAIN && errno != EINTR)
                        return -errno;
                if (now_ns() >= deadline_ns)
                        return -ETIMEDOUT;
                nanosleep(&pause, NULL);
        }
}

int varlink_client_new(const char *path, uint64_t deadline_ns, struct varlink_client **ret) {
        _cleanup_(varlink_client_freep) struct varlink_client *c = NULL;
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        size_t length = strlen(path);
        int r;

        if (length >= sizeof(address.sun_path))
                return -ENAMETOOLONG;
        memcpy(address.sun_path, path, length);

        c = calloc(1, sizeof(*c));
        if (!c)
                return -ENOMEM;
        c->passed_fd = -EBADF;
        c->input = VARLINK_INPUT(VARLINK_REPLY_MAX);
        c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (c->fd < 0)
                return -errno;
        r = connect_until(c->fd, &address, deadline_ns);
        if (r < 0)
                return r;

        *ret = TAKE_PTR(c);
        return 0;
}

struct varlink_client *varlink_client_free(struct varlink_client *c) {
        if (!c)
                return NULL;
        fd_close(c->fd);
        fd_close(c->passed_fd);
        varlink_input_done(&c->input);
        free(c);
        return NULL;
}

int varlink_client_fd(const struct varlink_client *c) {
        return c->fd;
}

int varlink_client_call(struct varlink_client *c, const char *method, json_t *parameters, bool more,
                        uint64_t deadline_ns) {
        struct varlink_call call = { .method = method, .parameters = parameters, .more = more };
        _cleanup_free_ char *data = NULL;
        size_t bytes, sent = 0;
        int r;

        r = varlink_call_encode(&call, &data, &bytes);
        if (r < 0)
                return r;
        while (sent < bytes) {
                struct iovec rest = { data + sent, bytes - sent };
                ssize_t n = fd_send(c->fd, &rest, 1, -EBADF, MSG_DONTWAIT);

                if (n >= 0)
                        sent += (size_t) n;
                else if (n == -EAGAIN) {
                        /* Half a call cannot be taken back: a signal is not a reason to stop here. */
                        r = wait_for(c->fd, POLLOUT, deadline_ns);
                        if (r < 0 && r != -EINTR)
                                return r;
                } else if (n != -EINTR)
                        return (int) n;
        }
        return 0;
}

void varlink_answer_done(struct varlink_answer *a) {
        json_decref(a->message);
        fd_close(a->fd);
        *a = VARLINK_ANSWER_NULL;
}

/* The descriptors of a message (one is expected: the last one stays, none leaks). */
static void take_descriptors(struct varlink_client *c, struct msghdr *msg) {
        for (struct cmsghdr *h = CMSG_FIRSTHDR(msg); h; h = CMSG_NXTHDR(msg, h)) {
                size_t count;

                if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
                        continue;
                count = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);
                for (size_t i = 0; i < count; i++) {
                        fd_close(c->passed_fd);
                        memcpy(&c->passed_fd, CMSG_DATA(h) + i * sizeof(int), sizeof(int));
                        c->passed_at = c->received;
                }
        }
}

/* Reads once. The kernel ends a read behind the bytes that a descriptor came with, so the message that
 * holds the last byte is the one that it belongs to. */
static int receive(struct varlink_client *c) {
        _cleanup_free_ char *data = malloc(VARLINK_READ_BYTES);
        union {
                struct cmsghdr header;
                char space[CMSG_SPACE(4 * sizeof(int))];
        } control;
        struct iovec iov = { .iov_base = data, .iov_len = VARLINK_READ_BYTES };
        struct msghdr msg = {
                .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)
        };
        ssize_t n;

        if (!data)
                return -ENOMEM;
        n = recvmsg(c->fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        if (n < 0)
                return -errno;
        c->received += (uint64_t) n;
        take_descriptors(c, &msg);
        if (n == 0)
                return -ECONNRESET;
        return varlink_input_feed(&c->input, data, (size_t) n);
}

static int next_message(struct varlink_client *c, uint64_t deadline_ns, json_t **ret) {
        for (;;) {
                int r;

                r = varlink_input_next(&c->input, ret);
                if (r != 0)
                        return r < 0 ? r : 0;
                r = receive(c);
                if (r == -EAGAIN || r == -EINTR)
                        r = wait_for(c->fd, POLLIN, deadline_ns);
                if (r < 0)
                        return r;
        }
}

int varlink_client_next(struct varlink_client *c, uint64_t deadline_ns, struct varlink_answer *ret) {
        _cleanup_(json_decrefp) json_t *message = NULL;
        struct varlink_reply reply;
        int r;

        r = next_message(c, deadline_ns, &message);
        if (r < 0)
                return r;
        r = varlink_reply_decode(message, &reply);
        if (r < 0)
                return r;

        *ret = (struct varlink_answer){ .message = TAKE_PTR(message),
                                        .error = reply.error,
                                        .parameters = reply.parameters,
                                        .continues = reply.continues,
                                        .fd = -EBADF };
        if (c->passed_fd >= 0 && varlink_input_position(&c->input) >= c->passed_at)
                ret->fd = TAKE_FD(c->passed_fd);
        return 0;
}
