/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/macro.h"

/*
 * A perf map: where a run-time put the code that it made, by its own account. The format is perf's
 * (tools/perf/Documentation/jit-interface.txt): one line a function, "START SIZE name", both in hex, the name
 * to the end of the line. Code is made, dropped and made again at the same place, so a later line takes the
 * bytes it covers from all earlier ones; what it leaves of them stays theirs.
 *
 * The text is a stranger's: lines that are none are skipped, and so is a last line without its end, which the
 * run-time may be in the middle of writing.
 */
struct perf_map;

enum {
        PERF_MAP_BYTES_MAX = 64 * 1024 * 1024, /* of the text; a large server writes 10 MB */
        PERF_MAP_SYMBOLS_MAX = 1 << 20, /* later lines are not read */
        PERF_MAP_SYMBOL_BYTES_MAX = 64 * 1024 * 1024, /* a function; what claims to be larger is a lie */
        PERF_MAP_NAME_MAX = 4096, /* longer ones are cut */
};

struct perf_map_symbol {
        const char *name; /* as the run-time wrote it, any bytes; valid as long as the map */
        uint64_t start; /* of the whole function, also when only a piece of it is left */
};

/* text: borrowed, copied. -EFBIG: more than PERF_MAP_BYTES_MAX; -ENOMEM. No lines at all: an empty map. */
int perf_map_new(const char *text, size_t bytes, struct perf_map **ret);
/* The same from a regular file (borrowed), of which the first PERF_MAP_BYTES_MAX are read. Errors of pread(2) besides. */
int perf_map_new_fd(int fd, struct perf_map **ret);
struct perf_map *perf_map_free(struct perf_map *m);
DEFINE_CLEANUP(struct perf_map *, perf_map_free);

/* How many ranges of addresses have a name. */
uint32_t perf_map_count(const struct perf_map *m);
/* 0, or -ENOENT: in no function. */
int perf_map_find(const struct perf_map *m, uint64_t address, struct perf_map_symbol *ret);
