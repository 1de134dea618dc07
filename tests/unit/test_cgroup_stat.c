/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/macro.h"
#include "daemon/cgroup_stat.h"

/* A hierarchy of two levels in a directory, with files as the kernel writes them. */

static char root[PATH_MAX], slice[PATH_MAX + 16], unit[PATH_MAX + 32];

static void put(const char *dir, const char *name, const char *text) {
        char path[2 * PATH_MAX];
        FILE *f;

        snprintf(path, sizeof(path), "%s/%s", dir, name);
        f = fopen(path, "we");
        assert_non_null(f);
        fputs(text, f);
        fclose(f);
}

static void put_cpu(const char *dir, unsigned throttled) {
        char text[256];

        snprintf(text, sizeof(text),
                 "usage_usec 5000\nuser_usec 4000\nsystem_usec 1000\nnr_periods %u\nnr_throttled "
                 "%u\nthrottled_usec %u\n",
                 throttled + 1, throttled, throttled * 1000);
        put(dir, "cpu.stat", text);
}

static int setup(void **state) {
        snprintf(root, sizeof(root), "/tmp/cgroup-stat.XXXXXX");
        assert_non_null(mkdtemp(root));
        snprintf(slice, sizeof(slice), "%s/system.slice", root);
        snprintf(unit, sizeof(unit), "%s/foo.service", slice);
        assert_int_equal(mkdir(slice, 0700), 0);
        assert_int_equal(mkdir(unit, 0700), 0);
        return 0;
}

static int teardown(void **state) {
        static const char *const names[] = { "cpu.stat", "memory.events", "memory.pressure" };
        const char *const dirs[] = { unit, slice, root };
        char path[2 * PATH_MAX];

        for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
                for (size_t j = 0; j < ARRAY_SIZE(names); j++) {
                        snprintf(path, sizeof(path), "%s/%s", dirs[i], names[j]);
                        unlink(path);
                }
                rmdir(dirs[i]);
        }
        return 0;
}

static char told[1024];

static void note(void *userdata, const char *name, const char *value) {
        size_t at = strlen(told);

        snprintf(told + at, sizeof(told) - at, "%s=%s ", name, value);
}

static const char *tell(const struct cgroup_stat *before, const struct cgroup_stat *now) {
        told[0] = '\0';
        cgroup_stat_tell(before, now, unit, note, NULL);
        return told;
}

static void what_was_added_is_told_of_the_level_that_was_held_longest(void **state) {
        struct cgroup_stat before = {}, now;

        put_cpu(unit, 0);
        put_cpu(slice, 7);
        cgroup_stat_read(unit, root, &before);
        now = before;
        put_cpu(unit, 2);
        put_cpu(slice, 8);
        cgroup_stat_read(unit, root, &now);
        assert_string_equal(tell(&before, &now),
                            "cgroup.cpu.throttled_by=foo.service cgroup.cpu.periods=2 "
                            "cgroup.cpu.throttled_periods=2 cgroup.cpu.throttled_usec=2000 ");
        put_cpu(slice, 12);
        cgroup_stat_read(unit, root, &now);
        assert_string_equal(tell(&before, &now),
                            "cgroup.cpu.throttled_by=system.slice cgroup.cpu.periods=5 "
                            "cgroup.cpu.throttled_periods=5 cgroup.cpu.throttled_usec=5000 ");
}

static void what_cannot_be_read_any_more_keeps_its_value(void **state) {
        struct cgroup_stat before = {}, now = {};

        put_cpu(unit, 3);
        put(unit, "memory.events", "low 0\nhigh 12\nmax 1\noom 0\n");
        put(unit, "memory.pressure",
            "some avg10=0.00 avg60=1.00 avg300=0.00 total=4321\nfull avg10=0.00 total=9\n");
        cgroup_stat_read(unit, root, &now);
        teardown(NULL);
        cgroup_stat_read(unit, root, &now);
        assert_string_equal(
                tell(&before, &now),
                "cgroup.cpu.throttled_by=foo.service cgroup.cpu.periods=4 cgroup.cpu.throttled_periods=3 "
                "cgroup.cpu.throttled_usec=3000 cgroup.memory.high=12 cgroup.memory.max=1 "
                "cgroup.memory.stall_usec=4321 ");
}

static void a_new_cgroup_begins_with_zeros(void **state) {
        struct cgroup_stat before = {}, now;

        put_cpu(unit, 9);
        cgroup_stat_read(unit, root, &before);
        now = before;
        cgroup_stat_forget_own(&before);
        cgroup_stat_forget_own(&now);
        put_cpu(unit, 1);
        cgroup_stat_read(unit, root, &now);
        assert_non_null(strstr(tell(&before, &now), "cgroup.cpu.throttled_usec=1000 "));
}

static void without_controllers_there_is_nothing_to_tell(void **state) {
        struct cgroup_stat before = {}, now = {};

        put(unit, "cpu.stat", "usage_usec 1\nuser_usec 1\nsystem_usec 0\n");
        put(unit, "memory.events", "");
        cgroup_stat_read(unit, root, &now);
        assert_string_equal(tell(&before, &now), "");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(what_was_added_is_told_of_the_level_that_was_held_longest,
                                                setup, teardown),
                cmocka_unit_test_setup_teardown(what_cannot_be_read_any_more_keeps_its_value, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(a_new_cgroup_begins_with_zeros, setup, teardown),
                cmocka_unit_test_setup_teardown(without_controllers_there_is_nothing_to_tell, setup,
                                                teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
