/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/macro.h"
#include "symbolize/name.h"
#include "worker/modules.h"
#include "worker/space.h"

/*
 * What perf maps tell of code in files: node lists its builtins, too, which lie in its executable or in
 * libnode.so, where distributions leave no symbols for them.
 */
struct code_views;

enum {
        CODE_VIEWS_MAX = 4096
}; /* mapped pieces of files that are looked at; further ones have no names from here */

/* Asks for the perf maps of all spaces. Both are borrowed. NULL: no memory. */
struct code_views *code_views_new(struct modules *modules, const struct spaces *spaces);
struct code_views *code_views_free(struct code_views *v);
DEFINE_CLEANUP(struct code_views *, code_views_free);

/* The name of a place in the file of a module. True: *ret is filled. */
bool code_views_find(const struct code_views *v, uint32_t module, uint64_t offset, struct name *ret);
