/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dwarf.h>
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/macro.h"
#include "symbolize/cfi.h"

/* Sections are written by hand: bytes, and lengths that are filled in afterwards. */
struct bytes {
        uint8_t data[4096];
        size_t size;
};

static void put(struct bytes *b, const void *data, size_t bytes) {
        assert_true(b->size + bytes <= sizeof(b->data));
        memcpy(b->data + b->size, data, bytes);
        b->size += bytes;
}

static void put_u8(struct bytes *b, uint8_t value) {
        put(b, &value, sizeof(value));
}

static void put_u16(struct bytes *b, uint16_t value) {
        put(b, &value, sizeof(value));
}

static void put_u32(struct bytes *b, uint32_t value) {
        put(b, &value, sizeof(value));
}

static void put_u64(struct bytes *b, uint64_t value) {
        put(b, &value, sizeof(value));
}

#define PUT(b, ...) put(b, (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }))

static void fill_length(struct bytes *b, size_t at) {
        uint32_t length = (uint32_t) (b->size - at - 4);

        memcpy(b->data + at, &length, sizeof(length));
}

enum { SECTION_VADDR = 0x9000 };

/* A CIE with this augmentation and data; CFA = rsp + 8, return address at CFA - 8. Returns its offset. */
static uint32_t put_cie(struct bytes *b, const char *augmentation, const uint8_t *data, uint8_t data_bytes) {
        size_t at = b->size;

        put_u32(b, 0);
        put_u32(b, 0); /* the id of a CIE */
        put_u8(b, 1);
        put(b, augmentation, strlen(augmentation) + 1);
        PUT(b, 1, 0x78, DWARF_RIP); /* code and data alignment 1 and -8 */
        if (augmentation[0] == 'z') {
                put_u8(b, data_bytes);
                put(b, data, data_bytes);
        }
        PUT(b, DW_CFA_def_cfa, DWARF_RSP, 8, DW_CFA_offset | DWARF_RIP, 1);
        fill_length(b, at);
        return (uint32_t) at;
}

static uint32_t put_usual_cie(struct bytes *b) {
        return put_cie(b, "zR", (const uint8_t[]){ DW_EH_PE_pcrel | DW_EH_PE_sdata4 }, 1);
}

static size_t begin_fde(struct bytes *b, uint32_t cie) {
        size_t at = b->size;

        put_u32(b, 0);
        put_u32(b, (uint32_t) (b->size - cie));
        return at;
}

/* An FDE of the usual CIE. */
static void put_fde(struct bytes *b, uint32_t cie, uint64_t start, uint32_t range, const uint8_t *program,
                    size_t bytes) {
        size_t at = begin_fde(b, cie);

        put_u32(b, (uint32_t) (start - (SECTION_VADDR + b->size)));
        put_u32(b, range);
        put_u8(b, 0);
        put(b, program, bytes);
        fill_length(b, at);
}

#define PUT_FDE(b, cie, start, range, ...)                                                                  \
        put_fde(b, cie, start, range, (const uint8_t[]){ __VA_ARGS__ },                                     \
                sizeof((const uint8_t[]){ __VA_ARGS__ }))

struct seen {
        uint64_t start, end;
        bool known, signal;
        struct cfi_row row;
};

struct rows {
        struct seen seen[64];
        size_t count;
};

static int note_row(void *userdata, uint64_t start, uint64_t end, const struct cfi_row *row, bool signal) {
        struct rows *rows = userdata;

        assert_true(start < end);
        if (rows->count == ARRAY_SIZE(rows->seen))
                return -E2BIG;
        rows->seen[rows->count++] = (struct seen){ .start = start,
                                                   .end = end,
                                                   .known = row != NULL,
                                                   .signal = signal,
                                                   .row = row ? *row : (struct cfi_row){} };
        return 0;
}

static struct cfi_section section_of(const struct bytes *b) {
        return (struct cfi_section){ .data = b->data, .bytes = b->size, .vaddr = SECTION_VADDR, .eh = true };
}

