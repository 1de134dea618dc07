/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolize/demangle_outline.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "common/buf.h"

/* What is left of the name. Reading behind the end gives NULs. */
struct cursor {
        const char *p;
        const char *end;
};

static char peek(const struct cursor *c, size_t ahead) {
        return ahead < (size_t) (c->end - c->p) ? c->p[ahead] : '\0';
}

static bool take(struct cursor *c, const char *word) {
        size_t n = strlen(word);

        if (n > (size_t) (c->end - c->p) || memcmp(c->p, word, n) != 0)
                return false;
        c->p += n;
        return true;
}

static void skip_set(struct cursor *c, const char *set) {
        while (c->p < c->end && strchr(set, *c->p))
                c->p++;
}

/* "3foo": its size and where it begins; false: it is longer than what is left. */
static bool take_source_name(struct cursor *c, const char **ret, size_t *ret_size) {
        size_t n = 0;

        if (!isdigit((unsigned char) peek(c, 0)))
                return false;
        while (isdigit((unsigned char) peek(c, 0))) {
                n = n * 10 + (size_t) (*c->p++ - '0');
                if (n > (size_t) (c->end - c->p))
                        return false;
        }
        *ret = c->p;
        *ret_size = n;
        c->p += n;
        return n > 0;
}

static bool skip_source_name(struct cursor *c) {
        const char *name;
        size_t size;

        return take_source_name(c, &name, &size);
}

