/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/unit.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "client/message.h"
#include "common/buf.h"
#include "common/macro.h"
#include "common/unit_name.h"

#define SYSTEMD_NAME    "org.freedesktop.systemd1"
#define SYSTEMD_PATH    "/org/freedesktop/systemd1"
#define SYSTEMD_MANAGER SYSTEMD_NAME ".Manager"
#define SYSTEMD_UNIT    SYSTEMD_NAME ".Unit"
#define SYSTEMD_SERVICE SYSTEMD_NAME ".Service"

/* A manager of thousands of units takes a while. */
enum { RELOAD_USEC = 90 * 1000 * 1000 };

void unit_done(struct unit *u) {
        free(u->id);
        free(u->load_state);
        free(u->load_error);
        free(u->active_state);
        for (char **f = u->followers; f && *f; f++)
                free(*f);
        free(u->followers);
        *u = UNIT_NULL;
}

/* ---- the bus ---- */

/* Only for root; there even where no bus daemon runs. */
static int open_private(sd_bus **ret) {
        _cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
        int r;

        r = sd_bus_new(&bus);
        if (r < 0)
                return r;
        r = sd_bus_set_address(bus, "unix:path=/run/systemd/private");
        if (r < 0)
                return r;
        r = sd_bus_start(bus);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(bus);
        return 0;
}

int unit_bus_open(sd_bus **ret) {
        int r;

        r = sd_bus_open_system(ret);
        if (r < 0 && geteuid() == 0 && open_private(ret) >= 0)
                return 0;
        return r < 0 ? r : 0;
}

/* Whose signals: on systemd's own socket nobody has a name. */
static const char *signal_sender(sd_bus *bus) {
        const char *unique;

        return sd_bus_get_unique_name(bus, &unique) >= 0 ? SYSTEMD_NAME : NULL;
}

/* ---- properties ---- */

static int copy_string(sd_bus *bus, const char *path, const char *property, char **ret,
                       sd_bus_error *error) {
        return sd_bus_get_property_string(bus, SYSTEMD_NAME, path, SYSTEMD_UNIT, property, error, ret);
}

static int copy_bool(sd_bus *bus, const char *path, const char *property, bool *ret, sd_bus_error *error) {
        int r, value;

        r = sd_bus_get_property_trivial(bus, SYSTEMD_NAME, path, SYSTEMD_UNIT, property, error, 'b', &value);
        if (r >= 0)
                *ret = value;
        return r;
}

/* LoadError is (name, sentence). */
static int copy_load_error(sd_bus *bus, const char *path, char **ret, sd_bus_error *error) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        const char *name, *sentence;
        int r;

        r = sd_bus_get_property(bus, SYSTEMD_NAME, path, SYSTEMD_UNIT, "LoadError", error, &m, "(ss)");
        if (r < 0)
                return r;
        r = sd_bus_message_read(m, "(ss)", &name, &sentence);
        if (r < 0)
                return r;
        *ret = strdup(sentence);
        return *ret ? 0 : -ENOMEM;
}

/* ---- who is restarted with it ---- */

/* Appends one property's names to the array of strings that m is building. */
static int append_names(sd_bus *bus, const char *path, const char *property, sd_bus_message *m,
                        sd_bus_error *error) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *names = NULL;
        const char *name;
        int r;

        r = sd_bus_get_property(bus, SYSTEMD_NAME, path, SYSTEMD_UNIT, property, error, &names, "as");
        if (r < 0)
                return r;
        r = sd_bus_message_enter_container(names, 'a', "s");
        if (r < 0)
                return r;
        while ((r = sd_bus_message_read_basic(names, 's', &name)) > 0) {
                r = sd_bus_message_append_basic(m, 's', name);
                if (r < 0)
                        return r;
        }
        return r;
}

static bool is_up(const char *active_state) {
        return streq(active_state, "active") || streq(active_state, "reloading") ||
               streq(active_state, "activating") || streq(active_state, "refreshing");
}

static int add_follower(struct unit *u, size_t *n, const char *name) {
        char **more;

        for (size_t i = 0; i < *n; i++)
                if (streq(u->followers[i], name))
                        return 0;
        more = reallocarray(u->followers, *n + 2, sizeof(char *));
        if (!more)
                return -ENOMEM;
        u->followers = more;
        more[*n + 1] = NULL;
        more[*n] = strdup(name);
        if (!more[*n])
                return -ENOMEM;
        (*n)++;
        return 0;
}

/* Reads ListUnitsByNames' answer: those that are up. */
static int read_followers(sd_bus_message *answer, struct unit *u) {
        const char *name, *active_state;
        size_t n = 0;
        int r;

        r = sd_bus_message_enter_container(answer, 'a', "(ssssssouso)");
        if (r < 0)
                return r;
        while ((r = sd_bus_message_read(answer, "(ssssssouso)", &name, NULL, NULL, &active_state, NULL, NULL,
                                        NULL, NULL, NULL, NULL)) > 0)
                if (is_up(active_state)) {
                        r = add_follower(u, &n, name);
                        if (r < 0)
                                return r;
                }
        return r;
}

