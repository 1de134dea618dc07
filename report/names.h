/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/buf.h"
#include "proto/recording.h"

/*
 * Names for people. All texts come from strangers and leave as they are:
 * whoever writes them to a screen or a file escapes them for it.
 */

/* comm, else the name of the executable, else "pid N" does not help: "". Valid as long as r. */
const char *process_name(const struct recording *r, uint32_t process);

/* Behind the last slash. */
const char *path_basename(const char *path);

/* Code of which sort? It decides the colour. */
enum frame_kind {
        FRAME_USER, /* the program and its libraries */
        FRAME_MANAGED, /* C#, Java, JavaScript: named by a runtime */
        FRAME_RUNTIME, /* libc, ld.so, language runtimes, garbage collectors */
        FRAME_KERNEL, /* the system call that a sample was in */
        FRAME_PROCESS, /* a row for the unit or a process */
        FRAME_MARK, /* no code: "[no stack]" */
        FRAME_KIND_MAX,
};

enum frame_kind frame_kind_of(const struct recording *r, uint32_t frame);

/* Rows of NAMES for this frame, innermost inline first; 0: none. */
uint32_t frame_names(const struct recording *r, uint32_t frame, const struct rec_name **ret);
bool frame_is_named(const struct recording *r, uint32_t frame);

/* "file+0x1145", "0x7f0012" without a module: what is known without a name. */
void frame_place(struct buf *b, const struct recording *r, uint32_t frame);
/* The whole name of one row of frame_names() (cut at 8 KB), or the place; `row` NULL: the place. */
void frame_full_name(struct buf *b, const struct recording *r, uint32_t frame, const struct rec_name *row);
/* The same for a line of limited length: without argument lists and return types, template arguments as <…>;
 * C# as report/csharp.h says. */
void frame_short_name(struct buf *b, const struct recording *r, uint32_t frame, const struct rec_name *row);
/* What tells overloads of a C# method apart, "(Int32, String)"; nothing for other names. */
void frame_parameters(struct buf *b, const struct recording *r, const struct rec_name *row);
/* What a sample was doing in the kernel, as the innermost row of its stack: "[openat]", "[waiting in read for the
 * disk]"; nothing in user code. */
void sample_leaf(struct buf *b, const struct rec_sample *s);
/* Makes the short form of a demangled name (C++, Rust); a name with unbalanced brackets stays whole. */
void name_shorten(struct buf *b, const char *name);
/* The type and the method of a managed name: "System.IO.Path.Combine" → "Path.Combine". */
const char *name_without_namespace(const char *name);
/* A layer between a system call and the code that wanted it: "__openat", "Interop.Sys.Open". */
bool name_is_wrapper(const char *name);
