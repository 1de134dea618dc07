/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolize/debuginfod.h"

#include <dirent.h>
#include <dlfcn.h>
#include <elf.h>
#include <elfutils/debuginfod.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/macro.h"

enum {
        URLS_FILES_MAX = 64,
        PROGRESS_MSEC = 100, /* between two messages about one file */
        END_SECONDS = 2, /* for a child that was told to end; it looks up once a second */
        CHILD_NO_LIBRARY = 3, /* exit status */
};

/* From the child; smaller than PIPE_BUF, so never half of one. */
struct report {
        uint32_t index;
        uint32_t result; /* enum debuginfod_result; NOT_TRIED: only how far it is */
        uint64_t bytes, total;
};

static uint64_t now_ns(void) {
        struct timespec ts = {};

        (void) clock_gettime(CLOCK_MONOTONIC, &ts);
        return (uint64_t) ts.tv_sec * NSEC_PER_SEC + (uint64_t) ts.tv_nsec;
}

/* ---- the servers ---- */

static int is_urls_file(const struct dirent *entry) {
        return endswith(entry->d_name, ".urls") != NULL;
}

/* Words between white space of any kind become words between single spaces. */
static void add_words(struct buf *urls, char *text) {
        char *state = NULL;

        for (char *word = strtok_r(text, " \t\r\n", &state); word; word = strtok_r(NULL, " \t\r\n", &state))
                buf_printf(urls, "%s%s", urls->size > 0 ? " " : "", word);
}

static void add_file(struct buf *urls, const char *directory, const char *name) {
        _cleanup_free_ char *text = NULL;
        _cleanup_close_ int dir_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        if (dir_fd >= 0 && read_file_at(dir_fd, name, DEBUGINFOD_URLS_MAX, &text, NULL) == 0 &&
            urls->size + strlen(text) <= DEBUGINFOD_URLS_MAX)
                add_words(urls, text);
}

int debuginfod_servers(const char *directory, struct buf *urls) {
        const char *variable = getenv("DEBUGINFOD_URLS");
        struct dirent **entries = NULL;
        int n;

        if (variable) {
                _cleanup_free_ char *text = strndup(variable, DEBUGINFOD_URLS_MAX);

                if (!text)
                        return -ENOMEM;
                add_words(urls, text);
                return buf_error(urls);
        }

        n = scandir(directory, &entries, is_urls_file, alphasort);
        for (int i = 0; i < n; i++) {
                if (i < URLS_FILES_MAX)
                        add_file(urls, directory, entries[i]->d_name);
                free(entries[i]);
        }
        free(entries);
        return buf_error(urls);
}

/* ---- the child ---- */

struct library {
        __typeof__(debuginfod_begin) *begin;
        __typeof__(debuginfod_end) *end;
        __typeof__(debuginfod_find_debuginfo) *find;
        __typeof__(debuginfod_set_progressfn) *set_progress;
        __typeof__(debuginfod_set_user_data) *set_user_data;
};

struct child {
        struct library library;
        int pipe_fd;
        uint32_t index; /* of the file that is being fetched */
        uint64_t said_ns; /* when the last progress was told */
};

static volatile sig_atomic_t told_to_end;

/* libdebuginfod removes what it has of a file when it is asked to stop; it may hang in the resolver instead. */
static void on_terminate(int number) {
        told_to_end = 1;
        alarm(END_SECONDS);
}

static bool load(struct library *l) {
        void *handle = dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_GLOBAL);

        if (!handle)
                return false;
        l->begin = (__typeof__(l->begin)) dlsym(handle, "debuginfod_begin");
        l->end = (__typeof__(l->end)) dlsym(handle, "debuginfod_end");
        l->find = (__typeof__(l->find)) dlsym(handle, "debuginfod_find_debuginfo");
        l->set_progress = (__typeof__(l->set_progress)) dlsym(handle, "debuginfod_set_progressfn");
        l->set_user_data = (__typeof__(l->set_user_data)) dlsym(handle, "debuginfod_set_user_data");
        return l->begin && l->end && l->find && l->set_progress && l->set_user_data;
}

