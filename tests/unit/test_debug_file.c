/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/stat.h>

#include "common/buf.h"
#include "common/fd.h"
#include "common/parse.h"
#include "common/text.h"
#include "proto/recording.h"
#include "symbolize/file_source.h"
#include "symbolize/name.h"
#include "symbolize/symbols.h"
#include "toolchain.h"

DEFINE_CLEANUP(struct recording *, recording_free);
DEFINE_CLEANUP(struct recording_writer *, recording_writer_free);

static const char source[] = "static __attribute__((noinline)) int hidden(int n) {\n"
                             "        volatile int sum = n;\n"
                             "        return sum * sum;\n"
                             "}\n"
                             "int exported(int n) { return hidden(n) + VERSION; }\n"
                             "int main(int argc, char **argv) { return exported(argc); }\n";

/* ---- a parent that has what the test gives it ---- */

enum { ANSWERS_MAX = 8, PLACES = 2 };

struct answer {
        enum worker_role role;
        uint32_t attempt;
        const char *name;
        const char *file; /* below the directory of the tools */
};

struct parent {
        const struct toolchain *tools;
        struct answer answers[ANSWERS_MAX];
        struct buf asked; /* one line a question */
        bool endless; /* never says that there are no further places */
};

static int ask(void *userdata, enum worker_role role, uint32_t attempt, const char *name, int *ret_fd,
               char path[static WORKER_PATH_MAX]) {
        static const char *const roles[] = { "file",  "beside",
                                             "link",  "build-id",
                                             "cache", [WORKER_ROLE_DEBUG_DIRECTORY] = "directory" };
        struct parent *p = userdata;
        char full[PATH_MAX];

        buf_printf(&p->asked, "%s %u %s\n", roles[role], attempt,
                   role == WORKER_ROLE_DEBUG_DIRECTORY && strlen(name) == 40 ? "ID" : name);
        for (size_t i = 0; i < ANSWERS_MAX && p->answers[i].file; i++) {
                const struct answer *a = &p->answers[i];

                if (a->role != role || a->attempt != attempt || (a->name && !streq(a->name, name)))
                        continue;
                *ret_fd = open(toolchain_path(p->tools, a->file, full), O_RDONLY | O_CLOEXEC);
                assert_true(*ret_fd >= 0);
                (void) snprintf(path, WORKER_PATH_MAX, "%s", a->file);
                return 0;
        }
        return !p->endless && attempt >= PLACES ? -ENXIO : -ENOENT;
}

static struct elf_image *open_image(const struct toolchain *t, const char *name) {
        char path[PATH_MAX];
        _cleanup_close_ int fd = open(toolchain_path(t, name, path), O_RDONLY | O_CLOEXEC);
        struct elf_image *image = NULL;

        assert_true(fd >= 0);
        assert_int_equal(elf_image_new(fd, &image), 0);
        return image;
}

/* app: with a build-id, stripped; app.debug: its debug file; other.debug: of another version. plain: the same
 * without build-ids, found by its link. */
static int set_up(void **state) {
        static const char *const commands[] = {
                "gcc -O1 -rdynamic -Wl,--build-id -DVERSION=1 -o @full @source.c",
                "gcc -O1 -rdynamic -Wl,--build-id -DVERSION=2 -o @full2 @source.c",
                "gcc -O1 -rdynamic -Wl,--build-id=none -DVERSION=1 -o @plain-full @source.c",
                "gcc -g -rdynamic -Wl,--build-id=none -DVERSION=2 -o @plain-full2 @source.c",
                "objcopy --only-keep-debug @full @app.debug",
                "objcopy --only-keep-debug @full2 @other.debug",
                "objcopy --only-keep-debug @plain-full @plain.debug",
                "objcopy --only-keep-debug @plain-full2 @plain-other.debug",
                "strip -o @app @full",
                "objcopy -S --add-gnu-debuglink=@app.debug @full @linked",
                "objcopy -S --add-gnu-debuglink=@plain.debug @plain-full @plain",
        };
        static struct toolchain t;

        *state = &t;
        if (toolchain_init(&t) < 0 || toolchain_source(&t, "source.c", source) < 0)
                return -1;
        for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
                if (toolchain_run(&t, commands[i]) < 0)
                        return -1;
        return toolchain_source(&t, "garbage", "no ELF file at all");
}

static int tear_down(void **state) {
        toolchain_done(*state);
        return 0;
}

