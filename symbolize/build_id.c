/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolize/build_id.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

static const char gnu_owner[] = "GNU";

/* Names and descriptors are padded to four bytes also in 64-bit files. Cannot
 * overflow: len is a 32-bit field of the file. */
static size_t padded(uint32_t len) {
        return ((size_t) len + 3) & ~(size_t) 3;
}

static int take(const uint8_t *desc, uint32_t size, struct build_id *ret) {
        if (size == 0 || size > BUILD_ID_MAX)
                return -EBADMSG;

        *ret = BUILD_ID_NULL;
        memcpy(ret->bytes, desc, size);
        ret->size = (uint8_t) size;
        return 0;
}

int build_id_from_notes(const void *notes, size_t size, struct build_id *ret) {
        const uint8_t *p = notes;

        while (size >= sizeof(Elf64_Nhdr)) {
                Elf64_Nhdr header;
                size_t name_size, whole;

                memcpy(&header, p, sizeof(header)); /* the file promises no alignment */
                name_size = padded(header.n_namesz);
                whole = sizeof(header) + name_size + header.n_descsz;
                if (whole > size)
                        return -EBADMSG;

                if (header.n_type == NT_GNU_BUILD_ID && header.n_namesz == sizeof(gnu_owner) &&
                    memcmp(p + sizeof(header), gnu_owner, sizeof(gnu_owner)) == 0)
                        return take(p + sizeof(header) + name_size, header.n_descsz, ret);

                /* The last note need not be padded. */
                whole = sizeof(header) + name_size + padded(header.n_descsz);
                if (whole >= size)
                        break;
                p += whole;
                size -= whole;
        }

        return -ENODATA;
}

bool build_id_equal(const struct build_id *a, const struct build_id *b) {
        return a->size > 0 && a->size == b->size && memcmp(a->bytes, b->bytes, a->size) == 0;
}