/* Runs all FDEs; what cfi_next() said last. */
static int run_section(const struct cfi_section *section, struct rows *ret) {
        struct cfi_reader *reader = malloc(sizeof(*reader));
        struct cfi_fde fde;
        int r;

        assert_non_null(reader);
        r = cfi_reader_init(reader, section);
        while (r == 0 && (r = cfi_next(reader, &fde)) == 1)
                r = cfi_run(reader, &fde, note_row, ret);
        free(reader);
        return r;
}

static void run_all(const struct bytes *b, struct rows *ret) {
        struct cfi_section section = section_of(b);

        assert_int_equal(run_section(&section, ret), 0);
}

/* The rows of one FDE of the usual kind at [0x1000, 0x1100). */
#define RUN(rows, ...)                                                                                      \
        do {                                                                                                \
                struct bytes b_ = {};                                                                       \
                uint32_t cie_ = put_usual_cie(&b_);                                                         \
                PUT_FDE(&b_, cie_, 0x1000, 0x100, __VA_ARGS__);                                             \
                run_all(&b_, rows);                                                                         \
        } while (0)

static void a_function_without_instructions_has_the_row_of_its_cie(void **state) {
        struct rows rows = {};

        RUN(&rows, DW_CFA_nop);
        assert_int_equal(rows.count, 1);
        assert_int_equal(rows.seen[0].start, 0x1000);
        assert_int_equal(rows.seen[0].end, 0x1100);
        assert_false(rows.seen[0].signal);
        assert_int_equal(rows.seen[0].row.cfa_register, DWARF_RSP);
        assert_int_equal(rows.seen[0].row.cfa_value, 8);
        assert_int_equal(rows.seen[0].row.kind[DWARF_RIP], CFI_OFFSET);
        assert_int_equal(rows.seen[0].row.value[DWARF_RIP], -8);
        assert_int_equal(rows.seen[0].row.unusual, 0);
}

static void a_prologue_and_an_epilogue_give_a_row_each(void **state) {
        struct rows rows = {};

        RUN(&rows, DW_CFA_advance_loc | 1, DW_CFA_def_cfa_offset, 16, DW_CFA_offset | DWARF_RBP, 2,
            DW_CFA_advance_loc | 3, DW_CFA_def_cfa_register, DWARF_RBP, DW_CFA_advance_loc1, 0x80,
            DW_CFA_def_cfa, DWARF_RSP, 8, DW_CFA_restore | DWARF_RBP);
        assert_int_equal(rows.count, 4);
        assert_int_equal(rows.seen[1].start, 0x1001);
        assert_int_equal(rows.seen[1].row.cfa_value, 16);
        assert_int_equal(rows.seen[1].row.value[DWARF_RBP], -16);
        assert_int_equal(rows.seen[2].start, 0x1004);
        assert_int_equal(rows.seen[2].row.cfa_register, DWARF_RBP);
        assert_int_equal(rows.seen[3].start, 0x1084);
        assert_int_equal(rows.seen[3].end, 0x1100);
        assert_int_equal(rows.seen[3].row.kind[DWARF_RBP], CFI_DEFAULT);
}

static void all_widths_of_advance_move_on(void **state) {
        struct rows rows = {};

        RUN(&rows, DW_CFA_advance_loc2, 2, 0, DW_CFA_def_cfa_offset, 16, DW_CFA_advance_loc4, 4, 0, 0, 0,
            DW_CFA_def_cfa_offset, 24, DW_CFA_MIPS_advance_loc8, 8, 0, 0, 0, 0, 0, 0, 0,
            DW_CFA_def_cfa_offset, 32);
        assert_int_equal(rows.count, 4);
        assert_int_equal(rows.seen[1].start, 0x1002);
        assert_int_equal(rows.seen[2].start, 0x1006);
        assert_int_equal(rows.seen[3].start, 0x100e);
}

