/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/quality.h"

#include "common/macro.h"
#include "report/names.h"

/* Frames that are looked at in all stacks together: a file can make a few bytes of frames into stacks
 * without end. An hour of samples of deep stacks stays below. */
enum { FRAMES_MAX = 256 * 1024 * 1024 };

bool stack_end_is_complete(uint32_t end) {
        return end == REC_STACK_COMPLETE || end == REC_STACK_GONE;
}

/* What one stack adds for the `count` samples that have it. seen[m] == stack + 1: the module was met in it. */
static void add_stack(const struct recording *r, uint32_t stack, uint32_t count, struct quality *q,
                      uint32_t *seen) {
        const struct rec_stack *s = r->stacks + stack;
        uint32_t named_frames = 0;

        for (uint32_t i = 0; i < s->count; i++) {
                uint32_t frame = r->stack_frames[s->first + i], m = r->frames[frame].module;
                bool named = frame_is_named(r, frame);

                named_frames += named;
                if (m >= r->n_modules)
                        continue;
                if (seen[m] != stack + 1) {
                        seen[m] = stack + 1;
                        q->modules[m].samples += count;
                }
                if (!named)
                        q->modules[m].unnamed_frames += count;
        }
        q->frames += (uint64_t) count * s->count;
        q->named_frames += (uint64_t) count * named_frames;
        if (s->count > 0 && named_frames == s->count)
                q->symbolised += count;
        if (stack_end_is_complete(s->end))
                q->complete += count;
        q->ends[s->end].samples += count;
        q->ends[s->end].frames = MAX(q->ends[s->end].frames, s->count);
}

bool sample_counts(const struct recording *r, const struct rec_sample *s) {
        return s->kind == REC_SAMPLE_CPU_USER || s->kind == REC_SAMPLE_CPU_KERNEL ||
               (s->stack < r->n_stacks && !(s->flags & REC_SAMPLE_NO_STACK));
}

static int by_samples(const void *x, const void *y) {
        const struct module_quality *a = x, *b = y;

        if (a->samples != b->samples)
                return a->samples > b->samples ? -1 : 1;
        return a->module < b->module ? -1 : a->module > b->module;
}

int quality_init(const struct recording *r, struct quality *ret) {
        _cleanup_free_ uint32_t *counts = calloc((size_t) r->n_stacks + 1, sizeof(*counts));
        _cleanup_free_ uint32_t *seen = calloc((size_t) r->n_modules + 1, sizeof(*seen));
        struct module_quality *modules = calloc((size_t) r->n_modules + 1, sizeof(*modules));
        struct quality q = { .lost = r->start->lost[REC_LOST_SAMPLES], .modules = modules };
        uint64_t frames = 0;

        if (!counts || !seen || !modules) {
                free(modules);
                return -ENOMEM;
        }
        for (uint32_t i = 0; i < r->n_modules; i++)
                modules[i].module = i;
        for (uint32_t i = 0; i < r->n_samples; i++) {
                q.samples += sample_counts(r, r->samples + i);
                if (r->samples[i].stack < r->n_stacks)
                        counts[r->samples[i].stack]++;
                else
                        q.ends[REC_STACK_NONE].samples += sample_counts(r, r->samples + i);
        }
        for (uint32_t i = 0; i < r->n_stacks; i++) {
                frames += r->stacks[i].count;
                if (counts[i] == 0 || frames > FRAMES_MAX)
                        continue;
                add_stack(r, i, counts[i], &q, seen);
        }
        qsort(modules, r->n_modules, sizeof(*modules), by_samples);
        while (q.n_modules < r->n_modules && modules[q.n_modules].samples > 0)
                q.n_modules++;
        *ret = q;
        return 0;
}

void quality_done(struct quality *q) {
        free(q->modules);
        *q = QUALITY_NULL;
}
