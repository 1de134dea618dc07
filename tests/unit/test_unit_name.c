/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/macro.h"
#include "common/unit_name.h"

struct pair {
        const char *from, *to; /* to NULL: -EINVAL */
};

static void expect(int (*f)(const char *from, char **ret), const struct pair *pairs, size_t n) {
        for (size_t i = 0; i < n; i++) {
                _cleanup_free_ char *got = NULL;
                int r = f(pairs[i].from, &got);

                if (pairs[i].to) {
                        assert_int_equal(r, 0);
                        assert_string_equal(got, pairs[i].to);
                } else {
                        assert_int_equal(r, -EINVAL);
                        assert_null(got);
                }
        }
}

static void names_are_completed_as_systemctl_does(void **state) {
        static const struct pair pairs[] = {
                { "foo", "foo.service" },
                { "foo.service", "foo.service" },
                { "foo.socket", "foo.socket" },
                { "foo.bar", "foo.bar.service" },
                { "getty@tty1", "getty@tty1.service" },
                { "getty@.service", "getty@.service" },
                { "a b", "a\\x20b.service" },
                { "/", "-.mount" },
                { "/home/x", "home-x.mount" },
                { "/dev/sda", "dev-sda.device" },
                { "/sys/class/net", "sys-class-net.device" },
                { "/dev/", "dev.mount" },
                { "/devices/x", "devices-x.mount" },
                { "/.a-b", "\\x2ea\\x2db.mount" },
                { "/var//lib/./y/", "var-lib-y.mount" },
                { "/a/../b", "-a-..-b.service" }, /* no path, then: a name */
                { "a\\x2db", "a\\x2db.service" }, /* escaped already */
                { "foo*", NULL },
                { "foo[12].service", NULL },
                { "@a", NULL },
                { "", NULL },
        };

        expect(unit_name_mangle, pairs, ARRAY_SIZE(pairs));
}

static void names_that_are_too_long_are_refused(void **state) {
        char name[UNIT_NAME_MAX + 2];
        char *got = NULL;

        memset(name, 'x', sizeof(name) - 1);
        name[sizeof(name) - 1] = '\0';
        assert_int_equal(unit_name_mangle(name, &got), -EINVAL);
        assert_null(got);
}

static void templates_instances_and_services_are_told_apart(void **state) {
        assert_true(unit_name_is_template("a@.service"));
        assert_false(unit_name_is_template("a@b.service"));
        assert_false(unit_name_is_template("a.service"));
        assert_true(unit_name_is_service("a@b.service"));
        assert_false(unit_name_is_service("a.socket"));
        assert_false(unit_name_is_valid("a/b.service"));
        assert_false(unit_name_is_valid("a"));
        assert_false(unit_name_is_valid("a.nothing"));
}

/* The names as systemd 252 and 257 make them. */
static int cgroup_252(const char *from, char **ret) {
        return unit_name_cgroup(from, 252, ret);
}

static int cgroup_257(const char *from, char **ret) {
        return unit_name_cgroup(from, 257, ret);
}

static int slice_257(const char *from, char **ret) {
        return unit_slice_cgroup(from, 257, ret);
}

static void cgroup_names_are_escaped_where_they_would_clash(void **state) {
        static const struct pair pairs[] = {
                { "foo.service", "foo.service" },
                { "memory.service", "_memory.service" },
                { "cpu.service", "_cpu.service" },
                { "io.service", "_io.service" },
                { "pids.service", "_pids.service" },
                { "bpf-firewall.service", "_bpf-firewall.service" },
                { "cgroup.service", "_cgroup.service" },
                { "cgroup.x.service", "_cgroup.x.service" },
                { "_x.service", "__x.service" },
                { ".x.service", "_.x.service" },
                { "memoryd.service", "memoryd.service" },
                { "hugetlb.service", "hugetlb.service" }, /* no controller of systemd's */
                { "tasks.service", "tasks.service" },
                { "tasks", "_tasks" },
        };

        expect(cgroup_252, pairs, ARRAY_SIZE(pairs));
        expect(cgroup_257, pairs, ARRAY_SIZE(pairs));
}

static void names_that_only_begin_like_a_controller_are_escaped_since_254(void **state) {
        static const struct pair old[] = {
                { "io.podman.service", "io.podman.service" },
                { "cpu.a@b.service", "cpu.a@b.service" },
        };
        static const struct pair new[] = {
                { "io.podman.service", "_io.podman.service" },
                { "cpu.a@b.service", "_cpu.a@b.service" },
        };

        expect(cgroup_252, old, ARRAY_SIZE(old));
        expect(cgroup_257, new, ARRAY_SIZE(new));
}

static void slices_become_paths(void **state) {
        static const struct pair pairs[] = {
                { "-.slice", "" },
                { "system.slice", "/system.slice" },
                { "a-b-c.slice", "/a.slice/a-b.slice/a-b-c.slice" },
                { "system-getty.slice", "/system.slice/system-getty.slice" },
                { "memory.slice", "/_memory.slice" },
                { "cpu-x.slice", "/_cpu.slice/cpu-x.slice" },
                { "cpu.x-b.slice", "/_cpu.x.slice/_cpu.x-b.slice" },
                { "a--b.slice", NULL },
                { "-a.slice", NULL },
                { "a-.slice", NULL },
                { "a@b.slice", NULL },
                { "a.service", NULL },
        };

        expect(slice_257, pairs, ARRAY_SIZE(pairs));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(names_are_completed_as_systemctl_does),
                cmocka_unit_test(names_that_are_too_long_are_refused),
                cmocka_unit_test(templates_instances_and_services_are_told_apart),
                cmocka_unit_test(cgroup_names_are_escaped_where_they_would_clash),
                cmocka_unit_test(names_that_only_begin_like_a_controller_are_escaped_since_254),
                cmocka_unit_test(slices_become_paths),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
