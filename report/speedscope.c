/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/json_text.h"
#include "report/sample_stacks.h"
#include "report/writers.h"

/*
 * speedscope's own format (its file-format-spec.ts, schema "https://www.speedscope.app/file-format-schema.json"): one
 * file, one list of frames, a profile for each of CPU, waits and wall clock, and one for each process that took most
 * time. Weights are nanoseconds; equal neighbours are one entry.
 */

enum {
        PROCESSES_MAX = 64, /* with a profile of their own */
        PATH_MAX_ROWS = 4096, /* inlined ones included */
        DIGITS_MAX = 10, /* of a row */
};

struct speedscope {
        const struct sample_stacks *stacks;
        FILE *out;
        uint32_t path[PATH_MAX_ROWS];
        char text[PATH_MAX_ROWS * (DIGITS_MAX + 1) + 1]; /* of one sample */
        bool second; /* profile: a comma comes first */
};

/* Which samples a profile has. */
struct choice {
        const char *name;
        uint32_t process; /* REC_NONE: all */
        bool cpu, waits, rest;
};

static uint32_t process_of(const struct sample_stacks *s, const struct timed_stack *t) {
        return s->threads.threads[t->thread].process;
}

static bool chosen(const struct sample_stacks *s, const struct choice *c, const struct timed_stack *t) {
        if (c->process != REC_NONE && process_of(s, t) != c->process)
                return false;
        return t->kind == TIMED_CPU ? c->cpu : t->kind == TIMED_WAIT ? c->waits : c->rest;
}

/* Frames: the rows, then one for each thread. */
static int put_frame(const struct speedscope *w, const char *name, const char *file, uint32_t line) {
        int r;

        fputs("{\"name\":", w->out);
        r = json_put_text(w->out, name);
        if (r >= 0 && *file) {
                fputs(",\"file\":", w->out);
                r = json_put_text(w->out, file);
        }
        if (line > 0)
                fprintf(w->out, ",\"line\":%u", line);
        fputc('}', w->out);
        return r;
}

static int put_thread(const struct speedscope *w, const struct thread_time *t) {
        _cleanup_(buf_done) struct buf name = BUF_NULL;
        const struct recording *r = w->stacks->recording;

        buf_printf(&name, "%s (%u/%u)", t->comm ? recording_text(r, t->comm) : process_name(r, t->process),
                   r->processes[t->process].pid, t->tid);
        return buf_error(&name) < 0
                       ? -ENOMEM
                       : put_frame(w, buf_text(&name), recording_text(r, r->processes[t->process].exe), 0);
}

static int put_frames(const struct speedscope *w) {
        const struct sample_stacks *s = w->stacks;
        int r = 0;

        for (uint32_t i = 0; r >= 0 && i < s->n_rows; i++) {
                if (i > 0)
                        fputc(',', w->out);
                r = put_frame(w, stack_row_name(s, i), s->rows[i].file, s->rows[i].line);
        }
        for (size_t i = 0; r >= 0 && i < s->threads.n_threads; i++) {
                if (s->n_rows + i > 0)
                        fputc(',', w->out);
                r = put_thread(w, s->threads.threads + i);
        }
        if (s->n_rows + s->threads.n_threads == 0)
                r = put_frame(w, "[nothing was sampled]", "", 0);
        return r;
}

/* Numbers are most of the file: printf(3) takes ten times as long. */
static char *put_row(char *at, uint32_t row) {
        char digits[DIGITS_MAX], *p = digits + sizeof(digits);

        *at++ = ',';
        do
                *--p = (char) ('0' + row % 10);
        while (row /= 10);
        return mempcpy(at, p, (size_t) (digits + sizeof(digits) - p));
}

static void put_sample(struct speedscope *w, const struct timed_stack *t, bool first) {
        size_t n = stack_path(w->stacks, t->leaf, w->path, PATH_MAX_ROWS);
        char *end = w->text;

        fprintf(w->out, "%s[%zu", first ? "" : ",", w->stacks->n_rows + t->thread);
        for (size_t i = 0; i < n; i++)
                end = put_row(end, w->path[i]);
        *end++ = ']';
        fwrite(w->text, 1, (size_t) (end - w->text), w->out);
}

static const struct timed_stack *next_chosen(const struct sample_stacks *s, const struct choice *c,
                                             size_t *at, uint64_t *ret_weight) {
        const struct timed_stack *t = NULL;

        for (; *at < s->n_timed; ++*at) {
                const struct timed_stack *next = s->timed + *at;

                if (!chosen(s, c, next))
                        continue;
                if (t && (t->thread != next->thread || t->leaf != next->leaf))
                        break;
                if (!t)
                        *ret_weight = 0;
                t = next;
                *ret_weight += next->weight_ns;
        }
        return t;
}

