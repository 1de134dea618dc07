/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolize/dwarf_line.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
        FORMATS_MAX = 16, /* of a file or directory; the standard knows five */
};
#define END_FILE UINT32_MAX /* no code from here on */

struct row {
        uint64_t address;
        uint32_t file, line;
};

struct file {
        const char *name; /* or NULL */
        uint64_t directory;
};

struct sequence {
        uint64_t begin;
        uint32_t first, count; /* rows */
};

struct dwarf_lines {
        const struct dwarf_unit *unit; /* borrowed */
        uint16_t version;

        /* owned */
        struct row *rows;
        size_t row_count;
        struct file *files;
        size_t file_count;
        const char **directories; /* texts inside the file */
        size_t directory_count;
};

/* A table while it is read. */
struct program {
        struct dwarf_unit reader; /* the unit with version and sizes of the table; owns nothing */
        struct dwarf_cursor cursor;
        uint8_t minimum_instruction, line_range, opcode_base;
        int8_t line_base;
        uint8_t lengths[256]; /* operands of standard opcodes */

        /* the machine's registers */
        uint64_t address, file, line;

        struct buf files, directories;
        struct buf rows, sequences;
        uint32_t sequence_first;
        bool sequence_bad;
};

struct format {
        uint64_t content; /* DW_LNCT_* */
        struct dwarf_attribute attribute;
};

/* ---- the header ---- */

static int add_file(struct program *p, const char *name, uint64_t directory) {
        if (p->files.size / sizeof(struct file) == DWARF_FILES_MAX)
                return -E2BIG;
        buf_append(&p->files, &(struct file){ .name = name, .directory = directory }, sizeof(struct file));
        return 0;
}

static int add_directory(struct program *p, const char *name) {
        if (p->directories.size / sizeof(name) == DWARF_FILES_MAX)
                return -E2BIG;
        buf_append(&p->directories, &name, sizeof(name));
        return 0;
}

/* A file as DW_LNE_define_file and the tables before DWARF 5 write it. */
static int read_old_file(struct program *p, const char *name) {
        uint64_t directory = dwarf_uleb(&p->cursor);

        dwarf_uleb(&p->cursor); /* time */
        dwarf_uleb(&p->cursor); /* size */
        return p->cursor.failed ? -EBADMSG : add_file(p, name, directory);
}

/* Both lists end with an empty name. */
static int read_old_tables(struct program *p) {
        const char *name;
        int r = 0;

        while (r == 0 && (name = dwarf_text(&p->cursor)) && *name)
                r = add_directory(p, name);
        while (r == 0 && (name = dwarf_text(&p->cursor)) && *name)
                r = read_old_file(p, name);
        return r == 0 && p->cursor.failed ? -EBADMSG : r;
}

static int read_entry(struct program *p, const struct format *formats, unsigned count, struct file *ret) {
        *ret = (struct file){};
        for (unsigned i = 0; i < count; i++) {
                struct dwarf_value value;

                if (!dwarf_value_read(&p->reader, &p->cursor, &formats[i].attribute, &value))
                        return -ENOTSUP;
                if (p->cursor.failed)
                        return -EBADMSG;
                if (formats[i].content == DW_LNCT_path)
                        ret->name = dwarf_value_text(&p->reader, &value);
                if (formats[i].content == DW_LNCT_directory_index)
                        ret->directory = value.number;
        }
        return 0;
}

/* One of the two tables of DWARF 5. Entries that take no bytes end at the limit of files. */
static int read_table(struct program *p, bool of_files) {
        struct format formats[FORMATS_MAX] = {};
        unsigned count = dwarf_u8(&p->cursor);
        uint64_t entries;

        if (count > FORMATS_MAX)
                return -ENOTSUP;
        for (unsigned i = 0; i < count; i++) {
                formats[i].content = dwarf_uleb(&p->cursor);
                formats[i].attribute.form = (uint16_t) dwarf_uleb(&p->cursor);
        }

        entries = dwarf_uleb(&p->cursor);
        for (uint64_t i = 0; i < entries; i++) {
                struct file file;
                int r;

                r = p->cursor.failed ? -EBADMSG : read_entry(p, formats, count, &file);
                if (r == 0)
                        r = of_files ? add_file(p, file.name, file.directory) : add_directory(p, file.name);
                if (r < 0)
                        return r;
        }
        return 0;
}

