/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolize/nativeaot_code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/macro.h"
#include "symbolize/cfi.h"
#include "symbolize/nativeaot_cursor.h"

enum {
        PIECES_MAX = 1 << 22, /* a service of 5 MB has 13,000 */
        LANGUAGE_BYTES_MAX = 1 + 4 + 4 + 4, /* of .dotnet_eh_table that are read */
        STUB_BYTES = 9, /* add $8, %rdi; jmp target */
        STUB_ALIGN = 4,
};

enum { /* first byte of the language's data */
       LANGUAGE_KIND = 0x03, /* 0: a method; else one of its handlers or filters */
       LANGUAGE_HAS_DATA = 0x10,
};

void nativeaot_code_done(struct nativeaot_code *code) {
        free(code->pieces);
        *code = (struct nativeaot_code){};
}

/* Where the method of this FDE begins; 0: its data is not to be read. */
static uint64_t entry_of(const struct elf_image *image, const struct cfi_fde *fde) {
        struct nativeaot_blob blob = { .vaddr = fde->lsda };
        struct nativeaot_cursor c = { .blob = &blob };
        uint8_t flags;

        for (blob.bytes = LANGUAGE_BYTES_MAX; blob.bytes > 0 && !blob.data; blob.bytes--)
                blob.data = elf_image_at(image, fde->lsda, blob.bytes);
        blob.bytes += blob.data ? 1 : 0;

        flags = (uint8_t) nativeaot_uint(&c, 1);
        if (c.bad)
                return 0;
        if (!(flags & LANGUAGE_KIND))
                return fde->start;
        nativeaot_skip(&c, flags & LANGUAGE_HAS_DATA ? 8 : 4); /* and the data of the method itself */
        return fde->start - nativeaot_uint(&c, 4) * !c.bad;
}

static bool in_section(const struct elf_section *s, uint64_t start, uint64_t end) {
        return start >= s->vaddr && end - s->vaddr <= s->bytes && end > start;
}

/* Pieces of the FDEs of the section of managed code. */
static int collect(const struct elf_image *image, const struct elf_section *code, struct buf *pieces) {
        const struct elf_section *frames = elf_image_section(image, ".eh_frame");
        _cleanup_free_ struct cfi_reader *reader = malloc(sizeof(*reader));
        struct cfi_section section = { .eh = true, .image = image };
        struct cfi_fde fde;
        int r;

        if (!reader)
                return -ENOMEM;
        if (!frames || !frames->data)
                return -EBADMSG;
        section.data = frames->data;
        section.bytes = frames->bytes;
        section.vaddr = frames->vaddr;

        r = cfi_reader_init(reader, &section);
        while (r == 0 && (r = cfi_next(reader, &fde)) == 1) {
                struct nativeaot_piece piece = { .start = fde.start, .end = fde.end };

                r = 0;
                if (!in_section(code, fde.start, fde.end))
                        continue;
                piece.entry = entry_of(image, &fde);
                if (piece.entry == 0 || pieces->size / sizeof(piece) >= PIECES_MAX)
                        return piece.entry == 0 ? -EBADMSG : -E2BIG;
                buf_append(pieces, &piece, sizeof(piece));
        }
        return r < 0 ? r : buf_error(pieces);
}

static int by_start(const void *a, const void *b) {
        const struct nativeaot_piece *x = a, *y = b;

        return x->start < y->start ? -1 : x->start > y->start;
}

/* As compilers write them. */
static bool is_sorted(const struct nativeaot_code *code) {
        for (size_t i = 1; i < code->count; i++)
                if (code->pieces[i].start < code->pieces[i - 1].start)
                        return false;
        return true;
}

/* Sorted, and a handler belongs to a method. */
static int settle(struct buf *pieces, struct nativeaot_code *ret) {
        struct nativeaot_code code = {};
        size_t bytes;
        int r;

        r = buf_take(pieces, (char **) &code.pieces, &bytes);
        if (r < 0)
                return r;
        code.count = bytes / sizeof(*code.pieces);
        if (!is_sorted(&code))
                qsort(code.pieces, code.count, sizeof(*code.pieces), by_start);

        for (size_t i = 0; i < code.count && r == 0; i++) {
                const struct nativeaot_piece *p = code.pieces + i;

                if ((i > 0 && p->start < p[-1].end) || !nativeaot_code_method(&code, p->entry))
                        r = -EBADMSG;
        }
        if (r < 0) {
                nativeaot_code_done(&code);
                return r;
        }
        *ret = code;
        return 0;
}

/* Stubs that unbox `this` for a method of a value type: they change a register and jump. */
static void add_stubs(const struct elf_section *stubs, const struct nativeaot_code *code,
                      struct buf *pieces) {
        static const uint8_t instructions[] = { 0x48, 0x83, 0xc7, 0x08, 0xe9 };

        for (size_t at = 0; at + STUB_BYTES <= stubs->bytes; at += STUB_ALIGN) {
                struct nativeaot_piece piece = { .start = stubs->vaddr + at };
                const struct nativeaot_piece *method;
                int32_t distance;

                if (memcmp(stubs->data + at, instructions, sizeof(instructions)) != 0)
                        continue;
                memcpy(&distance, stubs->data + at + sizeof(instructions), sizeof(distance));
                piece.end = piece.start + STUB_BYTES;
                piece.entry = piece.end + (uint64_t) (int64_t) distance;
                method = nativeaot_code_method(code, piece.entry);
                if (method && piece.end > piece.start)
                        buf_append(pieces, &piece, sizeof(piece));
                at += STUB_BYTES / STUB_ALIGN * STUB_ALIGN;
        }
}

int nativeaot_code_init(const struct elf_image *image, struct nativeaot_code *ret) {
        const struct elf_section *managed = elf_image_section(image, "__managedcode"),
                                 *stubs = elf_image_section(image, "__unbox");
        _cleanup_(buf_done) struct buf pieces = BUF_NULL, all = BUF_NULL;
        _cleanup_(nativeaot_code_done) struct nativeaot_code code = {};
        int r;

        if (!managed || managed->vaddr > UINT64_MAX - managed->bytes)
                return -ENODATA;
        r = collect(image, managed, &pieces);
        if (r == 0)
                r = settle(&pieces, &code);
        if (r < 0)
                return r;

        buf_append(&all, code.pieces, code.count * sizeof(*code.pieces));
        if (stubs && stubs->data && stubs->vaddr <= UINT64_MAX - stubs->bytes)
                add_stubs(stubs, &code, &all);
        return settle(&all, ret);
}

/* The last piece that starts at or before the address, NULL. */
static struct nativeaot_piece *last_before(const struct nativeaot_code *code, uint64_t vaddr) {
        size_t low = 0, high = code->count;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (code->pieces[middle].start <= vaddr)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low > 0 ? code->pieces + low - 1 : NULL;
}

struct nativeaot_piece *nativeaot_code_find(const struct nativeaot_code *code, uint64_t vaddr) {
        struct nativeaot_piece *p = last_before(code, vaddr);

        return p && vaddr < p->end ? p : NULL;
}

struct nativeaot_piece *nativeaot_code_method(const struct nativeaot_code *code, uint64_t vaddr) {
        struct nativeaot_piece *p = last_before(code, vaddr);

        return p && p->start == vaddr && p->entry == vaddr ? p : NULL;
}
