/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/json_text.h"
#include "report/sample_stacks.h"
#include "report/writers.h"

/*
 * Chrome's trace events ("Trace Event Format"), for Perfetto and chrome://tracing: a row for the unit with milestones
 * and findings, one for each process with its life, and for each thread what it did over time as nested slices, made
 * of its samples: neighbours that share callers share the slices of those. Times are microseconds since the request.
 */

enum {
        DEPTH_MAX = 512, /* slices of one stack */
        SLICES_MAX =
                500000, /* of all stacks: viewers take no more. Beyond, the innermost levels are left out */
        UNIT_PID = 0, /* the row of the unit: no process has it */
};

struct slice {
        uint32_t row;
        uint64_t begin_ns;
};

/* What is open in a thread. */
struct open {
        struct slice slices[DEPTH_MAX];
        size_t n;
        uint64_t end_ns; /* of the last span */
};

struct trace {
        const struct analysis *a;
        const struct sample_stacks *stacks;
        FILE *out;
        struct open *threads; /* owned; made when first needed */
        uint32_t path[DEPTH_MAX];
        size_t counts[DEPTH_MAX]; /* slices of each depth */
        size_t depth; /* that is written */
        bool counting; /* nothing is written yet */
        struct buf names; /* of rows, as JSON */
        size_t *name_at; /* owned; per row, 0: not made */
        bool second; /* event: a comma comes first */
        int error;
};

static void put_text(struct trace *t, const char *text) {
        int r = json_put_text(t->out, text);

        t->error = t->error ?: r;
}

static void put_time(struct trace *t, const char *key, uint64_t ns) {
        fprintf(t->out, ",\"%s\":%llu.%03llu", key, (unsigned long long) (ns / NSEC_PER_USEC),
                (unsigned long long) (ns % NSEC_PER_USEC));
}

static uint64_t since(const struct trace *t, uint64_t time_ns) {
        uint64_t origin = t->a->path.origin_ns;

        return time_ns > origin ? time_ns - origin : 0;
}

static void begin_event(struct trace *t, char phase, uint32_t pid, uint32_t tid, const char *name) {
        fprintf(t->out, "%s{\"ph\":\"%c\",\"pid\":%u,\"tid\":%u,\"name\":", t->second ? ",\n" : "", phase,
                pid, tid);
        t->second = true;
        put_text(t, name);
}

static void put_name(struct trace *t, const char *what, uint32_t pid, uint32_t tid, const char *name) {
        begin_event(t, 'M', pid, tid, what);
        fputs(",\"args\":{\"name\":", t->out);
        put_text(t, name);
        fputs("}}", t->out);
}

static void put_slice(struct trace *t, uint32_t pid, uint32_t tid, const char *name, const char *category,
                      uint64_t begin_ns, uint64_t end_ns) {
        begin_event(t, 'X', pid, tid, name);
        fprintf(t->out, ",\"cat\":\"%s\"", category);
        put_time(t, "ts", since(t, begin_ns));
        put_time(t, "dur", since(t, end_ns) - since(t, begin_ns));
}

/* ---- the unit ---- */

static void put_unit(struct trace *t) {
        const struct recording *r = t->a->recording;

        put_name(t, "process_name", UNIT_PID, 0, recording_text(r, r->start->unit));
        put_name(t, "thread_name", UNIT_PID, 0, "start");
        put_slice(t, UNIT_PID, 0, recording_text(r, r->start->unit), "unit", t->a->path.origin_ns,
                  t->a->path.end_ns);
        fputs(",\"args\":{\"verdict\":", t->out);
        put_text(t, analysis_summary(t->a));
        fputs("}}", t->out);
        for (uint32_t i = 0; i < r->n_milestones; i++) {
                const struct rec_milestone *m = r->milestones + t->a->milestones[i];

                begin_event(t, 'i', UNIT_PID, 0, recording_milestone_str(m->kind));
                put_time(t, "ts", since(t, m->time_ns));
                fputs(",\"s\":\"g\",\"args\":{\"detail\":", t->out);
                put_text(t, recording_text(r, m->detail));
                fputs("}}", t->out);
        }
        for (size_t i = 0; i < t->a->n_findings; i++) {
                const struct finding *f = t->a->findings + i;

                put_name(t, "thread_name", UNIT_PID, (uint32_t) i + 1,
                         i == 0 && t->a->has_verdict ? "verdict" : "finding");
                put_slice(t, UNIT_PID, (uint32_t) i + 1, f->title, "finding", t->a->path.origin_ns,
                          t->a->path.origin_ns + f->duration_ns);
                fputs(",\"args\":{\"summary\":", t->out);
                put_text(t, f->summary);
                fputs("}}", t->out);
        }
}

/* ---- processes and threads ---- */

