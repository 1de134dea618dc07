/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/merge.h"

#include <stdlib.h>
#include <string.h>

struct slot {
        struct merge_item *item;
};

struct merge {
        struct slot *slots; /* owned */
        size_t count, allocated;
        uint64_t order;
};

struct merge *merge_new(void) {
        return calloc(1, sizeof(struct merge));
}

/* Stack copies may hold secrets. */
static void free_item(struct merge_item *item) {
        explicit_bzero(item->data, item->bytes);
        free(item->texts[0]);
        free(item->texts[1]);
        free(item);
}

struct merge *merge_free(struct merge *m) {
        if (!m)
                return NULL;
        for (size_t i = 0; i < m->count; i++)
                free_item(m->slots[i].item);
        free(m->slots);
        free(m);
        return NULL;
}

static int make_room(struct merge *m) {
        size_t allocated = MAX(m->allocated * 2, (size_t) 64);
        struct slot *slots;

        if (m->count < m->allocated)
                return 0;
        slots = reallocarray(m->slots, allocated, sizeof(*slots));
        if (!slots)
                return -ENOMEM;
        m->slots = slots;
        m->allocated = allocated;
        return 0;
}

struct merge_item *merge_add(struct merge *m, uint64_t time_ns, uint32_t kind, const void *data,
                             size_t bytes) {
        struct merge_item *item;

        if (make_room(m) < 0)
                return NULL;
        item = malloc(sizeof(*item) + bytes);
        if (!item)
                return NULL;
        *item = (struct merge_item){ .time_ns = time_ns, .order = m->order++, .kind = kind, .bytes = bytes };
        if (bytes > 0)
                memcpy(item->data, data, bytes);
        m->slots[m->count++].item = item;
        return item;
}

static int compare(const void *a, const void *b) {
        const struct merge_item *x = ((const struct slot *) a)->item, *y = ((const struct slot *) b)->item;

        if (x->time_ns != y->time_ns)
                return x->time_ns < y->time_ns ? -1 : 1;
        return x->order < y->order ? -1 : 1;
}

void merge_release(struct merge *m, uint64_t until_ns, merge_fn f, void *userdata) {
        size_t done;

        if (m->count == 0)
                return;
        qsort(m->slots, m->count, sizeof(*m->slots), compare);
        for (done = 0; done < m->count && m->slots[done].item->time_ns <= until_ns; done++) {
                f(userdata, m->slots[done].item);
                free_item(m->slots[done].item);
        }
        m->count -= done;
        memmove(m->slots, m->slots + done, m->count * sizeof(*m->slots));
}
