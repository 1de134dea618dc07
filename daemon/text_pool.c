/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/text_pool.h"

#include <stdlib.h>

#include "common/hash.h"

struct text_pool {
        char **texts; /* owned, and each of them; [0] is not used */
        uint32_t count, allocated;
        size_t bytes;
        struct hash *numbers; /* owned */
};

struct text_pool *text_pool_new(void) {
        _cleanup_(text_pool_freep) struct text_pool *p = calloc(1, sizeof(*p));

        if (!p)
                return NULL;
        p->count = 1;
        p->numbers = hash_new();
        if (!p->numbers)
                return NULL;
        return TAKE_PTR(p);
}

struct text_pool *text_pool_free(struct text_pool *p) {
        if (!p)
                return NULL;
        for (uint32_t i = 1; i < p->count; i++)
                free(p->texts[i]);
        free(p->texts);
        hash_free(p->numbers);
        free(p);
        return NULL;
}

static int make_room(struct text_pool *p) {
        uint32_t allocated = MAX(p->allocated * 2, 64U);
        char **texts;

        if (p->count < p->allocated)
                return 0;
        texts = reallocarray(p->texts, allocated, sizeof(*texts));
        if (!texts)
                return -ENOMEM;
        p->texts = texts;
        p->allocated = allocated;
        return 0;
}

uint32_t text_pool_add(struct text_pool *p, const char *text, size_t max) {
        size_t n = strnlen(text, max);
        uint64_t number;
        char *copy;

        if (n == 0)
                return 0;
        if (hash_get(p->numbers, text, n, &number) == 0)
                return (uint32_t) number;
        if (n > TEXT_POOL_BYTES_MAX - p->bytes || make_room(p) < 0)
                return 0;
        copy = strndup(text, n);
        if (!copy)
                return 0;
        if (hash_put(p->numbers, copy, n, p->count) < 0) {
                free(copy);
                return 0;
        }
        p->bytes += n;
        p->texts[p->count] = copy;
        return p->count++;
}

const char *text_pool_get(const struct text_pool *p, uint32_t number) {
        return number > 0 && number < p->count ? p->texts[number] : "";
}

uint32_t text_pool_count(const struct text_pool *p) {
        return p->count;
}
