/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proto/worker_link.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/fd.h"
#include "proto/recording.h"

enum {
        START_TIMEOUT_SEC = 10, /* exec and sandbox take 5 ms, but the machine may be booting */
        END_TIMEOUT_MSEC = 2000, /* from SIGKILL to its end; a few hundred microseconds otherwise */
        SOCKET_BUFFER = 1 << 20, /* a dozen of the largest stacks, where net.core.wmem_max allows it */
        REPORT_BYTES_MAX = 1 << 20,
        OPTION_MAX = 32,
};

extern char **environ;

struct worker_link {
        pid_t pid; /* owned child; 0: reaped */
        int fd; /* owned; the parent's end of WORKER_FD */
        int files_fd; /* owned; of WORKER_FILES_FD */
        int error; /* sticks: the worker is dead or spoke nonsense */

        /* borrowed */
        worker_file_fn file;
        worker_table_fn table;
        void *userdata;

        union {
                struct worker_head head;
                struct worker_file_wanted wanted;
                struct worker_table table;
                struct worker_done done;
                uint8_t bytes[WORKER_MESSAGE_MAX];
        } in;
        size_t in_bytes;
        int in_fd; /* owned; came with the message, or -EBADF */
};

static uint64_t now_ns(void) {
        struct timespec ts;

        clock_gettime(CLOCK_MONOTONIC, &ts);
        return (uint64_t) ts.tv_sec * NSEC_PER_SEC + (uint64_t) ts.tv_nsec;
}

static int fail(struct worker_link *link) {
        link->error = -EPROTO;
        return link->error;
}

/* Waits until the socket is ready for `events` or the worker wants a file; 1: it wants one (or has died), 0:
 * ready, or -ETIMEDOUT. */
static int wait_for(struct worker_link *link, short events, uint64_t deadline_ns) {
        for (;;) {
                struct pollfd p[] = {
                        { .fd = link->fd, .events = events },
                        { .fd = link->files_fd, .events = POLLIN },
                };
                uint64_t now = now_ns();
                struct timespec left;

                if (now >= deadline_ns)
                        return -ETIMEDOUT;
                left.tv_sec = (time_t) MIN((deadline_ns - now) / NSEC_PER_SEC, (uint64_t) INT32_MAX);
                left.tv_nsec = (long) ((deadline_ns - now) % NSEC_PER_SEC);
                if (ppoll(p, ARRAY_SIZE(p), &left, NULL) > 0)
                        return p[1].revents != 0;
        }
}

/* One try. 0, -EAGAIN, or -EPROTO. */
static int try_send(struct worker_link *link, int socket_fd, const struct iovec *parts, size_t count,
                    int fd) {
        for (;;) {
                ssize_t n = fd_send(socket_fd, parts, count, fd, MSG_DONTWAIT);

                if (n >= 0)
                        return 0;
                if (n == -EAGAIN || n == -ENOBUFS)
                        return -EAGAIN;
                if (n != -EINTR)
                        return fail(link);
        }
}

/* Keeps the descriptor that came along in link->in_fd; more than one is nonsense. */
static int take_descriptors(struct worker_link *link, struct msghdr *message) {
        unsigned found = 0;

        for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
                size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

                if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
                        continue;
                for (size_t i = 0; i < count; i++) {
                        int fd;

                        memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
                        if (found++ == 0)
                                link->in_fd = fd;
                        else
                                fd_close(fd);
                }
        }

        return found > 1 || (message->msg_flags & (MSG_TRUNC | MSG_CTRUNC)) ? -EPROTO : 0;
}

