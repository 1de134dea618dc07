/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>

#include "common/fd.h"
#include "worker/labels.h"

/* Frames of the stacks below; the module's number is 0. */
enum { WORK, MAIN, THREAD, START, CALL_MAIN, START_MAIN, START_THREAD, CLONE, LOADER, LOADER_START, FRAMES };

static const struct frame_place places[FRAMES] = {
        [WORK] = {},
        [MAIN] = {},
        [THREAD] = { .named = true },
        [START] = { .entry = true },
        [CALL_MAIN] = { .role = MODULE_LIBC },
        [START_MAIN] = { .role = MODULE_LIBC, .named = true },
        [START_THREAD] = { .role = MODULE_LIBC },
        [CLONE] = { .role = MODULE_LIBC },
        [LOADER] = { .role = MODULE_LOADER },
        [LOADER_START] = { .role = MODULE_LOADER, .entry = true },
};

struct fixture {
        struct stacks *stacks;
        struct labels *labels;
};

static int set_up(void **state) {
        static struct fixture f;

        f.stacks = stacks_new();
        f.labels = labels_new(FRAMES);
        *state = &f;
        return f.stacks && f.labels ? 0 : -1;
}

static int tear_down(void **state) {
        struct fixture *f = *state;

        stacks_free(f->stacks);
        labels_free(f->labels);
        return 0;
}

/* Innermost frame first. What the stacks give to frames as indexes is the order in which they came. */
static void label_stack(struct fixture *f, const unsigned *frames, size_t count, uint32_t end) {
        struct unwind_frame rows[8] = {};
        const struct rec_frame *known;

        for (size_t i = 0; i < count; i++)
                rows[i] = (struct unwind_frame){ .offset = frames[i] };
        assert_int_equal(stacks_add(f->stacks, 0,
                                    &(struct stacks_sample){ .frames = rows, .count = count, .end = end }),
                         0);
        for (uint32_t i = 0, n = stacks_frames(f->stacks, &known); i < n; i++)
                labels_place(f->labels, i, &places[known[i].offset]);
        labels_find(f->labels, f->stacks);
}

static void has_label(struct fixture *f, unsigned frame, const char *wanted) {
        const struct rec_frame *known;
        uint32_t n = stacks_frames(f->stacks, &known);

        for (uint32_t i = 0; i < n; i++)
                if (known[i].offset == frame) {
                        if (wanted)
                                assert_string_equal(labels_get(f->labels, i), wanted);
                        else
                                assert_null(labels_get(f->labels, i));
                        return;
                }
        fail();
}

static void a_program_starts_in_libc(void **state) {
        struct fixture *f = *state;

        label_stack(f, (unsigned[]){ WORK, MAIN, CALL_MAIN, START_MAIN, START }, 5, REC_STACK_COMPLETE);
        has_label(f, START, "[program start]");
        has_label(f, START_MAIN, NULL); /* it has a name */
        has_label(f, CALL_MAIN, "[libc start]");
        has_label(f, MAIN, NULL);
        has_label(f, WORK, NULL);
}

static void a_thread_starts_in_libc(void **state) {
        struct fixture *f = *state;

        label_stack(f, (unsigned[]){ WORK, THREAD, START_THREAD, CLONE }, 4, REC_STACK_COMPLETE);
        has_label(f, CLONE, "[libc start]");
        has_label(f, START_THREAD, "[libc start]");
        has_label(f, THREAD, NULL);
        has_label(f, WORK, NULL);
}

static void all_of_the_loader_is_the_loader(void **state) {
        struct fixture *f = *state;

        label_stack(f, (unsigned[]){ LOADER, WORK, LOADER, LOADER_START }, 4, REC_STACK_COMPLETE);
        has_label(f, LOADER_START, "[ld.so]");
        has_label(f, LOADER, "[ld.so]");
        has_label(f, WORK, NULL);
        label_stack(f, (unsigned[]){ LOADER, MAIN }, 2, REC_STACK_COPY_ENDED);
        has_label(f, LOADER, "[ld.so]");
}

