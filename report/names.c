/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/names.h"

#include <ctype.h>

#include "common/macro.h"
#include "report/csharp.h"
#include "report/process_index.h"
#include "report/syscalls.h"

/* The worker writes no longer names, but a recording may come from anybody. */
enum {
        SHORTEN_MAX = 4096, /* bytes of a name that are looked into; C++ names of 4 KB are rare */
        FULL_NAME_MAX = 8192,
};

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

/* A natively compiled .NET program holds its runtime. */
static bool is_runtime_function(const char *name) {
        static const char *const prefixes[] = { "Rhp", "WKS::", "SVR::", "SystemNative_",
                                                "GCToEEInterface::" };

        for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
                if (startswith(name, prefixes[i]))
                        return true;
        return false;
}

/* A C# method, also as the symbols of a debug file have it when nobody could read them: "S_P_CoreLib_…__Add". */
static bool is_managed_name(const char *name) {
        static const char *const roots[] = { "System.", "Microsoft.", "Internal.", "Interop.", "<Module>." };
        static const char *const marks[] = { ".<", "+<", "..ctor", "..cctor" };

        for (size_t i = 0; i < ARRAY_SIZE(roots); i++)
                if (startswith(name, roots[i]))
                        return true;
        for (size_t i = 0; i < ARRAY_SIZE(marks); i++)
                if (strstr(name, marks[i]))
                        return true;
        return (startswith(name, "S_P_") || startswith(name, "System_") || startswith(name, "Microsoft_")) &&
               strstr(name, "__");
}

/* JavaScript and Python have perf maps, too; only .NET's names an assembly in brackets. */
static bool is_csharp(const struct recording *r, const struct rec_name *row) {
        const char *name = recording_text(r, row->name);

        switch (row->source) {
        case REC_SOURCE_NATIVEAOT: return true;
        case REC_SOURCE_PERF_MAP: return strstr(name, "] ") != NULL;
        default: return is_managed_name(name);
        }
}

enum frame_kind frame_kind_of(const struct recording *r, uint32_t frame) {
        const struct rec_frame *f = r->frames + frame;
        const struct rec_name *rows;
        uint32_t n = frame_names(r, frame, &rows);

