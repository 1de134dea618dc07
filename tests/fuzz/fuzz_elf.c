/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * An ELF file from a stranger, as the worker reads it: headers, build-id, debug link, symbol tables, names,
 * unwind tables.
 *
 * Corpus (corpus/elf), from elf.s:
 *   gcc -nostdlib -shared -Wl,--build-id,-z,noseparate-code,-z,norelro,--hash-style=gnu -o full.so elf.s
 *   gcc -nostdlib -no-pie -Wl,-z,noseparate-code,-e,sized -o exec elf.s
 *   gcc -nostdlib -shared -fuse-ld=lld -Wl,--build-id -o lld.so elf.s
 *   objcopy --only-keep-debug full.so debug
 *   strip -o stripped full.so; objcopy --add-gnu-debuglink=debug stripped linked
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "symbolize/debug_file.h"
#include "symbolize/demangle.h"
#include "symbolize/dotnet_code.h"
#include "symbolize/elf_image.h"
#include "symbolize/symbols.h"
#include "symbolize/unwind.h"

enum { ADDRESSES = 64 }; /* looked up in each segment */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void name_address(const struct symbols *s, const struct dotnet_code *dotnet, uint64_t vaddr) {
        _cleanup_free_ char *name = NULL;
        struct symbol symbol;

        if (symbols_find(s, vaddr, &symbol) < 0)
                return;
        if (vaddr - symbol.vaddr >= symbol.bytes)
                abort();
        if (dotnet_code_is_method(dotnet, vaddr, symbol.name))
                (void) demangle_dotnet(
                        &(struct dotnet_symbol){ .linkage = symbol.name, .assembly = dotnet->assembly },
                        &name);
        else
                (void) demangle(symbol.name, &name);
}

static void look_up(const struct elf_image *image) {
        _cleanup_(symbols_freep) struct symbols *s = NULL;
        const struct elf_segment *segments;
        unsigned n = elf_image_segments(image, &segments);
        struct dotnet_code dotnet;
        uint64_t vaddr;

        dotnet_code_init(image, &dotnet);
        if (symbols_new(image, &s) < 0)
                return;
        for (unsigned i = 0; i < n; i++)
                for (uint64_t a = 0; a < ADDRESSES; a++) {
                        uint64_t offset = segments[i].offset + a * (segments[i].file_bytes / ADDRESSES);

                        if (elf_image_vaddr(image, offset, &vaddr) == 0)
                                name_address(s, &dotnet, vaddr);
                }
}

/* Every byte that the image gives out must be there. */
static unsigned touch(const uint8_t *p, size_t bytes) {
        unsigned sum = 0;

        for (size_t i = 0; p && i < bytes; i++)
                sum += p[i];
        return sum;
}

static unsigned read_all(const struct elf_image *image) {
        const struct elf_segment *segments;
        const struct elf_section *sections;
        unsigned n_segments = elf_image_segments(image, &segments),
                 n_sections = elf_image_sections(image, &sections);
        unsigned sum = 0;

        for (unsigned i = 0; i < n_segments && i < ADDRESSES; i++)
                sum += touch(elf_image_at(image, segments[i].vaddr, segments[i].file_bytes),
                             segments[i].file_bytes);
        for (unsigned i = 0; i < n_sections && i < ADDRESSES; i++)
                sum += touch(sections[i].data, sections[i].bytes) + (unsigned) strlen(sections[i].name);
        return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_(elf_image_freep) struct elf_image *image = NULL;
        _cleanup_(unwind_table_freep) struct unwind_table *table = NULL;
        struct build_id id;
        const char *link;
        uint32_t crc;

        if (elf_image_from_memory(data, size, &image) < 0)
                return 0;
        (void) read_all(image);
        if (elf_image_build_id(image, &id) == 0 && (id.size == 0 || id.size > BUILD_ID_MAX))
                abort();
        if (debug_file_link(image, &link, &crc) == 0 && strchr(link, '/'))
                abort();
        look_up(image);
        (void) unwind_table_new(image, NULL, &table);
        return 0;
}
