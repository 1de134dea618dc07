/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/macro.h"
#include "proto/worker_msg.h"

/*
 * startprof-worker as its parent sees it: started as a child, fed, asked. Used by the daemon (one worker a
 * session, in a thread that may block) and by the client. Not thread-safe: one thread owns a link.
 */
struct worker_link;

/*
 * The worker wants a file. Answer 0 with *ret_fd (a read-only regular file; the link closes it) and the
 * path it was found at in path (for the ledger), -ENOENT, or -ENXIO when there is no attempt of that number.
 * Called while the parent waits or sends; it may block briefly.
 */
typedef int (*worker_file_fn)(void *userdata, uint32_t module, enum worker_role role, uint32_t attempt,
                              const char *name /* "" when there is none */, int *ret_fd,
                              char path[static WORKER_PATH_MAX]);

/* The worker has made a table that may be kept; fd is borrowed and not to be trusted. */
typedef void (*worker_table_fn)(void *userdata, uint32_t module, const char *key, int fd);

struct worker_options {
        worker_table_fn table; /* NULL: none is kept */
        const char *path; /* of the executable; NULL: beside /proc/self/exe, else the installed one */
        uid_t uid; /* to become when the parent is root; gid likewise */
        gid_t gid;
        int nice; /* 0..19 */
};

/* Starts one; it has said WORKER_READY (its sandbox is up) when this returns.
 * Errors of posix_spawn(3); -EPROTO: it died or spoke nonsense; -ETIMEDOUT. */
int worker_link_new(const struct worker_options *options, worker_file_fn file, void *userdata,
                    struct worker_link **ret);
/* Kills and reaps it if it lives; one that hangs in the kernel is left after two seconds. NULL is fine. */
struct worker_link *worker_link_free(struct worker_link *link);
DEFINE_CLEANUP(struct worker_link *, worker_link_free);

/* Its process, to set its priority. */
pid_t worker_link_pid(const struct worker_link *link);

/*
 * Feeding. While the socket is full these answer FILE_WANTED and wait, at most until deadline_ns
 * (CLOCK_MONOTONIC). 0, -ETIMEDOUT, -EPROTO (dead or nonsense: the link stays failed).
 */
int worker_link_module(struct worker_link *link, uint32_t module, uint32_t kind, const uint8_t *build_id,
                       size_t build_id_bytes, const char *path, uint64_t deadline_ns);
int worker_link_map(struct worker_link *link, uint32_t space, uint32_t module, uint64_t start, uint64_t end,
                    uint64_t file_offset, uint64_t deadline_ns);
int worker_link_space(struct worker_link *link, uint32_t space, uint32_t from /* REC_NONE: empty */,
                      uint64_t deadline_ns);
/* m: all but the head; its stack_bytes + second_bytes, at most STACK_COPY_MAX, are at `stack`. */
int worker_link_stack(struct worker_link *link, const struct worker_stack *m, const void *stack,
                      uint64_t deadline_ns);

/* Asking. *ret is malloc()ed: a layer for recording_writer_layer(), or JSON text with a NUL behind it.
 * The worker's own error, or -ETIMEDOUT, -EPROTO. */
int worker_link_finish(struct worker_link *link, uint64_t deadline_ns, void **ret, size_t *ret_bytes);
int worker_link_name(struct worker_link *link, int recording_fd, uint64_t deadline_ns, void **ret,
                     size_t *ret_bytes);
int worker_link_report(struct worker_link *link, int recording_fd, uint64_t deadline_ns, char **ret);
