/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/sample_stacks.h"

#include <errno.h>
#include <stdlib.h>

#include "common/hash.h"
#include "common/macro.h"
#include "report/process_index.h"

enum {
        FRAMES_MAX = 1024, /* of one stack; the unwinder stops there */
        LINKS_MAX = 16 * 1024 * 1024, /* a file can make a few bytes of frames into stacks without end */
        NOT_MADE = REC_NONE - 1, /* no link yet */
};

struct builder {
        struct sample_stacks *to;
        struct hash *known_rows, *known_links;
        size_t rows_allocated, links_allocated;
        uint32_t *first_row; /* per frame, REC_NONE: not made yet; inlined rows follow, outermost first */
        uint32_t *n_frame_rows;
        uint32_t *stack_leaves; /* per stack: its innermost link */
};

static void builder_done(struct builder *b) {
        hash_free(b->known_rows);
        hash_free(b->known_links);
        free(b->first_row);
        free(b->n_frame_rows);
        free(b->stack_leaves);
}

/* Room for one more. */
static int grow(void *array_pointer, size_t *allocated, size_t used, size_t bytes) {
        void **array = array_pointer, *grown;

        if (used < *allocated)
                return 0;
        grown = reallocarray(*array, MAX(*allocated * 2, (size_t) 256), bytes);
        if (!grown)
                return -ENOMEM;
        *array = grown;
        *allocated = MAX(*allocated * 2, (size_t) 256);
        return 0;
}

/* ---- rows ---- */

static size_t keep(struct sample_stacks *s, const char *text) {
        size_t at = s->texts.size;

        buf_puts(&s->texts, text);
        buf_putc(&s->texts, '\0');
        return at;
}

static int add_row(struct builder *b, const struct stack_row *row, uint32_t *ret) {
        struct sample_stacks *s = b->to;
        int r = grow(&s->rows, &b->rows_allocated, s->n_rows, sizeof(*s->rows));

        if (r < 0)
                return r;
        *ret = (uint32_t) s->n_rows;
        s->rows[s->n_rows++] = *row;
        return buf_error(&s->texts);
}

static int mark_row(struct builder *b, const char *text, uint32_t *ret) {
        uint64_t known;
        int r = hash_intern(b->known_rows, text, strlen(text), b->to->n_rows, &known);
        struct stack_row row = { .frame = REC_NONE, .file = "", .kind = FRAME_MARK };

        if (r < 0)
                return r;
        *ret = (uint32_t) known;
        if (r == 0)
                return 0;
        row.name = row.full = keep(b->to, text);
        return add_row(b, &row, ret);
}

static int frame_row(struct builder *b, uint32_t frame, const struct rec_name *name, uint32_t *ret) {
        _cleanup_(buf_done) struct buf text = BUF_NULL, full = BUF_NULL;
        const struct recording *r = b->to->recording;
        uint32_t module = r->frames[frame].module;
        struct stack_row row = {
                .frame = frame,
                .line = name ? name->line : 0,
                .file = name && name->file      ? recording_text(r, name->file)
                        : module < r->n_modules ? recording_text(r, r->modules[module].path)
                                                : "",
                .kind = frame_kind_of(r, frame),
        };

        frame_short_name(&text, r, frame, name);
        frame_full_name(&full, r, frame, name);
        if (buf_error(&text) < 0 || buf_error(&full) < 0)
                return -ENOMEM;
        row.name = row.full = keep(b->to, buf_text(&text));
        if (!streq(buf_text(&text), buf_text(&full)))
                row.full = keep(b->to, buf_text(&full));
        return add_row(b, &row, ret);
}

static int make_rows(struct builder *b, uint32_t frame) {
        const struct rec_name *names = NULL;
        uint32_t n = frame_names(b->to->recording, frame, &names), row = 0;

        if (b->first_row[frame] != REC_NONE)
                return 0;
        b->first_row[frame] = (uint32_t) b->to->n_rows;
        b->n_frame_rows[frame] = MAX(n, UINT32_C(1));
        for (uint32_t i = b->n_frame_rows[frame]; i > 0; i--) {
                int r = frame_row(b, frame, n > 0 ? names + i - 1 : NULL, &row);

                if (r < 0)
                        return r;
        }
        return 0;
}

/* ---- links ---- */

