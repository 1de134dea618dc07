/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

/*
 * Units as the service manager knows them. The manager decides what a name means (aliases, templates) and who
 * may start what; here it is only asked, with the rights of the caller.
 */

enum { FOLLOWERS_MAX = 64 }; /* that are named when the user is asked; the rest is counted */

struct unit { /* all texts owned */
        char *id; /* canonical: never an alias */
        char *load_state, *load_error; /* "loaded", "not-found", "masked", …; systemd's sentence or "" */
        char *active_state;
        bool refuse_manual_start, refuse_manual_stop;
        bool need_reload; /* its file changed since it was loaded */
        char **followers; /* active units that systemd restarts with it; ends with NULL */
};

#define UNIT_NULL                                                                                           \
        (struct unit) {                                                                                     \
        }
void unit_done(struct unit *u);

/*
 * The bus to systemd: the system bus, and for root, where no bus runs, systemd's private socket.
 * Errors of sd_bus_open_system(3) and sd_bus_start(3).
 */
int unit_bus_open(sd_bus **ret);

/*
 * Loads a unit by a mangled name. Units that do not exist are found, too, with load_state "not-found".
 * Errors of the bus, with systemd's words in *error.
 */
int unit_load(sd_bus *bus, const char *name, struct unit *ret, sd_bus_error *error);

/*
 * Why can its start not be profiled? Looks only at *u.
 *
 * wait        it is not started by us
 * can_ask     there is somebody to ask whether it may be restarted
 *
 * 0, or an exit status with a line in *ret_message (malloc()ed; NULL: no memory).
 */
int unit_refusal(const struct unit *u, bool wait, bool restart, bool can_ask, char **ret_message);

/* Is it up, or on its way, so that it has to be restarted to see a start? */
bool unit_needs_restart(const struct unit *u);

/* The question to ask before it is restarted; malloc()ed, NULL: no memory. */
char *unit_question(const struct unit *u);

/* The name as typed → a unit name. 0, or EXIT_USAGE with a line in *ret_message: no such name can be, not a
 * service, a template. */
int unit_name_typed(const char *typed, char **ret_name, char **ret_message);

/* Queues its start or restart, letting polkit ask; `answer` gets the job's path or the error. */
int unit_start(sd_bus *bus, const struct unit *u, bool restart, sd_bus_message_handler_t answer,
               void *userdata);
/* `removed` is called for each job that ends (signal JobRemoved of the manager: "uoss"). */
int unit_follow_jobs(sd_bus *bus, sd_bus_message_handler_t removed, void *userdata);

/* Makes the manager read all unit files again, over a connection of its own, so that a forked child can do it,
 * too. Errors of the bus. */
int unit_reload_all(void);
/* The value that the unit sets an environment variable to by Environment=: malloc()ed, NULL: none. Errors of the
 * bus, with systemd's words in *error. */
int unit_environment(sd_bus *bus, const struct unit *u, const char *variable, char **ret,
                     sd_bus_error *error);

/* An error of unit_start()'s answer → exit status and a line (malloc()ed; NULL: no memory). */
int unit_start_refusal(const struct unit *u, const sd_bus_error *error, char **ret_message);
