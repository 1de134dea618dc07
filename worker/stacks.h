/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/macro.h"
#include "proto/recording.h"
#include "symbolize/unwind.h"

/* The stacks of a capture as they are recorded: equal frames are one, equal stacks are one. */
struct stacks;

struct stacks *stacks_new(void); /* NULL: no memory */
struct stacks *stacks_free(struct stacks *s);
DEFINE_CLEANUP(struct stacks *, stacks_free);

/* All of it borrowed; frames innermost first. */
struct stacks_sample {
        const struct unwind_frame *frames;
        size_t count; /* ≤ UNWIND_DEPTH_MAX */
        uint32_t end; /* enum rec_stack_end */
        const uint64_t *kernel; /* addresses */
        size_t kernel_count; /* ≤ KERNEL_FRAMES_MAX */
        uint32_t kernel_module;
};

/* -ENOMEM, -EFBIG. */
int stacks_add(struct stacks *s, uint32_t sample, const struct stacks_sample *stack);

uint32_t stacks_frames(const struct stacks *s, const struct rec_frame **ret);
/* All different stacks; *ret_frames: the indexes of frames that their rows refer to. */
uint32_t stacks_rows(const struct stacks *s, const struct rec_stack **ret, const uint32_t **ret_frames);
/* Adds the sections FRAMES, STACKS, STACK_FRAMES, SAMPLE_STACKS. */
void stacks_write(const struct stacks *s, struct recording_writer *w);