/* Reads one message into link->in. 0, -EAGAIN, or -EPROTO: closed, died, or malformed. */
static int try_receive(struct worker_link *link, int socket_fd) {
        union {
                struct cmsghdr header;
                char space[CMSG_SPACE(4 * sizeof(int))];
        } control;
        struct iovec part = { .iov_base = link->in.bytes, .iov_len = sizeof(link->in.bytes) };
        struct msghdr message = {
                .msg_iov = &part,
                .msg_iovlen = 1,
                .msg_control = &control,
                .msg_controllen = sizeof(control),
        };
        ssize_t n;

        link->in_fd = fd_close(link->in_fd);
        n = recvmsg(socket_fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        if (n < 0)
                return errno == EAGAIN || errno == EINTR ? -EAGAIN : fail(link);
        if (take_descriptors(link, &message) < 0 || (size_t) n < sizeof(struct worker_head) ||
            link->in.head.bytes != (size_t) n)
                return fail(link);

        link->in_bytes = (size_t) n;
        return 0;
}

/* Always finds room: the worker asks for one file at a time and waits for the answer. */
static int send_reply(struct worker_link *link, int error, int fd, const char *path) {
        struct worker_file_reply reply = {
                .head = { .type = WORKER_FILE_REPLY },
                .error = error,
                .path_bytes = error == 0 ? (uint32_t) strlen(path) + 1 : 0,
        };
        struct iovec parts[] = {
                { .iov_base = &reply, .iov_len = sizeof(reply) },
                { .iov_base = (void *) path, .iov_len = reply.path_bytes },
        };

        reply.head.bytes = (uint32_t) sizeof(reply) + reply.path_bytes;
        return try_send(link, link->files_fd, parts, ARRAY_SIZE(parts), error == 0 ? fd : -EBADF) < 0
                       ? fail(link)
                       : 0;
}

static int answer_file_wanted(struct worker_link *link) {
        const struct worker_file_wanted *wanted = &link->in.wanted;
        char path[WORKER_PATH_MAX] = "";
        const char *name = "";
        _cleanup_close_ int fd = -EBADF;
        int r;

        if (link->in_bytes < sizeof(*wanted) || wanted->role >= WORKER_ROLE_MAX ||
            wanted->name_bytes != link->in_bytes - sizeof(*wanted) || wanted->name_bytes > WORKER_PATH_MAX)
                return fail(link);
        if (wanted->name_bytes > 0) {
                name = (const char *) (wanted + 1);
                if (name[wanted->name_bytes - 1] != 0)
                        return fail(link);
        }

        r = link->file(link->userdata, wanted->module, wanted->role, wanted->attempt, name, &fd, path);
        if (r == 0 && fd < 0)
                r = -ENOENT;
        path[sizeof(path) - 1] = 0;
        return send_reply(link, MIN(r, 0), fd, path);
}

static int take_table(struct worker_link *link) {
        const struct worker_table *table = &link->in.table;
        const char *key = (const char *) (table + 1);

        if (link->in_bytes < sizeof(*table) || table->name_bytes == 0 || link->in_fd < 0 ||
            table->name_bytes != link->in_bytes - sizeof(*table) || key[table->name_bytes - 1] != 0)
                return fail(link);
        if (link->table)
                link->table(link->userdata, table->module, key, link->in_fd);
        return 0;
}

/* Answers the request for a file that may have come, or takes a table. 0 or -EPROTO. */
static int serve_files(struct worker_link *link) {
        int r;

        r = try_receive(link, link->files_fd);
        if (r == -EAGAIN)
                return 0;
        if (r < 0)
                return r;
        switch (link->in.head.type) {
        case WORKER_FILE_WANTED: return answer_file_wanted(link);
        case WORKER_TABLE: return take_table(link);
        default: return fail(link);
        }
}

/* Looks for requests first, so that a worker is not left waiting until its socket is full. */
static int send_message(struct worker_link *link, const struct iovec *parts, size_t count, int fd,
                        uint64_t deadline_ns) {
        while (link->error == 0) {
                int r;

                r = serve_files(link);
                if (r < 0)
                        return r;
                r = try_send(link, link->fd, parts, count, fd);
                if (r != -EAGAIN)
                        return r;
                r = wait_for(link, POLLOUT, deadline_ns);
                if (r < 0)
                        return r;
        }

        return link->error;
}

/* Waits for a message of `type`, answering FILE_WANTED meanwhile. An answer that comes too late would be
 * taken for the next one, so the link has failed after a timeout. */
static int receive(struct worker_link *link, uint32_t type, size_t bytes, uint64_t deadline_ns) {
        while (link->error == 0) {
                int r;

                r = wait_for(link, POLLIN, deadline_ns);
                if (r < 0) {
                        fail(link);
                        return r;
                }
                if (r > 0) {
                        r = serve_files(link);
                        if (r < 0)
                                return r;
                        continue;
                }
                r = try_receive(link, link->fd);
                if (r == -EAGAIN)
                        continue;
                if (r < 0)
                        return r;
                return link->in.head.type == type && link->in_bytes == bytes ? 0 : fail(link);
        }

        return link->error;
}

/* ---- starting and ending ---- */

/* Of the same build: beside this program (a build tree, or the daemon's directory), else where it was to be
 * installed. */
static int default_path(char path[static WORKER_PATH_MAX]) {
        static const char name[] = "/startprof-worker";
        ssize_t n;
        char *slash;

        n = readlink("/proc/self/exe", path, WORKER_PATH_MAX - sizeof(name));
        if (n > 0) {
                path[n] = 0;
                slash = strrchr(path, '/');
                if (slash) {
                        memcpy(slash, name, sizeof(name));
                        if (access(path, X_OK) == 0)
                                return 0;
                }
        }

        n = snprintf(path, WORKER_PATH_MAX, "%s%s", STARTPROF_LIBEXECDIR, name);
        return n < WORKER_PATH_MAX ? 0 : -ENAMETOOLONG;
}

/* The spawned process starts with nothing of ours but stderr and its ends of the sockets, with default signal
 * handling, and never with the real-time priority of a collector. */
static int prepare(posix_spawn_file_actions_t *actions, posix_spawnattr_t *attributes, int worker_fd,
                   int worker_files_fd) {
        static const struct sched_param ordinary = {};
        sigset_t all, none;
        int r;

        sigfillset(&all);
        sigemptyset(&none);

        r = posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK |
                                                         POSIX_SPAWN_SETSCHEDULER);
        r = r ?: posix_spawnattr_setsigdefault(attributes, &all);
        r = r ?: posix_spawnattr_setsigmask(attributes, &none);
        r = r ?: posix_spawnattr_setschedpolicy(attributes, SCHED_OTHER);
        r = r ?: posix_spawnattr_setschedparam(attributes, &ordinary);
        r = r ?: posix_spawn_file_actions_adddup2(actions, worker_fd, WORKER_FD);
        r = r ?: posix_spawn_file_actions_adddup2(actions, worker_files_fd, WORKER_FILES_FD);
        r = r ?: posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        r = r ?: posix_spawn_file_actions_addopen(actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
        r = r ?: posix_spawn_file_actions_addclosefrom_np(actions, WORKER_FILES_FD + 1);
        return -r;
}

static int spawn(const struct worker_options *options, const char *path, int worker_fd, int worker_files_fd,
                 pid_t *ret) {
        char uid[OPTION_MAX], gid[OPTION_MAX], nice[OPTION_MAX];
        char *arguments[] = { (char *) "startprof-worker", uid, gid, nice, NULL };
        posix_spawn_file_actions_t actions;
        posix_spawnattr_t attributes;
        pid_t pid;
        int r;

        (void) snprintf(uid, sizeof(uid), "--uid=%u", options->uid);
        (void) snprintf(gid, sizeof(gid), "--gid=%u", options->gid);
        (void) snprintf(nice, sizeof(nice), "--nice=%d", options->nice);

        r = posix_spawn_file_actions_init(&actions);
        if (r != 0)
                return -r;
        r = posix_spawnattr_init(&attributes);
        if (r != 0) {
                posix_spawn_file_actions_destroy(&actions);
                return -r;
        }

        r = prepare(&actions, &attributes, worker_fd, worker_files_fd);
        if (r == 0)
                r = -posix_spawn(&pid, path, &actions, &attributes, arguments, environ);
        if (r == 0)
                *ret = pid;
        posix_spawnattr_destroy(&attributes);
        posix_spawn_file_actions_destroy(&actions);
        return r;
}

/* One end is the parent's. The worker's end is above the numbers that it will be moved to, so that moving one
 * cannot overwrite the other. */
static int new_pair(int *ret_ours, int *ret_workers) {
        static const int buffer = SOCKET_BUFFER;
        int pair[2], workers;

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return -errno;
        workers = fcntl(pair[1], F_DUPFD_CLOEXEC, WORKER_FILES_FD + 1);
        fd_close(pair[1]);
        if (workers < 0) {
                fd_close(pair[0]);
                return -errno;
        }

        (void) setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &buffer, sizeof(buffer));
        *ret_ours = pair[0];
        *ret_workers = workers;
        return 0;
}

