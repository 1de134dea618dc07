/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/macro.h"

/*
 * Names of the kernel's own code, as /proc/kallsyms has them: "ADDRESS TYPE name" and, behind a tab, the module
 * in brackets. The file has no sizes: a function reaches to the next symbol of any kind, since data and the
 * marks of sections end it as well. To readers who may not see addresses the kernel shows zeros.
 */
struct kallsyms;

enum {
        KALLSYMS_BYTES_MAX = 64 * 1024 * 1024, /* of the text: 15 MB on a distribution kernel */
        KALLSYMS_SYMBOLS_MAX = 1 << 20,
        KALLSYMS_SYMBOL_BYTES_MAX = 1 << 20, /* beyond it is a hole, not the function before it */
};

struct kallsyms_symbol {
        const char *name; /* valid as long as the table */
        const char *module; /* "ext4", "bpf"; "" for the kernel itself */
        uint64_t start;
};

/*
 * text: borrowed, copied; lines in any order.
 *
 * -EACCES    all addresses are zero: the reader may not see them
 * -EBADMSG   a line that is none, or a last one without its end
 * -EFBIG     more than KALLSYMS_BYTES_MAX or KALLSYMS_SYMBOLS_MAX
 * -ENODATA   no functions
 * -ENOMEM
 */
int kallsyms_new(const char *text, size_t bytes, struct kallsyms **ret);
struct kallsyms *kallsyms_free(struct kallsyms *k);
DEFINE_CLEANUP(struct kallsyms *, kallsyms_free);

/* 0, or -ENOENT: in no function. */
int kallsyms_find(const struct kallsyms *k, uint64_t address, struct kallsyms_symbol *ret);