static void read_opcodes(struct program *p) {
        struct dwarf_cursor *c = &p->cursor;

        p->minimum_instruction = dwarf_u8(c);
        if (p->reader.version >= 4)
                dwarf_u8(c); /* operations of one instruction: 1 here */
        dwarf_u8(c); /* statements or not: all rows count */
        p->line_base = (int8_t) dwarf_u8(c);
        p->line_range = dwarf_u8(c);
        p->opcode_base = dwarf_u8(c);
        for (unsigned i = 1; i < p->opcode_base; i++)
                p->lengths[i] = dwarf_u8(c);
}

/* Afterwards the cursor is at the program and ends with it. */
static int read_header(struct program *p) {
        struct dwarf_cursor *c = &p->cursor;
        uint64_t length = dwarf_length(c, &p->reader.offset_bytes), header;
        const uint8_t *begin;
        int r;

        if (c->failed || length > dwarf_left(c))
                return -EBADMSG;
        c->end = c->at + length;
        p->reader.version = (uint16_t) dwarf_uint(c, 2);
        if (p->reader.version < 2 || p->reader.version > 5)
                return -ENOTSUP;
        if (p->reader.version >= 5) {
                p->reader.address_bytes = dwarf_u8(c);
                dwarf_u8(c); /* segment selectors */
        }
        header = dwarf_uint(c, p->reader.offset_bytes);
        if (c->failed || header > dwarf_left(c))
                return -EBADMSG;
        begin = c->at + header;

        read_opcodes(p);
        if (p->reader.version < 5)
                r = read_old_tables(p);
        else {
                r = read_table(p, false);
                r = r ?: read_table(p, true);
        }
        if (r < 0)
                return r;
        if (c->failed || p->line_range == 0 || p->opcode_base == 0)
                return -EBADMSG;
        c->at = begin;
        return 0;
}

/* ---- the program ---- */

static struct row *last_row(struct program *p) {
        size_t count = p->rows.size / sizeof(struct row);

        return count == p->sequence_first ? NULL : &((struct row *) p->rows.data)[count - 1];
}

/* Of rows at one address the last counts; a row that says what the one before said is none. */
static int emit(struct program *p, uint32_t file) {
        struct row row = { .address = p->address, .file = file, .line = (uint32_t) p->line };
        struct row *last = last_row(p);

        if (last && last->address > row.address)
                p->sequence_bad = true;
        if (last && last->address == row.address)
                *last = row;
        else if (!last || last->file != row.file || last->line != row.line) {
                if (p->rows.size / sizeof(row) == DWARF_ROWS_MAX)
                        return -E2BIG;
                buf_append(&p->rows, &row, sizeof(row));
        }
        return 0;
}

static void begin_sequence(struct program *p) {
        p->address = 0;
        p->file = p->line = 1;
        p->sequence_first = (uint32_t) (p->rows.size / sizeof(struct row));
        p->sequence_bad = false;
}

/* Code that the linker dropped is at 0 or, by lld, at the end of everything. */
static int end_sequence(struct program *p) {
        const struct row *rows;
        struct sequence sequence = { .first = p->sequence_first };
        int r;

        r = emit(p, END_FILE);
        if (r < 0 || buf_error(&p->rows) < 0)
                return r ?: buf_error(&p->rows);

        rows = (const struct row *) p->rows.data + sequence.first;
        sequence.count = (uint32_t) (p->rows.size / sizeof(struct row)) - sequence.first;
        sequence.begin = rows[0].address;
        if (p->sequence_bad || sequence.count < 2 || sequence.begin == 0 || sequence.begin >= UINT64_MAX - 1)
                p->rows.size = sequence.first * sizeof(struct row);
        else
                buf_append(&p->sequences, &sequence, sizeof(sequence));
        begin_sequence(p);
        return 0;
}