static void set_loc_names_the_address(void **state) {
        struct bytes b = {};
        uint32_t cie = put_usual_cie(&b);
        size_t at = begin_fde(&b, cie);
        struct rows rows = {};

        put_u32(&b, (uint32_t) (0x1000 - (SECTION_VADDR + b.size)));
        put_u32(&b, 0x100);
        put_u8(&b, 0);
        put_u8(&b, DW_CFA_set_loc);
        put_u32(&b, (uint32_t) (0x1010 - (SECTION_VADDR + b.size)));
        PUT(&b, DW_CFA_def_cfa_offset, 48);
        fill_length(&b, at);
        run_all(&b, &rows);
        assert_int_equal(rows.count, 2);
        assert_int_equal(rows.seen[1].start, 0x1010);
        assert_int_equal(rows.seen[1].row.cfa_value, 48);
}

static void remembered_rows_come_back_with_their_cfa(void **state) {
        struct rows rows = {};

        RUN(&rows, DW_CFA_def_cfa_offset, 32, DW_CFA_remember_state, DW_CFA_advance_loc | 1,
            DW_CFA_def_cfa_offset, 8, DW_CFA_advance_loc | 1, DW_CFA_restore_state);
        assert_int_equal(rows.count, 3);
        assert_int_equal(rows.seen[0].row.cfa_value, 32);
        assert_int_equal(rows.seen[1].row.cfa_value, 8);
        assert_int_equal(rows.seen[2].row.cfa_value, 32);
}

static void signed_and_extended_forms_are_factored(void **state) {
        struct rows rows = {};

        RUN(&rows, DW_CFA_def_cfa_sf, DWARF_RBX, 0x7e /* -2 */, DW_CFA_offset_extended, DWARF_R12, 3,
            DW_CFA_offset_extended_sf, DWARF_R13, 0x7f /* -1 */, DW_CFA_val_offset, DWARF_R14, 1,
            DW_CFA_val_offset_sf, DWARF_R15, 0x7f, DW_CFA_GNU_negative_offset_extended, DWARF_RBP, 2);
        assert_int_equal(rows.count, 1);
        assert_int_equal(rows.seen[0].row.cfa_register, DWARF_RBX);
        assert_int_equal(rows.seen[0].row.cfa_value, 16);
        assert_int_equal(rows.seen[0].row.value[DWARF_R12], -24);
        assert_int_equal(rows.seen[0].row.value[DWARF_R13], 8);
        assert_int_equal(rows.seen[0].row.kind[DWARF_R14], CFI_VAL_OFFSET);
        assert_int_equal(rows.seen[0].row.value[DWARF_R14], -8);
        assert_int_equal(rows.seen[0].row.value[DWARF_R15], 8);
        assert_int_equal(rows.seen[0].row.value[DWARF_RBP], 16);
        assert_int_equal(rows.seen[0].row.unusual, 1 << DWARF_R14 | 1 << DWARF_R15);
}

static void registers_undefined_same_and_in_registers_are_told_apart(void **state) {
        struct rows rows = {};

        RUN(&rows, DW_CFA_undefined, DWARF_RIP, DW_CFA_same_value, DWARF_RBX, DW_CFA_register, DWARF_RBP,
            DWARF_R8, DW_CFA_offset_extended, 40, 7 /* a vector register */, DW_CFA_GNU_args_size, 0x90, 1);
        assert_int_equal(rows.count, 1);
        assert_true(rows.seen[0].known);
        assert_int_equal(rows.seen[0].row.kind[DWARF_RIP], CFI_UNDEFINED);
        assert_int_equal(rows.seen[0].row.kind[DWARF_RBX], CFI_SAME);
        assert_int_equal(rows.seen[0].row.kind[DWARF_RBP], CFI_REGISTER);
        assert_int_equal(rows.seen[0].row.value[DWARF_RBP], DWARF_R8);
}

