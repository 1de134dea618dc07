/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/peer.h"

#include <errno.h>
#include <grp.h>
#include <sys/socket.h>

#include "common/macro.h"

#define PROFILER_GROUP "startprof"

enum { GROUPS_MAX = 65536 }; /* NGROUPS_MAX of the kernel */

static int has_group(int fd, gid_t wanted) {
        _cleanup_free_ gid_t *groups = NULL;
        socklen_t bytes = 64 * sizeof(gid_t);

        for (;;) {
                gid_t *more = realloc(groups, bytes);

                if (!more)
                        return -ENOMEM;
                groups = more;
                if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &bytes) >= 0)
                        break;
                /* ERANGE: bytes is what it takes now. */
                if (errno != ERANGE || bytes > GROUPS_MAX * sizeof(gid_t))
                        return -errno;
        }
        for (size_t i = 0; i < bytes / sizeof(gid_t); i++)
                if (groups[i] == wanted)
                        return 1;
        return 0;
}

int peer_of(int socket_fd, struct peer *ret) {
        socklen_t bytes = sizeof(struct ucred);
        const struct group *group;
        struct ucred ucred;
        int r;

        if (getsockopt(socket_fd, SOL_SOCKET, SO_PEERCRED, &ucred, &bytes) < 0)
                return -errno;
        *ret = (struct peer){ .uid = ucred.uid, .may_profile = ucred.uid == 0 };
        if (ret->may_profile)
                return 0;
        group = getgrnam(PROFILER_GROUP);
        if (!group)
                return 0;
        r = ucred.gid == group->gr_gid ? 1 : has_group(socket_fd, group->gr_gid);
        if (r < 0)
                return r;
        ret->may_profile = r > 0;
        return 0;
}
