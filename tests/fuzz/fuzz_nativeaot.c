/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * A .NET NativeAOT executable from a stranger.
 *
 * Input: the ELF file. Corpus (corpus/nativeaot): corpus/nativeaot.py writes it.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "symbolize/nativeaot.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_(elf_image_freep) struct elf_image *image = NULL;
        _cleanup_(nativeaot_freep) struct nativeaot *methods = NULL;
        uint64_t behind = 0;

        if (elf_image_from_memory(data, size, &image) < 0 || nativeaot_new(image, &methods) < 0)
                return 0;
        for (size_t i = 0; i < nativeaot_count(methods); i++) {
                struct nativeaot_method m, found;

                nativeaot_get(methods, i, &m);
                if (m.start >= m.end || m.start < behind || (m.name && strlen(m.name) == 0))
                        abort();
                if (nativeaot_find(methods, m.end - 1, &found) < 0 || found.start != m.start)
                        abort();
                behind = m.end;
        }
        return 0;
}
