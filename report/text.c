/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/text.h"
#include "report/cause.h"
#include "report/names.h"
#include "report/page.h"
#include "report/stack_tree.h"
#include "report/symbol_advice.h"
#include "report/syscalls.h"
#include "report/writers.h"

/*
 * The report on the terminal: what it was, what to change, where the time
 * went, and how far all that can be trusted. It fits 80 columns and 40 lines;
 * the stacks take what the rest leaves.
 */

enum {
        LINES_MAX = 40,
        ROWS_MAX = 8, /* of the breakdown */
        ROW_PERMILLE_MIN = 10, /* shorter ones are summed up, but for the first few */
        ROWS_MIN = 3,
        OTHER_FINDINGS_MAX = 2,
        MILESTONES_MAX = 8,
        STACKS_MAX = 3,
        CALLERS_MAX = 5, /* lines below a hot leaf */
        STACKS_LINES_MIN = 4,
        STACK_PERCENT_MIN = 3,
        SPAN_COLUMNS = 6, /* "49.9ms" */
        LEDGER_PERCENT = 5, /* of the frames, from which on a module without names is listed */
        LEDGER_MAX = 3,
        LINE_MAX_BYTES = 4096,
};

/* ---- the answer ---- */

static void put_headline(struct page *p, const struct analysis *a) {
        _cleanup_(buf_done) struct buf b = BUF_NULL;

        analysis_headline(a, &b);
        buf_printf(&b, ": %s", analysis_summary(a));
        page_wrap(p, PAGE_BOLD, 0, 2, buf_text(&b));
}

static void put_notes(struct page *p, const struct analysis *a) {
        const struct rec_start *s = a->recording->start;
        const char *type = recording_text(a->recording, s->type);
        _cleanup_(buf_done) struct buf b = BUF_NULL;

        if (s->result == REC_RESULT_RUNNING && (s->end == REC_END_LISTEN || s->end == REC_END_IDLE)) {
                buf_printf(&b, "systemd does not wait for Type=%s; the time is that until %s.", type,
                           s->end == REC_END_LISTEN ? "its first listen()" : "it came to rest");
                page_wrap(p, PAGE_NORMAL, 2, 2, buf_text(&b));
                buf_reset(&b);
        }
        if (s->attempts > 1) {
                buf_printf(&b, "systemd started it %u times; this is about the first attempt.", s->attempts);
                page_wrap(p, PAGE_NORMAL, 2, 2, buf_text(&b));
        }
}

static void put_dropin(struct page *p, const char *dropin) {
        while (*dropin) {
                size_t n = strcspn(dropin, "\n");
                char line[LINE_MAX_BYTES];

                snprintf(line, sizeof(line), "%.*s", (int) MIN(n, sizeof(line) - 1), dropin);
                page_wrap(p, PAGE_GREEN, 6, 6, line);
                dropin += n;
                dropin += *dropin == '\n';
        }
}

static void put_advice(struct page *p, const struct analysis *a, const struct finding *f) {
        _cleanup_(buf_done) struct buf b = BUF_NULL;
        bool dropin = false;

        for (size_t i = 0; i < f->n_advice; i++)
                dropin = dropin || f->advice[i].dropin;
        if (f->n_advice == 0)
                return;
        buf_puts(&b, "What to change");
        if (dropin)
                buf_printf(&b, " (systemctl edit %s)",
                           recording_text(a->recording, a->recording->start->unit));
        page_blank(p);
        page_line(p, PAGE_BOLD, 0, buf_text(&b));
        for (size_t i = 0; i < f->n_advice; i++) {
                page_wrap(p, PAGE_NORMAL, 2, 4, f->advice[i].text);
                if (f->advice[i].dropin)
                        put_dropin(p, f->advice[i].dropin);
        }
}

static void put_verdict(struct page *p, const struct analysis *a) {
        const struct finding *f = analysis_verdict(a);
        size_t others = f ? 1 : 0;

        put_headline(p, a);
        put_notes(p, a);
        for (size_t i = 0; f && i < f->n_detail; i++)
                page_wrap(p, PAGE_NORMAL, 2, 2, f->detail[i]);
        for (size_t i = others; i < MIN(a->n_findings, others + OTHER_FINDINGS_MAX); i++) {
                _cleanup_(buf_done) struct buf b = BUF_NULL;

                buf_printf(&b, "Also: %s", a->findings[i].summary);
                page_wrap(p, PAGE_NORMAL, 2, 4, buf_text(&b));
        }
        if (f)
                put_advice(p, a, f);
}

