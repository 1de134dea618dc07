/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolize/unwind_table.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "common/macro.h"

enum {
        ROWS_MAX = 1 << 26, /* a browser has 10 million */
        RULES_MAX = UINT16_MAX, /* libLLVM has 1,000; rows with later ones are "no CFI" */
        POOL_BYTES_MAX = 1 << 24,
        RULE_BUCKETS = 1 << 17,
        POOL_BUCKETS = 1 << 10, /* DRAP frames: some dozens of expressions a library */
};
#define DEBUG_FRAME_BYTES_MAX (UINT64_C(256) << 20) /* inflated */

const uint8_t unwind_saved_register[UNWIND_SAVED_COUNT] = {
        DWARF_RBX, DWARF_RBP, DWARF_R12, DWARF_R13, DWARF_R14, DWARF_R15,
};

/* An FDE of one of the readers. */
struct entry {
        struct cfi_fde fde;
        uint32_t reader;
};

struct builder {
        struct unwind_table *table;
        const struct elf_image *image;
        struct cfi_reader *readers[2]; /* owned; .eh_frame, .debug_frame; NULL: not there */
        struct entry *entries; /* owned */
        size_t entry_count, entries_allocated;
        bool sorted;
        uint32_t rows_allocated, rules_allocated, pool_allocated;
        uint32_t *rule_buckets; /* owned; 0: empty, else number + 1 */
        uint32_t pool_buckets[POOL_BUCKETS]; /* 0: empty, else the last pool offset put there; a cache */
        uint64_t covered; /* rows end here so far */
        uint32_t reader; /* being run */
};

static void builder_done(struct builder *b) {
        free(b->readers[0]);
        free(b->readers[1]);
        free(b->entries);
        free(b->rule_buckets);
}

/* ---- the pool ---- */

const uint8_t *unwind_table_pool(const struct unwind_table *t, uint32_t offset, size_t *ret_bytes) {
        uint16_t bytes;

        memcpy(&bytes, t->pool + offset, sizeof(bytes));
        *ret_bytes = bytes;
        return t->pool + offset + sizeof(bytes);
}

static uint32_t hash_bytes(const uint8_t *data, size_t bytes) {
        uint32_t hash = 2166136261u; /* FNV-1a */

        for (size_t i = 0; i < bytes; i++)
                hash = (hash ^ data[i]) * 16777619u;
        return hash ^ hash >> 15;
}

static int pool_reserve(struct builder *b, size_t bytes) {
        struct unwind_table *t = b->table;
        size_t want = t->pool_bytes + bytes;
        uint8_t *grown;

        if (want > POOL_BYTES_MAX)
                return -EBADMSG;
        if (want <= b->pool_allocated)
                return 0;

        grown = realloc(t->pool, want * 2);
        if (!grown)
                return -ENOMEM;
        t->pool = grown;
        b->pool_allocated = (uint32_t) (want * 2);
        return 0;
}

/* The offset of these bytes in the pool; equal ones are mostly one. */
static int pool_put(struct builder *b, const void *data, size_t bytes, uint32_t *ret) {
        struct unwind_table *t = b->table;
        uint32_t *bucket = &b->pool_buckets[hash_bytes(data, bytes) % POOL_BUCKETS];
        uint16_t size = (uint16_t) bytes;
        int r;

        if (*bucket) {
                size_t old_bytes;
                const uint8_t *old = unwind_table_pool(t, *bucket, &old_bytes);

                if (old_bytes == bytes && memcmp(old, data, bytes) == 0) {
                        *ret = *bucket;
                        return 0;
                }
        }

        r = pool_reserve(b, sizeof(size) + bytes + 1);
        if (r < 0)
                return r;
        if (t->pool_bytes == 0) /* 0 means none */
                t->pool[t->pool_bytes++] = 0;
        *ret = *bucket = t->pool_bytes;
        memcpy(t->pool + t->pool_bytes, &size, sizeof(size));
        memcpy(t->pool + t->pool_bytes + sizeof(size), data, bytes);
        t->pool_bytes += (uint32_t) (sizeof(size) + bytes);
        return 0;
}

