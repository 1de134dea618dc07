/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/json_text.h"
#include "report/sample_stacks.h"
#include "report/writers.h"

/*
 * A processed profile of the Firefox Profiler, version 48 of its format (docs-developer/CHANGELOG-formats.md and
 * src/types/profile.js there; docs/firefox-profile.schema.json is what is written here): columns of numbers for each
 * thread. Samples weigh milliseconds of the thread's time; milestones, findings and long waits are markers.
 */

enum { PROCESSED_VERSION = 48, GECKO_VERSION = 29, ROWS_MAX = 4096, LONG_WAIT_NS = 10 * NSEC_PER_MSEC };

enum category {
        CATEGORY_OTHER,
        CATEGORY_USER,
        CATEGORY_MANAGED,
        CATEGORY_RUNTIME,
        CATEGORY_KERNEL,
        CATEGORY_WAIT,
        CATEGORY_MAX
};

static const struct {
        const char *name, *color; /* of the colours that the profiler knows */
} categories[CATEGORY_MAX] = {
        [CATEGORY_OTHER] = { "Other", "grey" },
        [CATEGORY_USER] = { "User code", "yellow" },
        [CATEGORY_MANAGED] = { "Managed code", "green" },
        [CATEGORY_RUNTIME] = { "Runtime and libc", "lightblue" },
        [CATEGORY_KERNEL] = { "Kernel", "orange" },
        [CATEGORY_WAIT] = { "Waiting", "purple" },
};

/* Numbers that a thread gives to what it uses of the whole: in the order of first use. */
struct local {
        uint32_t *numbers; /* per thing of the whole: number + 1 in the thread of `stamp` */
        uint32_t *stamps;
        uint32_t *used; /* in order */
        size_t n;
};

struct firefox {
        const struct analysis *a;
        const struct sample_stacks *stacks;
        FILE *out;
        struct local links, rows;
        size_t *order; /* timed stacks by thread */
        uint32_t stamp;
        int error;
};

static void local_done(struct local *l) {
        free(l->numbers);
        free(l->stamps);
        free(l->used);
}

static int local_init(struct local *l, size_t n) {
        l->numbers = calloc(n + 1, sizeof(*l->numbers));
        l->stamps = calloc(n + 1, sizeof(*l->stamps));
        l->used = calloc(n + 1, sizeof(*l->used));
        return l->numbers && l->stamps && l->used ? 0 : -ENOMEM;
}

static bool local_known(const struct local *l, uint32_t stamp, uint32_t thing) {
        return l->stamps[thing] == stamp;
}

static uint32_t local_number(struct local *l, uint32_t stamp, uint32_t thing) {
        if (!local_known(l, stamp, thing)) {
                l->stamps[thing] = stamp;
                l->numbers[thing] = (uint32_t) l->n;
                l->used[l->n++] = thing;
        }
        return l->numbers[thing];
}

static void put_text(struct firefox *f, const char *text) {
        int r = json_put_text(f->out, text);

        f->error = f->error ?: r;
}

static double milliseconds(const struct firefox *f, uint64_t time_ns) {
        uint64_t origin = f->a->path.origin_ns;

        return time_ns > origin ? (double) (time_ns - origin) / NSEC_PER_MSEC : 0;
}

/* A column that is the same for all rows. */
static void put_constant(struct firefox *f, const char *name, const char *value, size_t n) {
        fprintf(f->out, ",\"%s\":[", name);
        for (size_t i = 0; i < n; i++)
                fprintf(f->out, "%s%s", i > 0 ? "," : "", value);
        fputc(']', f->out);
}

/* ---- stacks of a thread ---- */

static enum category category_of(const struct sample_stacks *s, uint32_t row) {
        switch (s->rows[row].kind) {
        case FRAME_USER: return CATEGORY_USER;
        case FRAME_MANAGED: return CATEGORY_MANAGED;
        case FRAME_RUNTIME: return CATEGORY_RUNTIME;
        case FRAME_KERNEL: return CATEGORY_KERNEL;
        case FRAME_MARK:
                return startswith(stack_row_name(s, row), "[waiting") ? CATEGORY_WAIT : CATEGORY_KERNEL;
        default: return CATEGORY_OTHER;
        }
}

