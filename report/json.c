/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <jansson.h>

#include "common/text.h"
#include "report/names.h"
#include "report/symbol_advice.h"
#include "report/writers.h"

/*
 * startprof.report/1: keys are relied on, in this order; new ones go to the
 * end of their object. jansson's *_new functions take the value also when they
 * fail, and take NULL for a failure: so one check at the end is enough.
 */

#define SCHEMA "startprof.report/1"

static json_t *string(const char *text) {
        _cleanup_(buf_done) struct buf b = BUF_NULL;

        text_utf8(&b, text);
        return buf_error(&b) < 0 ? NULL : json_stringn(buf_text(&b), b.size);
}

static json_t *string_or_null(const char *text) {
        return text && *text ? string(text) : json_null();
}

static json_t *number(uint64_t n) {
        return json_integer((json_int_t) MIN(n, (uint64_t) INT64_MAX));
}

/* Four digits behind the point are a hundredth of a percent. */
static json_t *share(const struct analysis *a, uint64_t duration_ns) {
        double s = analysis_share(a, duration_ns);

        return json_real((double) (int64_t) (s * 10000 + 0.5) / 10000);
}

static json_t *hex(const uint8_t *bytes, size_t n) {
        _cleanup_(buf_done) struct buf b = BUF_NULL;
        bool any = false;

        for (size_t i = 0; i < n; i++)
                any = any || bytes[i] != 0;
        if (!any)
                return json_null();
        text_hex(&b, bytes, n);
        return buf_error(&b) < 0 ? NULL : json_string(buf_text(&b));
}

/* A member's value, or an element's, that could not be made makes the whole NULL in the end. */
struct maker {
        bool failed;
};

static void set(struct maker *m, json_t *object, const char *key, json_t *value) {
        if (!object || json_object_set_new(object, key, value) < 0)
                m->failed = true;
}

static void append(struct maker *m, json_t *array, json_t *value) {
        if (!array || json_array_append_new(array, value) < 0)
                m->failed = true;
}

/* ---- the parts ---- */

static json_t *make_start(struct maker *m, const struct analysis *a) {
        json_t *o = json_object();

        set(m, o, "type", string(recording_text(a->recording, a->recording->start->type)));
        set(m, o, "duration_usec", number(a->duration_usec));
        set(m, o, "queue_usec", number(a->path.queue_ns / NSEC_PER_USEC));
        set(m, o, "before_exec_usec", number(a->path.before_exec_ns / NSEC_PER_USEC));
        return o;
}

static json_t *make_evidence(struct maker *m, const struct finding *f) {
        json_t *o = json_object();

        for (size_t i = 0; i < f->n_evidence; i++) {
                const struct evidence *e = f->evidence + i;

                set(m, o, e->name, e->text ? string(e->text) : number(e->number));
        }
        return o;
}

static json_t *make_advice(struct maker *m, const struct finding *f) {
        json_t *list = json_array();

        for (size_t i = 0; i < f->n_advice; i++) {
                json_t *o = json_object();

                set(m, o, "text", string(f->advice[i].text));
                set(m, o, "dropin", string_or_null(f->advice[i].dropin));
                append(m, list, o);
        }
        return list;
}

static json_t *make_finding(struct maker *m, const struct analysis *a, const struct finding *f) {
        json_t *o = json_object();

        set(m, o, "cause", string(f->cause));
        set(m, o, "summary", string(f->summary));
        set(m, o, "share", share(a, f->duration_ns));
        set(m, o, "duration_usec", number(f->duration_ns / NSEC_PER_USEC));
        set(m, o, "evidence", make_evidence(m, f));
        set(m, o, "advice", make_advice(m, f));
        return o;
}

static json_t *make_verdict(struct maker *m, const struct analysis *a) {
        const struct finding *f = analysis_verdict(a);
        json_t *o;

        if (f)
                return make_finding(m, a, f);
        o = json_object();
        set(m, o, "cause", string(analysis_cause(a)));
        set(m, o, "summary", string(analysis_summary(a)));
        set(m, o, "share", json_real(0));
        set(m, o, "duration_usec", number(0));
        set(m, o, "evidence", json_object());
        set(m, o, "advice", json_array());
        return o;
}

static const char *how_str(uint32_t how) {
        static const char *const words[REC_HOW_MAX] = {
                [REC_HOW_REGS] = "registers",
                [REC_HOW_CFI] = "cfi",
                [REC_HOW_FRAME_POINTER] = "frame-pointer",
                [REC_HOW_LEAF] = "leaf",
                [REC_HOW_SIGNAL] = "signal",
        };

        return how < REC_HOW_MAX ? words[how] : "";
}

