/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/event.h"
#include "symbolize/elf_image.h"

/*
 * Call frame information as compilers write it: .eh_frame (Linux Standard Base core, chapter 10.6) and
 * .debug_frame (DWARF 5, section 6.4). Reads the entries of one section and runs their programs, which
 * gives rows: for a range of addresses, where the caller's registers are. The bytes may be anything; they
 * are read within bounds, and nothing in them is followed more than once: an FDE names a CIE, and a CIE
 * names nothing.
 */

/* Where the value of a caller's register is. */
enum cfi_kind {
        CFI_DEFAULT, /* no rule: what the ABI says (callee-saved registers keep their value) */
        CFI_UNDEFINED, /* lost; of the return address: there is no caller */
        CFI_SAME,
        CFI_OFFSET, /* in memory at CFA + value */
        CFI_VAL_OFFSET, /* is CFA + value */
        CFI_REGISTER, /* in register number `value` */
        CFI_EXPRESSION, /* in memory at the address that an expression gives */
        CFI_VAL_EXPRESSION, /* is what an expression gives */
};

/* value of an expression: its place in the section and its length */
#define CFI_EXPRESSION_VALUE(offset, bytes) ((int64_t) ((uint64_t) (offset) << 16 | (bytes)))
#define CFI_EXPRESSION_OFFSET(value)        ((size_t) ((uint64_t) (value) >> 16))
#define CFI_EXPRESSION_BYTES(value)         ((size_t) ((value) &0xffff))

struct cfi_row {
        int64_t cfa_value; /* offset from cfa_register, or an expression */
        uint8_t cfa_register; /* DWARF number, or CFI_CFA_EXPRESSION */
        uint8_t kind[REG_COUNT]; /* enum cfi_kind, by DWARF number; DWARF_RIP: the return address */
        uint32_t offsets; /* bit per register whose kind is CFI_OFFSET */
        uint32_t unusual; /* bit per register whose kind is neither CFI_DEFAULT nor CFI_OFFSET */
        int64_t value[REG_COUNT];
};

enum {
        CFI_CFA_EXPRESSION = 0xff,
        CFI_REMEMBER_MAX = 16, /* compilers nest remember_state two deep */
        CFI_CIE_PROGRAM_MAX = 512, /* real ones have about seven bytes, and they run again for each FDE */
        CFI_CIE_CACHE = 64,
};
/* Offsets are 32 bits in this module; the largest known .eh_frame (a browser) has 20 MB, .debug_frame 60
 * MB. */
#define CFI_SECTION_MAX (UINT64_C(1) << 31)

struct cfi_section {
        const uint8_t *data; /* borrowed */
        size_t bytes;
        uint64_t vaddr; /* of data[0], for pointers relative to their place */
        bool eh; /* .eh_frame, else .debug_frame */
        bool terminated; /* ends at the first zero length, `bytes` is only a limit */
        const struct elf_image *image; /* for pointers to pointers; NULL: those are refused */
};

/* What a CIE says, and the row it begins with. */
struct cfi_cie {
        uint32_t offset; /* of the entry; UINT32_MAX: nothing here */
        bool usable;
        bool augmented; /* FDEs have augmentation data ('z') */
        bool signal; /* frames interrupted by the kernel ('S') */
        uint8_t encoding; /* of pointers in FDEs (DW_EH_PE_*) */
        uint8_t lsda_encoding; /* of the pointer to the language's data; DW_EH_PE_omit: FDEs have none */
        uint64_t code_align;
        int64_t data_align;
        struct cfi_row initial;
};

struct cfi_fde {
        uint64_t start, end; /* virtual addresses, end exclusive, start < end */
        uint64_t lsda; /* virtual address of the language's data (.gcc_except_table and others); 0: none */
        uint32_t cie; /* offset of its CIE */
        uint32_t program, program_end; /* offsets of its program */
};

/* Embedded; no _done: it holds nothing. */
struct cfi_reader {
        struct cfi_section section;
        size_t position;
        struct cfi_cie cies[CFI_CIE_CACHE];
};

/* -EBADMSG: more than CFI_SECTION_MAX bytes. */
int cfi_reader_init(struct cfi_reader *r, const struct cfi_section *section);

/*
 * The next FDE that is worth running: those with an unknown version, augmentation or encoding, without a
 * range or around the end of the address space are passed over.
 *
 * 1          *ret filled
 * 0          end of the section
 * -EBADMSG   an entry runs past the section; there is no way to find the next one
 */
int cfi_next(struct cfi_reader *r, struct cfi_fde *ret);

/*
 * One row, for addresses [start, end), start < end. row is NULL from the place on where the program
 * cannot be understood. Rows of one FDE come in order and without gaps. signal: of the FDE. A negative
 * return ends the run.
 */
typedef int (*cfi_row_fn)(void *userdata, uint64_t start, uint64_t end, const struct cfi_row *row,
                          bool signal);

/* Runs the program of an FDE of this reader. 0, or what row returned. */
int cfi_run(struct cfi_reader *r, const struct cfi_fde *fde, cfi_row_fn row, void *userdata);

/*
 * Finds .eh_frame without section headers, through PT_GNU_EH_FRAME (a prelude of .eh_frame that points to
 * it); the section then reaches to the end of the segment and is ended by a zero length. -ENODATA: none.
 */
int cfi_section_from_segments(const struct elf_image *image, struct cfi_section *ret);
