/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "daemon/merge.h"

struct seen {
        uint32_t kinds[64];
        size_t count;
};

static void see(void *userdata, struct merge_item *item) {
        struct seen *seen = userdata;

        seen->kinds[seen->count++] = item->kind;
}

static void items_come_in_the_order_of_time(void **state) {
        _cleanup_(merge_freep) struct merge *m = merge_new();
        struct seen seen = {};

        merge_add(m, 30, 3, NULL, 0);
        merge_add(m, 10, 1, NULL, 0);
        merge_add(m, 20, 2, NULL, 0);
        merge_release(m, 30, see, &seen);
        assert_int_equal(seen.count, 3);
        for (uint32_t i = 0; i < 3; i++)
                assert_int_equal(seen.kinds[i], i + 1);
}

static void young_items_wait_for_older_ones(void **state) {
        _cleanup_(merge_freep) struct merge *m = merge_new();
        struct seen seen = {};

        merge_add(m, 20, 2, NULL, 0);
        merge_release(m, 19, see, &seen);
        assert_int_equal(seen.count, 0);
        merge_add(m, 10, 1, NULL, 0);
        merge_release(m, 20, see, &seen);
        assert_int_equal(seen.count, 2);
        assert_int_equal(seen.kinds[0], 1);
        merge_release(m, UINT64_MAX, see, &seen);
        assert_int_equal(seen.count, 2);
}

static void equal_times_keep_the_order_of_arrival(void **state) {
        _cleanup_(merge_freep) struct merge *m = merge_new();
        struct seen seen = {};

        for (uint32_t i = 0; i < 60; i++)
                merge_add(m, 7, i, NULL, 0);
        merge_release(m, 7, see, &seen);
        for (uint32_t i = 0; i < 60; i++)
                assert_int_equal(seen.kinds[i], i);
}

static void see_data(void *userdata, struct merge_item *item) {
        assert_int_equal(item->bytes, 5);
        assert_memory_equal(item->data, "bytes", 5);
        assert_string_equal(item->texts[1], "text");
        *(int *) userdata += 1;
}

static void bytes_and_texts_are_the_items_own(void **state) {
        _cleanup_(merge_freep) struct merge *m = merge_new();
        char data[] = "bytes";
        struct merge_item *item = merge_add(m, 1, 0, data, 5);
        int seen = 0;

        item->texts[1] = strdup("text");
        memset(data, 'x', sizeof(data));
        merge_release(m, 1, see_data, &seen);
        assert_int_equal(seen, 1);
        assert_non_null(merge_add(m, 2, 0, "left", 4)); /* freed with the merge */
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(items_come_in_the_order_of_time),
                cmocka_unit_test(young_items_wait_for_older_ones),
                cmocka_unit_test(equal_times_keep_the_order_of_arrival),
                cmocka_unit_test(bytes_and_texts_are_the_items_own),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
