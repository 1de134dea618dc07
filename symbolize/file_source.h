/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/macro.h"
#include "proto/recording.h"
#include "proto/worker_link.h"

/*
 * Files for a worker that names an existing recording: looked for on this machine, by the paths and build-ids
 * of the recording, with the rights of the caller. Only regular files are opened, and only for reading;
 * whether one is the right one is for the worker to judge.
 *
 * Debug files lie in the directories of --debug-dir (as NAME.dbg, NAME.debug, the linked name, or below
 * .build-id/), beside the file, in .debug/ there, in /usr/lib/debug, and in the caches that debuginfod clients
 * keep: $DEBUGINFOD_CACHE_PATH, $XDG_CACHE_HOME/debuginfod_client, ~/.cache/debuginfod_client,
 * ~/.debuginfod_client_cache, and ours; under sudo(8) also in those of the user who called it, with that user's
 * rights. These caches are only read, and whether a server is configured or not.
 */
struct file_source;

/* Where startprof itself keeps what it fetched for root. */
#define FILE_SOURCE_OWN_CACHE "/var/cache/startprof/debuginfod"

/* recording is borrowed and must outlive the source. debug_dirs: copied; what is no directory is left
 * out. -ENOMEM. */
int file_source_new(const struct recording *recording, const char *const *debug_dirs, size_t n_debug_dirs,
                    struct file_source **ret);
/* Lets the kernel's frames be named, too: by /proc/kallsyms, if the recording is of this very boot, since the kernel
 * lies elsewhere in each. */
void file_source_allow_kernel(struct file_source *s);
struct file_source *file_source_free(struct file_source *s);
DEFINE_CLEANUP(struct file_source *, file_source_free);

/* A worker_file_fn: hand it to worker_link_new() with the source as its userdata. */
int file_source_open(void *source, uint32_t module, enum worker_role role, uint32_t attempt,
                     const char *name, int *ret_fd, char path[static WORKER_PATH_MAX]);
