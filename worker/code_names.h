/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/macro.h"
#include "proto/recording.h"
#include "symbolize/name.h"

/* Names for code that a process made at run time, from the perf map that it wrote. */
struct code_names;

/* fd: of the map, borrowed. path: of the map, for the ledger, copied. -ENOMEM, errors of pread(2). */
int code_names_new(int fd, const char *path, struct code_names **ret);
struct code_names *code_names_free(struct code_names *c);
DEFINE_CLEANUP(struct code_names *, code_names_free);

/* ret->text is valid as long as c; NULL: in none of its functions. */
void code_names_find(struct code_names *c, uint64_t address, struct name *ret);
/* The same for code in a file that the map tells of, too: no look-up of the ledger. True: *ret is filled. */
bool code_names_look(const struct code_names *c, uint64_t address, struct name *ret);
/* After the look-ups: fills source and reason. Returns the path. */
const char *code_names_ledger(const struct code_names *c, struct rec_symbols *ret);
