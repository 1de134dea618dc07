/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/described.h"

#include "report/names.h"
#include "report/page.h"
#include "report/paths.h"

static void names_lose_what_a_line_has_no_room_for(void **state) {
        static const struct {
                const char *name, *shorter;
        } cases[] = {
                { "main", "main" },
                { "std::vector<int, std::allocator<int> >::push_back(int const&)",
                  "std::vector<…>::push_back" },
                { "void foo<int>(int) [clone .cold]", "foo<…>" },
                { "operator new(unsigned long)", "operator new" },
                { "Foo::operator()(int) const", "Foo::operator()" },
                { "Foo::operator->() const", "Foo::operator->" },
                { "bool operator< <int>(A const&)", "operator<<…>" },
                { "(anonymous namespace)::f(int)", "(anonymous namespace)::f" },
                { "a::b(int)::{lambda(int)#1}::operator()(int) const", "a::b::{lambda(int)#1}::operator()" },
                { "bool llvm::operator==<A<B>, C>(A<B> const&)", "llvm::operator==<…>" },
                { "std::operator<< <char>(int)", "std::operator<<<…>" },
                { "A::operator->*<int>()", "A::operator->*<…>" },
                { "A::operator std::string() const", "A::operator std::string" },
                { "operator delete[](void*)", "operator delete[]" },
                { "<alloc::vec::Vec<u8>>::push", "<alloc::vec::Vec<…>>::push" },
                { "core::slice::sort::quicksort::<A<u8>, [B]>", "core::slice::sort::quicksort<…>" },
                { "<&u64 as core::fmt::Debug>::fmt", "<&u64 as core::fmt::Debug>::fmt" },
                { "f<(A)1>(int) [clone .cold]", "f<…>" },
                { "f)(int)", "f)" },
                { "a>b<c>", "a>b<…>" },
                { "::<", "::<" },
                { "f(", "f(" },
                { "name with spaces", "name with spaces" },
                { "", "" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(buf_done) struct buf b = BUF_NULL;

                name_shorten(&b, cases[i].name);
                assert_string_equal(buf_text(&b), cases[i].shorter);
        }
}

static void a_huge_name_takes_no_time(void **state) {
        _cleanup_(buf_done) struct buf name = BUF_NULL, b = BUF_NULL;

        for (size_t i = 0; i < 500000; i++)
                buf_puts(&name, "a(<");
        name_shorten(&b, buf_text(&name));
        assert_true(b.size < 5000);
}

static void the_namespace_goes_first(void **state) {
        assert_string_equal(name_without_namespace("System.IO.Path.Combine"), "Path.Combine");
        assert_string_equal(name_without_namespace("A.B..ctor"), "B..ctor");
        assert_string_equal(name_without_namespace("Main"), "Main");
        assert_string_equal(name_without_namespace("a.b"), "a.b");
        assert_string_equal(name_without_namespace("A.B.C.lambda"), "B.C.lambda");
        assert_string_equal(name_without_namespace("A.B.C(X.Y, Z)"), "B.C(X.Y, Z)");
        assert_string_equal(name_without_namespace(".lambda"), ".lambda");
        assert_string_equal(name_without_namespace(""), "");
}

static void a_symbol_is_named_only_where_it_has_a_name(void **state) {
        _described_ d =
                describe("start begin=0 until=1s\nprocess 1 begin=0 exec=0\nmodule /usr/bin/sy_strip\n"
                         "module \"\" kind=anonymous\nstack s\nframe - /usr/bin/sy_strip offset=0x1145\n"
                         "frame - \"\" offset=0x10\nframe - - offset=0x77\n",
                         NULL);
        static const char *const places[] = { "sy_strip+0x1145", "[generated code]+0x10", "0x77" };

        for (uint32_t i = 0; i < 3; i++) {
                _cleanup_(buf_done) struct buf b = BUF_NULL;
                const struct rec_name *rows = NULL;

                assert_int_equal(frame_names(d.recording, i, &rows), 1);
                frame_short_name(&b, d.recording, i, rows);
                assert_string_equal(buf_text(&b), places[i]);
                assert_false(frame_is_named(d.recording, i));
        }
}

static void lines_break_at_spaces_and_fit(void **state) {
        struct page p = { .columns = 20 };

        page_wrap(&p, PAGE_NORMAL, 0, 2, "one two three four \x1b[31m five");
        assert_string_equal(buf_text(&p.text), "one two three four\n  \\x1b[31m five\n");
        assert_int_equal(p.lines, 2);
        buf_reset(&p.text);
        page_wrap(&p, PAGE_NORMAL, 0, 2, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
        assert_string_equal(buf_text(&p.text), "aaaaaaaaaaaaaaaaaaaa\n  aaaaaaaaaaaaaaaaaa\n  aaaa\n");
        buf_reset(&p.text);
        page_line(&p, PAGE_NORMAL, 2, "ääääääääääääääääääääää");
        assert_string_equal(buf_text(&p.text), "  äääääääääääääääää…\n");
        buf_done(&p.text);
}

static void colours_come_only_when_asked(void **state) {
        struct page p = { .columns = 80, .color = true };

        page_line(&p, PAGE_BOLD, 0, "x");
        assert_string_equal(buf_text(&p.text), "\x1b[0;1mx\x1b[0m\n");
        buf_done(&p.text);
}

static void paths_are_compared_by_components(void **state) {
        assert_true(path_is_below("/usr/lib", "/usr"));
        assert_true(path_is_below("/usr", "/usr"));
        assert_true(path_is_below("/usr", "/"));
        assert_false(path_is_below("/usrlocal", "/usr"));
        assert_true(path_is_child("/etc", "/"));
        assert_true(path_is_child("/etc/app", "/etc"));
        assert_false(path_is_child("/etc/app/x", "/etc"));
        assert_false(path_is_child("/", "/"));
        assert_false(path_is_child("/etcapp", "/etc"));
}

static void paths_become_absolute_and_normal(void **state) {
        static const struct {
                const char *cwd, *path, *absolute;
        } cases[] = {
                { "/", ".", "/" }, { "/srv", "x", "/srv/x" },   { "/srv", "/x//y/./z/", "/x/y/z" },
                { "", "", "/" },   { "/a", "../b", "/a/../b" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_free_ char *path = NULL;

                assert_int_equal(path_absolute(cases[i].cwd, cases[i].path, &path), 0);
                assert_string_equal(path, cases[i].absolute);
        }
}

static void system_calls_have_names_in_both_tables(void **state) {
        assert_string_equal(syscall_name(257), "openat");
        assert_string_equal(syscall_name(254), "inotify_add_watch");
        assert_string_equal(syscall_name(REC_CALL_IA32 | 295), "openat");
        assert_null(syscall_name(REC_CALL_NONE));
        assert_null(syscall_name(SYSCALL_NAMES_MAX));
        assert_null(syscall_name(UINT32_MAX));
        assert_int_equal(syscall_classes(254) & CALL_WATCH, CALL_WATCH);
        assert_int_equal(syscall_classes(UINT32_MAX), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(names_lose_what_a_line_has_no_room_for),
                cmocka_unit_test(a_huge_name_takes_no_time),
                cmocka_unit_test(the_namespace_goes_first),
                cmocka_unit_test(a_symbol_is_named_only_where_it_has_a_name),
                cmocka_unit_test(lines_break_at_spaces_and_fit),
                cmocka_unit_test(colours_come_only_when_asked),
                cmocka_unit_test(paths_are_compared_by_components),
                cmocka_unit_test(paths_become_absolute_and_normal),
                cmocka_unit_test(system_calls_have_names_in_both_tables),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
