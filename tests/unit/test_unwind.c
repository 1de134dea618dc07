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
#include "symbolize/unwind.h"
#include "symbolize/unwind_table.h"
#include "symbolize/x86_code.h"

/*
 * A module by hand: one segment with code from CODE on, CFI behind it, mapped at BIAS; and a stack of words.
 * Functions are 0x100 bytes long and begin at F(1), F(2), …; calls in them return to RET(n).
 */
enum {
        CODE = 0x1000,
        CODE_BYTES = 0x1000,
        CFI = CODE + CODE_BYTES,
        FILE_BYTES = 0x4000,
        CALL = 0x40, /* in each function: a call of 5 bytes */
};
#define BIAS     UINT64_C(0x555555554000)
#define SP       UINT64_C(0x7ffffffde000)
#define F(n)     (BIAS + CODE + 0x100 * (n))
#define RET(n)   (F(n) + CALL + 5)
#define NOT_CODE UINT64_C(0x1234567)
#define JIT      UINT64_C(0x7f0000000000)

struct world {
        uint8_t file[FILE_BYTES];
        size_t size; /* of CFI so far */
        struct elf_image *image;
        struct unwind_table *table;
        uint64_t words[4096];
        struct unwind_stack stack;
        struct unwind_frame frames[UNWIND_DEPTH_MAX + 1];
        size_t count;
};

static void put(struct world *w, const void *data, size_t bytes) {
        assert_true(CFI + w->size + bytes <= FILE_BYTES - 0x200);
        memcpy(w->file + CFI + w->size, data, bytes);
        w->size += bytes;
}

static void put_u32(struct world *w, uint32_t value) {
        put(w, &value, sizeof(value));
}

/* CFA = rsp + 8, return address at CFA - 8. */
static uint32_t put_cie(struct world *w, const char *augmentation) {
        uint32_t at = (uint32_t) w->size, padded;

        put_u32(w, 0);
        put_u32(w, 0);
        put(w, "\1", 1);
        put(w, augmentation, strlen(augmentation) + 1);
        put(w,
            ((const uint8_t[]){ 1, 0x78, DWARF_RIP, 1, DW_EH_PE_udata4, DW_CFA_def_cfa, DWARF_RSP, 8,
                                DW_CFA_offset | DWARF_RIP, 1 }),
            10);
        padded = (uint32_t) w->size - at - 4;
        memcpy(w->file + CFI + at, &padded, 4);
        return at;
}

static void put_fde(struct world *w, uint32_t cie, uint64_t address, uint32_t range, const uint8_t *program,
                    size_t bytes) {
        put_u32(w, (uint32_t) (4 + 8 + 1 + bytes));
        put_u32(w, (uint32_t) (w->size - cie));
        put_u32(w, (uint32_t) (address - BIAS));
        put_u32(w, range);
        put(w, "", 1);
        if (bytes > 0)
                put(w, program, bytes);
}

#define FDE(w, cie, address, ...)                                                                           \
        put_fde(w, cie, address, 0x100, (const uint8_t[]){ __VA_ARGS__ },                                   \
                sizeof((const uint8_t[]){ __VA_ARGS__ }))

static void put_code(struct world *w, uint64_t address, const uint8_t *code, size_t bytes) {
        memcpy(w->file + (address - BIAS), code, bytes);
}

#define CODE_AT(w, address, ...)                                                                            \
        put_code(w, address, (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }))

static void put_section_header(struct world *w, size_t index, Elf64_Shdr header) {
        memcpy(w->file + FILE_BYTES - 0x200 + index * sizeof(header), &header, sizeof(header));
}

/* The headers around code and CFI. */
static void finish_file(struct world *w, bool sections) {
        static const char names[] = "\0.eh_frame\0.shstrtab";
        Elf64_Ehdr header = {
                .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
                .e_type = ET_DYN,
                .e_machine = EM_X86_64,
                .e_version = EV_CURRENT,
                .e_phoff = sizeof(header),
                .e_shoff = FILE_BYTES - 0x200,
                .e_ehsize = sizeof(header),
                .e_phentsize = sizeof(Elf64_Phdr),
                .e_phnum = 2,
                .e_shentsize = sizeof(Elf64_Shdr),
                .e_shnum = sections ? 3 : 0,
                .e_shstrndx = sections ? 2 : 0,
        };
        Elf64_Phdr programs[2] = {
                { .p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = FILE_BYTES, .p_memsz = FILE_BYTES },
                { .p_type = PT_GNU_EH_FRAME,
                  .p_flags = PF_R,
                  .p_offset = 0x200,
                  .p_vaddr = 0x200,
                  .p_filesz = 12,
                  .p_memsz = 12 },
        };
        uint8_t prelude[12] = { 1, DW_EH_PE_udata4, DW_EH_PE_omit, DW_EH_PE_omit };
        uint32_t cfi = CFI;

        memcpy(prelude + 4, &cfi, sizeof(cfi));
        memcpy(w->file, &header, sizeof(header));
        memcpy(w->file + sizeof(header), programs, sizeof(programs));
        memcpy(w->file + 0x200, prelude, sizeof(prelude));
        memcpy(w->file + 0x300, names, sizeof(names));
        put_section_header(w, 1,
                           (Elf64_Shdr){ .sh_name = 1,
                                         .sh_type = SHT_PROGBITS,
                                         .sh_flags = SHF_ALLOC,
                                         .sh_addr = CFI,
                                         .sh_offset = CFI,
                                         .sh_size = w->size });
        put_section_header(w, 2,
                           (Elf64_Shdr){ .sh_name = 11,
                                         .sh_type = SHT_STRTAB,
                                         .sh_offset = 0x300,
                                         .sh_size = sizeof(names) });
}

static void load(struct world *w) {
        finish_file(w, true);
        assert_int_equal(elf_image_from_memory(w->file, FILE_BYTES, &w->image), 0);
        assert_int_equal(unwind_table_new(w->image, NULL, &w->table), 0);
}

static struct world *world_new(void) {
        struct world *w = calloc(1, sizeof(*w));

