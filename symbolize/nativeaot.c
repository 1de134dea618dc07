/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolize/nativeaot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "symbolize/nativeaot_code.h"
#include "symbolize/nativeaot_invoke.h"
#include "symbolize/nativeaot_metadata.h"

enum {
        TEXT_BYTES_MAX = 64 << 20, /* of all names; a service of 5 MB has 1.1 MB */
};

/* Parts of an entry of the stack trace map; what is not there is that of the entry before. */
enum command {
        COMMAND_OWNER = 1 << 0,
        COMMAND_NAME = 1 << 1,
        COMMAND_SIGNATURE = 1 << 2,
        COMMAND_GENERIC_SIGNATURE = 1 << 3,
};

struct nativeaot {
        struct nativeaot_code code;
        char *names; /* owned; offset 0 is no name */
};

/* Of two methods with the same code neither is named. */
enum { NAME_NONE = 0, NAME_AMBIGUOUS = UINT32_MAX };

struct builder {
        struct nativeaot_header header;
        struct nativeaot_metadata metadata;
        struct nativeaot_code code; /* owned */
        struct buf names; /* owned */
};

static void builder_done(struct builder *b) {
        nativeaot_code_done(&b->code);
        buf_done(&b->names);
}

/* A method's name for the piece that begins with it; methods that share code have to agree. */
static int name_method(struct builder *b, const struct nativeaot_method_ref *ref,
                       struct nativeaot_piece *piece) {
        size_t at = b->names.size;
        int r;

        if (at > TEXT_BYTES_MAX)
                return -E2BIG;
        nativeaot_print_method(&b->metadata, ref, &b->names);
        buf_append(&b->names, "", 1);
        r = buf_error(&b->names);
        if (r < 0 || b->metadata.error)
                return r < 0 ? r : b->metadata.error;

        if (piece->name == NAME_NONE)
                piece->name = (uint32_t) at;
        else if (piece->name != (uint32_t) NAME_AMBIGUOUS &&
                 !streq(b->names.data + piece->name, b->names.data + at))
                piece->name = (uint32_t) NAME_AMBIGUOUS;
        return 0;
}

/* ---- the stack trace map ---- */

static void take_command(struct nativeaot_cursor *c, uint8_t command, const struct nativeaot_format *format,
                         struct nativeaot_method_ref *ref) {
        if (command & COMMAND_OWNER)
                ref->owner = nativeaot_handle_of(format, (uint32_t) nativeaot_uint(c, 4));
        if (command & COMMAND_NAME)
                ref->name = nativeaot_unsigned(c);
        if (command & COMMAND_SIGNATURE) {
                ref->signature = nativeaot_unsigned(c);
                ref->generic_names = 0;
        }
        if (command & COMMAND_GENERIC_SIGNATURE) {
                ref->signature = nativeaot_unsigned(c);
                ref->generic_names = nativeaot_unsigned(c);
        }
}

static int read_stack_map(struct builder *b) {
        struct nativeaot_cursor c = nativeaot_at(&b->header.stack_map, 0);
        uint32_t count = (uint32_t) nativeaot_uint(&c, 4), n = 0;
        struct nativeaot_method_ref ref = {};

        if (c.bad || count == 0)
                return -ENOENT;
        for (; c.at < c.blob->bytes; n++) {
                uint8_t command = (uint8_t) nativeaot_uint(&c, 1);
                struct nativeaot_piece *piece;
                int r;

                take_command(&c, command, b->header.format, &ref);
                piece = nativeaot_code_method(&b->code, nativeaot_relative(&c));
                if (c.bad || n == count || !piece || (command & ~b->header.format->commands))
                        return -EBADMSG;
                if (ref.owner.offset == 0) /* only hidden, without a name */
                        continue;
                r = name_method(b, &ref, piece);
                if (r < 0)
                        return r;
        }
        return n == count ? 0 : -EBADMSG;
}

/* ---- the invoke map ---- */

/* Methods that reflection can see are only here. Their code is what the map calls, or behind its stub. */
static int name_invoked(void *userdata, uint64_t vaddr, const struct nativeaot_method_ref *ref) {
        struct builder *b = userdata;
        struct nativeaot_piece *piece = nativeaot_code_find(&b->code, vaddr);

        if (piece && piece->start == vaddr)
                piece = nativeaot_code_method(&b->code, piece->entry);
        else
                piece = NULL;
        return piece ? name_method(b, ref, piece) : 0; /* other stubs lie among the code of the runtime */
}

/* Handlers and stubs have the name of their method. */
static void spread_names(struct builder *b) {
        for (size_t i = 0; i < b->code.count; i++) {
                struct nativeaot_piece *p = b->code.pieces + i;

                if (p->name == (uint32_t) NAME_AMBIGUOUS)
                        p->name = NAME_NONE;
        }
        for (size_t i = 0; i < b->code.count; i++) {
                struct nativeaot_piece *p = b->code.pieces + i;

                if (p->entry != p->start)
                        p->name = nativeaot_code_method(&b->code, p->entry)->name;
        }
}

static int build(const struct elf_image *image, struct builder *b) {
        int r;

        r = nativeaot_header_read(image, &b->header);
        if (r < 0)
                return r;
        if (b->header.stack_map.bytes == 0)
                return -ENOENT;
        r = nativeaot_metadata_init(&b->metadata, &b->header);
        if (r == 0)
                r = nativeaot_code_init(image, &b->code);
        if (r < 0)
                return r == -ENODATA ? -EBADMSG : r;

        buf_append(&b->names, "", 1);
        r = read_stack_map(b);
        if (r == 0)
                r = nativeaot_invoke_read(&b->header, &b->metadata, name_invoked, b);
        if (r == 0)
                spread_names(b);
        return r;
}

int nativeaot_new(const struct elf_image *image, struct nativeaot **ret) {
        _cleanup_(builder_done) struct builder b = {};
        _cleanup_(nativeaot_freep) struct nativeaot *n = calloc(1, sizeof(*n));
        int r;

        if (!n)
                return -ENOMEM;
        r = build(image, &b);
        if (r == 0)
                r = buf_take(&b.names, &n->names, NULL);
        if (r < 0)
                return r;
        n->code = b.code;
        b.code = (struct nativeaot_code){};

        *ret = TAKE_PTR(n);
        return 0;
}

struct nativeaot *nativeaot_free(struct nativeaot *n) {
        if (!n)
                return NULL;

        nativeaot_code_done(&n->code);
        free(n->names);
        free(n);
        return NULL;
}

static struct nativeaot_method method_of(const struct nativeaot *n, const struct nativeaot_piece *p) {
        return (struct nativeaot_method){
                .name = p->name != NAME_NONE ? n->names + p->name : NULL,
                .start = p->start,
                .end = p->end,
                .entry = p->entry,
        };
}

int nativeaot_find(const struct nativeaot *n, uint64_t vaddr, struct nativeaot_method *ret) {
        const struct nativeaot_piece *p = nativeaot_code_find(&n->code, vaddr);

        if (!p)
                return -ENOENT;
        *ret = method_of(n, p);
        return 0;
}

size_t nativeaot_count(const struct nativeaot *n) {
        return n->code.count;
}

void nativeaot_get(const struct nativeaot *n, size_t index, struct nativeaot_method *ret) {
        *ret = method_of(n, n->code.pieces + index);
}
