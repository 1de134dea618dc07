/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/macro.h"
#include "proto/recording.h"
#include "symbolize/debug_file.h"
#include "symbolize/name_lines.h"

/*
 * Names for the addresses of one module: its file, its debug file, and the symbol tables of both. What cannot
 * be named says why. Nothing here fails for what a file holds; a file that is not to be trusted or not to be
 * had is a reason.
 */
struct name_module;

struct name_module_options {
        enum rec_module_kind kind;
        struct build_id build_id; /* as recorded when it was mapped; none: unknown */
        bool elsewhere; /* files are found by name long after or on another machine: only a build-id
                                           tells that they are the recorded ones */
};

/* Opens the files through `ask` (WORKER_ROLE_FILE first), which is not kept. -ENOMEM. */
int name_module_new(const struct name_module_options *options, debug_file_ask_fn ask, void *userdata,
                    struct name_module **ret);
struct name_module *name_module_free(struct name_module *m);
DEFINE_CLEANUP(struct name_module *, name_module_free);

/* NULL when there is none; valid as long as m. */
const struct elf_image *name_module_image(const struct name_module *m);
const struct elf_image *name_module_debug(const struct name_module *m);

struct name {
        const char *text; /* demangled; NULL: none. Valid until the next name_find() of the module */
        enum rec_source source;
        enum rec_reason reason; /* when there is no text */
        uint64_t displacement; /* from the symbol's start, in bytes */
};

/* offset: in the file; of the kernel the address. -ENOMEM. */
int name_find(struct name_module *m, uint64_t offset, struct name *ret);

/*
 * What DWARF adds to that: what was inlined at the offset, innermost first, with files and lines; the last one is
 * the function that name_find() names. None: nothing is known. *ret is valid until the next call.
 * companions: for files that the debug file refers to. -ENOMEM.
 */
int name_find_lines(struct name_module *m, uint64_t offset, const struct dwarf_companions *companions,
                    const struct name_line **ret, size_t *ret_count);

/* The module's line of the ledger after its addresses were looked up: fills source and reason.
 * Returns the path of the debug file, "" without one. */
const char *name_module_ledger(const struct name_module *m, struct rec_symbols *ret);

/* Is a better than b? DEBUG_SYMTAB and SYMTAB before DYNSYM, anything before none. */
bool name_source_better(uint32_t a, uint32_t b);