        assert_non_null(w);
        for (size_t n = 0; n < 15; n++)
                CODE_AT(w, F(n) + CALL, 0xe8, 1, 2, 3, 4);
        w->stack.regs[DWARF_RSP] = SP;
        w->stack.bytes = (const uint8_t *) w->words;
        w->stack.size = sizeof(w->words);
        w->stack.flags = SAMPLE_USER;
        return w;
}

static void world_free(struct world *w) {
        unwind_table_free(w->table);
        elf_image_free(w->image);
        free(w);
}
DEFINE_CLEANUP(struct world *, world_free);

static bool find(void *userdata, uint64_t address, struct unwind_mapping *ret) {
        struct world *w = userdata;

        if (address >= JIT && address < JIT + 0x1000) {
                *ret = (struct unwind_mapping){ .start = JIT, .end = JIT + 0x1000, .module = REC_NONE };
                return true;
        }
        if (address < BIAS + CODE || address >= BIAS + CODE + CODE_BYTES)
                return false;
        *ret = (struct unwind_mapping){
                .start = BIAS + CODE,
                .end = BIAS + CODE + CODE_BYTES,
                .bias = BIAS,
                .offset = CODE,
                .module = 7,
                .table = w->table,
                .image = w->image,
        };
        return true;
}

static uint32_t walk(struct world *w, uint64_t pc) {
        if (!w->image)
                load(w);
        w->stack.regs[DWARF_RIP] = pc;
        return unwind(&w->stack, find, w, w->frames, UNWIND_DEPTH_MAX, &w->count);
}

static void assert_frame(const struct world *w, size_t i, uint64_t address, uint32_t how) {
        assert_true(i < w->count);
        assert_int_equal(w->frames[i].address, address);
        assert_int_equal(w->frames[i].how, how);
}

/* F(1) has pushed rbp and reserved 16 bytes, F(2) has a frame pointer, F(3) is the root. */
static void put_three_functions(struct world *w) {
        uint32_t cie = put_cie(w, "zR");

        FDE(w, cie, F(1), DW_CFA_advance_loc | 1, DW_CFA_def_cfa_offset, 16, DW_CFA_offset | DWARF_RBP, 2,
            DW_CFA_advance_loc | 4, DW_CFA_def_cfa_offset, 32);
        FDE(w, cie, F(2), DW_CFA_advance_loc | 1, DW_CFA_def_cfa_offset, 16, DW_CFA_offset | DWARF_RBP, 2,
            DW_CFA_advance_loc | 3, DW_CFA_def_cfa_register, DWARF_RBP);
        FDE(w, cie, F(3), DW_CFA_undefined, DWARF_RIP);
        w->words[2] = SP + 8 * 8; /* rbp of F(2) */
        w->words[3] = RET(2);
        w->words[8] = 0;
        w->words[9] = RET(3);
}

static void walks_by_cfi_up_to_the_root(void **state) {
        _cleanup_(world_freep) struct world *w = world_new();

        put_three_functions(w);
        assert_int_equal(walk(w, F(1) + 0x20), REC_STACK_COMPLETE);
        assert_int_equal(w->count, 3);
        assert_frame(w, 0, F(1) + 0x20, REC_HOW_REGS);
        assert_frame(w, 1, RET(2) - 1, REC_HOW_CFI);
        assert_frame(w, 2, RET(3) - 1, REC_HOW_CFI);
        assert_int_equal(w->frames[2].offset, RET(3) - 1 - BIAS);
        assert_int_equal(w->frames[2].module, 7);
}

static void walks_without_section_headers(void **state) {
        _cleanup_(world_freep) struct world *w = world_new();

        put_three_functions(w);
        put_u32(w, 0);
        finish_file(w, false);
        assert_int_equal(elf_image_from_memory(w->file, FILE_BYTES, &w->image), 0);
        assert_int_equal(unwind_table_new(w->image, NULL, &w->table), 0);
        assert_int_equal(walk(w, F(1) + 0x20), REC_STACK_COMPLETE);
        assert_int_equal(w->count, 3);
}

static void a_return_address_of_zero_is_the_end(void **state) {
        _cleanup_(world_freep) struct world *w = world_new();

        put_three_functions(w);
        w->words[9] = 0;
        assert_int_equal(walk(w, F(1) + 0x20), REC_STACK_COMPLETE);
        assert_int_equal(w->count, 2);
}

static void each_truncated_copy_says_so_and_keeps_the_frames_before(void **state) {
        _cleanup_(world_freep) struct world *w = world_new();

        put_three_functions(w);
        for (size_t bytes = 0; bytes < 80; bytes++) {
                size_t want = bytes < 32 ? 1 : 2;

                w->stack.size = bytes;
                w->stack.flags = SAMPLE_USER | SAMPLE_STACK_CUT;
                assert_int_equal(walk(w, F(1) + 0x20), REC_STACK_COPY_ENDED);
                assert_int_equal(w->count, want);
                w->stack.flags = SAMPLE_USER | SAMPLE_STACK_FAULT;
                assert_int_equal(walk(w, F(1) + 0x20), REC_STACK_READ_FAULT);
                assert_int_equal(w->count, want);
        }
        w->stack.size = 80;
        assert_int_equal(walk(w, F(1) + 0x20), REC_STACK_COMPLETE);
}

static void nothing_is_read_from_a_page_that_was_not_there(void **state) {
        _cleanup_(world_freep) struct world *w = world_new();

        put_three_functions(w);
        w->stack.holes = 1 << 1;
        assert_int_equal(walk(w, F(1) + 0x20), REC_STACK_COMPLETE);
        w->stack.holes = 1 << 0;
        assert_int_equal(walk(w, F(1) + 0x20), REC_STACK_READ_FAULT);
        assert_int_equal(w->count, 1);
}

static void a_process_that_ends_has_no_stack(void **state) {
        _cleanup_(world_freep) struct world *w = world_new();

        put_three_functions(w);
        w->stack.flags = SAMPLE_SYSCALL | SAMPLE_STACK_FAULT | SAMPLE_GONE;
        assert_int_equal(walk(w, F(1) + 0x20), REC_STACK_GONE);
        assert_int_equal(w->count, 0);
}

