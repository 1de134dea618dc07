/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "report/wait_object.h"

/* Whom a wait was for. An idle server waits for none of these: for a socket that listens, or in epoll. */

enum peer {
        PEER_NONE,
        PEER_DNS,
        PEER_NAMES,
        PEER_DBUS,
        PEER_ENTROPY,
        PEER_CONNECT,
        PEER_SOCKET,
        PEER_FIFO,
        PEER_MAX,
};

struct peers {
        uint32_t *objects; /* owned; per sample, see wait_objects_join() */
        uint8_t *kinds; /* owned; per sample, enum peer */
        uint32_t counts[PEER_MAX]; /* samples of each */
};

#define PEERS_NULL                                                                                          \
        (struct peers) {                                                                                    \
        }

int peers_init(const struct recording *r, struct peers *ret); /* 0, -ENOMEM */
void peers_done(struct peers *p);
bool peer_sample_is_call(const struct rec_sample *s, const char *name);
