/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/names.h"

#include <ctype.h>

#include "common/macro.h"

/* Bytes of a name that is looked into: the work grows with the square, and C++ names of 4 KB are rare. */
enum { SHORTEN_MAX = 4096 };

const char *path_basename(const char *path) {
        const char *slash = strrchr(path, '/');

        return slash ? slash + 1 : path;
}

const char *process_name(const struct recording *r, uint32_t process) {
        const char *comm;

        if (process >= r->n_processes)
                return "";
        comm = recording_text(r, r->processes[process].comm);
        return *comm ? comm : path_basename(recording_text(r, r->processes[process].exe));
}

uint32_t frame_names(const struct recording *r, uint32_t frame, const struct rec_name **ret) {
        if (!r->frame_names || r->n_names == 0)
                return 0;
        *ret = r->names + r->frame_names[frame];
        return r->frame_names[frame + 1] - r->frame_names[frame];
}

bool frame_is_named(const struct recording *r, uint32_t frame) {
        const struct rec_name *rows;
        uint32_t n = frame_names(r, frame, &rows);

        return n > 0 && rows[n - 1].name != 0;
}

static bool is_runtime_library(const char *path) {
        static const char *const prefixes[] = {
                "libc.so",       "libc-",
                "ld-linux",      "ld-",
                "libpthread",    "libm.so",
                "libdl.so",      "libstdc++",
                "libgcc_s",      "libcoreclr",
                "libclrjit",     "libhostfxr",
                "libhostpolicy", "libSystem.Native",
                "libjvm",        "libv8",
                "ld-musl",       "libmono",
        };
        const char *name = path_basename(path);

        for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
                if (startswith(name, prefixes[i]))
                        return true;
        return false;
}

/* NativeAOT links its runtime into the executable. */
static bool is_runtime_function(const char *name) {
        static const char *const prefixes[] = { "Rhp", "WKS::", "SVR::", "SystemNative_",
                                                "GCToEEInterface::" };

        for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
                if (startswith(name, prefixes[i]))
                        return true;
        return false;
}

/* A C# method as the symbols of a NativeAOT debug file have it: "System_IO_Watcher__Add", "S_P_CoreLib_…". */
static bool is_managed_symbol(const char *name) {
        return (startswith(name, "S_P_") || startswith(name, "System_") || startswith(name, "Microsoft_")) &&
               strstr(name, "__");
}

enum frame_kind frame_kind_of(const struct recording *r, uint32_t frame) {
        const struct rec_frame *f = r->frames + frame;
        const struct rec_name *rows;
        uint32_t n = frame_names(r, frame, &rows);

        if (n > 0) {
                if (rows[0].source == REC_SOURCE_NATIVEAOT || rows[0].source == REC_SOURCE_PERF_MAP ||
                    is_managed_symbol(recording_text(r, rows[0].name)))
                        return FRAME_MANAGED;
                if (rows[0].source == REC_SOURCE_LABEL ||
                    is_runtime_function(recording_text(r, rows[0].name)))
                        return FRAME_RUNTIME;
        }
        if (f->module >= r->n_modules)
                return FRAME_USER;
        if (r->modules[f->module].kind == REC_MODULE_KERNEL)
                return FRAME_KERNEL;
        if (r->modules[f->module].kind == REC_MODULE_ANONYMOUS)
                return FRAME_MANAGED;
        if (r->modules[f->module].kind == REC_MODULE_VDSO)
                return FRAME_RUNTIME;
        return is_runtime_library(recording_text(r, r->modules[f->module].path)) ? FRAME_RUNTIME
                                                                                 : FRAME_USER;
}

void frame_place(struct buf *b, const struct recording *r, uint32_t frame) {
        const struct rec_frame *f = r->frames + frame;
        const char *path;

        if (f->module >= r->n_modules) {
                buf_printf(b, "0x%llx", (unsigned long long) f->offset);
                return;
        }
        path = recording_text(r, r->modules[f->module].path);
        switch (r->modules[f->module].kind) {
        case REC_MODULE_ANONYMOUS: buf_puts(b, "[generated code]"); break;
        case REC_MODULE_VDSO: buf_puts(b, "[vdso]"); break;
        case REC_MODULE_KERNEL: buf_puts(b, "[kernel]"); break;
        default: buf_puts(b, *path ? path_basename(path) : "[deleted file]"); break;
        }
        buf_printf(b, "+0x%llx", (unsigned long long) f->offset);
}

