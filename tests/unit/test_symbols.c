/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>

#include "symbolize/symbols.h"
#include "toolchain.h"

/* A hot function that is not exported, between two that are (SY-01). */
static const char hidden_source[] = "__attribute__((noinline)) int before(int n) { return n * 3; }\n"
                                    "static __attribute__((noinline)) int hidden_hot(int n) {\n"
                                    "        volatile int sum = 0;\n"
                                    "        for (int i = 0; i < n; i++)\n"
                                    "                sum += before(i);\n"
                                    "        return sum;\n"
                                    "}\n"
                                    "int exported_api(int n) { return hidden_hot(n) + 1; }\n"
                                    "int main(int argc, char **argv) { return exported_api(argc); }\n";

/* Offsets in .text are in the comments of the tests below. */
static const char assembly_source[] = "        .text\n"
                                      "        .globl sized\n"
                                      "        .type sized, @function\n"
                                      "sized:  .skip 16, 0x90\n" /* 0 */
                                      "        .size sized, 8\n"
                                      "        .globl sizeless\n"
                                      "sizeless: .skip 16, 0x90\n" /* 16 */
                                      "        .globl __call, local_call\n"
                                      "        .weak call, call_longer\n"
                                      "        .local local_call\n"
                                      "        .type call, @function\n"
                                      "        .type __call, @function\n"
                                      "        .type call_longer, @function\n"
                                      "        .type local_call, @function\n"
                                      "call: __call: call_longer: local_call: .skip 16, 0x90\n" /* 32 */
                                      "        .size call, 16\n"
                                      "        .size __call, 16\n"
                                      "        .size call_longer, 16\n"
                                      "        .size local_call, 16\n"
                                      "        .type outer, @function\n"
                                      "        .type inner, @function\n"
                                      "outer:  .skip 8, 0x90\n" /* 48 */
                                      "inner:  .skip 24, 0x90\n" /* 56 */
                                      "        .size outer, 32\n"
                                      "        .size inner, 8\n"
                                      "last:   .skip 16, 0x90\n" /* 80 */
                                      "        .section .text.other, \"ax\"\n"
                                      "other:  .skip 16, 0x90\n"
                                      "        .data\n"
                                      "        .globl variable\n"
                                      "        .type variable, @object\n"
                                      "variable: .skip 16\n"
                                      "        .size variable, 16\n";

static struct elf_image *open_image(const struct toolchain *t, const char *name) {
        char path[PATH_MAX];
        _cleanup_close_ int fd = open(toolchain_path(t, name, path), O_RDONLY | O_CLOEXEC);
        struct elf_image *image = NULL;

        assert_true(fd >= 0);
        assert_int_equal(elf_image_new(fd, &image), 0);
        return image;
}

static int set_up(void **state) {
        static struct toolchain t;

        *state = &t;
        if (toolchain_init(&t) < 0)
                return -1;
        if (toolchain_source(&t, "hidden.c", hidden_source) < 0 ||
            toolchain_source(&t, "asm.s", assembly_source) < 0)
                return -1;
        if (toolchain_run(&t, "gcc -O1 -rdynamic -o @full @hidden.c") < 0 ||
            toolchain_run(&t, "strip -o @stripped @full") < 0)
                return -1;
        if (toolchain_run(&t, "gcc -nostdlib -shared -o @asm.so @asm.s") < 0 ||
            toolchain_run(&t, "strip -o @asm-stripped.so @asm.so") < 0 ||
            toolchain_run(&t, "objcopy --only-keep-debug @asm.so @asm.debug") < 0)
                return -1;
        return 0;
}

static int tear_down(void **state) {
        toolchain_done(*state);
        return 0;
}

/* Address of a function by its name: every byte of .text is looked up. */
static uint64_t address_of(const struct elf_image *image, const struct symbols *s, const char *name) {
        const struct elf_section *text = elf_image_section(image, ".text");
        struct symbol symbol;

        for (uint64_t a = text->vaddr; a < text->vaddr + text->bytes; a++)
                if (symbols_find(s, a, &symbol) == 0 && streq(symbol.name, name))
                        return symbol.vaddr;
        fail();
        return 0;
}

