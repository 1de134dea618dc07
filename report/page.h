/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdbool.h>

#include "common/buf.h"

/*
 * Lines for a terminal of limited width. All texts are raw and become safe
 * here: nothing else in the report writes to a terminal.
 */

enum page_style {
        PAGE_NORMAL,
        PAGE_BOLD, /* the verdict, headings */
        PAGE_GREEN, /* what to type */
        PAGE_GREY, /* what most readers skip */
};

struct page {
        struct buf text;
        unsigned columns;
        unsigned lines; /* written so far */
        bool color;
};

enum { PAGE_COLUMNS_DEFAULT = 80, PAGE_COLUMNS_MIN = 40, PAGE_COLUMNS_MAX = 160 };

void page_blank(struct page *p);
/* Broken at spaces; the first line begins at `indent`, others at `hanging`. */
void page_wrap(struct page *p, enum page_style style, unsigned indent, unsigned hanging, const char *text);
/* One line; what does not fit is cut at its end and ends in "…". */
void page_line(struct page *p, enum page_style style, unsigned indent, const char *text);
/* The end of a name is what tells it apart: cut at the beginning to `width` columns. Raw in, raw out. */
void text_keep_end(struct buf *b, const char *text, unsigned width);
void text_keep_begin(struct buf *b, const char *text, unsigned width);
