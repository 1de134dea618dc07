/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Call frame information from a stranger, and a stack that was unwound by it: the file decides both.
 *
 * Input: u8 options (bit 0: .debug_frame; bit 1: ends at a terminator), u16 size of the section, the section, 17
 * registers, the stack. What is missing is 0. The section lies at SECTION in an image whose segment is all code.
 *
 * Corpus (corpus/eh_frame), by corpus/eh_frame.py: one file for each kind of rule that real compilers write.
 */

#include <elf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/macro.h"
#include "symbolize/cfi.h"
#include "symbolize/unwind.h"
#include "symbolize/unwind_table.h"

enum {
        SECTION = 0x1000,
        SECTION_MAX = 0xffff,
        FILE_BYTES = SECTION + SECTION_MAX + 1,
        HEADERS = SECTION - 0x200,
        CODE_BYTES = 0x10000000,
        FRAMES_MAX = 64,
        ADDRESSES = 256,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
        const uint8_t *data;
        size_t size;
};

static void take(struct input *in, void *ret, size_t bytes) {
        size_t there = MIN(bytes, in->size);

        memset(ret, 0, bytes);
        if (there > 0)
                memcpy(ret, in->data, there);
        in->data += there;
        in->size -= there;
}

struct world {
        uint8_t file[FILE_BYTES];
        struct elf_image *image;
        struct unwind_table *table;
};

static void put_headers(struct world *w, bool debug, size_t section_bytes) {
        static const char names[] = "\0.eh_frame\0.debug_frame\0.shstrtab";
        Elf64_Ehdr header = {
                .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
                .e_type = ET_DYN,
                .e_machine = EM_X86_64,
                .e_version = EV_CURRENT,
                .e_phoff = sizeof(header),
                .e_shoff = HEADERS,
                .e_ehsize = sizeof(header),
                .e_phentsize = sizeof(Elf64_Phdr),
                .e_phnum = 1,
                .e_shentsize = sizeof(Elf64_Shdr),
                .e_shnum = 3,
                .e_shstrndx = 2,
        };
        Elf64_Phdr program = {
                .p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = FILE_BYTES, .p_memsz = CODE_BYTES
        };
        Elf64_Shdr sections[3] = {
                {},
                { .sh_name = debug ? 11 : 1,
                  .sh_type = SHT_PROGBITS,
                  .sh_addr = SECTION,
                  .sh_offset = SECTION,
                  .sh_size = section_bytes },
                { .sh_name = 24, .sh_type = SHT_STRTAB, .sh_offset = 0x200, .sh_size = sizeof(names) },
        };

        memcpy(w->file, &header, sizeof(header));
        memcpy(w->file + sizeof(header), &program, sizeof(program));
        memcpy(w->file + 0x200, names, sizeof(names));
        memcpy(w->file + HEADERS, sections, sizeof(sections));
}

static int check_row(void *userdata, uint64_t start, uint64_t end, const struct cfi_row *row, bool signal) {
        uint64_t *previous = userdata;

        if (start >= end || start != *previous)
                abort();
        if (row && row->cfa_register >= DWARF_RIP && row->cfa_register != CFI_CFA_EXPRESSION)
                abort();
        *previous = end;
        return 0;
}

/* Rows come in order, without gaps, and end where the function does. */
static void run_rows(const struct world *w, bool debug, bool terminated, size_t bytes) {
        struct cfi_section section = {
                .data = w->file + SECTION,
                .bytes = bytes,
                .vaddr = SECTION,
                .eh = !debug,
                .terminated = terminated,
                .image = w->image,
        };
        _cleanup_free_ struct cfi_reader *reader = malloc(sizeof(*reader));
        struct cfi_fde fde;

        if (!reader || cfi_reader_init(reader, &section) < 0)
                return;
        while (cfi_next(reader, &fde) > 0) {
                uint64_t previous = fde.start;

                if (fde.start >= fde.end)
                        abort();
                (void) cfi_run(reader, &fde, check_row, &previous);
                if (previous != fde.end)
                        abort();
        }
}

static bool find(void *userdata, uint64_t address, struct unwind_mapping *ret) {
        struct world *w = userdata;

        if (address >= CODE_BYTES)
                return false;
        *ret = (struct unwind_mapping){ .end = CODE_BYTES, .table = w->table, .image = w->image };
        return true;
}

static void walk(struct world *w, struct input *in) {
        struct unwind_frame frames[FRAMES_MAX];
        struct unwind_stack stack = { .flags = SAMPLE_USER };
        size_t count;

        take(in, stack.regs, sizeof(stack.regs));
        stack.bytes = in->data;
        stack.size = in->size;
        if (unwind(&stack, find, w, frames, FRAMES_MAX, &count) >= REC_STACK_END_MAX || count > FRAMES_MAX)
                abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        struct input in = { data, size };
        struct world *w = calloc(1, sizeof(*w));
        uint8_t options;
        uint16_t bytes;

        if (!w)
                return 0;
        take(&in, &options, sizeof(options));
        take(&in, &bytes, sizeof(bytes));
        bytes = (uint16_t) MIN((size_t) bytes, in.size);
        put_headers(w, options & 1, bytes);
        take(&in, w->file + SECTION, bytes);

        if (elf_image_from_memory(w->file, sizeof(w->file), &w->image) < 0)
                abort();
        run_rows(w, options & 1, options & 2, bytes);
        if (unwind_table_new(w->image, NULL, &w->table) == 0) {
                for (uint64_t i = 0; i < ADDRESSES; i++)
                        (void) unwind_table_find(w->table, i * (CODE_BYTES / ADDRESSES) + i);
                walk(w, &in);
        }

        unwind_table_free(w->table);
        elf_image_free(w->image);
        free(w);
        return 0;
}