/* Searches for the debug file of `file`; path becomes what was found. */
static int search(struct parent *p, const char *file, char path[static WORKER_PATH_MAX]) {
        _cleanup_(elf_image_freep) struct elf_image *image = open_image(p->tools, file);
        _cleanup_(elf_image_freep) struct elf_image *debug = NULL;
        int r;

        path[0] = 0;
        r = debug_file_find(image, ask, p, &debug, path);
        assert_int_equal(r == 0, debug != NULL);
        assert_int_equal(r == 0, path[0] != 0);
        return r;
}

/* ---- the search ---- */

static void places_are_asked_for_in_the_documented_order_until_there_are_no_more(void **state) {
        struct parent p = { .tools = *state };
        char path[WORKER_PATH_MAX];

        assert_int_equal(search(&p, "linked", path), -ENOENT);
        assert_string_equal(buf_text(&p.asked), "directory 0 ID\ndirectory 1 ID\ndirectory 2 ID\n"
                                                "beside 0 .dbg\nbeside 1 .dbg\nbeside 2 .dbg\n"
                                                "beside 0 .debug\nbeside 1 .debug\nbeside 2 .debug\n"
                                                "link 0 app.debug\nlink 1 app.debug\nlink 2 app.debug\n"
                                                "build-id 0 \nbuild-id 1 \nbuild-id 2 \n"
                                                "cache 0 \ncache 1 \ncache 2 \n");
        buf_done(&p.asked);
}

