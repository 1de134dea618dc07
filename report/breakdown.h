/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "common/buf.h"
#include "report/critical_path.h"

/* The pieces of the critical path as the table that people read: one row for
 * each (kind, call, process name), the longest first, adding up exactly. */

struct breakdown_row {
        uint64_t duration_ns;
        uint64_t duration_usec; /* rounded so that the rows add up, too */
        uint32_t kind; /* enum piece_kind */
        uint32_t syscall;
        uint32_t process; /* one of those of this name, or REC_NONE */
        uint32_t n_processes; /* of this name in this row; 0 with REC_NONE */
        bool io;
};

struct breakdown {
        struct breakdown_row *rows; /* owned */
        size_t n_rows;
};

#define BREAKDOWN_NULL                                                                                      \
        (struct breakdown) {                                                                                \
        }

/* 0, -ENOMEM (*ret untouched). */
int breakdown_init(const struct recording *r, const struct critical_path *path, struct breakdown *ret);
void breakdown_done(struct breakdown *b);

/* What the row is about, within its kind: "openat", "openat (disk)", "page fault", "". */
void breakdown_detail(struct buf *b, const struct breakdown_row *row);