/* Callers before callees: a prefix is a smaller number. */
static void note_link(struct firefox *f, uint32_t link) {
        uint32_t chain[ROWS_MAX];
        size_t n = 0;

        for (; link != REC_NONE && n < ROWS_MAX && !local_known(&f->links, f->stamp, link);
             link = f->stacks->links[link].parent)
                chain[n++] = link;
        while (n > 0) {
                link = chain[--n];
                local_number(&f->links, f->stamp, link);
                local_number(&f->rows, f->stamp, f->stacks->links[link].row);
        }
}

static void put_samples(struct firefox *f, const size_t *timed, size_t n) {
        fputs("\"samples\":{\"weightType\":\"tracing-ms\",\"stack\":[", f->out);
        for (size_t i = 0; i < n; i++) {
                uint32_t leaf = f->stacks->timed[timed[i]].leaf;

                if (leaf == REC_NONE)
                        fprintf(f->out, "%snull", i > 0 ? "," : "");
                else
                        fprintf(f->out, "%s%u", i > 0 ? "," : "", f->links.numbers[leaf]);
        }
        fputs("],\"time\":[", f->out);
        for (size_t i = 0; i < n; i++)
                fprintf(f->out, "%s%.3f", i > 0 ? "," : "",
                        milliseconds(f, f->stacks->timed[timed[i]].end_ns));
        fputs("],\"weight\":[", f->out);
        for (size_t i = 0; i < n; i++)
                fprintf(f->out, "%s%.3f", i > 0 ? "," : "",
                        (double) f->stacks->timed[timed[i]].weight_ns / NSEC_PER_MSEC);
        fprintf(f->out, "],\"length\":%zu}", n);
}

static void put_stack_table(struct firefox *f) {
        const struct local *l = &f->links;

        fputs(",\"stackTable\":{\"frame\":[", f->out);
        for (size_t i = 0; i < l->n; i++)
                fprintf(f->out, "%s%u", i > 0 ? "," : "", f->rows.numbers[f->stacks->links[l->used[i]].row]);
        fputs("],\"prefix\":[", f->out);
        for (size_t i = 0; i < l->n; i++) {
                uint32_t parent = f->stacks->links[l->used[i]].parent;

                if (parent == REC_NONE)
                        fprintf(f->out, "%snull", i > 0 ? "," : "");
                else
                        fprintf(f->out, "%s%u", i > 0 ? "," : "", l->numbers[parent]);
        }
        fputs("],\"category\":[", f->out);
        for (size_t i = 0; i < l->n; i++)
                fprintf(f->out, "%s%d", i > 0 ? "," : "",
                        (int) category_of(f->stacks, f->stacks->links[l->used[i]].row));
        fputs("]", f->out);
        put_constant(f, "subcategory", "0", l->n);
        fprintf(f->out, ",\"length\":%zu}", l->n);
}

