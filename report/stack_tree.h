/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "report/names.h"
#include "report/report.h"

/*
 * The samples of a recording, merged by name: those on a CPU, those of waits, or the whole time of each thread.
 * Two directions of the same samples:
 *
 *   STACK_TREE_DOWN                         STACK_TREE_UP
 *   unit ─ process ─ main ─ work ─ [openat]  all ─ [openat] ─ work ─ main
 *   (flame graph, folded stacks)             (who is hot, and who calls it)
 *
 * A sample in a system call has "[NAME]" as its innermost row, one that waited "[waiting in NAME]"; with
 * `kernel`, what it did in the kernel follows, where that was recorded. What is missing
 * has a row of its own in brackets, so that nothing is attributed to a caller
 * that was not seen.
 *
 *   invariant   nodes[0] is the root; a node comes before its children, and a
 *               whole subtree is adjacent: [i, nodes[i].end)
 */

enum stack_tree_direction { STACK_TREE_DOWN, STACK_TREE_UP };

/*
 *   view           amounts          per thread there is besides
 *   REPORT_CPU     samples
 *   REPORT_WAITS   microseconds     a mark for what no sample stands for
 *   REPORT_WALL    microseconds     a row, and marks for the time runnable and what no sample stands for: its
 *                                   width is the thread's life
 */

struct stack_label {
        const char *text; /* short form; raw, escape it */
        const char *full; /* the whole name; may be the same pointer */
        const char *place; /* file it lies in; "" for marks */
        enum frame_kind kind;
};

struct stack_node {
        uint32_t label; /* index */
        uint32_t parent; /* REC_NONE for the root */
        uint32_t end; /* one behind the last node below */
        uint32_t depth; /* 0: the root */
        uint64_t total, self; /* in and below, and here; see the views */
};

struct stack_tree {
        struct stack_label *labels; /* owned, with the texts in `texts` */
        size_t n_labels;
        struct stack_node *nodes; /* owned */
        size_t n_nodes;
        uint32_t depth; /* of the deepest node */
        struct buf texts;
};

#define STACK_TREE_NULL                                                                                     \
        (struct stack_tree) {                                                                               \
                .texts = BUF_NULL                                                                           \
        }

/* Children are in the order of their texts. 0 (also without any sample: then the root is alone), -ENOMEM. */
int stack_tree_init(const struct recording *r, enum report_view view, bool kernel,
                    enum stack_tree_direction direction, struct stack_tree *ret);
void stack_tree_done(struct stack_tree *t);