static void tell(const struct child *c, enum debuginfod_result result, long bytes, long total) {
        struct report report = {
                .index = c->index,
                .result = result,
                .bytes = (uint64_t) MAX(bytes, 0L),
                .total = (uint64_t) MAX(total, 0L),
        };

        (void) fd_write_full(c->pipe_fd, &report, sizeof(report));
}

/* The callback is given the client only, and a library that was loaded has no name to call it by. */
static struct child *child_of(debuginfod_client *client) {
        __typeof__(debuginfod_get_user_data) *get =
                (__typeof__(get)) dlsym(RTLD_DEFAULT, "debuginfod_get_user_data");

        return get ? get(client) : NULL;
}

static int on_progress(debuginfod_client *client, long bytes, long total) {
        struct child *c = child_of(client);
        uint64_t now = now_ns();

        if (c && now - c->said_ns >= PROGRESS_MSEC * NSEC_PER_MSEC) {
                c->said_ns = now;
                tell(c, DEBUGINFOD_NOT_TRIED, bytes, total);
        }
        return told_to_end;
}

/* What a broken server or a captive portal sent would be kept and taken for the file from now on. */
static enum debuginfod_result check(int fd, const char *path) {
        char magic[SELFMAG];

        if (fd_pread_full(fd, magic, sizeof(magic), 0) == sizeof(magic) &&
            memcmp(magic, ELFMAG, SELFMAG) == 0)
                return DEBUGINFOD_FETCHED;
        if (path)
                (void) unlink(path);
        return DEBUGINFOD_FAILED;
}

static enum debuginfod_result fetch_one(struct child *c, debuginfod_client *client,
                                        const struct build_id *id) {
        _cleanup_close_ int fd = -EBADF;
        _cleanup_free_ char *path = NULL;

        fd = c->library.find(client, id->bytes, id->size, &path);
        if (fd >= 0)
                return check(fd, path);
        return fd == -ENOENT ? DEBUGINFOD_NOT_FOUND : DEBUGINFOD_FAILED;
}

static bool become(uid_t uid, gid_t gid) {
        if (geteuid() != 0 || uid == 0)
                return true;
        return setgroups(0, NULL) == 0 && setresgid(gid, gid, gid) == 0 && setresuid(uid, uid, uid) == 0;
}

/* Nothing of the parent's stays open: whoever reads its output must not wait for this one. */
static bool keep_only(int *pipe_fd) {
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);

        if (null < 0)
                return false;
        for (int fd = 0; fd < 3; fd++)
                if (dup2(null, fd) < 0)
                        return false;
        if (*pipe_fd != 3 && dup2(*pipe_fd, 3) < 0)
                return false;
        *pipe_fd = 3;
        return close_range(4, ~0U, 0) == 0;
}

static void set_up_signals(void) {
        struct sigaction action = { .sa_handler = on_terminate };
        sigset_t none;

        (void) sigaction(SIGTERM, &action, NULL);
        (void) signal(SIGINT, SIG_IGN);
        (void) signal(SIGALRM, SIG_DFL);
        sigemptyset(&none);
        (void) sigprocmask(SIG_SETMASK, &none, NULL);
}

static bool set_up_environment(const struct debuginfod_options *options) {
        if (options->cache && setenv("DEBUGINFOD_CACHE_PATH", options->cache, 1) < 0)
                return false;
        return setenv("DEBUGINFOD_URLS", options->urls, 1) == 0;
}

static int run_child(const struct debuginfod_options *options, const struct build_id *ids, size_t count,
                     int pipe_fd) {
        struct child c = { .pipe_fd = pipe_fd };
        debuginfod_client *client;

        set_up_signals();
        if (!keep_only(&c.pipe_fd) || !set_up_environment(options) || !become(options->uid, options->gid))
                return EXIT_FAILURE;
        if (!load(&c.library))
                return CHILD_NO_LIBRARY;
        client = c.library.begin();
        if (!client)
                return EXIT_FAILURE;

        c.library.set_user_data(client, &c);
        c.library.set_progress(client, on_progress);
        for (; c.index < count && !told_to_end; c.index++) {
                enum debuginfod_result result = fetch_one(&c, client, &ids[c.index]);

                tell(&c, result, 0, 0);
        }
        c.library.end(client);
        return EXIT_SUCCESS;
}

