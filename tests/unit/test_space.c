/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>

#include "proto/recording.h"
#include "worker/space.h"

static void map(struct spaces *s, uint32_t number, uint64_t start, uint64_t end, uint32_t module) {
        const struct space_mapping mapping = {
                .start = start, .end = end, .offset = start, .module = module
        };

        assert_int_equal(spaces_map(s, number, &mapping), 0);
}

/* Module at an address, REC_NONE: nothing is mapped. Offsets equal addresses in these tests. */
static uint32_t module_at(const struct spaces *s, uint32_t number, uint64_t address) {
        const struct space_mapping *m = spaces_find(s, number, address);

        if (!m)
                return REC_NONE;
        assert_true(m->start <= address && address < m->end);
        assert_int_equal(m->offset, m->start);
        return m->module;
}

static void a_mapping_holds_its_first_byte_and_not_the_one_behind_its_last(void **state) {
        _cleanup_(spaces_freep) struct spaces *s = spaces_new();

        map(s, 0, 0x1000, 0x2000, 1);
        assert_int_equal(module_at(s, 0, 0xfff), REC_NONE);
        assert_int_equal(module_at(s, 0, 0x1000), 1);
        assert_int_equal(module_at(s, 0, 0x1fff), 1);
        assert_int_equal(module_at(s, 0, 0x2000), REC_NONE);
        assert_int_equal(module_at(s, 1, 0x1000), REC_NONE);
        assert_int_equal(module_at(s, SPACES_MAX, 0x1000), REC_NONE);
}

static void a_new_mapping_overlays_what_was_there(void **state) {
        _cleanup_(spaces_freep) struct spaces *s = spaces_new();

        map(s, 0, 0x1000, 0x9000, 1);
        map(s, 0, 0x3000, 0x4000, 2); /* in the middle: the rest stays on both sides */
        assert_int_equal(module_at(s, 0, 0x2fff), 1);
        assert_int_equal(module_at(s, 0, 0x3000), 2);
        assert_int_equal(module_at(s, 0, 0x4000), 1);
        assert_int_equal(module_at(s, 0, 0x8fff), 1);

        map(s, 0, 0x2000, 0x5000, 3); /* over all of one and parts of two */
        assert_int_equal(module_at(s, 0, 0x1fff), 1);
        assert_int_equal(module_at(s, 0, 0x3000), 3);
        assert_int_equal(module_at(s, 0, 0x5000), 1);

        map(s, 0, 0, UINT64_MAX, 4);
        assert_int_equal(module_at(s, 0, 0x1000), 4);
        assert_int_equal(module_at(s, 0, 0x8000), 4);
}

static void neighbours_do_not_touch_each_other(void **state) {
        _cleanup_(spaces_freep) struct spaces *s = spaces_new();

        map(s, 0, 0x2000, 0x3000, 2);
        map(s, 0, 0x1000, 0x2000, 1);
        map(s, 0, 0x3000, 0x4000, 3);
        for (uint32_t i = 1; i <= 3; i++) {
                assert_int_equal(module_at(s, 0, i * 0x1000), i);
                assert_int_equal(module_at(s, 0, i * 0x1000 + 0xfff), i);
        }
}

static void a_fork_is_a_copy_that_changes_alone(void **state) {
        _cleanup_(spaces_freep) struct spaces *s = spaces_new();

        map(s, 0, 0x1000, 0x2000, 1);
        assert_int_equal(spaces_begin(s, 1, 0), 0);
        assert_int_equal(spaces_begin(s, 2, 1), 0);
        assert_int_equal(module_at(s, 2, 0x1000), 1);

        map(s, 1, 0x1000, 0x2000, 7);
        map(s, 0, 0x5000, 0x6000, 8);
        assert_int_equal(module_at(s, 0, 0x1000), 1);
        assert_int_equal(module_at(s, 1, 0x1000), 7);
        assert_int_equal(module_at(s, 2, 0x1000), 1);
        assert_int_equal(module_at(s, 1, 0x5000), REC_NONE);
        assert_int_equal(module_at(s, 2, 0x5000), REC_NONE);
}

static void an_exec_begins_empty_and_so_does_a_copy_of_the_unknown(void **state) {
        _cleanup_(spaces_freep) struct spaces *s = spaces_new();

        map(s, 0, 0x1000, 0x2000, 1);
        assert_int_equal(spaces_begin(s, 0, REC_NONE), 0);
        assert_int_equal(module_at(s, 0, 0x1000), REC_NONE);
        map(s, 0, 0x1000, 0x2000, 1);
        assert_int_equal(spaces_begin(s, 0, 0), 0); /* of itself */
        assert_int_equal(module_at(s, 0, 0x1000), 1);
        assert_int_equal(spaces_begin(s, 0, 4711), 0);
        assert_int_equal(module_at(s, 0, 0x1000), REC_NONE);
}

static void limits_and_empty_mappings_are_refused(void **state) {
        _cleanup_(spaces_freep) struct spaces *s = spaces_new();
        struct space_mapping mapping = { .start = 0x1000, .end = 0x1000 };
        int r = 0;

        assert_int_equal(spaces_map(s, 0, &mapping), -EINVAL);
        mapping.end = 0;
        assert_int_equal(spaces_map(s, 0, &mapping), -EINVAL);
        assert_int_equal(spaces_begin(s, SPACES_MAX, REC_NONE), -ERANGE);
        mapping.end = 0x2000;
        assert_int_equal(spaces_map(s, SPACES_MAX, &mapping), -ERANGE);

        for (uint32_t i = 0; r == 0 && i <= SPACE_MAPPINGS_MAX; i++) {
                mapping.start = (uint64_t) i * 0x2000;
                mapping.end = mapping.start + 0x1000;
                r = spaces_map(s, 0, &mapping);
        }
        assert_int_equal(r, -ERANGE);
        assert_non_null(spaces_find(s, 0, 0x2000));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_mapping_holds_its_first_byte_and_not_the_one_behind_its_last),
                cmocka_unit_test(a_new_mapping_overlays_what_was_there),
                cmocka_unit_test(neighbours_do_not_touch_each_other),
                cmocka_unit_test(a_fork_is_a_copy_that_changes_alone),
                cmocka_unit_test(an_exec_begins_empty_and_so_does_a_copy_of_the_unknown),
                cmocka_unit_test(limits_and_empty_mappings_are_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