/* ---- where the time went ---- */

static void put_row(struct page *p, const struct analysis *a, uint64_t duration_ns, const char *what,
                    const char *process, uint32_t n_processes) {
        enum { WHAT_COLUMNS = 36 };
        _cleanup_(buf_done) struct buf b = BUF_NULL, span = BUF_NULL;

        text_span(&span, duration_ns / NSEC_PER_USEC);
        buf_printf(&b, "%5.1f%% %9s  ", analysis_share(a, duration_ns) * 100, buf_text(&span));
        text_keep_begin(&b, what, WHAT_COLUMNS);
        if (*process) {
                buf_printf(&b, "%*s",
                           (int) (WHAT_COLUMNS + 2 - MIN(text_columns(what), (size_t) WHAT_COLUMNS)), "");
                buf_puts(&b, process);
                if (n_processes > 1) {
                        buf_puts(&b, " (");
                        text_count(&b, n_processes);
                        buf_putc(&b, ')');
                }
        }
        page_line(p, PAGE_NORMAL, 1, buf_text(&b));
}

/* Rows that get a line of their own. */
static size_t rows_shown(const struct analysis *a, size_t rows_max) {
        size_t n = 0;

        while (n < a->breakdown.n_rows && n < rows_max &&
               (n < ROWS_MIN ||
                analysis_share(a, a->breakdown.rows[n].duration_ns) * 1000 >= ROW_PERMILLE_MIN))
                n++;
        if (n == a->breakdown.n_rows)
                return n;
        /* The sum of the others takes a line, too: better that of the only one. */
        return n == rows_max ? n - 1 : n + 1 == a->breakdown.n_rows ? n + 1 : n;
}

static void put_breakdown(struct page *p, const struct analysis *a, size_t rows_max) {
        const struct breakdown *all = &a->breakdown;
        size_t shown = rows_shown(a, rows_max);
        uint64_t rest = 0;

        page_blank(p);
        page_line(p, PAGE_BOLD, 0, "Where the time went");
        for (size_t i = 0; i < shown; i++) {
                const struct breakdown_row *row = all->rows + i;
                _cleanup_(buf_done) struct buf what = BUF_NULL;

                analysis_row_text(&what, row);
                put_row(p, a, row->duration_ns, buf_text(&what), process_name(a->recording, row->process),
                        row->n_processes);
        }
        for (size_t i = shown; i < all->n_rows; i++)
                rest += all->rows[i].duration_ns;
        if (shown < all->n_rows) {
                _cleanup_(buf_done) struct buf what = BUF_NULL;

                buf_printf(&what, "%zu others, shorter", all->n_rows - shown);
                put_row(p, a, rest, buf_text(&what), "", 0);
        }
}

static void put_milestone(struct buf *b, const struct analysis *a, const struct rec_milestone *m) {
        const char *process = process_name(a->recording, m->process);

        buf_puts(b, recording_milestone_str(m->kind));
        if (m->kind == REC_MILESTONE_EXEC && *process)
                buf_printf(b, " %s", process);
        buf_puts(b, " +");
        text_span(b, analysis_at_usec(a, m->time_ns));
}

/* systemd's own steps are told by the breakdown. */
static bool is_told(const struct rec_milestone *m) {
        return m->kind != REC_MILESTONE_CGROUP && m->kind != REC_MILESTONE_EXECUTOR;
}

static void put_milestones(struct page *p, const struct analysis *a) {
        const struct recording *r = a->recording;
        uint32_t n = 0, told = 0, skipped;
        _cleanup_(buf_done) struct buf b = BUF_NULL;

        for (uint32_t i = 0; i < r->n_milestones; i++)
                n += is_told(r->milestones + i);
        if (n == 0)
                return;
        skipped =
                n > MILESTONES_MAX + 1 ? n - MILESTONES_MAX : 0; /* the line about one takes as much room */
        buf_puts(&b, "Milestones: ");
        for (uint32_t i = 0; i < r->n_milestones; i++) {
                const struct rec_milestone *m = r->milestones + a->milestones[i];

                if (!is_told(m))
                        continue;
                told++;
                if (skipped > 0 && told == MILESTONES_MAX / 2 + 1) /* the beginning and the end matter */
                        buf_printf(&b, "; … %u more", skipped);
                if (skipped > 0 && told > MILESTONES_MAX / 2 && told <= MILESTONES_MAX / 2 + skipped)
                        continue;
                buf_puts(&b, told > 1 ? "; " : "");
                put_milestone(&b, a, m);
        }
        page_blank(p);
        page_wrap(p, PAGE_NORMAL, 0, 2, buf_text(&b));
}

