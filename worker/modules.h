/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/macro.h"
#include "proto/worker_msg.h"
#include "symbolize/name.h"
#include "symbolize/unwind.h"
#include "worker/channel.h"
#include "worker/code_names.h"

/* The modules that the parent announced. Their files are asked for when the first address falls into them. */
struct modules;

enum { MODULES_MAX = 1 << 20 };

struct module {
        struct name_module *names; /* NULL only without memory */
        struct unwind_table *table; /* NULL: no file, or broken CFI */
};

/* channel: borrowed. NULL: no memory. */
struct modules *modules_new(struct channel *channel);
struct modules *modules_free(struct modules *m);
DEFINE_CLEANUP(struct modules *, modules_free);

uint32_t modules_count(const struct modules *m);
/* The next one, in order. -ERANGE, -ENOMEM. */
int modules_add(struct modules *m, const struct name_module_options *options);
/* Opens its files at the first call. index: below modules_count(). Never NULL; valid until the
 * next modules_add(), what it points at until modules_free(). */
const struct module *modules_get(struct modules *m, uint32_t index);
/* What DWARF knows of an offset in a module's file: see name_find_lines(). Files that the debug file refers to
 * are asked for. */
int modules_lines(struct modules *m, uint32_t index, uint64_t offset, const struct name_line **ret,
                  size_t *ret_count);
/* Names for a module of code that was made at run time, which is asked for at the first call: late, when its
 * maker has said all. NULL: there are none. Owned by m. */
struct code_names *modules_code(struct modules *m, uint32_t index);
