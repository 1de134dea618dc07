/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolize/perf_map.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/fd.h"

enum { FIRST_ENTRIES = 256, HEX_DIGITS_MAX = 16 };

/* A line: its number decides who covers whom. */
struct entry {
        uint64_t start, end;
        uint32_t name; /* offset in text */
        uint32_t line;
};

/* A piece of a function that no later one covers. */
struct range {
        uint64_t start, end;
        uint64_t symbol_start;
        uint32_t name;
        uint32_t reserved;
};

struct perf_map {
        char *text; /* owned; names end in NUL where the lines did */
        struct range *ranges; /* owned; sorted, without overlap */
        uint32_t count;
};

struct entries {
        struct entry *entries; /* owned */
        uint32_t count, allocated;
};

static void entries_done(struct entries *e) {
        free(e->entries);
}

/* ---- the lines ---- */

static int hex_digit(char c) {
        if (c >= '0' && c <= '9')
                return c - '0';
        if (c >= 'a' && c <= 'f')
                return c - 'a' + 10;
        if (c >= 'A' && c <= 'F')
                return c - 'A' + 10;
        return -1;
}

/* A number and the blanks behind it. Some agents write "0x" before it. NULL: there is none, or too long a one. */
static const char *take_number(const char *p, uint64_t *ret) {
        uint64_t value = 0;
        int digits = 0;

        if (p[0] == '0' && (p[1] == 'x' || p[1] == 'X'))
                p += 2;
        for (; hex_digit(*p) >= 0; p++, digits++) {
                if (digits == HEX_DIGITS_MAX)
                        return NULL;
                value = value << 4 | (uint64_t) hex_digit(*p);
        }
        if (digits == 0 || *p != ' ')
                return NULL;
        *ret = value;
        return p + strspn(p, " ");
}

static bool parse_line(const char *line, struct entry *ret, const char **ret_name) {
        uint64_t start, bytes;
        const char *p;

        p = take_number(line, &start);
        p = p ? take_number(p, &bytes) : NULL;
        if (!p || *p == '\0' || bytes == 0 || bytes > PERF_MAP_SYMBOL_BYTES_MAX || start + bytes < start)
                return false;
        ret->start = start;
        ret->end = start + bytes;
        *ret_name = p;
        return true;
}

static int add_entry(struct entries *e, const struct entry *entry) {
        if (e->count == e->allocated) {
                uint32_t allocated = MAX(e->allocated * 2, (uint32_t) FIRST_ENTRIES);
                struct entry *entries = reallocarray(e->entries, allocated, sizeof(*entries));

                if (!entries)
                        return -ENOMEM;
                e->entries = entries;
                e->allocated = allocated;
        }
        e->entries[e->count++] = *entry;
        return 0;
}

