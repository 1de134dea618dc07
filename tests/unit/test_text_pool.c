/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/text_pool.h"

static void equal_texts_have_one_number(void **state) {
        _cleanup_(text_pool_freep) struct text_pool *p = text_pool_new();
        uint32_t a = text_pool_add(p, "alpha", SIZE_MAX), b = text_pool_add(p, "beta", SIZE_MAX);

        assert_int_not_equal(a, b);
        assert_int_equal(text_pool_add(p, "alphabet", 5), a);
        assert_string_equal(text_pool_get(p, a), "alpha");
        assert_string_equal(text_pool_get(p, b), "beta");
        assert_int_equal(text_pool_count(p), 3);
}

static void nothing_is_number_0(void **state) {
        _cleanup_(text_pool_freep) struct text_pool *p = text_pool_new();

        assert_int_equal(text_pool_add(p, "", SIZE_MAX), 0);
        assert_int_equal(text_pool_add(p, "alpha", 0), 0);
        assert_string_equal(text_pool_get(p, 0), "");
        assert_string_equal(text_pool_get(p, 1000), "");
}

static void texts_without_an_end_are_cut(void **state) {
        _cleanup_(text_pool_freep) struct text_pool *p = text_pool_new();
        const char text[4] = { 'a', 'b', 'c', 'd' };

        assert_string_equal(text_pool_get(p, text_pool_add(p, text, sizeof(text))), "abcd");
}

static void there_is_a_limit(void **state) {
        _cleanup_(text_pool_freep) struct text_pool *p = text_pool_new();
        _cleanup_free_ char *text = malloc(1 << 20);
        unsigned n = 0;

        memset(text, 'x', 1 << 20);
        for (; n < 64; n++) {
                snprintf(text, 16, "%u", n);
                text[strlen(text)] = 'x';
                if (text_pool_add(p, text, 1 << 20) == 0)
                        break;
        }
        assert_int_equal(n, TEXT_POOL_BYTES_MAX >> 20);
        assert_int_not_equal(text_pool_add(p, "0", 1) + text_pool_count(p), 0); /* still usable */
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(equal_texts_have_one_number),
                cmocka_unit_test(nothing_is_number_0),
                cmocka_unit_test(texts_without_an_end_are_cut),
                cmocka_unit_test(there_is_a_limit),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
