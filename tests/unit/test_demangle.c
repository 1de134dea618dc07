/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>

#include "common/macro.h"
#include "symbolize/demangle.h"

static void becomes(const char *mangled, const char *wanted) {
        _cleanup_free_ char *name = NULL;

        assert_int_equal(demangle(mangled, &name), 0);
        assert_string_equal(name, wanted);
}

static void cplusplus_names_lose_their_parameters(void **state) {
        becomes("_ZN3foo3barEi", "foo::bar");
        becomes("_ZNSt6vectorIiSaIiEE9push_backERKi", "std::vector<int, std::allocator<int> >::push_back");
        becomes("_Z3maxIiET_S0_S0_", "max<int>");
        becomes("_ZZ4mainENKUlvE_clEv", "main::{lambda()#1}::operator()");
}

/* Of rustc 1.95; the names are those of the sources. */
static void rust_names_of_the_legacy_scheme_are_read(void **state) {
        becomes("_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write");
        becomes("_ZN4core3ptr139drop_in_place$LT$alloc..collections..btree..map..BTreeMap$LT$alloc..string.."
                "String$C$alloc..vec..Vec$LT$alloc..rc..Rc$LT$u8$GT$$GT$$GT$$GT$17h2023413a224e65faE",
                "core::ptr::drop_in_place<alloc::collections::btree::map::BTreeMap<alloc::string::String,"
                "alloc::vec::Vec<alloc::rc::Rc<u8>>>>");
        becomes("_ZN2rs4main28_$u7b$$u7b$closure$u7d$$u7d$17hf43c4198376dd3e2E", "rs::main::{{closure}}");
        becomes("_ZN2rs13gr$uf6$$udf$e9na$uef$ve17h233bfff6297576a1E", "rs::größe::naïve");
        becomes("_ZN2rs3a$u17h233bfff6297576a1E", "rs::a$u");
        becomes("_ZN2rs8a$ud800$17h233bfff6297576a1E", "rs::a$ud800$");
}

static void rust_names_of_the_v0_scheme_are_read(void **state) {
        becomes("_RNvNtCs1234_7mycrate3foo3bar", "mycrate::foo::bar");
        becomes("_RINvCseIOTyFEwpCh_2rs3tupRDINtNtNtCsgEmfK2I1SDS_4core3ops8function2FnTlEEp6OutputhEL_EB2_",
                "rs::tup::<&dyn core::ops::function::Fn<(i32,), Output = u8>>");
        becomes("_RINvCseIOTyFEwpCh_2rs3tupAAhj2_j3_EB2_", "rs::tup::<[[u8; 2]; 3]>");
        becomes("_RINvCseIOTyFEwpCh_2rs5applyNCNvB2_4mains_0EB2_", "rs::apply::<rs::main::{closure#1}>");
        becomes("_RNvMs_CseIOTyFEwpCh_2rsINtB4_2ChKce9_Kb1_Kan5_E4showB4_",
                "<rs::Ch<'\\u{e9}', true, -5>>::show");
        becomes("_RNvXCseIOTyFEwpCh_2rsINtB2_2SqKj4_fENtB2_5Shape4areaB2_",
                "<rs::Sq<4, f32> as rs::Shape>::area");
        becomes("_RNvNtCseIOTyFEwpCh_2rsu9gre_6ka8iu8nave_6pa", "rs::größe::naïve");
        becomes("_RNvMs6_NtCslNYArtu3iFV_5alloc2rcINtB5_2RchE9drop_slowCseIOTyFEwpCh_2rs.llvm."
                "4933921237495910476",
                "<alloc::rc::Rc<u8>>::drop_slow");
}

static void a_rust_name_that_refers_to_itself_ends(void **state) {
        static const char *const names[] = {
                "_RNvB_3foo",
                "_RNvNvB0_3foo3bar",
                "_RINbNbNiB4_5boxed5FnBoxuEp6OutputuEL__freeDINbNiB4_5boxed5FnBoxuEp6OutputuEL_"
                "ECs1iopQbuBiw2_"
                "3std",
        };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                char *name = NULL;

                assert_true(demangle(names[i], &name) < 0);
                assert_null(name);
        }
}