static void a_frame_that_is_not_above_its_callee_ends_the_walk(void **state) {
        _cleanup_(world_freep) struct world *w = world_new();

        put_three_functions(w);
        w->words[2] = SP - 0x1000;
        assert_int_equal(walk(w, F(1) + 0x20), REC_STACK_NO_CFI);
        assert_int_equal(w->count, 2);
        w->words[2] = SP; /* F(2) would be its own caller */
        assert_int_equal(walk(w, F(1) + 0x20), REC_STACK_NO_CFI);
        assert_int_equal(w->count, 2);
}

static void a_register_whose_place_is_below_the_stack_was_popped(void **state) {
        _cleanup_(world_freep) struct world *w = world_new();
        uint32_t cie = put_cie(w, "zR");

        /* behind `pop %rbp` compilers only correct the CFA */
        FDE(w, cie, F(1), DW_CFA_offset | DWARF_RBP, 2);
        FDE(w, cie, F(2), DW_CFA_def_cfa, DWARF_RBP, 16, DW_CFA_offset | DWARF_RBP, 2);
        FDE(w, cie, F(3), DW_CFA_undefined, DWARF_RIP);
        w->stack.regs[DWARF_RBP] = SP + 16;
        w->words[0] = RET(2);
        w->words[3] = RET(3);
        assert_int_equal(walk(w, F(1) + 0x20), REC_STACK_COMPLETE);
        assert_int_equal(w->count, 3);
}

static void a_plt_entry_is_left_by_its_expression(void **state) {
        _cleanup_(world_freep) struct world *w = world_new();
        uint32_t cie = put_cie(w, "zR");

        FDE(w, cie, F(1), DW_CFA_def_cfa_expression, 11, DW_OP_breg7, 8, DW_OP_breg16, 0, DW_OP_lit15,
            DW_OP_and, DW_OP_lit11, DW_OP_ge, DW_OP_lit3, DW_OP_shl, DW_OP_plus);
        FDE(w, cie, F(3), DW_CFA_undefined, DWARF_RIP);
        w->words[0] = RET(3);
        assert_int_equal(walk(w, F(1) + 0x2a), REC_STACK_COMPLETE);
        assert_frame(w, 1, RET(3) - 1, REC_HOW_CFI);
        w->words[0] = 5; /* the slot number, once it is pushed */
        w->words[1] = RET(3);
        assert_int_equal(walk(w, F(1) + 0x2b), REC_STACK_COMPLETE);
        assert_frame(w, 1, RET(3) - 1, REC_HOW_CFI);
}

static void a_realigned_stack_is_left_by_dereferencing(void **state) {
        _cleanup_(world_freep) struct world *w = world_new();
        uint32_t cie = put_cie(w, "zR");

        FDE(w, cie, F(1), DW_CFA_def_cfa_expression, 3, DW_OP_breg6, 0x78, DW_OP_deref, DW_CFA_expression,
            DWARF_RBP, 2, DW_OP_breg6, 0);
        FDE(w, cie, F(2), DW_CFA_def_cfa, DWARF_RBP, 16);
        FDE(w, cie, F(3), DW_CFA_undefined, DWARF_RIP);
        w->stack.regs[DWARF_RBP] = SP + 4 * 8;
        w->words[3] = SP + 10 * 8; /* CFA */
        w->words[4] = SP + 20 * 8; /* rbp of F(2) */
        w->words[9] = RET(2);
        w->words[21] = RET(3);
        assert_int_equal(walk(w, F(1) + 0x20), REC_STACK_COMPLETE);
        assert_int_equal(w->count, 3);
        w->stack.size = 24;
        w->stack.flags |= SAMPLE_STACK_CUT;
        assert_int_equal(walk(w, F(1) + 0x20), REC_STACK_COPY_ENDED);
}

static void an_expression_that_loops_or_lacks_a_register_is_no_cfi(void **state) {
        _cleanup_(world_freep) struct world *w = world_new();
        uint32_t cie = put_cie(w, "zR");

        FDE(w, cie, F(1), DW_CFA_def_cfa_expression, 3, DW_OP_skip, 0xfd, 0xff);
        FDE(w, cie, F(2), DW_CFA_def_cfa_expression, 2, DW_OP_breg0 + DWARF_RAX, 0);
        FDE(w, cie, F(4), DW_CFA_nop);
        assert_int_equal(walk(w, F(1) + 0x20), REC_STACK_NO_CFI);
        w->words[0] = RET(2); /* rax of a caller is not known */
        w->stack.regs[DWARF_RAX] = SP + 80;
        assert_int_equal(walk(w, F(4)), REC_STACK_NO_CFI);
        assert_int_equal(w->count, 2);
}

static void a_return_address_in_a_register_is_followed(void **state) {
        _cleanup_(world_freep) struct world *w = world_new();
        uint32_t cie = put_cie(w, "zR");

        FDE(w, cie, F(1), DW_CFA_def_cfa_offset, 0, DW_CFA_register, DWARF_RIP, DWARF_RDI); /* as in vfork */
        FDE(w, cie, F(3), DW_CFA_undefined, DWARF_RIP);
        w->stack.regs[DWARF_RDI] = RET(3);
        w->stack.size = 0;
        assert_int_equal(walk(w, F(1) + 0x20), REC_STACK_COMPLETE);
        assert_frame(w, 1, RET(3) - 1, REC_HOW_CFI);
}

