/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolize/unwind_store.h"

#include <errno.h>
#include <sha256.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbolize/expression.h"
#include "symbolize/unwind_table.h"

enum {
        VERSION = 1
}; /* with every change of struct unwind_rule, of the pool, or of what the builder makes */

static const char magic[8] = "SPUNWIND";

/* Then, without gaps: pcs, numbers, rules, pool. The pages are made anew. */
struct header {
        char magic[8];
        uint32_t version;
        uint32_t row_count, rule_count, pool_bytes;
        uint64_t base;
};

/* ---- the key ---- */

static void put_hex(char *text, const uint8_t *bytes, size_t n) {
        for (size_t i = 0; i < n; i++)
                snprintf(text + 2 * i, 3, "%02x", bytes[i]);
}

int unwind_store_key(const struct elf_image *image, const struct elf_image *debug,
                     char key[static UNWIND_KEY_MAX]) {
        const struct elf_section *section = elf_image_section(image, ".eh_frame");
        uint8_t digest[SHA256_DIGEST_LENGTH];
        struct build_id id = BUILD_ID_NULL;
        SHA2_CTX context;

        if (!section || !section->data || section->bytes < UNWIND_STORED_LEAST ||
            elf_image_section(image, ".debug_frame") ||
            (debug && elf_image_section(debug, ".debug_frame")) || elf_image_build_id(image, &id) < 0)
                return -ENODATA;

        SHA256Init(&context);
        SHA256Update(&context, (const uint8_t *) &section->vaddr, sizeof(section->vaddr));
        SHA256Update(&context, section->data, section->bytes);
        SHA256Final(digest, &context);

        put_hex(key, id.bytes, id.size);
        key[2 * id.size] = '-';
        put_hex(key + 2 * id.size + 1, digest, sizeof(digest));
        return 0;
}

/* ---- writing ---- */

static uint64_t stored_bytes(const struct header *h) {
        return sizeof(*h) + (uint64_t) h->row_count * (sizeof(uint32_t) + sizeof(uint16_t)) +
               (uint64_t) h->rule_count * sizeof(struct unwind_rule) + h->pool_bytes;
}

static uint8_t *put(uint8_t *to, const void *from, size_t bytes) {
        if (bytes > 0)
                memcpy(to, from, bytes);
        return to + bytes;
}

int unwind_store_pack(const struct unwind_table *t, void **ret, size_t *ret_bytes) {
        struct header h = { .version = VERSION,
                            .row_count = t->row_count,
                            .rule_count = t->rule_count,
                            .pool_bytes = t->pool_bytes,
                            .base = t->base };
        uint64_t bytes = stored_bytes(&h);
        uint8_t *data, *to;

        if (bytes > UNWIND_STORED_MAX)
                return -EFBIG;
        data = malloc(bytes);
        if (!data)
                return -ENOMEM;
        memcpy(h.magic, magic, sizeof(magic));
        to = put(data, &h, sizeof(h));
        to = put(to, t->pcs, t->row_count * sizeof(*t->pcs));
        to = put(to, t->numbers, t->row_count * sizeof(*t->numbers));
        to = put(to, t->rules, t->rule_count * sizeof(*t->rules));
        (void) put(to, t->pool, t->pool_bytes);
        *ret = data;
        *ret_bytes = bytes;
        return 0;
}

/* ---- reading ---- */

/* A copy, so that alignment and life time are ours. NULL for nothing, too. */
static void *take(const uint8_t **from, size_t bytes) {
        void *copy = bytes > 0 ? malloc(bytes) : NULL;

        if (copy)
                memcpy(copy, *from, bytes);
        *from += bytes;
        return copy;
}

static bool rows_are_sound(const struct unwind_table *t) {
        if (t->row_count == 0)
                return true;
        if (t->pcs[0] != 0 || t->numbers[t->row_count - 1] != 0)
                return false;
        for (uint32_t i = 0; i < t->row_count; i++)
                if (t->numbers[i] >= t->rule_count || (i > 0 && t->pcs[i] <= t->pcs[i - 1]))
                        return false;
        return true;
}