/* Ends each line of the text with a NUL, and notes those that are functions. */
static int read_lines(struct perf_map *m, size_t bytes, struct entries *e) {
        char *p = m->text, *end = m->text + bytes, *newline;

        for (; (newline = memchr(p, '\n', (size_t) (end - p))); p = newline + 1) {
                struct entry entry = { .line = e->count };
                const char *name;
                int r;

                *newline = '\0';
                if (!parse_line(p, &entry, &name))
                        continue;
                if (newline - name > PERF_MAP_NAME_MAX)
                        ((char *) name)[PERF_MAP_NAME_MAX] = '\0';
                if (e->count == PERF_MAP_SYMBOLS_MAX)
                        return 0;
                entry.name = (uint32_t) (name - m->text);
                r = add_entry(e, &entry);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* ---- who covers whom ---- */

/* Entries that begin at or before the place that was reached, the latest line on top. Those that have ended
 * are taken off when they come to the top. */
struct heap {
        const struct entry **entries; /* borrowed */
        uint32_t count;
};

static void heap_push(struct heap *h, const struct entry *entry) {
        uint32_t i = h->count++;

        for (; i > 0 && h->entries[(i - 1) / 2]->line < entry->line; i = (i - 1) / 2)
                h->entries[i] = h->entries[(i - 1) / 2];
        h->entries[i] = entry;
}

static void heap_pop(struct heap *h) {
        const struct entry *last = h->entries[--h->count];
        uint32_t i = 0, child;

        for (; (child = 2 * i + 1) < h->count; i = child) {
                if (child + 1 < h->count && h->entries[child + 1]->line > h->entries[child]->line)
                        child++;
                if (h->entries[child]->line <= last->line)
                        break;
                h->entries[i] = h->entries[child];
        }
        h->entries[i] = last;
}

static int by_start(const void *a, const void *b) {
        const struct entry *x = a, *y = b;

        if (x->start != y->start)
                return x->start < y->start ? -1 : 1;
        return (x->line > y->line) - (x->line < y->line);
}

/* From `start` on the entry is on top, until `end`. */
static void add_range(struct perf_map *m, const struct entry *entry, uint64_t start, uint64_t end) {
        struct range *next = m->ranges + m->count;

        if (m->count > 0 && next[-1].end == start && next[-1].name == entry->name) {
                next[-1].end = end;
                return;
        }
        *next = (struct range){
                .start = start, .end = end, .symbol_start = entry->start, .name = entry->name
        };
        m->count++;
}

/* Goes through the beginnings of the entries in order. Between two of them, the entries on the heap have the
 * bytes, one after the other as they end. Each range but one begins or ends where an entry does: at most two
 * ranges an entry. */
static void cover(struct perf_map *m, const struct entries *e, struct heap *h) {
        uint64_t place = 0;

        for (uint32_t i = 0; i < e->count || h->count > 0;) {
                const struct entry *top = h->count > 0 ? h->entries[0] : NULL;
                uint64_t next = i < e->count ? e->entries[i].start : UINT64_MAX;

                if (top && top->end <= place) {
                        heap_pop(h);
                        continue;
                }
                if (top && place < next) {
                        add_range(m, top, place, MIN(top->end, next));
                        place = MIN(top->end, next);
                        continue;
                }
                place = next;
                heap_push(h, &e->entries[i++]);
        }
}

static int index_entries(struct perf_map *m, struct entries *e) {
        _cleanup_free_ const struct entry **space = NULL;
        struct heap heap = {};

        if (e->count == 0)
                return 0;
        space = calloc(e->count, sizeof(const struct entry *));
        m->ranges = calloc(e->count, 2 * sizeof(*m->ranges));
        if (!space || !m->ranges)
                return -ENOMEM;

        qsort(e->entries, e->count, sizeof(*e->entries), by_start);
        heap.entries = space;
        cover(m, e, &heap);
        return 0;
}

/* ---- the map ---- */

/* Takes the text, which has room for a NUL behind it. */
static int map_of_text(char *text, size_t bytes, struct perf_map **ret) {
        _cleanup_(perf_map_freep) struct perf_map *m = calloc(1, sizeof(*m));
        _cleanup_(entries_done) struct entries e = {};
        int r;

        if (!m) {
                free(text);
                return -ENOMEM;
        }
        m->text = text;
        r = read_lines(m, bytes, &e);
        if (r < 0)
                return r;
        r = index_entries(m, &e);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(m);
        return 0;
}

int perf_map_new(const char *text, size_t bytes, struct perf_map **ret) {
        char *copy;

        if (bytes > PERF_MAP_BYTES_MAX)
                return -EFBIG;
        copy = malloc(bytes + 1);
        if (!copy)
                return -ENOMEM;
        if (bytes > 0)
                memcpy(copy, text, bytes);
        copy[bytes] = '\0';
        return map_of_text(copy, bytes, ret);
}

int perf_map_new_fd(int fd, struct perf_map **ret) {
        _cleanup_free_ char *text = NULL;
        struct stat st;
        size_t bytes;
        ssize_t n;

        if (fstat(fd, &st) < 0)
                return -errno;
        bytes = (size_t) MIN(MAX(st.st_size, 0), (off_t) PERF_MAP_BYTES_MAX);
        text = malloc(bytes + 1);
        if (!text)
                return -ENOMEM;
        n = fd_pread_full(fd, text, bytes, 0);
        if (n < 0)
                return (int) n;
        text[n] = '\0';
        return map_of_text(TAKE_PTR(text), (size_t) n, ret);
}

struct perf_map *perf_map_free(struct perf_map *m) {
        if (!m)
                return NULL;

        free(m->text);
        free(m->ranges);
        free(m);
        return NULL;
}

uint32_t perf_map_count(const struct perf_map *m) {
        return m->count;
}

int perf_map_find(const struct perf_map *m, uint64_t address, struct perf_map_symbol *ret) {
        uint32_t low = 0, high = m->count;

        while (low < high) {
                uint32_t middle = low + (high - low) / 2;

                if (m->ranges[middle].end <= address)
                        low = middle + 1;
                else
                        high = middle;
        }
        if (low == m->count || m->ranges[low].start > address)
                return -ENOENT;
        *ret = (struct perf_map_symbol){ m->text + m->ranges[low].name, m->ranges[low].symbol_start };
        return 0;
}
