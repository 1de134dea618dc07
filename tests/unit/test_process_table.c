/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/process_table.h"

static void a_pid_means_the_youngest_process(void **state) {
        _cleanup_(process_table_freep) struct process_table *t = process_table_new();

        assert_int_equal(process_table_find(t, 7), REC_NONE);
        assert_int_equal(process_table_add(t, 7, REC_NONE, 100), 0);
        assert_int_equal(process_table_add(t, 8, 0, 200), 1);
        assert_int_equal(process_table_add(t, 7, 1, 300), 2);
        assert_int_equal(process_table_find(t, 7), 2);
        assert_int_equal(process_table_get(t, 2)->row.parent_pid, 8);
        assert_int_equal(process_table_get(t, 0)->row.begin_ns, 100);
        assert_int_equal(process_table_count(t), 3);
}

static void slots_are_inherited_unless_told(void **state) {
        _cleanup_(process_table_freep) struct process_table *t = process_table_new();

        process_table_set_slot(t, 10, REC_SLOT_START_PRE); /* before it is known */
        process_table_add(t, 10, REC_NONE, 1);
        process_table_add(t, 11, 0, 2);
        process_table_add(t, 12, 1, 3);
        process_table_add(t, 20, REC_NONE, 4);
        process_table_add(t, 21, 3, 5);
        process_table_set_slot(t, 20, REC_SLOT_START);
        process_table_set_slot(t, 21, REC_SLOT_START_POST);
        process_table_set_slot(t, 10, REC_SLOT_CONDITION); /* the last word counts */
        process_table_set_slot(t, 99, REC_SLOT_STOP); /* never appears */
        process_table_spread_slots(t);

        assert_int_equal(process_table_get(t, 0)->row.slot, REC_SLOT_CONDITION);
        assert_int_equal(process_table_get(t, 1)->row.slot, REC_SLOT_CONDITION);
        assert_int_equal(process_table_get(t, 2)->row.slot, REC_SLOT_CONDITION);
        assert_int_equal(process_table_get(t, 3)->row.slot, REC_SLOT_START);
        assert_int_equal(process_table_get(t, 4)->row.slot, REC_SLOT_START_POST);
}

static void there_is_a_limit(void **state) {
        _cleanup_(process_table_freep) struct process_table *t = process_table_new();

        for (uint32_t i = 0; i < PROCESSES_MAX; i++)
                assert_int_equal(process_table_add(t, i + 1, REC_NONE, i), i);
        assert_int_equal(process_table_add(t, 1, REC_NONE, 1), REC_NONE);
        assert_int_equal(process_table_count(t), PROCESSES_MAX);
        assert_int_equal(process_table_find(t, 1), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_pid_means_the_youngest_process),
                cmocka_unit_test(slots_are_inherited_unless_told),
                cmocka_unit_test(there_is_a_limit),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
