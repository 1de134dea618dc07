/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/systemd.h"

#include <stddef.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#include "common/buf.h"

#define SERVICE         "org.freedesktop.systemd1"
#define MANAGER_PATH    "/org/freedesktop/systemd1"
#define MANAGER         SERVICE ".Manager"
#define UNIT_INTERFACE  SERVICE ".Unit"
#define PRIVATE_ADDRESS "unix:path=/run/systemd/private"

/* PID 1 answers within milliseconds, but not during a daemon-reload of thousands of units. */
#define CALL_TIMEOUT_USEC (20 * USEC_PER_SEC)

enum {
        PROPERTY_TEXT_MAX = 4096, /* an ExecStart= can be longer; what is kept is evidence, not a copy */
};

/* Kept as texts: what a cause may need as evidence, and what the daemon itself asks for. Environment= is
 * not among them: it holds secrets. */
static const char *const kept[] = {
        "Id",
        "LoadState",
        "Type",
        "Slice",
        "ControlGroup",
        "FragmentPath",
        "DropInPaths",
        "Description",
        "WorkingDirectory",
        "RootDirectory",
        "RootImage",
        "User",
        "Group",
        "DynamicUser",
        "StateDirectory",
        "RuntimeDirectory",
        "PrivateTmp",
        "ExecStart",
        "ExecStartPre",
        "ExecStartPost",
        "ExecCondition",
        "RemainAfterExit",
        "NotifyAccess",
        "PIDFile",
        "BusName",
        "GuessMainPID",
        "Restart",
        "RestartUSec",
        "RestartMode",
        "TimeoutStartUSec",
        "TimeoutStopUSec",
        "KillMode",
        "LimitNOFILE",
        "CPUQuotaPerSecUSec",
        "MemoryHigh",
        "MemoryMax",
        "TasksMax",
        "IOSchedulingClass",
        "Nice",
        "CPUSchedulingPolicy",
        "After",
        "Requires",
        "Wants",
        "BindsTo",
};

struct systemd {
        sd_bus *bus;
        struct systemd_unit *units; /* list of those that are followed, borrowed */
        unsigned version;
        bool lost;
};

struct systemd_unit {
        struct systemd *systemd; /* borrowed */
        struct systemd_unit *next;
        const struct systemd_events *events;
        void *userdata;
        sd_bus_slot *call; /* the pending one */
        char *path; /* NULL until LoadUnit answered */
        char *texts[ARRAY_SIZE(kept)];
        struct start_values values;
        uint32_t job;
};

/* ---- values ---- */

enum value_kind { VALUE_STATE, VALUE_U64, VALUE_U32, VALUE_BOOL, VALUE_ID };

#define FIELD(name, kind, member)                                                                           \
        { name, kind, offsetof(struct start_values, member) }
static const struct {
        const char *name;
        enum value_kind kind;
        size_t offset;
} fields[] = {
        FIELD("ActiveState", VALUE_STATE, active_state),
        FIELD("SubState", VALUE_STATE, sub_state),
        FIELD("Result", VALUE_STATE, result),
        FIELD("InvocationID", VALUE_ID, invocation_id),
        FIELD("StateChangeTimestampMonotonic", VALUE_U64, state_change_usec),
        FIELD("InactiveExitTimestampMonotonic", VALUE_U64, inactive_exit_usec),
        FIELD("ActiveEnterTimestampMonotonic", VALUE_U64, active_enter_usec),
        FIELD("InactiveEnterTimestampMonotonic", VALUE_U64, inactive_enter_usec),
        FIELD("ExecMainExitTimestampMonotonic", VALUE_U64, exec_main_exit_usec),
        FIELD("ConditionTimestampMonotonic", VALUE_U64, condition_usec),
        FIELD("ExecMainPID", VALUE_U32, main_pid),
        FIELD("ControlPID", VALUE_U32, control_pid),
        FIELD("ConditionResult", VALUE_BOOL, condition_result),
};
#undef FIELD

