/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/peer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/macro.h"
#include "report/syscalls.h"

bool peer_sample_is_call(const struct rec_sample *s, const char *name) {
        const char *call = syscall_name(s->syscall);

        return call && streq(call, name);
}

/* 0: the address has none. */
static unsigned port_of(const struct wait_object *o) {
        const char *colon = strrchr(o->path, ':');

        return o->kind == REC_OBJECT_TCP || o->kind == REC_OBJECT_UDP
                       ? (colon ? (unsigned) strtoul(colon + 1, NULL, 10) : 0)
                       : 0;
}

static bool contains_any(const char *path, const char *const *parts, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (strstr(path, parts[i]))
                        return true;
        return false;
}

static enum peer peer_of_unix(const struct rec_sample *s, const struct wait_object *o) {
        static const char *const resolvers[] = { "/io.systemd.Resolve" };
        static const char *const names[] = { "/nscd/socket", "/systemd/userdb/", "/sss/pipes/", "/winbindd",
                                             "/nslcd/socket" };
        static const char *const buses[] = { "/system_bus_socket", "/private", "/bus" };
        size_t length = strlen(o->path);

        if (length == strlen("unix:") || length == 0)
                return PEER_NONE; /* a pair of the service's own, most often */
        if (contains_any(o->path, resolvers, ARRAY_SIZE(resolvers)))
                return PEER_DNS;
        if (contains_any(o->path, names, ARRAY_SIZE(names)))
                return PEER_NAMES;
        for (size_t i = 0; i < ARRAY_SIZE(buses); i++)
                if (endswith(o->path, buses[i]))
                        return PEER_DBUS;
        return peer_sample_is_call(s, "connect") ? PEER_CONNECT : PEER_SOCKET;
}

static enum peer peer_of_inet(const struct rec_sample *s, const struct wait_object *o) {
        switch (port_of(o)) {
        case 0: return PEER_NONE; /* nobody is at the other end */
        case 53:
        case 853:
        case 5353: return PEER_DNS;
        case 389:
        case 636:
        case 3268:
        case 3269: return PEER_NAMES; /* LDAP */
        default: break;
        }
        if (o->kind == REC_OBJECT_TCP && o->state == TCP_LISTEN)
                return PEER_NONE;
        return peer_sample_is_call(s, "connect") || (o->kind == REC_OBJECT_TCP && o->state == TCP_SYN_SENT)
                       ? PEER_CONNECT
                       : PEER_SOCKET;
}

static enum peer peer_of(const struct rec_sample *s, const struct wait_object *o) {
        if (streq(o->path, "/dev/random") || streq(o->path, "/dev/hwrng"))
                return PEER_ENTROPY;
        switch (o->kind) {
        case REC_OBJECT_TCP:
        case REC_OBJECT_UDP: return peer_of_inet(s, o);
        case REC_OBJECT_UNIX: return peer_of_unix(s, o);
        case REC_OBJECT_PIPE: return *o->path && !startswith(o->path, "pipe:") ? PEER_FIFO : PEER_NONE;
        default: return PEER_NONE;
        }
}

int peers_init(const struct recording *r, struct peers *ret) {
        struct peers p = PEERS_NULL;
        int error = wait_objects_join(r, &p.objects);

        if (error < 0)
                return error;
        p.kinds = calloc((size_t) r->n_samples + 1, sizeof(*p.kinds));
        if (!p.kinds) {
                peers_done(&p);
                return -ENOMEM;
        }
        for (uint32_t i = 0; i < r->n_samples; i++) {
                struct wait_object o;

                if (p.objects[i] == REC_NONE)
                        continue;
                wait_object_get(r, p.objects[i], &o);
                p.kinds[i] = (uint8_t) peer_of(r->samples + i, &o);
                p.counts[p.kinds[i]]++;
        }
        *ret = p;
        return 0;
}

void peers_done(struct peers *p) {
        free(p->objects);
        free(p->kinds);
        *p = PEERS_NULL;
}
