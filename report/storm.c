/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/storm.h"

#include "common/text.h"
#include "report/names.h"
#include "report/page.h"

static uint64_t scale(uint64_t value, uint64_t part, uint64_t whole) {
        return whole > 0 ? (uint64_t) ((unsigned __int128) value * MIN(part, whole) / whole) : 0;
}

uint32_t process_program(const struct recording *r, uint32_t process) {
        return process < r->n_processes ? r->processes[process].program : REC_NONE;
}

static bool wanted(const struct analysis *a, const struct rec_call *c, uint32_t classes, int result) {
        return (analysis_classes(a, c->syscall) & classes) &&
               (result == STORM_ANY_RESULT || c->error == (uint32_t) result);
}

uint64_t storm_calls(const struct analysis *a, uint32_t program, uint32_t classes, int result) {
        uint64_t count = 0;

        for (uint32_t i = 0; i < a->recording->n_calls; i++) {
                const struct rec_call *c = a->recording->calls + i;

                if (c->program == program && wanted(a, c, classes, result))
                        count += c->count;
        }
        return count;
}

/* Of the processes of a program the one that the path spent most time in; else any. */
static uint32_t main_process(const struct analysis *a, uint32_t program) {
        const struct recording *r = a->recording;
        uint32_t found = REC_NONE;
        uint64_t best = 0;

        for (size_t i = 0; i < a->breakdown.n_rows; i++) {
                const struct breakdown_row *row = a->breakdown.rows + i;

                if (process_program(r, row->process) == program && row->duration_ns > best) {
                        best = row->duration_ns;
                        found = row->process;
                }
        }
        for (uint32_t i = 0; i < r->n_processes && found == REC_NONE; i++)
                if (r->processes[i].program == program)
                        found = i;
        return found;
}

struct storm storm_find(const struct analysis *a, uint32_t classes, int result) {
        const struct recording *r = a->recording;
        _cleanup_free_ uint64_t *counts = calloc((size_t) r->n_programs + 1, sizeof(*counts));
        struct storm s = { .program = REC_NONE, .process = REC_NONE };

        if (!counts)
                return s;
        for (uint32_t i = 0; i < r->n_calls; i++)
                if (r->calls[i].program < r->n_programs && wanted(a, r->calls + i, classes, result))
                        counts[r->calls[i].program] += r->calls[i].count;
        for (uint32_t i = 0; i < r->n_programs; i++)
                if (counts[i] > s.count) {
                        s.count = counts[i];
                        s.program = i;
                }
        if (s.count == 0)
                return s;

        for (uint32_t i = 0; i < r->n_calls; i++) {
                const struct rec_call *c = r->calls + i;

                if (c->program != s.program || !wanted(a, c, classes, result))
                        continue;
                if (c->first_ns > 0 && (s.first_ns == 0 || c->first_ns < s.first_ns))
                        s.first_ns = c->first_ns;
                s.last_ns = MAX(s.last_ns, c->last_ns);
        }
        s.all = storm_calls(a, s.program, classes, STORM_ANY_RESULT);
        s.process = main_process(a, s.program);
        return s;
}

uint64_t pieces_time(const struct analysis *a, uint32_t kinds, uint32_t classes, uint32_t program) {
        uint64_t sum = 0;

        for (size_t i = 0; i < a->path.n_pieces; i++) {
                const struct piece *p = a->path.pieces + i;

                if ((kinds & (1u << p->kind)) &&
                    (classes == 0 || (analysis_classes(a, p->syscall) & classes)) &&
                    (program == REC_NONE || process_program(a->recording, p->process) == program))
                        sum += p->duration_ns;
        }
        return sum;
}

/* CPU samples of the program, inside and outside of the storm's span. */
struct span_samples {
        uint64_t user_in, user, kernel_in, kernel;
};

static struct span_samples count_samples(const struct analysis *a, const struct storm *s, uint32_t classes) {
        struct span_samples n = {};

        for (uint32_t i = 0; i < a->recording->n_samples; i++) {
                const struct rec_sample *sample = a->recording->samples + i;
                bool in = s->first_ns == 0 ||
                          (sample->time_ns >= s->first_ns && sample->time_ns <= s->last_ns);

                if (process_program(a->recording, sample->process) != s->program)
                        continue;
                if (sample->kind == REC_SAMPLE_CPU_USER) {
                        n.user++;
                        n.user_in += in;
                } else if (sample->kind == REC_SAMPLE_CPU_KERNEL &&
                           (analysis_classes(a, sample->syscall) & classes)) {
                        n.kernel++;
                        n.kernel_in += in;
                }
        }
        return n;
}

