/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "worker/stacks.h"

#include <errno.h>
#include <stdlib.h>

#include "common/buf.h"
#include "common/hash.h"

struct stacks {
        struct hash *frame_index, *stack_index;
        /* arrays of rows */
        struct buf frames, stacks, stack_frames, sample_stacks;
};

/* What makes two stacks equal; followed by the indexes of the frames. */
struct stack_key {
        uint32_t end;
        uint32_t frames[UNWIND_DEPTH_MAX];
};

_Static_assert((int) KERNEL_FRAMES_MAX <= (int) UNWIND_DEPTH_MAX, "a kernel stack fits into a key");

struct stacks *stacks_new(void) {
        _cleanup_(stacks_freep) struct stacks *s = calloc(1, sizeof(*s));

        if (!s)
                return NULL;
        s->frame_index = hash_new();
        s->stack_index = hash_new();
        if (!s->frame_index || !s->stack_index)
                return NULL;
        return TAKE_PTR(s);
}

struct stacks *stacks_free(struct stacks *s) {
        if (!s)
                return NULL;

        hash_free(s->frame_index);
        hash_free(s->stack_index);
        buf_done(&s->frames);
        buf_done(&s->stacks);
        buf_done(&s->stack_frames);
        buf_done(&s->sample_stacks);
        free(s);
        return NULL;
}

static int intern_frame(struct stacks *s, const struct unwind_frame *frame, uint32_t *ret) {
        struct rec_frame row = { .offset = frame->offset, .module = frame->module, .how = frame->how };
        uint64_t index;
        int r;

        r = hash_intern(s->frame_index, &row, sizeof(row), s->frames.size / sizeof(row), &index);
        if (r > 0)
                buf_append(&s->frames, &row, sizeof(row));
        if (r >= 0)
                *ret = (uint32_t) index;
        return MIN(r, 0);
}

static int intern_stack(struct stacks *s, const struct stack_key *key, size_t count, uint32_t *ret) {
        size_t key_bytes = offsetof(struct stack_key, frames) + count * sizeof(key->frames[0]);
        struct rec_stack row = {
                .first = (uint32_t) (s->stack_frames.size / sizeof(key->frames[0])),
                .count = (uint32_t) count,
                .end = key->end,
        };
        uint64_t index;
        int r;

        r = hash_intern(s->stack_index, key, key_bytes, s->stacks.size / sizeof(row), &index);
        if (r > 0) {
                buf_append(&s->stacks, &row, sizeof(row));
                buf_append(&s->stack_frames, key->frames, count * sizeof(key->frames[0]));
        }
        if (r >= 0)
                *ret = (uint32_t) index;
        return MIN(r, 0);
}

/* Rows that refer to rows which found no memory would be wrong. */
static int error_of(const struct stacks *s) {
        int r;

        r = buf_error(&s->frames);
        r = r ?: buf_error(&s->stacks);
        r = r ?: buf_error(&s->stack_frames);
        r = r ?: buf_error(&s->sample_stacks);
        return r;
}

static int intern(struct stacks *s, const struct unwind_frame *frames, size_t count, uint32_t end,
                  uint32_t *ret) {
        struct stack_key key = { .end = end };
        int r;

        for (size_t i = 0; i < count; i++) {
                r = intern_frame(s, &frames[i], &key.frames[i]);
                if (r < 0)
                        return r;
        }
        return intern_stack(s, &key, count, ret);
}

int stacks_add(struct stacks *s, uint32_t sample, const struct stacks_sample *stack) {
        struct rec_sample_stack row = { .sample = sample };
        struct unwind_frame kernel[KERNEL_FRAMES_MAX];
        uint32_t number;
        int r;

        r = intern(s, stack->frames, stack->count, stack->end, &row.stack);
        if (r < 0)
                return r;
        for (size_t i = 0; i < stack->kernel_count; i++)
                kernel[i] =
                        (struct unwind_frame){ .offset = stack->kernel[i] - (i > 0), /* inside of the call */
                                               .module = stack->kernel_module,
                                               .how = REC_HOW_KERNEL };
        if (stack->kernel_count > 0) {
                r = intern(s, kernel, stack->kernel_count, REC_STACK_COMPLETE, &number);
                if (r < 0)
                        return r;
                row.kernel = number + 1;
        }

        buf_append(&s->sample_stacks, &row, sizeof(row));
        return error_of(s);
}

uint32_t stacks_frames(const struct stacks *s, const struct rec_frame **ret) {
        *ret = (const struct rec_frame *) s->frames.data;
        return (uint32_t) (s->frames.size / sizeof(**ret));
}

uint32_t stacks_rows(const struct stacks *s, const struct rec_stack **ret, const uint32_t **ret_frames) {
        *ret = (const struct rec_stack *) s->stacks.data;
        *ret_frames = (const uint32_t *) s->stack_frames.data;
        return (uint32_t) (s->stacks.size / sizeof(**ret));
}

static void write_rows(struct recording_writer *w, enum rec_section type, const struct buf *rows,
                       size_t row_bytes) {
        if (rows->size > 0)
                recording_writer_rows(w, type, rows->data, row_bytes, rows->size / row_bytes);
}

void stacks_write(const struct stacks *s, struct recording_writer *w) {
        write_rows(w, REC_FRAMES, &s->frames, sizeof(struct rec_frame));
        write_rows(w, REC_STACKS, &s->stacks, sizeof(struct rec_stack));
        write_rows(w, REC_STACK_FRAMES, &s->stack_frames, sizeof(uint32_t));
        write_rows(w, REC_SAMPLE_STACKS, &s->sample_stacks, sizeof(struct rec_sample_stack));
}
