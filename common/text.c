/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/text.h"

#include <string.h>

#include "common/macro.h"

static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */

/* Bytes of the UTF-8 sequence at s and its code point; 0: invalid (Unicode 15, table 3-7). Reads no byte
 * behind the NUL: a NUL is no continuation byte. */
static size_t decode(const char *s, uint32_t *ret) {
        const uint8_t *p = (const uint8_t *) s;
        size_t n;
        uint32_t c, least;

        if (p[0] < 0x80) {
                *ret = p[0];
                return 1;
        }
        if (p[0] >= 0xc2 && p[0] <= 0xdf) {
                n = 2;
                c = p[0] & 0x1f;
                least = 0x80;
        } else if ((p[0] & 0xf0) == 0xe0) {
                n = 3;
                c = p[0] & 0x0f;
                least = 0x800;
        } else if (p[0] >= 0xf0 && p[0] <= 0xf4) {
                n = 4;
                c = p[0] & 0x07;
                least = 0x10000;
        } else
                return 0;

        for (size_t i = 1; i < n; i++) {
                if ((p[i] & 0xc0) != 0x80)
                        return 0;
                c = c << 6 | (p[i] & 0x3f);
        }
        if (c < least || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
                return 0;
        *ret = c;
        return n;
}

static bool is_control(uint32_t c) {
        return c < 0x20 || (c >= 0x7f && c <= 0x9f);
}

/* What reorders or breaks a line without being seen. */
static bool is_deceptive(uint32_t c) {
        return c == 0x061c || c == 0x200e || c == 0x200f || (c >= 0x2028 && c <= 0x202e) ||
               (c >= 0x2066 && c <= 0x2069);
}

void text_escape_terminal(struct buf *b, const char *text) {
        while (*text) {
                uint32_t c;
                size_t n = decode(text, &c);

                if (n > 0 && !is_control(c) && !is_deceptive(c)) {
                        if (c == '\\')
                                buf_putc(b, '\\');
                        buf_append(b, text, n);
                } else {
                        n = MAX(n, (size_t) 1);
                        for (size_t i = 0; i < n; i++)
                                buf_printf(b, "\\x%02x", (uint8_t) text[i]);
                }
                text += n;
        }
}

void text_utf8(struct buf *b, const char *text) {
        while (*text) {
                uint32_t c;
                size_t n = decode(text, &c);

                if (n > 0)
                        buf_append(b, text, n);
                else
                        buf_puts(b, replacement);
                text += MAX(n, (size_t) 1);
        }
}

static const char *xml_entity(uint32_t c) {
        switch (c) {
        case '&': return "&amp;";
        case '<': return "&lt;";
        case '>': return "&gt;";
        case '"': return "&quot;";
        case '\'': return "&#39;";
        default: return NULL;
        }
}

void text_escape_xml(struct buf *b, const char *text) {
        while (*text) {
                uint32_t c = 0;
                size_t n = decode(text, &c);

                /* U+FFFE and U+FFFF are no characters of XML 1.0. */
                if (n == 0 || is_control(c) || c == 0xfffe || c == 0xffff)
                        buf_puts(b, replacement);
                else if (xml_entity(c))
                        buf_puts(b, xml_entity(c));
                else
                        buf_append(b, text, n);
                text += MAX(n, (size_t) 1);
        }
}

size_t text_columns(const char *text) {
        size_t columns = 0;

        while (*text) {
                uint32_t c;

                text += MAX(decode(text, &c), (size_t) 1);
                columns++;
        }
        return columns;
}

static uint64_t rounded(uint64_t n, uint64_t unit) {
        return n / unit + (n % unit >= unit - n % unit);
}

/* n/unit in at most three digits, without trailing zeros: 9234567 / 1000000 → "9.23". n < 1000 * unit. */
static void put_three_digits(struct buf *b, uint64_t n, uint64_t unit, const char *name) {
        unsigned decimals = n < 10 * unit ? 2 : n < 100 * unit ? 1 : 0;
        uint64_t scale = decimals == 2 ? 100 : decimals == 1 ? 10 : 1;
        uint64_t value = rounded(n * scale, unit);

        while (decimals > 0 && value % 10 == 0) {
                value /= 10;
                scale /= 10;
                decimals--;
        }
        if (decimals > 0)
                buf_printf(b, "%llu.%0*llu%s", (unsigned long long) (value / scale), (int) decimals,
                           (unsigned long long) (value % scale), name);
        else
                buf_printf(b, "%llu%s", (unsigned long long) value, name);
}

static void put_two_units(struct buf *b, uint64_t n, uint64_t per_large, const char *large,
                          const char *small) {
        buf_printf(b, "%llu%s", (unsigned long long) (n / per_large), large);
        if (n % per_large > 0)
                buf_printf(b, " %llu%s", (unsigned long long) (n % per_large), small);
}

/* Each limit is where the smaller unit would round up to the next one. */
void text_span(struct buf *b, uint64_t usec) {
        uint64_t seconds = rounded(usec, USEC_PER_SEC), minutes = rounded(usec, 60 * USEC_PER_SEC);

        if (usec == UINT64_MAX)
                buf_puts(b, "infinity");
        else if (usec < USEC_PER_MSEC)
                buf_printf(b, "%lluus", (unsigned long long) usec);
        else if (usec < USEC_PER_SEC - USEC_PER_MSEC / 2)
                put_three_digits(b, usec, USEC_PER_MSEC, "ms");
        else if (usec < 60 * USEC_PER_SEC - USEC_PER_SEC / 20)
                put_three_digits(b, usec, USEC_PER_SEC, "s");
        else if (seconds < 3600)
                put_two_units(b, seconds, 60, "min", "s");
        else if (minutes < 24 * 60)
                put_two_units(b, minutes, 60, "h", "min");
        else
                put_two_units(b, rounded(usec, 3600 * USEC_PER_SEC), 24, "d", "h");
}

void text_count(struct buf *b, uint64_t n) {
        char digits[24];
        int len = snprintf(digits, sizeof(digits), "%llu", (unsigned long long) n);

        for (int i = 0; i < len; i++) {
                if (i > 0 && (len - i) % 3 == 0)
                        buf_putc(b, ',');
                buf_putc(b, digits[i]);
        }
}

void text_hex(struct buf *b, const uint8_t *bytes, size_t n) {
        for (size_t i = 0; i < n; i++)
                buf_printf(b, "%02x", bytes[i]);
}