static int pool_put_expression(struct builder *b, int64_t value, int32_t *ret) {
        const struct cfi_section *section = &b->readers[b->reader]->section;
        uint32_t offset;
        int r = pool_put(b, section->data + CFI_EXPRESSION_OFFSET(value), CFI_EXPRESSION_BYTES(value),
                         &offset);

        if (r < 0)
                return r;
        *ret = (int32_t) offset;
        return 0;
}

/* ---- rules ---- */

static bool fits_int32(int64_t value) {
        return value == (int32_t) value;
}

static int make_extra(struct builder *b, const struct cfi_row *row, unsigned reg, struct unwind_extra *ret) {
        int64_t value = row->value[reg];

        *ret = (struct unwind_extra){ .reg = (uint8_t) reg,
                                      .kind = row->kind[reg],
                                      .value = (int32_t) value };
        if (ret->kind == CFI_EXPRESSION || ret->kind == CFI_VAL_EXPRESSION)
                return pool_put_expression(b, value, &ret->value);
        if (!fits_int32(value) || (ret->kind == CFI_REGISTER && (uint64_t) value >= REG_COUNT))
                ret->kind = CFI_UNDEFINED;
        return 0;
}

/* May this register's rule be left to struct unwind_rule? */
static bool is_usual(const struct cfi_row *row, unsigned reg) {
        int64_t value = row->value[reg];

        if (row->unusual & UINT32_C(1) << reg)
                return false;
        if (row->kind[reg] == CFI_DEFAULT)
                return true;
        if (reg == DWARF_RIP)
                return value == -8;
        for (size_t i = 0; i < UNWIND_SAVED_COUNT; i++)
                if (unwind_saved_register[i] == reg)
                        return value != 0 && value == (int16_t) value;
        return false;
}

static int put_extras(struct builder *b, const struct cfi_row *row, struct unwind_rule *rule) {
        struct unwind_extra extras[REG_COUNT];
        size_t count = 0;

        for (unsigned reg = 0; reg < REG_COUNT; reg++) {
                int r;

                if (is_usual(row, reg))
                        continue;
                r = make_extra(b, row, reg, &extras[count]);
                if (r < 0)
                        return r;
                count++;
        }

        return count == 0 ? 0 : pool_put(b, extras, count * sizeof(*extras), &rule->extra);
}

/* Fills rule->saved. False: there are other places, of these registers or of others, than it can hold. */
static bool fill_saved(const struct cfi_row *row, struct unwind_rule *rule) {
        static const int8_t index[REG_COUNT] = {
                /* in unwind_saved_register, + 1 */
                [DWARF_RBX] = 1, [DWARF_RBP] = 2, [DWARF_R12] = 3,
                [DWARF_R13] = 4, [DWARF_R14] = 5, [DWARF_R15] = 6,
        };
        bool all = true;

        for (uint32_t bits = row->offsets; bits != 0; bits &= bits - 1) {
                int reg = __builtin_ctz(bits);
                int64_t value = row->value[reg];

                if (index[reg] > 0 && value != 0 && value == (int16_t) value)
                        rule->saved[index[reg] - 1] = (int16_t) value;
                else if (reg != DWARF_RIP || value != -8)
                        all = false;
        }

        return all;
}

static int make_rule(struct builder *b, const struct cfi_row *row, bool signal, struct unwind_rule *ret) {
        struct unwind_rule rule = { .cfa_register = row->cfa_register };
        int r;

        if (signal) {
                rule.flags |= UNWIND_RULE_SIGNAL;
                b->table->has_signal_frames = true;
        }
        if (row->kind[DWARF_RIP] == CFI_UNDEFINED)
                rule.flags |= UNWIND_RULE_ROOT;

        if (row->cfa_register == CFI_CFA_EXPRESSION) {
                r = pool_put_expression(b, row->cfa_value, &rule.cfa_value);
                if (r < 0)
                        return r;
        } else if (fits_int32(row->cfa_value))
                rule.cfa_value = (int32_t) row->cfa_value;
        else
                rule.flags |= UNWIND_RULE_NONE;

        if (!fill_saved(row, &rule) || row->unusual) {
                r = put_extras(b, row, &rule);
                if (r < 0)
                        return r;
        }

        *ret = rule;
        return 0;
}

