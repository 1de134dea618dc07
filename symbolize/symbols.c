/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolize/symbols.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
        /* Ranges may overlap (a label inside a function); a hostile file makes all of them overlap. */
        OVERLAP_MAX = 64,
        /* Names are compared up to here to choose between aliases. */
        NAME_COMPARED = 512,
};

/* One function; several symbols of the same address are one entry, the best of them. */
struct entry {
        uint64_t start, end; /* end > start; before finishing: end == start when it has no size */
        uint64_t reach; /* largest end of this and all entries before it */
        const char *name;
        uint32_t section;
        uint8_t binding; /* STB_* */
        uint8_t source; /* enum rec_source */
};

struct symbols {
        struct entry *entries; /* owned; sorted by start, one each */
        size_t count;
};

/* A symbol table of the image with its strings. */
struct table {
        const uint8_t *symbols;
        size_t count;
        const char *strings;
        size_t strings_bytes; /* up to and with the last NUL: every offset below it is a text */
        enum rec_source source;
};

static bool table_of(const struct elf_image *image, const char *name, uint32_t type, enum rec_source source,
                     struct table *ret) {
        const struct elf_section *sections, *table = elf_image_section(image, name), *strings;
        unsigned count = elf_image_sections(image, &sections);
        const uint8_t *last;

        if (!table || table->type != type || !table->data || table->entry_bytes != sizeof(Elf64_Sym) ||
            table->link >= count)
                return false;
        strings = &sections[table->link];
        if (strings->type != SHT_STRTAB || !strings->data || strings->bytes == 0)
                return false;
        last = memrchr(strings->data, 0, strings->bytes);
        if (!last)
                return false;

        *ret = (struct table){
                .symbols = table->data,
                .count = table->bytes / sizeof(Elf64_Sym),
                .strings = (const char *) strings->data,
                .strings_bytes = (size_t) (last - strings->data) + 1,
                .source = source,
        };
        return true;
}

/* A symbol that names code: a function, or a label in a section of code, which is how assembly writes them. */
static bool names_code(const struct elf_image *image, const Elf64_Sym *symbol) {
        const struct elf_section *sections;
        unsigned type = ELF64_ST_TYPE(symbol->st_info);

        if (symbol->st_shndx == SHN_UNDEF || symbol->st_shndx >= elf_image_sections(image, &sections) ||
            !(sections[symbol->st_shndx].flags & SHF_EXECINSTR))
                return false;
        return type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE;
}

static bool entry_of(const struct elf_image *image, const struct table *table, size_t index,
                     struct entry *ret) {
        Elf64_Sym symbol;
        const char *name;

        memcpy(&symbol, table->symbols + index * sizeof(symbol), sizeof(symbol));
        if (!names_code(image, &symbol) || symbol.st_name >= table->strings_bytes ||
            symbol.st_value + symbol.st_size < symbol.st_value)
                return false;
        name = table->strings + symbol.st_name;
        if (name[0] == 0 || startswith(name, ".L"))
                return false;

        *ret = (struct entry){
                .start = symbol.st_value,
                .end = symbol.st_value + symbol.st_size,
                .name = name,
                .section = symbol.st_shndx,
                .binding = ELF64_ST_BIND(symbol.st_info),
                .source = (uint8_t) table->source,
        };
        return true;
}

static size_t underscores(const char *name) {
        return strspn(name, "_");
}

static int binding_rank(uint8_t binding) {
        return binding == STB_GLOBAL ? 0 : binding == STB_WEAK ? 1 : 2;
}

/* Which of two aliases would a person say? Negative: a. "write" rather than "__write", the global one rather
 * than the local one, the short one. The last resort only makes it the same every time. */
static int alias_compare(const struct entry *a, const struct entry *b) {
        bool a_sized = a->end > a->start, b_sized = b->end > b->start;
        size_t a_length, b_length;

        if (a->source != b->source)
                return a->source == REC_SOURCE_SYMTAB ? -1 : 1;
        if (a_sized != b_sized)
                return a_sized ? -1 : 1;
        if (underscores(a->name) != underscores(b->name))
                return underscores(a->name) < underscores(b->name) ? -1 : 1;
        if (binding_rank(a->binding) != binding_rank(b->binding))
                return binding_rank(a->binding) - binding_rank(b->binding);

        a_length = strnlen(a->name, NAME_COMPARED);
        b_length = strnlen(b->name, NAME_COMPARED);
        if (a_length != b_length)
                return a_length < b_length ? -1 : 1;
        return strncmp(a->name, b->name, NAME_COMPARED);
}

