/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>

#include "common/fd.h"
#include "symbolize/mini_debuginfo.h"
#include "symbolize/name.h"
#include "symbolize/symbols.h"
#include "toolchain.h"

/* Line numbers are in the tests. Of a function of one file only, GCC tells DWARF no more than "hidden". */
static const char source[] = "namespace demo {\n"
                             "inline __attribute__((always_inline)) int inner(int n) {\n"
                             "        volatile int sum = n;\n"
                             "        return sum * sum;\n" /* 4 */
                             "}\n"
                             "inline __attribute__((always_inline)) int middle(int n) {\n"
                             "        return inner(n);\n" /* 7 */
                             "}\n"
                             "static __attribute__((noinline)) int hidden(int n) {\n"
                             "        return middle(n);\n" /* 10 */
                             "}\n"
                             "}\n"
                             "int main(int argc, char **argv) { return demo::hidden(argc); }\n";

static int set_up(void **state) {
        static const char *const commands[] = {
                "g++ -O2 -g -o @/full @/source.cc",
                "objcopy --only-keep-debug @/full @/app.debug",
                "strip -g -o @/symbols @/full",
                "strip -o @/stripped @/full",
                /* As find-debuginfo(1) makes it. */
                "objcopy -S --keep-symbol=_ZN4demoL6hiddenEi @/app.debug @/mini",
                "xz -k @/mini",
                "objcopy --add-section .gnu_debugdata=@/mini.xz @/stripped @/with-mini",
                "objcopy --add-section .gnu_debugdata=@/source.cc @/stripped @/with-garbage",
        };
        static struct toolchain t;

        *state = &t;
        if (toolchain_init(&t) < 0 || toolchain_source(&t, "source.cc", source) < 0)
                return -1;
        for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
                if (toolchain_run(&t, commands[i]) < 0)
                        return -1;
        return 0;
}

static int tear_down(void **state) {
        toolchain_done(*state);
        return 0;
}

struct parent {
        const struct toolchain *tools;
        const char *file, *debug; /* debug: NULL: none */
};

static int ask(void *userdata, enum worker_role role, uint32_t attempt, const char *name, int *ret_fd,
               char path[static WORKER_PATH_MAX]) {
        const struct parent *p = userdata;
        const char *file = role == WORKER_ROLE_FILE                             ? p->file
                           : role == WORKER_ROLE_DEBUG_BUILD_ID && attempt == 0 ? p->debug
                                                                                : NULL;
        char full[PATH_MAX];

        if (!file)
                return -ENXIO;
        *ret_fd = open(toolchain_path(p->tools, file, full), O_RDONLY | O_CLOEXEC);
        assert_true(*ret_fd >= 0);
        (void) snprintf(path, WORKER_PATH_MAX, "%s", file);
        return 0;
}

static struct name_module *open_module(struct parent *p) {
        struct name_module *m = NULL;

        assert_int_equal(name_module_new(&(struct name_module_options){}, ask, p, &m), 0);
        return m;
}

static struct elf_image *open_image(const struct toolchain *t, const char *name) {
        char path[PATH_MAX];
        _cleanup_close_ int fd = open(toolchain_path(t, name, path), O_RDONLY | O_CLOEXEC);
        struct elf_image *image = NULL;

        assert_int_equal(elf_image_new(fd, &image), 0);
        return image;
}

/* File offset of the first byte of hidden(), which is that of what is inlined there. */
static uint64_t offset_of_hidden(const struct toolchain *t) {
        _cleanup_(elf_image_freep) struct elf_image *image = open_image(t, "full");
        _cleanup_(symbols_freep) struct symbols *symbols = NULL;
        const struct elf_section *text = elf_image_section(image, ".text");
        uint64_t offset = 0;

        assert_int_equal(symbols_new(image, &symbols), 0);
        for (uint64_t a = text->vaddr; a < text->vaddr + text->bytes && offset == 0; a++) {
                struct symbol s;

                if (symbols_find(symbols, a, &s) == 0 && streq(s.name, "_ZN4demoL6hiddenEi"))
                        assert_int_equal(elf_image_offset(image, a, &offset), 0);
        }
        assert_true(offset > 0);
        return offset;
}

/* Is there an address in hidden() whose frames are these? */
static bool has_chain(struct name_module *m, uint64_t offset) {
        for (uint64_t i = 0; i < 16; i++) {
                const struct name_line *lines;
                size_t n;

                assert_int_equal(name_find_lines(m, offset + i, &(struct dwarf_companions){}, &lines, &n),
                                 0);
                if (n == 3 && streq(lines[0].text, "demo::inner") && lines[0].line == 4 &&
                    streq(lines[1].text, "demo::middle") && lines[1].line == 7 &&
                    streq(lines[2].text, "hidden") && lines[2].line == 10 && lines[0].inlined &&
                    lines[1].inlined && !lines[2].inlined && endswith(lines[2].file, "/source.cc"))
                        return true;
        }
        return false;
}

static void a_file_with_dwarf_tells_what_was_inlined(void **state) {
        struct parent p = { .tools = *state, .file = "full" };
        _cleanup_(name_module_freep) struct name_module *m = open_module(&p);

        assert_true(has_chain(m, offset_of_hidden(*state)));
}