static void expressions_are_found_again_in_the_section(void **state) {
        struct bytes b = {};
        uint32_t cie = put_usual_cie(&b);
        struct rows rows = {};
        int64_t value;

        PUT_FDE(&b, cie, 0x1000, 0x100, DW_CFA_def_cfa_expression, 3, DW_OP_breg6, 0x78, DW_OP_deref,
                DW_CFA_expression, DWARF_RBP, 2, DW_OP_breg6, 0);
        run_all(&b, &rows);
        assert_int_equal(rows.count, 1);
        assert_int_equal(rows.seen[0].row.cfa_register, CFI_CFA_EXPRESSION);
        value = rows.seen[0].row.cfa_value;
        assert_int_equal(CFI_EXPRESSION_BYTES(value), 3);
        assert_memory_equal(b.data + CFI_EXPRESSION_OFFSET(value),
                            ((const uint8_t[]){ DW_OP_breg6, 0x78, DW_OP_deref }), 3);
        assert_int_equal(rows.seen[0].row.kind[DWARF_RBP], CFI_EXPRESSION);
}

static void signal_frames_are_marked(void **state) {
        struct bytes b = {};
        uint32_t cie = put_cie(&b, "zRS", (const uint8_t[]){ DW_EH_PE_pcrel | DW_EH_PE_sdata4 }, 1);
        struct rows rows = {};

        PUT_FDE(&b, cie, 0x1000, 0x100, DW_CFA_nop);
        run_all(&b, &rows);
        assert_true(rows.seen[0].signal);
}

static void personality_and_lsda_are_stepped_over(void **state) {
        static const uint8_t data[] = {
                DW_EH_PE_indirect | DW_EH_PE_pcrel | DW_EH_PE_sdata4,
                1,
                2,
                3,
                4,
                DW_EH_PE_pcrel | DW_EH_PE_sdata4,
                DW_EH_PE_absptr | DW_EH_PE_udata2,
        };
        struct bytes b = {};
        uint32_t cie = put_cie(&b, "zPLR", data, sizeof(data));
        size_t at = begin_fde(&b, cie);
        struct rows rows = {};

        put_u16(&b, 0x1000);
        put_u16(&b, 0x20);
        PUT(&b, 4, 9, 9, 9, 9, DW_CFA_def_cfa_offset, 64);
        fill_length(&b, at);
        run_all(&b, &rows);
        assert_int_equal(rows.count, 1);
        assert_int_equal(rows.seen[0].start, 0x1000);
        assert_int_equal(rows.seen[0].end, 0x1020);
        assert_int_equal(rows.seen[0].row.cfa_value, 64);
}

/* One FDE at 0x1000 whose pointers have this encoding. */
static void check_encoding(uint8_t encoding, const void *start, size_t start_bytes, const void *range,
                           size_t range_bytes) {
        struct bytes b = {};
        uint32_t cie = put_cie(&b, "zR", &encoding, 1);
        size_t at = begin_fde(&b, cie);
        struct rows rows = {};

        put(&b, start, start_bytes);
        put(&b, range, range_bytes);
        put_u8(&b, 0);
        fill_length(&b, at);
        run_all(&b, &rows);
        assert_int_equal(rows.count, 1);
        assert_int_equal(rows.seen[0].start, 0x1000);
        assert_int_equal(rows.seen[0].end, 0x1100);
}

static void absolute_pointers_of_all_widths_are_read(void **state) {
        static const uint64_t start = 0x1000, range = 0x100;
        static const uint8_t uleb_start[] = { 0x80, 0x20 }, uleb_range[] = { 0x80, 0x02 };

        check_encoding(DW_EH_PE_absptr, &start, 8, &range, 8);
        check_encoding(DW_EH_PE_udata8, &start, 8, &range, 8);
        check_encoding(DW_EH_PE_sdata8, &start, 8, &range, 8);
        check_encoding(DW_EH_PE_udata4, &start, 4, &range, 4);
        check_encoding(DW_EH_PE_sdata4, &start, 4, &range, 4);
        check_encoding(DW_EH_PE_udata2, &start, 2, &range, 2);
        check_encoding(DW_EH_PE_sdata2, &start, 2, &range, 2);
        check_encoding(DW_EH_PE_uleb128, uleb_start, 2, uleb_range, 2);
        check_encoding(DW_EH_PE_sleb128, uleb_start, 2, uleb_range, 2);
}

