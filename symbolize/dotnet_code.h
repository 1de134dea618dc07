/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "symbolize/demangle_dotnet.h"
#include "symbolize/elf_image.h"

/*
 * Which symbols of a file are .NET methods: the native compiler puts their code into sections of its own, and
 * C and C++ of the runtime lie beside in .text.
 */

struct dotnet_code {
        struct {
                uint64_t begin, end; /* virtual addresses */
        } ranges[2];
        unsigned n_ranges; /* 0: the file is not from that compiler */
        char assembly[DOTNET_ASSEMBLY_MAX + 1]; /* the program's own, as symbols have it; "": unknown */
};

/* symbols: the image whose .symtab is read (an executable or its debug file). */
void dotnet_code_init(const struct elf_image *symbols, struct dotnet_code *ret);
/* Is the symbol that covers the address a method? Stubs in .text are told by their names. */
bool dotnet_code_is_method(const struct dotnet_code *c, uint64_t vaddr, const char *symbol);
