/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/table.h"

#include <unistd.h>

#include "client/message.h"
#include "client/terminal.h"
#include "common/buf.h"
#include "common/macro.h"
#include "common/text.h"

enum { TABLE_COLUMNS_MAX = 8, TABLE_GAP = 2 };

/* Bytes of the first `columns` characters. Cells are UTF-8 after their escaping. */
static size_t cut(const char *text, size_t columns) {
        size_t i = 0;

        for (; text[i]; i++)
                if ((text[i] & 0xc0) != 0x80 && columns-- == 0)
                        break;
        return i;
}

static void put_row(struct buf *out, const char *const *cells, const size_t *widths, size_t n_columns,
                    size_t room) {
        for (size_t i = 0; i < n_columns; i++) {
                _cleanup_(buf_done) struct buf cell = BUF_NULL;
                size_t width;

                text_escape_terminal(&cell, cells[i]);
                if (i + 1 == n_columns) {
                        buf_append(out, buf_text(&cell), cut(buf_text(&cell), room));
                        break;
                }
                width = text_columns(buf_text(&cell));
                buf_puts(out, buf_text(&cell));
                buf_printf(out, "%*s", (int) (widths[i] - MIN(width, widths[i]) + TABLE_GAP), "");
                room -= MIN(room, widths[i] + TABLE_GAP);
        }
        buf_putc(out, '\n');
}

static void measure(const char *const *cells, size_t *widths, size_t n_columns) {
        for (size_t i = 0; i < n_columns; i++) {
                _cleanup_(buf_done) struct buf cell = BUF_NULL;

                text_escape_terminal(&cell, cells[i]);
                widths[i] = MAX(widths[i], text_columns(buf_text(&cell)));
        }
}

int table_print(const char *const *header, const char *const *cells, size_t n_rows, size_t n_columns) {
        _cleanup_(buf_done) struct buf out = BUF_NULL;
        size_t widths[TABLE_COLUMNS_MAX] = {};
        size_t room = isatty(STDOUT_FILENO) ? terminal_columns(STDOUT_FILENO) : SIZE_MAX;

        measure(header, widths, n_columns);
        for (size_t i = 0; i < n_rows; i++)
                measure(cells + i * n_columns, widths, n_columns);

        put_row(&out, header, widths, n_columns, room);
        for (size_t i = 0; i < n_rows; i++)
                put_row(&out, cells + i * n_columns, widths, n_columns, room);
        if (buf_error(&out) < 0)
                return message_no_memory();
        fputs(buf_text(&out), stdout);
        return 0;
}

int table_print_json(json_t *value, enum options_json mode) {
        _cleanup_free_ char *text = json_dumps(value, mode == JSON_PRETTY ? JSON_INDENT(4) : JSON_COMPACT);

        if (!text)
                return message_no_memory();
        puts(text);
        return 0;
}
