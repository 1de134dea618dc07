/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stddef.h>

#include "proto/recording.h"
#include "worker/channel.h"
#include "worker/modules.h"
#include "worker/space.h"
#include "worker/stacks.h"

/* From frames to the NAMES and SYMBOLS of a recording. Each result is a layer for recording_writer_layer(),
 * malloc()ed. -ENOMEM, -EFBIG. */

/* At the end of a capture: the stacks, a name or a reason for each frame, a line for each sampled module. */
int naming_capture(struct modules *modules, const struct spaces *spaces, const struct stacks *stacks,
                   void **ret, size_t *ret_bytes);

/* Later, or on another machine: only what is better than what the recording has. Files are asked for through
 * the channel, and taken by their build-id only. */
int naming_recording(struct channel *channel, const struct recording *recording, void **ret,
                     size_t *ret_bytes);