static int start(struct worker_link *link, const struct worker_options *options) {
        _cleanup_close_ int worker_fd = -EBADF, worker_files_fd = -EBADF;
        char path[WORKER_PATH_MAX];
        int r;

        if (!options->path) {
                r = default_path(path);
                if (r < 0)
                        return r;
        }
        r = new_pair(&link->fd, &worker_fd);
        if (r < 0)
                return r;
        r = new_pair(&link->files_fd, &worker_files_fd);
        if (r < 0)
                return r;

        return spawn(options, options->path ?: path, worker_fd, worker_files_fd, &link->pid);
}

int worker_link_new(const struct worker_options *options, worker_file_fn file, void *userdata,
                    struct worker_link **ret) {
        _cleanup_(worker_link_freep) struct worker_link *link = NULL;
        int r;

        link = malloc(sizeof(*link));
        if (!link)
                return -ENOMEM;
        *link = (struct worker_link){
                .fd = -EBADF,
                .files_fd = -EBADF,
                .in_fd = -EBADF,
                .file = file,
                .table = options->table,
                .userdata = userdata,
        };

        r = start(link, options);
        if (r < 0)
                return r;
        r = receive(link, WORKER_READY, sizeof(struct worker_head),
                    now_ns() + START_TIMEOUT_SEC * NSEC_PER_SEC);
        if (r < 0)
                return r;

        *ret = TAKE_PTR(link);
        return 0;
}

