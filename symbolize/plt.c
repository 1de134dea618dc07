/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolize/plt.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

enum {
        STUB_BYTES = 16,
        SHORT_STUB_BYTES = 8
}; /* of all linkers for x86-64; entries of .plt.got may be short */

static const struct elf_section *section_at(const struct elf_image *image, uint64_t vaddr) {
        static const char *const names[] = { ".plt", ".plt.sec", ".plt.got" };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                const struct elf_section *s = elf_image_section(image, names[i]);

                if (s && s->data && vaddr >= s->vaddr && vaddr - s->vaddr < s->bytes)
                        return s;
        }
        return NULL;
}

/* Where `jmp *SLOT(%rip)` jumps through, with the landing pad and the prefix that CET puts before it. False: it is
 * something else. */
static bool slot_of(const struct elf_section *s, uint64_t offset, uint64_t *ret) {
        static const uint8_t landing[] = { 0xf3, 0x0f, 0x1e, 0xfa };
        size_t left = s->bytes - offset, at = 0;
        const uint8_t *code = s->data + offset;
        int32_t displacement;

        if (left >= sizeof(landing) && memcmp(code, landing, sizeof(landing)) == 0)
                at += sizeof(landing);
        if (at < left && code[at] == 0xf2)
                at++;
        if (left < at + 6 || code[at] != 0xff || code[at + 1] != 0x25)
                return false;
        memcpy(&displacement, code + at + 2, sizeof(displacement));
        *ret = s->vaddr + offset + at + 6 + (uint64_t) (int64_t) displacement;
        return true;
}

static const char *symbol_name(const struct elf_image *image, uint64_t index) {
        const struct elf_section *sections, *table = elf_image_section(image, ".dynsym"), *strings;
        unsigned count = elf_image_sections(image, &sections);
        Elf64_Sym symbol;

        if (!table || !table->data || table->link >= count || index >= table->bytes / sizeof(symbol))
                return NULL;
        strings = &sections[table->link];
        memcpy(&symbol, table->data + index * sizeof(symbol), sizeof(symbol));
        if (!strings->data || symbol.st_name >= strings->bytes ||
            !memchr(strings->data + symbol.st_name, 0, strings->bytes - symbol.st_name))
                return NULL;
        return (const char *) strings->data + symbol.st_name;
}

static const char *name_of_slot(const struct elf_image *image, const char *relocations, uint64_t slot) {
        const struct elf_section *s = elf_image_section(image, relocations);
        Elf64_Rela r;

        if (!s || s->type != SHT_RELA || !s->data)
                return NULL;
        for (size_t i = 0; i < s->bytes / sizeof(r); i++) {
                memcpy(&r, s->data + i * sizeof(r), sizeof(r));
                if (r.r_offset == slot && (ELF64_R_TYPE(r.r_info) == R_X86_64_JUMP_SLOT ||
                                           ELF64_R_TYPE(r.r_info) == R_X86_64_GLOB_DAT))
                        return symbol_name(image, ELF64_R_SYM(r.r_info));
        }
        return NULL;
}

int plt_find(const struct elf_image *image, uint64_t vaddr, const char **ret_name, uint64_t *ret_start) {
        const struct elf_section *s = section_at(image, vaddr);
        uint64_t offset, slot;
        const char *name;

        if (!s)
                return -ENOENT;
        offset = (vaddr - s->vaddr) / STUB_BYTES * STUB_BYTES;
        if (s->entry_bytes == SHORT_STUB_BYTES)
                offset = (vaddr - s->vaddr) / SHORT_STUB_BYTES * SHORT_STUB_BYTES;
        if (!slot_of(s, offset, &slot))
                return -ENOENT;
        name = name_of_slot(image, ".rela.plt", slot);
        if (!name || !*name)
                name = name_of_slot(image, ".rela.dyn", slot);
        if (!name || !*name)
                return -ENOENT;
        *ret_name = name;
        *ret_start = s->vaddr + offset;
        return 0;
}
