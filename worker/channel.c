/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "worker/channel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "common/fd.h"

struct channel {
        /* borrowed */
        int fd, files_fd;

        /* owned */
        uint8_t *message; /* WORKER_MESSAGE_MAX bytes, locked */
        size_t message_bytes;
        int message_fd;
};

struct file_answer {
        struct worker_file_reply reply;
        char path[WORKER_PATH_MAX];
};

static int check_socket(int fd) {
        int type;
        socklen_t size = sizeof(type);

        if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) < 0 || type != SOCK_SEQPACKET)
                return -ENOTSOCK;
        return 0;
}

int channel_new(int fd, int files_fd, struct channel **ret) {
        _cleanup_(channel_freep) struct channel *c = NULL;
        void *message;
        int r;

        r = check_socket(fd);
        r = r ?: check_socket(files_fd);
        if (r < 0)
                return r;

        c = malloc(sizeof(*c));
        if (!c)
                return -ENOMEM;
        *c = (struct channel){ .fd = fd, .files_fd = files_fd, .message_fd = -EBADF };

        message = mmap(NULL, WORKER_MESSAGE_MAX, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (message == MAP_FAILED)
                return -ENOMEM;
        c->message = message;
        (void) mlock(message, WORKER_MESSAGE_MAX); /* where RLIMIT_MEMLOCK is zero, swap may see it */
        (void) madvise(message, WORKER_MESSAGE_MAX, MADV_DONTDUMP);

        *ret = TAKE_PTR(c);
        return 0;
}

struct channel *channel_free(struct channel *c) {
        if (!c)
                return NULL;

        if (c->message) {
                explicit_bzero(c->message, c->message_bytes);
                munmap(c->message, WORKER_MESSAGE_MAX);
        }
        fd_close(c->message_fd);
        free(c);
        return NULL;
}

/* One whole message with at most one descriptor. Bytes, 0 at the end, or negative errno. */
static ssize_t receive(int fd, void *data, size_t max, int *ret_fd) {
        union {
                struct cmsghdr header;
                char space[CMSG_SPACE(sizeof(int))];
        } control;
        struct iovec part = { .iov_base = data, .iov_len = max };
        struct msghdr message = {
                .msg_iov = &part,
                .msg_iovlen = 1,
                .msg_control = &control,
                .msg_controllen = sizeof(control),
        };
        const struct cmsghdr *c;
        ssize_t n;

        do
                n = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
        while (n < 0 && errno == EINTR);
        if (n < 0)
                return -errno;

        c = CMSG_FIRSTHDR(&message);
        if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
            c->cmsg_len == CMSG_LEN(sizeof(int)))
                memcpy(ret_fd, CMSG_DATA(c), sizeof(int));
        return message.msg_flags & (MSG_TRUNC | MSG_CTRUNC) ? -EBADMSG : n;
}

int channel_receive(struct channel *c, const struct worker_head **ret, int *ret_fd) {
        const struct worker_head *head = (const struct worker_head *) c->message;
        ssize_t n;

        explicit_bzero(c->message, c->message_bytes);
        c->message_fd = fd_close(c->message_fd);

        n = receive(c->fd, c->message, WORKER_MESSAGE_MAX, &c->message_fd);
        if (n <= 0)
                return n == -ECONNRESET ? 0 : (int) n;
        c->message_bytes = (size_t) n;
        if ((size_t) n < sizeof(*head) || head->bytes != (size_t) n)
                return -EBADMSG;

        *ret = head;
        *ret_fd = c->message_fd;
        return 1;
}

static int send_parts(int socket_fd, const struct iovec *parts, size_t count, int fd) {
        ssize_t n;

        do
                n = fd_send(socket_fd, parts, count, fd, 0);
        while (n == -EINTR);
        return n < 0 ? (int) n : 0;
}

int channel_send(struct channel *c, const struct worker_head *message, int fd) {
        struct iovec part = { .iov_base = (void *) message, .iov_len = message->bytes };

        return send_parts(c->fd, &part, 1, fd);
}

static int take_answer(const struct file_answer *answer, ssize_t bytes, int fd,
                       char path[static WORKER_PATH_MAX]) {
        const struct worker_file_reply *reply = &answer->reply;

        if (bytes == 0)
                return -ENOTCONN;
        if (bytes < (ssize_t) sizeof(*reply) || reply->head.type != WORKER_FILE_REPLY ||
            reply->head.bytes != (size_t) bytes || reply->path_bytes != (size_t) bytes - sizeof(*reply))
                return -EBADMSG;
        if (reply->error < 0)
                return reply->error;
        if (reply->path_bytes == 0 || answer->path[reply->path_bytes - 1] != 0 || fd < 0)
                return -EBADMSG;

        memcpy(path, answer->path, reply->path_bytes);
        return 0;
}

int channel_ask_file(struct channel *c, uint32_t module, enum worker_role role, uint32_t attempt,
                     const char *name, int *ret_fd, char path[static WORKER_PATH_MAX]) {
        struct worker_file_wanted wanted = {
                .head = { .type = WORKER_FILE_WANTED },
                .module = module,
                .role = role,
                .attempt = attempt,
        };
        struct iovec parts[] = {
                { .iov_base = &wanted, .iov_len = sizeof(wanted) },
                { .iov_base = (void *) name, .iov_len = name[0] ? strlen(name) + 1 : 0 },
        };
        _cleanup_close_ int fd = -EBADF;
        struct file_answer answer;
        ssize_t n;
        int r;

        wanted.name_bytes = (uint32_t) parts[1].iov_len;
        wanted.head.bytes = (uint32_t) sizeof(wanted) + wanted.name_bytes;
        r = send_parts(c->files_fd, parts, ARRAY_SIZE(parts), -EBADF);
        if (r < 0)
                return r;
        n = receive(c->files_fd, &answer, sizeof(answer), &fd);
        if (n < 0)
                return (int) n;
        r = take_answer(&answer, n, fd, path);
        if (r < 0)
                return r;

        *ret_fd = TAKE_FD(fd);
        return 0;
}

int channel_give_table(struct channel *c, uint32_t module, const char *key, int fd) {
        struct worker_table table = { .head = { .type = WORKER_TABLE }, .module = module };
        struct iovec parts[] = {
                { .iov_base = &table, .iov_len = sizeof(table) },
                { .iov_base = (void *) key, .iov_len = strlen(key) + 1 },
        };

        table.name_bytes = (uint32_t) parts[1].iov_len;
        table.head.bytes = (uint32_t) sizeof(table) + table.name_bytes;
        return send_parts(c->files_fd, parts, ARRAY_SIZE(parts), fd);
}