/* The trampoline restores rsp and rip from what the kernel pushed; F(4) was interrupted on another stack. */
static void a_signal_on_another_stack_is_crossed(void **state) {
        _cleanup_(world_freep) struct world *w = world_new();
        uint32_t cie = put_cie(w, "zR"), signal = put_cie(w, "zRS");
        uint64_t other[] = { RET(3), 0 };

        FDE(w, signal, F(2), DW_CFA_def_cfa_expression, 3, DW_OP_breg7, 16, DW_OP_deref, DW_CFA_expression,
            DWARF_RIP, 2, DW_OP_breg7, 24);
        FDE(w, cie, F(1), DW_CFA_nop);
        FDE(w, cie, F(4), DW_CFA_nop);
        FDE(w, cie, F(3), DW_CFA_undefined, DWARF_RIP);
        w->words[0] = F(2); /* nobody calls the trampoline */
        w->words[3] = 0x7000; /* rsp, far below */
        w->words[4] = F(4);
        w->stack.second_address = 0x7000;
        w->stack.second = (const uint8_t *) other;
        w->stack.second_size = sizeof(other);
        assert_int_equal(walk(w, F(1) + 0x20), REC_STACK_COMPLETE);
        assert_int_equal(w->count, 4);
        assert_frame(w, 1, F(2), REC_HOW_CFI);
        assert_frame(w, 2, F(4), REC_HOW_SIGNAL);
        assert_frame(w, 3, RET(3) - 1, REC_HOW_CFI);
        w->stack.second_size = 0;
        w->stack.flags |= SAMPLE_STACK_CUT;
        assert_int_equal(walk(w, F(1) + 0x20), REC_STACK_COPY_ENDED);
        assert_int_equal(w->count, 3);
}

static void a_trampoline_without_cfi_is_known_by_its_code(void **state) {
        _cleanup_(world_freep) struct world *w = world_new();
        uint32_t cie = put_cie(w, "zR");

        CODE_AT(w, F(2), 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05);
        put_fde(w, cie, F(1), 0x80, NULL, 0);
        FDE(w, cie, F(3), DW_CFA_undefined, DWARF_RIP);
        w->words[0] = F(2);
        w->words[1 + 5 + 15] = SP + 400; /* rsp and rip in the kernel's ucontext */
        w->words[1 + 5 + 16] = F(3) + 8;
        assert_int_equal(walk(w, F(1) + 0x20), REC_STACK_COMPLETE);
        assert_int_equal(w->count, 3);
        assert_frame(w, 2, F(3) + 8, REC_HOW_SIGNAL);
}

static void code_without_cfi_is_left_by_the_frame_pointer_and_cfi_goes_on(void **state) {
        _cleanup_(world_freep) struct world *w = world_new();
        uint32_t cie = put_cie(w, "zR");

        FDE(w, cie, F(2), DW_CFA_def_cfa, DWARF_RBP, 16);
        FDE(w, cie, F(3), DW_CFA_undefined, DWARF_RIP);
        w->stack.regs[DWARF_RBP] = SP + 4 * 8;
        w->words[4] = SP + 8 * 8;
        w->words[5] = RET(2);
        w->words[9] = RET(3);
        assert_int_equal(walk(w, F(5) + 0x20), REC_STACK_COMPLETE);
        assert_int_equal(w->count, 3);
        assert_frame(w, 1, RET(2) - 1, REC_HOW_FRAME_POINTER);
        assert_frame(w, 2, RET(3) - 1, REC_HOW_CFI);
}

static void a_frame_pointer_to_no_return_address_is_not_believed(void **state) {
        static const uint64_t wrong[] = { NOT_CODE, F(2) + 0x20 /* behind no call */, SP, UINT64_MAX };

        for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
                _cleanup_(world_freep) struct world *w = world_new();

                w->stack.regs[DWARF_RBP] = SP + 4 * 8;
                w->words[4] = SP + 8 * 8;
                w->words[5] = wrong[i];
                assert_int_equal(walk(w, F(5) + 0x20), REC_STACK_NO_CFI);
                assert_int_equal(w->count, 1);
        }
}

static void frame_pointers_that_are_odd_below_or_outside_are_not_followed(void **state) {
        static const uint64_t wrong[] = { 0, 1, SP + 1, SP - 8, UINT64_MAX - 7, SP + (1 << 20) };

        for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
                _cleanup_(world_freep) struct world *w = world_new();

                w->words[0] = NOT_CODE;
                w->stack.regs[DWARF_RBP] = wrong[i];
                w->stack.flags |= SAMPLE_STACK_FAULT;
                assert_int_equal(walk(w, F(5) + 0x20), REC_STACK_NO_CFI);
                assert_int_equal(w->count, 1);
        }
}

static void a_frame_pointer_into_what_was_cut_off_says_so(void **state) {
        _cleanup_(world_freep) struct world *w = world_new();

        w->words[0] = NOT_CODE;
        w->stack.regs[DWARF_RBP] = SP + 512;
        w->stack.size = 512;
        w->stack.flags |= SAMPLE_STACK_CUT;
        assert_int_equal(walk(w, F(5) + 0x20), REC_STACK_COPY_ENDED);
}

static void the_end_of_a_frame_pointer_chain_is_a_root(void **state) {
        _cleanup_(world_freep) struct world *w = world_new();

        w->stack.regs[DWARF_RBP] = SP + 4 * 8;
        w->words[4] = 0;
        w->words[5] = RET(6);
        assert_int_equal(walk(w, F(5) + 0x20), REC_STACK_COMPLETE);
        assert_int_equal(w->count, 2);
}

/* As Go lays it out: the first frame of a goroutine returns behind the first nop of goexit. */
static void a_goroutine_ends_where_go_says(void **state) {
        static const uint8_t goexit[] = { 0x90, 0xe8, 1, 2, 3, 4, 0x90 };
        _cleanup_(world_freep) struct world *w = world_new();

        memcpy(w->file + CODE + 0x100 * 6, goexit, sizeof(goexit));
        w->stack.regs[DWARF_RBP] = SP + 4 * 8;
        w->words[4] = 0;
        w->words[5] = F(6) + 1;
        assert_int_equal(walk(w, F(5) + 0x20), REC_STACK_COMPLETE);
        assert_int_equal(w->count, 2);
}

