/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdio.h>

/* Forms with a row for every sample are written as they come: a tree of them in memory would be far larger than the
 * recording. */

/* A string with its quotes; what is no UTF-8 becomes U+FFFD. -ENOMEM. */
int json_put_text(FILE *out, const char *text);