/* ---- hot stacks ---- */

/* The child with most samples; 0: there is none. */
static uint32_t heaviest(const struct stack_tree *t, uint32_t node, uint32_t but) {
        uint32_t best = 0;

        for (uint32_t i = node + 1; i < t->nodes[node].end; i = t->nodes[i].end)
                if (i != but && (best == 0 || t->nodes[i].total > t->nodes[best].total))
                        best = i;
        return best;
}

/* lead: what stands before the name. */
static void put_frame(struct page *p, const struct stack_tree *t, uint32_t node, const char *lead,
                      unsigned indent, unsigned repeated, bool more) {
        _cleanup_(buf_done) struct buf b = BUF_NULL, name = BUF_NULL, tail = BUF_NULL;
        const struct stack_label *label = t->labels + t->nodes[node].label;
        const char *text = label->kind == FRAME_MANAGED ? name_without_namespace(label->text) : label->text;
        unsigned room;

        if (repeated > 1)
                buf_printf(&tail, " (%u levels)", repeated);
        if (more)
                buf_puts(&tail, " …");
        buf_puts(&b, lead);
        room = p->columns - indent - (unsigned) text_columns(buf_text(&b)) -
               (unsigned) text_columns(buf_text(&tail));
        text_escape_terminal(&name, text); /* its width is that on the screen */
        if (text_columns(buf_text(&name)) > room)
                text_keep_end(&b, text, room);
        else
                buf_puts(&b, text);
        buf_puts(&b, buf_text(&tail));
        page_line(p, PAGE_NORMAL, indent, buf_text(&b));
}

static bool is_wrapper(const struct stack_tree *t, uint32_t node) {
        const struct stack_label *l = t->labels + t->nodes[node].label;

        return l->kind == FRAME_RUNTIME || (l->kind != FRAME_MARK && name_is_wrapper(l->text));
}

/* "  35%  " of the samples, or " 580ms  " of waiting. */
static void put_amount(struct buf *b, const struct stack_tree *t, enum report_view view, uint32_t node) {
        _cleanup_(buf_done) struct buf span = BUF_NULL;

        if (view == REPORT_CPU) {
                buf_printf(b, "%3llu%%  ",
                           (unsigned long long) (t->nodes[node].total * 100 / t->nodes[0].total));
                return;
        }
        text_span(&span, t->nodes[node].total);
        buf_printf(b, "%*s  ", SPAN_COLUMNS, buf_text(&span));
}

/* A hot leaf and its callers, as long as there is one that most of the samples come from. */
static void put_hot(struct page *p, const struct stack_tree *t, enum report_view view, uint32_t leaf,
                    unsigned callers) {
        _cleanup_(buf_done) struct buf lead = BUF_NULL;
        uint64_t own = t->nodes[leaf].total;
        uint32_t node = heaviest(t, leaf, 0);
        unsigned indent;

        put_amount(&lead, t, view, leaf);
        indent = 3 + (unsigned) lead.size;
        put_frame(p, t, leaf, buf_text(&lead), 2, 1, false);
        while (t->labels[t->nodes[leaf].label].kind == FRAME_KERNEL && node != 0 && is_wrapper(t, node))
                node = heaviest(t, node, 0);
        while (node != 0 && t->nodes[node].total * 2 > own && callers > 0) {
                uint32_t next = heaviest(t, node, 0), label = t->nodes[node].label;
                unsigned repeated = 1;

                while (next != 0 && t->nodes[next].label == label) {
                        repeated++;
                        node = next;
                        next = heaviest(t, node, 0);
                }
                callers--;
                put_frame(p, t, node, "", indent, repeated,
                          callers == 0 && next != 0 && t->nodes[next].end > next + 1);
                indent += 2;
                node = next;
        }
}

/* What most of the start was: waiting, or work. */
static enum report_view view_of_start(const struct analysis *a) {
        uint64_t waiting = 0, working = 0;