/* The clone() of Go: what it started comes back to the end of the thread. */
static void code_that_only_exits_has_no_caller(void **state) {
        static const uint8_t exit_thread[] = { 0xbf, 0x6f, 0, 0, 0, 0xb8, 60, 0, 0, 0, 0x0f, 0x05 };
        _cleanup_(world_freep) struct world *w = world_new();

        memcpy(w->file + CODE + 0x100 * 6 + CALL + 5, exit_thread, sizeof(exit_thread));
        w->stack.regs[DWARF_RBP] = SP + 4 * 8;
        w->words[4] = SP + 8 * 8;
        w->words[5] = RET(6);
        assert_int_equal(walk(w, F(5) + 0x20), REC_STACK_COMPLETE);
        assert_int_equal(w->count, 2);
}

static void jit_code_is_left_by_the_frame_pointer(void **state) {
        _cleanup_(world_freep) struct world *w = world_new();
        uint32_t cie = put_cie(w, "zR");

        FDE(w, cie, F(3), DW_CFA_undefined, DWARF_RIP);
        w->words[0] = JIT + 0x60; /* nobody can say whether a call is before it */
        w->stack.regs[DWARF_RBP] = SP + 4 * 8;
        w->words[4] = SP + 8 * 8;
        w->words[5] = JIT + 0x50;
        w->words[8] = 1;
        w->words[9] = RET(3);
        assert_int_equal(walk(w, JIT + 0x10), REC_STACK_COMPLETE);
        assert_int_equal(w->count, 3);
        assert_frame(w, 1, JIT + 0x4f, REC_HOW_FRAME_POINTER);
        assert_int_equal(w->frames[0].module, REC_NONE);
        assert_int_equal(w->frames[0].offset, JIT + 0x10);
}

/* As CPython's: sub $8,%rsp; call *%rcx; add $8,%rsp; ret. */
static void a_trampoline_made_at_run_time_is_left_by_the_word_that_it_reserves(void **state) {
        _cleanup_(world_freep) struct world *w = world_new();
        uint32_t cie = put_cie(w, "zR");

        FDE(w, cie, F(1), DW_CFA_nop);
        FDE(w, cie, F(3), DW_CFA_undefined, DWARF_RIP);
        w->stack.regs[DWARF_RBP] = 7; /* a value of the function before it */
        w->words[0] = JIT + 0x20;
        w->words[1] = NOT_CODE; /* reserved, never written */
        w->words[2] = RET(3);
        assert_int_equal(walk(w, F(1) + 0x20), REC_STACK_COMPLETE);
        assert_int_equal(w->count, 3);
        assert_frame(w, 1, JIT + 0x1f, REC_HOW_CFI);
        assert_frame(w, 2, RET(3) - 1, REC_HOW_LEAF);

        w->words[2] = RET(3) + 1; /* behind no call */
        assert_int_equal(walk(w, F(1) + 0x20), REC_STACK_NO_CFI);
        assert_int_equal(w->count, 2);
        w->words[2] = JIT + 0x60; /* in code that nobody can look at */
        assert_int_equal(walk(w, F(1) + 0x20), REC_STACK_NO_CFI);
        assert_int_equal(w->count, 2);
}

static void a_leaf_without_cfi_has_its_return_address_at_sp(void **state) {
        _cleanup_(world_freep) struct world *w = world_new();
        uint32_t cie = put_cie(w, "zR");

        FDE(w, cie, F(3), DW_CFA_undefined, DWARF_RIP);
        w->words[0] = RET(3);
        assert_int_equal(walk(w, F(5) + 0x20), REC_STACK_COMPLETE);
        assert_frame(w, 1, RET(3) - 1, REC_HOW_LEAF);
        w->words[0] = RET(3) + 1;
        assert_int_equal(walk(w, F(5) + 0x20), REC_STACK_NO_CFI);
        assert_int_equal(w->count, 1);
}

static void the_first_instructions_without_cfi_are_known_by_their_code(void **state) {
        _cleanup_(world_freep) struct world *w = world_new();
        uint32_t cie = put_cie(w, "zR");

        CODE_AT(w, F(5), 0x55, 0x48, 0x89, 0xe5);
        FDE(w, cie, F(2), DW_CFA_def_cfa, DWARF_RBP, 16);
        FDE(w, cie, F(3), DW_CFA_undefined, DWARF_RIP);
        w->words[0] = SP + 8 * 8; /* pushed */
        w->words[1] = RET(2);
        w->words[9] = RET(3);
        assert_int_equal(walk(w, F(5) + 1), REC_STACK_COMPLETE);
        assert_int_equal(w->count, 3);
        assert_frame(w, 1, RET(2) - 1, REC_HOW_LEAF);
}

static void an_epilogue_is_run_when_cfi_is_silent_about_it(void **state) {
        _cleanup_(world_freep) struct world *w = world_new();
        uint32_t cie = put_cie(w, "zR");

        CODE_AT(w, F(1) + 0x20, 0x48, 0x83, 0xc4, 0x08, 0x5b, 0x41, 0x5c, 0x5d, 0xc3);
        FDE(w, cie, F(1), DW_CFA_def_cfa, DWARF_RBP, 16);
        FDE(w, cie, F(2), DW_CFA_def_cfa, DWARF_RBP, 16);
        FDE(w, cie, F(3), DW_CFA_undefined, DWARF_RIP);
        w->words[3] = SP + 8 * 8; /* above 8 bytes, rbx and r12 */
        w->words[4] = RET(2);
        w->words[9] = RET(3);
        w->stack.regs[DWARF_RBP] = SP + 24;
        assert_int_equal(walk(w, F(1) + 0x20), REC_STACK_COMPLETE);
        assert_int_equal(w->count, 3);

        w->stack.regs[DWARF_RBP] = SP + 8 * 8;
        w->stack.regs[DWARF_RSP] = SP;
        w->words[0] = RET(2); /* all popped, at `ret` */
        assert_int_equal(walk(w, F(1) + 0x28), REC_STACK_COMPLETE);
        assert_int_equal(w->count, 3);
        assert_frame(w, 1, RET(2) - 1, REC_HOW_CFI);
}

