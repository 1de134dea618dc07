/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Parts of the .NET runtime by the names of their functions. What happens inside of them is of no use to who
 * looks for the reason of a slow start, that it is the garbage collector or the type loader is: a picture shows
 * one row "[GC]" for all of it.
 */
struct runtime_part {
        const char *label; /* "[GC]" */
        const char *words; /* what it is, for a tooltip */
};

/* NULL: the name belongs to none. Only to be asked about code of a .NET program: some of the names could be
 * anybody's ("Thread::Hijack"). */
const struct runtime_part *runtime_part(const char *name);