static void a_file_with_the_build_id_is_found_in_every_place(void **state) {
        static const struct answer places[] = {
                { WORKER_ROLE_DEBUG_DIRECTORY, 0, NULL, "app.debug" },
                { WORKER_ROLE_DEBUG_BESIDE, 0, ".dbg", "app.debug" },
                { WORKER_ROLE_DEBUG_BESIDE, 1, ".debug", "app.debug" },
                { WORKER_ROLE_DEBUG_LINK, 1, "app.debug", "app.debug" },
                { WORKER_ROLE_DEBUG_BUILD_ID, 1, "", "app.debug" },
                { WORKER_ROLE_DEBUG_CACHE, 0, "", "app.debug" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
                struct parent p = { .tools = *state, .answers = { places[i] } };
                char path[WORKER_PATH_MAX];

                assert_int_equal(search(&p, "linked", path), 0);
                assert_string_equal(path, "app.debug");
                buf_done(&p.asked);
        }
}

static void a_file_of_another_build_is_passed_over(void **state) {
        struct parent p = {
                .tools = *state,
                .answers = {
                        { WORKER_ROLE_DEBUG_BESIDE, 0, ".dbg", "other.debug" },
                        { WORKER_ROLE_DEBUG_LINK, 0, NULL, "plain.debug" },
                        { WORKER_ROLE_DEBUG_CACHE, 1, NULL, "app.debug" },
                },
        };
        char path[WORKER_PATH_MAX];

        assert_int_equal(search(&p, "linked", path), 0);
        assert_string_equal(path, "app.debug");

        p.answers[2].file = NULL;
        assert_int_equal(search(&p, "linked", path), -ESTALE);
        buf_done(&p.asked);
}

static void without_a_build_id_only_the_link_is_followed_and_its_crc_decides(void **state) {
        struct parent p = {
                .tools = *state,
                .answers = {
                        { WORKER_ROLE_DEBUG_BESIDE, 0, ".debug", "plain.debug" },
                        { WORKER_ROLE_DEBUG_LINK, 0, "plain.debug", "plain-other.debug" },
                        { WORKER_ROLE_DEBUG_LINK, 1, "plain.debug", "plain.debug" },
                },
        };
        char path[WORKER_PATH_MAX];

        assert_int_equal(search(&p, "plain", path), 0);
        assert_string_equal(path, "plain.debug");
        assert_string_equal(buf_text(&p.asked), "link 0 plain.debug\nlink 1 plain.debug\n");

        p.answers[2].file = NULL;
        assert_int_equal(search(&p, "plain", path), -ESTALE);
        buf_done(&p.asked);
}

static void a_file_that_has_no_symbols_either_is_no_debug_file(void **state) {
        struct parent p = { .tools = *state, .answers = { { WORKER_ROLE_DEBUG_LINK, 0, NULL, "linked" } } };
        char path[WORKER_PATH_MAX];

        assert_int_equal(search(&p, "linked", path), -ENOENT);
        buf_done(&p.asked);
}

static void garbage_is_refused_and_said_and_a_parent_without_end_is_left(void **state) {
        struct parent p = {
                .tools = *state,
                .answers = { { WORKER_ROLE_DEBUG_BESIDE, 0, NULL, "garbage" } },
                .endless = true,
        };
        char path[WORKER_PATH_MAX];

        assert_int_equal(search(&p, "app", path), -ESTALE);
        buf_done(&p.asked);
}

static void a_link_is_a_file_name_with_its_crc_or_it_is_refused(void **state) {
        static const struct {
                const char *bytes;
                size_t size;
                int result;
        } links[] = {
                { "ab\0\0CRCC", 8, 0 },          { "abc\0CRCC", 8, 0 },
                { "abc\0CRC", 7, -EBADMSG }, /* cut */
                { "abcdefgh", 8, -EBADMSG }, /* no end */
                { "\0\0\0\0CRCC", 8, -EBADMSG }, { "a/b\0CRCC", 8, -EBADMSG },
                { "..\0\0CRCC", 8, -EBADMSG },   { ".\0\0\0CRCC", 8, -EBADMSG },
        };

        for (size_t i = 0; i < ARRAY_SIZE(links); i++) {
                _cleanup_(elf_image_freep) struct elf_image *image = NULL;
                const char *name = NULL;
                uint32_t crc = 0;

                assert_int_equal(toolchain_write(*state, "link", links[i].bytes, links[i].size), 0);
                assert_int_equal(
                        toolchain_run(*state, "objcopy --add-section .gnu_debuglink=@link @app @with-link"),
                        0);
                image = open_image(*state, "with-link");
                assert_int_equal(debug_file_link(image, &name, &crc), links[i].result);
                if (links[i].result == 0)
                        assert_memory_equal(&crc, "CRCC", 4);
                else
                        assert_null(name);
        }
}

/* ---- names ---- */

static struct name_module *open_module(struct parent *p, const char *file,
                                       const struct name_module_options *options) {
        struct name_module *m = NULL;

        p->answers[ANSWERS_MAX - 2] = (struct answer){ WORKER_ROLE_FILE, 0, NULL, file };
        for (size_t i = ANSWERS_MAX - 2; i > 0 && !p->answers[i - 1].file; i--) {
                p->answers[i - 1] = p->answers[i];
                p->answers[i] = (struct answer){};
        }
        assert_int_equal(name_module_new(options, ask, p, &m), 0);
        return m;
}

/* File offset of a function, from the file that still has its symbols. */
static uint64_t offset_of(const struct toolchain *t, const char *full, const char *function) {
        _cleanup_(elf_image_freep) struct elf_image *image = open_image(t, full);
        _cleanup_(symbols_freep) struct symbols *s = NULL;
        const struct elf_segment *segments;
        unsigned n_segments = elf_image_segments(image, &segments);
        struct symbol symbol;
        uint64_t offset = 0;

        assert_int_equal(symbols_new(image, &s), 0);
        for (unsigned i = 0; i < n_segments; i++)
                for (uint64_t a = segments[i].vaddr;
                     segments[i].executable && a < segments[i].vaddr + segments[i].file_bytes; a++)
                        if (symbols_find(s, a, &symbol) == 0 && streq(symbol.name, function)) {
                                assert_int_equal(elf_image_offset(image, a, &offset), 0);
                                return offset;
                        }
        fail();
        return 0;
}

static void the_debug_file_names_what_the_stripped_file_hides(void **state) {
        struct parent p = { .tools = *state,
                            .answers = { { WORKER_ROLE_DEBUG_CACHE, 0, NULL, "app.debug" } } };
        _cleanup_(name_module_freep) struct name_module *m =
                open_module(&p, "app", &(struct name_module_options){});
        struct rec_symbols row = {};
        struct name name;

        assert_int_equal(name_find(m, offset_of(*state, "full", "hidden") + 1, &name), 0);
        assert_string_equal(name.text, "hidden");
        assert_int_equal(name.source, REC_SOURCE_DEBUG_SYMTAB);
        assert_int_equal(name.displacement, 1);
        assert_string_equal(name_module_ledger(m, &row), "app.debug");
        assert_int_equal(row.source, REC_SOURCE_DEBUG_SYMTAB);
        assert_int_equal(row.reason, REC_REASON_NONE);
        buf_done(&p.asked);
}

static void without_one_exports_are_named_and_the_rest_says_why_not(void **state) {
        struct parent p = { .tools = *state };
        _cleanup_(name_module_freep) struct name_module *m =
                open_module(&p, "app", &(struct name_module_options){});
        struct rec_symbols row = {};
        struct name name;

        assert_int_equal(name_find(m, offset_of(*state, "full", "exported"), &name), 0);
        assert_string_equal(name.text, "exported");
        assert_int_equal(name.source, REC_SOURCE_DYNSYM);
        assert_int_equal(name_find(m, offset_of(*state, "full", "hidden"), &name), 0);
        assert_null(name.text);
        assert_int_equal(name.reason, REC_REASON_STRIPPED);
        assert_string_equal(name_module_ledger(m, &row), "");
        assert_int_equal(row.source, REC_SOURCE_DYNSYM);
        assert_int_equal(row.reason, REC_REASON_STRIPPED);
        buf_done(&p.asked);
}

static void a_debug_file_of_another_build_is_the_reason_then(void **state) {
        struct parent p = { .tools = *state,
                            .answers = { { WORKER_ROLE_DEBUG_BESIDE, 0, ".dbg", "other.debug" } } };
        _cleanup_(name_module_freep) struct name_module *m =
                open_module(&p, "app", &(struct name_module_options){});
        struct name name;

        assert_int_equal(name_find(m, offset_of(*state, "full", "hidden"), &name), 0);
        assert_null(name.text);
        assert_int_equal(name.reason, REC_REASON_MISMATCH);
        buf_done(&p.asked);
}

static void a_file_found_by_name_must_be_the_recorded_one(void **state) {
        _cleanup_(elf_image_freep) struct elf_image *image = open_image(*state, "full");
        struct name_module_options options = { .elsewhere = true };
        uint64_t offset = offset_of(*state, "full", "hidden");

        for (int i = 0; i < 3; i++) {
                struct parent p = { .tools = *state };
                _cleanup_(name_module_freep) struct name_module *m =
                        open_module(&p, i == 2 ? "full2" : "full", &options);
                struct name name;

                assert_int_equal(name_find(m, offset, &name), 0);
                assert_int_equal(name.reason, i == 1 ? REC_REASON_NONE : REC_REASON_MISMATCH);
                assert_int_equal(name.text != NULL, i == 1);
                assert_int_equal(elf_image_build_id(image, &options.build_id), 0);
                buf_done(&p.asked);
        }
}

static void an_address_in_no_function_has_no_name_though_symbols_are_there(void **state) {
        struct parent p = { .tools = *state };
        _cleanup_(name_module_freep) struct name_module *m =
                open_module(&p, "full", &(struct name_module_options){});
        struct name name;

        assert_int_equal(name_find(m, 0, &name), 0);
        assert_int_equal(name.reason, REC_REASON_NO_SYMBOL);
        assert_int_equal(name_find(m, UINT64_MAX, &name), 0);
        assert_int_equal(name.reason, REC_REASON_NO_SYMBOL);
        assert_null(name.text);
        buf_done(&p.asked);
}

static void code_made_at_run_time_is_told_apart_and_asks_for_no_file(void **state) {
        struct parent p = { .tools = *state };
        const struct name_module_options options = { .kind = REC_MODULE_ANONYMOUS };
        _cleanup_(name_module_freep) struct name_module *m = NULL;
        struct name name;

        assert_int_equal(name_module_new(&options, ask, &p, &m), 0);
        assert_int_equal(name_find(m, 0x1000, &name), 0);
        assert_int_equal(name.reason, REC_REASON_JIT);
        assert_int_equal(p.asked.size, 0);
}

static void assemblies_are_told_from_broken_files(void **state) {
        static const struct {
                const char *name, *text;
                enum rec_reason reason;
        } files[] = {
                { "assembly", "MZ\x90 and the rest of it", REC_REASON_PRECOMPILED },
                { "short", "M", REC_REASON_BAD_ELF },
                { "garbage", "no ELF file at all", REC_REASON_BAD_ELF },
        };

        for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
                struct parent p = { .tools = *state };
                _cleanup_(name_module_freep) struct name_module *m = NULL;
                struct name name;

                assert_int_equal(toolchain_source(*state, files[i].name, files[i].text), 0);
                m = open_module(&p, files[i].name, &(struct name_module_options){});
                assert_int_equal(name_find(m, 0, &name), 0);
                assert_null(name.text);
                assert_int_equal(name.reason, files[i].reason);
                buf_done(&p.asked);
        }
}

