/* SPDX-License-Identifier: GPL-2.0-or-later */

/* startprofd(8): options, the socket, the event loop. */

#include <errno.h>
#include <getopt.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/log.h"
#include "common/macro.h"
#include "daemon/server.h"

#define STATE_DIRECTORY "/var/lib/startprof"
#define WORKER_USER     "startprof"
#define IDLE_USEC       (15 * USEC_PER_SEC) /* longer than a person needs for the next command */

enum { LISTEN_BACKLOG = 64 };

struct options {
        const char *socket; /* NULL: handed over by systemd */
        const char *state_directory;
        const char *worker_user;
};

static const char help[] =
        "startprofd [OPTIONS]\n"
        "\n"
        "Records starts of systemd units for startprof(1). systemd starts it by startprofd.socket.\n"
        "\n"
        "  --socket=PATH           listen on PATH instead of the socket of systemd, and do not leave when "
        "idle\n"
        "  --state-directory=DIR   keep recordings in DIR (default: $STATE_DIRECTORY, " STATE_DIRECTORY ")\n"
        "  --worker-user=USER      who the sandboxed worker becomes (default: " WORKER_USER ")\n"
        "  --debug                 tell more\n"
        "  --help, --version\n";

/* 1 go on; 0 done; negative: said what is wrong. */
static int parse_options(int argc, char **argv, struct options *o) {
        enum { OPT_SOCKET = 256, OPT_STATE, OPT_WORKER, OPT_DEBUG, OPT_HELP, OPT_VERSION };
        static const struct option table[] = {
                { "socket", required_argument, NULL, OPT_SOCKET },
                { "state-directory", required_argument, NULL, OPT_STATE },
                { "worker-user", required_argument, NULL, OPT_WORKER },
                { "debug", no_argument, NULL, OPT_DEBUG },
                { "help", no_argument, NULL, OPT_HELP },
                { "version", no_argument, NULL, OPT_VERSION },
                {},
        };
        int c;

        while ((c = getopt_long(argc, argv, "", table, NULL)) >= 0)
                switch (c) {
                case OPT_SOCKET: o->socket = optarg; break;
                case OPT_STATE: o->state_directory = optarg; break;
                case OPT_WORKER: o->worker_user = optarg; break;
                case OPT_DEBUG: log_set_max_level(LOG_LEVEL_DEBUG); break;
                case OPT_HELP: fputs(help, stdout); return 0;
                case OPT_VERSION: puts("startprofd " STARTPROF_VERSION); return 0;
                default: return -EINVAL; /* getopt_long() said it */
                }
        if (optind < argc) {
                log_error("startprofd takes no arguments, only options: see startprofd --help");
                return -EINVAL;
        }
        return 1;
}

static int listen_on(const char *path) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        _cleanup_close_ int fd = -EBADF;
        mode_t before;
        int r;

        if (strlen(path) >= sizeof(address.sun_path))
                return log_error_errno(-ENAMETOOLONG, "cannot listen on %s", path);
        memcpy(address.sun_path, path, strlen(path));
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return log_error_errno(-errno, "cannot make a socket");
        (void) unlink(path);
        /* Everybody may connect: peers are judged by who they are, so that strangers get an answer. */
        before = umask(0111);
        r = bind(fd, (struct sockaddr *) &address, sizeof(address));
        r = r < 0 ? -errno : 0;
        (void) umask(before);
        if (r >= 0 && listen(fd, LISTEN_BACKLOG) < 0)
                r = -errno;
        if (r < 0)
                return log_error_errno(r, "cannot listen on %s", path);
        return TAKE_FD(fd);
}

static int inherited_socket(void) {
        int r = sd_listen_fds(true);

        if (r == 1 && sd_is_socket_unix(SD_LISTEN_FDS_START, SOCK_STREAM, 1, NULL, 0) > 0)
                return SD_LISTEN_FDS_START;
        log_error("no socket from systemd: startprofd.socket starts this program; --socket=PATH is for "
                  "trying it out");
        return -ENOTSOCK;
}

static int find_worker_user(const char *name, struct server_options *o) {
        /* An option's argument is never NULL, which the analyzer does not know. */
        const struct passwd *user = getpwnam(name); // NOLINT(clang-analyzer-core.NonNullParamChecker)

        if (!user) {
                log_error("no user %s: run systemd-sysusers, or give --worker-user=", name);
                return -ENOENT;
        }
        o->worker_uid = user->pw_uid;
        o->worker_gid = user->pw_gid;
        return 0;
}

/* Stack bytes may hold secrets: no core, no ptrace of equals, no swap. */
static void guard_memory(void) {
        (void) prctl(PR_SET_DUMPABLE, 0);
        if (mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) < 0)
                log_debug("memory is not locked: %m");
}

static int add_signals(sd_event *event) {
        sigset_t signals;
        int r;

        sigemptyset(&signals);
        sigaddset(&signals, SIGTERM);
        sigaddset(&signals, SIGINT);
        if (sigprocmask(SIG_BLOCK, &signals, NULL) < 0)
                return -errno;
        r = sd_event_add_signal(event, NULL, SIGTERM, NULL, NULL);
        return r < 0 ? r : sd_event_add_signal(event, NULL, SIGINT, NULL, NULL);
}

static int serve(const struct options *o) {
        _cleanup_(sd_event_unrefp) sd_event *event = NULL;
        _cleanup_(server_freep) struct server *server = NULL;
        struct server_options options = {
                .listen_fd = -EBADF,
                .state_directory = o->state_directory,
                .idle_usec = o->socket ? 0 : IDLE_USEC,
        };
        int r;

        r = find_worker_user(o->worker_user, &options);
        if (r < 0)
                return r;
        r = sd_event_new(&event);
        if (r >= 0)
                r = add_signals(event);
        if (r < 0)
                return log_error_errno(r, "no event loop");
        options.listen_fd = o->socket ? listen_on(o->socket) : inherited_socket();
        if (options.listen_fd < 0)
                return options.listen_fd;
        r = server_new(event, &options, &server);
        if (r < 0)
                return r;
        (void) sd_notify(false, "READY=1");
        r = sd_event_loop(event);
        if (r < 0)
                return log_error_errno(r, "the event loop failed");
        (void) sd_notify(false, "STOPPING=1");
        if (o->socket)
                (void) unlink(o->socket);
        return 0;
}

int main(int argc, char **argv) {
        struct options options = {
                .state_directory = getenv("STATE_DIRECTORY") ?: STATE_DIRECTORY,
                .worker_user = WORKER_USER,
        };
        int r;

        (void) signal(SIGPIPE, SIG_IGN);
        r = parse_options(argc, argv, &options);
        if (r > 0) {
                guard_memory();
                r = serve(&options);
        }
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
