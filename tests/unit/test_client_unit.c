/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "client/message.h"
#include "client/unit.h"
#include "common/macro.h"

/* A unit that may be started; texts are literals and never freed. */
static struct unit startable(void) {
        return (struct unit){
                .id = (char *) "x.service",
                .load_state = (char *) "loaded",
                .load_error = (char *) "",
                .active_state = (char *) "inactive",
        };
}

static void is_refused(const struct unit *u, bool wait, int status, const char *part) {
        _cleanup_free_ char *message = NULL;

        assert_int_equal(unit_refusal(u, wait, false, false, &message), status);
        assert_non_null(message);
        if (!strstr(message, part))
                fail_msg("'%s' does not say '%s'", message, part);
        assert_null(strchr(message, '\n'));
}

static void is_taken(const struct unit *u, bool wait, bool restart, bool can_ask) {
        char *message = NULL;

        assert_int_equal(unit_refusal(u, wait, restart, can_ask, &message), 0);
        assert_null(message);
}

static void typed_names_become_services(void **state) {
        _cleanup_free_ char *name = NULL;
        char *message = NULL;

        assert_int_equal(unit_name_typed("nginx", &name, &message), 0);
        assert_string_equal(name, "nginx.service");
        assert_null(message);
}

static void names_that_cannot_start_are_told(void **state) {
        static const struct {
                const char *typed, *part;
        } cases[] = {
                { "cups.socket", "cups.socket is not a service" },
                { "/home", "is not a service" },
                { "getty@.service", "getty@NAME.service" },
                { "", "cannot be the name" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_free_ char *message = NULL;
                char *name = NULL;

                assert_int_equal(unit_name_typed(cases[i].typed, &name, &message), EXIT_USAGE);
                assert_null(name);
                if (!strstr(message, cases[i].part))
                        fail_msg("'%s' does not say '%s'", message, cases[i].part);
        }
}

static void an_inactive_unit_is_simply_started(void **state) {
        struct unit u = startable();

        assert_false(unit_needs_restart(&u));
        is_taken(&u, false, false, false);
        u.active_state = (char *) "failed";
        is_taken(&u, false, false, false);
        is_taken(&u, true, false, false);
}

static void an_active_unit_needs_a_yes(void **state) {
        static const char *const states[] = { "active", "activating", "reloading" };

        for (size_t i = 0; i < ARRAY_SIZE(states); i++) {
                struct unit u = startable();

                u.active_state = (char *) states[i];
                assert_true(unit_needs_restart(&u));
                is_refused(&u, false, EXIT_USAGE, "--restart");
                is_taken(&u, false, true, false);
                is_taken(&u, false, false, true);
                is_taken(&u, true, false, false);
        }
}

static void what_systemd_would_refuse_is_refused_first(void **state) {
        struct unit u = startable();

        u.load_state = (char *) "not-found";
        is_refused(&u, false, EXIT_NOT_FOUND, "there is no unit x.service");
        is_refused(&u, true, EXIT_NOT_FOUND, "there is no unit x.service");

        u.load_state = (char *) "masked";
        is_refused(&u, false, EXIT_START_FAILED, "systemctl unmask x.service");

        u.load_state = (char *) "bad-setting";
        u.load_error = (char *) "Unit x.service has a bad unit file setting.";
        is_refused(&u, false, EXIT_START_FAILED, u.load_error);
        u.load_error = (char *) "";
        is_refused(&u, false, EXIT_START_FAILED, "bad-setting");
}

static void manual_starts_that_are_forbidden_can_be_waited_for(void **state) {
        struct unit u = startable();

        u.refuse_manual_start = true;
        is_refused(&u, false, EXIT_START_FAILED, "RefuseManualStart=");
        is_taken(&u, true, false, false);

        u = startable();
        u.refuse_manual_stop = true;
        is_taken(&u, false, false, false);
        u.active_state = (char *) "active";
        is_refused(&u, false, EXIT_START_FAILED, "RefuseManualStop=");
        is_taken(&u, true, false, false);
}

static void an_alias_of_another_type_is_no_service(void **state) {
        struct unit u = startable();

        u.id = (char *) "x.target";
        is_refused(&u, false, EXIT_USAGE, "not a service");
}

static void the_question_names_those_that_restart_too(void **state) {
        char *followers[] = { (char *) "a.service", (char *) "b.service", NULL };
        _cleanup_free_ char *alone = NULL, *together = NULL;
        struct unit u = startable();

        u.active_state = (char *) "active";
        alone = unit_question(&u);
        assert_string_equal(alone, "x.service is active. Restart it?");
        u.followers = followers;
        together = unit_question(&u);
        assert_string_equal(together, "x.service is active. Restart it, and with it a.service, b.service?");
}

static void a_long_list_is_counted(void **state) {
        char *followers[FOLLOWERS_MAX + 4] = {};
        _cleanup_free_ char *question = NULL;
        struct unit u = startable();

        for (size_t i = 0; i < FOLLOWERS_MAX + 3; i++)
                followers[i] = (char *) "a.service";
        u.active_state = (char *) "active";
        u.followers = followers;
        question = unit_question(&u);
        assert_non_null(endswith(question, " and 3 more?"));
}

static void refusals_of_systemd_keep_its_words(void **state) {
        static const struct {
                sd_bus_error error;
                int status;
                const char *part;
        } cases[] = {
                { SD_BUS_ERROR_MAKE_CONST("org.freedesktop.DBus.Error.AccessDenied", "Access denied"),
                  EXIT_START_FAILED, "you may not start x.service (Access denied)" },
                { SD_BUS_ERROR_MAKE_CONST("org.freedesktop.DBus.Error.InteractiveAuthorizationRequired",
                                          "ask"),
                  EXIT_START_FAILED, "sudo" },
                { SD_BUS_ERROR_MAKE_CONST("org.freedesktop.systemd1.NoSuchUnit", "gone"), EXIT_NOT_FOUND,
                  "no unit" },
                { SD_BUS_ERROR_MAKE_CONST("org.freedesktop.systemd1.UnitMasked",
                                          "Unit x.service is masked."),
                  EXIT_START_FAILED, "Unit x.service is masked." },
        };
        struct unit u = startable();

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_free_ char *message = NULL;

                assert_int_equal(unit_start_refusal(&u, &cases[i].error, &message), cases[i].status);
                if (!strstr(message, cases[i].part))
                        fail_msg("'%s' does not say '%s'", message, cases[i].part);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(typed_names_become_services),
                cmocka_unit_test(names_that_cannot_start_are_told),
                cmocka_unit_test(an_inactive_unit_is_simply_started),
                cmocka_unit_test(an_active_unit_needs_a_yes),
                cmocka_unit_test(what_systemd_would_refuse_is_refused_first),
                cmocka_unit_test(manual_starts_that_are_forbidden_can_be_waited_for),
                cmocka_unit_test(an_alias_of_another_type_is_no_service),
                cmocka_unit_test(the_question_names_those_that_restart_too),
                cmocka_unit_test(a_long_list_is_counted),
                cmocka_unit_test(refusals_of_systemd_keep_its_words),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
