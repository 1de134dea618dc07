/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdint.h>

#include "proto/recording.h"
#include "symbolize/elf_image.h"

/*
 * Names from the symbol tables of one ELF file: .symtab and .dynsym, functions sorted once. An address gets a
 * name only inside that symbol's range; a symbol without a size reaches to the next symbol of its section, at
 * most to the section's end, but in .dynsym, which knows only the exports, no further than its first byte
 * (SY-01: never "the nearest one").
 */
struct symbols;

struct symbol {
        const char *name; /* raw (mangled), inside the image; valid as long as it is */
        uint64_t vaddr, bytes;
        enum rec_source source; /* SYMTAB or DYNSYM */
};

/* image is borrowed and must outlive the table. No symbols at all: an empty table. -ENOMEM, -EBADMSG. */
int symbols_new(const struct elf_image *image, struct symbols **ret);
struct symbols *symbols_free(struct symbols *s);
DEFINE_CLEANUP(struct symbols *, symbols_free);
uint32_t symbols_count(const struct symbols *s);
/* 0, or -ENOENT: in no symbol's range. */
int symbols_find(const struct symbols *s, uint64_t vaddr, struct symbol *ret);