static void the_kernel_is_named_by_its_own_list(void **state) {
        static const struct {
                const char *name, *text;
                enum rec_reason reason;
        } files[] = {
                { "kallsyms", "ffffffff81000000 T do_it\nffffffff81000100 T next\n", REC_REASON_NONE },
                { "zeros", "0000000000000000 T do_it\n", REC_REASON_HIDDEN },
                { "masked", "", REC_REASON_HIDDEN },
                { "broken", "ffffffff81000000\n", REC_REASON_BAD_ELF },
        };

        for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
                struct parent p = { .tools = *state };
                _cleanup_(name_module_freep) struct name_module *m = NULL;
                struct rec_symbols ledger = {};
                struct name name;

                assert_int_equal(toolchain_source(*state, files[i].name, files[i].text), 0);
                m = open_module(&p, files[i].name,
                                &(struct name_module_options){ .kind = REC_MODULE_KERNEL });
                assert_int_equal(name_find(m, 0xffffffff81000010, &name), 0);
                assert_int_equal(name.reason, files[i].reason);
                (void) name_module_ledger(m, &ledger);
                assert_int_equal(ledger.reason, files[i].reason);
                buf_done(&p.asked);
                if (files[i].reason != REC_REASON_NONE)
                        continue;
                assert_string_equal(name.text, "do_it");
                assert_int_equal(name.source, REC_SOURCE_KALLSYMS);
                assert_int_equal(name.displacement, 0x10);
                assert_int_equal(ledger.source, REC_SOURCE_KALLSYMS);
        }
}

