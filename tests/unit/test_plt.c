/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>

#include "common/fd.h"
#include "symbolize/plt.h"
#include "tests/unit/toolchain.h"

static const char source[] =
        "#include <stdlib.h>\n#include <string.h>\n#include <unistd.h>\n"
        "int main(int n, char **v) { free(malloc(n)); return strlen(v[0]) + getpid(); }\n";

static struct toolchain toolchain;

static int setup(void **state) {
        return toolchain_init(&toolchain) < 0 || toolchain_source(&toolchain, "a.c", source) < 0 ? -1 : 0;
}

static int teardown(void **state) {
        toolchain_done(&toolchain);
        return 0;
}

static struct elf_image *build(const char *options) {
        char command[512], path[PATH_MAX];
        _cleanup_close_ int fd = -EBADF;
        struct elf_image *image;

        snprintf(command, sizeof(command), "gcc -O1 %s -fno-builtin -o @a @a.c", options);
        assert_int_equal(toolchain_run(&toolchain, command), 0);
        assert_int_equal(toolchain_run(&toolchain, "strip @a"), 0);
        fd = open(toolchain_path(&toolchain, "a", path), O_RDONLY | O_CLOEXEC);
        assert_true(fd >= 0);
        assert_int_equal(elf_image_new(fd, &image), 0);
        return image;
}

/* Each byte of the sections: how many belong to a stub of that name. */
static unsigned count(const struct elf_image *image, const char *wanted) {
        static const char *const names[] = { ".plt", ".plt.sec", ".plt.got" };
        unsigned n = 0;

        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                const struct elf_section *s = elf_image_section(image, names[i]);

                for (uint64_t at = 0; s && s->data && at < s->bytes; at++) {
                        const char *name;
                        uint64_t start;

                        if (plt_find(image, s->vaddr + at, &name, &start) < 0)
                                continue;
                        assert_true(start <= s->vaddr + at && s->vaddr + at - start < 16);
                        n += streq(name, wanted);
                }
        }
        return n;
}

static void expect_stubs(const char *options) {
        _cleanup_(elf_image_freep) struct elf_image *image = build(options);
        const char *name;
        uint64_t start;

        assert_in_range(count(image, "malloc"), 8, 16);
        assert_in_range(count(image, "strlen"), 8, 16);
        assert_in_range(count(image, "getpid"), 8, 16);
        assert_int_equal(count(image, "strcpy"), 0);
        assert_int_equal(plt_find(image, elf_image_section(image, ".text")->vaddr, &name, &start), -ENOENT);
        assert_int_equal(plt_find(image, 0, &name, &start), -ENOENT);
        assert_int_equal(plt_find(image, UINT64_MAX, &name, &start), -ENOENT);
}

static void stubs_have_the_names_of_what_they_call(void **state) {
        expect_stubs("-Wl,-z,lazy");
        expect_stubs("-Wl,-z,now");
        expect_stubs("-fcf-protection=full -Wl,-z,ibtplt");
        expect_stubs("-no-pie");
        expect_stubs("-fuse-ld=lld");
}

/* Bytes of the file, and of what it says of itself, may be anything. */
static void damage_gives_no_name_outside_the_file(void **state) {
        char path[PATH_MAX];
        _cleanup_free_ char *data = NULL;
        size_t bytes, good = 0;
        uint32_t random = 1;

        elf_image_free(build("-Wl,-z,lazy"));
        assert_int_equal(
                read_file_at(AT_FDCWD, toolchain_path(&toolchain, "a", path), 1 << 20, &data, &bytes), 0);
        for (int i = 0; i < 500; i++) {
                _cleanup_free_ uint8_t *copy = malloc(bytes);
                struct elf_image *image;

                assert_non_null(copy);
                memcpy(copy, data, bytes);
                for (int j = 0; j < 8; j++) {
                        random = random * 1103515245 + 12345;
                        copy[(random >> 4) % bytes] = (uint8_t) (random >> 20);
                }
                if (elf_image_from_memory(copy, bytes, &image) < 0)
                        continue;
                good += count(image, "malloc") > 0;
                elf_image_free(image);
        }
        assert_true(good > 20);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(stubs_have_the_names_of_what_they_call),
                cmocka_unit_test(damage_gives_no_name_outside_the_file),
        };

        return cmocka_run_group_tests(tests, setup, teardown);
}
