/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fd.h"
#include "daemon/store.h"

static const uint8_t boot[16] = { 0xb0, 0x07 }, invocation[16] = { 0x1d }, none[16];

struct place {
        char directory[64];
        struct store *store;
};

static int set_up(void **state) {
        struct place *place = calloc(1, sizeof(*place));

        assert_non_null(place);
        snprintf(place->directory, sizeof(place->directory), "/tmp/test_store.XXXXXX");
        assert_non_null(mkdtemp(place->directory));
        assert_int_equal(store_open(place->directory, &place->store), 0);
        *state = place;
        return 0;
}

static void remove_file(const char *directory, const char *id, const char *suffix) {
        char path[512];

        snprintf(path, sizeof(path), "%s/%s%s", directory, id, suffix);
        (void) unlink(path);
}

static int tear_down(void **state) {
        struct place *place = *state;
        json_t *list = NULL, *recording;
        size_t i;

        assert_int_equal(store_list(place->store, NULL, &list), 0);
        json_array_foreach(list, i, recording) {
                const char *id = json_string_value(json_object_get(recording, "id"));

                remove_file(place->directory, id, ".startprof");
                remove_file(place->directory, id, ".json");
        }
        json_decref(list);
        store_close(place->store);
        (void) rmdir(place->directory);
        free(place);
        return 0;
}

static void keep(struct place *place, const char *id, const char *unit, json_int_t usec) {
        json_t *summary = json_pack("{s:s, s:I}", "unit", unit, "realtime_usec", usec);

        assert_int_equal(store_write(place->store, id, "12345", 5, summary), 0);
        json_decref(summary);
}

static void ids_name_unit_boot_and_invocation(void **state) {
        _cleanup_free_ char *id = NULL, *skipped = NULL;

        assert_int_equal(store_make_id("a@b.service", boot, invocation, 7, &id), 0);
        assert_string_equal(id, "a@b.service.b0070000.1d000000000000000000000000000000");
        assert_int_equal(store_make_id("a.service", boot, none, 255, &skipped), 0);
        assert_string_equal(skipped, "a.service.b0070000.000000000000000000000000000000ff");
}

static void the_longest_unit_name_fits_a_file_name(void **state) {
        struct place *place = *state;
        _cleanup_free_ char *id = NULL;
        char unit[256];

        memset(unit, 'u', 255);
        unit[255] = '\0';
        assert_int_equal(store_make_id(unit, boot, invocation, 0, &id), 0);
        keep(place, id, unit, 1);
        assert_true(strlen(id) <= STORE_ID_MAX);
}

static void what_is_written_is_read_again_and_is_for_root_only(void **state) {
        struct place *place = *state;
        _cleanup_close_ int fd = -EBADF;
        char data[8] = "";
        struct stat st;

        keep(place, "x.service.1.2", "x.service", 1);
        fd = store_fd(place->store, "x.service.1.2");
        assert_true(fd >= 0);
        assert_int_equal(fd_read_full(fd, data, sizeof(data)), 5);
        assert_memory_equal(data, "12345", 5);
        assert_int_equal(fstat(fd, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
}

static void ids_never_leave_the_directory(void **state) {
        static const char *const bad[] = { "", ".", "..", "../x", "a/b", "/etc/passwd", ".hidden" };
        struct place *place = *state;
        char longest[STORE_ID_MAX + 2];

        for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
                assert_int_equal(store_fd(place->store, bad[i]), -EINVAL);
        memset(longest, 'x', sizeof(longest) - 1);
        longest[sizeof(longest) - 1] = '\0';
        assert_int_equal(store_fd(place->store, longest), -EINVAL);
        assert_int_equal(store_fd(place->store, "not.there"), -ENOENT);
}

static void lists_are_newest_first_and_can_be_of_one_unit(void **state) {
        struct place *place = *state;
        json_t *list;

        keep(place, "old", "a.service", 1);
        keep(place, "new", "b.service", 3);
        keep(place, "middle", "a.service", 2);
        assert_int_equal(store_list(place->store, NULL, &list), 0);
        assert_int_equal(json_array_size(list), 3);
        assert_string_equal(json_string_value(json_object_get(json_array_get(list, 0), "id")), "new");
        assert_int_equal(json_integer_value(json_object_get(json_array_get(list, 0), "size")), 5);
        assert_string_equal(json_string_value(json_object_get(json_array_get(list, 2), "id")), "old");
        json_decref(list);
        assert_int_equal(store_list(place->store, "a.service", &list), 0);
        assert_int_equal(json_array_size(list), 2);
        json_decref(list);
}

static void a_damaged_summary_costs_only_its_own_line(void **state) {
        struct place *place = *state;
        char path[512];
        json_t *list;
        FILE *f;

        keep(place, "good", "a.service", 1);
        keep(place, "bad", "a.service", 2);
        snprintf(path, sizeof(path), "%s/bad.json", place->directory);
        f = fopen(path, "w");
        assert_non_null(f);
        fputs("{\"unit\":", f);
        fclose(f);
        assert_int_equal(store_list(place->store, NULL, &list), 0);
        assert_int_equal(json_array_size(list), 1);
        json_decref(list);
        remove_file(place->directory, "bad", ".startprof");
        remove_file(place->directory, "bad", ".json");
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
        const struct CMUnitTest tests[] = {
                TEST(ids_name_unit_boot_and_invocation),
                TEST(the_longest_unit_name_fits_a_file_name),
                TEST(what_is_written_is_read_again_and_is_for_root_only),
                TEST(ids_never_leave_the_directory),
                TEST(lists_are_newest_first_and_can_be_of_one_unit),
                TEST(a_damaged_summary_costs_only_its_own_line),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
