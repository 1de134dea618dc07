/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolize/dotnet_code.h"

#include <elf.h>
#include <string.h>

/* Does the function's name begin at most DOTNET_ASSEMBLY_MAX bytes before `at`, and go on there? Linkers keep a
 * name that is the end of another one only once. */
static bool reaches(const struct elf_section *strings, const Elf64_Sym *symbol, size_t at) {
        return ELF64_ST_TYPE(symbol->st_info) == STT_FUNC && symbol->st_name < at &&
               at - symbol->st_name <= DOTNET_ASSEMBLY_MAX &&
               !memchr(strings->data + symbol->st_name, 0, at - symbol->st_name);
}

/* The assembly's name stands before the method that the compiler makes for the start of the program. */
static void find_assembly(const struct elf_section *symbols, const struct elf_section *strings,
                          struct dotnet_code *c) {
        static const char start[] = "__Module___StartupCodeMain";
        const uint8_t *found = memmem(strings->data, strings->bytes, start, strlen(start));
        size_t at = found ? (size_t) (found - strings->data) : 0;

        for (size_t i = 0; found && i + sizeof(Elf64_Sym) <= symbols->bytes; i += sizeof(Elf64_Sym)) {
                Elf64_Sym symbol;

                memcpy(&symbol, symbols->data + i, sizeof(symbol));
                if (!reaches(strings, &symbol, at))
                        continue;
                memcpy(c->assembly, strings->data + symbol.st_name, at - symbol.st_name);
                c->assembly[at - symbol.st_name] = '\0';
                return;
        }
}

void dotnet_code_init(const struct elf_image *symbols, struct dotnet_code *ret) {
        static const char *const names[ARRAY_SIZE(ret->ranges)] = { "__managedcode", "__unbox" };
        const struct elf_section *table = elf_image_section(symbols, ".symtab"),
                                 *strings = elf_image_section(symbols, ".strtab");

        *ret = (struct dotnet_code){};
        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                const struct elf_section *s = elf_image_section(symbols, names[i]);

                if (!s || s->vaddr > UINT64_MAX - s->bytes)
                        continue;
                ret->ranges[ret->n_ranges].begin = s->vaddr;
                ret->ranges[ret->n_ranges++].end = s->vaddr + s->bytes;
        }
        if (ret->n_ranges > 0 && table && table->data && strings && strings->data)
                find_assembly(table, strings, ret);
}

static bool has_name_of_method(const struct dotnet_code *c, const char *symbol) {
        static const char *const roots[] = { "S_P_", "System_", "Microsoft_" };
        const char *behind;

        for (size_t i = 0; i < ARRAY_SIZE(roots); i++)
                if (startswith(symbol, roots[i]))
                        return true;
        behind = *c->assembly ? startswith(symbol, c->assembly) : NULL;
        return behind && *behind == '_';
}

bool dotnet_code_is_method(const struct dotnet_code *c, uint64_t vaddr, const char *symbol) {
        for (unsigned i = 0; i < c->n_ranges; i++)
                if (vaddr >= c->ranges[i].begin && vaddr < c->ranges[i].end)
                        return true;
        return c->n_ranges > 0 && has_name_of_method(c, symbol);
}