/* In both lists the same turns: the second is not kept meanwhile. */
static void put_lists(struct speedscope *w, const struct choice *c) {
        const struct timed_stack *t;
        uint64_t weight, total = 0;
        size_t at = 0, n = 0;

        fputs(",\"samples\":[", w->out);
        while ((t = next_chosen(w->stacks, c, &at, &weight)))
                put_sample(w, t, n++ == 0);
        if (n == 0 && c->process == REC_NONE)
                fputs("[0]", w->out);
        fputs("],\"weights\":[", w->out);
        at = 0;
        for (size_t i = 0; next_chosen(w->stacks, c, &at, &weight); i++) {
                fprintf(w->out, "%s%llu", i > 0 ? "," : "", (unsigned long long) weight);
                total += weight;
        }
        if (n == 0)
                fputc('0', w->out);
        fprintf(w->out, "],\"startValue\":0,\"endValue\":%llu}", (unsigned long long) total);
}

static int put_profile(struct speedscope *w, const struct choice *c) {
        int r;

        fprintf(w->out, "%s{\"type\":\"sampled\",\"unit\":\"nanoseconds\",\"name\":", w->second ? "," : "");
        w->second = true;
        r = json_put_text(w->out, c->name);
        if (r >= 0)
                put_lists(w, c);
        return r;
}

struct process_time {
        uint64_t ns;
        uint32_t process;
};

static int by_time(const void *x, const void *y) {
        const struct process_time *a = x, *b = y;

        if (a->ns != b->ns)
                return a->ns > b->ns ? -1 : 1;
        return a->process < b->process ? -1 : a->process > b->process;
}

static int put_processes(struct speedscope *w) {
        const struct recording *r = w->stacks->recording;
        _cleanup_free_ struct process_time *times = calloc((size_t) r->n_processes + 1, sizeof(*times));
        int error = 0;

        if (!times)
                return -ENOMEM;
        for (uint32_t i = 0; i < r->n_processes; i++)
                times[i].process = i;
        for (size_t i = 0; i < w->stacks->n_timed; i++)
                times[process_of(w->stacks, w->stacks->timed + i)].ns += w->stacks->timed[i].weight_ns;
        qsort(times, r->n_processes, sizeof(*times), by_time);

        for (size_t i = 0; error >= 0 && i < MIN((size_t) r->n_processes, (size_t) PROCESSES_MAX); i++) {
                _cleanup_(buf_done) struct buf name = BUF_NULL;
                struct choice c = { .process = times[i].process, .cpu = true, .waits = true, .rest = true };

                if (times[i].ns == 0)
                        break;
                buf_printf(&name, "%s (pid %u): wall clock", process_name(r, times[i].process),
                           r->processes[times[i].process].pid);
                c.name = buf_text(&name);
                error = buf_error(&name) < 0 ? -ENOMEM : put_profile(w, &c);
        }
        return error;
}

int report_write_speedscope(const struct analysis *a, const struct report_options *options, FILE *out) {
        static const struct choice all[] = {
                { .name = "CPU", .process = REC_NONE, .cpu = true },
                { .name = "Waits", .process = REC_NONE, .waits = true },
                { .name = "Wall clock of all threads",
                  .process = REC_NONE,
                  .cpu = true,
                  .waits = true,
                  .rest = true },
        };
        _cleanup_(sample_stacks_done) struct sample_stacks stacks = SAMPLE_STACKS_NULL;
        _cleanup_free_ struct speedscope *w = calloc(1, sizeof(*w));
        int r = w ? sample_stacks_init(a->recording, &stacks) : -ENOMEM;

        if (r < 0)
                return r;
        w->stacks = &stacks;
        w->out = out;
        fputs("{\"$schema\":\"https://www.speedscope.app/"
              "file-format-schema.json\",\"exporter\":\"startprof " STARTPROF_VERSION "\",\"name\":",
              out);
        r = json_put_text(out, recording_text(a->recording, a->recording->start->unit));
        if (r < 0)
                return r;
        fprintf(out, ",\"activeProfileIndex\":%d,\"shared\":{\"frames\":[", (int) options->view);
        r = put_frames(w);
        if (r < 0)
                return r;
        fputs("]},\"profiles\":[", out);
        for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(all); i++)
                r = put_profile(w, all + i);
        if (r >= 0)
                r = put_processes(w);
        fputs("]}\n", out);
        return r;
}
