/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <jansson.h>
#include <stdio.h>

#include "client/options.h"

/* Lists on standard output: columns for people, JSON for programs. */

/* Prints rows of cells (texts of strangers: escaped here) under a header, columns two spaces apart, the last
 * one cut at the terminal's edge. cells: n_rows * n_columns texts. 0 or an exit status. */
int table_print(const char *const *header, const char *const *cells, size_t n_rows, size_t n_columns);

/* 0 or an exit status. */
int table_print_json(json_t *value, enum options_json mode);
