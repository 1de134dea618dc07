/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolize/range_map.h"

#include <errno.h>
#include <stdlib.h>

#define NOTHING UINT32_MAX

struct range {
        uint64_t begin, end;
        uint32_t depth, value;
};

/* From `begin` to the next piece. */
struct piece {
        uint64_t begin;
        uint32_t value; /* or NOTHING */
};

int range_map_add(struct range_map *m, uint64_t begin, uint64_t end, uint32_t depth, uint32_t value) {
        struct range range = { .begin = begin, .end = end, .depth = depth, .value = value };

        if (m->ranges.size / sizeof(range) == RANGE_MAP_MAX)
                return -E2BIG;
        buf_append(&m->ranges, &range, sizeof(range));
        return buf_error(&m->ranges);
}

/* Outer ones first where they begin together; else as they were added, which is the order of values. */
static int by_begin(const void *a, const void *b) {
        const struct range *x = a, *y = b;

        if (x->begin != y->begin)
                return x->begin < y->begin ? -1 : 1;
        if (x->depth != y->depth)
                return x->depth < y->depth ? -1 : 1;
        return (x->value > y->value) - (x->value < y->value);
}

static void put(struct buf *pieces, uint64_t begin, uint32_t value) {
        size_t count = pieces->size / sizeof(struct piece);
        struct piece *last = count > 0 ? &((struct piece *) pieces->data)[count - 1] : NULL;

        if (last && last->begin == begin)
                last->value = value;
        else if (!last || last->value != value)
                buf_append(pieces, &(struct piece){ .begin = begin, .value = value }, sizeof(struct piece));
}

/* Ranges that are open where the sweep is, outermost first; as many as there may be depths. */
struct sweep {
        struct buf open; /* of struct range */
        struct buf *pieces;
};

static struct range *top(struct sweep *s) {
        size_t count = s->open.size / sizeof(struct range);

        return count > 0 ? &((struct range *) s->open.data)[count - 1] : NULL;
}

static void close_until(struct sweep *s, uint64_t address) {
        const struct range *t;

        while ((t = top(s)) && t->end <= address) {
                uint64_t end = t->end;

                s->open.size -= sizeof(struct range);
                put(s->pieces, end, top(s) ? top(s)->value : NOTHING);
        }
}

/* What is no deeper than the innermost open one is beside it, not inside: that one ends here. */
static void open_range(struct sweep *s, struct range range) {
        while (top(s) && top(s)->depth >= range.depth)
                s->open.size -= sizeof(struct range);
        if (top(s))
                range.end = MIN(range.end, top(s)->end);
        put(s->pieces, range.begin, range.value);
        buf_append(&s->open, &range, sizeof(range));
}

int range_map_seal(struct range_map *m) {
        const struct range *ranges = (const struct range *) m->ranges.data;
        size_t count = m->ranges.size / sizeof(*ranges);
        struct sweep sweep = { .pieces = &m->pieces };
        int r;

        if (count > 0)
                qsort(m->ranges.data, count, sizeof(*ranges), by_begin);
        for (size_t i = 0; i < count; i++) {
                close_until(&sweep, ranges[i].begin);
                open_range(&sweep, ranges[i]);
        }
        close_until(&sweep, UINT64_MAX);

        r = buf_error(&sweep.open) ?: buf_error(&m->pieces);
        buf_done(&sweep.open);
        buf_done(&m->ranges);
        return r;
}

int range_map_find(const struct range_map *m, uint64_t address, uint32_t *ret) {
        const struct piece *pieces = (const struct piece *) m->pieces.data;
        size_t low = 0, high = m->pieces.size / sizeof(*pieces);

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (pieces[middle].begin <= address)
                        low = middle + 1;
                else
                        high = middle;
        }
        if (low == 0 || pieces[low - 1].value == NOTHING)
                return -ENOENT;
        *ret = pieces[low - 1].value;
        return 0;
}

size_t range_map_bytes(const struct range_map *m) {
        return m->pieces.allocated + m->ranges.allocated;
}

void range_map_done(struct range_map *m) {
        buf_done(&m->ranges);
        buf_done(&m->pieces);
}
