/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "report/names.h"
#include "report/thread_times.h"

/*
 * The samples of a recording one by one, in the order of time, for tools that want them so: each with its stack as a
 * path through a tree of rows (a function, inlined or not, or a mark in brackets), and what part of its thread's life
 * it stands for. report/stack_tree.h has them merged.
 *
 *   link 7 {parent 3, row "read"} → link 3 {parent 0, row "main"} → link 0 {parent REC_NONE, row "_start"}
 */

struct stack_row {
        size_t name, full; /* offsets in `texts`; raw, escape them */
        uint32_t frame; /* of the recording; REC_NONE: a mark */
        uint32_t line; /* 0: unknown */
        const char *file; /* source file, or else the module; "" for marks */
        enum frame_kind kind;
};

struct stack_link {
        uint32_t parent; /* index of a link, smaller than this one's; REC_NONE: outermost */
        uint32_t row;
};

enum timed_kind {
        TIMED_CPU,
        TIMED_WAIT,
        TIMED_REST, /* of a thread: what no sample stands for */
};

struct timed_stack {
        uint64_t begin_ns,
                end_ns; /* CLOCK_MONOTONIC; spans of one thread do not overlap, and those of kind REST are
                                      empty, at the end of the capture */
        uint64_t weight_ns; /* exact times are spread over the samples of a thread */
        uint32_t thread; /* index of threads.threads */
        uint32_t leaf; /* link; REC_NONE: the stack is empty */
        uint32_t sample; /* index; REC_NONE for REST */
        enum timed_kind kind;
};

struct sample_stacks {
        const struct recording *recording; /* borrowed */
        struct thread_times threads;
        struct stack_row *rows; /* owned, as all of these */
        size_t n_rows;
        struct stack_link *links;
        size_t n_links;
        struct timed_stack *timed; /* by end_ns */
        size_t n_timed;
        struct buf texts;
};

#define SAMPLE_STACKS_NULL                                                                                  \
        (struct sample_stacks) {                                                                            \
                .threads = THREAD_TIMES_NULL, .texts = BUF_NULL                                             \
        }

/* 0 (also without any sample), -ENOMEM. */
int sample_stacks_init(const struct recording *r, struct sample_stacks *ret);
void sample_stacks_done(struct sample_stacks *s);
const char *stack_row_name(const struct sample_stacks *s, uint32_t row);
const char *stack_row_full(const struct sample_stacks *s, uint32_t row);
/* Rows from the outermost to `leaf`, at most `max`: those beyond, the innermost ones, are left out. Their number. */
size_t stack_path(const struct sample_stacks *s, uint32_t leaf, uint32_t *ret_rows, size_t max);
