/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/recording.h"

/* What samples of waits were waiting for: the file or the socket behind the descriptor of the call, which the recording has
 * as a path of kind OBJECT right behind the wait. */

struct wait_object {
        uint32_t kind; /* enum rec_object_kind */
        uint32_t state; /* of TCP: net/tcp_states.h */
        int32_t result; /* of the call: 0 of a poll(2) is a time-out */
        const char *
                path; /* whole if it is known, else its last part; "inet:192.0.2.1:80", "unix:/run/x"; may be "" */
};

enum { TCP_ESTABLISHED = 1, TCP_SYN_SENT = 2, TCP_LISTEN = 10 };

/* Per sample the index of its path, REC_NONE: none. Owned by the caller. 0, -ENOMEM. */
int wait_objects_join(const struct recording *r, uint32_t **ret);
void wait_object_get(const struct recording *r, uint32_t path, struct wait_object *ret);
/* "127.0.0.53:53", "/run/x": for people. */
const char *wait_object_address(const struct wait_object *o);
