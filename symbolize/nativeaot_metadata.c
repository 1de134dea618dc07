/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolize/nativeaot_metadata.h"

#include <errno.h>
#include <string.h>

#include "common/macro.h"

enum {
        SIGNATURE = (int) 0xdeaddffd,
        STEPS_MAX = 1 << 26, /* a service of 5 MB takes 2 million */
        DEPTH_MAX = 64, /* of types in types and namespaces in namespaces */
        NAME_BYTES_MAX = 16 * 1024, /* of one method; 600 are the most seen */
        MEMBERS_MAX = 1 << 22, /* methods of all types; that service has 12,000 */
        RANK_MAX = 32, /* of arrays; the runtime has the same limit */
};

static void fail(struct nativeaot_metadata *m, int error) {
        if (m->error == 0)
                m->error = error;
}

/* Counts a record or an element. */
static bool step(struct nativeaot_metadata *m) {
        if (m->steps++ >= STEPS_MAX)
                fail(m, -E2BIG);
        return m->error == 0;
}

static void check(struct nativeaot_metadata *m, const struct nativeaot_cursor *c) {
        if (c->bad)
                fail(m, -EBADMSG);
}

static struct nativeaot_cursor record(struct nativeaot_metadata *m, uint32_t offset) {
        struct nativeaot_cursor c = nativeaot_at(&m->blob, offset);

        if (offset == 0)
                c.bad = true;
        if (!step(m))
                c.bad = true;
        check(m, &c);
        return c;
}

static struct nativeaot_handle take_handle(struct nativeaot_metadata *m, struct nativeaot_cursor *c) {
        uint32_t value = nativeaot_unsigned(c);

        return (struct nativeaot_handle){
                .kind = value & ((1u << m->format->kind_bits) - 1),
                .offset = value >> m->format->kind_bits,
        };
}

struct nativeaot_handle nativeaot_handle_of(const struct nativeaot_format *format, uint32_t token) {
        unsigned shift = 32 - format->kind_bits;

        return (struct nativeaot_handle){ .kind = token >> shift, .offset = token & ((1u << shift) - 1) };
}

/* Passes over a collection of handles. */
static void skip_handles(struct nativeaot_metadata *m, struct nativeaot_cursor *c) {
        uint32_t count = nativeaot_unsigned(c);

        for (uint32_t i = 0; i < count && !c->bad && step(m); i++)
                (void) nativeaot_unsigned(c);
}

int nativeaot_metadata_init(struct nativeaot_metadata *m, const struct nativeaot_header *header) {
        struct nativeaot_cursor c = nativeaot_at(&header->metadata, 0);

        if (nativeaot_uint(&c, 4) != (uint32_t) SIGNATURE || c.bad)
                return -EBADMSG;
        *m = (struct nativeaot_metadata){ .blob = header->metadata, .format = header->format };
        return 0;
}

/* ---- strings ---- */

/* Bytes of the character at p, 0: it is none. Zero would end the name, so it is none here. */
static size_t character(const uint8_t *p, size_t left) {
        static const uint32_t least[] = { 0, 1, 0x80, 0x800, 0x10000 };
        size_t n = *p < 0x80 ? 1 : *p >= 0xc0 && *p < 0xe0 ? 2 : *p >= 0xe0 && *p < 0xf0 ? 3 : 4;
        uint32_t code = n == 1 ? *p : *p & (0x7fu >> n);

        if (n > left || (*p >= 0x80 && *p < 0xc0) || *p >= 0xf8)
                return 0;
        for (size_t i = 1; i < n; i++) {
                if ((p[i] & 0xc0) != 0x80)
                        return 0;
                code = code << 6 | (p[i] & 0x3fu);
        }
        return code < least[n] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ? 0 : n;
}

