/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>

#include "common/buf.h"
#include "common/fd.h"
#include "symbolize/dwarf_index.h"
#include "toolchain.h"

enum { ADDRESSES_MAX = 20000 };

/* What nests: inlined functions of this file and of headers, methods, lambdas, a local class, a template, code
 * that GCC moves to .text.unlikely. */
static const char cxx_source[] =
        "#include <algorithm>\n#include <map>\n#include <string>\n#include <vector>\n#include <cstdio>\n"
        "#define INLINE static inline __attribute__((always_inline))\n"
        "namespace {\n"
        "struct Local { int x; __attribute__((noinline)) int twice() { return x * 2; } };\n"
        "INLINE int deep3(int v) {\n        volatile int q = v;\n        return q * 3;\n}\n"
        "INLINE int deep2(int v) {\n        int s = 0;\n        for (int i = 0; i < v; i++)\n"
        "                s += deep3(i);\n        return s;\n}\n"
        "}\n"
        "struct A {\n        A(int v);\n        ~A();\n        virtual int f(int);\n        int v;\n"
        "        std::vector<int> w;\n};\n"
        "A::A(int n) : v(n) {\n        for (int i = 0; i < v; i++)\n                "
        "w.push_back(deep2(i));\n}\n"
        "A::~A() { puts(\"gone\"); }\n"
        "int A::f(int k) {\n"
        "        struct In { int y; int go(int z) { return deep2(z) + y; } } in{k};\n"
        "        auto l = [&](int z) {\n                return in.go(z) + v;\n        };\n"
        "        std::sort(w.begin(), w.end(), [](int a, int b) { return a > b; });\n"
        "        return l(k) + Local{k}.twice();\n}\n"
        "template<class T> __attribute__((noinline)) T tmpl(T a) {\n"
        "        std::map<std::string, T> m;\n        m[\"a\"] = a;\n"
        "        for (auto &p : m)\n                if (p.second > 3)\n                        throw 3;\n"
        "        return m[\"a\"];\n}\n"
        "extern \"C\" int plain(int);\n"
        "int main(int c, char **) {\n        A a(c);\n        int r = a.f(c) + plain(c);\n"
        "        try {\n                r += tmpl<long>(c) + tmpl<int>(c);\n        } catch (int) {\n"
        "                r = 1;\n        }\n        return r;\n}\n";
static const char c_source[] =
        "#include <stdio.h>\n"
        "static inline __attribute__((always_inline)) int in2(int v) {\n        volatile int q = v;\n"
        "        return q * 3;\n}\n"
        "static inline int in1(int v) { return in2(v) + v; }\n"
        "__attribute__((noinline)) int outer(int v) {\n        int s = 0;\n"
        "        for (int i = 0; i < v; i++)\n                s += in1(i);\n"
        "        if (__builtin_expect(v > 100, 0)) {\n                puts(\"cold\");\n                "
        "s++;\n"
        "        }\n        return s;\n}\n"
        "int plain(int c) { return outer(c) + 1; }\n";

static int set_up(void **state) {
        static struct toolchain tools;

        if (toolchain_init(&tools) < 0 || toolchain_source(&tools, "a.cc", cxx_source) < 0 ||
            toolchain_source(&tools, "b.c", c_source) < 0)
                return -1;
        *state = &tools;
        return 0;
}

static int tear_down(void **state) {
        toolchain_done(*state);
        return 0;
}

/* ---- a file and its companions ---- */

struct opened {
        const struct toolchain *tools;
        const char *name;
        struct elf_image *image;
        struct dwarf_index *index;
        struct dwarf_companions companions;
};

static int ask(void *userdata, enum worker_role role, uint32_t attempt, const char *name, int *ret_fd,
               char path[static WORKER_PATH_MAX]) {
        const struct opened *o = userdata;
        int n, fd;

        if (attempt > 0)
                return -ENXIO;
        switch (role) {
        case WORKER_ROLE_DEBUG_BESIDE:
                n = snprintf(path, WORKER_PATH_MAX, "%s/%s%s", o->tools->dir, o->name, name);
                break;
        case WORKER_ROLE_DEBUG_LINK:
                n = snprintf(path, WORKER_PATH_MAX, "%s/%s", o->tools->dir, name);
                break;
        case WORKER_ROLE_DWZ: n = snprintf(path, WORKER_PATH_MAX, "%s/.dwz/%s", o->tools->dir, name); break;
        default: return -ENXIO;
        }
        assert_true(n < WORKER_PATH_MAX);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        *ret_fd = fd;
        return 0;
}

