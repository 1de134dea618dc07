/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolize/nativeaot_header.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#include "common/macro.h"

enum {
        SIGNATURE = 0x00525452, /* "RTR" */
        ROWS_MAX = 256, /* 34 up to .NET 10 */
        ROW_WORDS = 3,
        ROW_TYPE = 1,
        MODULES_MAX = 64, /* slots; all but one are padding */
        HAS_END = 1 << 0,
};

enum row_id { /* 300 and the number of the blob */
              ROW_TYPE_MAP = 301,
              ROW_INVOKE_MAP = 306,
              ROW_FIXUPS = 308,
              ROW_METADATA = 313,
              ROW_STACK_MAP = 327,
};

struct file_header {
        uint32_t signature;
        uint16_t major, minor;
        uint32_t flags;
        uint16_t rows;
        uint8_t row_bytes, row_type;
};
_Static_assert(sizeof(struct file_header) == 16, "as in the file");

static const struct nativeaot_format formats[] = {
        { .major = 9, .minor = 1, .kind_bits = 8, .commands = 0x0f, .needs_method = true }, /* .NET 8 */
        { .major = 10, .minor = 1, .kind_bits = 8, .commands = 0x1f, .needs_method = true }, /* .NET 9 */
        { .major = 16, .minor = 0, .kind_bits = 7, .commands = 0x1f }, /* .NET 10 */
};

/*
 * `count` 8-byte words of the file, as they are in memory when it runs: what the dynamic linker relocates is in
 * the entries of R_X86_64_RELATIVE; with RELR, and without relocation, it is in the file already.
 */
static int read_words(const struct elf_image *image, uint64_t vaddr, size_t count, uint64_t *ret) {
        const struct elf_section *sections;
        unsigned n = elf_image_sections(image, &sections);
        const void *p = elf_image_at(image, vaddr, count * sizeof(*ret));

        if (!p)
                return -EBADMSG;
        memcpy(ret, p, count * sizeof(*ret));

        for (unsigned i = 0; i < n; i++) {
                if (sections[i].type != SHT_RELA || !sections[i].data || !(sections[i].flags & SHF_ALLOC))
                        continue;
                for (size_t at = 0; at + sizeof(Elf64_Rela) <= sections[i].bytes; at += sizeof(Elf64_Rela)) {
                        Elf64_Rela entry;
                        uint64_t word;

                        memcpy(&entry, sections[i].data + at, sizeof(entry));
                        word = (entry.r_offset - vaddr) / sizeof(*ret);
                        if (entry.r_offset >= vaddr && word < count && entry.r_offset % sizeof(*ret) == 0 &&
                            ELF64_R_TYPE(entry.r_info) == R_X86_64_RELATIVE)
                                ret[word] = (uint64_t) entry.r_addend;
                }
        }
        return 0;
}

/* Address of the one module header. */
static int find_module(const struct elf_image *image, uint64_t *ret) {
        const struct elf_section *section = elf_image_section(image, "__modules");
        uint64_t words[MODULES_MAX], found = 0;
        size_t count;
        int r;

        if (!section || !section->data || section->bytes < sizeof(*words))
                return -ENODATA;
        count = section->bytes / sizeof(*words);
        if (count > MODULES_MAX)
                return -ENOTSUP;

        r = read_words(image, section->vaddr, count, words);
        if (r < 0)
                return r;
        for (size_t i = 0; i < count; i++) {
                if (words[i] == 0)
                        continue;
                if (found)
                        return -ENOTSUP;
                found = words[i];
        }
        *ret = found;
        return found ? 0 : -ENODATA;
}

static const struct nativeaot_format *find_format(const struct file_header *header) {
        for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
                if (formats[i].major == header->major && formats[i].minor == header->minor)
                        return &formats[i];
        return NULL;
}

static struct nativeaot_blob *blob_of(struct nativeaot_header *h, uint32_t id) {
        switch (id) {
        case ROW_TYPE_MAP: return &h->type_map;
        case ROW_INVOKE_MAP: return &h->invoke_map;
        case ROW_FIXUPS: return &h->fixups;
        case ROW_METADATA: return &h->metadata;
        case ROW_STACK_MAP: return &h->stack_map;
        default: return NULL;
        }
}

/* row: id and flags in one word, start, end. */
static int take_row(const struct elf_image *image, const uint64_t *row, struct nativeaot_header *h) {
        struct nativeaot_blob *blob = blob_of(h, (uint32_t) row[0]);
        bool has_end = row[0] >> 32 & HAS_END;

        if (!blob || !has_end || row[2] == row[1])
                return 0;
        if (row[2] < row[1] || blob->data)
                return -EBADMSG;
        blob->vaddr = row[1];
        blob->bytes = row[2] - row[1];
        blob->data = elf_image_at(image, blob->vaddr, blob->bytes);
        return blob->data ? 0 : -EBADMSG;
}

int nativeaot_header_read(const struct elf_image *image, struct nativeaot_header *ret) {
        struct nativeaot_header h = {};
        struct file_header header;
        uint64_t at, words[ROWS_MAX * ROW_WORDS];
        const void *p;
        int r;

        r = find_module(image, &at);
        if (r < 0)
                return r;
        p = elf_image_at(image, at, sizeof(header));
        if (!p)
                return -EBADMSG;
        memcpy(&header, p, sizeof(header));
        if (header.signature != SIGNATURE)
                return -ENODATA;
        h.format = find_format(&header);
        if (!h.format)
                return -ENOTSUP;
        if (header.rows > ROWS_MAX || header.row_bytes != ROW_WORDS * sizeof(*words) ||
            header.row_type != ROW_TYPE)
                return -EBADMSG;

        r = read_words(image, at + sizeof(header), (size_t) header.rows * ROW_WORDS, words);
        for (unsigned i = 0; r == 0 && i < header.rows; i++)
                r = take_row(image, words + (size_t) i * ROW_WORDS, &h);
        if (r < 0)
                return r;

        *ret = h;
        return 0;
}
