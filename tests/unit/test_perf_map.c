/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/fd.h"
#include "symbolize/perf_map.h"

static struct perf_map *map_of(const char *text) {
        struct perf_map *map = NULL;

        assert_int_equal(perf_map_new(text, strlen(text), &map), 0);
        return map;
}

static const char *name_at(const struct perf_map *map, uint64_t address) {
        struct perf_map_symbol symbol = {};

        return perf_map_find(map, address, &symbol) == 0 ? symbol.name : "-";
}

/* As node, CoreCLR and CPython write them. */
static const char real[] =
        "7f2a40001000 1a4 LazyCompile:~resolve node:path:1091:10\n"
        "7f2a40002000 20 void [app] Program+<>c__DisplayClass0_0::<Main>b__0(int32)[Tier0]\n"
        "7F2A40003000 3C py::main:/srv/my app/run.py\n";

static void names_go_to_the_end_of_the_line(void **state) {
        _cleanup_(perf_map_freep) struct perf_map *map = map_of(real);

        assert_int_equal(perf_map_count(map), 3);
        assert_string_equal(name_at(map, 0x7f2a40001000), "LazyCompile:~resolve node:path:1091:10");
        assert_string_equal(name_at(map, 0x7f2a4000201f),
                            "void [app] Program+<>c__DisplayClass0_0::<Main>b__0(int32)[Tier0]");
        assert_string_equal(name_at(map, 0x7f2a40003001), "py::main:/srv/my app/run.py");
}

static void an_address_has_a_name_only_inside_a_range(void **state) {
        _cleanup_(perf_map_freep) struct perf_map *map = map_of(real);
        struct perf_map_symbol symbol = { .start = 7 };

        assert_int_equal(perf_map_find(map, 0x7f2a40000fff, &symbol), -ENOENT);
        assert_int_equal(perf_map_find(map, 0x7f2a400011a4, &symbol), -ENOENT);
        assert_int_equal(perf_map_find(map, UINT64_MAX, &symbol), -ENOENT);
        assert_int_equal(symbol.start, 7);
        assert_int_equal(perf_map_find(map, 0x7f2a40001010, &symbol), 0);
        assert_int_equal(symbol.start, 0x7f2a40001000);
}

static void a_later_line_takes_what_it_covers(void **state) {
        _cleanup_(perf_map_freep) struct perf_map *map = map_of("1000 100 old\n"
                                                                "1040 20 new\n"
                                                                "2000 10 first\n"
                                                                "2000 10 second\n"
                                                                "3000 10 small\n"
                                                                "2ff0 40 large\n");
        struct perf_map_symbol symbol = {};

        assert_string_equal(name_at(map, 0x103f), "old");
        assert_string_equal(name_at(map, 0x1040), "new");
        assert_string_equal(name_at(map, 0x105f), "new");
        assert_int_equal(perf_map_find(map, 0x1060, &symbol), 0);
        assert_string_equal(symbol.name, "old");
        assert_int_equal(symbol.start, 0x1000);
        assert_string_equal(name_at(map, 0x2000), "second");
        assert_string_equal(name_at(map, 0x3008), "large");
        assert_int_equal(perf_map_count(map), 5);
}

/* The same answers as asking each line, the last one first. */
static void any_overlap_is_as_if_each_line_painted_over_the_others(void **state) {
        enum { LINES = 300, SPACE = 512 };
        _cleanup_(buf_done) struct buf text = BUF_NULL;
        _cleanup_(perf_map_freep) struct perf_map *map = NULL;
        int painted[SPACE] = {};
        unsigned random = 1;

        for (int i = 1; i <= LINES; i++) {
                unsigned start, bytes;

                random = random * 1103515245 + 12345;
                start = (random >> 16) % (SPACE - 64);
                bytes = 1 + (random >> 8) % 64;
                buf_printf(&text, "%x %x f%d\n", start, bytes, i);
                for (unsigned at = start; at < start + bytes; at++)
                        painted[at] = i;
        }
        map = map_of(buf_text(&text));
        for (unsigned at = 0; at < SPACE; at++) {
                char wanted[16] = "-";

                if (painted[at] > 0)
                        snprintf(wanted, sizeof(wanted), "f%d", painted[at]);
                assert_string_equal(name_at(map, at), wanted);
        }
}

static void every_truncation_keeps_the_whole_lines_only(void **state) {
        for (size_t cut = 0; cut < sizeof(real); cut++) {
                _cleanup_(perf_map_freep) struct perf_map *map = NULL;
                _cleanup_free_ char *part = malloc(cut + 1);
                uint32_t lines = 0;

                assert_non_null(part);
                memcpy(part, real, cut);
                for (size_t i = 0; i < cut; i++)
                        lines += part[i] == '\n';
                assert_int_equal(perf_map_new(part, cut, &map), 0);
                assert_int_equal(perf_map_count(map), lines);
        }
}