        for (size_t i = 0; i < a->breakdown.n_rows; i++) {
                const struct breakdown_row *row = a->breakdown.rows + i;

                if (row->kind == PIECE_WAIT || row->kind == PIECE_FAULT)
                        waiting += row->duration_ns;
                if (row->kind == PIECE_CPU_USER || row->kind == PIECE_CPU_KERNEL)
                        working += row->duration_ns;
        }
        return waiting > working ? REPORT_WAITS : REPORT_CPU;
}

/* Threads that idle beside what systemd waited for wait in other calls than that does, or for nothing known. */
static bool is_on_path(const struct analysis *a, const struct stack_label *label) {
        for (size_t i = 0; i < a->breakdown.n_rows; i++) {
                const struct breakdown_row *row = a->breakdown.rows + i;
                _cleanup_(buf_done) struct buf text = BUF_NULL;

                if (row->kind == PIECE_FAULT && startswith(label->text, "[waiting for a page"))
                        return true;
                if (row->kind != PIECE_WAIT || row->syscall == REC_CALL_NONE)
                        continue;
                buf_puts(&text, "[waiting in ");
                syscall_text(&text, row->syscall);
                buf_puts(&text, row->io ? " for the disk]" : "]");
                if (streq(label->text, buf_text(&text)))
                        return true;
        }
        return false;
}

static bool is_worth_showing(const struct analysis *a, const struct stack_tree *t, enum report_view view,
                             uint32_t node) {
        if (view == REPORT_WAITS)
                return is_on_path(a, t->labels + t->nodes[node].label) &&
                       t->nodes[node].total * NSEC_PER_USEC * 100 >= a->duration_ns * STACK_PERCENT_MIN;
        return t->nodes[node].total * 100 >= t->nodes[0].total * STACK_PERCENT_MIN;
}

/* The leaves that are shown, largest first. */
struct choice {
        struct stack_tree tree;
        uint32_t shown[STACKS_MAX];
        size_t n;
};

static void choose(const struct analysis *a, enum report_view view, struct choice *c) {
        const struct stack_tree *t = &c->tree;

        for (uint32_t i = 1; i < t->n_nodes; i = t->nodes[i].end) {
                size_t at = c->n;

                if (!is_worth_showing(a, t, view, i))
                        continue;
                while (at > 0 && t->nodes[c->shown[at - 1]].total < t->nodes[i].total)
                        at--;
                if (at == STACKS_MAX)
                        continue;
                c->n = MIN(c->n + 1, (size_t) STACKS_MAX);
                memmove(c->shown + at + 1, c->shown + at, (c->n - at - 1) * sizeof(*c->shown));
                c->shown[at] = i;
        }
}

static void put_choice(struct page *p, const struct choice *c, enum report_view view, unsigned budget) {
        if (c->n == 0 || budget < STACKS_LINES_MIN)
                return;
        budget -= 2;
        page_blank(p);
        page_line(p, PAGE_BOLD, 0,
                  view == REPORT_CPU ? "Hottest on the CPU, with who called it"
                                     : "Waited longest, with who called it");
        for (size_t i = 0; i < c->n && budget > 0; i++) {
                unsigned before = p->lines, fair = budget / (unsigned) (c->n - i);

                put_hot(p, &c->tree, view, c->shown[i], MIN(MAX(fair, 1u) - 1, (unsigned) CALLERS_MAX));
                budget -= MIN(budget, p->lines - before);
        }
}

static int put_stacks_of(struct page *p, const struct analysis *a, enum report_view view, unsigned budget,
                         size_t *ret_shown) {
        struct choice c = { .tree = STACK_TREE_NULL };
        int error = stack_tree_init(a->recording, view, false, STACK_TREE_UP, &c.tree);

        if (error < 0)
                return error;
        choose(a, view, &c);
        put_choice(p, &c, view, budget);
        *ret_shown = c.n;
        stack_tree_done(&c.tree);
        return 0;
}

/* Waits without stacks, as in older recordings, leave the place to what was on the CPU. */
static int put_stacks(struct page *p, const struct analysis *a, unsigned budget) {
        enum report_view view = view_of_start(a);
        size_t shown;
        int error = put_stacks_of(p, a, view, budget, &shown);

        if (error < 0 || view == REPORT_CPU || shown > 0)
                return error;
        return put_stacks_of(p, a, REPORT_CPU, budget, &shown);
}

/* ---- honesty ---- */

