/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/*
 * A recording from a description that people can read and change: one fact a
 * line, words separated by spaces, "…" with \n, \", \\ and \xHH inside, # for
 * remarks. Times are spans after TQ ("1.5s"). See tests/replay/README.md for
 * the words.
 */

/* The file's bytes: malloc()ed. -EINVAL after a message on stderr that names the line; -ENOMEM. */
int description_read(FILE *in, const char *name, bool compress, void **ret, size_t *ret_bytes);