static void append_frame(struct maker *m, const struct recording *r, json_t *list, uint32_t frame) {
        const struct rec_frame *f = r->frames + frame;
        const struct rec_name *rows = NULL;
        uint32_t n = frame_names(r, frame, &rows);

        for (uint32_t i = 0; i < MAX(n, UINT32_C(1)); i++) {
                const struct rec_name *row = n > 0 ? rows + i : NULL;
                _cleanup_(buf_done) struct buf name = BUF_NULL;
                json_t *o = json_object();

                frame_full_name(&name, r, frame, row);
                set(m, o, "function", string(buf_text(&name)));
                set(m, o, "module",
                    f->module < r->n_modules ? string_or_null(recording_text(r, r->modules[f->module].path))
                                             : json_null());
                set(m, o, "offset", number(f->offset));
                set(m, o, "source", string_or_null(row ? recording_source_str(row->source) : ""));
                if (row && row->file != 0) {
                        set(m, o, "file", string(recording_text(r, row->file)));
                        if (row->line > 0)
                                set(m, o, "line", number(row->line));
                }
                set(m, o, "via", row && row->inlined ? json_string("inlined") : string(how_str(f->how)));
                append(m, list, o);
        }
}

static json_t *make_stack(struct maker *m, const struct recording *r, uint32_t stack) {
        json_t *list = json_array();

        if (stack < r->n_stacks)
                for (uint32_t i = 0; i < r->stacks[stack].count; i++)
                        append_frame(m, r, list, r->stack_frames[r->stacks[stack].first + i]);
        return list;
}

static json_t *make_findings(struct maker *m, const struct analysis *a) {
        json_t *list = json_array();

        for (size_t i = 0; i < a->n_findings; i++) {
                json_t *o = make_finding(m, a, a->findings + i);

                set(m, o, "stack", make_stack(m, a->recording, a->findings[i].stack));
                append(m, list, o);
        }
        return list;
}

static json_t *make_breakdown(struct maker *m, const struct analysis *a) {
        json_t *list = json_array();

        for (size_t i = 0; i < a->breakdown.n_rows; i++) {
                const struct breakdown_row *row = a->breakdown.rows + i;
                _cleanup_(buf_done) struct buf detail = BUF_NULL;
                json_t *o = json_object();

                breakdown_detail(&detail, row);
                set(m, o, "kind", string(piece_kind_str(row->kind)));
                set(m, o, "detail", string_or_null(buf_text(&detail)));
                set(m, o, "process", string_or_null(process_name(a->recording, row->process)));
                set(m, o, "duration_usec", number(row->duration_usec));
                set(m, o, "share", share(a, row->duration_ns));
                append(m, list, o);
        }
        return list;
}

static json_t *make_milestones(struct maker *m, const struct analysis *a) {
        const struct recording *r = a->recording;
        json_t *list = json_array();

        for (uint32_t i = 0; i < r->n_milestones; i++) {
                const struct rec_milestone *milestone = r->milestones + a->milestones[i];
                json_t *o = json_object();

                set(m, o, "name", string(recording_milestone_str(milestone->kind)));
                set(m, o, "at_usec", number(analysis_at_usec(a, milestone->time_ns)));
                set(m, o, "process", string_or_null(process_name(r, milestone->process)));
                set(m, o, "detail", string_or_null(recording_text(r, milestone->detail)));
                set(m, o, "command", string_or_null(recording_slot_str(milestone->slot)));
                append(m, list, o);
        }
        return list;
}

static json_t *make_processes(struct maker *m, const struct analysis *a) {
        const struct recording *r = a->recording;
        _cleanup_free_ uint64_t *samples = calloc((size_t) r->n_processes + 1, sizeof(*samples));
        json_t *list = json_array();

        if (!samples) {
                m->failed = true;
                return list;
        }
        for (uint32_t i = 0; i < r->n_samples; i++)
                if (r->samples[i].process < r->n_processes && sample_counts(r, r->samples + i))
                        samples[r->samples[i].process]++;
        for (uint32_t i = 0; i < r->n_processes; i++) {
                const struct rec_process *p = r->processes + i;
                json_t *o = json_object();

                set(m, o, "pid", number(p->pid));
                set(m, o, "comm", string(recording_text(r, p->comm)));
                set(m, o, "exe", string(recording_text(r, p->exe)));
                set(m, o, "command", string_or_null(recording_slot_str(p->slot)));
                set(m, o, "begin_usec", number(analysis_at_usec(a, p->begin_ns)));
                set(m, o, "end_usec", p->end_ns > 0 ? number(analysis_at_usec(a, p->end_ns)) : json_null());
                set(m, o, "samples", number(samples[i]));
                append(m, list, o);
        }
        return list;
}

/* Why stacks are not complete, and the frames that were kept of the longest. */
static json_t *make_ends(struct maker *m, const struct quality *q) {
        json_t *list = json_array();

        for (uint32_t end = 0; end < REC_STACK_END_MAX; end++) {
                json_t *o;

                if (stack_end_is_complete(end) || q->ends[end].samples == 0)
                        continue;
                o = json_object();
                set(m, o, "reason", string(recording_stack_end_str(end)));
                set(m, o, "samples", number(q->ends[end].samples));
                set(m, o, "frames", number(q->ends[end].frames));
                append(m, list, o);
        }
        return list;
}

