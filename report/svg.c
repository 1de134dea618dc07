/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/text.h"
#include "report/page.h"
#include "report/stack_tree.h"
#include "report/writers.h"

/*
 * A flame graph in one file without any reference to another: the picture as
 * plain SVG, and a script that makes it answer. The unit is the row at the top
 * and covers everything; what it called lies below it, as wide as its share of
 * the CPU samples.
 *
 * Names of strangers appear as escaped text and attribute values only, never
 * inside of the script or the style sheet.
 */

/* The bytes of report/flamegraph.css and .js, with a NUL behind them. The paths are relative to the top of the
 * tree, where make runs the compiler. */
#define EMBED(symbol, file)                                                                                 \
        __asm__(".pushsection .rodata\n" #symbol ":\n.incbin \"" file "\"\n.byte 0\n.popsection\n");        \
        extern const char symbol[] __attribute__((visibility("hidden")))

EMBED(flamegraph_css, "report/flamegraph.css");
EMBED(flamegraph_js, "report/flamegraph.js");

enum {
        WIDTH = 1200,
        SIDE = 10, /* left and right of the rows */
        ROW = 18,
        TOP = 98, /* above the first row */
        BOTTOM = 40,
        HEADER_CHARS = 150, /* of 13 pixels, left of nothing else */
        NODES_MAX = 20000, /* more make browsers slow; the narrowest are left out */
        TOTAL_KINDS = 4096, /* widths told apart when looking for the narrowest */
};

/* Of a character of the rows' font, in hundredths of a pixel; as in the script. */
enum { CHAR_WIDTH = 725 };

static const struct {
        const char *css, *words;
} kinds[FRAME_KIND_MAX] = {
        [FRAME_USER] = { "user", "program and libraries" },
        [FRAME_MANAGED] = { "managed", "managed code (.NET, JIT)" },
        [FRAME_RUNTIME] = { "runtime", "runtime and libc" },
        [FRAME_KERNEL] = { "kernel", "system call" },
        [FRAME_PROCESS] = { "process", "unit, process" },
        [FRAME_MARK] = { "mark", "not known" },
};

/* What a node needs to be drawn, so that NODES_MAX are not exceeded: amounts are told apart in TOTAL_KINDS steps of
 * the whole, the last of which is for all that is wider. */
static uint64_t smallest_total(const struct stack_tree *t) {
        _cleanup_free_ size_t *counts = calloc(TOTAL_KINDS + 1, sizeof(*counts));
        uint64_t step = MAX(t->nodes[0].total / WIDTH / TOTAL_KINDS, UINT64_C(1));
        size_t n = 0;
        uint64_t kind = TOTAL_KINDS;

        if (!counts)
                return 1;
        for (size_t i = 0; i < t->n_nodes; i++)
                counts[MIN(t->nodes[i].total / step, (uint64_t) TOTAL_KINDS)]++;
        while (kind > 0 && n + counts[kind] <= NODES_MAX)
                n += counts[kind--];
        return (kind + 1) * step;
}

static unsigned shade(const char *text) {
        unsigned h = 5381;

        for (const char *p = text; *p; p++)
                h = h * 33 + (unsigned char) *p;
        return (h >> 3) % 4;
}

static const struct {
        const char *explanation, *empty;
} views[REPORT_VIEW_MAX] = {
        [REPORT_CPU] = { "Width is time on the CPU; time spent waiting is not shown (--view=waits).",
                         "No CPU samples: the start spent its time waiting, or was shorter than the "
                         "sampling "
                         "period." },
        [REPORT_WAITS] = { "Width is time blocked, of all threads together; time on the CPU is not shown.",
                           "No thread of the unit was blocked." },
        [REPORT_WALL] = { "Each thread is as wide as its life: on the CPU, waiting for one, or blocked.",
                          "No thread of the unit was seen." },
};

static void put_amount(struct buf *b, enum report_view view, uint64_t amount) {
        if (view != REPORT_CPU) {
                text_span(b, amount);
                return;
        }
        text_count(b, amount);
        buf_puts(b, " CPU samples");
}

static void put_header(struct buf *b, const struct analysis *a, enum report_view view,
                       const struct stack_tree *t, unsigned height) {
        _cleanup_(buf_done) struct buf headline = BUF_NULL, line = BUF_NULL;
        const struct rec_start *s = a->recording->start;

        analysis_headline(a, &headline);
        buf_printf(b,
                   "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%u\" viewBox=\"0 0 %d "
                   "%u\">\n",
                   WIDTH, height, WIDTH, height);
        buf_puts(b, "<title>");
        text_escape_xml(b, buf_text(&headline));
        buf_printf(b, "</title>\n<style>\n%s</style>\n", flamegraph_css);
        buf_printf(b, "<text id=\"unit\" x=\"%d\" y=\"28\">", SIDE);
        text_escape_xml(b, buf_text(&headline));
        buf_printf(b, "</text>\n<text id=\"when\" x=\"%d\" y=\"48\">", SIDE);
        put_amount(b, view, t->nodes[0].total);
        if (view == REPORT_CPU)
                buf_printf(b, " at %u Hz", s->frequency_hz);
        buf_printf(b, ". %s</text>\n", views[view].explanation);
        text_keep_begin(&line, analysis_summary(a), HEADER_CHARS);
        buf_printf(b, "<text id=\"verdict\" x=\"%d\" y=\"68\">", SIDE);
        text_escape_xml(b, buf_text(&line));
        buf_puts(b, "</text>\n");
}

static void put_legend(struct buf *b, const struct stack_tree *t) {
        bool used[FRAME_KIND_MAX] = {};
        unsigned x = SIDE;

        for (size_t i = 0; i < t->n_nodes; i++)
                used[t->labels[t->nodes[i].label].kind] = true;
        for (int kind = 0; kind < FRAME_KIND_MAX; kind++) {
                if (!used[kind])
                        continue;
                buf_printf(b,
                           "<rect class=\"%s0\" x=\"%u\" y=\"78\" width=\"12\" height=\"12\" rx=\"2\"/>"
                           "<text class=\"legend\" x=\"%u\" y=\"88\">%s</text>\n",
                           kinds[kind].css, x, x + 17, kinds[kind].words);
                x += 34 + 7 * (unsigned) strlen(kinds[kind].words);
        }
}

/* The row's label as far as it fits into the width, in pixels. */
static void put_label(struct buf *b, const char *text, double width) {
        _cleanup_(buf_done) struct buf cut = BUF_NULL;
        double chars = (width - 6) * 100 / CHAR_WIDTH;

        if (chars < 3)
                return;
        text_keep_end(&cut, text, (unsigned) chars);
        text_escape_xml(b, buf_text(&cut));
}

static void put_frame(struct buf *b, enum report_view view, const struct stack_tree *t, size_t i,
                      uint64_t begin) {
        const struct stack_node *n = t->nodes + i;
        const struct stack_label *l = t->labels + n->label;
        double all = (double) t->nodes[0].total, inner = WIDTH - 2 * SIDE;
        double x = SIDE + (double) begin / all * inner, width = (double) n->total / all * inner;
        unsigned y = TOP + n->depth * ROW;

        buf_printf(b, "<g class=\"f\" data-x=\"%llu\" data-n=\"%llu\" data-d=\"%u\" data-l=\"",
                   (unsigned long long) begin, (unsigned long long) n->total, n->depth);
        text_escape_xml(b, l->text);
        buf_puts(b, "\"><title>");
        text_escape_xml(b, l->full);
        if (*l->place) {
                buf_putc(b, '\n');
                text_escape_xml(b, l->place);
        }
        buf_putc(b, '\n');
        put_amount(b, view, n->total);
        buf_printf(b, ", %.1f%%", (double) n->total / all * 100);
        if (n->self > 0 && n->self < n->total)
                buf_printf(b, " (%.1f%% in itself)", (double) n->self / all * 100);
        buf_printf(b, "</title><rect class=\"%s%u\" x=\"%.2f\" y=\"%u\" width=\"%.2f\" height=\"%d\"/>",
                   kinds[l->kind].css, shade(l->text), x, y, width, ROW);
        buf_printf(b, "<text x=\"%.2f\" y=\"%u\">", x + 4, y + 13);
        put_label(b, l->text, width);
        buf_puts(b, "</text></g>\n");
}

/* Nodes come before their children, children side by side: where a node begins is where the ones before it at
 * its level have ended. */
static int put_frames(struct buf *b, enum report_view view, const struct stack_tree *t,
                      size_t *ret_left_out) {
        _cleanup_free_ uint64_t *next = calloc((size_t) t->depth + 2, sizeof(*next));
        uint64_t smallest = smallest_total(t);

        if (!next)
                return -ENOMEM;
        *ret_left_out = 0;
        for (size_t i = 0; i < t->n_nodes; i++) {
                const struct stack_node *n = t->nodes + i;
                uint64_t begin = next[n->depth];

                next[n->depth] = begin + n->total;
                next[n->depth + 1] = begin;
                if (n->total < smallest)
                        ++*ret_left_out;
                else
                        put_frame(b, view, t, i, begin);
        }
        return 0;
}

static void put_controls(struct buf *b) {
        buf_puts(
                b,
                "<g id=\"controls\" visibility=\"hidden\">\n"
                "<foreignObject x=\"890\" y=\"10\" width=\"206\" height=\"30\">"
                "<input xmlns=\"http://www.w3.org/1999/xhtml\" id=\"query\" type=\"search\" "
                "placeholder=\"Search ( / )\"/>"
                "</foreignObject>\n"
                "<foreignObject x=\"1104\" y=\"10\" width=\"86\" height=\"30\">"
                "<button xmlns=\"http://www.w3.org/1999/xhtml\" id=\"reset\" type=\"button\">Reset</button>"
                "</foreignObject>\n"
                "<text id=\"matched\" x=\"1190\" y=\"88\"></text>\n"
                "</g>\n"
                "<g id=\"tip\"><rect width=\"10\" height=\"10\"/>"
                "<text class=\"name\" x=\"9\" y=\"19\"></text><text class=\"place\" x=\"9\" y=\"35\"></text>"
                "<text x=\"9\" y=\"51\"></text></g>\n");
}

static void put_footer(struct buf *b, enum report_view view, const struct stack_tree *t, unsigned height,
                       size_t left_out) {
        if (t->nodes[0].total == 0)
                buf_printf(b, "<text class=\"legend\" x=\"%d\" y=\"%d\">%s</text>\n", SIDE, TOP + ROW,
                           views[view].empty);
        if (left_out > 0) {
                buf_printf(b, "<text id=\"left\" x=\"%d\" y=\"%u\">", SIDE, height - 12);
                text_count(b, left_out);
                buf_puts(b, " narrowest frames are left out; the folded stacks have all.</text>\n");
        }
}

int report_write_svg(const struct analysis *a, const struct report_options *options, FILE *out) {
        enum report_view view = options->view;
        _cleanup_(stack_tree_done) struct stack_tree tree = STACK_TREE_NULL;
        _cleanup_(buf_done) struct buf b = BUF_NULL;
        size_t left_out = 0;
        unsigned height;
        int error = stack_tree_init(a->recording, view, options->kernel, STACK_TREE_DOWN, &tree);

        if (error < 0)
                return error;
        height = TOP + (tree.depth + 1) * ROW + BOTTOM;
        put_header(&b, a, view, &tree, height);
        put_legend(&b, &tree);
        if (tree.nodes[0].total > 0) {
                error = put_frames(&b, view, &tree, &left_out);
                if (error < 0)
                        return error;
        }
        put_footer(&b, view, &tree, height, left_out);
        put_controls(&b);
        buf_printf(&b, "<script><![CDATA[\n%s]]></script>\n</svg>\n", flamegraph_js);
        if (buf_error(&b) < 0)
                return buf_error(&b);
        (void) fwrite(buf_text(&b), 1, b.size, out);
        return 0;
}
