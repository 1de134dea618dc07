/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/csharp.h"

#include <ctype.h>
#include <stdbool.h>

#include "common/macro.h"

enum { PARAMETERS_MAX = 80 }; /* bytes; more do not fit on a line with the method */

/* A part of a name, between dots or plus signs. */
struct segment {
        const char *text;
        size_t size;
        char before; /* the sign; '\0': it is the first */
};

static bool has_prefix(struct segment s, const char *prefix) {
        return s.size >= strlen(prefix) && memcmp(s.text, prefix, strlen(prefix)) == 0;
}

static bool is(struct segment s, const char *word) {
        return s.size == strlen(word) && has_prefix(s, word);
}

/* Behind the bracket that closes the one at p; `end` when none does. */
static const char *behind_brackets(const char *p, const char *end) {
        size_t depth = 0;

        for (; p < end; p++)
                if (*p == '<')
                        depth++;
                else if (*p == '>' && --depth == 0)
                        return p + 1;
        return end;
}

/* ---- where the method stands in the whole ---- */

/* A perf map has "RETURN [ASSEMBLY] TYPE::METHOD(PARAMETERS)[TIER]": behind the assembly. */
static const char *behind_assembly(const char *name) {
        const char *end = name + strcspn(name, "("), *found = NULL;

        if (!strstr(name, "::"))
                return name;
        for (const char *p = name; p < end; p++)
                if (startswith(p, "] "))
                        found = p + 2;
        return found ?: name;
}

/* The parameters begin; the end when there are none. */
static const char *parameters(const char *name) {
        const char *end = name + strlen(name), *p = name;

        while (p < end && *p != '(')
                p = *p == '<' ? behind_brackets(p, end) : p + 1;
        return p;
}

/* Type arguments stand behind a name, names of the compiler's ("<Main>$", "<>c") at the begin of a segment. */
static bool begins_arguments(const char *begin, const char *p) {
        return p > begin && (isalnum((unsigned char) p[-1]) || p[-1] == '_' || p[-1] == '$');
}

/* The name up to its parameters, without arities and type arguments; "::" of a perf map is ".". */
static void put_plain(struct buf *b, const char *begin, const char *end, bool of_map) {
        const char *p = begin;
        size_t depth = 0;

        while (p < end) {
                if (*p == '<' && begins_arguments(begin, p)) {
                        p = behind_brackets(p, end);
                        continue;
                }
                if (*p == '`') {
                        p += 1 + strspn(p + 1, "0123456789");
                        continue;
                }
                depth += *p == '<';
                depth -= *p == '>' && depth > 0;
                if (of_map && depth == 0 && startswith(p, "::")) {
                        buf_putc(b, '.');
                        p += 2;
                } else {
                        buf_putc(b, *p++);
                }
        }
}

/* ---- what the compiler made ---- */

/* The next segment at *p, which is moved behind it. Each begins with its sign but the first; ".ctor" has two. */
static struct segment next_segment(const char **p) {
        const char *begin = *p, *end = begin + strlen(begin), *at = begin;
        struct segment s = {};

        if (*at == '.' || *at == '+')
                s.before = *at++;
        s.text = at;
        at += *at == '.';
        while (at < end && *at != '.' && *at != '+')
                at = *at == '<' ? behind_brackets(at, end) : at + 1;
        s.size = (size_t) (at - s.text);
        *p = at;
        return s;
}

/* "<M>d__5", "<<M>b__0>d" → M. NULL: no such segment; *ret_rest is what stands behind the bracket. */
static bool unwrap(struct segment s, struct segment *ret, struct segment *ret_rest) {
        const char *end = s.text + s.size, *behind;

        if (s.size < 3 || s.text[0] != '<')
                return false;
        behind = behind_brackets(s.text, end);
        if (behind[-1] != '>' || behind == s.text + 2)
                return false;
        *ret = (struct segment){ s.text + 1, (size_t) (behind - s.text - 2), '.' };
        *ret_rest = (struct segment){ behind, (size_t) (end - behind), '.' };
        return true;
}

static void put_segment(struct buf *b, struct segment s) {
        if (s.before && b->size > 0)
                buf_putc(b, s.before);
        buf_append(b, s.text, s.size);
}