static int link_row(struct builder *b, uint32_t parent, uint32_t row, uint32_t *ret) {
        struct sample_stacks *s = b->to;
        struct stack_link link = { parent, row };
        uint64_t known;
        int r;

        if (s->n_links >= LINKS_MAX) {
                *ret = parent;
                return 0;
        }
        r = hash_intern(b->known_links, &link, sizeof(link), s->n_links, &known);
        if (r < 0)
                return r;
        *ret = (uint32_t) known;
        if (r == 0)
                return 0;
        r = grow(&s->links, &b->links_allocated, s->n_links, sizeof(*s->links));
        if (r < 0)
                return r;
        s->links[s->n_links++] = link;
        return 0;
}

static int link_mark(struct builder *b, uint32_t parent, const char *text, uint32_t *ret) {
        uint32_t row = 0;
        int r = mark_row(b, text, &row);

        return r < 0 ? r : link_row(b, parent, row, ret);
}

static int link_frame(struct builder *b, uint32_t frame, uint32_t *leaf) {
        int r = make_rows(b, frame);

        for (uint32_t i = 0; r >= 0 && i < b->n_frame_rows[frame]; i++)
                r = link_row(b, *leaf, b->first_row[frame] + i, leaf);
        return r;
}

static const char *stack_mark(const struct rec_stack *stack) {
        switch (stack->end) {
        case REC_STACK_COMPLETE:
        case REC_STACK_GONE: return stack->count > FRAMES_MAX ? "[deeper]" : NULL;
        case REC_STACK_COMPAT: return "[no stack: 32-bit]";
        default: return stack->count == 0 ? "[no stack]" : "[incomplete stack]";
        }
}

static int link_stack(struct builder *b, uint32_t stack, uint32_t *ret) {
        const struct recording *r = b->to->recording;
        const struct rec_stack *s = r->stacks + stack;
        const char *mark = stack_mark(s);
        uint32_t leaf = REC_NONE;
        int error = mark ? link_mark(b, leaf, mark, &leaf) : 0;

        for (uint32_t i = MIN(s->count, (uint32_t) FRAMES_MAX); error >= 0 && i > 0; i--)
                error = link_frame(b, r->stack_frames[s->first + i - 1], &leaf);
        *ret = leaf;
        return error;
}

static int link_sample(struct builder *b, const struct rec_sample *s, uint32_t *ret) {
        _cleanup_(buf_done) struct buf text = BUF_NULL;
        uint32_t leaf = REC_NONE;
        int r = 0;

        if (s->stack >= b->to->recording->n_stacks)
                r = link_mark(b, leaf, s->flags & REC_SAMPLE_COMPAT ? "[no stack: 32-bit]" : "[no stack]",
                              &leaf);
        else if (b->stack_leaves[s->stack] != NOT_MADE)
                leaf = b->stack_leaves[s->stack];
        else {
                r = link_stack(b, s->stack, &leaf);
                b->stack_leaves[s->stack] = leaf;
        }
        sample_leaf(&text, s);
        if (r >= 0 && text.size > 0)
                r = link_mark(b, leaf, buf_text(&text), &leaf);
        *ret = leaf;
        return r < 0 ? r : buf_error(&text);
}

/* ---- samples in time ---- */

static int add_timed(struct builder *b, uint32_t sample) {
        struct sample_stacks *to = b->to;
        const struct rec_sample *s = to->recording->samples + sample;
        const struct thread_time *thread = thread_times_find(&to->threads, s->process, s->tid);
        struct timed_stack t = { .end_ns = s->time_ns,
                                 .weight_ns = s->weight_ns,
                                 .sample = sample,
                                 .kind = !sample_is_cpu(s) ? TIMED_WAIT : TIMED_CPU };
        uint64_t span = t.kind == TIMED_WAIT ? s->blocked_ns : s->weight_ns;
        int r;

        if (!thread || s->weight_ns == 0)
                return 0;
        if (t.kind == TIMED_CPU && thread->on_cpu_ns > 0)
                t.weight_ns = thread->on_cpu_ns / thread->cpu_samples;
        t.begin_ns = t.end_ns - MIN(span, t.end_ns);
        t.thread = (uint32_t) (thread - to->threads.threads);
        r = link_sample(b, s, &t.leaf);
        if (r < 0)
                return r;
        to->timed[to->n_timed++] = t;
        return 0;
}

static int add_rest(struct builder *b, const struct thread_time *thread, const char *mark, uint64_t ns) {
        struct sample_stacks *to = b->to;
        struct timed_stack t = { .weight_ns = ns, .sample = REC_NONE, .kind = TIMED_REST };
        int r;

        if (ns < NSEC_PER_USEC)
                return 0;
        t.begin_ns = t.end_ns = to->recording->start->end_ns;
        t.thread = (uint32_t) (thread - to->threads.threads);
        r = link_mark(b, REC_NONE, mark, &t.leaf);
        if (r < 0)
                return r;
        to->timed[to->n_timed++] = t;
        return 0;
}