/* A worker that reads from a hanging file system dies only when that answers: it is not waited for for ever,
 * but left to be reaped when this process ends. */
static void end_worker(pid_t pid) {
        _cleanup_close_ int pidfd = (int) syscall(SYS_pidfd_open, pid, 0);
        struct pollfd p = { .fd = pidfd, .events = POLLIN };

        kill(pid, SIGKILL);
        if (pidfd >= 0 && poll(&p, 1, END_TIMEOUT_MSEC) == 0)
                return;
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
                ;
}

struct worker_link *worker_link_free(struct worker_link *link) {
        if (!link)
                return NULL;

        fd_close(link->fd);
        fd_close(link->files_fd);
        fd_close(link->in_fd);
        if (link->pid > 0)
                end_worker(link->pid);
        free(link);
        return NULL;
}

pid_t worker_link_pid(const struct worker_link *link) {
        return link->pid;
}

/* ---- feeding ---- */

int worker_link_module(struct worker_link *link, uint32_t module, uint32_t kind, const uint8_t *build_id,
                       size_t build_id_bytes, const char *path, uint64_t deadline_ns) {
        struct worker_module m = { .head = { .type = WORKER_MODULE }, .module = module, .kind = kind };
        size_t length = MIN(strlen(path), (size_t) WORKER_PATH_MAX - 1);
        struct iovec parts[] = {
                { .iov_base = &m, .iov_len = sizeof(m) },
                { .iov_base = (void *) path, .iov_len = length },
                { .iov_base = (void *) "", .iov_len = 1 },
        };

        m.build_id_bytes = (uint32_t) MIN(build_id_bytes, sizeof(m.build_id));
        if (m.build_id_bytes > 0)
                memcpy(m.build_id, build_id, m.build_id_bytes);
        m.path_bytes = (uint32_t) length + 1;
        m.head.bytes = (uint32_t) sizeof(m) + m.path_bytes;
        return send_message(link, parts, ARRAY_SIZE(parts), -EBADF, deadline_ns);
}

int worker_link_map(struct worker_link *link, uint32_t space, uint32_t module, uint64_t start, uint64_t end,
                    uint64_t file_offset, uint64_t deadline_ns) {
        struct worker_map m = {
                .head = { .type = WORKER_MAP, .bytes = sizeof(m) },
                .space = space,
                .module = module,
                .start = start,
                .end = end,
                .file_offset = file_offset,
        };
        struct iovec part = { .iov_base = &m, .iov_len = sizeof(m) };

        return send_message(link, &part, 1, -EBADF, deadline_ns);
}