static void a_caller_that_only_returns_needs_no_cfi(void **state) {
        _cleanup_(world_freep) struct world *w = world_new();
        uint32_t cie = put_cie(w, "zR");

        CODE_AT(w, RET(5), 0x48, 0x83, 0xc4, 0x08, 0xc3); /* as _init does */
        FDE(w, cie, F(1), DW_CFA_nop);
        FDE(w, cie, F(3), DW_CFA_undefined, DWARF_RIP);
        w->words[0] = RET(5);
        w->words[2] = RET(3);
        assert_int_equal(walk(w, F(1) + 0x20), REC_STACK_COMPLETE);
        assert_int_equal(w->count, 3);
        w->words[2] = NOT_CODE;
        assert_int_equal(walk(w, F(1) + 0x20), REC_STACK_NO_CFI);
        assert_int_equal(w->count, 2);
}

static void init_without_cfi_is_left_from_everywhere(void **state) {
        _cleanup_(world_freep) struct world *w = world_new();
        uint32_t cie = put_cie(w, "zR");

        CODE_AT(w, F(5) + 4, 0x48, 0x8b, 0x05, 1, 2, 3, 4, 0x48, 0x85, 0xc0, 0x74, 0x02, 0xff, 0xd0, 0x48,
                0x83, 0xc4, 0x08, 0xc3);
        FDE(w, cie, F(3), DW_CFA_undefined, DWARF_RIP);
        w->words[0] = NOT_CODE;
        w->words[1] = RET(3);
        for (size_t at = 4; at <= 18; at += at == 4 ? 7 : at == 11 ? 3 : 4) {
                assert_int_equal(walk(w, F(5) + at), REC_STACK_COMPLETE);
                assert_int_equal(w->count, 2);
        }
}

static void the_entry_of_a_program_is_known_by_its_stack(void **state) {
        _cleanup_(world_freep) struct world *w = world_new();
        uint32_t cie = put_cie(w, "zR");

        FDE(w, cie, F(1), DW_CFA_nop);
        w->words[0] = RET(5);
        w->words[1] = 2; /* argc, argv, its end */
        w->words[2] = w->words[3] = SP + 0x1000;
        w->words[4] = 0;
        assert_int_equal(walk(w, F(1) + 0x20), REC_STACK_COMPLETE);
        assert_int_equal(w->count, 2);
        w->words[4] = 1;
        assert_int_equal(walk(w, F(1) + 0x20), REC_STACK_NO_CFI);
        w->stack.size = 2 * 8; /* as the daemon's copy: the arguments are nobody's business */
        assert_int_equal(walk(w, F(1) + 0x20), REC_STACK_COMPLETE);
        w->stack.flags = SAMPLE_STACK_CUT;
        assert_int_not_equal(walk(w, F(1) + 0x20), REC_STACK_COMPLETE);
        w->stack.flags = 0;
        w->stack.size = sizeof(w->words);
        w->words[4] = 0;
        w->stack.regs[DWARF_RBP] = 1;
        assert_int_equal(walk(w, F(1) + 0x20), REC_STACK_NO_CFI);
}

static void a_thread_that_has_not_run_is_complete(void **state) {
        _cleanup_(world_freep) struct world *w = world_new();

        CODE_AT(w, F(5) + 0x1e, 0x0f, 0x05);
        w->stack.regs[DWARF_RBP] = 8;
        w->words[0] = NOT_CODE;
        assert_int_equal(walk(w, F(5) + 0x20), REC_STACK_COMPLETE);
        assert_int_equal(w->count, 1);
        w->stack.regs[DWARF_RAX] = 77; /* the parent */
        assert_int_equal(walk(w, F(5) + 0x20), REC_STACK_NO_CFI);
        w->stack.regs[DWARF_RAX] = 0;
        CODE_AT(w, F(5) + 0x20, 0x48, 0x85, 0xc0, 0x7c, 0x18);
        assert_int_equal(walk(w, F(5) + 0x23), REC_STACK_COMPLETE);
        assert_int_equal(walk(w, F(5) + 0x25), REC_STACK_COMPLETE);
        assert_int_equal(walk(w, F(5) + 0x24), REC_STACK_NO_CFI);
}

static void in_a_system_call_the_address_is_inside_the_instruction(void **state) {
        _cleanup_(world_freep) struct world *w = world_new();

        put_three_functions(w);
        CODE_AT(w, F(1) + 0x1e, 0x0f, 0x05);
        w->stack.flags = SAMPLE_SYSCALL;
        assert_int_equal(walk(w, F(1) + 0x20), REC_STACK_COMPLETE);
        assert_frame(w, 0, F(1) + 0x1f, REC_HOW_REGS);
        /* the kernel has just made the thread begin elsewhere */
        assert_int_equal(walk(w, F(1) + 0x30), REC_STACK_COMPLETE);
        assert_frame(w, 0, F(1) + 0x30, REC_HOW_REGS);
}

static void addresses_outside_all_code_end_the_walk(void **state) {
        _cleanup_(world_freep) struct world *w = world_new();

        put_three_functions(w);
        assert_int_equal(walk(w, NOT_CODE), REC_STACK_NO_MODULE);
        assert_int_equal(w->count, 1);
        assert_int_equal(w->frames[0].module, REC_NONE);
        assert_int_equal(w->frames[0].offset, NOT_CODE);
        w->words[9] = NOT_CODE;
        assert_int_equal(walk(w, F(1) + 0x20), REC_STACK_NO_MODULE);
        assert_int_equal(w->count, 2);
}

static void deep_recursion_ends_at_the_cap(void **state) {
        _cleanup_(world_freep) struct world *w = world_new();
        uint32_t cie = put_cie(w, "zR");

        FDE(w, cie, F(1), DW_CFA_nop);
        for (size_t i = 0; i < ARRAY_SIZE(w->words); i++)
                w->words[i] = RET(1);
        assert_int_equal(walk(w, F(1) + 0x20), REC_STACK_DEPTH);
        assert_int_equal(w->count, UNWIND_DEPTH_MAX);
        assert_int_equal(unwind(&w->stack, find, w, w->frames, 3, &w->count), REC_STACK_DEPTH);
        assert_int_equal(w->count, 3);
        assert_int_equal(unwind(&w->stack, find, w, w->frames, 0, &w->count), REC_STACK_DEPTH);
        assert_int_equal(w->count, 0);
}

