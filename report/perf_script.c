/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <inttypes.h>

#include "common/text.h"
#include "report/names.h"
#include "report/process_index.h"
#include "report/writers.h"

/*
 * Text as perf-script(1) prints it with its default fields, so that what reads that reads this: a head line and the
 * stack, innermost first, for each sample. CPU samples are events "cpu-clock", waits "startprof:wait" with the blocked
 * time as their period. Addresses are offsets in the file.
 */

static bool in_view(const struct report_options *options, const struct rec_sample *s) {
        bool cpu = sample_is_cpu(s);

        return options->view == REPORT_WALL || cpu == (options->view == REPORT_CPU);
}

/* The lines of each frame, made once: samples have the same ones again and again. */
struct perf_text {
        const struct recording *r;
        FILE *out;
        struct buf lines;
        size_t *begin, *end; /* per frame; both 0: not made */
};

static void perf_text_done(struct perf_text *t) {
        buf_done(&t->lines);
        free(t->begin);
        free(t->end);
}

static void put_line(struct buf *b, uint64_t address, const char *name, uint32_t displacement, bool inlined,
                     const char *module) {
        buf_printf(b, "\t%16" PRIx64 " ", address);
        text_escape_terminal(b, name);
        if (inlined) {
                buf_puts(b, " (inlined)\n");
                return;
        }
        if (name[0] != '[')
                buf_printf(b, "+0x%" PRIx32, displacement);
        buf_puts(b, " (");
        text_escape_terminal(b, *module ? module : "[unknown]");
        buf_puts(b, ")\n");
}

/* A name comes once a sample. */
static void cut(struct buf *name) {
        enum { NAME_BYTES_MAX = 1024 };

        if (name->size <= NAME_BYTES_MAX)
                return;
        name->size = NAME_BYTES_MAX;
        while (name->size > 0 && (name->data[name->size] & 0xc0) == 0x80) /* not within a character */
                name->size--;
        name->data[name->size] = '\0';
}

static void make_lines(struct perf_text *t, uint32_t frame) {
        const struct recording *r = t->r;
        const struct rec_frame *f = r->frames + frame;
        const char *module = f->module < r->n_modules ? recording_text(r, r->modules[f->module].path) : "";
        const struct rec_name *rows = NULL;
        uint32_t n = frame_is_named(r, frame) ? frame_names(r, frame, &rows) : 0;

        t->begin[frame] = t->lines.size;
        if (n == 0)
                put_line(&t->lines, f->offset, "[unknown]", 0, false, module);
        for (uint32_t i = 0; i < n; i++) {
                _cleanup_(buf_done) struct buf name = BUF_NULL;

                frame_full_name(&name, r, frame, rows + i);
                cut(&name);
                if (buf_error(&name) < 0)
                        t->lines.error = t->lines.error ?: buf_error(&name);
                put_line(&t->lines, f->offset, buf_text(&name), rows[i].displacement, i + 1 < n, module);
        }
        t->end[frame] = t->lines.size;
}

static void put_stack(struct perf_text *t, uint32_t stack) {
        enum { FRAMES_MAX = 1024 };
        const struct rec_stack *s = stack < t->r->n_stacks ? t->r->stacks + stack : NULL;

        for (uint32_t i = 0; s && i < MIN(s->count, (uint32_t) FRAMES_MAX); i++) {
                uint32_t frame = t->r->stack_frames[s->first + i];

                if (t->end[frame] == 0)
                        make_lines(t, frame);
                fwrite(buf_text(&t->lines) + t->begin[frame], 1, t->end[frame] - t->begin[frame], t->out);
        }
}

static int put_sample(struct perf_text *t, const struct rec_sample *s) {
        _cleanup_(buf_done) struct buf head = BUF_NULL, leaf = BUF_NULL;
        const struct recording *r = t->r;
        const char *comm = s->comm ? recording_text(r, s->comm) : process_name(r, s->process);

        text_escape_terminal(&head, *comm ? comm : ":-1");
        buf_printf(&head, " %u/%u [%03u] %" PRIu64 ".%06" PRIu64 ": %10" PRIu64 " %s:\n",
                   r->processes[s->process].pid, s->tid, s->cpu, s->time_ns / NSEC_PER_SEC,
                   s->time_ns % NSEC_PER_SEC / NSEC_PER_USEC, s->weight_ns,
                   sample_is_cpu(s) ? "cpu-clock" : "startprof:wait");
        sample_leaf(&leaf, s);
        if (leaf.size > 0)
                put_line(&head, 0, buf_text(&leaf), 0, false, "[kernel.kallsyms]");
        fwrite(buf_text(&head), 1, head.size, t->out);
        put_stack(t, s->stack);
        fputc('\n', t->out);
        return buf_error(&head) ?: buf_error(&leaf) ?: buf_error(&t->lines);
}

int report_write_perf(const struct analysis *a, const struct report_options *options, FILE *out) {
        _cleanup_(perf_text_done) struct perf_text t = { .r = a->recording, .out = out, .lines = BUF_NULL };
        int error = 0;

        t.begin = calloc((size_t) t.r->n_frames + 1, sizeof(*t.begin));
        t.end = calloc((size_t) t.r->n_frames + 1, sizeof(*t.end));
        if (!t.begin || !t.end)
                return -ENOMEM;
        for (uint32_t i = 0; error >= 0 && i < t.r->n_samples; i++)
                if (in_view(options, t.r->samples + i) && t.r->samples[i].process < t.r->n_processes)
                        error = put_sample(&t, t.r->samples + i);
        return error;
}
