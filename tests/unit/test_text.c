/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "common/macro.h"
#include "common/text.h"

struct pair {
        const char *from, *to;
};

static void expect(void (*f)(struct buf *b, const char *text), const struct pair *pairs, size_t n) {
        for (size_t i = 0; i < n; i++) {
                _cleanup_(buf_done) struct buf b = BUF_NULL;

                f(&b, pairs[i].from);
                assert_string_equal(buf_text(&b), pairs[i].to);
        }
}

static void terminals_get_one_line_without_control_characters(void **state) {
        static const struct pair pairs[] = {
                { "plain", "plain" },
                { "", "" },
                { "a\nb\tc", "a\\x0ab\\x09c" },
                { "\033[31mred", "\\x1b[31mred" },
                { "\x7f", "\\x7f" },
                { "back\\slash", "back\\\\slash" },
                { "\xc3\xa9", "\xc3\xa9" },
                { "bad\xff\xfe", "bad\\xff\\xfe" },
                { "\xc3", "\\xc3" }, /* cut */
                { "\xc0\x80", "\\xc0\\x80" }, /* overlong NUL */
                { "\xed\xa0\x80", "\\xed\\xa0\\x80" }, /* a surrogate */
                { "\xc2\x9b", "\\xc2\\x9b" }, /* C1: CSI */
                { "\xe2\x80\xae", "\\xe2\\x80\\xae" }, /* right-to-left override */
        };

        expect(text_escape_terminal, pairs, ARRAY_SIZE(pairs));
}

static void json_gets_valid_utf8(void **state) {
        static const struct pair pairs[] = {
                { "a\nb", "a\nb" },
                { "\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80" },
                { "x\xffy", "x\xef\xbf\xbdy" },
                { "\xf8", "\xef\xbf\xbd" },
        };

        expect(text_utf8, pairs, ARRAY_SIZE(pairs));
}

static void markup_stays_text(void **state) {
        static const struct pair pairs[] = {
                { "<b>&\"'", "&lt;b&gt;&amp;&quot;&#39;" },
                { "a\001b", "a\xef\xbf\xbd"
                            "b" },
                { "x\xff", "x\xef\xbf\xbd" },
        };

        expect(text_escape_xml, pairs, ARRAY_SIZE(pairs));
}

static void spans_have_two_units_or_three_digits(void **state) {
        static const struct {
                uint64_t usec;
                const char *text;
        } pairs[] = {
                { 0, "0us" },
                { 120, "120us" },
                { 31000, "31ms" },
                { 1234, "1.23ms" },
                { 9200000, "9.2s" },
                { 123 * USEC_PER_SEC, "2min 3s" },
                { 3720 * USEC_PER_SEC, "1h 2min" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
                _cleanup_(buf_done) struct buf b = BUF_NULL;

                text_span(&b, pairs[i].usec);
                assert_string_equal(buf_text(&b), pairs[i].text);
        }
}

static void counts_have_their_thousands_apart(void **state) {
        static const struct {
                uint64_t n;
                const char *text;
        } pairs[] = { { 0, "0" },
                      { 999, "999" },
                      { 1000, "1,000" },
                      { 46259, "46,259" },
                      { 1073741816, "1,073,741,816" } };

        for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
                _cleanup_(buf_done) struct buf b = BUF_NULL;

                text_count(&b, pairs[i].n);
                assert_string_equal(buf_text(&b), pairs[i].text);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(terminals_get_one_line_without_control_characters),
                cmocka_unit_test(json_gets_valid_utf8),
                cmocka_unit_test(markup_stays_text),
                cmocka_unit_test(spans_have_two_units_or_three_digits),
                cmocka_unit_test(counts_have_their_thousands_apart),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
