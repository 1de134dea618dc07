/* SPDX-License-Identifier: GPL-2.0-or-later */

/* startprof-worker: reads strangers' files for startprofd and startprof, in a sandbox. Never started by hand. */

#include <errno.h>
#include <getopt.h>
#include <unistd.h>

#include "common/log.h"
#include "common/parse.h"
#include "worker/channel.h"
#include "worker/requests.h"
#include "worker/sandbox.h"

enum { NICE_MAX = 19 };

static int parse_options(int argc, char **argv, struct sandbox_options *ret) {
        static const struct option options[] = {
                { "uid", required_argument, NULL, 'u' },
                { "gid", required_argument, NULL, 'g' },
                { "nice", required_argument, NULL, 'n' },
                {},
        };
        uint32_t uid = 0, gid = 0, nice = 0;
        int c, r = 0;

        while (r == 0 && (c = getopt_long(argc, argv, "", options, NULL)) >= 0)
                switch (c) {
                case 'u': r = parse_u32(optarg, &uid); break;
                case 'g': r = parse_u32(optarg, &gid); break;
                case 'n': r = parse_u32(optarg, &nice); break;
                default: r = -EINVAL;
                }
        if (r < 0 || optind != argc || nice > NICE_MAX)
                return -EINVAL;

        *ret = (struct sandbox_options){ .uid = uid, .gid = gid, .nice = (int) nice };
        return 0;
}

static int serve(struct channel *channel) {
        static const struct worker_head ready = { .type = WORKER_READY, .bytes = sizeof(ready) };
        _cleanup_(requests_freep) struct requests *requests = requests_new(channel);
        const struct worker_head *message;
        int r, fd;

        if (!requests)
                return -ENOMEM;
        r = channel_send(channel, &ready, -EBADF);
        if (r < 0)
                return r;

        while ((r = channel_receive(channel, &message, &fd)) > 0) {
                r = requests_handle(requests, message, fd);
                if (r < 0)
                        break;
        }
        return r;
}

static int run(int argc, char **argv) {
        _cleanup_(channel_freep) struct channel *channel = NULL;
        struct sandbox_options options;
        int r;

        r = parse_options(argc, argv, &options);
        if (r == 0)
                r = channel_new(WORKER_FD, WORKER_FILES_FD, &channel);
        if (r < 0) {
                log_error("startprof-worker is started by startprof and startprofd.");
                return 2;
        }

        r = sandbox_enter(&options);
        if (r < 0) {
                log_error_errno(r, "Cannot enter the sandbox");
                return 1;
        }

        r = serve(channel);
        if (r == -EPIPE || r == -ENOTCONN) /* the parent is gone: nobody to tell */
                return 0;
        if (r < 0)
                log_error_errno(r, "Cannot go on");
        return r < 0;
}

/* Leaves at once: what runs at exit may want system calls that are gone. */
int main(int argc, char **argv) {
        _exit(run(argc, argv));
}