static void so_does_a_debug_file_of_a_stripped_one(void **state) {
        struct parent p = { .tools = *state, .file = "stripped", .debug = "app.debug" };
        _cleanup_(name_module_freep) struct name_module *m = open_module(&p);

        assert_true(has_chain(m, offset_of_hidden(*state)));
}

/* Symbols alone do not end the search for lines. */
static void and_of_one_that_has_its_symbols(void **state) {
        struct parent p = { .tools = *state, .file = "symbols", .debug = "app.debug" };
        _cleanup_(name_module_freep) struct name_module *m = open_module(&p);
        struct name name;

        assert_true(has_chain(m, offset_of_hidden(*state)));
        assert_int_equal(name_find(m, offset_of_hidden(*state), &name), 0);
        assert_string_equal(name.text, "demo::hidden");
}

static void without_dwarf_there_are_names_and_no_lines(void **state) {
        struct parent p = { .tools = *state, .file = "symbols" };
        _cleanup_(name_module_freep) struct name_module *m = open_module(&p);
        const struct name_line *lines;
        struct name name;
        size_t n = 1;

        assert_int_equal(
                name_find_lines(m, offset_of_hidden(*state), &(struct dwarf_companions){}, &lines, &n), 0);
        assert_int_equal(n, 0);
        assert_int_equal(name_find(m, offset_of_hidden(*state), &name), 0);
        assert_int_equal(name.source, REC_SOURCE_SYMTAB);
}

static void mini_debug_info_names_what_was_stripped_off(void **state) {
        struct parent p = { .tools = *state, .file = "with-mini" };
        _cleanup_(name_module_freep) struct name_module *m = open_module(&p);
        struct rec_symbols row = {};
        struct name name;

        assert_int_equal(name_find(m, offset_of_hidden(*state) + 1, &name), 0);
        assert_string_equal(name.text, "demo::hidden");
        assert_int_equal(name.source, REC_SOURCE_MINIDEBUG);
        assert_int_equal(name.displacement, 1);
        (void) name_module_ledger(m, &row);
        assert_int_equal(row.source, REC_SOURCE_MINIDEBUG);
}

static void mini_debug_info_that_is_none_is_as_if_not_there(void **state) {
        struct parent p = { .tools = *state, .file = "with-garbage" };
        _cleanup_(name_module_freep) struct name_module *m = open_module(&p);
        struct name name;

        assert_int_equal(name_find(m, offset_of_hidden(*state), &name), 0);
        assert_null(name.text);
        assert_int_equal(name.reason, REC_REASON_STRIPPED);
}

/* Made anew with each length of the packed section: it is unpacked whole or not at all. */
static void cut_mini_debug_info_is_refused(void **state) {
        _cleanup_(elf_image_freep) struct elf_image *image = open_image(*state, "with-mini");
        const struct elf_section *section = elf_image_section(image, ".gnu_debugdata");
        _cleanup_free_ uint8_t *copy = NULL;
        const uint8_t *data;
        size_t bytes;

        assert_non_null(section);
        data = elf_image_data(image, &bytes);
        copy = malloc(bytes);
        assert_non_null(copy);
        for (size_t cut = 0; cut < section->bytes; cut++) {
                _cleanup_(elf_image_freep) struct elf_image *broken = NULL;
                struct mini_debuginfo *mini = NULL;

                memcpy(copy, data, bytes);
                memset(copy + section->offset + cut, 0, section->bytes - cut);
                assert_int_equal(elf_image_from_memory(copy, bytes, &broken), 0);
                if (memcmp(copy, data, bytes) == 0)
                        continue; /* it ends with zeroes itself */
                assert_true(mini_debuginfo_new(broken, &mini) < 0);
                assert_null(mini);
        }
}

/* 200 MB of zeroes take 30 KB. */
static void a_bomb_is_not_unpacked(void **state) {
        _cleanup_(elf_image_freep) struct elf_image *image = NULL;
        struct mini_debuginfo *mini = NULL;

        assert_int_equal(toolchain_run(*state, "truncate -s 200M @/zeroes"), 0);
        assert_int_equal(toolchain_run(*state, "xz -0 @/zeroes"), 0);
        assert_int_equal(
                toolchain_run(*state, "objcopy --add-section .gnu_debugdata=@/zeroes.xz @/stripped @/bomb"),
                0);
        image = open_image(*state, "bomb");
        assert_int_equal(mini_debuginfo_new(image, &mini), -EFBIG);
        assert_null(mini);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_file_with_dwarf_tells_what_was_inlined),
                cmocka_unit_test(so_does_a_debug_file_of_a_stripped_one),
                cmocka_unit_test(and_of_one_that_has_its_symbols),
                cmocka_unit_test(without_dwarf_there_are_names_and_no_lines),
                cmocka_unit_test(mini_debug_info_names_what_was_stripped_off),
                cmocka_unit_test(mini_debug_info_that_is_none_is_as_if_not_there),
                cmocka_unit_test(cut_mini_debug_info_is_refused),
                cmocka_unit_test(a_bomb_is_not_unpacked),
        };

        return cmocka_run_group_tests(tests, set_up, tear_down);
}