int worker_link_space(struct worker_link *link, uint32_t space, uint32_t from, uint64_t deadline_ns) {
        struct worker_space m = {
                .head = { .type = WORKER_SPACE, .bytes = sizeof(m) },
                .space = space,
                .from = from,
        };
        struct iovec part = { .iov_base = &m, .iov_len = sizeof(m) };

        return send_message(link, &part, 1, -EBADF, deadline_ns);
}

int worker_link_stack(struct worker_link *link, const struct worker_stack *m, const void *stack,
                      uint64_t deadline_ns) {
        size_t bytes = (size_t) m->stack_bytes + m->second_bytes;
        struct worker_stack message = *m;
        struct iovec parts[] = {
                { .iov_base = &message, .iov_len = sizeof(message) },
                { .iov_base = (void *) stack, .iov_len = bytes },
        };

        if (bytes > STACK_COPY_MAX)
                return -EINVAL;
        message.head = (struct worker_head){ WORKER_STACK, (uint32_t) (sizeof(message) + bytes) };
        return send_message(link, parts, ARRAY_SIZE(parts), -EBADF, deadline_ns);
}

/* ---- asking ---- */

/* The bytes of a sealed descriptor, with a NUL behind them. The offset of the file is shared with the worker,
 * so it is not used. */
static int read_result(int fd, size_t max, void **ret, size_t *ret_bytes) {
        _cleanup_free_ uint8_t *data = NULL;
        struct stat st;
        ssize_t n;

        if (!fd_is_sealed(fd))
                return -EPROTO;
        if (fstat(fd, &st) < 0)
                return -errno;
        if (st.st_size < 0 || (uint64_t) st.st_size > max)
                return -EPROTO;

        data = malloc((size_t) st.st_size + 1);
        if (!data)
                return -ENOMEM;
        n = fd_pread_full(fd, data, (size_t) st.st_size, 0);
        if (n < 0)
                return (int) n;
        if (n != st.st_size)
                return -EPROTO;
        data[n] = 0;

        *ret = TAKE_PTR(data);
        *ret_bytes = (size_t) n;
        return 0;
}

static int ask(struct worker_link *link, uint32_t question, uint32_t answer, int fd, uint64_t deadline_ns,
               size_t max, void **ret, size_t *ret_bytes) {
        struct worker_finish m = { .head = { .type = question, .bytes = sizeof(m) } };
        struct iovec part = { .iov_base = &m, .iov_len = sizeof(m) };
        int r;

        r = send_message(link, &part, 1, fd, deadline_ns);
        if (r < 0)
                return r;
        r = receive(link, answer, sizeof(struct worker_done), deadline_ns);
        if (r < 0)
                return r;
        if (link->in.done.error < 0)
                return link->in.done.error;
        if (link->in_fd < 0)
                return fail(link);

        r = read_result(link->in_fd, max, ret, ret_bytes);
        link->in_fd = fd_close(link->in_fd);
        return r == -EPROTO ? fail(link) : r;
}

int worker_link_finish(struct worker_link *link, uint64_t deadline_ns, void **ret, size_t *ret_bytes) {
        return ask(link, WORKER_FINISH, WORKER_LAYER, -EBADF, deadline_ns, RECORDING_SIZE_MAX, ret,
                   ret_bytes);
}

int worker_link_name(struct worker_link *link, int recording_fd, uint64_t deadline_ns, void **ret,
                     size_t *ret_bytes) {
        return ask(link, WORKER_NAME, WORKER_LAYER, recording_fd, deadline_ns, RECORDING_SIZE_MAX, ret,
                   ret_bytes);
}

int worker_link_report(struct worker_link *link, int recording_fd, uint64_t deadline_ns, char **ret) {
        void *text = NULL;
        size_t bytes;
        int r;

        r = ask(link, WORKER_REPORT, WORKER_REPORT_DONE, recording_fd, deadline_ns, REPORT_BYTES_MAX, &text,
                &bytes);
        if (r < 0)
                return r;

        *ret = text;
        return 0;
}