static void stacks_that_are_not_there_have_no_frames(void **state) {
        _cleanup_(world_freep) struct world *w = world_new();

        w->stack.flags = SAMPLE_USER | SAMPLE_COMPAT;
        assert_int_equal(walk(w, F(1)), REC_STACK_COMPAT);
        assert_int_equal(w->count, 0);
        w->stack.flags = SAMPLE_NO_REGS;
        assert_int_equal(walk(w, F(1)), REC_STACK_NONE);
        assert_int_equal(w->count, 0);
}

/* Any registers over any stack: no read outside, no endless walk. */
static void random_stacks_end(void **state) {
        _cleanup_(world_freep) struct world *w = world_new();
        uint64_t random = 88172645463325252u;

        put_three_functions(w);
        for (int round = 0; round < 3000; round++) {
                uint32_t end;

                for (size_t i = 0; i < 64 + REG_COUNT; i++) {
                        random ^= random << 13;
                        random ^= random >> 7;
                        random ^= random << 17;
                        uint64_t value = random % 3 == 0   ? SP + random % 600
                                         : random % 3 == 1 ? F(0) + random % CODE_BYTES
                                                           : random;

                        if (i < 64)
                                w->words[i] = value;
                        else
                                w->stack.regs[i - 64] = value;
                }
                w->stack.size = random % 512;
                w->stack.regs[DWARF_RSP] = random % 5 ? SP : random;
                end = walk(w, F(random % 8) + random % 256);
                assert_true(end < REC_STACK_END_MAX);
                assert_true(w->count >= 1 && w->count <= 70);
        }
}

/* ---- tables ---- */

static const struct unwind_rule *rule_at(const struct world *w, uint64_t address) {
        return unwind_table_find(w->table, address - BIAS);
}

static void a_table_knows_what_it_covers_and_what_not(void **state) {
        _cleanup_(world_freep) struct world *w = world_new();
        uint32_t cie = put_cie(w, "zR");

        FDE(w, cie, F(8), DW_CFA_def_cfa_offset, 80); /* not in order, with a gap, overlapping */
        FDE(w, cie, F(2), DW_CFA_def_cfa_offset, 16);
        put_fde(w, cie, F(2) + 0x80, 0x100, (const uint8_t[]){ DW_CFA_def_cfa_offset, 32 }, 2);
        load(w);
        assert_true(rule_at(w, F(2) - 1)->flags & UNWIND_RULE_NONE);
        assert_int_equal(rule_at(w, F(2))->cfa_value, 16);
        assert_int_equal(rule_at(w, F(2) + 0xff)->cfa_value, 16);
        assert_int_equal(rule_at(w, F(3))->cfa_value, 32);
        assert_int_equal(rule_at(w, F(3) + 0x7f)->cfa_value, 32);
        assert_true(rule_at(w, F(3) + 0x80)->flags & UNWIND_RULE_NONE);
        assert_int_equal(rule_at(w, F(8) + 0xff)->cfa_value, 80);
        assert_true(rule_at(w, F(9))->flags & UNWIND_RULE_NONE);
        assert_true(rule_at(w, 0)->flags & UNWIND_RULE_NONE);
        assert_true(rule_at(w, UINT64_MAX)->flags & UNWIND_RULE_NONE);
}

static void functions_outside_the_code_are_left_out(void **state) {
        _cleanup_(world_freep) struct world *w = world_new();
        uint32_t cie = put_cie(w, "zR");

        FDE(w, cie, BIAS + 0x7000000, DW_CFA_nop);
        load(w);
        assert_int_equal(w->table->row_count, 0);
        assert_true(rule_at(w, BIAS + 0x7000000)->flags & UNWIND_RULE_NONE);
}

static void an_image_without_cfi_has_an_empty_table(void **state) {
        _cleanup_(world_freep) struct world *w = world_new();

        load(w);
        assert_int_equal(w->table->row_count, 0);
        assert_true(rule_at(w, F(1))->flags & UNWIND_RULE_NONE);
        assert_true(unwind_table_bytes(w->table) < 1024);
}

static void cfi_that_runs_out_of_its_section_is_refused(void **state) {
        _cleanup_(world_freep) struct world *w = world_new();
        struct unwind_table *untouched = (struct unwind_table *) w, *table = untouched;

        put_three_functions(w);
        put_u32(w, 0x1000);
        finish_file(w, true);
        assert_int_equal(elf_image_from_memory(w->file, FILE_BYTES, &w->image), 0);
        assert_int_equal(unwind_table_new(w->image, NULL, &table), -EBADMSG);
        assert_ptr_equal(table, untouched);
}

/* ---- code ---- */

#define CALL_ENDS(...)                                                                                      \
        x86_call_ends((const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }))

static void calls_of_all_shapes_are_recognised(void **state) {
        assert_true(CALL_ENDS(0x90, 0x90, 0xe8, 1, 2, 3, 4));
        assert_true(CALL_ENDS(0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0xd0)); /* *%rax */
        assert_true(CALL_ENDS(0x90, 0x90, 0x90, 0x90, 0x41, 0xff, 0xd4)); /* *%r12 */
        assert_true(CALL_ENDS(0x90, 0x90, 0x90, 0x90, 0xff, 0x50, 0x18)); /* *24(%rax) */
        assert_true(CALL_ENDS(0x90, 0x90, 0x90, 0xff, 0x54, 0x24, 0x18)); /* *24(%rsp) */
        assert_true(CALL_ENDS(0x90, 0xff, 0x15, 1, 2, 3, 4)); /* *disp(%rip) */
        assert_true(CALL_ENDS(0x90, 0xff, 0x90, 1, 2, 3, 4)); /* *disp32(%rax) */
        assert_true(CALL_ENDS(0xff, 0x14, 0xc5, 1, 2, 3, 4)); /* *disp32(,%rax,8) */
        assert_true(CALL_ENDS(0x90, 0x90, 0x90, 0x90, 0xff, 0x14, 0xc8)); /* *(%rax,%rcx,8) */
        assert_false(CALL_ENDS(0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90));
        assert_false(CALL_ENDS(0x90, 0x90, 0xe9, 1, 2, 3, 4)); /* jmp */
        assert_false(CALL_ENDS(0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0xe0)); /* jmp *%rax */
        assert_false(CALL_ENDS(0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0x50)); /* its displacement is missing */
        assert_false(CALL_ENDS(0xd0));
}