static void open_file(struct opened *o, const struct toolchain *tools, const char *name) {
        char path[PATH_MAX];
        _cleanup_close_ int fd = open(toolchain_path(tools, name, path), O_RDONLY | O_CLOEXEC);

        *o = (struct opened){ .tools = tools, .name = name, .companions = { .ask = ask, .userdata = o } };
        assert_true(fd >= 0);
        assert_int_equal(elf_image_new(fd, &o->image), 0);
        assert_int_equal(dwarf_index_new(o->image, &o->index), 0);
}

static void close_file(struct opened *o) {
        o->index = dwarf_index_free(o->index);
        o->image = elf_image_free(o->image);
}

/* "FUNCTION FILE:LINE" per frame, as both sides of each comparison have it. */
static void describe(struct opened *o, uint64_t address, struct buf *ret) {
        struct dwarf_frame frames[DWARF_FRAMES_MAX];
        size_t count = 0;
        int r;

        r = dwarf_index_resolve(o->index, address, &o->companions, frames, ARRAY_SIZE(frames), &count);
        assert_true(r == 0 || r == -ENOENT);
        for (size_t i = 0; i < count; i++) {
                assert_int_equal(frames[i].inlined, i + 1 < count);
                buf_printf(ret, "%s %s:%u\n", frames[i].function ?: "?", frames[i].file ?: "??",
                           frames[i].line);
        }
}

/* Every eleventh byte of the code of the two sources. */
static size_t addresses_of(const struct elf_image *image, uint64_t *ret) {
        const struct elf_section *text = elf_image_section(image, ".text");
        size_t n = 0;

        assert_non_null(text);
        for (uint64_t at = text->vaddr; at < text->vaddr + text->bytes && n < ADDRESSES_MAX; at += 11)
                ret[n++] = at;
        assert_in_range(n, 100, ADDRESSES_MAX - 1);
        return n;
}

/* ---- the reference ---- */