void frame_full_name(struct buf *b, const struct recording *r, uint32_t frame, const struct rec_name *row) {
        if (row && row->name != 0)
                buf_puts(b, recording_text(r, row->name));
        else
                frame_place(b, r, frame);
}

void frame_short_name(struct buf *b, const struct recording *r, uint32_t frame, const struct rec_name *row) {
        if (row && row->name != 0)
                name_shorten(b, recording_text(r, row->name));
        else
                frame_place(b, r, frame);
}

/* ---- shortening ---- */

/* The bracket that closes the one at `open`; NULL: none does. Arrows are no brackets. */
static const char *closing(const char *open, char left, char right) {
        int depth = 0;

        for (const char *p = open; *p; p++) {
                if (*p == left)
                        depth++;
                else if (*p == right && !(p > open && p[-1] == '-') &&
                         !(p > open && p[-1] == '=' && right == '>')) {
                        if (--depth == 0)
                                return p;
                }
        }
        return NULL;
}

static bool is_word(char c) {
        return isalnum((unsigned char) c) || c == '_';
}

/* Bytes of an operator's name at p ("operator()", "operator<<", "operator" of "operator new"); 0: none. */
static size_t operator_name(const char *name, const char *p) {
        const char *end = startswith(p, "operator");

        if (!end || is_word(*end) || (p > name && is_word(p[-1])))
                return 0;
        if (startswith(end, "()"))
                return (size_t) (end + 2 - p);
        return (size_t) (end - p) + strspn(end, "<>-=+*/%^&|~!,[]");
}

static bool is_template(const char *name, const char *p) {
        return p > name && (is_word(p[-1]) || p[-1] == '~' || p[-1] == '`');
}

/* The part of a signature that says which function: behind the last space outside of brackets. */
static const char *without_return_type(const char *name) {
        const char *begin = name;
        int depth = 0;

        for (const char *p = name; *p && operator_name(name, p) == 0; p++) {
                if (strchr("(<[{", *p))
                        depth++;
                else if (strchr(")>]}", *p))
                        depth--;
                else if (*p == ' ' && depth <= 0)
                        begin = p + 1;
        }
        return *begin ? begin : name;
}

/* Where to go on behind the arguments that begin at p; NULL: these are none, "": nothing follows that matters
 * (" const", " [clone .cold]"). */
static const char *behind_arguments(const char *p) {
        const char *close = closing(p, '(', ')');

        if (!close)
                return NULL;
        if (startswith(close + 1, "::")) /* f(int)::local */
                return close + 1;
        return close[1] == '\0' || close[1] == ' ' || close[1] == '[' ? "" : NULL;
}

void name_shorten(struct buf *b, const char *name) {
        _cleanup_(buf_done) struct buf s = BUF_NULL;
        bool signature = false, after_operator = false;

        if (strnlen(name, SHORTEN_MAX + 1) > SHORTEN_MAX) {
                buf_append(b, name, SHORTEN_MAX);
                buf_puts(b, "…");
                return;
        }
        for (const char *p = name; *p;) {
                size_t n = operator_name(name, p);
                const char *next = NULL;

                if (n > 0) {
                        buf_append(&s, p, n);
                        p += n;
                        p += startswith(p, " <") ? 1 : 0;
                        after_operator = true;
                        continue;
                }
                if (*p == '(' && p > name && !startswith(p, "(anonymous namespace)"))
                        next = behind_arguments(p);
                if (*p == '<' && (is_template(name, p) || after_operator) && closing(p, '<', '>')) {
                        next = closing(p, '<', '>') + 1;
                        buf_puts(&s, "<…>");
                }
                if (next) {
                        signature = true;
                        p = next;
                } else
                        buf_putc(&s, *p++);
                after_operator = false;
        }
        buf_puts(b, signature ? without_return_type(buf_text(&s)) : name);
}

const char *name_without_namespace(const char *name) {
        const char *last = strrchr(name, '.'), *before = last;

        while (before > name && before[-1] == '.') /* "A.B..ctor" */
                before--;
        while (before > name && before[-1] != '.')
                before--;
        return last ? before : name;
}

bool name_is_wrapper(const char *name) {
        static const char *const prefixes[] = { "__", "Interop.", "Interop+", "SystemNative_",
                                                "[",  "syscall",  "_IO_" };

        for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
                if (startswith(name, prefixes[i]))
                        return true;
        return strstr(name, "Interop_Sys__") != NULL; /* of a NativeAOT debug file */
}
