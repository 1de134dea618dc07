/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdbool.h>

/* The terminal, if there is one, and what the environment says about it. */

/* $SYSTEMD_COLORS decides, then $NO_COLOR, then whether fd is a terminal that is not dumb. */
bool terminal_colors(int fd);
/* $COLUMNS, else the width of the terminal fd, else 80; never above 1000. */
unsigned terminal_columns(int fd);
/* Can a question be asked: stdin and stderr are terminals. */
bool terminal_can_ask(void);
/* Asks on stderr, reads a line from stdin: true for y and yes, in any case. */
bool terminal_ask(const char *question);