static int run_extended(struct program *p) {
        struct dwarf_cursor *c = &p->cursor;
        uint64_t length = dwarf_uleb(c);
        const uint8_t *end;
        const char *name;
        int r = 0;

        if (c->failed || length == 0 || length > dwarf_left(c))
                return -EBADMSG;
        end = c->at + length;
        switch (dwarf_u8(c)) {
        case DW_LNE_end_sequence: r = end_sequence(p); break;
        case DW_LNE_set_address: p->address = dwarf_uint(c, (unsigned) MIN(length - 1, (uint64_t) 8)); break;
        case DW_LNE_define_file:
                name = dwarf_text(c);
                r = name ? read_old_file(p, name) : -EBADMSG;
                break;
        default: break;
        }
        c->at = end;
        return r;
}

static int run_standard(struct program *p, uint8_t opcode) {
        struct dwarf_cursor *c = &p->cursor;

        switch (opcode) {
        case DW_LNS_copy: return emit(p, (uint32_t) MIN(p->file, (uint64_t) END_FILE - 1));
        case DW_LNS_advance_pc: p->address += dwarf_uleb(c) * p->minimum_instruction; return 0;
        case DW_LNS_advance_line: p->line += (uint64_t) dwarf_sleb(c); return 0;
        case DW_LNS_set_file: p->file = dwarf_uleb(c); return 0;
        case DW_LNS_const_add_pc:
                p->address += (uint64_t) ((255 - p->opcode_base) / p->line_range) * p->minimum_instruction;
                return 0;
        case DW_LNS_fixed_advance_pc: p->address += dwarf_uint(c, 2); return 0;
        default:
                for (unsigned i = 0; i < p->lengths[opcode]; i++)
                        dwarf_uleb(c);
                return 0;
        }
}

static int run_special(struct program *p, uint8_t opcode) {
        unsigned adjusted = (unsigned) (opcode - p->opcode_base);

        p->address += (uint64_t) (adjusted / p->line_range) * p->minimum_instruction;
        p->line += (uint64_t) (int64_t) (p->line_base + (int) (adjusted % p->line_range));
        return emit(p, (uint32_t) MIN(p->file, (uint64_t) END_FILE - 1));
}

static int run(struct program *p) {
        begin_sequence(p);
        while (dwarf_left(&p->cursor) > 0) {
                uint8_t opcode = dwarf_u8(&p->cursor);
                int r;

                if (opcode >= p->opcode_base)
                        r = run_special(p, opcode);
                else if (opcode == 0)
                        r = run_extended(p);
                else
                        r = run_standard(p, opcode);
                if (r < 0)
                        return r;
        }
        /* A sequence without an end says nothing about where its last row ends. */
        p->rows.size = MIN(p->rows.size, p->sequence_first * sizeof(struct row));
        return 0;
}

/* ---- the result ---- */

static int by_begin(const void *a, const void *b) {
        const struct sequence *x = a, *y = b;

        if (x->begin != y->begin)
                return x->begin < y->begin ? -1 : 1;
        return (x->first > y->first) - (x->first < y->first);
}

/* Sequences in the order of their addresses: linkers move functions, not their line tables. */
static int sort_rows(struct program *p, struct dwarf_lines *l) {
        size_t count = p->sequences.size / sizeof(struct sequence);
        struct sequence *sequences = (struct sequence *) p->sequences.data;
        size_t rows = p->rows.size / sizeof(struct row);

        if (rows == 0)
                return 0;
        l->rows = malloc(rows * sizeof(struct row));
        if (!l->rows)
                return -ENOMEM;

        qsort(sequences, count, sizeof(*sequences), by_begin);
        for (size_t i = 0; i < count; i++) {
                memcpy(l->rows + l->row_count, (const struct row *) p->rows.data + sequences[i].first,
                       sequences[i].count * sizeof(struct row));
                l->row_count += sequences[i].count;
        }
        return 0;
}