static void lines_that_are_none_are_skipped(void **state) {
        static const char *const lines[] = {
                "",
                " ",
                "1000",
                "1000 10",
                "1000 10 ",
                "1000  ",
                "xyz 10 name",
                "1000 xyz name",
                "-1000 10 name",
                "1000 0 empty",
                "1000 4000001 larger than any function",
                "1000 ffffffffffffffff everything",
                "fffffffffffffff0 20 past the end",
                "10000000000001000 10 seventeen digits",
                "1000 10\tname",
                "0x 10 name",
                "no numbers at all",
        };

        for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
                _cleanup_(buf_done) struct buf text = BUF_NULL;
                _cleanup_(perf_map_freep) struct perf_map *map = NULL;

                buf_printf(&text, "9000 10 before\n%s\n9010 10 after\n", lines[i]);
                map = map_of(buf_text(&text));
                assert_int_equal(perf_map_count(map), 2);
                assert_string_equal(name_at(map, 0x9000), "before");
                assert_string_equal(name_at(map, 0x9010), "after");
                assert_string_equal(name_at(map, 0x1000), "-");
        }
}

static void names_may_hold_any_bytes(void **state) {
        static const char text[] = "1000 10 a\0b\n2000 10 \xff;\x1b[31m 42\n";
        _cleanup_(perf_map_freep) struct perf_map *map = NULL;

        assert_int_equal(perf_map_new(text, sizeof(text) - 1, &map), 0);
        assert_string_equal(name_at(map, 0x1000), "a");
        assert_string_equal(name_at(map, 0x2000), "\xff;\x1b[31m 42");
}

static void a_name_without_end_is_cut(void **state) {
        _cleanup_(buf_done) struct buf text = BUF_NULL;
        _cleanup_(perf_map_freep) struct perf_map *map = NULL;

        buf_puts(&text, "1000 10 ");
        for (int i = 0; i < 3 * PERF_MAP_NAME_MAX; i++)
                buf_putc(&text, 'n');
        buf_puts(&text, "\n2000 10 next\n");
        map = map_of(buf_text(&text));
        assert_int_equal(strlen(name_at(map, 0x1000)), PERF_MAP_NAME_MAX);
        assert_string_equal(name_at(map, 0x2000), "next");
}

static void more_lines_than_may_be_are_not_read(void **state) {
        static const char line[] = "1 1 f\n";
        _cleanup_(buf_done) struct buf text = BUF_NULL;
        _cleanup_(perf_map_freep) struct perf_map *map = NULL;

        for (unsigned i = 0; i < PERF_MAP_SYMBOLS_MAX - 1; i++)
                buf_append(&text, line, strlen(line));
        buf_puts(&text, "2 1 last\n3 1 one too many\n");
        map = map_of(buf_text(&text));
        assert_string_equal(name_at(map, 2), "last");
        assert_string_equal(name_at(map, 3), "-");
}

static void a_text_that_is_too_large_is_refused_and_a_file_is_read_in_part(void **state) {
        _cleanup_close_ int fd = memfd_create("map", MFD_CLOEXEC);
        _cleanup_(perf_map_freep) struct perf_map *map = NULL;
        static const char line[] = "1000 10 first\n";

        assert_int_equal(perf_map_new("", (size_t) PERF_MAP_BYTES_MAX + 1, &map), -EFBIG);
        assert_null(map);
        assert_true(fd >= 0);
        assert_int_equal(fd_write_full(fd, line, strlen(line)), 0);
        assert_int_equal(ftruncate(fd, 4LL << 30), 0); /* sparse */
        assert_int_equal(perf_map_new_fd(fd, &map), 0);
        assert_string_equal(name_at(map, 0x1000), "first");
        assert_int_equal(perf_map_count(map), 1);
}

static void an_empty_map_has_no_names(void **state) {
        _cleanup_(perf_map_freep) struct perf_map *map = map_of("");

        assert_int_equal(perf_map_count(map), 0);
        assert_string_equal(name_at(map, 0), "-");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(names_go_to_the_end_of_the_line),
                cmocka_unit_test(an_address_has_a_name_only_inside_a_range),
                cmocka_unit_test(a_later_line_takes_what_it_covers),
                cmocka_unit_test(any_overlap_is_as_if_each_line_painted_over_the_others),
                cmocka_unit_test(every_truncation_keeps_the_whole_lines_only),
                cmocka_unit_test(lines_that_are_none_are_skipped),
                cmocka_unit_test(names_may_hold_any_bytes),
                cmocka_unit_test(a_name_without_end_is_cut),
                cmocka_unit_test(more_lines_than_may_be_are_not_read),
                cmocka_unit_test(a_text_that_is_too_large_is_refused_and_a_file_is_read_in_part),
                cmocka_unit_test(an_empty_map_has_no_names),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
