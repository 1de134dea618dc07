/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* READY=1 to systemd by hand (sd_notify(3)), so that the services need no library. */
static inline void notify_ready(void) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        const char *path = getenv("NOTIFY_SOCKET"), text[] = "READY=1";
        size_t length;
        int fd;

        if (!path)
                return;
        length = strlen(path);
        if (length >= sizeof(address.sun_path))
                return;
        memcpy(address.sun_path, path, length);
        if (path[0] == '@')
                address.sun_path[0] = '\0';
        fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        if (fd < 0)
                return;
        (void) !sendto(fd, text, sizeof(text) - 1, 0, (struct sockaddr *) &address,
                       (socklen_t) (offsetof(struct sockaddr_un, sun_path) + length));
        close(fd);
}
