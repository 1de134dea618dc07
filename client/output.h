/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stddef.h>

/* Files that the user asked for: there completely or not at all, and never over anything but a regular file. */

/* Before there is anything to write: could it be written? 0 or an exit status. */
int output_check(const char *path);
/* 0 or an exit status. The umask applies. */
int output_write(const char *path, const void *data, size_t bytes);
