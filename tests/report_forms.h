/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The grammar of each form of the report, for tests with names that try to break it. Each function gets the whole
 * output and says what is wrong with it; NULL: nothing is. They share no code with the writers.
 */

#include <ctype.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/report.h"

enum { FORMS_DEPTH_MAX = 64 };

/* Bytes of the UTF-8 sequence at p, 0: it is none; *ret is the code point. */
static inline size_t forms_utf8(const char *text, unsigned *ret) {
        const unsigned char *p = (const unsigned char *) text;
        size_t n = p[0] < 0x80   ? 1
                   : p[0] < 0xc0 ? 0
                   : p[0] < 0xe0 ? 2
                   : p[0] < 0xf0 ? 3
                   : p[0] < 0xf8 ? 4
                                 : 0;
        static const unsigned least[] = { 0, 0, 0x80, 0x800, 0x10000 };
        unsigned c = n == 1 ? p[0] : p[0] & (0x7fu >> n);

        for (size_t i = 1; i < n; i++) {
                if ((p[i] & 0xc0) != 0x80)
                        return 0;
                c = c << 6 | (p[i] & 0x3f);
        }
        if (n == 0 || c < least[n] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
                return 0;
        *ret = c;
        return n;
}

/* Valid UTF-8 without control characters but newlines; reordering: of the direction of text neither. */
static inline const char *forms_check_text(const char *text, bool reordering) {
        unsigned c = 0;

        for (size_t n; *text; text += n) {
                n = forms_utf8(text, &c);
                if (n == 0)
                        return "no UTF-8";
                if ((c < 0x20 && c != '\n') || (c >= 0x7f && c <= 0x9f))
                        return "a control character";
                if (reordering && ((c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069)))
                        return "a change of direction";
        }
        return NULL;
}

static inline const char *forms_check_screen(const char *text, size_t columns) {
        const char *wrong = forms_check_text(text, true);
        size_t width = 0;
        unsigned c = 0;

        for (size_t n; !wrong && *text; text += n) {
                n = forms_utf8(text, &c);
                width = c == '\n' ? 0 : width + 1;
                if (width > columns)
                        wrong = "a line that is too long";
        }
        return wrong;
}

/* "FRAME;FRAME COUNT": no frame is empty or has a space. */
static inline const char *forms_check_folded(const char *text) {
        const char *wrong = forms_check_text(text, true);

        while (!wrong && *text) {
                size_t line = strcspn(text, "\n"), stack = strcspn(text, " \n"), digits;

                digits = strspn(text + stack + (stack < line), "0123456789");
                if (text[line] != '\n')
                        wrong = "a line without an end";
                else if (stack == 0 || stack == line || digits == 0 || stack + 1 + digits != line)
                        wrong = "a line that is not STACK COUNT";
                else if (*text == ';' || text[stack - 1] == ';' || memmem(text, stack, ";;", 2))
                        wrong = "an empty frame";
                text += line + 1;
        }
        return wrong;
}

static inline const char *forms_check_json(const char *text) {
        json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, NULL);

        if (!root)
                return "no JSON";
        json_decref(root);
        return NULL;
}

/* Behind an entity or character; NULL: a markup character that is not escaped. */
static inline const char *forms_character(const char *p) {
        static const char *const entities[] = { "&amp;", "&lt;", "&gt;", "&quot;", "&#39;" };

        if (*p != '&')
                return *p == '<' ? NULL : p + 1;
        for (size_t i = 0; i < sizeof(entities) / sizeof(*entities); i++)
                if (strncmp(p, entities[i], strlen(entities[i])) == 0)
                        return p + strlen(entities[i]);
        return NULL;
}

/* Behind the tag that begins at p, "<name a="…">"; NULL: it is no tag. Its name is *name. */
static inline const char *forms_tag(const char *p, const char **name, size_t *size, bool *closes,
                                    bool *empty) {
        *closes = p[1] == '/';
        *name = p + 1 + *closes;
        *size = strspn(*name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
        p = *name + *size;
        while (*size > 0 && *p == ' ') {
                p += 1 + strspn(p + 1, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-:");
                if (*p != '=' || p[1] != '"')
                        return NULL;
                for (p += 2; p && *p && *p != '"';)
                        p = forms_character(p);
                if (!p || *p++ != '"')
                        return NULL;
        }
        *empty = *p == '/';
        p += *empty;
        return *size > 0 && *p == '>' ? p + 1 : NULL;
}

/* One tree of elements; texts and attributes hold no markup; nothing hides in comments or declarations. */
static inline const char *forms_check_svg(const char *text) {
        static const char data[] = "<![CDATA[";
        struct {
                const char *name;
                size_t size;
        } open[FORMS_DEPTH_MAX];
        const char *wrong = forms_check_text(text, false), *p = text;
        size_t depth = 0;

        while (!wrong && *p) {
                const char *name;
                bool closes, empty;
                size_t size;

                if (strncmp(p, data, strlen(data)) == 0) {
                        p = strstr(p, "]]>");
                        if (!p)
                                return "data without an end";
                        p += strlen("]]>");
                        continue;
                }
                if (*p != '<') {
                        p = forms_character(p);
                        if (!p)
                                return "markup that is not escaped";
                        continue;
                }
                p = forms_tag(p, &name, &size, &closes, &empty);
                if (!p)
                        return "a broken tag";
                if (closes) {
                        if (depth == 0 || open[depth - 1].size != size ||
                            memcmp(open[depth - 1].name, name, size) != 0)
                                return "a tag that closes another";
                        depth--;
                } else if (!empty) {
                        if (depth == FORMS_DEPTH_MAX)
                                return "too many levels";
                        open[depth].name = name;
                        open[depth++].size = size;
                }
        }
        return wrong ? wrong : depth > 0 ? "a tag that is not closed" : NULL;
}

/* The report in this form, malloc()ed; NULL: it could not be written. */
static inline char *forms_write(const struct recording *r, enum report_format format,
                                const struct report_options *options) {
        char *text = NULL;
        size_t size;
        FILE *out = open_memstream(&text, &size);
        int error;

        if (!out)
                return NULL;
        error = report_write(r, format, options, out);
        if (fclose(out) == 0 && error >= 0)
                return text;
        free(text);
        return NULL;
}

/* Lines of a stack begin with a tab. */
static inline const char *forms_check_perf(const char *text) {
        char *copy = strdup(text);
        const char *wrong;

        if (!copy)
                return "no memory";
        for (char *p = copy; *p; p++)
                if (*p == '\t' && (p == copy || p[-1] == '\n'))
                        *p = ' ';
        wrong = forms_check_text(copy, true);
        free(copy);
        return wrong;
}

static inline const char *forms_check(enum report_format format, const char *text, size_t columns) {
        switch (format) {
        case REPORT_TEXT: return forms_check_screen(text, columns);
        case REPORT_PERF: return forms_check_perf(text);
        case REPORT_SPEEDSCOPE:
        case REPORT_FIREFOX:
        case REPORT_TRACE:
        case REPORT_JSON:
        case REPORT_JSON_PRETTY: return forms_check_json(text);
        case REPORT_FOLDED: return forms_check_folded(text);
        case REPORT_SVG: return forms_check_svg(text);
        default: return NULL;
        }
}
