/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbolize/debug_file.h"
#include "symbolize/elf_image.h"

/*
 * Inline frames and file:line of addresses, from the DWARF of one file: an index that grows where it is asked.
 * Opening finds which unit an address is of (.debug_aranges; the root entries of units that are not in there,
 * which are all of clang's). A unit is scanned when it is first hit, names are read for what is returned. Units
 * that were not used for long are forgotten, so that a large file takes little memory.
 *
 * Split DWARF is looked for beside the module: NAME.dwp, or the .dwo files by their names; the alternate file of
 * dwz(1) by its name in the debug directories. Without them there are lines, but no inline frames or only those
 * of which the file itself tells the names.
 *
 * The file may hold anything. What is broken costs what is in it: a unit that cannot be read has no frames.
 */
struct dwarf_index;

enum {
        DWARF_FRAMES_MAX = 64, /* of one address */
        DWARF_CACHE_BYTES = 64 << 20, /* of scanned units */
};

/* Where other files come from: asked for while an address is resolved. ask: NULL: there are none. */
struct dwarf_companions {
        debug_file_ask_fn ask;
        void *userdata;
};

struct dwarf_frame {
        const char *function; /* linkage name where there is one, raw; NULL: unknown */
        const char *file; /* NULL: unknown */
        uint32_t line; /* 0: unknown */
        bool inlined; /* into the next one */
};

/*
 * image is borrowed and must outlive the index.
 *
 * 0
 * -ENODATA   no DWARF, or not any code in it
 * -EBADMSG, -EFBIG, -ENOTSUP, -E2BIG, -ENOMEM   it cannot be read, or takes too much
 */
int dwarf_index_new(const struct elf_image *image, struct dwarf_index **ret);
struct dwarf_index *dwarf_index_free(struct dwarf_index *index);
DEFINE_CLEANUP(struct dwarf_index *, dwarf_index_free);

/*
 * The frames of a virtual address, innermost first; all but the last one are inlined. More than max: the
 * outermost are left out. Texts are valid until the next call. The address of a caller is that of its call
 * instruction, not where it returns to.
 *
 * 0         *ret_count ≥ 1
 * -ENOENT   nothing is known of the address
 * -ENOMEM
 */
int dwarf_index_resolve(struct dwarf_index *index, uint64_t address,
                        const struct dwarf_companions *companions, struct dwarf_frame *frames, size_t max,
                        size_t *ret_count);
