/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/address.h"

#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "common/macro.h"

static void unix_text(struct buf *b, const char *path, size_t bytes) {
        size_t n;

        buf_puts(b, "unix:");
        if (bytes == 0)
                return;
        if (path[0] == '\0') {
                buf_putc(b, '@');
                path++;
                bytes--;
        }
        n = strnlen(path, bytes);
        buf_append(b, path, n);
}

static void inet_text(struct buf *b, const void *address, size_t bytes) {
        char text[INET6_ADDRSTRLEN];
        struct sockaddr_in6 in6;
        struct sockaddr_in in;

        if (bytes >= sizeof(in6)) {
                memcpy(&in6, address, sizeof(in6));
                if (in6.sin6_family == AF_INET6 && inet_ntop(AF_INET6, &in6.sin6_addr, text, sizeof(text))) {
                        buf_printf(b, "inet6:[%s]:%u", text, ntohs(in6.sin6_port));
                        return;
                }
        }
        memcpy(&in, address, sizeof(in));
        if (in.sin_family == AF_INET && inet_ntop(AF_INET, &in.sin_addr, text, sizeof(text)))
                buf_printf(b, "inet:%s:%u", text, ntohs(in.sin_port));
        else
                buf_printf(b, "family:%u", in.sin_family);
}

void address_text(struct buf *b, const void *address, size_t bytes) {
        sa_family_t family;

        if (bytes < sizeof(family))
                return;
        memcpy(&family, address, sizeof(family));
        if (family == AF_UNIX)
                unix_text(b, (const char *) address + offsetof(struct sockaddr_un, sun_path),
                          bytes - offsetof(struct sockaddr_un, sun_path));
        else if (family == AF_NETLINK)
                buf_puts(b, "netlink");
        else if (bytes >= sizeof(struct sockaddr_in))
                inet_text(b, address, bytes);
        else
                buf_printf(b, "family:%u", family);
}