/* Of an interface's method only the method: "System-Collections-IEnumerable-GetEnumerator". */
static struct segment last_word(struct segment s) {
        if (s.size > 0 && s.text[0] == '<')
                return s;
        for (size_t i = s.size; i-- > 1;)
                if (s.text[i] == '.' || s.text[i] == '-')
                        return (struct segment){ s.text + i + 1, s.size - i - 1, s.before };
        return s;
}

/* "<M>b__0" and "<M>g__L|0_1"; false: it is none of them. */
static bool put_nested_function(struct buf *b, struct segment s) {
        struct segment method, rest;

        if (!unwrap(s, &method, &rest))
                return false;
        if (has_prefix(rest, "b__")) {
                put_segment(b, last_word(method));
                put_segment(b, (struct segment){ "lambda", strlen("lambda"), '.' });
                return true;
        }
        if (has_prefix(rest, "g__")) {
                const char *name = rest.text + strlen("g__"),
                           *bar = memchr(name, '|', rest.size - strlen("g__"));

                put_segment(b, last_word(method));
                put_segment(b, (struct segment){
                                       name, bar ? (size_t) (bar - name) : rest.size - strlen("g__"), '.' });
                return true;
        }
        return false;
}

/* "<M>d__5", "<<M>b__0>d": the method that it runs. */
static bool put_state_machine(struct buf *b, struct segment s) {
        struct segment method, rest;

        if (!unwrap(s, &method, &rest) || !(is(rest, "d") || has_prefix(rest, "d__")))
                return false;
        if (!put_nested_function(b, method))
                put_segment(b, last_word(method));
        return true;
}

/* Where the name space of an interface begins, at its dot, in the name of a method that implements it explicitly:
 * a name space of the platform, or the one that the type is in. NULL: there is none. */
static const char *interface_space(const char *name) {
        size_t first = strcspn(name, ".");

        for (const char *dot = strchr(name, '.'); dot; dot = strchr(dot + 1, '.'))
                if (startswith(dot, ".System.") || startswith(dot, ".Microsoft.") ||
                    (first > 0 && strncmp(dot + 1, name, first) == 0 && dot[1 + first] == '.'))
                        return dot;
        return NULL;
}

/* Type and interface: "System.Byte.System.IConvertible.ToInt32" → "System.Byte.IConvertible.ToInt32". */
static void put_interface_short(struct buf *b, const char *name) {
        const char *space = interface_space(name), *last = strrchr(name, '.'), *before = last;

        while (space && before > space && (before == last || *before != '.'))
                before--;
        if (!space || before <= space || before[1] != 'I' || !isupper((unsigned char) before[2])) {
                buf_puts(b, name);
                return;
        }
        buf_append(b, name, (size_t) (space - name));
        buf_puts(b, before);
}

void csharp_shorten(struct buf *b, const char *name) {
        _cleanup_(buf_done) struct buf plain = BUF_NULL, made = BUF_NULL;
        const char *begin = behind_assembly(name), *p;
        bool machine = false;

        put_plain(&plain, begin, parameters(begin), begin > name);
        p = buf_text(&plain);
        while (*p) {
                struct segment s = next_segment(&p);

                if (has_prefix(s, "<>c") && *p)
                        continue;
                if (machine && is(s, "MoveNext") && !*p)
                        break;
                if (*p && put_state_machine(&made, s))
                        machine = true;
                else if (*p || !put_nested_function(&made, s))
                        put_segment(&made, s);
        }
        if (buf_error(&plain) < 0 || buf_error(&made) < 0 || made.size == 0)
                buf_puts(b, name);
        else
                put_interface_short(b, buf_text(&made));
}

void csharp_parameters(struct buf *b, const char *name) {
        const char *p = parameters(behind_assembly(name)), *end = strchr(p, ')');
        size_t begin = b->size;

        if (*p != '(' || !end)
                return;
        while (p <= end && b->size - begin < PARAMETERS_MAX) {
                if (*p == '`')
                        p += 1 + strspn(p + 1, "0123456789");
                else
                        buf_putc(b, *p++);
        }
        if (p <= end)
                buf_puts(b, "…)");
}