static int entry_compare(const void *a, const void *b) {
        const struct entry *x = a, *y = b;

        if (x->start != y->start)
                return x->start < y->start ? -1 : 1;
        return alias_compare(x, y);
}

static int collect(const struct elf_image *image, const struct table *tables, size_t n, struct symbols *s) {
        size_t allocated = 0;
        struct entry ignored;

        for (size_t t = 0; t < n; t++)
                for (size_t i = 0; i < tables[t].count; i++)
                        allocated += entry_of(image, &tables[t], i, &ignored);
        if (allocated == 0)
                return 0;

        s->entries = calloc(allocated, sizeof(*s->entries));
        if (!s->entries)
                return -ENOMEM;

        /* The file may have changed since it was counted. */
        for (size_t t = 0; t < n; t++)
                for (size_t i = 0; i < tables[t].count && s->count < allocated; i++)
                        s->count += entry_of(image, &tables[t], i, &s->entries[s->count]);
        return 0;
}

/*
 * The end of a symbol that has no size. .symtab is complete, so it reaches to the next symbol of its section,
 * at most to the section's end. What .dynsym leaves out are all the static functions: nothing is known but
 * the first byte.
 */
static uint64_t guess_end(const struct elf_image *image, const struct symbols *s, size_t index) {
        const struct entry *e = &s->entries[index];
        const struct elf_section *sections;
        uint64_t end;

        if (e->source == REC_SOURCE_DYNSYM)
                return e->start + 1;

        (void) elf_image_sections(image, &sections);
        end = sections[e->section].vaddr + sections[e->section].bytes;
        if (index + 1 < s->count && s->entries[index + 1].section == e->section)
                end = MIN(end, s->entries[index + 1].start);
        return MAX(end, e->start);
}

/* One entry an address, ends and reaches filled in; entries that cover nothing go. */
static void finish(const struct elf_image *image, struct symbols *s) {
        size_t kept = 0;
        uint64_t reach = 0;

        for (size_t i = 0; i < s->count; i++)
                if (kept == 0 || s->entries[kept - 1].start != s->entries[i].start)
                        s->entries[kept++] = s->entries[i];
        s->count = kept;

        for (size_t i = 0; i < s->count; i++) {
                struct entry *e = &s->entries[i];

                if (e->end == e->start)
                        e->end = guess_end(image, s, i);
                reach = MAX(reach, e->end);
                e->reach = reach;
        }
}

int symbols_new(const struct elf_image *image, struct symbols **ret) {
        _cleanup_(symbols_freep) struct symbols *s = NULL;
        struct table tables[2];
        size_t n = 0;
        int r;

        s = calloc(1, sizeof(*s));
        if (!s)
                return -ENOMEM;

        n += table_of(image, ".symtab", SHT_SYMTAB, REC_SOURCE_SYMTAB, &tables[n]);
        n += table_of(image, ".dynsym", SHT_DYNSYM, REC_SOURCE_DYNSYM, &tables[n]);
        r = collect(image, tables, n, s);
        if (r < 0)
                return r;
        if (s->count > 0)
                qsort(s->entries, s->count, sizeof(*s->entries), entry_compare);
        finish(image, s);

        *ret = TAKE_PTR(s);
        return 0;
}

struct symbols *symbols_free(struct symbols *s) {
        if (!s)
                return NULL;

        free(s->entries);
        free(s);
        return NULL;
}

uint32_t symbols_count(const struct symbols *s) {
        return (uint32_t) MIN(s->count, (size_t) UINT32_MAX);
}

/* Index of the last entry that starts at or before vaddr, plus one; 0: none. */
static size_t upper(const struct symbols *s, uint64_t vaddr) {
        size_t low = 0, high = s->count;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (s->entries[middle].start <= vaddr)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

int symbols_find(const struct symbols *s, uint64_t vaddr, struct symbol *ret) {
        size_t i = upper(s, vaddr);

        /* The innermost range first. */
        for (unsigned steps = 0; i > 0 && steps < OVERLAP_MAX && s->entries[i - 1].reach > vaddr;
             i--, steps++) {
                const struct entry *e = &s->entries[i - 1];

                if (vaddr >= e->end)
                        continue;
                *ret = (struct symbol){
                        .name = e->name,
                        .vaddr = e->start,
                        .bytes = e->end - e->start,
                        .source = e->source,
                };
                return 0;
        }

        return -ENOENT;
}
