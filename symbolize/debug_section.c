/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolize/debug_section.h"

#include <elf.h>
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <zlib.h>
#include <zstd.h>

#ifndef ELFCOMPRESS_ZSTD
#define ELFCOMPRESS_ZSTD 2
#endif

enum {
        NAME_MAX_BYTES = 64,
        ZLIB_RATIO_MAX = 1032, /* deflate cannot do better (zlib's technical notes) */
};

enum packing { PACKED_NOT, PACKED_ZLIB, PACKED_ZSTD };

struct inflated {
        const struct elf_section *section;
        uint8_t *data; /* mmap()ed: a size that lies takes no memory before it is filled */
        size_t bytes;
};

struct debug_sections {
        const struct elf_image *image; /* borrowed */
        struct inflated inflated[DEBUG_SECTIONS_MAX]; /* owned */
        unsigned count;
        size_t bytes; /* of all */
};

struct packed {
        enum packing packing;
        const uint8_t *data;
        size_t bytes; /* stored */
        uint64_t raw_bytes; /* as the file says */
};

int debug_sections_new(const struct elf_image *image, struct debug_sections **ret) {
        struct debug_sections *s = calloc(1, sizeof(*s));

        if (!s)
                return -ENOMEM;
        s->image = image;
        *ret = s;
        return 0;
}

struct debug_sections *debug_sections_free(struct debug_sections *s) {
        if (!s)
                return NULL;

        for (unsigned i = 0; i < s->count; i++)
                munmap(s->inflated[i].data, s->inflated[i].bytes);
        free(s);
        return NULL;
}

static int read_chdr(const struct elf_section *section, struct packed *ret) {
        Elf64_Chdr header;

        if (section->bytes < sizeof(header))
                return -EBADMSG;
        memcpy(&header, section->data, sizeof(header));

        *ret = (struct packed){
                .data = section->data + sizeof(header),
                .bytes = section->bytes - sizeof(header),
                .raw_bytes = header.ch_size,
        };
        switch (header.ch_type) {
        case ELFCOMPRESS_ZLIB: ret->packing = PACKED_ZLIB; return 0;
        case ELFCOMPRESS_ZSTD: ret->packing = PACKED_ZSTD; return 0;
        default: return -ENOTSUP;
        }
}

static int read_zdebug(const struct elf_section *section, struct packed *ret) {
        static const char magic[4] = { 'Z', 'L', 'I', 'B' };
        uint64_t raw_bytes;

        if (section->bytes < sizeof(magic) + sizeof(raw_bytes) ||
            memcmp(section->data, magic, sizeof(magic)) != 0)
                return -EBADMSG;
        memcpy(&raw_bytes, section->data + sizeof(magic), sizeof(raw_bytes));

        *ret = (struct packed){
                .packing = PACKED_ZLIB,
                .data = section->data + sizeof(magic) + sizeof(raw_bytes),
                .bytes = section->bytes - sizeof(magic) - sizeof(raw_bytes),
                .raw_bytes = be64toh(raw_bytes),
        };
        return 0;
}

/* Exactly the size that was promised, in one go. */
static int inflate_zlib(const struct packed *packed, uint8_t *data) {
        uLongf raw_bytes = packed->raw_bytes;
        int r = uncompress(data, &raw_bytes, packed->data, packed->bytes);

        if (r == Z_MEM_ERROR)
                return -ENOMEM;
        return r == Z_OK && raw_bytes == packed->raw_bytes ? 0 : -EBADMSG;
}

static int inflate_zstd(const struct packed *packed, uint8_t *data) {
        size_t r = ZSTD_decompress(data, packed->raw_bytes, packed->data, packed->bytes);

        return !ZSTD_isError(r) && r == packed->raw_bytes ? 0 : -EBADMSG;
}

static int check_size(const struct debug_sections *s, const struct packed *packed) {
        if (packed->raw_bytes == 0)
                return -ENODATA;
        if (packed->packing == PACKED_ZLIB && packed->raw_bytes / ZLIB_RATIO_MAX > packed->bytes)
                return -EBADMSG;
        if (s->count == DEBUG_SECTIONS_MAX || packed->raw_bytes > DEBUG_SECTION_BYTES_MAX - s->bytes)
                return -EFBIG;
        return 0;
}

static int unpack(struct debug_sections *s, const struct elf_section *section, const struct packed *packed,
                  struct debug_span *ret) {
        uint8_t *data;
        int r;

        r = check_size(s, packed);
        if (r < 0)
                return r;
        data = mmap(NULL, packed->raw_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (data == MAP_FAILED)
                return -ENOMEM;

        r = packed->packing == PACKED_ZLIB ? inflate_zlib(packed, data) : inflate_zstd(packed, data);
        if (r < 0) {
                munmap(data, packed->raw_bytes);
                return r;
        }

        s->inflated[s->count++] =
                (struct inflated){ .section = section, .data = data, .bytes = packed->raw_bytes };
        s->bytes += packed->raw_bytes;
        *ret = (struct debug_span){ data, packed->raw_bytes };
        return 0;
}

/* ".debug_info" → ".zdebug_info" */
static const struct elf_section *find_zdebug(const struct elf_image *image, const char *name) {
        char old[NAME_MAX_BYTES];

        (void) snprintf(old, sizeof(old), ".z%s", name + 1);
        return elf_image_section(image, old);
}

int debug_sections_get(struct debug_sections *s, const char *name, struct debug_span *ret) {
        const struct elf_section *section = elf_image_section(s->image, name), *old = NULL;
        struct packed packed = {};
        int r;

        if (!section)
                section = old = find_zdebug(s->image, name);
        if (!section || !section->data || section->bytes == 0)
                return -ENODATA;
        if (!old && !(section->flags & SHF_COMPRESSED)) {
                *ret = (struct debug_span){ section->data, section->bytes };
                return 0;
        }

        for (unsigned i = 0; i < s->count; i++)
                if (s->inflated[i].section == section) {
                        *ret = (struct debug_span){ s->inflated[i].data, s->inflated[i].bytes };
                        return 0;
                }
        r = old ? read_zdebug(section, &packed) : read_chdr(section, &packed);
        return r < 0 ? r : unpack(s, section, &packed, ret);
}