#define EXITS(...) x86_exits((const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }))

static void only_code_that_surely_exits_is_an_end(void **state) {
        assert_true(EXITS(0xbf, 0, 0, 0, 0, 0xb8, 231, 0, 0, 0, 0x0f, 0x05));
        assert_true(EXITS(0x89, 0xc7, 0x31, 0xc0, 0xb0, 60, 0x0f, 0x05)); /* musl */
        assert_false(EXITS(0x89, 0xc7, 0xb0, 60, 0x0f, 0x05)); /* the rest of eax is not known */
        assert_false(EXITS(0xb8, 1, 0, 0, 0, 0x0f, 0x05)); /* write */
        assert_false(EXITS(0x0f, 0x05));
        assert_false(EXITS(0xb8, 60, 0, 0, 0, 0xc3, 0x0f, 0x05));
        assert_false(EXITS(0xb8, 60, 0, 0));
        assert_false(EXITS(0xb8, 60, 0, 0, 0));
}

static void an_epilogue_that_does_something_else_is_not_run(void **state) {
        static const uint8_t moves[] = { 0x5b, 0x48, 0x89, 0xd8, 0xc3 }, endless[] = { 0x5b, 0x5b, 0x5b },
                             downwards[] = { 0x48, 0x83, 0xc4, 0xf8, 0xc3 };
        uint64_t words[8] = {};
        struct stack_memory memory = { .ranges = { { SP, (const uint8_t *) words, sizeof(words) } } };
        struct registers r = { .value = { [DWARF_RSP] = SP }, .valid = UINT32_MAX };

        assert_false(x86_run_epilogue(moves, sizeof(moves), &memory, &r));
        assert_false(x86_run_epilogue(endless, sizeof(endless), &memory, &r));
        assert_false(x86_run_epilogue(downwards, sizeof(downwards), &memory, &r));
        assert_int_equal(r.value[DWARF_RSP], SP);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(walks_by_cfi_up_to_the_root),
                cmocka_unit_test(walks_without_section_headers),
                cmocka_unit_test(a_return_address_of_zero_is_the_end),
                cmocka_unit_test(each_truncated_copy_says_so_and_keeps_the_frames_before),
                cmocka_unit_test(nothing_is_read_from_a_page_that_was_not_there),
                cmocka_unit_test(a_process_that_ends_has_no_stack),
                cmocka_unit_test(a_frame_that_is_not_above_its_callee_ends_the_walk),
                cmocka_unit_test(a_register_whose_place_is_below_the_stack_was_popped),
                cmocka_unit_test(a_plt_entry_is_left_by_its_expression),
                cmocka_unit_test(a_realigned_stack_is_left_by_dereferencing),
                cmocka_unit_test(an_expression_that_loops_or_lacks_a_register_is_no_cfi),
                cmocka_unit_test(a_return_address_in_a_register_is_followed),
                cmocka_unit_test(a_signal_on_another_stack_is_crossed),
                cmocka_unit_test(a_trampoline_without_cfi_is_known_by_its_code),
                cmocka_unit_test(code_without_cfi_is_left_by_the_frame_pointer_and_cfi_goes_on),
                cmocka_unit_test(a_frame_pointer_to_no_return_address_is_not_believed),
                cmocka_unit_test(frame_pointers_that_are_odd_below_or_outside_are_not_followed),
                cmocka_unit_test(a_frame_pointer_into_what_was_cut_off_says_so),
                cmocka_unit_test(the_end_of_a_frame_pointer_chain_is_a_root),
                cmocka_unit_test(a_goroutine_ends_where_go_says),
                cmocka_unit_test(code_that_only_exits_has_no_caller),
                cmocka_unit_test(only_code_that_surely_exits_is_an_end),
                cmocka_unit_test(jit_code_is_left_by_the_frame_pointer),
                cmocka_unit_test(a_trampoline_made_at_run_time_is_left_by_the_word_that_it_reserves),
                cmocka_unit_test(a_leaf_without_cfi_has_its_return_address_at_sp),
                cmocka_unit_test(the_first_instructions_without_cfi_are_known_by_their_code),
                cmocka_unit_test(an_epilogue_is_run_when_cfi_is_silent_about_it),
                cmocka_unit_test(a_caller_that_only_returns_needs_no_cfi),
                cmocka_unit_test(init_without_cfi_is_left_from_everywhere),
                cmocka_unit_test(the_entry_of_a_program_is_known_by_its_stack),
                cmocka_unit_test(a_thread_that_has_not_run_is_complete),
                cmocka_unit_test(in_a_system_call_the_address_is_inside_the_instruction),
                cmocka_unit_test(addresses_outside_all_code_end_the_walk),
                cmocka_unit_test(deep_recursion_ends_at_the_cap),
                cmocka_unit_test(stacks_that_are_not_there_have_no_frames),
                cmocka_unit_test(random_stacks_end),
                cmocka_unit_test(a_table_knows_what_it_covers_and_what_not),
                cmocka_unit_test(functions_outside_the_code_are_left_out),
                cmocka_unit_test(an_image_without_cfi_has_an_empty_table),
                cmocka_unit_test(cfi_that_runs_out_of_its_section_is_refused),
                cmocka_unit_test(calls_of_all_shapes_are_recognised),
                cmocka_unit_test(an_epilogue_that_does_something_else_is_not_run),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
