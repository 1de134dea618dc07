/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* Who is at the other end of a socket, as the kernel knows it since connect(2) (unix(7), SO_PEERCRED). */
struct peer {
        uid_t uid;
        bool may_profile; /* uid 0, or a member of the group startprof */
};

/* Errors of getsockopt(2). Supplementary groups by SO_PEERGROUPS (Linux 4.13). */
int peer_of(int socket_fd, struct peer *ret);
