/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/buf.h"
#include "symbolize/build_id.h"

/*
 * Debug files from debuginfod servers. libdebuginfod(3) fetches them into its cache, in a child that has no more
 * rights than it needs, that ends when it is told to, and whose failures are its own: this process opens what is in
 * the cache afterwards, as if somebody else had put it there. The child looks at four bytes of what came and takes
 * away what cannot be an ELF file; all else is for the worker to judge.
 *
 * libdebuginfod is loaded by the child only: it brings a client for HTTP, which no other part of startprof needs.
 */

enum {
        DEBUGINFOD_FILES_MAX = 256, /* in one go */
        DEBUGINFOD_URLS_MAX = 16 * 1024, /* bytes, of all servers together */
};

struct debuginfod_options {
        const char *urls; /* separated by spaces */
        const char *cache; /* directory; NULL: libdebuginfod decides */
        uid_t uid; /* to become when the caller is root; gid likewise */
        gid_t gid;
        uint64_t deadline_ns; /* CLOCK_MONOTONIC, for all files */
};

enum debuginfod_result {
        DEBUGINFOD_NOT_TRIED, /* time was up, or somebody had enough */
        DEBUGINFOD_FETCHED, /* in the cache now */
        DEBUGINFOD_NOT_FOUND, /* the servers did not send it; libdebuginfod remembers that for a while, also of answers
                                 that were cut short */
        DEBUGINFOD_FAILED, /* no answer, half an answer, nonsense */
};

/* Tells how far file number `index` is. total: 0 when unknown. */
typedef void (*debuginfod_progress_fn)(void *userdata, size_t index, uint64_t bytes, uint64_t total);

/*
 * The servers: $DEBUGINFOD_URLS, else what is in the *.urls files of `directory` (/etc/debuginfod: read here and not
 * only by login shells, since sudo(8) and services lose the variable). An empty variable means none.
 * Appended to urls; nothing when there are none. -ENOMEM.
 */
int debuginfod_servers(const char *directory, struct buf *urls);

/*
 * Fetches in the order given. results: one each, all of them are set. SIGINT ends it, too, and is taken as that.
 *
 * 0             all were asked for
 * -ETIME        the deadline came first
 * -EINTR        SIGINT came first
 * -ENOSYS       there is no libdebuginfod here
 * errors of fork(2), pipe(2), signalfd(2)
 */
int debuginfod_fetch(const struct debuginfod_options *options, const struct build_id *ids, size_t count,
                     debuginfod_progress_fn progress, void *userdata, enum debuginfod_result *results);
