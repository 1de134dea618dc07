/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "common/macro.h"
#include "worker/channel.h"

/* What a parent may ask of the worker (proto/worker_msg.h), one message after the other. */
struct requests;

/* channel: borrowed; answers go there. NULL: no memory. */
struct requests *requests_new(struct channel *channel);
struct requests *requests_free(struct requests *r);
DEFINE_CLEANUP(struct requests *, requests_free);

/* Handles one message; message_fd: came along, borrowed, or negative. What fails inside a question is its
 * answer; an error here means that the parent cannot be understood or answered: -EBADMSG, -ENOMEM, errors of
 * sendmsg(2). */
int requests_handle(struct requests *r, const struct worker_head *head, int message_fd);