uint64_t storm_time(const struct analysis *a, const struct storm *s, uint32_t classes, uint64_t part,
                    uint64_t whole) {
        const uint32_t waits = 1u << PIECE_WAIT, kernel = 1u << PIECE_CPU_KERNEL,
                       user = 1u << PIECE_CPU_USER;
        const uint32_t busy = waits | kernel | user;
        struct span_samples n = count_samples(a, s, classes);
        uint64_t in_calls = pieces_time(a, kernel, classes, s->program);
        uint64_t around = pieces_time(a, user, 0, s->program);
        uint64_t total = pieces_time(a, busy, 0, s->program), explained, span;

        /* Without a sample nothing is known about when the time was spent: then it counts. */
        if (n.kernel > 0)
                in_calls = scale(in_calls, n.kernel_in, n.kernel);
        if (n.user > 0)
                around = scale(around, n.user_in, n.user);
        in_calls += pieces_time(a, waits, classes, s->program);

        explained = in_calls + MIN(around, in_calls * STORM_USER_PER_KERNEL);
        /* While it was ready to go on but had no CPU, it was the same loop that had to wait. */
        explained += scale(pieces_time(a, 1u << PIECE_RUNNABLE, 0, s->program), explained, total);
        explained = scale(explained, part, whole);
        span = s->last_ns - MIN(s->first_ns, s->last_ns);
        return s->first_ns > 0 ? MIN(explained, span) : explained;
}

/* ---- stacks ---- */

struct wanted_stack {
        uint32_t program; /* REC_NONE: any */
        uint32_t classes; /* of its call; 0: any sample */
        uint32_t syscall; /* its call; REC_CALL_NONE: any */
};

static bool counts_for(const struct analysis *a, const struct rec_sample *s, const struct wanted_stack *w) {
        if (s->stack >= a->recording->n_stacks || a->recording->stacks[s->stack].count == 0)
                return false;
        if (w->program != REC_NONE && process_program(a->recording, s->process) != w->program)
                return false;
        if (w->syscall != REC_CALL_NONE)
                return s->kind != REC_SAMPLE_CPU_USER && s->syscall == w->syscall;
        return w->classes == 0 ||
               (s->kind != REC_SAMPLE_CPU_USER && (analysis_classes(a, s->syscall) & w->classes));
}

static uint32_t most_frequent(const struct analysis *a, const struct wanted_stack *w) {
        const struct recording *r = a->recording;
        _cleanup_free_ uint32_t *counts = calloc((size_t) r->n_stacks + 1, sizeof(*counts));
        uint32_t found = REC_NONE, best = 0;

        if (!counts)
                return REC_NONE;
        for (int waits = 0; waits < 2 && found == REC_NONE; waits++)
                for (uint32_t i = 0; i < r->n_samples; i++) {
                        const struct rec_sample *s = r->samples + i;
                        bool cpu = s->kind == REC_SAMPLE_CPU_USER || s->kind == REC_SAMPLE_CPU_KERNEL;

                        if (cpu == (waits == 0) && counts_for(a, s, w) && ++counts[s->stack] > best) {
                                best = counts[s->stack];
                                found = s->stack;
                        }
                }
        return found;
}

uint32_t hottest_stack(const struct analysis *a, uint32_t program, uint32_t classes) {
        return most_frequent(a, &(struct wanted_stack){ program, classes, REC_CALL_NONE });
}

uint32_t hottest_stack_of_call(const struct analysis *a, uint32_t program, uint32_t syscall) {
        return most_frequent(a, &(struct wanted_stack){ program, 0, syscall });
}

/* Short enough for a sentence. */
static void put_function(struct buf *b, const struct recording *r, uint32_t frame,
                         const struct rec_name *row, enum frame_kind kind) {
        enum { FUNCTION_COLUMNS = 64 };
        _cleanup_(buf_done) struct buf name = BUF_NULL;

        frame_short_name(&name, r, frame, row);
        text_keep_end(b, kind == FRAME_MANAGED ? name_without_namespace(buf_text(&name)) : buf_text(&name),
                      FUNCTION_COLUMNS);
}

bool stack_function(const struct recording *r, uint32_t stack, struct buf *b) {
        const struct rec_stack *s;

        if (stack >= r->n_stacks)
                return false;
        s = r->stacks + stack;
        for (uint32_t i = 0; i < s->count; i++) {
                uint32_t frame = r->stack_frames[s->first + i];
                const struct rec_name *rows;
                uint32_t n = frame_names(r, frame, &rows);
                enum frame_kind kind = frame_kind_of(r, frame);

                if (kind == FRAME_RUNTIME)
                        continue;
                if (n == 0 || rows[0].name == 0)
                        return false; /* the one that wanted it has no name */
                if (name_is_wrapper(recording_text(r, rows[0].name)))
                        continue;
                put_function(b, r, frame, rows, kind);
                return true;
        }
        return false;
}

/* ---- words ---- */

void put_time_and_share(struct buf *b, const struct analysis *a, uint64_t duration_ns) {
        text_span(b, duration_ns / NSEC_PER_USEC);
        buf_printf(b, " (%.0f%% of the start)", analysis_share(a, duration_ns) * 100);
}
