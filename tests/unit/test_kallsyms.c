/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbolize/kallsyms.h"

static const char text[] = "ffffffff81000000 T _stext\n"
                           "ffffffff81000000 T startup_64\n"
                           "ffffffff81000100 t __pfx_do_one\n"
                           "ffffffff81000110 t do_one_alias\n"
                           "ffffffff81000110 T do_one\n"
                           "ffffffff81000200 W weak_one\n"
                           "ffffffff81000300 D _etext\n"
                           "0000000000001000 A fixed_percpu_data\n"
                           "ffffffffc0200000 t read_it\t[ext4]\n"
                           "ffffffffc0100000 t bpf_prog_6deef7357e7b4530_sd_fw_ingress\t[bpf]\n";

static struct kallsyms *table(void) {
        struct kallsyms *k = NULL;

        assert_int_equal(kallsyms_new(text, strlen(text), &k), 0);
        return k;
}

static void finds_functions_by_any_of_their_bytes(void **state) {
        _cleanup_(kallsyms_freep) struct kallsyms *k = table();
        struct kallsyms_symbol symbol;

        assert_int_equal(kallsyms_find(k, 0xffffffff81000110, &symbol), 0);
        assert_string_equal(symbol.name, "do_one"); /* the global one */
        assert_string_equal(symbol.module, "");
        assert_int_equal(kallsyms_find(k, 0xffffffff810001ff, &symbol), 0);
        assert_string_equal(symbol.name, "do_one");
        assert_int_equal(symbol.start, 0xffffffff81000110);
        assert_int_equal(kallsyms_find(k, 0xffffffff810002ff, &symbol), 0);
        assert_string_equal(symbol.name, "weak_one");
}

static void says_which_module_a_function_is_in(void **state) {
        _cleanup_(kallsyms_freep) struct kallsyms *k = table();
        struct kallsyms_symbol symbol;

        assert_int_equal(kallsyms_find(k, 0xffffffffc0200010, &symbol), 0);
        assert_string_equal(symbol.name, "read_it");
        assert_string_equal(symbol.module, "ext4");
        assert_int_equal(kallsyms_find(k, 0xffffffffc0100001, &symbol), 0);
        assert_string_equal(symbol.module, "bpf");
}

static void what_lies_in_no_function_has_no_name(void **state) {
        static const uint64_t addresses[] = {
                0,
                0x1000, /* data */
                0xffffffff80ffffff, /* far behind data, before the first function */
                0xffffffff81000300, /* behind the end of the kernel's code */
                0xffffffffc0200000 + KALLSYMS_SYMBOL_BYTES_MAX, /* a hole */
                UINT64_MAX,
        };
        _cleanup_(kallsyms_freep) struct kallsyms *k = table();
        struct kallsyms_symbol symbol = { .start = 7 };

        for (size_t i = 0; i < ARRAY_SIZE(addresses); i++)
                assert_int_equal(kallsyms_find(k, addresses[i], &symbol), -ENOENT);
        assert_int_equal(symbol.start, 7);
}

static void hidden_addresses_are_told_from_no_names(void **state) {
        static const char hidden[] = "0000000000000000 T _stext\n0000000000000000 t read_it\t[ext4]\n";
        static const char data[] = "ffffffff81000000 D jiffies\n";
        struct kallsyms *k = NULL;

        assert_int_equal(kallsyms_new(hidden, strlen(hidden), &k), -EACCES);
        assert_int_equal(kallsyms_new(data, strlen(data), &k), -ENODATA);
        assert_int_equal(kallsyms_new("", 0, &k), -ENODATA);
        assert_null(k);
}

static void every_truncation_inside_a_line_is_refused(void **state) {
        for (size_t cut = 1; cut < strlen(text); cut++) {
                _cleanup_free_ char *part = malloc(cut);
                _cleanup_(kallsyms_freep) struct kallsyms *k = NULL;
                int r;

                assert_non_null(part);
                memcpy(part, text, cut);
                r = kallsyms_new(part, cut, &k);
                assert_int_equal(r, part[cut - 1] == '\n' ? 0 : -EBADMSG);
        }
}

static void lines_that_are_none_are_refused(void **state) {
        static const char *const lines[] = {
                "\n",
                "ffffffff81000000\n",
                "ffffffff81000000 T\n",
                "ffffffff81000000 T \n",
                "ffffffff81000000 TT name\n",
                "xfffffff81000000 T name\n",
                "fffffffff81000000 T name\n",
                "ffffffff81000000 t name\text4\n",
                "ffffffff81000000 t name\t[ext4\n",
                "ffffffff81000000 t \t[ext4]\n",
        };
        struct kallsyms *k = NULL;

        for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
                assert_int_equal(kallsyms_new(lines[i], strlen(lines[i]), &k), -EBADMSG);
        assert_int_equal(kallsyms_new("ffffffff81000000 T a\0b\n", 23, &k), -EBADMSG);
        assert_null(k);
}

static void a_text_larger_than_any_is_refused(void **state) {
        struct kallsyms *k = NULL;

        assert_int_equal(kallsyms_new("", (size_t) KALLSYMS_BYTES_MAX + 1, &k), -EFBIG);
        assert_null(k);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(finds_functions_by_any_of_their_bytes),
                cmocka_unit_test(says_which_module_a_function_is_in),
                cmocka_unit_test(what_lies_in_no_function_has_no_name),
                cmocka_unit_test(hidden_addresses_are_told_from_no_names),
                cmocka_unit_test(every_truncation_inside_a_line_is_refused),
                cmocka_unit_test(lines_that_are_none_are_refused),
                cmocka_unit_test(a_text_larger_than_any_is_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