/* ---- the parent ---- */

struct parent {
        int pipe_fd, signal_fd; /* owned */
        sigset_t old_mask;
        pid_t pid;
};

static int start(struct parent *p, const struct debuginfod_options *options, const struct build_id *ids,
                 size_t count) {
        int fds[2];

        if (pipe2(fds, O_CLOEXEC) < 0)
                return -errno;
        p->pipe_fd = fds[0];
        p->pid = fork();
        if (p->pid < 0) {
                int error = -errno;

                fd_close(fds[1]);
                return error;
        }
        if (p->pid == 0)
                _exit(run_child(options, ids, count, fds[1]));
        fd_close(fds[1]);
        return 0;
}

/* 1: a message; 0: the child is done; -ETIME, -EINTR, errors of poll(2). */
static int receive(const struct parent *p, uint64_t deadline_ns, struct report *ret) {
        struct pollfd fds[] = { { .fd = p->pipe_fd, .events = POLLIN },
                                { .fd = p->signal_fd, .events = POLLIN } };
        uint64_t now = now_ns();
        uint64_t left = deadline_ns > now ? deadline_ns - now : 0;
        struct timespec timeout = { .tv_sec = (time_t) (left / NSEC_PER_SEC),
                                    .tv_nsec = (long) (left % NSEC_PER_SEC) };
        struct signalfd_siginfo info;
        int n = ppoll(fds, ARRAY_SIZE(fds), &timeout, NULL);

        if (n < 0)
                return errno == EINTR ? receive(p, deadline_ns, ret) : -errno;
        if (n == 0)
                return -ETIME;
        if (fds[1].revents) {
                (void) fd_read_full(p->signal_fd, &info, sizeof(info));
                return -EINTR;
        }
        return fd_read_full(p->pipe_fd, ret, sizeof(*ret)) == sizeof(*ret);
}

/* Not waited for when it is told to end: it does so by itself within END_SECONDS, and the report is due now. */
static int finish(const struct parent *p, int error) {
        int status = 0;

        if (error < 0) {
                (void) kill(p->pid, SIGTERM);
                return error;
        }
        if (waitpid(p->pid, &status, 0) < 0)
                return -errno;
        return WIFEXITED(status) && WEXITSTATUS(status) == CHILD_NO_LIBRARY ? -ENOSYS : 0;
}

static int follow(const struct parent *p, const struct debuginfod_options *options, size_t count,
                  debuginfod_progress_fn progress, void *userdata, enum debuginfod_result *results) {
        struct report report = {};
        int r;

        while ((r = receive(p, options->deadline_ns, &report)) > 0) {
                if (report.index >= count || report.result > DEBUGINFOD_FAILED)
                        continue;
                if (report.result == DEBUGINFOD_NOT_TRIED)
                        progress(userdata, report.index, report.bytes, report.total);
                else
                        results[report.index] = report.result;
        }
        return r;
}

int debuginfod_fetch(const struct debuginfod_options *options, const struct build_id *ids, size_t count,
                     debuginfod_progress_fn progress, void *userdata, enum debuginfod_result *results) {
        struct parent p = { .pipe_fd = -EBADF, .signal_fd = -EBADF };
        sigset_t interrupt;
        int r;

        for (size_t i = 0; i < count; i++)
                results[i] = DEBUGINFOD_NOT_TRIED;
        sigemptyset(&interrupt);
        sigaddset(&interrupt, SIGINT);
        (void) sigprocmask(SIG_BLOCK, &interrupt, &p.old_mask);

        p.signal_fd = signalfd(-1, &interrupt, SFD_CLOEXEC | SFD_NONBLOCK);
        r = p.signal_fd < 0 ? -errno : start(&p, options, ids, count);
        if (r == 0)
                r = finish(&p, follow(&p, options, count, progress, userdata, results));

        fd_close(p.pipe_fd);
        fd_close(p.signal_fd);
        (void) sigprocmask(SIG_SETMASK, &p.old_mask, NULL);
        return r;
}