static int read_value(sd_bus_message *m, enum value_kind kind, void *field) {
        const void *bytes;
        const char *text;
        size_t size;
        int r, flag;

        switch (kind) {
        case VALUE_STATE:
                r = sd_bus_message_read_basic(m, 's', &text);
                if (r >= 0)
                        snprintf(field, START_STATE_MAX, "%s", text);
                return r;
        case VALUE_U64: return sd_bus_message_read_basic(m, 't', field);
        case VALUE_U32: return sd_bus_message_read_basic(m, 'u', field);
        case VALUE_BOOL:
                r = sd_bus_message_read_basic(m, 'b', &flag);
                if (r >= 0)
                        *(bool *) field = flag;
                return r;
        case VALUE_ID:
                r = sd_bus_message_read_array(m, 'y', &bytes, &size);
                if (r >= 0) {
                        memset(field, 0, 16);
                        if (size == 16)
                                memcpy(field, bytes, 16);
                }
                return r;
        }
        return -EINVAL;
}

/* ---- texts ---- */

static void put_text(struct buf *b, const char *text) {
        if (b->size > 0)
                buf_putc(b, ' ');
        buf_puts(b, text);
}

static int read_strings(sd_bus_message *m, struct buf *b) {
        const char *text;
        int r;

        r = sd_bus_message_enter_container(m, 'a', "s");
        if (r < 0)
                return r;
        while ((r = sd_bus_message_read_basic(m, 's', &text)) > 0)
                put_text(b, text);
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

/* Of a list of command lines the arguments of the last one: what systemd waits for. */
static int read_commands(sd_bus_message *m, const char *contents, struct buf *b) {
        const char *path;
        int r;

        r = sd_bus_message_enter_container(m, 'a', contents + 1);
        if (r < 0)
                return r;
        while ((r = sd_bus_message_enter_container(m, 'r', "sasbttttuii")) > 0) {
                buf_reset(b);
                r = sd_bus_message_read_basic(m, 's', &path);
                if (r >= 0)
                        r = read_strings(m, b);
                if (r >= 0)
                        r = sd_bus_message_skip(m, "bttttuii");
                if (r >= 0)
                        r = sd_bus_message_exit_container(m);
                if (r < 0)
                        return r;
        }
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

static int read_number(sd_bus_message *m, char type, struct buf *b) {
        union {
                uint64_t t;
                uint32_t u;
                int32_t i;
                int b;
        } value = {};
        int r;

        r = sd_bus_message_read_basic(m, type, &value);
        if (r < 0)
                return r;
        switch (type) {
        case 't':
                if (value.t == UINT64_MAX)
                        buf_puts(b, "infinity");
                else
                        buf_printf(b, "%" PRIu64, value.t);
                break;
        case 'u': buf_printf(b, "%" PRIu32, value.u); break;
        case 'i': buf_printf(b, "%" PRId32, value.i); break;
        default: buf_puts(b, value.b ? "yes" : "no");
        }
        return r;
}

static int read_text(sd_bus_message *m, const char *contents, struct buf *b) {
        const char *text;
        int r;

        if (streq(contents, "s") || streq(contents, "o")) {
                r = sd_bus_message_read_basic(m, contents[0], &text);
                if (r >= 0)
                        buf_puts(b, text);
                return r;
        }
        if (streq(contents, "as"))
                return read_strings(m, b);
        if (streq(contents, "a(sasbttttuii)"))
                return read_commands(m, contents, b);
        if (strchr("tuib", contents[0]) && !contents[1])
                return read_number(m, contents[0], b);
        return sd_bus_message_skip(m, contents);
}

static int read_kept(struct systemd_unit *u, size_t index, sd_bus_message *m, const char *contents) {
        struct buf b = BUF_NULL;
        int r;

        r = read_text(m, contents, &b);
        if (r >= 0 && buf_error(&b) == 0) {
                free(u->texts[index]);
                u->texts[index] = strndup(buf_text(&b), PROPERTY_TEXT_MAX);
        }
        buf_done(&b);
        return r;
}

/* ---- a{sv} ---- */

static int read_property(struct systemd_unit *u, const char *name, sd_bus_message *m, const char *contents) {
        for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
                if (streq(name, fields[i].name))
                        return read_value(m, fields[i].kind, (char *) &u->values + fields[i].offset);
        for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
                if (streq(name, kept[i]))
                        return read_kept(u, i, m, contents);
        if (streq(name, "Job") && streq(contents, "(uo)")) {
                const char *path;

                return sd_bus_message_read(m, "(uo)", &u->job, &path);
        }
        return sd_bus_message_skip(m, contents);
}

static int read_entry(struct systemd_unit *u, sd_bus_message *m) {
        const char *name, *contents;
        int r;

        r = sd_bus_message_read_basic(m, 's', &name);
        if (r >= 0)
                r = sd_bus_message_peek_type(m, NULL, &contents);
        if (r >= 0)
                r = sd_bus_message_enter_container(m, 'v', contents);
        if (r >= 0)
                r = read_property(u, name, m, contents);
        if (r >= 0)
                r = sd_bus_message_exit_container(m);
        return r;
}

static int read_properties(struct systemd_unit *u, sd_bus_message *m) {
        int r;

        r = sd_bus_message_enter_container(m, 'a', "{sv}");
        if (r < 0)
                return r;
        while ((r = sd_bus_message_enter_container(m, 'e', "sv")) > 0) {
                r = read_entry(u, m);
                if (r >= 0)
                        r = sd_bus_message_exit_container(m);
                if (r < 0)
                        return r;
        }
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

/* ---- following ---- */

static int on_got_all(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        struct systemd_unit *u = userdata;
        const sd_bus_error *e = sd_bus_message_get_error(m);
        int r;

        u->call = sd_bus_slot_unref(u->call);
        r = e ? -sd_bus_error_get_errno(e) : read_properties(u, m);
        u->events->resolved(u->userdata, r < 0 ? r : 0, e ? e->message : NULL);
        return 0;
}

static int on_loaded(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        struct systemd_unit *u = userdata;
        const sd_bus_error *e = sd_bus_message_get_error(m);
        const char *path = NULL;
        int r;

        u->call = sd_bus_slot_unref(u->call);
        r = e ? -sd_bus_error_get_errno(e) : sd_bus_message_read_basic(m, 'o', &path);
        if (r >= 0) {
                u->path = strdup(path ?: "");
                if (!u->path)
                        r = -ENOMEM;
        }
        /* The empty interface means all of them: unit and service in one moment. */
        if (r >= 0)
                r = sd_bus_call_method_async(u->systemd->bus, &u->call, SERVICE, u->path,
                                             "org.freedesktop.DBus.Properties", "GetAll", on_got_all, u, "s",
                                             "");
        if (r < 0)
                u->events->resolved(u->userdata, r, e ? e->message : NULL);
        return 0;
}

int systemd_follow(struct systemd *s, const char *name, const struct systemd_events *events, void *userdata,
                   struct systemd_unit **ret) {
        _cleanup_(systemd_unit_freep) struct systemd_unit *u = NULL;
        int r;

        u = calloc(1, sizeof(*u));
        if (!u)
                return -ENOMEM;
        u->events = events;
        u->userdata = userdata;
        r = sd_bus_call_method_async(s->bus, &u->call, SERVICE, MANAGER_PATH, MANAGER, "LoadUnit", on_loaded,
                                     u, "s", name);
        if (r < 0)
                return r;
        u->systemd = s;
        u->next = s->units;
        s->units = u;

        *ret = TAKE_PTR(u);
        return 0;
}

void systemd_unit_stop(struct systemd_unit *u) {
        if (u->systemd)
                for (struct systemd_unit **p = &u->systemd->units; *p; p = &(*p)->next)
                        if (*p == u) {
                                *p = u->next;
                                break;
                        }
        u->systemd = NULL;
        u->call = sd_bus_slot_unref(u->call);
}

struct systemd_unit *systemd_unit_free(struct systemd_unit *u) {
        if (!u)
                return NULL;
        systemd_unit_stop(u);
        for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
                free(u->texts[i]);
        free(u->path);
        free(u);
        return NULL;
}

const char *systemd_unit_property(const struct systemd_unit *u, const char *name) {
        for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
                if (streq(name, kept[i]))
                        return u->texts[i];
        return NULL;
}

const char *systemd_unit_id(const struct systemd_unit *u) {
        return systemd_unit_property(u, "Id") ?: "";
}

const struct start_values *systemd_unit_values(const struct systemd_unit *u) {
        return &u->values;
}

uint32_t systemd_unit_job(const struct systemd_unit *u) {
        return u->job;
}

void systemd_unit_properties(const struct systemd_unit *u,
                             void (*f)(void *userdata, const char *name, const char *value),
                             void *userdata) {
        for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
                if (u->texts[i])
                        f(userdata, kept[i], u->texts[i]);
}

/* ---- signals ---- */

/* The callbacks may free any unit, so the list is not walked further after one: a unit is followed once. */
static struct systemd_unit *by_path(struct systemd *s, const char *path) {
        for (struct systemd_unit *u = s->units; u; u = u->next)
                if (u->path && streq(u->path, path))
                        return u;
        return NULL;
}

static struct systemd_unit *by_id(struct systemd *s, const char *id) {
        for (struct systemd_unit *u = s->units; u; u = u->next)
                if (streq(systemd_unit_id(u), id))
                        return u;
        return NULL;
}

static int on_properties_changed(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        struct systemd_unit *u = by_path(userdata, sd_bus_message_get_path(m));
        const char *interface;
        bool resolved;

        if (!u || sd_bus_message_read_basic(m, 's', &interface) < 0)
                return 0;
        resolved = !u->call;
        if (read_properties(u, m) < 0)
                return 0;
        /* systemd sends the service's properties first and the unit's behind them: now they are one. */
        if (resolved && streq(interface, UNIT_INTERFACE))
                u->events->changed(u->userdata);
        return 0;
}

static int on_job_new(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        const char *path, *id;
        struct systemd_unit *u;
        uint32_t job;

        if (sd_bus_message_read(m, "uos", &job, &path, &id) < 0)
                return 0;
        u = by_id(userdata, id);
        if (u)
                u->events->job_new(u->userdata, job);
        return 0;
}

static int on_job_removed(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        const char *path, *id, *result;
        struct systemd_unit *u;
        uint32_t job;

        if (sd_bus_message_read(m, "uoss", &job, &path, &id, &result) < 0)
                return 0;
        u = by_id(userdata, id);
        if (u)
                u->events->job_removed(u->userdata, job, result);
        return 0;
}

static int on_unit_removed(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        const char *id, *path;
        struct systemd_unit *u;

        if (sd_bus_message_read(m, "so", &id, &path) < 0)
                return 0;
        u = by_path(userdata, path);
        if (u && !u->call)
                u->events->removed(u->userdata);
        return 0;
}

static int on_disconnected(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        struct systemd *s = userdata;

        s->lost = true;
        /* Each one ends its session, which frees the unit; at least this loop must end. */
        while (s->units) {
                struct systemd_unit *u = s->units;

                u->events->lost(u->userdata);
                if (s->units == u)
                        break;
        }
        return 0;
}

bool systemd_is_connected(const struct systemd *s) {
        return !s->lost;
}

/* ---- version ---- */

unsigned systemd_version(const struct systemd *s) {
        return s->version;
}

/* "257.8-1~deb13u1", of git builds "v257.8". */
static int on_version(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        struct systemd *s = userdata;
        const char *text;
        unsigned version;

        if (sd_bus_message_get_error(m) || sd_bus_message_read(m, "v", "s", &text) < 0)
                return 0;
        version = (unsigned) strtoul(text + strspn(text, "v"), NULL, 10);
        if (version > 0)
                s->version = version;
        return 0;
}

/* Asked first: PID 1 answers one connection's calls in their order. */
static int ask_version(struct systemd *s) {
        return sd_bus_call_method_async(s->bus, NULL, SERVICE, MANAGER_PATH,
                                        "org.freedesktop.DBus.Properties", "Get", on_version, s, "ss",
                                        MANAGER, "Version");
}

/* ---- connection ---- */

static int connect_private(sd_bus **ret) {
        _cleanup_(sd_bus_unrefp) sd_bus *bus = NULL;
        int r;

        r = sd_bus_new(&bus);
        if (r >= 0)
                r = sd_bus_set_address(bus, PRIVATE_ADDRESS);
        if (r >= 0)
                r = sd_bus_start(bus);
        if (r >= 0)
                *ret = TAKE_PTR(bus);
        return r;
}

/* On the bus systemd sends no signals until somebody subscribes; on the private socket always. */
static int subscribe(sd_bus *bus) {
        return sd_bus_call_method_async(bus, NULL, SERVICE, MANAGER_PATH, MANAGER, "Subscribe", NULL, NULL,
                                        NULL);
}

static int add_matches(struct systemd *s, bool private) {
        const struct {
                const char *name;
                sd_bus_message_handler_t handler;
        } manager[] = {
                { "JobNew", on_job_new },
                { "JobRemoved", on_job_removed },
                { "UnitRemoved", on_unit_removed },
        };
        const char *sender = private ? NULL : SERVICE; /* messages of a direct connection have none */
        int r = 0;

        for (size_t i = 0; i < ARRAY_SIZE(manager) && r >= 0; i++)
                r = sd_bus_match_signal_async(s->bus, NULL, sender, MANAGER_PATH, MANAGER, manager[i].name,
                                              manager[i].handler, NULL, s);
        if (r >= 0)
                r = sd_bus_match_signal_async(s->bus, NULL, sender, NULL, "org.freedesktop.DBus.Properties",
                                              "PropertiesChanged", on_properties_changed, NULL, s);
        if (r >= 0)
                r = sd_bus_match_signal_async(s->bus, NULL, "org.freedesktop.DBus.Local", NULL,
                                              "org.freedesktop.DBus.Local", "Disconnected", on_disconnected,
                                              NULL, s);
        return r < 0 ? r : private ? 0 : subscribe(s->bus);
}

int systemd_new(sd_event *event, struct systemd **ret) {
        _cleanup_(systemd_freep) struct systemd *s = NULL;
        bool private;
        int r;

        s = calloc(1, sizeof(*s));
        if (!s)
                return -ENOMEM;
        s->version = SYSTEMD_VERSION_UNKNOWN;
        private = geteuid() == 0 && connect_private(&s->bus) >= 0;
        r = private ? 0 : sd_bus_open_system(&s->bus);
        if (r >= 0)
                r = sd_bus_set_method_call_timeout(s->bus, CALL_TIMEOUT_USEC);
        if (r >= 0)
                r = ask_version(s);
        if (r >= 0)
                r = add_matches(s, private);
        if (r >= 0)
                r = sd_bus_attach_event(s->bus, event, SD_EVENT_PRIORITY_NORMAL);
        if (r < 0)
                return r;

        *ret = TAKE_PTR(s);
        return 0;
}

struct systemd *systemd_free(struct systemd *s) {
        if (!s)
                return NULL;
        if (s->bus)
                sd_bus_detach_event(s->bus);
        sd_bus_close_unref(s->bus);
        free(s);
        return NULL;
}
