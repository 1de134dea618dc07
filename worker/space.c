/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "worker/space.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/recording.h"

enum { FIRST_MAPPINGS = 16, FIRST_SPACES = 16 };

/* Mappings sorted by start, without overlap. Shared by several spaces while users > 1; never changed then. */
struct list {
        uint32_t users;
        uint32_t count, allocated;
        struct space_mapping mappings[];
};

struct spaces {
        struct list **lists; /* by number; NULL: empty */
        uint32_t allocated;
};

struct spaces *spaces_new(void) {
        return calloc(1, sizeof(struct spaces));
}

static void list_unref(struct list *list) {
        if (list && --list->users == 0)
                free(list);
}

struct spaces *spaces_free(struct spaces *s) {
        if (!s)
                return NULL;

        for (uint32_t i = 0; i < s->allocated; i++)
                list_unref(s->lists[i]);
        free(s->lists);
        free(s);
        return NULL;
}

static int make_room_for(struct spaces *s, uint32_t number) {
        struct list **lists;
        uint32_t allocated = MAX(s->allocated, (uint32_t) FIRST_SPACES);

        if (number >= SPACES_MAX)
                return -ERANGE;
        if (number < s->allocated)
                return 0;
        while (allocated <= number)
                allocated *= 2;

        lists = reallocarray(s->lists, allocated, sizeof(struct list *));
        if (!lists)
                return -ENOMEM;
        memset(lists + s->allocated, 0, (allocated - s->allocated) * sizeof(struct list *));
        s->lists = lists;
        s->allocated = allocated;
        return 0;
}

int spaces_begin(struct spaces *s, uint32_t number, uint32_t from) {
        struct list *list = from < s->allocated ? s->lists[from] : NULL;
        int r;

        r = make_room_for(s, number);
        if (r < 0)
                return r;

        if (list)
                list->users++;
        list_unref(s->lists[number]);
        s->lists[number] = list;
        return 0;
}

uint32_t spaces_count(const struct spaces *s) {
        return s->allocated;
}

uint32_t spaces_mappings(const struct spaces *s, uint32_t number, const struct space_mapping **ret) {
        const struct list *list = number < s->allocated ? s->lists[number] : NULL;

        *ret = list ? list->mappings : NULL;
        return list ? list->count : 0;
}

/* First mapping that ends behind the address. */
static uint32_t first_behind(const struct list *list, uint64_t address) {
        uint32_t low = 0, high = list->count;

        while (low < high) {
                uint32_t middle = low + (high - low) / 2;

                if (list->mappings[middle].end <= address)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

const struct space_mapping *spaces_find(const struct spaces *s, uint32_t number, uint64_t address) {
        const struct list *list = number < s->allocated ? s->lists[number] : NULL;
        uint32_t i;

        if (!list)
                return NULL;
        i = first_behind(list, address);
        return i < list->count && list->mappings[i].start <= address ? &list->mappings[i] : NULL;
}

/* A list of this space alone with room for two more: a mapping in the middle of another adds itself and the
 * other's tail. */
static int own_list(struct spaces *s, uint32_t number, struct list **ret) {
        struct list *old = s->lists[number], *list;
        uint32_t count = old ? old->count : 0, allocated = old ? old->allocated : FIRST_MAPPINGS;

        if (old && old->users == 1 && count + 2 <= old->allocated) {
                *ret = old;
                return 0;
        }
        if (count + 2 > SPACE_MAPPINGS_MAX)
                return -ERANGE;
        while (allocated < count + 2)
                allocated *= 2;

        list = malloc(sizeof(*list) + allocated * sizeof(list->mappings[0]));
        if (!list)
                return -ENOMEM;
        *list = (struct list){ .users = 1, .count = count, .allocated = allocated };
        if (old)
                memcpy(list->mappings, old->mappings, count * sizeof(list->mappings[0]));
        list_unref(old);
        s->lists[number] = list;
        *ret = list;
        return 0;
}

static void replace(struct list *list, uint32_t first, uint32_t end, const struct space_mapping *with,
                    uint32_t n) {
        memmove(list->mappings + first + n, list->mappings + end,
                (list->count - end) * sizeof(list->mappings[0]));
        memcpy(list->mappings + first, with, n * sizeof(*with));
        list->count = list->count - (end - first) + n;
}

int spaces_map(struct spaces *s, uint32_t number, const struct space_mapping *mapping) {
        struct space_mapping pieces[3];
        uint32_t first, end, n = 0;
        struct list *list;
        int r;

        if (mapping->end <= mapping->start)
                return -EINVAL;
        r = make_room_for(s, number);
        if (r < 0)
                return r;
        r = own_list(s, number, &list);
        if (r < 0)
                return r;

        first = first_behind(list, mapping->start);
        for (end = first; end < list->count && list->mappings[end].start < mapping->end; end++)
                ;

        /* What the first one has before the new mapping stays, and what the last one has behind it. */
        if (first < end && list->mappings[first].start < mapping->start) {
                pieces[n] = list->mappings[first];
                pieces[n++].end = mapping->start;
        }
        pieces[n++] = *mapping;
        if (first < end && list->mappings[end - 1].end > mapping->end) {
                pieces[n] = list->mappings[end - 1];
                pieces[n].offset += mapping->end - pieces[n].start;
                pieces[n++].start = mapping->end;
        }

        replace(list, first, end, pieces, n);
        return 0;
}