static void put_processes(struct trace *t) {
        const struct recording *r = t->a->recording;

        for (uint32_t i = 0; i < r->n_processes; i++) {
                const struct rec_process *p = r->processes + i;

                put_name(t, "process_name", p->pid, p->pid, process_name(r, i));
                put_slice(t, p->pid, 0, process_name(r, i), "process", p->begin_ns,
                          critical_path_process_end(&t->a->path, p));
                fputs(",\"args\":{\"command\":", t->out);
                put_text(t, recording_slot_str(p->slot));
                fputs(",\"exe\":", t->out);
                put_text(t, recording_text(r, p->exe));
                fputs("}}", t->out);
        }
        for (size_t i = 0; i < t->stacks->threads.n_threads; i++) {
                const struct thread_time *thread = t->stacks->threads.threads + i;

                if (thread->comm)
                        put_name(t, "thread_name", r->processes[thread->process].pid, thread->tid,
                                 recording_text(r, thread->comm));
        }
}

/* Names come again and again: each is made once. */
static void put_row_name(struct trace *t, uint32_t row) {
        if (t->name_at[row] == 0) {
                size_t bytes = 0;
                _cleanup_free_ char *text = NULL;
                FILE *memory = open_memstream(&text, &bytes);

                if (!memory) {
                        t->error = -ENOMEM;
                        return;
                }
                json_put_text(memory, stack_row_name(t->stacks, row));
                fclose(memory);
                buf_putc(&t->names, '\0');
                t->name_at[row] = t->names.size;
                buf_puts(&t->names, text ?: "\"\"");
        }
        if (buf_error(&t->names) < 0)
                t->error = buf_error(&t->names);
        else
                fputs(buf_text(&t->names) + t->name_at[row], t->out);
}

static void put_stack_slice(struct trace *t, const struct thread_time *who, const struct slice *s,
                            uint64_t end_ns) {
        fprintf(t->out, "%s{\"ph\":\"X\",\"pid\":%u,\"tid\":%u,\"cat\":\"stack\"", t->second ? ",\n" : "",
                t->a->recording->processes[who->process].pid, who->tid);
        t->second = true;
        put_time(t, "ts", since(t, s->begin_ns));
        put_time(t, "dur", since(t, end_ns) - since(t, s->begin_ns));
        fputs(",\"name\":", t->out);
        put_row_name(t, s->row);
        fputc('}', t->out);
}

static void close_down_to(struct trace *t, uint32_t thread, size_t depth, uint64_t end_ns) {
        const struct thread_time *who = t->stacks->threads.threads + thread;
        struct open *open = t->threads + thread;

        while (open->n > depth) {
                const struct slice *s = open->slices + --open->n;

                if (t->counting)
                        t->counts[open->n]++;
                else if (open->n < t->depth)
                        put_stack_slice(t, who, s, end_ns);
        }
}

static void put_span(struct trace *t, const struct timed_stack *span) {
        struct open *open = t->threads + span->thread;
        size_t n = stack_path(t->stacks, span->leaf, t->path, DEPTH_MAX), common = 0;
        uint64_t gap = span->begin_ns - MIN(open->end_ns, span->begin_ns);

        /* What lies between two samples of one sampling period is taken to be the same. */
        if (gap < span->weight_ns)
                while (common < MIN(n, open->n) && open->slices[common].row == t->path[common])
                        common++;
        close_down_to(t, span->thread, common, common > 0 ? span->begin_ns : open->end_ns);
        for (; open->n < n; open->n++)
                open->slices[open->n] = (struct slice){ t->path[open->n], span->begin_ns };
        open->end_ns = span->end_ns;
}

static void walk_stacks(struct trace *t) {
        memset(t->threads, 0, (t->stacks->threads.n_threads + 1) * sizeof(*t->threads));
        for (size_t i = 0; i < t->stacks->n_timed; i++)
                if (t->stacks->timed[i].kind != TIMED_REST)
                        put_span(t, t->stacks->timed + i);
        for (uint32_t i = 0; i < t->stacks->threads.n_threads; i++)
                close_down_to(t, i, 0, t->threads[i].end_ns);
}

static int put_stacks(struct trace *t) {
        size_t slices = 0;

        t->threads = calloc(t->stacks->threads.n_threads + 1, sizeof(*t->threads));
        t->name_at = calloc(t->stacks->n_rows + 1, sizeof(*t->name_at));
        if (!t->threads || !t->name_at)
                return -ENOMEM;
        t->counting = true;
        walk_stacks(t);
        t->counting = false;
        while (t->depth < DEPTH_MAX && slices + t->counts[t->depth] <= SLICES_MAX)
                slices += t->counts[t->depth++];
        walk_stacks(t);
        return 0;
}

static void trace_done(struct trace *t) {
        free(t->threads);
        free(t->name_at);
        buf_done(&t->names);
}

int report_write_trace(const struct analysis *a, const struct report_options *options, FILE *out) {
        _cleanup_(sample_stacks_done) struct sample_stacks stacks = SAMPLE_STACKS_NULL;
        _cleanup_(trace_done) struct trace t = { .a = a, .stacks = &stacks, .out = out, .names = BUF_NULL };
        int r = sample_stacks_init(a->recording, &stacks);

        if (r < 0)
                return r;
        fputs("{\"displayTimeUnit\":\"ms\",\"otherData\":{\"exporter\":\"startprof " STARTPROF_VERSION
              "\"},\"traceEvents\":[\n",
              out);
        put_unit(&t);
        put_processes(&t);
        r = put_stacks(&t);
        fputs("\n]}\n", out);
        return r < 0 ? r : t.error;
}
