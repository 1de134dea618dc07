/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolize/nativeaot_invoke.h"

#include <errno.h>
#include <stdlib.h>

#include "common/buf.h"
#include "common/macro.h"

enum {
        BUCKET_SHIFT_MAX = 24,
        FIXUP_BYTES = 4,
};

enum { /* of an entry of the invoke map */
       INVOKE_HAS_METHOD = 0x04,
       INVOKE_HAS_ENTRY = 0x20,
};

/* Which TypeDefinition a method table is the one of. */
struct owner {
        uint64_t table;
        uint32_t type;
};

struct reader {
        const struct nativeaot_header *header;
        struct nativeaot_metadata *metadata;
        nativeaot_invoke_fn each;
        void *userdata;
        struct buf owners; /* owned; struct owner, sorted when complete */
        struct buf members; /* owned; struct nativeaot_member, sorted */
};

static void reader_done(struct reader *r) {
        buf_done(&r->owners);
        buf_done(&r->members);
}

typedef int (*table_fn)(struct reader *r, struct nativeaot_cursor *entry);

/* The entries of a bucket: the low byte of a hash, and where its entry is, from there. */
static int read_bucket(struct reader *r, const struct nativeaot_blob *blob, uint64_t begin, uint64_t end,
                       table_fn each) {
        struct nativeaot_cursor c = nativeaot_at(blob, begin), entry;
        int k = 0;

        while (k == 0 && !c.bad && c.at < end) {
                size_t place;

                nativeaot_skip(&c, 1);
                place = c.at;
                entry = nativeaot_at(blob, place + (uint64_t) (int64_t) nativeaot_signed(&c));
                if (!c.bad)
                        k = each(r, &entry);
                if (k == 0 && entry.bad)
                        k = -EBADMSG;
        }
        return c.bad ? -EBADMSG : k;
}

/* The runtime's hash table: number of buckets and size of their offsets in the first byte, then the offsets. */
static int read_table(struct reader *r, const struct nativeaot_blob *blob, table_fn each) {
        struct nativeaot_cursor c = nativeaot_at(blob, 0);
        uint8_t form = (uint8_t) nativeaot_uint(&c, 1);
        unsigned width = 1u << (form & 3), shift = form >> 2;
        uint64_t begin, end;
        int k = 0;

        if (blob->bytes == 0)
                return 0;
        if (c.bad || width > 4 || shift > BUCKET_SHIFT_MAX)
                return -EBADMSG;

        /* Ascending, so that nothing is read twice. */
        begin = nativeaot_uint(&c, width);
        for (uint32_t i = 0; i < 1u << shift && k == 0; i++, begin = end) {
                end = nativeaot_uint(&c, width);
                if (c.bad || end < begin || end >= blob->bytes)
                        return -EBADMSG;
                k = read_bucket(r, blob, begin + 1, end + 1, each);
        }
        return k;
}

/* An address out of the table of those that the maps refer to by number. */
static uint64_t take_fixup(const struct reader *r, struct nativeaot_cursor *c) {
        uint32_t index = nativeaot_unsigned(c);
        struct nativeaot_cursor slot = nativeaot_at(&r->header->fixups, (uint64_t) index * FIXUP_BYTES);
        uint64_t address = nativeaot_relative(&slot);

        if (slot.bad)
                c->bad = true;
        return address;
}

static int note_owner(struct reader *r, struct nativeaot_cursor *entry) {
        struct owner owner = { .table = take_fixup(r, entry) };
        struct nativeaot_handle type = nativeaot_handle_of(r->header->format, nativeaot_unsigned(entry));

        owner.type = type.offset;
        if (!entry->bad && type.kind == NATIVEAOT_TYPE_DEFINITION)
                buf_append(&r->owners, &owner, sizeof(owner));
        return buf_error(&r->owners);
}

static int by_table(const void *a, const void *b) {
        const struct owner *x = a, *y = b;

        return x->table < y->table ? -1 : x->table > y->table;
}

static int by_method(const void *a, const void *b) {
        const struct nativeaot_member *x = a, *y = b;

        return x->method < y->method ? -1 : x->method > y->method;
}

static size_t members_of(const struct reader *r, uint32_t method, const struct nativeaot_member **ret) {
        const struct nativeaot_member *members = (const void *) r->members.data;
        size_t count = r->members.size / sizeof(*members), low = 0, high = count, end;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (members[middle].method < method)
                        low = middle + 1;
                else
                        high = middle;
        }
        for (end = low; end < count && members[end].method == method; end++)
                continue;
        *ret = members + low;
        return end - low;
}

/* 0: not to be told. */
static uint32_t owner_of(const struct reader *r, uint64_t table, uint32_t method) {
        struct owner key = { .table = table };
        size_t count = r->owners.size / sizeof(key);
        const struct owner *owner =
                count > 0 ? bsearch(&key, r->owners.data, count, sizeof(key), by_table) : NULL;
        const struct nativeaot_member *members;

        if (owner)
                return owner->type;
        return members_of(r, method, &members) == 1 ? members->type : 0;
}

static int note_invoke(struct reader *r, struct nativeaot_cursor *entry) {
        uint32_t flags = nativeaot_unsigned(entry), method, type;
        struct nativeaot_handle owner = { .kind = NATIVEAOT_TYPE_DEFINITION };
        struct nativeaot_method_ref ref;
        uint64_t table, vaddr;

        if (r->header->format->needs_method && !(flags & INVOKE_HAS_METHOD))
                return 0;
        method = nativeaot_unsigned(entry);
        table = take_fixup(r, entry);
        if (!(flags & INVOKE_HAS_ENTRY) || entry->bad)
                return 0;
        vaddr = take_fixup(r, entry);
        if (entry->bad)
                return 0;

        type = owner_of(r, table, method);
        if (type == 0)
                return 0;
        owner.offset = type;
        ref = nativeaot_read_method(r->metadata, method, owner);
        return r->metadata->error ? r->metadata->error : r->each(r->userdata, vaddr, &ref);
}

static void sort(struct buf *rows, size_t bytes, int (*compare)(const void *, const void *)) {
        if (rows->size > 0)
                qsort(rows->data, rows->size / bytes, bytes, compare);
}

int nativeaot_invoke_read(const struct nativeaot_header *header, struct nativeaot_metadata *metadata,
                          nativeaot_invoke_fn each, void *userdata) {
        _cleanup_(reader_done) struct reader reader = {
                .header = header, .metadata = metadata, .each = each, .userdata = userdata
        };
        int r;

        nativeaot_list_members(metadata, &reader.members);
        r = metadata->error ? metadata->error : buf_error(&reader.members);
        if (r == 0)
                r = read_table(&reader, &header->type_map, note_owner);
        if (r < 0)
                return r;
        sort(&reader.members, sizeof(struct nativeaot_member), by_method);
        sort(&reader.owners, sizeof(struct owner), by_table);

        return read_table(&reader, &header->invoke_map, note_invoke);
}
