/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/page.h"

#include "common/macro.h"
#include "common/text.h"

static const char ellipsis[] = "…";

static const char *style_begin(enum page_style style) {
        switch (style) {
        case PAGE_BOLD: return "\x1b[0;1m";
        case PAGE_GREEN: return "\x1b[0;32m";
        case PAGE_GREY: return "\x1b[0;38;5;245m";
        default: return "";
        }
}

static void begin_line(struct page *p, enum page_style style, unsigned indent) {
        buf_printf(&p->text, "%*s", (int) indent, "");
        if (p->color)
                buf_puts(&p->text, style_begin(style));
}

static void end_line(struct page *p, enum page_style style) {
        if (p->color && style != PAGE_NORMAL)
                buf_puts(&p->text, "\x1b[0m");
        buf_putc(&p->text, '\n');
        p->lines++;
}

void page_blank(struct page *p) {
        end_line(p, PAGE_NORMAL);
}

/* Bytes of the first `columns` code points. The text is valid UTF-8: it has been escaped. */
static size_t prefix_bytes(const char *text, size_t columns) {
        size_t n = 0;

        while (text[n]) {
                bool begins = ((unsigned char) text[n] & 0xc0) != 0x80;

                if (begins && columns-- == 0)
                        break;
                n++;
        }
        return n;
}

/* How much of the text goes on a line of `room` columns: up to a space, or all of the room when there is none. */
static size_t line_bytes(const char *text, unsigned room) {
        size_t n = prefix_bytes(text, room), at = n;

        if (!text[n])
                return n;
        while (at > 0 && text[at] != ' ')
                at--;
        return at > 0 ? at : n;
}

void page_wrap(struct page *p, enum page_style style, unsigned indent, unsigned hanging, const char *text) {
        _cleanup_(buf_done) struct buf safe = BUF_NULL;
        const char *rest;

        text_escape_terminal(&safe, text);
        rest = buf_text(&safe);
        do {
                size_t n = line_bytes(rest, p->columns - MIN(indent, p->columns - 1));

                begin_line(p, style, indent);
                buf_append(&p->text, rest, n);
                end_line(p, style);
                rest += n;
                rest += strspn(rest, " ");
                indent = hanging;
        } while (*rest);
}

void page_line(struct page *p, enum page_style style, unsigned indent, const char *text) {
        _cleanup_(buf_done) struct buf safe = BUF_NULL;
        unsigned room = p->columns - MIN(indent, p->columns - 1);

        text_escape_terminal(&safe, text);
        begin_line(p, style, indent);
        if (text_columns(buf_text(&safe)) > room) {
                buf_append(&p->text, buf_text(&safe), prefix_bytes(buf_text(&safe), room - 1));
                buf_puts(&p->text, ellipsis);
        } else
                buf_puts(&p->text, buf_text(&safe));
        end_line(p, style);
}

void text_keep_end(struct buf *b, const char *text, unsigned width) {
        size_t columns = text_columns(text);

        if (columns <= width) {
                buf_puts(b, text);
                return;
        }
        buf_puts(b, ellipsis);
        buf_puts(b, text + prefix_bytes(text, columns - width + 1));
}

void text_keep_begin(struct buf *b, const char *text, unsigned width) {
        if (text_columns(text) <= width) {
                buf_puts(b, text);
                return;
        }
        buf_append(b, text, prefix_bytes(text, width - 1));
        buf_puts(b, ellipsis);
}
