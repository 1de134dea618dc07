/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdint.h>

#include "common/macro.h"
#include "proto/worker_msg.h"
#include "worker/channel.h"

/*
 * The user's debug directories by build-id: the files in them may have any names. The parent hands out one file after
 * the other, once; each is looked at and closed again.
 */
struct debug_index;

enum { DEBUG_INDEX_FILES_MAX = 8192 };

/* module: any, since the parent wants one in a question. Asks for all files. -ENOMEM; -EBADMSG, -ENOTCONN: the parent is
 * broken or gone. */
int debug_index_new(struct channel *channel, uint32_t module, struct debug_index **ret);
struct debug_index *debug_index_free(struct debug_index *index);
DEFINE_CLEANUP(struct debug_index *, debug_index_free);

/* The number to ask for to get the debug file of the build-id (in hex). -ENXIO: there is none. */
int debug_index_find(const struct debug_index *index, const char *build_id, uint32_t *ret);