static void the_vdso_is_a_file_that_the_parent_hands_out(void **state) {
        struct parent p = { .tools = *state };
        const Elf64_Ehdr *vdso = (const Elf64_Ehdr *) getauxval(AT_SYSINFO_EHDR);
        _cleanup_(name_module_freep) struct name_module *m = NULL;
        unsigned named = 0;
        struct name name;

        if (!vdso) /* valgrind hides it */
                skip();
        assert_int_equal(
                toolchain_write(*state, "vdso", vdso, vdso->e_shoff + vdso->e_shnum * vdso->e_shentsize), 0);
        m = open_module(&p, "vdso", &(struct name_module_options){ .kind = REC_MODULE_VDSO });
        for (uint64_t offset = 0; offset < 0x3000; offset++) {
                assert_int_equal(name_find(m, offset, &name), 0);
                named += name.text && name.source == REC_SOURCE_VDSO && strstr(name.text, "clock_gettime");
        }
        assert_true(named > 0);
        assert_string_equal(buf_text(&p.asked), "file 0 \n");
        buf_done(&p.asked);
}

static void mangled_names_are_made_readable(void **state) {
        struct parent p = { .tools = *state };
        _cleanup_(name_module_freep) struct name_module *m = NULL;
        struct name name;

        assert_int_equal(toolchain_source(*state, "cxx.s",
                                          "        .text\n"
                                          "        .globl _ZN3foo3barEi\n"
                                          "        .type _ZN3foo3barEi, @function\n"
                                          "_ZN3foo3barEi: .skip 16, 0x90\n"
                                          "        .size _ZN3foo3barEi, 16\n"),
                         0);
        assert_int_equal(toolchain_run(*state, "gcc -nostdlib -shared -o @cxx.so @cxx.s"), 0);
        m = open_module(&p, "cxx.so", &(struct name_module_options){});
        assert_int_equal(name_find(m, offset_of(*state, "cxx.so", "_ZN3foo3barEi"), &name), 0);
        assert_string_equal(name.text, "foo::bar");
        buf_done(&p.asked);
}

/* As the native compiler of .NET lays out a program: its methods in a section of their own, the runtime's C and
 * C++ beside, stubs with a method's name among that. */