static uint32_t hash_rule(const struct unwind_rule *rule) {
        uint64_t words[3], hash;

        memcpy(words, rule, sizeof(words));
        hash = words[0] * UINT64_C(0x9e3779b97f4a7c15) ^ words[1] * UINT64_C(0xc2b2ae3d27d4eb4f);
        hash = (hash ^ hash >> 29 ^ words[2]) * UINT64_C(0xbf58476d1ce4e5b9);
        return (uint32_t) (hash >> 40);
}

static int add_rule(struct builder *b, const struct unwind_rule *rule) {
        struct unwind_table *t = b->table;

        if (t->rule_count == b->rules_allocated) {
                uint32_t want = MAX(2 * b->rules_allocated, UINT32_C(64));
                struct unwind_rule *grown = realloc(t->rules, want * sizeof(*grown));

                if (!grown)
                        return -ENOMEM;
                t->rules = grown;
                b->rules_allocated = want;
        }

        t->rules[t->rule_count++] = *rule;
        return 0;
}

/* The number of a rule, 0 when there are too many. There are twice as many buckets as rules at most. */
static int intern_rule(struct builder *b, const struct unwind_rule *rule, uint16_t *ret) {
        struct unwind_table *t = b->table;
        uint32_t at = hash_rule(rule) % RULE_BUCKETS;
        int r;

        for (; b->rule_buckets[at]; at = (at + 1) % RULE_BUCKETS)
                if (memcmp(&t->rules[b->rule_buckets[at] - 1], rule, sizeof(*rule)) == 0) {
                        *ret = (uint16_t) (b->rule_buckets[at] - 1);
                        return 0;
                }

        if (t->rule_count == RULES_MAX) {
                *ret = 0;
                return 0;
        }
        r = add_rule(b, rule);
        if (r < 0)
                return r;
        b->rule_buckets[at] = t->rule_count;
        *ret = (uint16_t) (t->rule_count - 1);
        return 0;
}

/* ---- rows ---- */

static int grow_rows(struct builder *b, uint32_t want) {
        struct unwind_table *t = b->table;
        uint32_t *pcs = realloc(t->pcs, want * sizeof(*pcs));
        uint16_t *numbers;

        if (!pcs)
                return -ENOMEM;
        t->pcs = pcs;
        numbers = realloc(t->numbers, want * sizeof(*numbers));
        if (!numbers)
                return -ENOMEM;
        t->numbers = numbers;
        b->rows_allocated = want;
        return 0;
}

static int add_row(struct builder *b, uint64_t start, uint16_t number) {
        struct unwind_table *t = b->table;
        int r;

        if (t->row_count > 0 && t->numbers[t->row_count - 1] == number)
                return 0;
        if (t->row_count == ROWS_MAX)
                return -EBADMSG;
        if (t->row_count == b->rows_allocated) {
                r = grow_rows(b, MAX(2 * b->rows_allocated, UINT32_C(256)));
                if (r < 0)
                        return r;
        }

        t->pcs[t->row_count] = (uint32_t) (start - t->base);
        t->numbers[t->row_count++] = number;
        return 0;
}

/* A cfi_row_fn. Where FDEs overlap, the one that begins first keeps the place. */
static int on_row(void *userdata, uint64_t start, uint64_t end, const struct cfi_row *row, bool signal) {
        struct builder *b = userdata;
        struct unwind_rule rule;
        uint16_t number = 0;
        int r;

        if (end <= b->covered)
                return 0;
        start = MAX(start, b->covered);
        b->covered = end;

        if (row) {
                r = make_rule(b, row, signal, &rule);
                if (r < 0)
                        return r;
                r = rule.flags & UNWIND_RULE_NONE ? 0 : intern_rule(b, &rule, &number);
                if (r < 0)
                        return r;
        }

        return add_row(b, start, number);
}

static bool in_code(const struct elf_image *image, const struct cfi_fde *fde) {
        const struct elf_segment *segments;
        unsigned count = elf_image_segments(image, &segments);

        for (unsigned i = 0; i < count; i++)
                if (segments[i].executable && fde->start >= segments[i].vaddr &&
                    fde->start - segments[i].vaddr < segments[i].memory_bytes &&
                    fde->end - segments[i].vaddr <= segments[i].memory_bytes)
                        return true;
        return false;
}