/* One frame and one function for each row. Strings: names, then files. */
static void put_frames(struct firefox *f) {
        const struct local *l = &f->rows;

        fputs(",\"frameTable\":{\"func\":[", f->out);
        for (size_t i = 0; i < l->n; i++)
                fprintf(f->out, "%s%zu", i > 0 ? "," : "", i);
        fputs("],\"line\":[", f->out);
        for (size_t i = 0; i < l->n; i++) {
                uint32_t line = f->stacks->rows[l->used[i]].line;

                fprintf(f->out, line > 0 ? "%s%u" : "%snull", i > 0 ? "," : "", line);
        }
        fputs("],\"category\":[", f->out);
        for (size_t i = 0; i < l->n; i++)
                fprintf(f->out, "%s%d", i > 0 ? "," : "", (int) category_of(f->stacks, l->used[i]));
        fputs("]", f->out);
        put_constant(f, "address", "-1", l->n);
        put_constant(f, "inlineDepth", "0", l->n);
        put_constant(f, "subcategory", "0", l->n);
        put_constant(f, "nativeSymbol", "null", l->n);
        put_constant(f, "innerWindowID", "0", l->n);
        put_constant(f, "implementation", "null", l->n);
        put_constant(f, "column", "null", l->n);
        fprintf(f->out, ",\"length\":%zu},\"funcTable\":{\"name\":[", l->n);
        for (size_t i = 0; i < l->n; i++)
                fprintf(f->out, "%s%zu", i > 0 ? "," : "", i);
        fputs("],\"fileName\":[", f->out);
        for (size_t i = 0; i < l->n; i++)
                fprintf(f->out, "%s%zu", i > 0 ? "," : "", l->n + i);
        fputs("]", f->out);
        put_constant(f, "isJS", "false", l->n);
        put_constant(f, "relevantForJS", "false", l->n);
        put_constant(f, "resource", "-1", l->n);
        put_constant(f, "lineNumber", "null", l->n);
        put_constant(f, "columnNumber", "null", l->n);
        fprintf(f->out, ",\"length\":%zu}", l->n);
}

/* ---- markers ---- */

/* The strings of markers lie behind those of the frames. */
struct marker {
        const char *name, *text;
        uint64_t begin_ns, end_ns; /* end 0: an instant */
};

struct markers {
        struct marker *all; /* owned */
        size_t n;
        struct buf texts;
};

static void add_marker(struct markers *m, const char *name, const char *text, uint64_t begin_ns,
                       uint64_t end_ns) {
        m->all[m->n++] = (struct marker){ name, text, begin_ns, end_ns };
}

static void add_unit_markers(const struct firefox *f, struct markers *m) {
        const struct recording *r = f->a->recording;

        for (uint32_t i = 0; i < r->n_milestones; i++)
                add_marker(m, recording_milestone_str(r->milestones[i].kind),
                           recording_text(r, r->milestones[i].detail), r->milestones[i].time_ns, 0);
        for (size_t i = 0; i < f->a->n_findings; i++)
                add_marker(m, f->a->findings[i].title, f->a->findings[i].summary, f->a->path.origin_ns,
                           f->a->path.origin_ns + f->a->findings[i].duration_ns);
}

static void add_waits(const struct firefox *f, const size_t *timed, size_t n, struct markers *m) {
        const struct recording *r = f->a->recording;

        for (size_t i = 0; i < n; i++) {
                const struct timed_stack *t = f->stacks->timed + timed[i];
                const struct rec_sample *s = t->sample == REC_NONE ? NULL : r->samples + t->sample;

                if (s && t->kind == TIMED_WAIT && s->blocked_ns >= LONG_WAIT_NS && t->leaf != REC_NONE)
                        add_marker(m, stack_row_name(f->stacks, f->stacks->links[t->leaf].row),
                                   s->waker_pid ? recording_text(r, s->waker_comm) : "", t->begin_ns,
                                   t->end_ns);
        }
}

