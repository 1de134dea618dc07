/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "proto/recording.h"

/*
 * Run-times of languages whose functions no file names: they make code while they run (.NET, node, Java) or
 * have a loop of their own for it (CPython). Most write a perf map when they are told to at their start.
 */

enum language {
        LANGUAGE_NONE,
        LANGUAGE_DOTNET,
        LANGUAGE_NODE,
        LANGUAGE_JAVA,
        LANGUAGE_PYTHON, /* from 3.12 on */
        LANGUAGE_MAX,
};

/* A module whose functions have no names, since the run-time of its process wrote no map. */
struct language_gap {
        uint32_t module; /* code made at run time; for Python that of the interpreter */
        enum language language;
        uint32_t pid; /* of such a process */
};

/* Those of a recording, by module. *ret is the caller's, free(). -ENOMEM (nothing touched). */
int language_gaps(const struct recording *r, struct language_gap **ret, size_t *ret_count);

/* What to do about it, for people, without the drop-in. */
void language_advice(struct buf *b, const struct language_gap *gap);
/* Lines for `systemctl edit`; NULL: no switch of the run-time helps. */
const char *language_dropin(enum language language);