static int add_entry(struct builder *b, const struct cfi_fde *fde, uint32_t reader) {
        if (b->entry_count == b->entries_allocated) {
                size_t want = MAX(2 * b->entries_allocated, (size_t) 1024);
                struct entry *grown = realloc(b->entries, want * sizeof(*grown));

                if (!grown)
                        return -ENOMEM;
                b->entries = grown;
                b->entries_allocated = want;
        }

        if (b->entry_count > 0 && fde->start < b->entries[b->entry_count - 1].fde.start)
                b->sorted = false;
        b->entries[b->entry_count++] = (struct entry){ .fde = *fde, .reader = reader };
        return 0;
}

/* An FDE outside the code (functions that the linker dropped stay in .debug_frame at address 0) is left
 * out. */
static int collect(struct builder *b, const struct cfi_section *section, uint32_t number) {
        struct cfi_reader *reader = malloc(sizeof(*reader));
        struct cfi_fde fde;
        int r;

        if (!reader)
                return -ENOMEM;
        b->readers[number] = reader;
        r = cfi_reader_init(reader, section);
        if (r < 0)
                return r;

        while ((r = cfi_next(reader, &fde)) > 0)
                if (in_code(b->image, &fde)) {
                        r = add_entry(b, &fde, number);
                        if (r < 0)
                                return r;
                }

        return r;
}

static int compare_entries(const void *pa, const void *pb) {
        const struct entry *a = pa, *b = pb;

        if (a->fde.start != b->fde.start)
                return a->fde.start < b->fde.start ? -1 : 1;
        return (int) a->reader - (int) b->reader; /* what runs prefers what ships */
}

static int build_rows(struct builder *b) {
        static const struct unwind_rule none = { .flags = UNWIND_RULE_NONE };
        int r = add_rule(b, &none);

        if (r < 0)
                return r;
        b->rule_buckets = calloc(RULE_BUCKETS, sizeof(*b->rule_buckets));
        if (!b->rule_buckets)
                return -ENOMEM;
        if (!b->sorted)
                qsort(b->entries, b->entry_count, sizeof(*b->entries), compare_entries);

        b->table->base = b->covered = b->entry_count > 0 ? b->entries[0].fde.start : 0;
        for (size_t i = 0; i < b->entry_count; i++) {
                const struct entry *e = &b->entries[i];

                if (e->fde.end - b->table->base > UINT32_MAX)
                        break;
                if (e->fde.start > b->covered) {
                        r = add_row(b, b->covered, 0);
                        if (r < 0)
                                return r;
                }
                b->reader = e->reader;
                r = cfi_run(b->readers[e->reader], &e->fde, on_row, b);
                if (r < 0)
                        return r;
        }

        return b->entry_count == 0 ? 0 : add_row(b, b->covered, 0);
}

static int shrink(struct builder *b) {
        struct unwind_table *t = b->table;
        struct unwind_rule *rules = realloc(t->rules, t->rule_count * sizeof(*rules));

        if (rules)
                t->rules = rules;
        if (t->pool_bytes > 0) {
                uint8_t *pool = realloc(t->pool, t->pool_bytes);

                if (pool)
                        t->pool = pool;
        }
        return t->row_count == 0 ? 0 : grow_rows(b, t->row_count);
}

int unwind_table_index(struct unwind_table *t) {
        uint32_t row = 0;

        if (t->row_count == 0)
                return 0;
        t->page_count = (t->pcs[t->row_count - 1] >> UNWIND_PAGE_SHIFT) + 1;
        t->pages = malloc((t->page_count + 1) * sizeof(*t->pages));
        if (!t->pages)
                return -ENOMEM;

        for (uint32_t page = 0; page < t->page_count; page++) {
                while (t->pcs[row] >> UNWIND_PAGE_SHIFT < page)
                        row++;
                t->pages[page] = row;
        }
        t->pages[t->page_count] = t->row_count;
        return 0;
}

/* ---- which sections ---- */

static int find_eh_frame(const struct elf_image *image, struct cfi_section *ret) {
        const struct elf_section *section = elf_image_section(image, ".eh_frame");

        if (!section)
                return cfi_section_from_segments(image, ret);
        if (!section->data)
                return -ENODATA;

        *ret = (struct cfi_section){
                .data = section->data,
                .bytes = section->bytes,
                .vaddr = section->vaddr,
                .eh = true,
                .image = image,
        };
        return 0;
}