        if (n > 0) {
                if (rows[0].source == REC_SOURCE_NATIVEAOT || rows[0].source == REC_SOURCE_PERF_MAP ||
                    is_managed_name(recording_text(r, rows[0].name)))
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
        const char *name = row ? recording_text(r, row->name) : "";
        size_t size = strnlen(name, FULL_NAME_MAX + 1);

        if (size == 0)
                frame_place(b, r, frame);
        else if (size <= FULL_NAME_MAX)
                buf_append(b, name, size);
        else {
                buf_append(b, name, FULL_NAME_MAX);
                buf_puts(b, "…");
        }
}

void frame_short_name(struct buf *b, const struct recording *r, uint32_t frame, const struct rec_name *row) {
        const char *name = row ? recording_text(r, row->name) : "";

        if (!*name)
                frame_place(b, r, frame);
        else if (strnlen(name, SHORTEN_MAX) == SHORTEN_MAX)
                name_shorten(b, name);
        else if (is_csharp(r, row) && strpbrk(name, ".:"))
                csharp_shorten(b, name);
        else if (row->source == REC_SOURCE_PERF_MAP ||
                 is_csharp(r, row)) /* of JavaScript, of a broken symbol */
                buf_puts(b, name);
        else
                name_shorten(b, name);
}

void frame_parameters(struct buf *b, const struct recording *r, const struct rec_name *row) {
        const char *name = row ? recording_text(r, row->name) : "";

        if (*name && is_csharp(r, row) && strnlen(name, SHORTEN_MAX + 1) <= SHORTEN_MAX)
                csharp_parameters(b, name);
}

/* ---- shortening ---- */

/* Brackets of a name and what closes them: closes[i] is the place of the one that closes the one at i, 0: it is
 * none, or none does. Arrows are no brackets. */
struct brackets {
        const char *name;
        uint16_t closes[SHORTEN_MAX];
};

_Static_assert(SHORTEN_MAX <= UINT16_MAX, "places fit");

static void match(struct brackets *b, char left, char right) {
        uint16_t open[SHORTEN_MAX];
        size_t depth = 0;

        for (size_t i = 0; b->name[i]; i++) {
                char before = i > 0 ? b->name[i - 1] : '\0';

                if (b->name[i] == left)
                        open[depth++] = (uint16_t) i;
                else if (b->name[i] == right && depth > 0 && before != '-' &&
                         !(before == '=' && right == '>'))
                        b->closes[open[--depth]] = (uint16_t) i;
        }
}

static const char *closing(const struct brackets *b, const char *open) {
        size_t at = b->closes[open - b->name];

        return at > 0 ? b->name + at : NULL;
}

static bool is_word(char c) {
        return isalnum((unsigned char) c) || c == '_';
}

/* Bytes of an operator's name at p ("operator()", "operator<<", "operator" of "operator new"); 0: none. */
static size_t operator_name(const char *name, const char *p) {
        static const char *const signs[] = {
                "<=>", "<<=", ">>=", "->*", "()", "[]", "<<", ">>", "<=", ">=", "==", "!=", "&&",
                "||",  "++",  "--",  "+=",  "-=", "*=", "/=", "%=", "^=", "&=", "|=", "->", "<",
                ">",   "-",   "=",   "+",   "*",  "/",  "%",  "^",  "&",  "|",  "~",  "!",  ","
        };
        const char *end = startswith(p, "operator");

        if (!end || is_word(*end) || (p > name && is_word(p[-1])))
                return 0;
        for (size_t i = 0; i < ARRAY_SIZE(signs); i++)
                if (startswith(end, signs[i]))
                        return (size_t) (end - p) + strlen(signs[i]);
        return (size_t) (end - p);
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
static const char *behind_arguments(const struct brackets *b, const char *p) {
        const char *close = closing(b, p);

        if (!close)
                return NULL;
        if (startswith(close + 1, "::")) /* f(int)::local */
                return close + 1;
        return close[1] == '\0' || close[1] == ' ' || close[1] == '[' ? "" : NULL;
}

/* Behind a bracket at p that is left out, after what stands for it; NULL: it stays. */
static const char *leave_out(struct buf *s, const struct brackets *b, const char *p, bool after_operator) {
        if (*p == '(' && p > b->name && !startswith(p, "(anonymous namespace)"))
                return behind_arguments(b, p);
        if (*p != '<' || !closing(b, p))
                return NULL;
        if (s->size >= 2 && p >= b->name + 2 && memcmp(p - 2, "::", 2) == 0) { /* Rust: "sort::<u8>" */
                s->size -= strlen("::");
                s->data[s->size] = '\0';
        } else if (!is_template(b->name, p) && !after_operator)
                return NULL;
        buf_puts(s, "<…>");
        return closing(b, p) + 1;
}

void name_shorten(struct buf *b, const char *name) {
        _cleanup_(buf_done) struct buf s = BUF_NULL;
        bool signature = false, after_operator = false;
        struct brackets brackets = { .name = name };

        if (strnlen(name, SHORTEN_MAX) == SHORTEN_MAX) {
                buf_append(b, name, SHORTEN_MAX);
                buf_puts(b, "…");
                return;
        }
        match(&brackets, '(', ')');
        match(&brackets, '<', '>');
        for (const char *p = name; *p;) {
                size_t n = operator_name(name, p);
                const char *next;

                if (n > 0) {
                        buf_append(&s, p, n);
                        p += n;
                        p += startswith(p, " <") ? 1 : 0;
                        after_operator = true;
                        continue;
                }
                next = leave_out(&s, &brackets, p, after_operator);
                if (next) {
                        signature = true;
                        p = next;
                } else
                        buf_putc(&s, *p++);
                after_operator = false;
        }
        buf_puts(b, signature ? without_return_type(buf_text(&s)) : name);
}

/* The dot before `end`, "..ctor"'s first one; name: there is none. */
static const char *dot_before(const char *name, const char *end) {
        while (end > name && *--end != '.')
                continue;
        while (end > name && end[-1] == '.')
                end--;
        return end;
}

const char *name_without_namespace(const char *name) {
        static const char lambda[] = ".lambda";
        const char *end = name + strcspn(name, "("), *dot = dot_before(name, end);

        if ((size_t) (end - dot) == strlen(lambda) && startswith(dot, lambda))
                dot = dot_before(name, dot);
        dot = dot_before(name, dot);
        return dot > name ? dot + 1 : name;
}

bool name_is_wrapper(const char *name) {
        static const char *const prefixes[] = { "__", "Interop.", "Interop+", "SystemNative_",
                                                "[",  "syscall",  "_IO_" };

        for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
                if (startswith(name, prefixes[i]))
                        return true;
        return strstr(name, "Interop_Sys__") != NULL; /* of a NativeAOT debug file */
}

static void put_leaf(struct buf *b, const struct rec_sample *s) {
        if (!sample_is_cpu(s))
                buf_puts(b, s->kind == REC_SAMPLE_FAULT || s->syscall == REC_CALL_NONE ? "waiting"
                                                                                       : "waiting in ");
        if (s->kind == REC_SAMPLE_FAULT)
                buf_puts(b, " for a page");
        else if (s->flags & REC_SAMPLE_IN_FAULT)
                buf_puts(b, "page fault or interrupt");
        else if (s->syscall != REC_CALL_NONE)
                syscall_text(b, s->syscall);
        else if (sample_is_cpu(s))
                buf_puts(b, "kernel");
        if (s->kind == REC_SAMPLE_WAIT && s->flags & REC_SAMPLE_IO)
                buf_puts(b, " for the disk");
}

void sample_leaf(struct buf *b, const struct rec_sample *s) {
        if (s->kind == REC_SAMPLE_CPU_USER)
                return;
        buf_putc(b, '[');
        put_leaf(b, s);
        buf_putc(b, ']');
}