static int add_rests(struct builder *b) {
        for (size_t i = 0; i < b->to->threads.n_threads; i++) {
                const struct thread_time *t = b->to->threads.threads + i;
                int r = 0;

                if (t->blocked_ns > t->wait_weight_ns)
                        r = add_rest(b, t, "[short waits]", t->blocked_ns - t->wait_weight_ns);
                if (r >= 0 && t->cpu_samples == 0)
                        r = add_rest(b, t, "[on a CPU, without a sample]", t->on_cpu_ns);
                if (r >= 0)
                        r = add_rest(b, t, "[waiting for a CPU]", t->runnable_ns);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int by_end(const void *x, const void *y) {
        const struct timed_stack *a = x, *b = y;

        if (a->end_ns != b->end_ns)
                return a->end_ns < b->end_ns ? -1 : 1;
        if (a->thread != b->thread)
                return a->thread < b->thread ? -1 : 1;
        return a->sample < b->sample ? -1 : a->sample > b->sample;
}

/* A thread does one thing at a time: each span begins where the one before ended, at the earliest. */
static int set_apart(struct sample_stacks *s) {
        _cleanup_free_ uint64_t *ends = calloc(s->threads.n_threads + 1, sizeof(*ends));

        if (!ends)
                return -ENOMEM;
        for (size_t i = 0; i < s->n_timed; i++) {
                struct timed_stack *t = s->timed + i;

                t->begin_ns = MAX(t->begin_ns, MIN(ends[t->thread], t->end_ns));
                ends[t->thread] = t->end_ns;
        }
        return 0;
}

static int build(struct builder *b) {
        struct sample_stacks *to = b->to;
        const struct recording *r = to->recording;
        int error = thread_times_init(r, &to->threads);

        if (error < 0)
                return error;
        b->known_rows = hash_new();
        b->known_links = hash_new();
        b->first_row = malloc(((size_t) r->n_frames + 1) * sizeof(*b->first_row));
        b->n_frame_rows = calloc((size_t) r->n_frames + 1, sizeof(*b->n_frame_rows));
        b->stack_leaves = malloc(((size_t) r->n_stacks + 1) * sizeof(*b->stack_leaves));
        to->timed = calloc((size_t) r->n_samples + 3 * to->threads.n_threads + 1, sizeof(*to->timed));
        if (!b->known_rows || !b->known_links || !b->first_row || !b->n_frame_rows || !b->stack_leaves ||
            !to->timed)
                return -ENOMEM;
        for (uint32_t i = 0; i < r->n_frames; i++)
                b->first_row[i] = REC_NONE;
        for (uint32_t i = 0; i < r->n_stacks; i++)
                b->stack_leaves[i] = NOT_MADE;

        for (uint32_t i = 0; i < r->n_samples; i++) {
                error = add_timed(b, i);
                if (error < 0)
                        return error;
        }
        error = add_rests(b);
        if (error < 0)
                return error;
        qsort(to->timed, to->n_timed, sizeof(*to->timed), by_end);
        return set_apart(to);
}

int sample_stacks_init(const struct recording *r, struct sample_stacks *ret) {
        struct sample_stacks s = SAMPLE_STACKS_NULL;
        _cleanup_(builder_done) struct builder b = { .to = &s };
        int error;

        s.recording = r;
        error = build(&b);
        if (error < 0) {
                sample_stacks_done(&s);
                return error;
        }
        *ret = s;
        return 0;
}

void sample_stacks_done(struct sample_stacks *s) {
        thread_times_done(&s->threads);
        free(s->rows);
        free(s->links);
        free(s->timed);
        buf_done(&s->texts);
        *s = SAMPLE_STACKS_NULL;
}

const char *stack_row_name(const struct sample_stacks *s, uint32_t row) {
        return buf_text(&s->texts) + s->rows[row].name;
}

const char *stack_row_full(const struct sample_stacks *s, uint32_t row) {
        return buf_text(&s->texts) + s->rows[row].full;
}

size_t stack_path(const struct sample_stacks *s, uint32_t leaf, uint32_t *ret_rows, size_t max) {
        size_t length = 0, at;

        for (uint32_t i = leaf; i != REC_NONE; i = s->links[i].parent)
                length++;
        at = length;
        for (uint32_t i = leaf; i != REC_NONE; i = s->links[i].parent)
                if (--at < max)
                        ret_rows[at] = s->links[i].row;
        return MIN(length, max);
}