static void fdes_that_cannot_be_placed_are_passed_over(void **state) {
        static const uint8_t bad[] = {
                DW_EH_PE_omit,
                DW_EH_PE_funcrel | DW_EH_PE_udata4,
                0x07,
                DW_EH_PE_indirect | DW_EH_PE_udata8,
        };

        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                struct bytes b = {};
                uint32_t cie = put_cie(&b, "zR", &bad[i], 1);
                size_t at = begin_fde(&b, cie);
                struct rows rows = {};

                put_u64(&b, 0x1000);
                put_u64(&b, 0x100);
                put_u8(&b, 0);
                fill_length(&b, at);
                cie = put_usual_cie(&b);
                PUT_FDE(&b, cie, 0x2000, 0x10, DW_CFA_nop);
                run_all(&b, &rows);
                assert_int_equal(rows.count, 1);
                assert_int_equal(rows.seen[0].start, 0x2000);
        }
}

static void an_empty_range_and_one_around_the_end_are_passed_over(void **state) {
        struct bytes b = {};
        uint32_t cie = put_cie(&b, "zR", (const uint8_t[]){ DW_EH_PE_absptr }, 1);
        struct rows rows = {};

        for (int i = 0; i < 2; i++) {
                size_t at = begin_fde(&b, cie);

                put_u64(&b, i ? UINT64_MAX - 10 : 0x1000);
                put_u64(&b, i ? 100 : 0);
                put_u8(&b, 0);
                fill_length(&b, at);
        }
        run_all(&b, &rows);
        assert_int_equal(rows.count, 0);
}

static void debug_frame_points_to_cies_from_its_start(void **state) {
        struct bytes b = {};
        struct cfi_section section;
        struct rows rows = {};
        size_t at;

        PUT(&b, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 4, 0, 8, 0, 1, 0x78, DWARF_RIP, DW_CFA_def_cfa,
            DWARF_RSP, 8);
        fill_length(&b, 0);
        at = b.size;
        put_u32(&b, 0);
        put_u32(&b, 0); /* the CIE is at 0 */
        put_u64(&b, 0x1000);
        put_u64(&b, 0x100);
        PUT(&b, DW_CFA_advance_loc | 1, DW_CFA_def_cfa_offset, 16);
        fill_length(&b, at);

        section = section_of(&b);
        section.eh = false;
        assert_int_equal(run_section(&section, &rows), 0);
        assert_int_equal(rows.count, 2);
        assert_int_equal(rows.seen[1].start, 0x1001);
        assert_int_equal(rows.seen[1].row.cfa_value, 16);
}

static void lengths_of_64_bits_are_followed(void **state) {
        struct bytes b = {};
        struct cfi_section section;
        struct rows rows = {};

        put_u32(&b, UINT32_MAX);
        put_u64(&b, 8 + 9);
        put_u64(&b, UINT64_MAX);
        PUT(&b, 3, 0, 1, 0x78, DWARF_RIP, DW_CFA_def_cfa, DWARF_RSP, 8, DW_CFA_nop);
        put_u32(&b, UINT32_MAX);
        put_u64(&b, 24);
        put_u64(&b, 0);
        put_u64(&b, 0x1000);
        put_u64(&b, 0x100);

        section = section_of(&b);
        section.eh = false;
        assert_int_equal(run_section(&section, &rows), 0);
        assert_int_equal(rows.count, 1);
        assert_int_equal(rows.seen[0].row.cfa_value, 8);
}