/* A String record; NULL on errors. Its bytes are inside the image and hold no NUL. */
static const char *string(struct nativeaot_metadata *m, uint32_t offset, size_t *ret_bytes) {
        struct nativeaot_cursor c = record(m, offset);
        uint32_t bytes = nativeaot_unsigned(&c);
        const uint8_t *p = c.blob->data + c.at;

        nativeaot_skip(&c, bytes);
        if (bytes > NAME_BYTES_MAX)
                c.bad = true;
        for (size_t i = 0, n; !c.bad && i < bytes; i += n) {
                n = character(p + i, bytes - i);
                if (n == 0)
                        c.bad = true;
        }
        check(m, &c);
        *ret_bytes = bytes;
        return m->error ? NULL : (const char *) p;
}

/* ---- names ---- */

struct printer {
        struct nativeaot_metadata *m;
        struct buf *b;
        const struct nativeaot_method_ref *ref;
        size_t begin; /* of the name in b */
        unsigned depth;
};

static bool enter(struct printer *p) {
        if (p->depth >= DEPTH_MAX || p->b->size - p->begin > NAME_BYTES_MAX)
                fail(p->m, -E2BIG);
        p->depth++;
        return p->m->error == 0;
}

static void leave(struct printer *p) {
        p->depth--;
}

static void print_string(struct printer *p, uint32_t offset) {
        size_t bytes;
        const char *text = string(p->m, offset, &bytes);

        if (text)
                buf_append(p->b, text, bytes);
}

/* With a dot behind it; nothing of the namespace without a name, nor of assemblies. */
static void print_namespace(struct printer *p, struct nativeaot_handle h) {
        struct nativeaot_handle parent;
        struct nativeaot_cursor c;
        uint32_t name;
        size_t before;

        if (h.offset == 0 || h.kind == NATIVEAOT_SCOPE_DEFINITION || h.kind == NATIVEAOT_SCOPE_REFERENCE)
                return;
        if (h.kind != NATIVEAOT_NAMESPACE_DEFINITION && h.kind != NATIVEAOT_NAMESPACE_REFERENCE)
                fail(p->m, -EBADMSG);
        if (enter(p)) {
                c = record(p->m, h.offset);
                parent = take_handle(p->m, &c);
                name = nativeaot_unsigned(&c);
                check(p->m, &c);
                print_namespace(p, parent);
                before = p->b->size;
                if (name != 0)
                        print_string(p, name);
                if (p->b->size > before)
                        buf_putc(p->b, '.');
        }
        leave(p);
}

/* whole: with the namespace. */
static void print_type(struct printer *p, struct nativeaot_handle h, bool whole);

/* Fields of a TypeDefinition up to the type that it is nested in. */
struct definition {
        uint32_t space, name, enclosing;
};

static struct nativeaot_cursor read_definition(struct nativeaot_metadata *m, uint32_t offset,
                                               struct definition *ret) {
        struct nativeaot_cursor c = record(m, offset);

        (void) nativeaot_unsigned(&c); /* flags */
        (void) take_handle(m, &c); /* base type */
        ret->space = nativeaot_unsigned(&c);
        ret->name = nativeaot_unsigned(&c);
        (void) nativeaot_unsigned(&c); /* size */
        (void) nativeaot_unsigned(&c); /* packing */
        ret->enclosing = nativeaot_unsigned(&c);
        check(m, &c);
        return c;
}

static void print_definition(struct printer *p, uint32_t offset, bool whole) {
        struct definition d;

        (void) read_definition(p->m, offset, &d);
        if (d.enclosing != 0) {
                print_type(p, (struct nativeaot_handle){ NATIVEAOT_TYPE_DEFINITION, d.enclosing }, whole);
                buf_putc(p->b, '+');
        } else if (whole)
                print_namespace(p, (struct nativeaot_handle){ NATIVEAOT_NAMESPACE_DEFINITION, d.space });
        print_string(p, d.name);
}

static void print_reference(struct printer *p, uint32_t offset, bool whole) {
        struct nativeaot_cursor c = record(p->m, offset);
        struct nativeaot_handle parent = take_handle(p->m, &c);
        uint32_t name = nativeaot_unsigned(&c);

        check(p->m, &c);
        if (parent.kind == NATIVEAOT_TYPE_REFERENCE || parent.kind == NATIVEAOT_TYPE_DEFINITION) {
                print_type(p, parent, whole);
                buf_putc(p->b, '+');
        } else if (whole)
                print_namespace(p, parent);
        print_string(p, name);
}