/* "S_", "S1A_", "St", "Sa" … behind the S. */
static bool skip_substitution(struct cursor *c) {
        if (strchr("tabsiod", peek(c, 0)) && peek(c, 0)) {
                c->p++;
                return true;
        }
        skip_set(c, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ");
        return take(c, "_");
}

/* A literal behind its "L": the type, one letter or the name of an enumeration, and the value. The name may hold
 * what only the caller's loop reads: then it is not known. */
static bool skip_literal(struct cursor *c) {
        if (take(c, "DnE") || take(c, "Dn0E"))
                return true;
        if (islower((unsigned char) peek(c, 0)))
                c->p++;
        else if (take(c, "N")) {
                if (take(c, "S") && !skip_substitution(c))
                        return false;
                while (skip_source_name(c))
                        continue;
                if (!take(c, "E"))
                        return false;
        } else if (!skip_source_name(c))
                return false;
        skip_set(c, "n0123456789abcdef");
        return take(c, "E");
}

/* One step over types and names; *depth counts what an "E" has to close. False: not known. */
static bool skip_step(struct cursor *c, size_t *depth) {
        char first = peek(c, 0);

        if (isdigit((unsigned char) first))
                return skip_source_name(c);
        c->p++;
        switch (first) {
        case 'E': --*depth; return true;
        case 'N':
        case 'I':
        case 'J':
        case 'F': ++*depth; return true;
        case 'S': return skip_substitution(c);
        case 'L': return skip_literal(c);
        case 'A': /* "A10_c" */ skip_set(c, "0123456789"); return take(c, "_");
        case 'T': /* "T_", "T1A_" */
                skip_set(c, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ");
                return take(c, "_");
        case 'D': /* "Dn", "Dp"; expressions ("DT") are not known */
                return strchr("npaisufdehcgo012", peek(c, 0)) && peek(c, 0) && (c->p++, true);
        default: /* builtin types, qualifiers, references, constructors */
                return first && strchr("PROKVrMGCyYabcdefghijlmnostvwxz0123456789", first);
        }
}

/* Behind the arguments whose "I" was taken. */
static bool skip_arguments(struct cursor *c) {
        size_t depth = 1;

        while (depth > 0)
                if (!skip_step(c, &depth))
                        return false;
        return true;
}

/* The last name in the outline, of which a constructor has its own. */
struct outline {
        struct buf text;
        const char *last;
        size_t last_size;
};

static void put_name(struct outline *o, const char *name, size_t size) {
        if (o->text.size > 0)
                buf_puts(&o->text, "::");
        if (size > OUTLINE_MAX) /* cut as a whole by the caller */
                size = OUTLINE_MAX;
        buf_append(&o->text, name, size);
}

static bool put_substitution(struct outline *o, struct cursor *c) {
        static const char *const names[][2] = {
                { "t", "std" },           { "a", "std::allocator" }, { "b", "std::basic_string" },
                { "s", "std::string" },   { "i", "std::istream" },   { "o", "std::ostream" },
                { "d", "std::iostream" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (take(c, names[i][0])) {
                        put_name(o, names[i][1], strlen(names[i][1]));
                        return true;
                }
        return false;
}

static bool put_operator(struct outline *o, struct cursor *c) {
        static const char *const names[][2] = {
                { "cl", "operator()" }, { "ix", "operator[]" },   { "eq", "operator==" },
                { "ne", "operator!=" }, { "lt", "operator<" },    { "gt", "operator>" },
                { "le", "operator<=" }, { "ge", "operator>=" },   { "pl", "operator+" },
                { "mi", "operator-" },  { "ml", "operator*" },    { "dv", "operator/" },
                { "aS", "operator=" },  { "pL", "operator+=" },   { "mI", "operator-=" },
                { "ls", "operator<<" }, { "rs", "operator>>" },   { "pt", "operator->" },
                { "de", "operator*" },  { "ad", "operator&" },    { "pp", "operator++" },
                { "mm", "operator--" }, { "nt", "operator!" },    { "aa", "operator&&" },
                { "oo", "operator||" }, { "nw", "operator new" }, { "dl", "operator delete" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (take(c, names[i][0])) {
                        put_name(o, names[i][1], strlen(names[i][1]));
                        return true;
                }
        return false;
}

static bool put_constructor(struct outline *o, struct cursor *c) {
        bool destroys = peek(c, 0) == 'D';

        if ((!destroys && peek(c, 0) != 'C') || !strchr("012345", peek(c, 1)) || !peek(c, 1) || !o->last)
                return false;
        c->p += 2;
        put_name(o, "~", destroys);
        buf_append(&o->text, o->last, o->last_size < OUTLINE_MAX ? o->last_size : OUTLINE_MAX);
        return true;
}

/* One part of a name; false: it is not known, or there is no more. */
static bool put_part(struct outline *o, struct cursor *c) {
        const char *name;
        size_t size;

        (void) take(c, "L"); /* not to be seen from outside */
        if (take_source_name(c, &name, &size)) {
                bool anonymous = size >= strlen("_GLOBAL__N") &&
                                 memcmp(name, "_GLOBAL__N", strlen("_GLOBAL__N")) == 0;

                if (anonymous)
                        put_name(o, "(anonymous namespace)", strlen("(anonymous namespace)"));
                else
                        put_name(o, name, size);
                o->last = name;
                o->last_size = size;
                return true;
        }
        if (take(c, "S"))
                return put_substitution(o, c);
        if (take(c, "B")) /* an ABI tag */
                return skip_source_name(c);
        if (peek(c, 0) == 'I' && o->text.size > 0) {
                buf_puts(&o->text, "<…>");
                c->p++;
                return skip_arguments(c);
        }
        return put_constructor(o, c) || put_operator(o, c);
}

/* True: it is the whole name. */
static bool put_parts(struct outline *o, struct cursor *c) {
        bool nested = take(c, "N"), standard;

        if (nested)
                skip_set(c, "rVKRO");
        standard = !nested && peek(c, 0) == 'S';
        while (put_part(o, c)) {
                if (o->text.size > OUTLINE_MAX)
                        return false;
                if (nested ? take(c, "E") : peek(c, 0) != 'I' && !standard)
                        return true;
                standard = false;
        }
        return false;
}

int demangle_outline(const char *mangled, char **ret) {
        struct cursor c = { mangled, mangled + strlen(mangled) };
        struct outline o = {};
        int r;

        if (!take(&c, "_Z"))
                return -ENOENT;
        if (!put_parts(&o, &c) && o.text.size > 0) {
                if (o.text.size > OUTLINE_MAX - strlen("…"))
                        o.text.size = OUTLINE_MAX - strlen("…");
                buf_puts(&o.text, "…");
        }
        r = o.text.size > 0 ? buf_take(&o.text, ret, NULL) : buf_error(&o.text) < 0 ? -ENOMEM : -ENOENT;
        buf_done(&o.text);
        return r;
}