static void a_stripped_binary_does_not_lend_an_exported_name_to_a_hidden_function(void **state) {
        _cleanup_(elf_image_freep) struct elf_image *full = open_image(*state, "full");
        _cleanup_(elf_image_freep) struct elf_image *stripped = open_image(*state, "stripped");
        _cleanup_(symbols_freep) struct symbols *all = NULL, *exported = NULL;
        struct symbol symbol = {};
        uint64_t hot;

        assert_int_equal(symbols_new(full, &all), 0);
        assert_int_equal(symbols_new(stripped, &exported), 0);

        hot = address_of(full, all, "hidden_hot");
        assert_int_equal(symbols_find(all, hot + 1, &symbol), 0);
        assert_int_equal(symbol.source, REC_SOURCE_SYMTAB);
        for (uint64_t a = hot; a < hot + symbol.bytes; a++) {
                struct symbol untouched = { .vaddr = 7 };

                assert_int_equal(symbols_find(exported, a, &untouched), -ENOENT);
                assert_int_equal(untouched.vaddr, 7);
        }

        assert_int_equal(symbols_find(exported, address_of(full, all, "exported_api") + 1, &symbol), 0);
        assert_string_equal(symbol.name, "exported_api");
        assert_int_equal(symbol.source, REC_SOURCE_DYNSYM);
}

/* Looks up .text + offset; NULL: no name. */
static const char *name_at(const struct elf_image *image, const struct symbols *s, uint64_t offset) {
        struct symbol symbol;

        if (symbols_find(s, elf_image_section(image, ".text")->vaddr + offset, &symbol) < 0)
                return NULL;
        return symbol.name;
}

static void a_symbol_ends_where_its_size_says(void **state) {
        _cleanup_(elf_image_freep) struct elf_image *image = open_image(*state, "asm.so");
        _cleanup_(symbols_freep) struct symbols *s = NULL;

        assert_int_equal(symbols_new(image, &s), 0);
        assert_string_equal(name_at(image, s, 0), "sized");
        assert_string_equal(name_at(image, s, 7), "sized");
        assert_null(name_at(image, s, 8));
        assert_null(name_at(image, s, 15));
}

static void a_symbol_without_size_reaches_to_the_next_one_or_the_end_of_its_section(void **state) {
        _cleanup_(elf_image_freep) struct elf_image *image = open_image(*state, "asm.so");
        _cleanup_(symbols_freep) struct symbols *s = NULL;
        const struct elf_section *text = elf_image_section(image, ".text");
        struct symbol symbol;

        assert_int_equal(symbols_new(image, &s), 0);
        assert_string_equal(name_at(image, s, 16), "sizeless");
        assert_string_equal(name_at(image, s, 31), "sizeless");
        assert_string_equal(name_at(image, s, 32), "call");
        assert_string_equal(name_at(image, s, 95), "last");
        assert_true(symbols_find(s, text->vaddr + text->bytes, &symbol) == -ENOENT ||
                    !streq(symbol.name, "last"));
}

static void an_exported_symbol_without_size_is_known_by_its_first_byte_only(void **state) {
        _cleanup_(elf_image_freep) struct elf_image *image = open_image(*state, "asm-stripped.so");
        _cleanup_(symbols_freep) struct symbols *s = NULL;

        assert_int_equal(symbols_new(image, &s), 0);
        assert_string_equal(name_at(image, s, 16), "sizeless");
        assert_null(name_at(image, s, 17));
}

static void of_aliases_the_one_a_person_would_say_wins(void **state) {
        _cleanup_(elf_image_freep) struct elf_image *image = open_image(*state, "asm.so");
        _cleanup_(symbols_freep) struct symbols *s = NULL;

        assert_int_equal(symbols_new(image, &s), 0);
        assert_string_equal(name_at(image, s, 40), "call"); /* not __call, local_call, call_longer */
}