/* The type that a record begins with, and what is written behind it. */
static void print_derived(struct printer *p, uint32_t offset, bool whole, const char *suffix) {
        struct nativeaot_cursor c = record(p->m, offset);
        struct nativeaot_handle inner = take_handle(p->m, &c);

        check(p->m, &c);
        print_type(p, inner, whole);
        buf_puts(p->b, suffix);
}

static void print_array(struct printer *p, uint32_t offset, bool whole) {
        struct nativeaot_cursor c = record(p->m, offset);
        struct nativeaot_handle element = take_handle(p->m, &c);
        int32_t rank = nativeaot_signed(&c);

        if (rank < 1 || rank > RANK_MAX)
                c.bad = true;
        check(p->m, &c);
        print_type(p, element, whole);
        buf_putc(p->b, '[');
        for (int32_t i = 1; i < rank; i++)
                buf_putc(p->b, ',');
        buf_putc(p->b, ']');
}

static void print_modified(struct printer *p, uint32_t offset, bool whole) {
        struct nativeaot_cursor c = record(p->m, offset);
        struct nativeaot_handle type;

        nativeaot_skip(&c, 1); /* optional or required */
        (void) take_handle(p->m, &c); /* the modifier */
        type = take_handle(p->m, &c);
        check(p->m, &c);
        print_type(p, type, whole);
}

/* The `index`-th name of a collection of GenericParameters at c. */
static void print_generic_parameter(struct printer *p, struct nativeaot_cursor *c, uint32_t index) {
        uint32_t count = nativeaot_unsigned(c), offset = 0;

        if (index >= count)
                c->bad = true;
        for (uint32_t i = 0; i <= index && !c->bad && step(p->m); i++)
                offset = nativeaot_unsigned(c);
        check(p->m, c);
        if (p->m->error)
                return;

        *c = record(p->m, offset);
        (void) nativeaot_unsigned(c); /* number */
        (void) nativeaot_unsigned(c); /* flags */
        nativeaot_skip(c, 1); /* kind */
        offset = nativeaot_unsigned(c);
        check(p->m, c);
        print_string(p, offset);
}

/* Behind the enclosing type: nested types, methods, fields, properties, events, generic parameters. */
static struct nativeaot_cursor generics_of_type(struct nativeaot_metadata *m, uint32_t offset) {
        struct definition d;
        struct nativeaot_cursor c = read_definition(m, offset, &d);

        for (unsigned i = 0; i < 5; i++)
                skip_handles(m, &c);
        return c;
}

/* Behind the signature of a Method: parameters, generic parameters. */
static struct nativeaot_cursor read_method(struct nativeaot_metadata *m, uint32_t offset, uint32_t *ret_name,
                                           uint32_t *ret_signature) {
        struct nativeaot_cursor c = record(m, offset);

        (void) nativeaot_unsigned(&c); /* flags */
        (void) nativeaot_unsigned(&c); /* of the implementation */
        *ret_name = nativeaot_unsigned(&c);
        *ret_signature = nativeaot_unsigned(&c);
        check(m, &c);
        return c;
}

static struct nativeaot_cursor generics_of_method(struct nativeaot_metadata *m, uint32_t offset) {
        uint32_t name, signature;
        struct nativeaot_cursor c = read_method(m, offset, &name, &signature);

        skip_handles(m, &c);
        return c;
}

static uint32_t take_index(struct nativeaot_metadata *m, uint32_t offset) {
        struct nativeaot_cursor c = record(m, offset);
        int32_t index = nativeaot_signed(&c);

        if (index < 0)
                c.bad = true;
        check(m, &c);
        return (uint32_t) index;
}

static void print_type_variable(struct printer *p, uint32_t offset) {
        uint32_t index = take_index(p->m, offset);
        struct nativeaot_cursor c;

        if (p->ref->owner.kind != NATIVEAOT_TYPE_DEFINITION) { /* the names are not in the file */
                buf_printf(p->b, "!%u", index);
                return;
        }
        c = generics_of_type(p->m, p->ref->owner.offset);
        print_generic_parameter(p, &c, index);
}