static void terminators_in_the_middle_end_nothing_but_a_terminated_section(void **state) {
        struct bytes b = {};
        uint32_t cie = put_usual_cie(&b);
        struct cfi_section section;
        struct rows rows = {};

        PUT_FDE(&b, cie, 0x1000, 0x10, DW_CFA_nop);
        put_u32(&b, 0);
        PUT_FDE(&b, cie, 0x2000, 0x10, DW_CFA_nop);
        run_all(&b, &rows);
        assert_int_equal(rows.count, 2);

        rows.count = 0;
        section = section_of(&b);
        section.terminated = true;
        assert_int_equal(run_section(&section, &rows), 0);
        assert_int_equal(rows.count, 1);
}

static void what_follows_a_broken_instruction_is_unknown(void **state) {
        static const uint8_t broken[][2] = {
                { 0x3f, 0 }, /* no such instruction */
                { DW_CFA_restore_state, 0 }, /* nothing was remembered */
                { DW_CFA_def_cfa_expression, 0x70 }, /* longer than the program */
                { DW_CFA_def_cfa_register, 200 }, /* no such register */
                { DW_CFA_def_cfa_offset, 0x80 }, /* a number without an end */
        };

        for (size_t i = 0; i < ARRAY_SIZE(broken); i++) {
                struct rows rows = {};

                RUN(&rows, DW_CFA_advance_loc | 4, broken[i][0], broken[i][1]);
                assert_int_equal(rows.count, 2);
                assert_true(rows.seen[0].known);
                assert_false(rows.seen[1].known);
                assert_int_equal(rows.seen[1].start, 0x1004);
                assert_int_equal(rows.seen[1].end, 0x1100);
        }
}

static void remembering_without_end_is_unknown(void **state) {
        uint8_t program[CFI_REMEMBER_MAX + 1];
        struct bytes b = {};
        uint32_t cie = put_usual_cie(&b);
        struct rows rows = {};

        memset(program, DW_CFA_remember_state, sizeof(program));
        put_fde(&b, cie, 0x1000, 0x100, program, sizeof(program));
        run_all(&b, &rows);
        assert_int_equal(rows.count, 1);
        assert_false(rows.seen[0].known);
}

static void rows_behind_the_function_are_cut_off(void **state) {
        struct rows rows = {};

        RUN(&rows, DW_CFA_advance_loc2, 0, 2, DW_CFA_def_cfa_offset, 99);
        assert_int_equal(rows.count, 1);
        assert_int_equal(rows.seen[0].end, 0x1100);
        assert_int_equal(rows.seen[0].row.cfa_value, 8);
}

static void pointers_to_what_is_no_cie_are_passed_over(void **state) {
        struct bytes b = {};
        uint32_t cie = put_usual_cie(&b);
        uint32_t first = (uint32_t) b.size;
        struct rows rows = {};

        PUT_FDE(&b, cie, 0x1000, 0x10, DW_CFA_nop);
        PUT_FDE(&b, first, 0x2000, 0x10, DW_CFA_nop); /* names an FDE */
        PUT_FDE(&b, (uint32_t) b.size, 0x3000, 0x10, DW_CFA_nop); /* names itself */
        PUT_FDE(&b, (uint32_t) b.size - 0x7000, 0x4000, 0x10, DW_CFA_nop); /* before the section */
        PUT_FDE(&b, (uint32_t) b.size + 0x100, 0x5000, 0x10, DW_CFA_nop); /* ahead */
        PUT_FDE(&b, cie + 1, 0x6000, 0x10, DW_CFA_nop);
        run_all(&b, &rows);
        assert_int_equal(rows.count, 1);
        assert_int_equal(rows.seen[0].start, 0x1000);
}

static void a_cie_with_an_endless_program_is_not_used(void **state) {
        uint8_t encoding = DW_EH_PE_absptr;
        struct bytes b = {};
        uint32_t cie = put_cie(&b, "zR", &encoding, 1);
        struct rows rows = {};
        size_t at;

        for (size_t i = 0; i < CFI_CIE_PROGRAM_MAX; i++)
                put_u8(&b, DW_CFA_nop);
        fill_length(&b, cie);
        at = begin_fde(&b, cie);
        put_u64(&b, 0x1000);
        put_u64(&b, 0x100);
        put_u8(&b, 0);
        fill_length(&b, at);
        run_all(&b, &rows);
        assert_int_equal(rows.count, 0);
}

