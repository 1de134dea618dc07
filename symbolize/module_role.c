/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolize/module_role.h"

#include <elf.h>
#include <string.h>

enum { START_BYTES_MAX = 64 }; /* glibc's _start has 34 bytes, with -fcf-protection 38; ld.so's is shorter */

/* "" without one. */
static const char *soname(const struct elf_image *image) {
        const struct elf_section *dynamic = elf_image_section(image, ".dynamic"),
                                 *strings = elf_image_section(image, ".dynstr");

        if (!dynamic || !dynamic->data || !strings || !strings->data)
                return "";
        for (size_t at = 0; at + sizeof(Elf64_Dyn) <= dynamic->bytes; at += sizeof(Elf64_Dyn)) {
                Elf64_Dyn entry;

                memcpy(&entry, dynamic->data + at, sizeof(entry));
                if (entry.d_tag == DT_NULL)
                        break;
                if (entry.d_tag != DT_SONAME || entry.d_un.d_val >= strings->bytes ||
                    !memchr(strings->data + entry.d_un.d_val, 0, strings->bytes - entry.d_un.d_val))
                        continue;
                return (const char *) strings->data + entry.d_un.d_val;
        }
        return "";
}

enum module_role module_role(const struct elf_image *image) {
        const char *name = soname(image);

        if (streq(name, "libc.so.6"))
                return MODULE_LIBC;
        return streq(name, "ld-linux-x86-64.so.2") ? MODULE_LOADER : MODULE_OTHER;
}

bool module_is_entry(const struct elf_image *image, uint64_t vaddr) {
        size_t bytes;
        const uint8_t *data = elf_image_data(image, &bytes);
        Elf64_Ehdr header;

        if (bytes < sizeof(header))
                return false;
        memcpy(&header, data, sizeof(header));
        return header.e_entry > 0 && vaddr >= header.e_entry && vaddr - header.e_entry < START_BYTES_MAX;
}