static void print_method_variable(struct printer *p, uint32_t offset) {
        uint32_t index = take_index(p->m, offset), count, at = 0;
        struct nativeaot_cursor c;

        if (p->m->error)
                return;
        if (p->ref->generic_names == 0 && p->ref->method == 0) {
                buf_printf(p->b, "!!%u", index);
                return;
        }
        if (p->ref->generic_names == 0) {
                c = generics_of_method(p->m, p->ref->method);
                print_generic_parameter(p, &c, index);
                return;
        }
        c = record(p->m, p->ref->generic_names);
        count = nativeaot_unsigned(&c);
        if (index >= count)
                c.bad = true;
        for (uint32_t i = 0; i <= index && !c.bad && step(p->m); i++)
                at = take_handle(p->m, &c).offset;
        check(p->m, &c);
        print_string(p, at);
}

static void print_type(struct printer *p, struct nativeaot_handle h, bool whole) {
        if (enter(p))
                switch (h.kind) {
                case NATIVEAOT_TYPE_DEFINITION: print_definition(p, h.offset, whole); break;
                case NATIVEAOT_TYPE_REFERENCE: print_reference(p, h.offset, whole); break;
                case NATIVEAOT_TYPE_SPECIFICATION:
                case NATIVEAOT_TYPE_INSTANTIATION: print_derived(p, h.offset, whole, ""); break;
                case NATIVEAOT_SZ_ARRAY: print_derived(p, h.offset, whole, "[]"); break;
                case NATIVEAOT_POINTER: print_derived(p, h.offset, whole, "*"); break;
                case NATIVEAOT_BY_REF: print_derived(p, h.offset, whole, "&"); break;
                case NATIVEAOT_ARRAY: print_array(p, h.offset, whole); break;
                case NATIVEAOT_MODIFIED_TYPE: print_modified(p, h.offset, whole); break;
                case NATIVEAOT_TYPE_VARIABLE: print_type_variable(p, h.offset); break;
                case NATIVEAOT_METHOD_TYPE_VARIABLE: print_method_variable(p, h.offset); break;
                case NATIVEAOT_FUNCTION_POINTER: buf_puts(p->b, "IntPtr"); break;
                default: fail(p->m, -EBADMSG); break;
                }
        leave(p);
}

static void print_parameters(struct printer *p) {
        struct nativeaot_cursor c = record(p->m, p->ref->signature);
        uint32_t count;

        nativeaot_skip(&c, 1); /* calling convention */
        (void) nativeaot_signed(&c); /* number of generic parameters */
        (void) take_handle(p->m, &c); /* what it returns */
        count = nativeaot_unsigned(&c);
        check(p->m, &c);

        buf_putc(p->b, '(');
        for (uint32_t i = 0; i < count && !p->m->error; i++) {
                struct nativeaot_handle type = take_handle(p->m, &c);

                check(p->m, &c);
                if (i > 0)
                        buf_puts(p->b, ", ");
                print_type(p, type, false);
        }
        buf_putc(p->b, ')');
}

/* <T,U>, nothing for a method that is not generic. */
static void print_generics(struct printer *p) {
        bool names = p->ref->generic_names != 0;
        struct nativeaot_cursor c, each;
        uint32_t count;

        if (!names && p->ref->method == 0)
                return;
        c = names ? record(p->m, p->ref->generic_names) : generics_of_method(p->m, p->ref->method);
        each = c;
        count = nativeaot_unsigned(&c);
        check(p->m, &c);
        for (uint32_t i = 0; i < count && !p->m->error && enter(p); i++, leave(p)) {
                buf_putc(p->b, i == 0 ? '<' : ',');
                if (names)
                        print_string(p, take_handle(p->m, &c).offset);
                else {
                        struct nativeaot_cursor list = each;

                        print_generic_parameter(p, &list, i);
                }
                check(p->m, &c);
        }
        if (count > 0)
                buf_putc(p->b, '>');
}