/* OCaml, D and Swift are told by their names as they are; .NET has a function of its own. */
static void languages_that_are_read_by_nobody_keep_their_symbols(void **state) {
        static const char *const names[] = {
                "camlStdlib__List__map_42", "_D3std5stdio__T8writelnxZ", "$s4main3fooyyF",
                "_$s4main3fooyyF",          "_T04main3fooyyF",
        };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                char *name = NULL;

                assert_int_equal(demangle(names[i], &name), -ENOENT);
                assert_null(name);
        }
}

static void what_is_not_mangled_is_left_to_the_caller(void **state) {
        static const char *const names[] = {
                "",
                "main",
                "_Z",
                "_R",
                "_start",
                "_Zonk",
                "_ZN3foo",
                "i",
                "v",
                "_ZN99999999999999999999fooE",
                "Some_Namespace__Method",
        };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                char *name = (char *) names;

                assert_int_equal(demangle(names[i], &name), -ENOENT);
                assert_ptr_equal(name, names);
        }
}

static void every_truncation_is_safe(void **state) {
        static const char *const names[] = {
                "_ZNSt6vectorIiSaIiEE9push_backERKi",
                "_RNvNtCs1234_7mycrate3foo3bar",
                "_ZN4core3fmt5write17h0123456789abcdefE",
        };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                for (size_t cut = 0; cut < strlen(names[i]); cut++) {
                        _cleanup_free_ char *copy = strndup(names[i], cut), *name = NULL;
                        int r;

                        assert_non_null(copy);
                        r = demangle(copy, &name);
                        assert_true(r == 0 || r == -ENOENT);
                }
}

/* f<A, B<A, A>, B<B<A, A>, B<A, A>>, …>: each argument names the one before twice, 2^32 pieces in 200 bytes. */
static void a_name_that_doubles_itself_stops_at_the_limit(void **state) {
        static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
        char mangled[1024] = "_Z1fI1A1BIS0_S0_E", *name = NULL;
        size_t used = strlen(mangled);

        for (unsigned i = 2; i < 34; i++)
                used += (size_t) snprintf(mangled + used, sizeof(mangled) - used, "S1_IS%c_S%c_E", digits[i],
                                          digits[i]);
        (void) snprintf(mangled + used, sizeof(mangled) - used, "Evv");

        assert_int_equal(demangle(mangled, &name), -E2BIG);
        assert_null(name);
}

static void deep_nesting_does_not_exhaust_the_stack(void **state) {
        char mangled[DEMANGLE_INPUT_MAX + 1] = "_Z1fI", *name = NULL;

        memset(mangled + 5, 'P', sizeof(mangled) - 5);
        memcpy(mangled + sizeof(mangled) - 5, "iEvv", 5);
        assert_int_equal(demangle(mangled, &name), -ENOENT);
        assert_null(name);
}

static void a_long_name_is_read_up_to_the_limit_of_the_input(void **state) {
        char mangled[DEMANGLE_INPUT_MAX + 2], *name = NULL;

        memset(mangled, 'x', sizeof(mangled));
        memcpy(mangled, "_Z4089x", 6);
        memcpy(mangled + DEMANGLE_INPUT_MAX - 1, "v", 2);
        assert_int_equal(demangle(mangled, &name), 0);
        assert_int_equal(strlen(name), 4089);
        name[0] = 0;
        free(name);

        name = NULL;
        memcpy(mangled + DEMANGLE_INPUT_MAX - 1, "vv", 3);
        assert_int_equal(demangle(mangled, &name), -E2BIG);
        assert_null(name);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(cplusplus_names_lose_their_parameters),
                cmocka_unit_test(rust_names_of_the_legacy_scheme_are_read),
                cmocka_unit_test(rust_names_of_the_v0_scheme_are_read),
                cmocka_unit_test(a_rust_name_that_refers_to_itself_ends),
                cmocka_unit_test(languages_that_are_read_by_nobody_keep_their_symbols),
                cmocka_unit_test(what_is_not_mangled_is_left_to_the_caller),
                cmocka_unit_test(every_truncation_is_safe),
                cmocka_unit_test(a_name_that_doubles_itself_stops_at_the_limit),
                cmocka_unit_test(deep_nesting_does_not_exhaust_the_stack),
                cmocka_unit_test(a_long_name_is_read_up_to_the_limit_of_the_input),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