static void inside_a_nested_range_the_inner_name_holds_and_behind_it_the_outer(void **state) {
        _cleanup_(elf_image_freep) struct elf_image *image = open_image(*state, "asm.so");
        _cleanup_(symbols_freep) struct symbols *s = NULL;

        assert_int_equal(symbols_new(image, &s), 0);
        assert_string_equal(name_at(image, s, 50), "outer");
        assert_string_equal(name_at(image, s, 56), "inner");
        assert_string_equal(name_at(image, s, 63), "inner");
        assert_string_equal(name_at(image, s, 64), "outer");
        assert_string_equal(name_at(image, s, 79), "outer");
}

static void variables_and_undefined_symbols_name_no_code(void **state) {
        _cleanup_(elf_image_freep) struct elf_image *image = open_image(*state, "asm.so");
        _cleanup_(symbols_freep) struct symbols *s = NULL;
        struct symbol symbol;

        assert_int_equal(symbols_new(image, &s), 0);
        assert_int_equal(symbols_find(s, elf_image_section(image, ".data")->vaddr, &symbol), -ENOENT);
        assert_int_equal(symbols_find(s, 0, &symbol), -ENOENT);
        assert_int_equal(symbols_find(s, UINT64_MAX, &symbol), -ENOENT);
}

static void a_debug_file_without_code_gives_the_same_names(void **state) {
        _cleanup_(elf_image_freep) struct elf_image *image = open_image(*state, "asm.debug");
        _cleanup_(symbols_freep) struct symbols *s = NULL;

        assert_null(elf_image_section(image, ".text")->data);
        assert_int_equal(symbols_new(image, &s), 0);
        assert_string_equal(name_at(image, s, 40), "call");
        assert_string_equal(name_at(image, s, 64), "outer");
}

/* Looks up addresses all over the file. */
static void look_around(const void *data, size_t bytes) {
        _cleanup_(elf_image_freep) struct elf_image *image = NULL;
        _cleanup_(symbols_freep) struct symbols *s = NULL;
        struct symbol symbol;

        if (elf_image_from_memory(data, bytes, &image) < 0 || symbols_new(image, &s) < 0)
                return;
        for (uint64_t a = 0; a < 0x3000; a += 8)
                if (symbols_find(s, a, &symbol) == 0)
                        assert_true(strlen(symbol.name) > 0 && a - symbol.vaddr < symbol.bytes);
}

static void damage_costs_names_and_nothing_else(void **state) {
        _cleanup_(elf_image_freep) struct elf_image *image = open_image(*state, "asm.so");
        size_t bytes;
        const uint8_t *data = elf_image_data(image, &bytes);

        for (size_t cut = 0; cut < bytes; cut += 7) {
                uint8_t *copy = malloc(cut ? cut : 1);

                assert_non_null(copy);
                memcpy(copy, data, cut);
                look_around(copy, cut);
                free(copy);
        }
        for (size_t at = 0; at < bytes; at += 3) {
                uint8_t *copy = malloc(bytes);

                assert_non_null(copy);
                memcpy(copy, data, bytes);
                copy[at] ^= 0xff;
                look_around(copy, bytes);
                free(copy);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_stripped_binary_does_not_lend_an_exported_name_to_a_hidden_function),
                cmocka_unit_test(a_symbol_ends_where_its_size_says),
                cmocka_unit_test(a_symbol_without_size_reaches_to_the_next_one_or_the_end_of_its_section),
                cmocka_unit_test(an_exported_symbol_without_size_is_known_by_its_first_byte_only),
                cmocka_unit_test(of_aliases_the_one_a_person_would_say_wins),
                cmocka_unit_test(inside_a_nested_range_the_inner_name_holds_and_behind_it_the_outer),
                cmocka_unit_test(variables_and_undefined_symbols_name_no_code),
                cmocka_unit_test(a_debug_file_without_code_gives_the_same_names),
                cmocka_unit_test(damage_costs_names_and_nothing_else),
        };

        return cmocka_run_group_tests(tests, set_up, tear_down);
}