static void hostile_lengths_end_the_reading(void **state) {
        static const uint32_t lengths[] = { 0x7fffffff, 0xfffffff0, UINT32_MAX };

        for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
                struct bytes b = {};
                uint32_t cie = put_usual_cie(&b);
                struct cfi_section section;
                struct rows rows = {};

                PUT_FDE(&b, cie, 0x1000, 0x10, DW_CFA_nop);
                put_u32(&b, lengths[i]);
                put_u64(&b, UINT64_MAX - 3);
                section = section_of(&b);
                assert_int_equal(run_section(&section, &rows), -EBADMSG);
                assert_int_equal(rows.count, 1);
        }
}

/* A section with a bit of everything, cut at every byte: either it runs or it is refused, and nothing is
 * read behind its end (the sanitizers see to that: the bytes are at the end of an allocation). */
static void every_truncation_stays_inside(void **state) {
        static const uint8_t data[] = {
                DW_EH_PE_indirect | DW_EH_PE_pcrel | DW_EH_PE_sdata4,
                1,
                2,
                3,
                4,
                DW_EH_PE_pcrel | DW_EH_PE_sdata4,
        };
        struct bytes b = {};
        uint32_t cie = put_usual_cie(&b);

        PUT_FDE(&b, cie, 0x1000, 0x100, DW_CFA_advance_loc4, 1, 0, 0, 0, DW_CFA_def_cfa_expression, 3,
                DW_OP_breg6, 0x78, DW_OP_deref, DW_CFA_remember_state, DW_CFA_advance_loc | 1,
                DW_CFA_restore_state);
        cie = put_cie(&b, "zPR", data, sizeof(data));
        PUT_FDE(&b, cie, 0x2000, 0x100, DW_CFA_offset_extended, DWARF_RBX, 2);

        for (size_t cut = 0; cut <= b.size; cut++) {
                uint8_t *exact = malloc(cut + !cut);
                struct cfi_section section = section_of(&b);
                struct rows rows = {};
                int r;

                memcpy(exact, b.data, cut);
                section.data = exact;
                section.bytes = cut;
                r = run_section(&section, &rows);
                assert_true(r == 0 || r == -EBADMSG);
                free(exact);
        }
}

/* The same with every byte replaced by hostile ones. */
static void every_changed_byte_stays_inside(void **state) {
        static const uint8_t values[] = { 0x00, 0x01, 0x7f, 0x80, 0xff };
        struct bytes b = {};
        uint32_t cie = put_usual_cie(&b);

        PUT_FDE(&b, cie, 0x1000, 0x100, DW_CFA_advance_loc | 1, DW_CFA_def_cfa_offset, 16, DW_CFA_expression,
                DWARF_RBP, 2, DW_OP_breg6, 0, DW_CFA_set_loc, 1, 2, 3, 4);
        for (size_t at = 0; at < b.size; at++)
                for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
                        struct cfi_section section = section_of(&b);
                        struct rows rows = {};
                        uint8_t old = b.data[at];
                        int r;

                        b.data[at] = values[i];
                        r = run_section(&section, &rows);
                        assert_true(r == 0 || r == -EBADMSG || r == -E2BIG);
                        b.data[at] = old;
                }
}

static void a_section_too_large_is_refused(void **state) {
        struct cfi_section section = { .data = (const uint8_t *) "", .bytes = CFI_SECTION_MAX + 1 };
        struct rows rows = {};

        assert_int_equal(run_section(&section, &rows), -EBADMSG);
}