/* From one stack in a hundred on: why they are not complete, and how much of them there is. */
static void put_ends(struct buf *b, const struct quality *q) {
        bool any = false;

        if ((uint64_t) (q->samples - MIN(q->complete, q->samples)) * 100 < q->samples || q->samples == 0)
                return;
        for (uint32_t end = 0; end < REC_STACK_END_MAX; end++) {
                const struct end_quality *e = q->ends + end;

                if (stack_end_is_complete(end) || (uint64_t) e->samples * 200 < q->samples ||
                    e->samples == 0)
                        continue;
                buf_puts(b, any ? ", " : " Incomplete: ");
                text_count(b, e->samples);
                buf_printf(b, " %s", recording_stack_end_str(end));
                if (e->frames > 0) {
                        buf_puts(b, " (up to ");
                        text_count(b, e->frames);
                        buf_puts(b, e->frames == 1 ? " frame)" : " frames)");
                }
                any = true;
        }
        if (any)
                buf_putc(b, '.');
}

static void put_samples(struct page *p, const struct analysis *a) {
        const struct rec_start *s = a->recording->start;
        const struct quality *q = &a->quality;
        _cleanup_(buf_done) struct buf b = BUF_NULL;

        if (q->samples == 0) {
                buf_puts(&b, "No samples: ");
                if (q->lost > 0)
                        buf_puts(&b, "all of them were lost");
                else if (a->recording->n_processes == 0)
                        buf_puts(&b, "no process of the unit was seen");
                else
                        buf_printf(&b,
                                   "its processes were hardly on a CPU (one sample every %u ms of CPU time)",
                                   s->frequency_hz > 0 ? (1000 + s->frequency_hz / 2) / s->frequency_hz
                                                       : 10);
        } else {
                text_count(&b, q->samples);
                buf_printf(&b, "%s at %u Hz: %llu%% of stacks complete, %llu%% of frames named",
                           q->samples == 1 ? " sample" : " samples", s->frequency_hz,
                           (unsigned long long) q->complete * 100 / q->samples,
                           (unsigned long long) (q->frames > 0 ? q->named_frames * 100 / q->frames : 0));
        }
        if (q->samples == 0 && q->lost == 0)
                buf_putc(&b, '.');
        else if (q->lost == 0)
                buf_puts(&b, ", none lost.");
        else {
                buf_puts(&b, "; ");
                text_count(&b, q->lost);
                buf_puts(&b, " lost.");
        }
        put_ends(&b, q);
        page_wrap(p, PAGE_GREY, 0, 2, buf_text(&b));
}

static void put_cost(struct page *p, const struct analysis *a, const struct report_options *options) {
        const struct rec_start *s = a->recording->start;
        _cleanup_(buf_done) struct buf b = BUF_NULL, recording = BUF_NULL;

        if (s->cost_ns > 0) {
                buf_puts(&b, "Profiling took ");
                text_span(&b, s->cost_ns / NSEC_PER_USEC);
                buf_printf(&b, " of CPU time (%.1f%% of the start).", analysis_share(a, s->cost_ns) * 100);
        }
        if (options->recording && *options->recording)
                buf_printf(&recording, "Recording: %s", options->recording);
        if (b.size > 0 && recording.size > 0 && b.size + 1 + recording.size <= p->columns) {
                buf_printf(&b, " %s", buf_text(&recording));
                buf_reset(&recording);
        }
        if (b.size > 0)
                page_wrap(p, PAGE_GREY, 0, 2, buf_text(&b));
        if (recording.size > 0)
                page_wrap(p, PAGE_GREY, 0, 2, buf_text(&recording));
}

static void put_losses(struct page *p, const struct analysis *a) {
        _cleanup_(buf_done) struct buf b = BUF_NULL;

        for (uint32_t what = 0; what < REC_LOST_MAX; what++) {
                uint64_t n = a->recording->start->lost[what];

                if (what == REC_LOST_SAMPLES || n == 0) /* samples have been told */
                        continue;
                buf_puts(&b, b.size == 0 ? "Also lost: " : ", ");
                text_count(&b, n);
                buf_printf(&b, " %s", recording_lost_str(what));
        }
        if (b.size > 0)
                page_wrap(p, PAGE_GREY, 0, 2, buf_text(&b));
}