static void print_owner(struct printer *p) {
        struct nativeaot_metadata *m = p->m;
        size_t bytes;

        if (m->owner.bytes > 0 && m->owner.handle.kind == p->ref->owner.kind &&
            m->owner.handle.offset == p->ref->owner.offset) {
                buf_append(p->b, m->owner.text, m->owner.bytes);
                return;
        }

        print_type(p, p->ref->owner, true);
        bytes = p->b->size - p->begin;
        m->owner.bytes = 0;
        if (m->error || buf_error(p->b) || bytes > sizeof(m->owner.text))
                return;
        memcpy(m->owner.text, p->b->data + p->begin, bytes);
        m->owner.bytes = bytes;
        m->owner.handle = p->ref->owner;
}

void nativeaot_print_method(struct nativeaot_metadata *m, const struct nativeaot_method_ref *ref,
                            struct buf *b) {
        struct printer p = { .m = m, .b = b, .ref = ref, .begin = b->size };

        print_owner(&p);
        buf_putc(b, '.');
        print_string(&p, ref->name);
        print_generics(&p);
        print_parameters(&p);
}

struct nativeaot_method_ref nativeaot_read_method(struct nativeaot_metadata *m, uint32_t method,
                                                  struct nativeaot_handle owner) {
        struct nativeaot_method_ref ref = { .owner = owner, .method = method };

        (void) read_method(m, method, &ref.name, &ref.signature);
        return ref;
}

/* ---- who has which method ---- */

struct lister {
        struct nativeaot_metadata *m;
        struct buf *members;
        unsigned depth;
};

typedef void (*list_fn)(struct lister *l, uint32_t offset);

/* Calls for each handle of the collection at c, which it passes over. */
static void each_handle(struct lister *l, struct nativeaot_cursor *c, list_fn list) {
        uint32_t count = nativeaot_unsigned(c);

        for (uint32_t i = 0; i < count && !c->bad && step(l->m); i++) {
                uint32_t offset = nativeaot_unsigned(c);

                if (l->depth >= DEPTH_MAX)
                        fail(l->m, -E2BIG);
                l->depth++;
                if (!c->bad && !l->m->error)
                        list(l, offset);
                l->depth--;
        }
        check(l->m, c);
}

static void list_type(struct lister *l, uint32_t offset) {
        struct definition d;
        struct nativeaot_cursor c = read_definition(l->m, offset, &d);
        uint32_t count;

        each_handle(l, &c, list_type); /* nested */
        count = nativeaot_unsigned(&c);
        for (uint32_t i = 0; i < count && !c.bad && step(l->m); i++) {
                struct nativeaot_member member = { .method = nativeaot_unsigned(&c), .type = offset };

                if (!c.bad)
                        buf_append(l->members, &member, sizeof(member));
                if (l->members->size / sizeof(member) > MEMBERS_MAX)
                        fail(l->m, -E2BIG);
        }
        check(l->m, &c);
}

static void list_namespace(struct lister *l, uint32_t offset) {
        struct nativeaot_cursor c = record(l->m, offset);

        (void) take_handle(l->m, &c); /* parent */
        (void) nativeaot_unsigned(&c); /* name */
        each_handle(l, &c, list_type);
        skip_handles(l->m, &c); /* forwarders */
        each_handle(l, &c, list_namespace);
}

static void list_scope(struct lister *l, uint32_t offset) {
        struct nativeaot_cursor c = record(l->m, offset);
        uint32_t root;

        for (unsigned i = 0; i < 7; i++) /* flags, name, hash algorithm, version in four parts */
                (void) nativeaot_unsigned(&c);
        nativeaot_skip(&c, nativeaot_unsigned(&c)); /* public key */
        (void) nativeaot_unsigned(&c); /* culture */
        root = nativeaot_unsigned(&c);
        check(l->m, &c);
        if (!l->m->error)
                list_namespace(l, root);
}

void nativeaot_list_members(struct nativeaot_metadata *m, struct buf *members) {
        struct lister l = { .m = m, .members = members };
        struct nativeaot_cursor c = nativeaot_at(&m->blob, 4); /* behind the signature */

        each_handle(&l, &c, list_scope);
}
