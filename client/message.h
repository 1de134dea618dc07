/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "common/macro.h"

/*
 * What the command says to its user besides the answer, and how it ends. One line each, on stderr, made safe
 * for a terminal: names in it come from strangers.
 *
 * Functions of client/ that return an exit status have said why; those that return a negative errno have
 * said nothing.
 */

/* Part of the interface, see startprof(1). */
enum exit_status {
        EXIT_UP = 0, /* the unit came up; for other commands: done */
        EXIT_START_FAILED = 1, /* failed, timed out, skipped, canceled, refused by systemd or polkit */
        EXIT_USAGE = 2,
        EXIT_INTERRUPTED = 3,
        EXIT_NOT_FOUND = 4, /* no such unit, no such recording */
        EXIT_CANNOT_PROFILE = 5, /* the daemon or the machine cannot */
        EXIT_FILE = 6, /* recording broken or too new, output not writable */
        EXIT_GIVEN_UP = 130, /* second Ctrl-C */
};

/* "startprof: …"; returns status, to be returned. */
int message_fail(enum exit_status status, const char *format, ...) _printf_(2, 3);
int message_no_memory(void); /* says so, EXIT_CANNOT_PROFILE */
/* The line goes to *ret (malloc()ed; NULL: no memory) instead, for those who only find out; returns status. */
int message_make(enum exit_status status, char **ret, const char *format, ...) _printf_(3, 4);
/* Says the line of message_make(), or that there was no memory for it; returns status. */
int message_fail_made(int status, const char *line);
/* The same without a failure. */
void message_note(const char *format, ...) _printf_(1, 2);
