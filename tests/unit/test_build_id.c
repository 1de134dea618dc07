/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <elf.h>
#include <errno.h>
#include <string.h>

#include "symbolize/build_id.h"

/* One note as it lies in a file: header, "GNU\0", and an id of 4 bytes. */
static const uint8_t note[] = {
        4, 0, 0, 0, 4, 0, 0, 0, NT_GNU_BUILD_ID, 0, 0, 0, 'G', 'N', 'U', 0, 0xde, 0xad, 0xbe, 0xef,
};

static void finds_the_id(void **state) {
        struct build_id id = BUILD_ID_NULL;

        assert_int_equal(build_id_from_notes(note, sizeof(note), &id), 0);
        assert_int_equal(id.size, 4);
        assert_memory_equal(id.bytes, note + 16, 4);
}

static void every_truncation_fails_and_leaves_the_result_alone(void **state) {
        for (size_t cut = 0; cut < sizeof(note); cut++) {
                struct build_id id = { .size = 7 };

                assert_int_not_equal(build_id_from_notes(note, cut, &id), 0);
                assert_int_equal(id.size, 7);
        }
}

static void sizes_that_lie_are_refused(void **state) {
        uint8_t huge[sizeof(note)];
        struct build_id id = BUILD_ID_NULL;

        memcpy(huge, note, sizeof(note));
        memset(huge, 0xff, 4); /* a name of 4 GB */
        assert_int_equal(build_id_from_notes(huge, sizeof(huge), &id), -EBADMSG);
}

static void files_without_ids_are_never_equal(void **state) {
        assert_false(build_id_equal(&BUILD_ID_NULL, &BUILD_ID_NULL));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(finds_the_id),
                cmocka_unit_test(every_truncation_fails_and_leaves_the_result_alone),
                cmocka_unit_test(sizes_that_lie_are_refused),
                cmocka_unit_test(files_without_ids_are_never_equal),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