/* A compressed section, or NULL: not one, or its sizes are wrong. The caller frees it. */
static uint8_t *inflate_section(const struct elf_section *section, size_t *ret_bytes) {
        Elf64_Chdr header;
        _cleanup_free_ uint8_t *data = NULL;
        uLongf bytes;

        if (section->bytes < sizeof(header))
                return NULL;
        memcpy(&header, section->data, sizeof(header));
        if (header.ch_type != ELFCOMPRESS_ZLIB || header.ch_size == 0 ||
            header.ch_size > DEBUG_FRAME_BYTES_MAX)
                return NULL;

        data = malloc(header.ch_size);
        bytes = header.ch_size;
        if (!data || uncompress(data, &bytes, section->data + sizeof(header),
                                section->bytes - sizeof(header)) != Z_OK)
                return NULL;

        *ret_bytes = bytes;
        return TAKE_PTR(data);
}

/* *ret_inflated: owned by the caller, outlives *ret. */
static int find_debug_frame(const struct elf_image *debug, struct cfi_section *ret, uint8_t **ret_inflated) {
        const struct elf_section *section = debug ? elf_image_section(debug, ".debug_frame") : NULL;

        if (!section || !section->data)
                return -ENODATA;

        *ret = (struct cfi_section){ .data = section->data, .bytes = section->bytes, .image = debug };
        if (section->flags & SHF_COMPRESSED) {
                *ret_inflated = inflate_section(section, &ret->bytes);
                if (!*ret_inflated)
                        return -ENODATA;
                ret->data = *ret_inflated;
        }
        return 0;
}

static int build(struct builder *b, const struct elf_image *debug) {
        _cleanup_free_ uint8_t *inflated = NULL;
        struct cfi_section section;
        int r;

        if (find_eh_frame(b->image, &section) == 0) {
                r = collect(b, &section, 0);
                if (r < 0)
                        return r;
        }
        /* An unstripped file has its .debug_frame inside. */
        if (find_debug_frame(debug ?: b->image, &section, &inflated) == 0) {
                r = collect(b, &section, 1);
                if (r < 0)
                        return r;
        }

        r = build_rows(b);
        if (r < 0)
                return r;
        r = shrink(b);
        if (r < 0)
                return r;
        return unwind_table_index(b->table);
}

int unwind_table_new(const struct elf_image *image, const struct elf_image *debug,
                     struct unwind_table **ret) {
        _cleanup_(unwind_table_freep) struct unwind_table *t = calloc(1, sizeof(*t));
        struct builder b = { .table = t, .image = image, .sorted = true };
        int r;

        if (!t)
                return -ENOMEM;
        r = build(&b, debug);
        builder_done(&b);
        if (r < 0)
                return r;

        *ret = TAKE_PTR(t);
        return 0;
}

struct unwind_table *unwind_table_free(struct unwind_table *t) {
        if (!t)
                return NULL;

        free(t->pcs);
        free(t->numbers);
        free(t->rules);
        free(t->pool);
        free(t->pages);
        free(t);
        return NULL;
}

size_t unwind_table_bytes(const struct unwind_table *t) {
        return sizeof(*t) + t->row_count * (sizeof(*t->pcs) + sizeof(*t->numbers)) +
               t->rule_count * sizeof(*t->rules) + t->pool_bytes +
               (t->pages ? (t->page_count + 1) * sizeof(*t->pages) : 0);
}

const struct unwind_rule *unwind_table_find(const struct unwind_table *t, uint64_t vaddr) {
        uint64_t pc = vaddr - t->base; /* below base: huge */
        uint64_t page = pc >> UNWIND_PAGE_SHIFT;
        uint32_t low, high;

        if (page >= t->page_count)
                return &t->rules[0];

        /* The row that pc is in is the last one that begins at or before it: low - 1 after the search. Row 0
         * begins at 0. */
        low = t->pages[page];
        high = t->pages[page + 1];
        while (low < high) {
                uint32_t middle = low + (high - low) / 2;

                if (t->pcs[middle] <= pc)
                        low = middle + 1;
                else
                        high = middle;
        }

        return &t->rules[t->numbers[low - 1]];
}
