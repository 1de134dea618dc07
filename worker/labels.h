/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/macro.h"
#include "symbolize/module_role.h"
#include "worker/stacks.h"

/*
 * What stands for the names of the first frames of a process. Distributions strip libc and ld.so, and
 * __libc_start_call_main, start_thread and nearly everything of ld.so is no export; that it is the code which
 * starts a program or a thread is certain all the same, from where it lies in a stack that reaches its root, and
 * ld.so does nothing but load:
 *
 *   … ← main ← [libc start] ← __libc_start_main ← [program start]
 *   … ← thread's function ← [libc start] ← [libc start]
 *   … ← [ld.so] ← dlopen
 *
 * Only for frames without a name.
 */
struct labels;

struct frame_place {
        enum module_role role; /* of its module */
        bool entry; /* it lies at the entry point of its module */
        bool named;
};

/* NULL: no memory. */
struct labels *labels_new(uint32_t n_frames);
struct labels *labels_free(struct labels *l);
DEFINE_CLEANUP(struct labels *, labels_free);

/* Every frame, before labels_find(). */
void labels_place(struct labels *l, uint32_t frame, const struct frame_place *place);
void labels_find(struct labels *l, const struct stacks *stacks);
/* NULL: none. */
const char *labels_get(const struct labels *l, uint32_t frame);