/* stdin and stdout of a tool are files of the directory. */
static void run_tool(const struct toolchain *t, char *const *arguments, const char *in, const char *out) {
        extern char **environ;
        posix_spawn_file_actions_t actions;
        char in_path[PATH_MAX], out_path[PATH_MAX];
        pid_t pid;
        int status;

        assert_int_equal(posix_spawn_file_actions_init(&actions), 0);
        posix_spawn_file_actions_addopen(&actions, 0, toolchain_path(t, in, in_path), O_RDONLY, 0);
        posix_spawn_file_actions_addopen(&actions, 1, toolchain_path(t, out, out_path),
                                         O_WRONLY | O_CREAT | O_TRUNC, 0600);
        assert_int_equal(posix_spawnp(&pid, arguments[0], &actions, NULL, arguments, environ), 0);
        posix_spawn_file_actions_destroy(&actions);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* "/a/b/../c" → "/a/c": the other side prints paths as they lie in the file, too, but joined differently. */
static void normalize(char *path) {
        char *up;

        while ((up = strstr(path, "/../")) && up > path) {
                char *from = up;

                while (from > path && from[-1] != '/')
                        from--;
                memmove(from, up + 4, strlen(up + 4) + 1);
        }
}

struct expected {
        char *frames[DWARF_FRAMES_MAX]; /* "FUNCTION FILE:LINE" */
        size_t count;
};

/* llvm-symbolizer: two lines a frame, "FILE:LINE:COLUMN", an empty line after each address. */
static void read_expected(FILE *f, struct expected *ret) {
        char function[8192], place[8192];

        *ret = (struct expected){};
        while (fgets(function, sizeof(function), f) && function[0] != '\n') {
                char *column;

                assert_non_null(fgets(place, sizeof(place), f));
                function[strcspn(function, "\n")] = 0;
                column = strrchr(place, ':');
                assert_non_null(column);
                *column = 0;
                assert_true(asprintf(&ret->frames[ret->count], "%s %s\n", function, place) > 0);
                assert_true(++ret->count < DWARF_FRAMES_MAX);
        }
}

static void free_expected(struct expected *e) {
        for (size_t i = 0; i < e->count; i++)
                free(e->frames[i]);
}

/* The outermost function of the other side has its name from the symbol table ("f.cold"). */
static void compare(uint64_t address, const struct expected *e, char *ours) {
        char *rest = ours, *line;

        if (!*ours) { /* no DWARF: the code that begins and ends each program */
                assert_int_equal(e->count, 1);
                return;
        }
        for (size_t i = 0; i < e->count; i++) {
                const char *expected = e->frames[i];

                line = strsep(&rest, "\n");
                if (!line || !*line)
                        fail_msg("%#lx: missing %s", (unsigned long) address, expected);
                normalize(line);
                normalize(e->frames[i]);
                if (i + 1 == e->count) {
                        line = strrchr(line, ' ');
                        expected = strrchr(expected, ' ');
                        /* Without a line it takes the file's name from the symbol table. */
                        if (endswith(line, " ??:0") && endswith(expected, ":0\n"))
                                continue;
                }
                if (strncmp(line, expected, strlen(line)) != 0)
                        fail_msg("%#lx frame %zu: %s, expected %s", (unsigned long) address, i, line,
                                 expected);
        }
        assert_string_equal(rest, "");
}

/* All addresses of `name`, against what llvm-symbolizer says of `reference`, which has the same code. */
static void compare_file(const struct toolchain *t, const char *name, const char *reference) {
        static uint64_t addresses[ADDRESSES_MAX];
        _cleanup_(buf_done) struct buf list = BUF_NULL, ours = BUF_NULL;
        _cleanup_fclose_ FILE *f = NULL;
        char path[PATH_MAX];
        char *arguments[] = { (char *) "llvm-symbolizer",
                              (char *) "--functions=linkage",
                              (char *) "--inlines",
                              (char *) "--no-demangle",
                              (char *) "-e",
                              (char *) toolchain_path(t, reference, path),
                              NULL };
        struct opened o;
        size_t n, inlined = 0;

        open_file(&o, t, name);
        n = addresses_of(o.image, addresses);
        for (size_t i = 0; i < n; i++)
                buf_printf(&list, "0x%lx\n", (unsigned long) addresses[i]);
        assert_int_equal(toolchain_source(t, "addresses", buf_text(&list)), 0);
        run_tool(t, arguments, "addresses", "expected");

        f = fopen(toolchain_path(t, "expected", path), "re");
        assert_non_null(f);
        for (size_t i = 0; i < n; i++) {
                struct expected e;

                read_expected(f, &e);
                buf_reset(&ours);
                describe(&o, addresses[i], &ours);
                inlined += e.count > 1;
                if (ours.size > 0)
                        compare(addresses[i], &e, ours.data);
                free_expected(&e);
        }
        assert_true(inlined > n / 10);
        close_file(&o);
}

/* The same as another file that was compared. */
static void compare_twins(const struct toolchain *t, const char *name, const char *twin) {
        static uint64_t addresses[ADDRESSES_MAX];
        struct opened a, b;
        size_t n;

        open_file(&a, t, name);
        open_file(&b, t, twin);
        n = addresses_of(a.image, addresses);
        for (size_t i = 0; i < n; i++) {
                _cleanup_(buf_done) struct buf x = BUF_NULL, y = BUF_NULL;

                describe(&a, addresses[i], &x);
                describe(&b, addresses[i], &y);
                assert_string_equal(buf_text(&x), buf_text(&y));
        }
        close_file(&a);
        close_file(&b);
}

static void run(const struct toolchain *t, const char *command) {
        if (toolchain_run(t, command) < 0)
                fail_msg("%s", command);
}

/* name, from both sources; options: of the compilers. */
static void build(const struct toolchain *t, const char *name, bool clang, const char *options) {
        char command[1024];

        (void) snprintf(command, sizeof(command),
                        "%s -O2 %s -x c++ @/a.cc -x c @/b.c -x none -lstdc++ -o @/%s",
                        clang ? "clang" : "gcc", options, name);
        run(t, command);
}

/* ---- the tests ---- */

static void frames_are_those_of_another_reader(void **state) {
        static const struct {
                bool clang;
                const char *options;
        } variants[] = {
                { false, "-gdwarf-5" },
                { false, "-gdwarf-4" },
                { false, "-gdwarf-3 -gstrict-dwarf" },
                { true, "-gdwarf-5" },
                { true, "-gdwarf-4" },
                { true, "-g1" },
                { false, "-gdwarf-5 -gdwarf64" },
                { false, "-gdwarf-4 -fdebug-types-section -ffunction-sections -Wl,--gc-sections" },
                { true,
                  "-gdwarf-5 -fdebug-types-section -ffunction-sections -fuse-ld=lld -Wl,--gc-sections" },
                { true, "-gdwarf-5 -flto -fuse-ld=lld" },
                { true, "-gdwarf-4 -no-pie" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(variants); i++) {
                print_message("%s %s\n", variants[i].clang ? "clang" : "gcc", variants[i].options);
                build(*state, "variant", variants[i].clang, variants[i].options);
                compare_file(*state, "variant", "variant");
        }
}

static void link_time_optimisation_of_gcc(void **state) {
        run(*state, "g++ -O2 -gdwarf-5 -flto -c @/a.cc -o @/a.o");
        run(*state, "gcc -O2 -gdwarf-5 -flto -c @/b.c -o @/b.o");
        run(*state, "g++ -O2 -gdwarf-5 -flto @/a.o @/b.o -o @/lto");
        compare_file(*state, "lto", "lto");
}

static void compressed_sections_say_the_same(void **state) {
        build(*state, "plain", false, "-gdwarf-5");
        run(*state, "objcopy --compress-debug-sections=zlib @/plain @/zlib");
        run(*state, "objcopy --compress-debug-sections=zlib-gnu @/plain @/zdebug");
        run(*state, "objcopy --compress-debug-sections=zstd @/plain @/zstd");
        compare_file(*state, "zlib", "plain");
        compare_twins(*state, "zdebug", "zlib");
        compare_twins(*state, "zstd", "zlib");
}

/* A debug file keeps the addresses of sections that it has not. */
static void debug_files_say_the_same(void **state) {
        build(*state, "plain", false, "-gdwarf-5");
        run(*state, "objcopy --only-keep-debug @/plain @/plain.debug");
        compare_twins(*state, "plain.debug", "plain");
}

static void split(const struct toolchain *t, bool clang, int version) {
        char command[256];
        const char *cxx = clang ? "clang++" : "g++", *cc = clang ? "clang" : "gcc";

        for (int i = 0; i < 2; i++) {
                const char *how = i == 0 ? "" : " -gsplit-dwarf";

                (void) snprintf(command, sizeof(command), "%s -O2 -gdwarf-%d%s -c @/a.cc -o @/a.o", cxx,
                                version, how);
                run(t, command);
                (void) snprintf(command, sizeof(command), "%s -O2 -gdwarf-%d%s -c @/b.c -o @/b.o", cc,
                                version, how);
                run(t, command);
                run(t, i == 0 ? "g++ @/a.o @/b.o -o @/whole" : "g++ @/a.o @/b.o -o @/split");
        }
}

static void split_units_say_the_same(void **state) {
        for (int i = 0; i < 4; i++) {
                split(*state, i & 1, i & 2 ? 5 : 4);
                compare_twins(*state, "split", "whole");
        }
}

/* Packages: GNU's tool writes those of DWARF 4, LLVM's those of clang's DWARF 5. */
static void split_units_in_a_package_say_the_same(void **state) {
        static const struct {
                bool clang;
                int version;
                const char *tool;
        } cases[] = {
                { false, 4, "dwp -e @/split -o @/split.dwp" },
                { true, 4, "llvm-dwp -e @/split -o @/split.dwp" },
                { true, 5, "llvm-dwp -e @/split -o @/split.dwp" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                split(*state, cases[i].clang, cases[i].version);
                run(*state, cases[i].tool);
                run(*state, "rm @/a.dwo @/b.dwo");
                compare_twins(*state, "split", "whole");
                run(*state, "rm @/split.dwp");
        }
}

/* Then the linked file knows lines, and clang leaves the inlined functions in it. */
static void without_the_other_half_lines_stay(void **state) {
        struct dwarf_frame frame;
        struct opened o;
        static uint64_t addresses[ADDRESSES_MAX];
        size_t n, lines = 0, count;

        split(*state, false, 5);
        run(*state, "rm @/a.dwo");
        run(*state, "cp @/b.o @/b.dwo"); /* of no use: another file under the name */
        open_file(&o, *state, "split");
        n = addresses_of(o.image, addresses);
        for (size_t i = 0; i < n; i++)
                if (dwarf_index_resolve(o.index, addresses[i], &o.companions, &frame, 1, &count) == 0) {
                        assert_int_equal(count, 1);
                        assert_null(frame.function);
                        lines += frame.line > 0;
                }
        assert_true(lines > n / 2);
        close_file(&o);
}

/* Two programs, since a file of what they share is only made for what is in both. */
static void alternate_files_say_the_same(void **state) {
        build(*state, "whole", false, "-gdwarf-4");
        run(*state, "cp @/whole @/one");
        build(*state, "two", false, "-gdwarf-4 -ffunction-sections");
        run(*state, "dwz -m @/shared.debug @/one @/two");
        compare_twins(*state, "one", "whole");
        run(*state, "mkdir @/.dwz");
        run(*state, "mv @/shared.debug @/.dwz/shared.debug");
        compare_twins(*state, "one", "whole");
}

static void no_dwarf_is_no_index(void **state) {
        _cleanup_(elf_image_freep) struct elf_image *image = NULL;
        struct dwarf_index *index = NULL;
        _cleanup_close_ int fd = -EBADF;
        char path[PATH_MAX];

        build(*state, "bare", false, "-g0");
        fd = open(toolchain_path(*state, "bare", path), O_RDONLY | O_CLOEXEC);
        assert_int_equal(elf_image_new(fd, &image), 0);
        assert_int_equal(dwarf_index_new(image, &index), -ENODATA);
        assert_null(index);
}

/* ---- files that lie ---- */

static void ask_everywhere(const struct elf_image *image) {
        struct dwarf_frame frames[DWARF_FRAMES_MAX];
        struct dwarf_index *index = NULL;
        const struct elf_section *text = elf_image_section(image, ".text");
        size_t count;

        if (dwarf_index_new(image, &index) < 0)
                return;
        for (uint64_t i = 0; i < 4000; i += 40)
                (void) dwarf_index_resolve(index, text->vaddr + i, &(struct dwarf_companions){}, frames,
                                           ARRAY_SIZE(frames), &count);
        dwarf_index_free(index);
}

/* Each byte of a range set to something else: nothing is read that is not there. The sanitizers watch. */
static void bytes_that_lie_cost_only_their_frames(void **state) {
        static const char *const sections[] = { ".debug_info",    ".debug_abbrev",   ".debug_line",
                                                ".debug_aranges", ".debug_rnglists", ".debug_str" };
        _cleanup_close_ int fd = -EBADF;
        _cleanup_free_ uint8_t *data = NULL;
        struct elf_image *image;
        char path[PATH_MAX];
        off_t bytes;

        run(*state, "gcc -O2 -gdwarf-5 -shared -fPIC @/b.c -o @/small");
        fd = open(toolchain_path(*state, "small", path), O_RDONLY | O_CLOEXEC);
        bytes = lseek(fd, 0, SEEK_END);
        data = malloc((size_t) bytes);
        assert_non_null(data);
        assert_int_equal(pread(fd, data, (size_t) bytes, 0), bytes);

        for (size_t s = 0; s < ARRAY_SIZE(sections); s++) {
                const struct elf_section *section;
                size_t offset, size;

                assert_int_equal(elf_image_from_memory(data, (size_t) bytes, &image), 0);
                section = elf_image_section(image, sections[s]);
                offset = section ? section->offset : 0;
                size = section ? MIN(section->bytes, (size_t) 160) : 0;
                elf_image_free(image);
                for (size_t i = 0; i < 2 * size; i++) {
                        uint8_t old = data[offset + i / 2];

                        data[offset + i / 2] = i % 2 ? 0xff : (uint8_t) (old + 1);
                        assert_int_equal(elf_image_from_memory(data, (size_t) bytes, &image), 0);
                        ask_everywhere(image);
                        elf_image_free(image);
                        data[offset + i / 2] = old;
                }
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(frames_are_those_of_another_reader),
                cmocka_unit_test(link_time_optimisation_of_gcc),
                cmocka_unit_test(compressed_sections_say_the_same),
                cmocka_unit_test(debug_files_say_the_same),
                cmocka_unit_test(split_units_say_the_same),
                cmocka_unit_test(split_units_in_a_package_say_the_same),
                cmocka_unit_test(without_the_other_half_lines_stay),
                cmocka_unit_test(alternate_files_say_the_same),
                cmocka_unit_test(no_dwarf_is_no_index),
                cmocka_unit_test(bytes_that_lie_cost_only_their_frames),
        };

        return cmocka_run_group_tests(tests, set_up, tear_down);
}