/* The dependencies over which systemd passes a restart on (unit-dependency-atom.c: PROPAGATE_RESTART). */
static int load_followers(sd_bus *bus, const char *path, struct unit *u, sd_bus_error *error) {
        static const char *const properties[] = { "RequiredBy", "RequisiteOf", "BoundBy", "ConsistsOf" };
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL, *answer = NULL;
        int r;

        r = sd_bus_message_new_method_call(bus, &m, SYSTEMD_NAME, SYSTEMD_PATH, SYSTEMD_MANAGER,
                                           "ListUnitsByNames");
        if (r < 0)
                return r;
        r = sd_bus_message_open_container(m, 'a', "s");
        if (r < 0)
                return r;
        for (size_t i = 0; i < ARRAY_SIZE(properties); i++) {
                r = append_names(bus, path, properties[i], m, error);
                if (r < 0)
                        return r;
        }
        r = sd_bus_message_close_container(m);
        if (r < 0)
                return r;
        r = sd_bus_call(bus, m, 0, error, &answer);
        if (r < 0)
                return r;
        return read_followers(answer, u);
}

/* ---- loading ---- */

static int fill(sd_bus *bus, const char *path, struct unit *u, sd_bus_error *error) {
        int r;

        if ((r = copy_string(bus, path, "Id", &u->id, error)) < 0 ||
            (r = copy_string(bus, path, "LoadState", &u->load_state, error)) < 0 ||
            (r = copy_load_error(bus, path, &u->load_error, error)) < 0 ||
            (r = copy_string(bus, path, "ActiveState", &u->active_state, error)) < 0 ||
            (r = copy_bool(bus, path, "RefuseManualStart", &u->refuse_manual_start, error)) < 0 ||
            (r = copy_bool(bus, path, "RefuseManualStop", &u->refuse_manual_stop, error)) < 0 ||
            (r = copy_bool(bus, path, "NeedDaemonReload", &u->need_reload, error)) < 0)
                return r;
        return unit_needs_restart(u) ? load_followers(bus, path, u, error) : 0;
}

int unit_load(sd_bus *bus, const char *name, struct unit *ret, sd_bus_error *error) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *answer = NULL;
        _cleanup_(unit_done) struct unit u = UNIT_NULL;
        const char *path;
        int r;

        r = sd_bus_call_method(bus, SYSTEMD_NAME, SYSTEMD_PATH, SYSTEMD_MANAGER, "LoadUnit", error, &answer,
                               "s", name);
        if (r < 0)
                return r;
        r = sd_bus_message_read(answer, "o", &path);
        if (r < 0)
                return r;
        r = fill(bus, path, &u, error);
        if (r < 0)
                return r;
        *ret = u;
        u = UNIT_NULL;
        return 0;
}

/* ---- judging ---- */

int unit_name_typed(const char *typed, char **ret_name, char **ret_message) {
        _cleanup_free_ char *name = NULL;

        if (unit_name_mangle(typed, &name) < 0)
                return message_make(EXIT_USAGE, ret_message, "'%s' cannot be the name of a unit", typed);
        if (!unit_name_is_service(name))
                return message_make(EXIT_USAGE, ret_message,
                                    "%s is not a service: only starts of services are profiled", name);
        if (unit_name_is_template(name))
                return message_make(EXIT_USAGE, ret_message,
                                    "%s is a template: name an instance of it, %.*sNAME.service", name,
                                    (int) (strlen(name) - strlen(".service")), name);
        *ret_name = TAKE_PTR(name);
        return 0;
}

bool unit_needs_restart(const struct unit *u) {
        return is_up(u->active_state);
}

/* Cannot be loaded, or systemd will not let us: `systemctl start` would fail, too. */
static int refusal_of_systemd(const struct unit *u, bool wait, char **ret_message) {
        const char *sentence = u->load_error && *u->load_error ? u->load_error : u->load_state;

        if (streq(u->load_state, "not-found"))
                return message_make(EXIT_NOT_FOUND, ret_message, "there is no unit %s", u->id);
        if (streq(u->load_state, "masked"))
                return message_make(EXIT_START_FAILED, ret_message,
                                    "%s is masked: 'systemctl unmask %s' allows its start", u->id, u->id);
        if (!streq(u->load_state, "loaded"))
                return message_make(EXIT_START_FAILED, ret_message, "systemd cannot load %s: %s", u->id,
                                    sentence);
        if (u->refuse_manual_start && !wait)
                return message_make(
                        EXIT_START_FAILED, ret_message,
                        "%s has RefuseManualStart=yes: use --wait and let the unit that needs it start it",
                        u->id);
        if (unit_needs_restart(u) && u->refuse_manual_stop && !wait)
                return message_make(
                        EXIT_START_FAILED, ret_message,
                        "%s is active and has RefuseManualStop=yes: use --wait and profile its next start",
                        u->id);
        return 0;
}

