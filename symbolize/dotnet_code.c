/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolize/dotnet_code.h"

#include <string.h>

/* The assembly's name stands before the method that the compiler makes for the start of the program. */
static void find_assembly(const struct elf_section *strings, struct dotnet_code *c) {
        static const char *const starts[] = { "__Module___MainMethodWrapper", "__Module___StartupCodeMain" };

        for (size_t i = 0; i < ARRAY_SIZE(starts); i++) {
                const uint8_t *at = memmem(strings->data, strings->bytes, starts[i], strlen(starts[i]));
                size_t n = 0;

                while (at && at > strings->data && at[-1] && n < DOTNET_ASSEMBLY_MAX) {
                        at--;
                        n++;
                }
                if (n == 0 || n == DOTNET_ASSEMBLY_MAX)
                        continue;
                memcpy(c->assembly, at, n);
                c->assembly[n] = '\0';
                return;
        }
}

void dotnet_code_init(const struct elf_image *symbols, struct dotnet_code *ret) {
        static const char *const names[ARRAY_SIZE(ret->ranges)] = { "__managedcode", "__unbox" };
        const struct elf_section *strings = elf_image_section(symbols, ".strtab");

        *ret = (struct dotnet_code){};
        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                const struct elf_section *s = elf_image_section(symbols, names[i]);

                if (!s || s->vaddr > UINT64_MAX - s->bytes)
                        continue;
                ret->ranges[ret->n_ranges].begin = s->vaddr;
                ret->ranges[ret->n_ranges++].end = s->vaddr + s->bytes;
        }
        if (ret->n_ranges > 0 && strings && strings->data)
                find_assembly(strings, ret);
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
