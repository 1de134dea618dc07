/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>

#include "common/buf.h"
#include "symbolize/demangle_outline.h"

static void becomes(const char *mangled, const char *wanted) {
        _cleanup_free_ char *name = NULL;

        assert_int_equal(demangle_outline(mangled, &name), 0);
        assert_string_equal(name, wanted);
}

/* Checked against the demangler's own names of 55,000 functions of libstdc++, LLVM and clang. */
static void names_keep_all_but_their_arguments(void **state) {
        becomes("_Z1fv", "f");
        becomes("_ZL6hiddeni", "hidden");
        becomes("_ZN2ns3FooIJLi0ELi1ELin2EEE3barEv", "ns::Foo<…>::bar");
        becomes("_ZNKSt6vectorIiSaIiEE4sizeEv", "std::vector<…>::size");
        becomes("_ZSt4moveIRiEONSt16remove_referenceIT_E4typeEOS2_", "std::move<…>");
        becomes("_ZN4llvm8DenseMapIPKvA10_cLNS_3EnuE4ELb1EE4growEj", "llvm::DenseMap<…>::grow");
        becomes("_ZN1A1BC1Ev", "A::B::B");
        becomes("_ZN1A1BIiED0Ev", "A::B<…>::~B");
        becomes("_ZN1AlsIcEERS_RKT_", "A::operator<<<…>");
        becomes("_ZNSs6appendEPKc", "std::string::append");
        becomes("_ZN12_GLOBAL__N_11fEv", "(anonymous namespace)::f");
        becomes("_ZNSt8ios_base7failureB5cxx11C1EPKc", "std::ios_base::failure::failure");
}

static void what_is_not_known_ends_the_outline(void **state) {
        becomes("_ZN1A1BIXsr1CE1vEE1fEv", "A::B<…>…");
        becomes("_ZN1A1BIDTcl1fEEE1gEv", "A::B<…>…");
        becomes("_ZN1AUlvE_clEv", "A…");
        becomes("_ZN1A1B", "A::B…");
        becomes("_ZN1A99Bar", "A…");
}

static void what_is_no_name_is_left_to_the_caller(void **state) {
        static const char *const names[] = { "",       "f",    "_Z",    "_ZN",
                                             "_ZNE",   "_Z0",  "_Z9f",  "_ZIE",
                                             "_ZTV1A", "_ZC1", "_ZNS_", "_Z99999999999999999999999f" };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                char *name = NULL;

                assert_int_equal(demangle_outline(names[i], &name), -ENOENT);
                assert_null(name);
        }
}

static char *repeated(const char *begin, const char *piece, size_t count, const char *end) {
        _cleanup_(buf_done) struct buf b = BUF_NULL;
        char *text;

        buf_puts(&b, begin);
        for (size_t i = 0; i < count; i++)
                buf_puts(&b, piece);
        buf_puts(&b, end);
        assert_int_equal(buf_take(&b, &text, NULL), 0);
        return text;
}

static void megabytes_of_arguments_are_skipped(void **state) {
        _cleanup_free_ char *flat = repeated("_ZN2ns4listIJ", "Li1234ENSt4pairIiSsEE", 200000, "EE4sortEv"),
                            *deep = repeated("_ZN2ns4listI", "St6vectorI", 400000, "i"),
                            *names = repeated("_ZN", "4name", 400000, "Ev"),
                            *closed = repeated(deep, "E", 400001, "4sortEv");

        becomes(flat, "ns::list<…>::sort");
        becomes(deep, "ns::list<…>…");
        becomes(closed, "ns::list<…>::sort");
        free(closed);
        assert_int_equal(demangle_outline(names, &closed), 0);
        assert_int_equal(strlen(closed), OUTLINE_MAX);
}

static void every_truncation_is_safe(void **state) {
        static const char *const names[] = {
                "_ZN2ns3FooIJLi0ELi1ELin2EEE3barEv",
                "_ZN4llvm8DenseMapIPKvA10_cLNS_3EnuE4ELb1EE4growEj",
                "_ZSt4moveIRiEONSt16remove_referenceIT_E4typeEOS2_",
        };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                for (size_t cut = 0; cut < strlen(names[i]); cut++) {
                        _cleanup_free_ char *copy = strndup(names[i], cut), *name = NULL;
                        int r;

                        assert_non_null(copy);
                        r = demangle_outline(copy, &name);
                        assert_true(r == 0 || r == -ENOENT);
                }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(names_keep_all_but_their_arguments),
                cmocka_unit_test(what_is_not_known_ends_the_outline),
                cmocka_unit_test(what_is_no_name_is_left_to_the_caller),
                cmocka_unit_test(megabytes_of_arguments_are_skipped),
                cmocka_unit_test(every_truncation_is_safe),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