static void put_markers(struct firefox *f, const struct markers *m) {
        enum { PHASE_INSTANT = 0, PHASE_INTERVAL = 1 };

        fputs(",\"markers\":{\"name\":[", f->out);
        for (size_t i = 0; i < m->n; i++)
                fprintf(f->out, "%s%zu", i > 0 ? "," : "", 2 * f->rows.n + i);
        fputs("],\"startTime\":[", f->out);
        for (size_t i = 0; i < m->n; i++)
                fprintf(f->out, "%s%.3f", i > 0 ? "," : "", milliseconds(f, m->all[i].begin_ns));
        fputs("],\"endTime\":[", f->out);
        for (size_t i = 0; i < m->n; i++)
                if (m->all[i].end_ns > 0)
                        fprintf(f->out, "%s%.3f", i > 0 ? "," : "", milliseconds(f, m->all[i].end_ns));
                else
                        fprintf(f->out, "%snull", i > 0 ? "," : "");
        fputs("],\"phase\":[", f->out);
        for (size_t i = 0; i < m->n; i++)
                fprintf(f->out, "%s%d", i > 0 ? "," : "",
                        m->all[i].end_ns > 0 ? PHASE_INTERVAL : PHASE_INSTANT);
        fputs("],\"data\":[", f->out);
        for (size_t i = 0; i < m->n; i++) {
                fprintf(f->out, "%s{\"type\":\"startprof\",\"detail\":", i > 0 ? "," : "");
                put_text(f, m->all[i].text);
                fputc('}', f->out);
        }
        fputs("]", f->out);
        put_constant(f, "category", "0", m->n);
        fprintf(f->out, ",\"length\":%zu}", m->n);
}

static void put_strings(struct firefox *f, const struct markers *m) {
        const struct local *l = &f->rows;

        fputs(",\"stringArray\":[", f->out);
        for (size_t i = 0; i < 2 * l->n + m->n; i++) {
                if (i > 0)
                        fputc(',', f->out);
                put_text(f, i < l->n       ? stack_row_full(f->stacks, l->used[i])
                            : i < 2 * l->n ? f->stacks->rows[l->used[i - l->n]].file
                                           : m->all[i - 2 * l->n].name);
        }
        fputs("]", f->out);
}

/* ---- threads ---- */

static void put_thread_head(struct firefox *f, const struct thread_time *t) {
        const struct recording *r = f->a->recording;
        const struct rec_process *p = r->processes + t->process;

        fputs("{\"processType\":\"default\",\"processName\":", f->out);
        put_text(f, process_name(r, t->process));
        fputs(",\"name\":", f->out);
        put_text(f, t->comm ? recording_text(r, t->comm) : process_name(r, t->process));
        fprintf(f->out,
                ",\"pid\":\"%u\",\"tid\":%u,\"isMainThread\":%s,\"processStartupTime\":%.3f,"
                "\"registerTime\":%.3f",
                p->pid, t->tid, p->pid == t->tid ? "true" : "false", milliseconds(f, p->begin_ns),
                milliseconds(f, p->begin_ns));
        if (p->end_ns > 0)
                fprintf(f->out, ",\"processShutdownTime\":%.3f,\"unregisterTime\":%.3f",
                        milliseconds(f, p->end_ns), milliseconds(f, p->end_ns));
        else
                fputs(",\"processShutdownTime\":null,\"unregisterTime\":null", f->out);
        fputs(",\"pausedRanges\":[],", f->out);
}

static int put_thread(struct firefox *f, const struct thread_time *t, const size_t *timed, size_t n,
                      bool first) {
        _cleanup_free_ struct marker *all =
                calloc(n + f->a->recording->n_milestones + f->a->n_findings + 1, sizeof(*all));
        struct markers markers = { .all = all };

        if (!all)
                return -ENOMEM;
        f->stamp++;
        f->links.n = f->rows.n = 0;
        for (size_t i = 0; i < n; i++)
                note_link(f, f->stacks->timed[timed[i]].leaf);
        if (first)
                add_unit_markers(f, &markers);
        add_waits(f, timed, n, &markers);

        put_thread_head(f, t);
        put_samples(f, timed, n);
        put_markers(f, &markers);
        put_stack_table(f);
        put_frames(f);
        fputs(",\"resourceTable\":{\"lib\":[],\"name\":[],\"host\":[],\"type\":[],\"length\":0},"
              "\"nativeSymbols\":{\"libIndex\":[],"
              "\"address\":[],\"name\":[],\"functionSize\":[],\"length\":0}",
              f->out);
        put_strings(f, &markers);
        fputc('}', f->out);
        return 0;
}

