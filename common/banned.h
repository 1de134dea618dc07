/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Force-included into every file: calls that cannot be used safely do not compile. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* With clang and _FORTIFY_SOURCE the C library makes these macros. */
#undef sprintf
#undef vsprintf

#pragma GCC poison strcpy strcat strncpy strncat sprintf vsprintf gets strtok atoi atol atoll system popen  \
        tmpnam tempnam mktemp
