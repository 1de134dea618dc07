/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/text.h"
#include "report/stack_tree.h"
#include "report/writers.h"

/*
 * Folded stacks: "process;outer;inner COUNT", a line for each different stack,
 * as flamegraph.pl and speedscope read it. The count is CPU samples, of waits
 * and wall-clock time microseconds. In a
 * frame, what would end it or the line is written as \xHH (SY-19, SY-20).
 */

static void put_frame(struct buf *b, const char *text) {
        _cleanup_(buf_done) struct buf safe = BUF_NULL;

        text_escape_terminal(&safe, text);
        for (const char *p = buf_text(&safe); *p; p++)
                if (*p == ';' || *p == ' ')
                        buf_printf(b, "\\x%02x", *p);
                else
                        buf_putc(b, *p);
}

int report_write_folded(const struct analysis *a, const struct report_options *options, FILE *out) {
        _cleanup_(stack_tree_done) struct stack_tree tree = STACK_TREE_NULL;
        _cleanup_(buf_done) struct buf line = BUF_NULL;
        _cleanup_free_ size_t *sizes = NULL;
        int error = stack_tree_init(a->recording, options->view, options->kernel, STACK_TREE_DOWN, &tree);

        if (error < 0)
                return error;
        sizes = calloc((size_t) tree.depth + 1, sizeof(*sizes)); /* of the line up to each depth */
        if (!sizes)
                return -ENOMEM;
        for (size_t i = 1; i < tree.n_nodes; i++) {
                const struct stack_node *n = tree.nodes + i;

                line.size = sizes[n->depth - 1];
                if (n->depth > 1)
                        buf_putc(&line, ';');
                put_frame(&line, tree.labels[n->label].text);
                sizes[n->depth] = line.size;
                if (buf_error(&line) < 0)
                        return -ENOMEM;
                if (n->self > 0)
                        fprintf(out, "%.*s %llu\n", (int) line.size, buf_text(&line),
                                (unsigned long long) n->self);
        }
        return 0;
}
