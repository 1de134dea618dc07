/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdbool.h>

#include "proto/recording.h"

/* Does this process run .NET code? Told by what only .NET has: the names of its threads (".NET Finalizer"),
 * functions named from NativeAOT metadata, its runtime's libraries, or the configuration file of its host. */
bool process_is_dotnet(const struct recording *r, uint32_t process);

/* Per module, calloc()ed: is it the code of a .NET program or of its runtime? -ENOMEM. */
int dotnet_modules(const struct recording *r, bool **ret);
