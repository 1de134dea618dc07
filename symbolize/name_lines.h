/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbolize/dwarf_index.h"

/*
 * What DWARF adds to the name of an address: what was inlined there, and file and line of each. Read from a
 * module's debug file, or from the file itself, when the first address is asked for.
 */
struct name_lines;

struct name_line {
        const char *text; /* demangled; NULL: unknown. Like file, valid until the next name_lines_find() */
        const char *file; /* NULL: unknown */
        uint32_t line; /* 0: unknown */
        bool inlined; /* into the next one */
};

/* image, debug: borrowed, must outlive the lines; debug: or NULL. -ENODATA: neither has any; -ENOMEM. */
int name_lines_new(const struct elf_image *image, const struct elf_image *debug, struct name_lines **ret);
struct name_lines *name_lines_free(struct name_lines *l);
DEFINE_CLEANUP(struct name_lines *, name_lines_free);

/* The frames of a virtual address, innermost first; *ret and its texts are valid until the next call.
 * Nothing known, or nothing that can be read: none. -ENOMEM. */
int name_lines_find(struct name_lines *l, uint64_t vaddr, const struct dwarf_companions *companions,
                    const struct name_line **ret, size_t *ret_count);

/* Has the file DWARF of its own? */
bool name_lines_in(const struct elf_image *image);
