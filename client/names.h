/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "client/options.h"
#include "proto/recording.h"

/*
 * Better names for the frames of a recording, from files that the caller may open. The files are parsed by
 * startprof-worker: this program only opens them.
 */

/* Is there a frame of a file, or with `kernel` of the kernel, without a name, so that looking could help? */
bool names_missing(const struct recording *r, bool kernel);
/* Has the kernel frames, and none of them a name? */
bool names_missing_of_kernel(const struct recording *r);

/* Whom root's children become: the package's user, or nobody. Anybody else's stay who the caller is. */
void names_unprivileged(uid_t *ret_uid, gid_t *ret_gid);

/*
 * Looks for them. data, bytes: the recording's file. *ret is a layer to append, malloc()ed.
 * Errors of worker_link_new() and worker_link_name(), -ENOMEM.
 */
int names_find(const struct recording *r, const void *data, size_t bytes, const struct options *options,
               void **ret, size_t *ret_bytes);