static bool pool_entry_is_sound(const struct unwind_table *t, uint32_t offset, uint16_t *ret_bytes) {
        if (offset > t->pool_bytes || t->pool_bytes - offset < sizeof(*ret_bytes))
                return false;
        memcpy(ret_bytes, t->pool + offset, sizeof(*ret_bytes));
        return *ret_bytes <= t->pool_bytes - offset - sizeof(*ret_bytes);
}

static bool extra_is_sound(const struct unwind_table *t, const struct unwind_extra *extra) {
        uint16_t bytes;

        if (extra->reg >= REG_COUNT)
                return false;
        switch (extra->kind) {
        case CFI_REGISTER: return extra->value >= 0 && extra->value < REG_COUNT;
        case CFI_EXPRESSION:
        case CFI_VAL_EXPRESSION: return pool_entry_is_sound(t, (uint32_t) extra->value, &bytes);
        default: return true;
        }
}

static bool extras_are_sound(const struct unwind_table *t, uint32_t offset) {
        struct unwind_extra extra;
        uint16_t bytes;

        if (!pool_entry_is_sound(t, offset, &bytes) || bytes % sizeof(extra) != 0)
                return false;
        for (uint32_t at = 0; at < bytes; at += sizeof(extra)) {
                memcpy(&extra, t->pool + offset + sizeof(bytes) + at, sizeof(extra));
                if (!extra_is_sound(t, &extra))
                        return false;
        }
        return true;
}

static bool rule_is_sound(const struct unwind_table *t, const struct unwind_rule *rule) {
        uint16_t bytes;

        if (rule->cfa_register == CFI_CFA_EXPRESSION) {
                if (!pool_entry_is_sound(t, (uint32_t) rule->cfa_value, &bytes))
                        return false;
        } else if (rule->cfa_register >= REG_COUNT)
                return false;
        return rule->extra == 0 || extras_are_sound(t, rule->extra);
}

static bool rules_are_sound(struct unwind_table *t) {
        if (t->rule_count == 0 || !(t->rules[0].flags & UNWIND_RULE_NONE))
                return false;
        for (uint32_t i = 0; i < t->rule_count; i++) {
                if (!rule_is_sound(t, t->rules + i))
                        return false;
                t->has_signal_frames |= (t->rules[i].flags & UNWIND_RULE_SIGNAL) != 0;
        }
        return true;
}

int unwind_store_unpack(const void *data, size_t bytes, struct unwind_table **ret) {
        _cleanup_(unwind_table_freep) struct unwind_table *t = NULL;
        const uint8_t *from = data;
        struct header h;
        int r;

        if (bytes < sizeof(h) || bytes > UNWIND_STORED_MAX)
                return -EBADMSG;
        memcpy(&h, data, sizeof(h));
        if (memcmp(h.magic, magic, sizeof(magic)) != 0 || h.version != VERSION || stored_bytes(&h) != bytes)
                return -EBADMSG;
        from += sizeof(h);

        t = calloc(1, sizeof(*t));
        if (!t)
                return -ENOMEM;
        t->base = h.base;
        t->row_count = h.row_count;
        t->rule_count = h.rule_count;
        t->pool_bytes = h.pool_bytes;
        t->pcs = take(&from, h.row_count * sizeof(*t->pcs));
        t->numbers = take(&from, h.row_count * sizeof(*t->numbers));
        t->rules = take(&from, h.rule_count * sizeof(*t->rules));
        t->pool = take(&from, h.pool_bytes);
        if ((h.row_count > 0 && (!t->pcs || !t->numbers)) || (h.rule_count > 0 && !t->rules) ||
            (h.pool_bytes > 0 && !t->pool))
                return -ENOMEM;
        if (!rules_are_sound(t) || !rows_are_sound(t))
                return -EBADMSG;
        r = unwind_table_index(t);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(t);
        return 0;
}