/* Which modules the missing names would have come from, and why they did not. */
static void put_ledger(struct page *p, const struct analysis *a) {
        const struct recording *r = a->recording;
        const struct quality *q = &a->quality;
        uint32_t shown = 0, stripped = 0;

        for (uint32_t i = 0; i < q->n_modules && shown < LEDGER_MAX; i++) {
                const struct module_quality *m = q->modules + i;
                const char *path = recording_text(r, r->modules[m->module].path);
                uint32_t reason = r->symbols ? r->symbols[m->module].reason : REC_REASON_NONE;
                _cleanup_(buf_done) struct buf b = BUF_NULL;

                if (m->unnamed_frames * 100 < q->frames * LEDGER_PERCENT)
                        continue;
                buf_printf(&b, "No names in %s (%llu%% of frames)%s%s", *path ? path : "generated code",
                           (unsigned long long) (m->unnamed_frames * 100 / q->frames),
                           reason != REC_REASON_NONE ? ": " : "", recording_reason_str(reason));
                page_wrap(p, PAGE_GREY, 0, 2, buf_text(&b));
                shown++;
                stripped += reason == REC_REASON_STRIPPED;
        }
        if (stripped > 0) {
                _cleanup_(buf_done) struct buf advice = BUF_NULL;

                symbol_advice(&advice, r, REC_REASON_STRIPPED);
                page_wrap(p, PAGE_GREY, 2, 2, buf_text(&advice));
        }
}

/* A run-time whose functions have no names, and how they get some. */
static void put_gap(struct page *p, const struct analysis *a, const struct language_gap *gap) {
        const char *unit = recording_text(a->recording, a->recording->start->unit);
        const char *dropin = language_dropin(gap->language);
        _cleanup_(buf_done) struct buf b = BUF_NULL;

        language_advice(&b, gap);
        if (dropin)
                buf_printf(&b, " For one start: startprof --perf-map %s; for all (systemctl edit %s):", unit,
                           unit);
        page_wrap(p, PAGE_GREY, 0, 2, buf_text(&b));
        if (dropin)
                put_dropin(p, dropin);
}

/* Each run-time once, if a good part of the samples has functions of its. */
static void put_gaps(struct page *p, const struct analysis *a) {
        const struct quality *q = &a->quality;
        uint32_t told = 0;

        for (uint32_t i = 0; i < q->n_modules; i++) {
                const struct language_gap *gap = analysis_gap(a, q->modules[i].module);

                if (!gap || told & 1U << gap->language ||
                    q->modules[i].samples * 100ULL < q->samples * LEDGER_PERCENT)
                        continue;
                told |= 1U << gap->language;
                put_gap(p, a, gap);
        }
}

static void put_honesty(struct page *p, const struct analysis *a, const struct report_options *options) {
        page_blank(p);
        put_samples(p, a);
        put_losses(p, a);
        put_ledger(p, a);
        put_gaps(p, a);
        put_cost(p, a, options);
}

static unsigned columns_of(const struct report_options *options) {
        unsigned columns = options->columns > 0 ? options->columns : PAGE_COLUMNS_DEFAULT;

        return MIN(MAX(columns, (unsigned) PAGE_COLUMNS_MIN), (unsigned) PAGE_COLUMNS_MAX);
}

static void put_answer(struct page *p, const struct analysis *a, size_t rows_max) {
        put_verdict(p, a);
        put_breakdown(p, a, rows_max);
        put_milestones(p, a);
}

int report_write_text(const struct analysis *a, const struct report_options *options, FILE *out) {
        struct page page = { .columns = columns_of(options), .color = options->color };
        struct page end = page; /* what comes last: its height decides about the stacks */
        size_t rows_max = ROWS_MAX;
        int error;

        put_honesty(&end, a, options);
        put_answer(&page, a, rows_max);
        while (page.lines + end.lines > LINES_MAX && rows_max > ROWS_MIN) { /* long names need the room */
                buf_reset(&page.text);
                page.lines = 0;
                put_answer(&page, a, --rows_max);
        }
        error = put_stacks(&page, a, LINES_MAX - MIN(page.lines + end.lines, (unsigned) LINES_MAX));
        if (error >= 0)
                error = buf_error(&page.text) < 0 ? buf_error(&page.text) : buf_error(&end.text);
        if (error >= 0)
                fprintf(out, "%s%s", buf_text(&page.text), buf_text(&end.text));
        buf_done(&page.text);
        buf_done(&end.text);
        return MIN(error, 0);
}
