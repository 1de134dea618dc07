/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/macro.h"
#include "proto/worker_msg.h"

/*
 * The worker's ends of the two sockets. Messages may carry copies of stacks, and those secrets: they lie in
 * one locked buffer that is never dumped, and are wiped when done with.
 */
struct channel;

/* fd, files_fd: borrowed. Before the sandbox closes. -ENOTSOCK: not started by a parent; -ENOMEM. */
int channel_new(int fd, int files_fd, struct channel **ret);
struct channel *channel_free(struct channel *c);
DEFINE_CLEANUP(struct channel *, channel_free);

/*
 * Waits for the next message; the one before is wiped, its descriptor closed. *ret_fd: the descriptor that
 * came along (borrowed until the next call), or negative.
 *
 * 1          a message whose head.bytes is its size
 * 0          the parent has closed
 * -EBADMSG   malformed
 */
int channel_receive(struct channel *c, const struct worker_head **ret, int *ret_fd);
/* fd: sent along unless negative. Errors of sendmsg(2). */
int channel_send(struct channel *c, const struct worker_head *message, int fd);
/* Asks the parent for a file and waits; answers as debug_file_ask_fn. The message received before stays.
 * -EBADMSG, -ENOTCONN: the parent is broken or gone. */
/* Gives the parent a table for later workers; fd is a sealed memory file, borrowed. Errors of sendmsg(2). */
int channel_give_table(struct channel *c, uint32_t module, const char *key, int fd);
int channel_ask_file(struct channel *c, uint32_t module, enum worker_role role, uint32_t attempt,
                     const char *name, int *ret_fd, char path[static WORKER_PATH_MAX]);