static void what_libc_does_for_the_program_has_no_label(void **state) {
        struct fixture *f = *state;

        label_stack(f, (unsigned[]){ CLONE, START_THREAD, MAIN, CALL_MAIN, START_MAIN, START }, 6,
                    REC_STACK_COMPLETE);
        has_label(f, START_THREAD, NULL);
        has_label(f, CLONE, NULL);
}

static void of_libc_alone_two_frames_are_the_start(void **state) {
        struct fixture *f = *state;

        label_stack(f, (unsigned[]){ CALL_MAIN, START_THREAD, CLONE }, 3, REC_STACK_COMPLETE);
        has_label(f, START_THREAD, "[libc start]");
        has_label(f, CALL_MAIN, NULL);
}

static void stacks_without_their_root_get_none(void **state) {
        struct fixture *f = *state;

        label_stack(f, (unsigned[]){ MAIN, CALL_MAIN, START_MAIN, START }, 4, REC_STACK_COPY_ENDED);
        has_label(f, START, NULL);
        has_label(f, CALL_MAIN, NULL);
}

static void a_root_that_is_no_entry_gets_none(void **state) {
        struct fixture *f = *state;

        label_stack(f, (unsigned[]){ MAIN, CALL_MAIN, WORK }, 3, REC_STACK_COMPLETE);
        has_label(f, CALL_MAIN, NULL);
        has_label(f, WORK, NULL);
}

static void short_stacks_are_no_trouble(void **state) {
        struct fixture *f = *state;

        label_stack(f, (unsigned[]){ LOADER }, 0, REC_STACK_COMPLETE);
        label_stack(f, (unsigned[]){ LOADER }, 1, REC_STACK_COMPLETE);
        label_stack(f, (unsigned[]){ START }, 1, REC_STACK_COMPLETE);
        label_stack(f, (unsigned[]){ CLONE }, 1, REC_STACK_COMPLETE);
        has_label(f, LOADER, "[ld.so]");
        has_label(f, START, "[program start]");
        has_label(f, CLONE, "[libc start]");
}

/* ---- what a file is ---- */

static struct elf_image *open_image(const char *path) {
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
        struct elf_image *image = NULL;

        assert_true(fd >= 0);
        assert_int_equal(elf_image_new(fd, &image), 0);
        return image;
}

static void libc_and_the_loader_are_known_by_their_own_name(void **state) {
        _cleanup_(elf_image_freep) struct elf_image *libc = open_image("/lib/x86_64-linux-gnu/libc.so.6"),
                                                    *loader = open_image("/lib64/ld-linux-x86-64.so.2"),
                                                    *self = open_image("/proc/self/exe");

        assert_int_equal(module_role(libc), MODULE_LIBC);
        assert_int_equal(module_role(loader), MODULE_LOADER);
        assert_int_equal(module_role(self), MODULE_OTHER);
}

static void the_entry_point_is_the_one_of_the_header(void **state) {
        _cleanup_(elf_image_freep) struct elf_image *self = open_image("/proc/self/exe");
        size_t bytes;
        const Elf64_Ehdr *header = (const void *) elf_image_data(self, &bytes);

        assert_true(module_is_entry(self, header->e_entry));
        assert_true(module_is_entry(self, header->e_entry + 33));
        assert_false(module_is_entry(self, header->e_entry - 1));
        assert_false(module_is_entry(self, header->e_entry + 64));
        assert_false(module_is_entry(self, 0));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(a_program_starts_in_libc, set_up, tear_down),
                cmocka_unit_test_setup_teardown(a_thread_starts_in_libc, set_up, tear_down),
                cmocka_unit_test_setup_teardown(all_of_the_loader_is_the_loader, set_up, tear_down),
                cmocka_unit_test_setup_teardown(what_libc_does_for_the_program_has_no_label, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(of_libc_alone_two_frames_are_the_start, set_up, tear_down),
                cmocka_unit_test_setup_teardown(stacks_without_their_root_get_none, set_up, tear_down),
                cmocka_unit_test_setup_teardown(a_root_that_is_no_entry_gets_none, set_up, tear_down),
                cmocka_unit_test_setup_teardown(short_stacks_are_no_trouble, set_up, tear_down),
                cmocka_unit_test(libc_and_the_loader_are_known_by_their_own_name),
                cmocka_unit_test(the_entry_point_is_the_one_of_the_header),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