static int take(struct program *p, struct dwarf_lines *l) {
        char *files, *directories;
        int r;

        r = buf_error(&p->rows) ?: buf_error(&p->sequences) ?: sort_rows(p, l);
        if (r < 0)
                return r;

        l->version = p->reader.version;
        l->file_count = p->files.size / sizeof(struct file);
        l->directory_count = p->directories.size / sizeof(char *);
        r = buf_take(&p->files, &files, NULL);
        if (r < 0)
                return r;
        l->files = (struct file *) files;
        r = buf_take(&p->directories, &directories, NULL);
        if (r < 0)
                return r;
        l->directories = (const char **) directories;
        return 0;
}

static void program_done(struct program *p) {
        buf_done(&p->files);
        buf_done(&p->directories);
        buf_done(&p->rows);
        buf_done(&p->sequences);
}

int dwarf_lines_new(const struct dwarf_unit *u, struct dwarf_lines **ret) {
        _cleanup_(dwarf_lines_freep) struct dwarf_lines *l = NULL;
        _cleanup_(program_done) struct program p = { .reader = *u };
        int r;

        if (!u->has_line || !u->file->spans[DWARF_LINE].data)
                return -ENODATA;
        l = calloc(1, sizeof(*l));
        if (!l)
                return -ENOMEM;
        l->unit = u;

        p.cursor = dwarf_cursor_at(&u->file->spans[DWARF_LINE], u->line_offset);
        r = read_header(&p);
        r = r ?: dwarf_file_spend(u->file, dwarf_left(&p.cursor));
        r = r ?: run(&p);
        r = r ?: take(&p, l);
        if (r < 0)
                return r;

        *ret = TAKE_PTR(l);
        return 0;
}

struct dwarf_lines *dwarf_lines_free(struct dwarf_lines *l) {
        if (!l)
                return NULL;

        free(l->rows);
        free(l->files);
        free(l->directories);
        free(l);
        return NULL;
}

int dwarf_lines_find(const struct dwarf_lines *l, uint64_t address, uint64_t *ret_file, uint32_t *ret_line) {
        size_t low = 0, high = l->row_count;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (l->rows[middle].address <= address)
                        low = middle + 1;
                else
                        high = middle;
        }
        if (low == 0 || l->rows[low - 1].file == END_FILE)
                return -ENOENT;
        *ret_file = l->rows[low - 1].file;
        *ret_line = l->rows[low - 1].line;
        return 0;
}

/* Number 0 is where the compiler ran; before DWARF 5 the table does not hold it. */
static const char *directory_of(const struct dwarf_lines *l, uint64_t index) {
        if (l->version < 5) {
                if (index == 0)
                        return NULL;
                index--;
        }
        return index < l->directory_count ? l->directories[index] : NULL;
}

static void append_component(struct buf *path, size_t begin, const char *text) {
        if (!text || !*text)
                return;
        if (path->size > begin && path->data[path->size - 1] != '/')
                buf_putc(path, '/');
        buf_puts(path, text);
}

void dwarf_lines_path(const struct dwarf_lines *l, uint64_t file, struct buf *path) {
        const char *name, *directory;
        size_t begin = path->size;

        if (l->version < 5 && file-- == 0)
                return;
        if (file >= l->file_count || !l->files[file].name)
                return;

        name = l->files[file].name;
        directory = name[0] == '/' ? NULL : directory_of(l, l->files[file].directory);
        if (name[0] != '/' && (!directory || directory[0] != '/'))
                append_component(path, begin, l->unit->comp_dir);
        append_component(path, begin, directory);
        append_component(path, begin, name);
}

size_t dwarf_lines_bytes(const struct dwarf_lines *l) {
        return sizeof(*l) + l->row_count * sizeof(*l->rows) + l->file_count * sizeof(*l->files) +
               l->directory_count * sizeof(*l->directories);
}