static json_t *make_stacks(struct maker *m, const struct analysis *a) {
        json_t *o = json_object();

        set(m, o, "samples", number(a->quality.samples));
        set(m, o, "complete", number(a->quality.complete));
        set(m, o, "symbolised", number(a->quality.symbolised));
        set(m, o, "lost", number(a->quality.lost));
        set(m, o, "incomplete", make_ends(m, &a->quality));
        return o;
}

/* As of a finding. */
static json_t *make_gap_advice(struct maker *m, const struct language_gap *gap) {
        _cleanup_(buf_done) struct buf text = BUF_NULL;
        json_t *list = json_array(), *o = json_object();

        language_advice(&text, gap);
        set(m, o, "text", string(buf_text(&text)));
        set(m, o, "dropin", string_or_null(language_dropin(gap->language)));
        append(m, list, o);
        return list;
}

static void add_symbol_advice(struct maker *m, const struct recording *r, json_t *module, uint32_t reason) {
        _cleanup_(buf_done) struct buf text = BUF_NULL;
        json_t *list, *o;

        symbol_advice(&text, r, reason);
        if (text.size == 0)
                return;
        list = json_array();
        o = json_object();
        set(m, o, "text", string(buf_text(&text)));
        set(m, o, "dropin", json_null());
        append(m, list, o);
        set(m, module, "advice", list);
}

static json_t *make_modules(struct maker *m, const struct analysis *a) {
        const struct recording *r = a->recording;
        json_t *list = json_array();

        for (uint32_t i = 0; i < a->quality.n_modules; i++) {
                const struct language_gap *gap = analysis_gap(a, a->quality.modules[i].module);
                uint32_t index = a->quality.modules[i].module;
                const struct rec_module *module = r->modules + index;
                const struct rec_symbols *symbols = r->symbols ? r->symbols + index : NULL;
                json_t *o = json_object();

                set(m, o, "path", string(recording_text(r, module->path)));
                set(m, o, "build_id", hex(module->build_id, MIN(module->build_id_bytes, UINT32_C(20))));
                set(m, o, "samples", number(a->quality.modules[i].samples));
                set(m, o, "symbols", string_or_null(symbols ? recording_source_str(symbols->source) : ""));
                set(m, o, "reason", string_or_null(symbols ? recording_reason_str(symbols->reason) : ""));
                if (gap)
                        set(m, o, "advice", make_gap_advice(m, gap));
                else if (symbols && a->quality.modules[i].unnamed_frames > 0)
                        add_symbol_advice(m, r, o, symbols->reason);
                append(m, list, o);
        }
        return list;
}

static json_t *make_cost(struct maker *m, const struct analysis *a) {
        json_t *o = json_object();

        set(m, o, "duration_usec", number(a->recording->start->cost_ns / NSEC_PER_USEC));
        set(m, o, "share", share(a, a->recording->start->cost_ns));
        return o;
}

/* What the capture could not hold, by kind; empty when nothing was lost. */
static json_t *make_losses(struct maker *m, const struct analysis *a) {
        json_t *list = json_array();

        for (uint32_t what = 0; what < REC_LOST_MAX; what++) {
                uint64_t n = a->recording->start->lost[what];
                json_t *o;

                if (n == 0)
                        continue;
                o = json_object();
                set(m, o, "kind", string(recording_lost_str(what)));
                set(m, o, "count", number(n));
                append(m, list, o);
        }
        return list;
}

int report_write_json(const struct analysis *a, const struct report_options *options, bool pretty,
                      FILE *out) {
        const struct rec_start *s = a->recording->start;
        _cleanup_(json_decrefp) json_t *root = json_object();
        struct maker m = {};

        set(&m, root, "schema", json_string(SCHEMA));
        set(&m, root, "unit", string(recording_text(a->recording, s->unit)));
        set(&m, root, "invocation_id", hex(s->invocation_id, sizeof(s->invocation_id)));
        set(&m, root, "recording", string_or_null(options->recording));
        set(&m, root, "result", string(recording_result_str(s->result)));
        set(&m, root, "start", make_start(&m, a));
        set(&m, root, "verdict", make_verdict(&m, a));
        set(&m, root, "findings", make_findings(&m, a));
        set(&m, root, "breakdown", make_breakdown(&m, a));
        set(&m, root, "milestones", make_milestones(&m, a));
        set(&m, root, "processes", make_processes(&m, a));
        set(&m, root, "stacks", make_stacks(&m, a));
        set(&m, root, "modules", make_modules(&m, a));
        set(&m, root, "cost", make_cost(&m, a));
        set(&m, root, "losses", make_losses(&m, a));
        if (m.failed)
                return -ENOMEM;
        /* A failure to write sticks to `out`. */
        (void) json_dumpf(root, out, (pretty ? JSON_INDENT(2) : JSON_COMPACT) | JSON_REAL_PRECISION(6));
        (void) fputc('\n', out);
        return 0;
}