static void methods_of_natively_compiled_programs_are_named_in_csharp(void **state) {
        static const struct {
                const char *symbol, *name;
        } cases[] = {
                { "app_Program___Main__", "Program.<Main>$" },
                { "S_P_CoreLib_System_IO_Path__Combine", "System.IO.Path.Combine" },
                { "app__Module___StartupCodeMain", "<Module>.StartupCodeMain" },
                { "S_P_CoreLib_System_IO_Path__Stub", "System.IO.Path.Stub" },
                { "app_Type__Stub", "Type.Stub" },
                { "_ZN3WKS7gc_heap3gc1Ev", "WKS::gc_heap::gc1" },
                { "RhpNewFast", "RhpNewFast" },
                { "a__b", "a__b" },
        };
        _cleanup_(buf_done) struct buf source_text = BUF_NULL;
        struct parent p = { .tools = *state,
                            .answers = { { WORKER_ROLE_DEBUG_CACHE, 0, NULL, "aot-debug" } } };
        _cleanup_(name_module_freep) struct name_module *m = NULL;
        struct name name;

        buf_puts(&source_text, "        .section __managedcode,\"ax\",@progbits\n");
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                buf_printf(&source_text,
                           "%s        .globl %s\n        .type %s, @function\n%s: .skip 16, 0x90\n"
                           "        .size %s, 16\n",
                           i == 3 ? "        .text\n" : "", cases[i].symbol, cases[i].symbol,
                           cases[i].symbol, cases[i].symbol);
        buf_puts(&source_text, "        .data\n_lsda0app__Module___StartupCodeMain: .byte 0\n");
        assert_int_equal(toolchain_source(*state, "aot.s", buf_text(&source_text)), 0);
        assert_int_equal(toolchain_run(*state, "gcc -nostdlib -no-pie -Wl,--build-id -Wl,-e,RhpNewFast "
                                               "-o @aot @aot.s"),
                         0);
        assert_int_equal(toolchain_run(*state, "objcopy --only-keep-debug @aot @aot-debug"), 0);
        assert_int_equal(toolchain_run(*state, "strip -o @aot-stripped @aot"), 0);
        m = open_module(&p, "aot-stripped", &(struct name_module_options){});
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                assert_int_equal(name_find(m, offset_of(*state, "aot", cases[i].symbol) + 5, &name), 0);
                assert_string_equal(name.text, cases[i].name);
                assert_int_equal(name.source, REC_SOURCE_DEBUG_SYMTAB);
        }
        buf_done(&p.asked);
}

/* ---- files of this machine ---- */

static struct recording *recording_of(const struct toolchain *t, const char *const *files, size_t n) {
        _cleanup_(recording_writer_freep) struct recording_writer *w = recording_writer_new(true);
        struct rec_start start = {};
        struct recording *r = NULL;
        _cleanup_free_ void *data = NULL;
        size_t bytes;

        recording_writer_rows(w, REC_START, &start, sizeof(start), 1);
        for (size_t i = 0; i < n; i++) {
                struct rec_module row = { .build_id = { 0xab, 0xcd, 0xef }, .build_id_bytes = 20 };
                char path[PATH_MAX];

                row.path = recording_writer_text(
                        w, files[i][0] == '@' ? toolchain_path(t, files[i] + 1, path) : files[i]);
                recording_writer_rows(w, REC_MODULES, &row, sizeof(row), 1);
        }
        assert_int_equal(recording_writer_finish(w, false, &data, &bytes), 0);
        assert_int_equal(recording_open(data, bytes, &r), 0);
        return r;
}

