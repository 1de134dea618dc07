/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/recording.h"

/* How much of the answer rests on what was really seen: samples, stacks, names, and for each module why
 * names are missing. Wait samples count where they have a stack. */

struct module_quality {
        uint32_t module; /* index */
        uint32_t samples; /* with at least one frame in it */
        uint64_t unnamed_frames; /* of it in those samples */
};

/* Stacks that ended in one way. */
struct end_quality {
        uint32_t samples;
        uint32_t frames; /* of the one with most: what was kept */
};

struct quality {
        uint32_t samples;
        uint32_t complete; /* the stack reaches a root frame */
        uint32_t symbolised; /* it has frames, and every one has a name */
        uint64_t frames, named_frames; /* of all samples */
        struct end_quality
                ends[REC_STACK_END_MAX]; /* by enum rec_stack_end; a sample without any is at NONE */
        uint64_t lost;
        struct module_quality *modules; /* owned; those with samples, most samples first */
        uint32_t n_modules;
};

#define QUALITY_NULL                                                                                        \
        (struct quality) {                                                                                  \
        }

/* A sample of the CPU, or a wait with its stack: the other waits are sums only. */
bool sample_counts(const struct recording *r, const struct rec_sample *s);

/* Nothing is missing of a stack that ended like this. */
bool stack_end_is_complete(uint32_t end);

/* 0, -ENOMEM (*ret untouched). */
int quality_init(const struct recording *r, struct quality *ret);
void quality_done(struct quality *q);