static int by_thread(const void *x, const void *y, void *userdata) {
        const struct sample_stacks *s = userdata;
        size_t a = *(const size_t *) x, b = *(const size_t *) y;

        if (s->timed[a].thread != s->timed[b].thread)
                return s->timed[a].thread < s->timed[b].thread ? -1 : 1;
        return a < b ? -1 : a > b;
}

static int put_threads(struct firefox *f) {
        const struct sample_stacks *s = f->stacks;
        size_t *order = f->order;
        int r = 0;

        for (size_t i = 0; i < s->n_timed; i++)
                order[i] = i;
        qsort_r(order, s->n_timed, sizeof(*order), by_thread, (void *) s);
        fputs("\"threads\":[", f->out);
        for (size_t i = 0, end; r >= 0 && i < s->n_timed; i = end) {
                uint32_t thread = s->timed[order[i]].thread;

                for (end = i; end < s->n_timed && s->timed[order[end]].thread == thread;)
                        end++;
                if (i > 0)
                        fputs(",\n", f->out);
                r = put_thread(f, s->threads.threads + thread, order + i, end - i, i == 0);
        }
        fputs("]}\n", f->out);
        return r;
}

static void put_meta(struct firefox *f) {
        const struct rec_start *s = f->a->recording->start;

        fprintf(f->out,
                "{\"meta\":{\"version\":%d,\"preprocessedProfileVersion\":%d,\"processType\":0,"
                "\"stackwalk\":1,"
                "\"interval\":%.3f,\"startTime\":%.3f,\"product\":",
                GECKO_VERSION, PROCESSED_VERSION, s->frequency_hz > 0 ? 1000.0 / s->frequency_hz : 1,
                (double) s->realtime_usec / USEC_PER_MSEC);
        put_text(f, recording_text(f->a->recording, s->unit));
        fprintf(f->out,
                ",\"importedFrom\":\"startprof\",\"symbolicated\":true,\"usesOnlyOneStackType\":true,"
                "\"doesNotUseFrameImplementation\":true,\"sourceCodeIsNotOnSearchfox\":true,\"oscpu\":"
                "\"Linux\","
                "\"logicalCPUs\":%u,\"sampleUnits\":{\"time\":\"ms\",\"eventDelay\":\"ms\","
                "\"threadCPUDelta\":\"ns\"},"
                "\"categories\":[",
                s->cpu_count);
        for (size_t i = 0; i < CATEGORY_MAX; i++)
                fprintf(f->out, "%s{\"name\":\"%s\",\"color\":\"%s\",\"subcategories\":[\"Other\"]}",
                        i > 0 ? "," : "", categories[i].name, categories[i].color);
        fputs("],\"markerSchema\":[{\"name\":\"startprof\",\"display\":[\"marker-chart\",\"marker-table\","
              "\"timeline-overview\"],"
              "\"tooltipLabel\":\"{marker.name}\",\"tableLabel\":\"{marker.name} "
              "{marker.data.detail}\",\"data\":[{\"key\":"
              "\"detail\",\"label\":\"Detail\",\"format\":\"string\",\"searchable\":true}]}]},\"libs\":[],",
              f->out);
}

int report_write_firefox(const struct analysis *a, const struct report_options *options, FILE *out) {
        _cleanup_(sample_stacks_done) struct sample_stacks stacks = SAMPLE_STACKS_NULL;
        struct firefox f = { .a = a, .stacks = &stacks, .out = out };
        _cleanup_free_ size_t *order = NULL;
        int r = sample_stacks_init(a->recording, &stacks);

        if (r < 0)
                return r;
        f.order = order = calloc(stacks.n_timed + 1, sizeof(*order));
        r = order ? local_init(&f.links, stacks.n_links) : -ENOMEM;
        if (r >= 0)
                r = local_init(&f.rows, stacks.n_rows);
        if (r >= 0) {
                put_meta(&f);
                r = put_threads(&f);
        }
        local_done(&f.links);
        local_done(&f.rows);
        return r < 0 ? r : f.error;
}