/* Result of one request; on success the path is below the directory of the tools and compared without it. */
static void assert_opens(struct file_source *s, const struct toolchain *t, uint32_t module,
                         enum worker_role role, uint32_t attempt, const char *name, const char *wanted) {
        char path[WORKER_PATH_MAX] = "", full[PATH_MAX];
        _cleanup_close_ int fd = -EBADF;

        assert_int_equal(file_source_open(s, module, role, attempt, name, &fd, path), 0);
        assert_true(fd >= 0);
        assert_int_equal(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
        assert_string_equal(path, toolchain_path(t, wanted, full));
}

static int request(struct file_source *s, uint32_t module, enum worker_role role, uint32_t attempt,
                   const char *name) {
        char path[WORKER_PATH_MAX] = "";
        int fd = -EBADF, r;

        r = file_source_open(s, module, role, attempt, name, &fd, path);
        assert_int_equal(r == 0, fd >= 0);
        if (fd >= 0)
                close(fd);
        return r;
}

static void a_module_is_opened_by_its_path_when_it_is_a_regular_file(void **state) {
        static const char *const files[] = {
                "@app", "@fifo", "@missing", "/dev/null", "[vdso]", "//anon", ""
        };
        _cleanup_(recording_freep) struct recording *r = recording_of(*state, files, ARRAY_SIZE(files));
        _cleanup_(file_source_freep) struct file_source *s = NULL;
        char path[PATH_MAX];

        assert_int_equal(mkfifo(toolchain_path(*state, "fifo", path), 0600), 0);
        assert_int_equal(file_source_new(r, NULL, 0, &s), 0);
        assert_opens(s, *state, 0, WORKER_ROLE_FILE, 0, "", "app");
        assert_int_equal(request(s, 0, WORKER_ROLE_FILE, 1, ""), -ENXIO);
        assert_int_equal(request(s, 1, WORKER_ROLE_FILE, 0, ""), -ENOENT);
        assert_int_equal(request(s, 2, WORKER_ROLE_FILE, 0, ""), -ENOENT);
        assert_int_equal(request(s, 3, WORKER_ROLE_FILE, 0, ""), -ENOENT);
        assert_int_equal(request(s, 4, WORKER_ROLE_FILE, 0, ""), -ENXIO);
        assert_int_equal(request(s, 5, WORKER_ROLE_FILE, 0, ""), -ENOENT);
        assert_int_equal(request(s, 6, WORKER_ROLE_FILE, 0, ""), -ENXIO);
        assert_int_equal(request(s, ARRAY_SIZE(files), WORKER_ROLE_FILE, 0, ""), -ENXIO);
}

static struct recording *recording_of_boot(const uint8_t boot_id[static 16]) {
        _cleanup_(recording_writer_freep) struct recording_writer *w = recording_writer_new(true);
        struct rec_module module = { .kind = REC_MODULE_KERNEL };
        struct rec_start start = {};
        struct recording *r = NULL;
        _cleanup_free_ void *data = NULL;
        size_t bytes;

        memcpy(start.boot_id, boot_id, sizeof(start.boot_id));
        recording_writer_rows(w, REC_START, &start, sizeof(start), 1);
        recording_writer_rows(w, REC_MODULES, &module, sizeof(module), 1);
        assert_int_equal(recording_writer_finish(w, false, &data, &bytes), 0);
        assert_int_equal(recording_open(data, bytes, &r), 0);
        return r;
}

/* Each boot puts the kernel elsewhere. */
static void the_kernels_list_is_opened_for_its_own_boot_and_when_allowed(void **state) {
        _cleanup_free_ char *text = NULL;
        uint8_t boot_id[16];
        char digits[33] = "";

        assert_int_equal(read_file_at(AT_FDCWD, "/proc/sys/kernel/random/boot_id", 64, &text, NULL), 0);
        for (size_t i = 0, n = 0; text[i] && n < 32; i++)
                if (text[i] != '-')
                        digits[n++] = text[i];
        assert_int_equal(parse_hex(digits, boot_id, sizeof(boot_id)), 0);

        for (int other = 0; other < 2; other++) {
                _cleanup_(recording_freep) struct recording *r = recording_of_boot(boot_id);
                _cleanup_(file_source_freep) struct file_source *s = NULL;

                assert_int_equal(file_source_new(r, NULL, 0, &s), 0);
                assert_int_equal(request(s, 0, WORKER_ROLE_FILE, 0, ""), -ENOENT);
                file_source_allow_kernel(s);
                assert_int_equal(request(s, 0, WORKER_ROLE_FILE, 0, ""), other ? -ENOENT : 0);
                assert_int_equal(request(s, 0, WORKER_ROLE_FILE, 1, ""), -ENXIO);
                assert_int_equal(request(s, 0, WORKER_ROLE_DEBUG_BUILD_ID, 0, ""), -ENXIO);
                boot_id[7] ^= 1;
        }
}

static void debug_files_come_from_the_users_directories_and_from_beside(void **state) {
        static const char *const files[] = { "@dir/prog" };
        const struct toolchain *t = *state;
        _cleanup_(recording_freep) struct recording *r = recording_of(t, files, 1);
        _cleanup_(file_source_freep) struct file_source *s = NULL;
        char user[PATH_MAX];
        const char *dirs[] = { "/nonexistent", toolchain_path(t, "user", user) };

        assert_int_equal(toolchain_run(t, "mkdir -p @dir/.debug @user/.build-id/ab"), 0);
        assert_int_equal(
                toolchain_run(t, "touch @dir/prog.dbg @user/prog.dbg @user/prog.link @dir/prog.link"), 0);
        assert_int_equal(toolchain_run(t, "touch @dir/.debug/prog.link"), 0);
        assert_int_equal(
                toolchain_run(t, "touch @user/.build-id/ab/cdef0000000000000000000000000000000000.debug"),
                0);
        assert_int_equal(file_source_new(r, dirs, ARRAY_SIZE(dirs), &s), 0);

        assert_opens(s, t, 0, WORKER_ROLE_DEBUG_BESIDE, 0, ".dbg", "user/prog.dbg");
        assert_opens(s, t, 0, WORKER_ROLE_DEBUG_BESIDE, 1, ".dbg", "dir/prog.dbg");
        assert_int_equal(request(s, 0, WORKER_ROLE_DEBUG_BESIDE, 2, ".dbg"), -ENXIO);
        assert_int_equal(request(s, 0, WORKER_ROLE_DEBUG_BESIDE, 0, ".debug"), -ENOENT);

        assert_opens(s, t, 0, WORKER_ROLE_DEBUG_LINK, 0, "prog.link", "user/prog.link");
        assert_opens(s, t, 0, WORKER_ROLE_DEBUG_LINK, 1, "prog.link", "dir/prog.link");
        assert_opens(s, t, 0, WORKER_ROLE_DEBUG_LINK, 2, "prog.link", "dir/.debug/prog.link");
        assert_int_equal(request(s, 0, WORKER_ROLE_DEBUG_LINK, 3, "prog.link"), -ENOENT);
        assert_int_equal(request(s, 0, WORKER_ROLE_DEBUG_LINK, 4, "prog.link"), -ENXIO);
        assert_int_equal(request(s, 0, WORKER_ROLE_DEBUG_LINK, 1, "../dir/prog.link"), -ENXIO);

        assert_opens(s, t, 0, WORKER_ROLE_DEBUG_BUILD_ID, 0, "",
                     "user/.build-id/ab/cdef0000000000000000000000000000000000.debug");
        assert_int_equal(request(s, 0, WORKER_ROLE_DEBUG_BUILD_ID, 1, ""), -ENOENT);
        assert_int_equal(request(s, 0, WORKER_ROLE_DEBUG_BUILD_ID, 2, ""), -ENXIO);
}

static void debuginfod_caches_are_read_without_a_server(void **state) {
        static const char *const files[] = { "@prog" };
        const struct toolchain *t = *state;
        _cleanup_(recording_freep) struct recording *r = recording_of(t, files, 1);
        _cleanup_(file_source_freep) struct file_source *s = NULL;
        char path[PATH_MAX];

        assert_int_equal(toolchain_run(t, "mkdir -p @cache/abcdef0000000000000000000000000000000000"), 0);
        assert_int_equal(toolchain_run(t, "touch @cache/abcdef0000000000000000000000000000000000/debuginfo"),
                         0);
        assert_int_equal(setenv("DEBUGINFOD_CACHE_PATH", toolchain_path(t, "cache", path), 1), 0);
        assert_int_equal(unsetenv("DEBUGINFOD_URLS"), 0);
        assert_int_equal(file_source_new(r, NULL, 0, &s), 0);
        assert_opens(s, t, 0, WORKER_ROLE_DEBUG_CACHE, 0, "",
                     "cache/abcdef0000000000000000000000000000000000/debuginfo");
        assert_int_equal(request(s, 0, WORKER_ROLE_DEBUG_CACHE, 1, ""), -ENOENT);
        assert_int_equal(request(s, 0, WORKER_ROLE_DEBUG_CACHE, 64, ""), -ENXIO);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(places_are_asked_for_in_the_documented_order_until_there_are_no_more),
                cmocka_unit_test(a_file_with_the_build_id_is_found_in_every_place),
                cmocka_unit_test(a_file_of_another_build_is_passed_over),
                cmocka_unit_test(without_a_build_id_only_the_link_is_followed_and_its_crc_decides),
                cmocka_unit_test(a_file_that_has_no_symbols_either_is_no_debug_file),
                cmocka_unit_test(garbage_is_refused_and_said_and_a_parent_without_end_is_left),
                cmocka_unit_test(a_link_is_a_file_name_with_its_crc_or_it_is_refused),
                cmocka_unit_test(the_debug_file_names_what_the_stripped_file_hides),
                cmocka_unit_test(without_one_exports_are_named_and_the_rest_says_why_not),
                cmocka_unit_test(a_debug_file_of_another_build_is_the_reason_then),
                cmocka_unit_test(a_file_found_by_name_must_be_the_recorded_one),
                cmocka_unit_test(an_address_in_no_function_has_no_name_though_symbols_are_there),
                cmocka_unit_test(code_made_at_run_time_is_told_apart_and_asks_for_no_file),
                cmocka_unit_test(assemblies_are_told_from_broken_files),
                cmocka_unit_test(the_kernel_is_named_by_its_own_list),
                cmocka_unit_test(the_vdso_is_a_file_that_the_parent_hands_out),
                cmocka_unit_test(mangled_names_are_made_readable),
                cmocka_unit_test(methods_of_natively_compiled_programs_are_named_in_csharp),
                cmocka_unit_test(a_module_is_opened_by_its_path_when_it_is_a_regular_file),
                cmocka_unit_test(the_kernels_list_is_opened_for_its_own_boot_and_when_allowed),
                cmocka_unit_test(debug_files_come_from_the_users_directories_and_from_beside),
                cmocka_unit_test(debuginfod_caches_are_read_without_a_server),
        };

        return cmocka_run_group_tests(tests, set_up, tear_down);
}
