/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/hash.h"

#include <sys/random.h>

enum { FIRST_SLOTS = 16 }; /* a power of two, as all later sizes */

struct slot {
        void *key; /* owned; NULL: free slot */
        size_t key_bytes;
        uint64_t code;
        uint64_t value;
};

struct hash {
        struct slot *slots; /* owned */
        size_t n_slots, count;
        uint64_t seed[2];
};

static inline uint64_t rotate(uint64_t x, unsigned bits) {
        return x << bits | x >> (64 - bits);
}

static void sip_round(uint64_t v[static 4]) {
        v[0] += v[1];
        v[1] = rotate(v[1], 13) ^ v[0];
        v[0] = rotate(v[0], 32);
        v[2] += v[3];
        v[3] = rotate(v[3], 16) ^ v[2];
        v[0] += v[3];
        v[3] = rotate(v[3], 21) ^ v[0];
        v[2] += v[1];
        v[1] = rotate(v[1], 17) ^ v[2];
        v[2] = rotate(v[2], 32);
}

/* SipHash-1-3 (Aumasson, Bernstein: "SipHash: a fast short-input PRF"), as language runtimes use for tables. */
static uint64_t code_of(const struct hash *h, const void *key, size_t bytes) {
        uint64_t v[4] = { h->seed[0] ^ 0x736f6d6570736575, h->seed[1] ^ 0x646f72616e646f6d,
                          h->seed[0] ^ 0x6c7967656e657261, h->seed[1] ^ 0x7465646279746573 };
        const uint8_t *p = key;
        uint64_t word, last = (uint64_t) bytes << 56;

        for (; bytes >= sizeof(word); p += sizeof(word), bytes -= sizeof(word)) {
                memcpy(&word, p, sizeof(word));
                v[3] ^= word;
                sip_round(v);
                v[0] ^= word;
        }
        for (size_t i = 0; i < bytes; i++)
                last |= (uint64_t) p[i] << (8 * i);
        v[3] ^= last;
        sip_round(v);
        v[0] ^= last;
        v[2] ^= 0xff;
        for (unsigned i = 0; i < 3; i++)
                sip_round(v);
        return v[0] ^ v[1] ^ v[2] ^ v[3];
}

struct hash *hash_new(void) {
        struct hash *h = calloc(1, sizeof(*h));

        if (!h)
                return NULL;
        h->n_slots = FIRST_SLOTS;
        h->slots = calloc(h->n_slots, sizeof(*h->slots));
        if (!h->slots)
                return hash_free(h);
        /* Before the random pool is ready (early boot) a table with a guessable seed is still right. */
        if (getrandom(h->seed, sizeof(h->seed), GRND_NONBLOCK) < 0)
                h->seed[0] = (uintptr_t) h;
        return h;
}

struct hash *hash_free(struct hash *h) {
        if (!h)
                return NULL;

        for (size_t i = 0; h->slots && i < h->n_slots; i++)
                free(h->slots[i].key);
        free(h->slots);
        free(h);
        return NULL;
}

/* The slot of the key, or the free one where it belongs. Ends: a quarter of the slots is always free. */
static struct slot *find(const struct hash *h, uint64_t code, const void *key, size_t key_bytes) {
        for (size_t i = code & (h->n_slots - 1);; i = (i + 1) & (h->n_slots - 1)) {
                struct slot *s = &h->slots[i];

                if (!s->key)
                        return s;
                if (s->code == code && s->key_bytes == key_bytes &&
                    (key_bytes == 0 || memcmp(s->key, key, key_bytes) == 0))
                        return s;
        }
}

static int grow(struct hash *h) {
        struct hash larger = *h;

        if ((h->count + 1) * 4 <= h->n_slots * 3)
                return 0;

        larger.n_slots *= 2;
        larger.slots = calloc(larger.n_slots, sizeof(*larger.slots));
        if (!larger.slots)
                return -ENOMEM;
        for (size_t i = 0; i < h->n_slots; i++) {
                const struct slot *s = &h->slots[i];

                if (s->key)
                        *find(&larger, s->code, s->key, s->key_bytes) = *s;
        }
        free(h->slots);
        *h = larger;
        return 0;
}

static int add(struct hash *h, uint64_t code, const void *key, size_t key_bytes, uint64_t value) {
        void *copy;

        if (grow(h) < 0)
                return -ENOMEM;
        copy = malloc(MAX(key_bytes, (size_t) 1));
        if (!copy)
                return -ENOMEM;
        if (key_bytes > 0)
                memcpy(copy, key, key_bytes);

        *find(h, code, key, key_bytes) =
                (struct slot){ .key = copy, .key_bytes = key_bytes, .code = code, .value = value };
        h->count++;
        return 1;
}

int hash_get(const struct hash *h, const void *key, size_t key_bytes, uint64_t *ret) {
        const struct slot *s = find(h, code_of(h, key, key_bytes), key, key_bytes);

        if (!s->key)
                return -ENOENT;
        *ret = s->value;
        return 0;
}

int hash_put(struct hash *h, const void *key, size_t key_bytes, uint64_t value) {
        uint64_t code = code_of(h, key, key_bytes);
        struct slot *s = find(h, code, key, key_bytes);

        if (!s->key)
                return add(h, code, key, key_bytes, value);
        s->value = value;
        return 0;
}

int hash_intern(struct hash *h, const void *key, size_t key_bytes, uint64_t value, uint64_t *ret) {
        uint64_t code = code_of(h, key, key_bytes);
        const struct slot *s = find(h, code, key, key_bytes);
        int r;

        if (s->key) {
                *ret = s->value;
                return 0;
        }
        r = add(h, code, key, key_bytes, value);
        if (r > 0)
                *ret = value;
        return r;
}

bool hash_remove(struct hash *h, const void *key, size_t key_bytes) {
        struct slot *s = find(h, code_of(h, key, key_bytes), key, key_bytes);
        size_t mask = h->n_slots - 1, hole, i;

        if (!s->key)
                return false;
        free(s->key);
        h->count--;

        /* Close the gap: whatever follows moves up, unless that would put it before its own place. */
        hole = (size_t) (s - h->slots);
        for (i = (hole + 1) & mask; h->slots[i].key; i = (i + 1) & mask) {
                size_t home = h->slots[i].code & mask;

                if (((i - home) & mask) >= ((i - hole) & mask)) {
                        h->slots[hole] = h->slots[i];
                        hole = i;
                }
        }
        h->slots[hole] = (struct slot){};
        return true;
}

size_t hash_count(const struct hash *h) {
        return h->count;
}

bool hash_next(const struct hash *h, size_t *position, const void **key, size_t *key_bytes,
               uint64_t *value) {
        while (*position < h->n_slots) {
                const struct slot *s = &h->slots[(*position)++];

                if (s->key) {
                        *key = s->key;
                        *key_bytes = s->key_bytes;
                        *value = s->value;
                        return true;
                }
        }
        return false;
}