/* Reads the one FDE of a section whose augmentation data is these bytes. */
static struct cfi_fde fde_with_data(const uint8_t *data, uint8_t bytes) {
        static const uint8_t encodings[] = { DW_EH_PE_pcrel | DW_EH_PE_sdata4,
                                             DW_EH_PE_pcrel | DW_EH_PE_sdata4 };
        struct bytes b = {};
        struct cfi_reader *reader = malloc(sizeof(*reader));
        struct cfi_section section;
        struct cfi_fde fde = {};
        uint32_t cie = put_cie(&b, "zLR", encodings, sizeof(encodings));
        size_t at = begin_fde(&b, cie);

        put_u32(&b, (uint32_t) (0x1000 - (SECTION_VADDR + b.size)));
        put_u32(&b, 0x10);
        put_u8(&b, bytes);
        put(&b, data, bytes);
        fill_length(&b, at);

        section = section_of(&b);
        assert_non_null(reader);
        assert_int_equal(cfi_reader_init(reader, &section), 0);
        assert_int_equal(cfi_next(reader, &fde), 1);
        free(reader);
        assert_int_equal(fde.start, 0x1000);
        assert_int_equal(fde.end, 0x1010);
        return fde;
}

static void the_data_of_the_language_is_found(void **state) {
        struct bytes b = {};
        struct cfi_fde fde = fde_with_data((const uint8_t[]){ 0x40, 0, 0, 0 }, 4);
        uint32_t cie = put_cie(&b, "zLR", (const uint8_t[]){ 0x1b, 0x1b }, 2);

        /* Relative to its own place: behind the CIE, length, id, start, range and size. */
        (void) begin_fde(&b, cie);
        assert_int_equal(fde.lsda, SECTION_VADDR + b.size + 4 + 4 + 1 + 0x40);
}

static void data_of_the_language_that_is_not_there_does_no_harm(void **state) {
        assert_int_equal(fde_with_data((const uint8_t[]){ 0, 0, 0, 0 }, 4).lsda, 0);
        for (uint8_t cut = 0; cut < 4; cut++)
                assert_int_equal(fde_with_data((const uint8_t[]){ 0x40, 1, 1, 1 }, cut).lsda, 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_function_without_instructions_has_the_row_of_its_cie),
                cmocka_unit_test(a_prologue_and_an_epilogue_give_a_row_each),
                cmocka_unit_test(all_widths_of_advance_move_on),
                cmocka_unit_test(set_loc_names_the_address),
                cmocka_unit_test(remembered_rows_come_back_with_their_cfa),
                cmocka_unit_test(signed_and_extended_forms_are_factored),
                cmocka_unit_test(registers_undefined_same_and_in_registers_are_told_apart),
                cmocka_unit_test(expressions_are_found_again_in_the_section),
                cmocka_unit_test(signal_frames_are_marked),
                cmocka_unit_test(the_data_of_the_language_is_found),
                cmocka_unit_test(data_of_the_language_that_is_not_there_does_no_harm),
                cmocka_unit_test(personality_and_lsda_are_stepped_over),
                cmocka_unit_test(absolute_pointers_of_all_widths_are_read),
                cmocka_unit_test(fdes_that_cannot_be_placed_are_passed_over),
                cmocka_unit_test(an_empty_range_and_one_around_the_end_are_passed_over),
                cmocka_unit_test(debug_frame_points_to_cies_from_its_start),
                cmocka_unit_test(lengths_of_64_bits_are_followed),
                cmocka_unit_test(terminators_in_the_middle_end_nothing_but_a_terminated_section),
                cmocka_unit_test(what_follows_a_broken_instruction_is_unknown),
                cmocka_unit_test(remembering_without_end_is_unknown),
                cmocka_unit_test(rows_behind_the_function_are_cut_off),
                cmocka_unit_test(pointers_to_what_is_no_cie_are_passed_over),
                cmocka_unit_test(a_cie_with_an_endless_program_is_not_used),
                cmocka_unit_test(hostile_lengths_end_the_reading),
                cmocka_unit_test(every_truncation_stays_inside),
                cmocka_unit_test(every_changed_byte_stays_inside),
                cmocka_unit_test(a_section_too_large_is_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
