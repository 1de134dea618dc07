/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolize/kallsyms.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct entry {
        uint64_t address;
        uint32_t name, module; /* offsets in text */
        uint32_t line;
        bool function, global;
};

struct kallsyms {
        char *text; /* owned; names and modules end in NUL */
        struct entry *entries; /* owned; sorted, of equal addresses the one to name first */
        uint32_t count;
};

/* ---- the lines ---- */

/* "ADDRESS TYPE name[\t[module]]", already ended by a NUL. */
static bool parse_line(struct kallsyms *k, char *line, struct entry *ret) {
        char *end, *name, *tab;
        size_t digits = strspn(line, "0123456789abcdef");

        if (digits == 0 || digits > 16 || line[digits] != ' ' || line[digits + 1] == '\0' ||
            line[digits + 2] != ' ')
                return false;
        name = line + digits + 3;
        tab = strchr(name, '\t');
        *ret = (struct entry){
                .address = strtoull(line, NULL, 16),
                .name = (uint32_t) (name - k->text),
                .function = strchr("tTwW", line[digits + 1]),
                .global = line[digits + 1] == 'T',
        };
        if (tab) {
                *tab = '\0';
                end = strchr(tab + 1, ']');
                if (tab[1] != '[' || !end)
                        return false;
                *end = '\0';
                ret->module = (uint32_t) (tab + 2 - k->text);
        } else
                ret->module = (uint32_t) (name + strlen(name) - k->text);
        return *name != '\0';
}

static uint32_t count_lines(const char *text, size_t bytes) {
        const char *end = text + bytes;
        uint32_t n = 0;

        for (const char *p = text; (p = memchr(p, '\n', (size_t) (end - p))); p++)
                n++;
        return n;
}

static int read_lines(struct kallsyms *k, uint32_t lines) {
        char *p = k->text, *newline;

        for (; k->count < lines; p = newline + 1, k->count++) {
                struct entry *entry = &k->entries[k->count];

                newline = strchr(p, '\n');
                if (!newline) /* a NUL among the lines */
                        return -EBADMSG;
                *newline = '\0';
                if (!parse_line(k, p, entry))
                        return -EBADMSG;
                entry->line = k->count;
        }
        return 0;
}

/* Of names for one address, a function's before a mark's, and a global one first. */
static int by_address(const void *a, const void *b) {
        const struct entry *x = a, *y = b;

        if (x->address != y->address)
                return x->address < y->address ? -1 : 1;
        if (x->function != y->function)
                return y->function - x->function;
        if (x->global != y->global)
                return y->global - x->global;
        return (x->line > y->line) - (x->line < y->line);
}

/* Is there anything to name? */
static int check(const struct kallsyms *k) {
        bool function = false, address = false;

        for (uint32_t i = 0; i < k->count; i++) {
                function |= k->entries[i].function;
                address |= k->entries[i].address != 0;
        }
        if (!function)
                return -ENODATA;
        return address ? 0 : -EACCES;
}

/* ---- the table ---- */

int kallsyms_new(const char *text, size_t bytes, struct kallsyms **ret) {
        _cleanup_(kallsyms_freep) struct kallsyms *k = NULL;
        uint32_t lines;
        int r;

        if (bytes > KALLSYMS_BYTES_MAX)
                return -EFBIG;
        lines = count_lines(text, bytes);
        if (lines > KALLSYMS_SYMBOLS_MAX)
                return -EFBIG;
        if (lines == 0 || text[bytes - 1] != '\n')
                return bytes == 0 ? -ENODATA : -EBADMSG;

        k = calloc(1, sizeof(*k));
        if (!k)
                return -ENOMEM;
        k->text = malloc(bytes + 1);
        k->entries = calloc(lines, sizeof(*k->entries));
        if (!k->text || !k->entries)
                return -ENOMEM;
        memcpy(k->text, text, bytes);
        k->text[bytes] = '\0';

        r = read_lines(k, lines);
        if (r == 0)
                r = check(k);
        if (r < 0)
                return r;
        qsort(k->entries, k->count, sizeof(*k->entries), by_address);
        *ret = TAKE_PTR(k);
        return 0;
}

struct kallsyms *kallsyms_free(struct kallsyms *k) {
        if (!k)
                return NULL;

        free(k->text);
        free(k->entries);
        free(k);
        return NULL;
}

/* Index of the first entry behind the address. */
static uint32_t first_behind(const struct kallsyms *k, uint64_t address) {
        uint32_t low = 0, high = k->count;

        while (low < high) {
                uint32_t middle = low + (high - low) / 2;

                if (k->entries[middle].address <= address)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

int kallsyms_find(const struct kallsyms *k, uint64_t address, struct kallsyms_symbol *ret) {
        uint32_t i = first_behind(k, address);
        const struct entry *entry;

        if (i == 0)
                return -ENOENT;
        while (i > 1 && k->entries[i - 2].address == k->entries[i - 1].address)
                i--;
        entry = &k->entries[i - 1];
        if (!entry->function || address - entry->address >= KALLSYMS_SYMBOL_BYTES_MAX)
                return -ENOENT;
        *ret = (struct kallsyms_symbol){
                .name = k->text + entry->name,
                .module = k->text + entry->module,
                .start = entry->address,
        };
        return 0;
}