int unit_refusal(const struct unit *u, bool wait, bool restart, bool can_ask, char **ret_message) {
        int r;

        r = refusal_of_systemd(u, wait, ret_message);
        if (r != 0)
                return r;
        /* an alias may hide it from unit_name_typed() */
        if (!unit_name_is_service(u->id))
                return message_make(EXIT_USAGE, ret_message,
                                    "%s is not a service: only starts of services are profiled", u->id);
        if (unit_needs_restart(u) && !wait && !restart && !can_ask)
                return message_make(
                        EXIT_USAGE, ret_message,
                        "%s is %s: --restart allows to restart it, --wait profiles its next start", u->id,
                        u->active_state);
        return 0;
}

char *unit_question(const struct unit *u) {
        _cleanup_(buf_done) struct buf text = BUF_NULL;
        char *question = NULL;
        size_t n = 0;

        buf_printf(&text, "%s is %s. Restart it", u->id, u->active_state);
        for (; u->followers && u->followers[n]; n++)
                if (n < FOLLOWERS_MAX)
                        buf_printf(&text, "%s%s", n == 0 ? ", and with it " : ", ", u->followers[n]);
        if (n > FOLLOWERS_MAX)
                buf_printf(&text, " and %zu more", n - FOLLOWERS_MAX);
        buf_putc(&text, '?');
        return buf_take(&text, &question, NULL) < 0 ? NULL : question;
}

/* ---- starting ---- */

int unit_start(sd_bus *bus, const struct unit *u, bool restart, sd_bus_message_handler_t answer,
               void *userdata) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        int r;

        r = sd_bus_message_new_method_call(bus, &m, SYSTEMD_NAME, SYSTEMD_PATH, SYSTEMD_MANAGER,
                                           restart ? "RestartUnit" : "StartUnit");
        if (r < 0)
                return r;
        r = sd_bus_message_append(m, "ss", u->id, "replace");
        if (r < 0)
                return r;
        r = sd_bus_message_set_allow_interactive_authorization(m, 1);
        if (r < 0)
                return r;
        /* no time limit of the bus: somebody may have to type a password first */
        return sd_bus_call_async(bus, NULL, m, answer, userdata, UINT64_MAX);
}

int unit_follow_jobs(sd_bus *bus, sd_bus_message_handler_t removed, void *userdata) {
        int r;

        r = sd_bus_match_signal(bus, NULL, signal_sender(bus), SYSTEMD_PATH, SYSTEMD_MANAGER, "JobRemoved",
                                removed, userdata);
        if (r < 0)
                return r;
        return sd_bus_call_method(bus, SYSTEMD_NAME, SYSTEMD_PATH, SYSTEMD_MANAGER, "Subscribe", NULL, NULL,
                                  NULL);
}

int unit_reload_all(void) {
        _cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        int r;

        r = unit_bus_open(&bus);
        if (r < 0)
                return r;
        r = sd_bus_message_new_method_call(bus, &m, SYSTEMD_NAME, SYSTEMD_PATH, SYSTEMD_MANAGER, "Reload");
        if (r < 0)
                return r;
        r = sd_bus_call(bus, m, RELOAD_USEC, NULL, NULL);
        return MIN(r, 0);
}

/* The last "VARIABLE=value" of an array of strings. */
static int find_assignment(sd_bus_message *m, const char *variable, char **ret) {
        _cleanup_free_ char *value = NULL;
        const char *assignment;
        int r;

        r = sd_bus_message_enter_container(m, 'a', "s");
        if (r < 0)
                return r;
        while ((r = sd_bus_message_read_basic(m, 's', &assignment)) > 0) {
                const char *rest = startswith(assignment, variable);

                if (!rest || *rest != '=')
                        continue;
                free(value);
                value = strdup(rest + 1);
                if (!value)
                        return -ENOMEM;
        }
        if (r < 0)
                return r;
        *ret = TAKE_PTR(value);
        return 0;
}

int unit_environment(sd_bus *bus, const struct unit *u, const char *variable, char **ret,
                     sd_bus_error *error) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        _cleanup_free_ char *path = NULL;
        int r;

        r = sd_bus_path_encode(SYSTEMD_PATH "/unit", u->id, &path);
        if (r < 0)
                return r;
        r = sd_bus_get_property(bus, SYSTEMD_NAME, path, SYSTEMD_SERVICE, "Environment", error, &m, "as");
        return r < 0 ? r : find_assignment(m, variable, ret);
}

int unit_start_refusal(const struct unit *u, const sd_bus_error *error, char **ret_message) {
        const char *sentence = error->message ?: error->name;

        if (sd_bus_error_has_name(error, SD_BUS_ERROR_ACCESS_DENIED) ||
            sd_bus_error_has_name(error, SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED))
                return message_make(EXIT_START_FAILED, ret_message,
                                    "you may not start %s (%s): use sudo, or --wait and let it be started",
                                    u->id, sentence);
        if (sd_bus_error_has_name(error, "org.freedesktop.systemd1.NoSuchUnit"))
                return message_make(EXIT_NOT_FOUND, ret_message, "there is no unit %s", u->id);
        return message_make(EXIT_START_FAILED, ret_message, "systemd does not start %s: %s", u->id,
                            sentence);
}
