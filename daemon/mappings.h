/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/macro.h"
#include "proto/recording.h"
#include "proto/worker_msg.h"

/*
 * The files that the processes of one capture have mapped, held so that they can still be read when the
 * processes, their containers and their names are gone.
 *
 *   root     a root directory in a mount namespace: both are kept open, which keeps the mounts
 *   file     an open descriptor (O_PATH) of a regular file
 *   module   what samples refer to: a path as the process saw it with a build-id (or, without one, an inode)
 *
 * Every name here was chosen by the profiled service. Pinning uses the magic links of /proc only, which
 * neither walk a path nor wait for a lock, so the real-time thread may do it. Opening walks paths of strange
 * file systems and may block: only a thread that may wait does that, without holding the lock.
 *
 * Shared by the collector and the thread that feeds the worker: all functions lock. Reference-counted.
 */
struct mappings;

enum {
        MODULES_MAX = 4096,
        FILES_MAX = 768, /* descriptors per capture */
        ROOTS_MAX = 64, /* two descriptors each */
        OWNED_MAX = 512, /* processes whose code made at run time is told apart */
};

struct mappings *mappings_new(int proc_fd /* borrowed */); /* NULL: no memory */
struct mappings *mappings_ref(struct mappings *m);
struct mappings *mappings_unref(struct mappings *m); /* NULL is fine; returns NULL */
DEFINE_CLEANUP(struct mappings *, mappings_unref);

/* Root and mount namespace of a living process, as a number; REC_NONE: it is gone, or ROOTS_MAX. */
uint32_t mappings_pin_root(struct mappings *m, uint32_t pid);
/* The executable of a living process, as a number of a file; REC_NONE: it is gone, or FILES_MAX. */
uint32_t mappings_pin_exe(struct mappings *m, uint32_t pid);

/* Whose code made at run time it is: an address space, and the process that has it. */
struct module_owner {
        uint32_t space, pid;
};

struct module_key {
        const char *path; /* as in a PERF_RECORD_MMAP2 or /proc/PID/maps */
        const uint8_t *build_id;
        uint32_t build_id_bytes; /* 0: not known, then device and inode tell files apart */
        uint64_t device, inode;
        uint32_t root; /* where the path can be opened, or REC_NONE */
        uint32_t file; /* already pinned, or REC_NONE */
        const struct module_owner
                *owner; /* of anonymous memory: a module of its own, up to OWNED_MAX; or NULL */
};

/* The number of the module: equal ones have one. REC_NONE: MODULES_MAX or no memory. */
uint32_t mappings_module(struct mappings *m, const struct module_key *key);
uint32_t mappings_count(struct mappings *m);

/* A copy of what is known of a module. */
struct module_info {
        uint32_t kind; /* enum rec_module_kind */
        uint8_t build_id[20];
        uint32_t build_id_bytes;
        bool owned;
        struct module_owner owner; /* when owned */
        char path[WORKER_PATH_MAX];
};
/* -ENOENT: no such module. */
int mappings_info(struct mappings *m, uint32_t module, struct module_info *ret);

/* Opens the file of a module by its path in its root, unless it is held already, and keeps it. May block.
 * -ENOENT, -ELOOP: no regular file of that name, or, where no build-id can tell, one with another inode;
 * -EMFILE: FILES_MAX. */
int mappings_hold(struct mappings *m, uint32_t module);

/* An O_PATH descriptor of a regular file, by its path in the root of a module; a link at its end is not followed.
 * May block. -ENOENT, or other errors of openat2(2). */
int mappings_open_beside(struct mappings *m, uint32_t module, const char *path);

/* Answers the worker, see worker_file_fn in proto/worker_link.h. May block. */
int mappings_open(struct mappings *m, uint32_t module, enum worker_role role, uint32_t attempt,
                  const char *name, int *ret_fd, char path[static WORKER_PATH_MAX]);

/* The path that stands for the kernel itself, whose "file" is /proc/kallsyms; no mapping of a process is called
 * so. */
#define MAPPINGS_KERNEL "[kernel]"
/* What kind of module a mapped path is. */
enum rec_module_kind mappings_kind_of_path(const char *path);
