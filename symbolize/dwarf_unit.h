/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/macro.h"
#include "symbolize/dwarf_cursor.h"

/*
 * DWARF 2 to 5 as files hold it: the sections of one file, its units, and the entries (DIEs) of a unit with their
 * attributes. DWARF 5 is the standard of 2017 (dwarfstd.org); the forms and attributes that GCC used before it
 * are those of its wiki pages "DebugFission" and "DebugFissionDWP".
 *
 * Nothing is believed: what runs past its section, or uses a form that nobody knows, costs its unit, not the
 * file. All work on one file is limited together, since a small file can ask for much.
 */

enum dwarf_section {
        DWARF_INFO,
        DWARF_ABBREV,
        DWARF_STR,
        DWARF_LINE_STR,
        DWARF_STR_OFFSETS,
        DWARF_ADDR,
        DWARF_RANGES,
        DWARF_RNGLISTS,
        DWARF_LINE,
        DWARF_ARANGES,
        DWARF_CU_INDEX, /* of a .dwp */
        DWARF_SECTION_MAX,
};

struct dwarf_file {
        const struct elf_image *image; /* borrowed */
        struct debug_sections *sections; /* owned */
        struct debug_span spans[DWARF_SECTION_MAX];
        bool split; /* a .dwo or .dwp */
        const struct dwarf_file *alternate; /* borrowed: of dwz(1), or NULL */
        uint64_t *units; /* owned: offsets of the units in .debug_info, ascending */
        size_t unit_count;
        uint64_t work; /* bytes that may still be looked at */
        uint64_t touched; /* bytes that were, since the owner set it to 0 */
};

enum {
        DWARF_UNITS_MAX = 1 << 20, /* Chromium has 30,000 */
        DWARF_RESIDENT_BYTES = 48 << 20, /* of a mapped file, looked at before it is given back */
};
#define DWARF_WORK_MAX (UINT64_C(2) << 30) /* about ten seconds */

/*
 * Finds the sections and the units. image is borrowed and must outlive the file.
 *
 * 0
 * -ENODATA   no DWARF
 * -EBADMSG, -EFBIG, -ENOTSUP, -ENOMEM   as debug_sections_get()
 */
int dwarf_file_init(struct dwarf_file *f, const struct elf_image *image, bool split);
void dwarf_file_done(struct dwarf_file *f);
/* Takes `bytes` from what may be looked at. -E2BIG: it is used up. */
int dwarf_file_spend(struct dwarf_file *f, uint64_t bytes);

struct dwarf_attribute {
        uint16_t name, form; /* DW_AT_*, DW_FORM_* */
        int64_t constant; /* DW_FORM_implicit_const */
};

struct dwarf_abbrev {
        uint64_t code;
        uint32_t first, count; /* attributes */
        uint16_t tag; /* DW_TAG_* */
        bool children;
        bool known; /* all forms are */
        int32_t bytes; /* of an entry behind its code when they are fixed, else -1 */
};

struct dwarf_abbrevs {
        struct dwarf_abbrev *abbrevs; /* owned; by code */
        struct dwarf_attribute *attributes; /* owned */
        size_t count, attribute_count;
};

/* What a .dwp says about one unit: where its part of each section begins. */
struct dwarf_parts {
        uint64_t abbrev, line, str_offsets, rnglists;
};

struct dwarf_value {
        uint16_t form;
        uint64_t number; /* what is stored: a constant, an offset, an index; a block's size */
        const char *text; /* DW_FORM_string */
};

/* The attributes that say which code an entry is. */
struct dwarf_code {
        struct dwarf_value low, high, ranges; /* form 0: not there */
};

struct dwarf_unit {
        struct dwarf_file *file; /* borrowed */
        uint64_t offset, end, first; /* in .debug_info: header, end, first entry */
        uint64_t abbrev_offset;
        uint16_t version;
        uint8_t address_bytes, offset_bytes, type; /* DW_UT_*; before DWARF 5: compile */
        struct dwarf_parts parts;

        /* from the root entry */
        struct dwarf_code code;
        uint64_t low_pc; /* base of its ranges */
        bool has_line, has_split_id;
        uint64_t line_offset;
        uint64_t str_offsets_base, addr_base, rnglists_base, ranges_base;
        uint64_t split_id; /* of a skeleton or split unit */
        const char *split_name, *comp_dir; /* or NULL */
        uint16_t language; /* DW_LANG_*, 0: unknown */

        struct dwarf_abbrevs abbrevs; /* owned */
        const struct dwarf_unit *skeleton; /* borrowed; of a split unit: where its addresses are */
};

/* Reads the header only. -EBADMSG, -ENOTSUP: a version or kind that has no code. */
int dwarf_unit_header(struct dwarf_file *f, uint64_t offset, struct dwarf_unit *ret);
/*
 * Header, abbreviations and root entry. root_only: no abbreviation but the root's is needed.
 * parts: NULL outside a .dwp. *ret needs dwarf_unit_done() on success.
 * -EBADMSG, -ENOTSUP, -E2BIG, -ENOMEM.
 */
int dwarf_unit_init(struct dwarf_unit *ret, struct dwarf_file *f, uint64_t offset,
                    const struct dwarf_parts *parts, bool root_only);
void dwarf_unit_done(struct dwarf_unit *u);

/* The abbreviation of a code, NULL. */
const struct dwarf_abbrev *dwarf_abbrev_find(const struct dwarf_unit *u, uint64_t code);
/* Reads one attribute. False: a form that is not known; the rest of the unit cannot be read. */
bool dwarf_value_read(const struct dwarf_unit *u, struct dwarf_cursor *c,
                      const struct dwarf_attribute *attribute, struct dwarf_value *ret);
/* Steps over all attributes of an entry. */
bool dwarf_entry_skip(const struct dwarf_unit *u, const struct dwarf_abbrev *abbrev, struct dwarf_cursor *c);
/* NULL: none, or not within its section. Valid as long as the file. */
const char *dwarf_value_text(const struct dwarf_unit *u, const struct dwarf_value *value);
/* -EBADMSG. */
int dwarf_value_address(const struct dwarf_unit *u, const struct dwarf_value *value, uint64_t *ret);
/* Is it an address (DW_FORM_addr and those with an index)? */
bool dwarf_value_is_address(const struct dwarf_value *value);
/* The entry it refers to: an offset in .debug_info, of the alternate file if *ret_alternate. -EBADMSG. */
int dwarf_value_reference(const struct dwarf_unit *u, const struct dwarf_value *value, uint64_t *ret,
                          bool *ret_alternate);

/* Takes the attribute if it is one of them. */
bool dwarf_code_take(struct dwarf_code *code, uint16_t name, const struct dwarf_value *value);

/* Called for each [begin, end) that is code. A negative return ends the walk and is returned. */
typedef int (*dwarf_range_fn)(void *userdata, uint64_t begin, uint64_t end);
/* All ranges of an entry. -EBADMSG, -E2BIG. */
int dwarf_code_walk(const struct dwarf_unit *u, const struct dwarf_code *code, dwarf_range_fn fn,
                    void *userdata);
