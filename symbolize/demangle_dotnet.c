/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolize/demangle_dotnet.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "common/buf.h"

enum {
        OVERLOAD_MAX =
                199, /* the framework has 117 of one method; from there on, numbers are names: SHA3_256 */
        ARITY_DIGITS_MAX = 2,
        FILE_HASH_DIGITS = 64,
};

/* Types that are named so in every assembly. */
static const char module[] = "_Module_", details[] = "_PrivateImplementationDetails_";

/* A piece of the symbol without type arguments; never with a NUL at its end. */
struct piece {
        const char *text;
        size_t size;
};

/* A symbol taken apart; pieces point into `text`. */
struct parts {
        struct buf text;
        struct piece type, method;
        bool generic; /* the type has type arguments, so "_1" behind a name is its arity */
};

static struct piece piece(const char *text, size_t size) {
        return (struct piece){ text, size };
}

static bool is_word(char c) {
        return isalnum((unsigned char) c) || c == '_';
}

static size_t digits(const char *p, const char *end) {
        size_t n = 0;

        while (p + n < end && isdigit((unsigned char) p[n]))
                n++;
        return n;
}

static bool has(struct piece p, size_t at, const char *word) {
        size_t n = strlen(word);

        return at <= p.size && n <= p.size - at && memcmp(p.text + at, word, n) == 0;
}

static bool ends_with(struct piece p, const char *word) {
        size_t n = strlen(word);

        return n <= p.size && has(p, p.size - n, word);
}

/* First place at or behind `from`; p.size: nowhere. */
static size_t find(struct piece p, size_t from, const char *word) {
        const char *found = from < p.size ? memmem(p.text + from, p.size - from, word, strlen(word)) : NULL;

        return found ? (size_t) (found - p.text) : p.size;
}

static size_t find_last(struct piece p, const char *word) {
        size_t last = p.size;

        for (size_t at = find(p, 0, word); at < p.size; at = find(p, at + 1, word))
                last = at;
        return last;
}

/* ---- words that name spaces begin with ---- */

static const char *const roots[] = { "System", "Microsoft", "Internal", "Interop",
                                     "InteropErrorExtensions" };

/* A whole word at the place: "System_" but not "Systems_". */
static bool has_word(struct piece p, size_t at, struct piece word) {
        return word.size > 0 && at < p.size && word.size <= p.size - at &&
               memcmp(p.text + at, word.text, word.size) == 0 &&
               (at + word.size == p.size || p.text[at + word.size] == '_');
}

/* own: what the program's own names begin with. */
static bool has_root(struct piece p, size_t at, struct piece own) {
        for (size_t i = 0; i < ARRAY_SIZE(roots); i++)
                if (has_word(p, at, piece(roots[i], strlen(roots[i]))))
                        return true;
        return has_word(p, at, own);
}

static struct piece first_word(struct piece p) {
        const char *end = memchr(p.text, '_', p.size);

        return piece(p.text, end ? (size_t) (end - p.text) : p.size);
}

/* ---- type arguments ---- */

/* Behind the group that begins at p; NULL: it is not closed. */
static const char *behind_group(const char *p) {
        size_t depth = 0;

        for (; *p; p++)
                if (*p == '<')
                        depth++;
                else if (*p == '>' && --depth == 0)
                        return p + 1;
        return NULL;
}

/* Copies without the groups. The one that ends a type stands right before "__": *ret_type is then the type's
 * size, else 0. */
static int cut_groups(struct buf *b, const char *p, size_t *ret_type) {
        *ret_type = 0;
        while (*p) {
                if (*p == '<') {
                        p = behind_group(p);
                        if (!p)
                                return -ENOENT;
                        if (*ret_type == 0 && startswith(p, "__"))
                                *ret_type = b->size;
                } else if (is_word(*p) || *p == '.' || *p == '$' || (unsigned char) *p >= 0x80)
                        buf_putc(b, *p++);
                else
                        return -ENOENT;
                if (b->size > DOTNET_NAME_MAX)
                        return -E2BIG;
        }
        return buf_error(b);
}

/* "<Boxed>TYPE<…>__<unbox>TYPE__METHOD": the type as it is written first, then the method. */
static int cut_boxed(struct buf *b, const char *p, size_t *ret_type) {
        static const char unbox[] = "__<unbox>";
        const char *second = strstr(p, unbox);
        size_t ignored;
        int r;

        if (!second)
                return -ENOENT;
        while (p < second) {
                const char *next = *p == '<' ? behind_group(p) : p + 1;

                if (!next)
                        return -ENOENT;
                if (*p != '<')
                        buf_putc(b, *p);
                p = next;
                if (b->size > DOTNET_NAME_MAX)
                        return -E2BIG;
        }
        second += strlen(unbox);
        if (buf_error(b) < 0)
                return buf_error(b);
        if (p != second - strlen(unbox) || b->size == 0 || strncmp(second, buf_text(b), b->size) != 0)
                return -ENOENT;
        *ret_type = b->size;
        r = cut_groups(b, second + b->size, &ignored);
        return r < 0 ? r : startswith(buf_text(b) + *ret_type, "__") ? 0 : -ENOENT;
}

/* ---- where the type ends ---- */

/* Each of these returns the size of the type, 0: it is no such symbol. The type is followed by "__" and the
 * method. */

/* "Type___c__DisplayClass1_0___M_b__0": a closure. */
static size_t end_of_closure(struct piece s) {
        static const char closure[] = "___c__DisplayClass";
        size_t at = find_last(s, closure);
        const char *end = s.text + s.size;

        if (at == s.size)
                return 0;
        at += strlen(closure);
        at += digits(s.text + at, end);
        if (at < s.size && s.text[at] == '_')
                at += 1 + digits(s.text + at + 1, end);
        return has(s, at, "__") ? at : 0;
}

/* "Type__M_d__5__MoveNext", "Type___M_b__0_1_d__MoveNext": an iterator or an async method. */
static size_t end_of_state_machine(struct piece s) {
        size_t at = find_last(s, "_d__"), behind;

        if (at == s.size || at == 0)
                return 0;
        if (isdigit((unsigned char) s.text[at - 1]) &&
            (find(piece(s.text, at), 0, "_b__") < at || find(piece(s.text, at), 0, "_g__") < at))
                return at + strlen("_d");
        behind = at + strlen("_d__");
        behind += digits(s.text + behind, s.text + s.size);
        return behind > at + strlen("_d__") && has(s, behind, "__") ? behind : 0;
}

/* "Type___M_g__Local_0_1", "Type___M_b__0": the compiler's method is in its type. kind: "_g__" or "_b__". */
static size_t end_before_nested_function(struct piece s, const char *kind) {
        size_t at = find(s, 0, kind), i = at;

        if (at == s.size)
                return 0;
        while (i > 0 && s.text[i - 1] == '_') /* of "<Main>$" */
                i--;
        while (i > 0 && !(s.text[i - 1] == '_' && has(s, i - 1, "___")))
                i--;
        while (i > 0 && s.text[i - 1] == '_')
                i--;
        return i;
}

static size_t end_before_constructor(struct piece s) {
        static const char *const names[] = { "___ctor", "___cctor" };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                size_t at = find_last(s, names[i]), behind = at + strlen(names[i]);

                if (at == s.size || at == 0)
                        continue;
                if (behind < s.size && s.text[behind] == '_')
                        behind += 1 + digits(s.text + behind + 1, s.text + s.size);
                if (behind == s.size)
                        return at;
        }
        return 0;
}

/* "Type__System_Collections_IList_Insert": an interface's method. */
static size_t end_before_interface(struct piece s, struct piece own) {
        for (size_t at = find(s, 1, "__"); at < s.size; at = find(s, at + 1, "__"))
                if (has_root(s, at + strlen("__"), own) && s.text[at - 1] != '_' &&
                    memchr(s.text + at + strlen("__"), '_', s.size - at - strlen("__")))
                        return at;
        return 0;
}

/* The last "__" that something follows; more underscores than two are the method's. */
static size_t end_before_method(struct piece s) {
        size_t end = s.size;

        while (end > 0 && s.text[end - 1] == '_')
                end--;
        for (size_t at = end; at-- > 1;)
                if (s.text[at] == '_' && s.text[at - 1] == '_') {
                        while (at > 0 && s.text[at - 1] == '_')
                                at--;
                        return at;
                }
        return 0;
}

/* "_Module___Method" */
static size_t end_of_fixed_type(struct piece s, const char *type) {
        size_t at = find(s, 0, type) + strlen(type);

        return at < s.size && has(s, at, "__") ? at : 0;
}

static size_t end_of_type(struct piece s, struct piece own) {
        static const char lambdas[] = "___c___";
        size_t at;

        at = end_of_fixed_type(s, details);
        if (at == 0)
                at = end_of_fixed_type(s, module);
        if (at == 0)
                at = end_of_state_machine(s);
        if (at == 0)
                at = end_of_closure(s);
        if (at == 0 && find(s, 1, lambdas) < s.size)
                at = find(s, 1, lambdas) + strlen("___c");
        if (at == 0)
                at = end_before_nested_function(s, "_g__");
        if (at == 0)
                at = end_before_nested_function(s, "_b__");
        if (at == 0)
                at = end_before_constructor(s);
        if (at == 0)
                at = end_before_interface(s, own);
        return at > 0 ? at : end_before_method(s);
}

/* ---- the assembly ---- */

/* Where the name space or type begins behind the assembly's name; 0: it is not there. */
static size_t behind_assembly(struct piece type, struct piece assembly) {
        static const char core[] = "S_P_CoreLib_";
        struct piece first = first_word(type);

        if (has(type, 0, core))
                return strlen(core);
        if (has_word(type, 0, assembly) && assembly.size + 1 < type.size)
                return assembly.size + 1;
        for (size_t at = find(type, 1, "_"); at + 1 < type.size; at = find(type, at + 1, "_"))
                if (has_root(type, at + 1, first) || has(type, at + 1, details) || has(type, at + 1, module))
                        return at + 1;
        return 0;
}

/* Types that have no assembly in symbols, and no name space. */
static const char *basic_type(struct piece type) {
        static const char *const names[][2] = {
                { "Object", "Object" }, { "String", "String" },   { "Bool", "Boolean" },
                { "Char", "Char" },     { "Int8", "SByte" },      { "UInt8", "Byte" },
                { "Int16", "Int16" },   { "UInt16", "UInt16" },   { "Int32", "Int32" },
                { "UInt32", "UInt32" }, { "Int64", "Int64" },     { "UInt64", "UInt64" },
                { "IntPtr", "IntPtr" }, { "UIntPtr", "UIntPtr" }, { "Single", "Single" },
                { "Double", "Double" }, { "Void", "Void" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (type.size == strlen(names[i][0]) && has(type, 0, names[i][0]))
                        return names[i][1];
        return NULL;
}

/* ---- methods ---- */

/* Up to and with the word that is an interface's name, of a method with more words behind it; 0: none is. */
static size_t end_of_interface(struct piece m) {
        for (size_t word = 0, end; (end = find(m, word, "_")) + 1 < m.size; word = end + 1)
                if (word > 0 && end - word >= 2 && m.text[word] == 'I' &&
                    isupper((unsigned char) m.text[word + 1]))
                        return end;
        return 0;
}

static bool is_accessor(struct piece m) {
        return has(m, 0, "get_") || has(m, 0, "set_") || has(m, 0, "add_") || has(m, 0, "remove_") ||
               has(m, 0, "op_");
}

/* An interface's method: "System_Collections_Generic_IList_T__Insert" → "System.Collections.Generic.IList.Insert";
 * dot: what stands between the words, "-" where the compiler makes a type's name of a method's. */
static bool put_interface_method(struct buf *b, struct piece m, struct piece own, char dot) {
        size_t at = end_of_interface(m), behind, last;

        if (at == 0 || (is_accessor(m) && !has_root(m, 0, own)))
                return false;
        behind = at + 1;
        last = find_last(m, "__"); /* behind type arguments */
        if (last < m.size && last + 2 < m.size && last >= at)
                behind = last + 2;
        for (size_t i = 0; i < at; i++)
                buf_putc(b, m.text[i] == '_' ? dot : m.text[i]);
        buf_putc(b, dot);
        buf_append(b, m.text + behind, m.size - behind);
        return true;
}

/* A method's name without anything behind it. "<>m__Finally1" is of an iterator. */
static void put_plain_method(struct buf *b, struct piece m, struct piece own, char dot) {
        if (m.size == strlen("_ctor") && has(m, 0, "_ctor"))
                buf_puts(b, ".ctor");
        else if (m.size == strlen("_cctor") && has(m, 0, "_cctor"))
                buf_puts(b, ".cctor");
        else if (has(m, 0, "__m__Finally")) {
                buf_puts(b, "<>");
                buf_append(b, m.text + strlen("__"), m.size - strlen("__"));
        } else if (m.size > 3 && m.text[0] == '_' && m.text[1] != '_' && ends_with(m, "__")) { /* <Main>$ */
                buf_putc(b, '<');
                buf_append(b, m.text + 1, m.size - 3);
                buf_puts(b, ">$");
        } else if (!put_interface_method(b, m, own, dot))
                buf_append(b, m.text, m.size);
}

/* "_M_b__0_1" → "<M>b__0_1", "_M_g__Local_0_1" → "<M>g__Local|0_1"; false: it is no such name. */
static bool put_nested_function(struct buf *b, struct piece m, struct piece own) {
        size_t lambda = find_last(m, "_b__"), local = find_last(m, "_g__");
        size_t at = local < m.size ? local : lambda, bar = m.size;

        if (at == m.size || at < 2 || m.text[0] != '_')
                return false;
        buf_putc(b, '<');
        put_plain_method(b, piece(m.text + 1, at - 1), own, '.');
        buf_putc(b, '>');
        at++;
        if (local < m.size) /* the bar stands before the last two numbers, or the last one */
                for (int numbers = 0; numbers < 2 && bar > at; numbers++) {
                        size_t begin = bar;

                        while (begin > at && isdigit((unsigned char) m.text[begin - 1]))
                                begin--;
                        if (begin == bar || begin == at || m.text[begin - 1] != '_')
                                break;
                        bar = begin - 1;
                }
        buf_append(b, m.text + at, bar - at);
        if (bar < m.size) {
                buf_putc(b, '|');
                buf_append(b, m.text + bar + 1, m.size - bar - 1);
        }
        return true;
}

static struct piece without_overload(struct piece m) {
        size_t n = 0;
        unsigned number = 0, unit = 1;

        while (n < m.size && isdigit((unsigned char) m.text[m.size - 1 - n]) && number <= OVERLOAD_MAX) {
                number += (unsigned) (m.text[m.size - 1 - n++] - '0') * unit;
                unit = MIN(unit * 10, 10u * OVERLOAD_MAX);
        }
        if (n == 0 || number > OVERLOAD_MAX || n + 2 > m.size || m.text[m.size - 1 - n] != '_')
                return m;
        return piece(m.text, m.size - n - 1);
}

static void put_method(struct buf *b, struct piece m, struct piece own) {
        if (!put_nested_function(b, m, own))
                put_plain_method(b, without_overload(m), own, '.');
}

/* ---- types ---- */

/* "_1" of a generic type; the number of digits, 0: it is none. */
static size_t arity(struct piece t, size_t at, bool generic) {
        size_t n = generic ? digits(t.text + at, t.text + t.size) : 0;

        return n <= ARITY_DIGITS_MAX && (at + n == t.size || t.text[at + n] == '_') ? n : 0;
}

/* Names joined by "_"; a second "_" belongs to the name. */
static void put_words(struct buf *b, struct piece t, bool generic) {
        for (size_t i = 0; i < t.size; i++) {
                size_t n = i > 0 && t.text[i] == '_' ? arity(t, i + 1, generic) : 0;

                if (n > 0) {
                        buf_putc(b, '`');
                        buf_append(b, t.text + i + 1, n);
                        i += n;
                } else if (t.text[i] == '_' && i > 0 && t.text[i - 1] != '_' && i + 1 < t.size &&
                           !isdigit((unsigned char) t.text[i + 1]))
                        buf_putc(b, '.');
                else
                        buf_putc(b, t.text[i]);
        }
}

/* "File_g_F0123…__Type", where a compiler's hash of the file's path makes it certain: "<File_g>F0123…__Type". */
static bool put_file_type(struct buf *b, struct piece t, bool generic) {
        for (size_t at = find(t, 0, "_F"); at < t.size; at = find(t, at + 1, "_F")) {
                size_t n = 0, begin = at;

                while (at + 2 + n < t.size && isxdigit((unsigned char) t.text[at + 2 + n]))
                        n++;
                if (n != FILE_HASH_DIGITS || !has(t, at + 2 + n, "__"))
                        continue;
                while (begin > 0 && !(t.text[begin - 1] == '_' && (begin == 1 || t.text[begin - 2] == '_')))
                        begin--;
                if (begin >= 2) {
                        put_words(b, piece(t.text, begin - 2), generic);
                        buf_putc(b, '.');
                }
                buf_putc(b, '<');
                buf_append(b, t.text + begin, at - begin);
                buf_putc(b, '>');
                buf_append(b, t.text + at + 1, t.size - at - 1);
                return true;
        }
        return false;
}

/* A type that is not one that the compiler made for a method. */
static void put_named_type(struct buf *b, struct piece t, bool generic) {
        if (has(t, 0, module) && t.size == strlen(module))
                buf_puts(b, "<Module>");
        else if (has(t, 0, details)) {
                buf_puts(b, "<PrivateImplementationDetails>");
                t = piece(t.text + strlen(details), t.size - strlen(details));
                if (t.size > 0)
                        put_words(b, t, generic);
        } else if (!put_file_type(b, t, generic))
                put_words(b, t, generic);
}

/* Behind a type's name that the compiler made: "__5", "__5_1" with an arity. */
static void put_number_and_arity(struct buf *b, struct piece t, bool generic) {
        size_t last = find_last(t, "_");

        if (last < t.size && arity(t, last + 1, generic) > 0 && !(last > 0 && t.text[last - 1] == '_')) {
                buf_append(b, t.text, last);
                buf_putc(b, '`');
                buf_append(b, t.text + last + 1, t.size - last - 1);
        } else
                buf_append(b, t.text, t.size);
}

/* "Type___c", "Type___c__DisplayClass1_0" → "Type.<>c", "Type.<>c__DisplayClass1_0"; or a type with a name. */
static void put_closure(struct buf *b, struct piece t, bool generic) {
        static const char closure[] = "___c", class[] = "__DisplayClass";
        size_t at = find_last(t, closure), behind = at + strlen(closure);
        bool is_closure = at < t.size && at > 0 && (behind == t.size || t.text[behind] == '_');

        if (!is_closure) {
                put_named_type(b, t, generic);
                return;
        }
        put_named_type(b, piece(t.text, at), generic);
        buf_puts(b, ".<>c");
        t = piece(t.text + behind, t.size - behind);
        if (has(t, 0, class)) { /* the first number is the class's, not an arity */
                size_t n = strlen(class) + digits(t.text + strlen(class), t.text + t.size);

                n = MIN(n + 1, t.size);
                buf_append(b, t.text, n);
                t = piece(t.text + n, t.size - n);
        }
        put_number_and_arity(b, t, generic);
}

/* Where "_d" stands in "Type__M_d__5", "Type___M_b__0_d", with or without an arity; t.size: it is no such type. */
static size_t mark_of_state_machine(struct piece t, bool generic) {
        const char *end = t.text + t.size;
        size_t at = find_last(t, "_d__"), n;
        struct piece before;

        if (at < t.size) {
                n = digits(t.text + at + strlen("_d__"), end);
                if (n == 0)
                        return t.size;
                n += at + strlen("_d__");
                return n == t.size || (t.text[n] == '_' && arity(t, n + 1, generic) == t.size - n - 1)
                               ? at
                               : t.size;
        }
        at = find_last(t, "_d");
        before = piece(t.text, at);
        n = at + strlen("_d");
        if (at == t.size || at == 0 || !isdigit((unsigned char) t.text[at - 1]) ||
            (find(before, 0, "_b__") == at && find(before, 0, "_g__") == at))
                return t.size;
        return n == t.size || (t.text[n] == '_' && arity(t, n + 1, generic) == t.size - n - 1) ? at : t.size;
}

/* Size of the type that holds a state machine's: "Type" of "Type__M" or "Type___M_b__0". 0: nothing does. */
static size_t holder_of_state_machine(struct piece t, struct piece own) {
        size_t at = end_before_nested_function(t, "_g__");

        if (at == 0)
                at = end_before_nested_function(t, "_b__");
        if (at == 0)
                at = end_before_interface(t, own);
        return at > 0 ? at : end_before_method(t);
}

static void put_type(struct buf *b, struct piece t, struct piece own, bool generic) {
        size_t mark = mark_of_state_machine(t, generic), holder;
        struct piece method;

        holder = mark < t.size ? holder_of_state_machine(piece(t.text, mark), own) : 0;
        if (holder == 0) {
                put_closure(b, t, generic);
                return;
        }
        put_closure(b, piece(t.text, holder), generic);
        method = piece(t.text + holder + strlen("__"), mark - holder - strlen("__"));
        buf_puts(b, ".<");
        if (!put_nested_function(b, method, own))
                put_plain_method(b, method, own, '-');
        buf_putc(b, '>');
        put_number_and_arity(b, piece(t.text + mark + 1, t.size - mark - 1), generic);
}

/* ---- all together ---- */

static void parts_done(struct parts *parts) {
        buf_done(&parts->text);
}

static bool is_longer(const char *text, size_t limit) {
        return strnlen(text, limit + 1) > limit;
}

/* Stubs that the compiler makes beside the methods ("__GetGCStaticBase_…") and C++ begin with "_". */
static bool is_method(const char *name) {
        return *name && *name != '_';
}

/* What the name spaces of the program begin with, beside those of the platform. "S" is short for System. */
static struct piece own_root(struct piece symbol) {
        struct piece word = first_word(symbol);

        return has(word, 0, "S") && word.size == 1 ? piece("", 0) : word;
}

static int take_apart(const struct dotnet_symbol *symbol, struct parts *parts) {
        static const char boxed[] = "<Boxed>", unbox[] = "unbox_";
        const char *name = symbol->linkage;
        struct piece s;
        size_t type = 0;
        int r;

        if (startswith(name, boxed))
                r = cut_boxed(&parts->text, name + strlen(boxed), &type);
        else
                r = cut_groups(&parts->text, startswith(name, unbox) ? name + strlen(unbox) : name, &type);
        if (r < 0)
                return r;
        s = piece(buf_text(&parts->text), parts->text.size);
        parts->generic = type > 0;
        if (type == 0)
                type = end_of_type(s, own_root(s));
        if (type == 0 || type + strlen("__") >= s.size)
                return -ENOENT;
        parts->type = piece(s.text, type);
        parts->method = piece(s.text + type + strlen("__"), s.size - type - strlen("__"));
        return 0;
}

/* What DWARF knows replaces what was guessed. */
static int take_known_type(const struct dotnet_symbol *symbol, struct buf *b, struct parts *parts) {
        size_t ignored;
        int r;

        if (!symbol->type || !*symbol->type)
                return 0;
        r = cut_groups(b, symbol->type, &ignored);
        if (r < 0)
                return r;
        parts->type = piece(buf_text(b), b->size);
        parts->generic = strchr(symbol->type, '<') != NULL;
        return 0;
}

static int put_parts(struct buf *b, const struct dotnet_symbol *symbol, const struct parts *parts,
                     struct piece assembly) {
        struct piece type = parts->type, own = own_root(type);
        const char *basic = basic_type(type);

        if (basic)
                buf_printf(b, "System.%s", basic);
        else {
                size_t n = behind_assembly(type, assembly);

                put_type(b, piece(type.text + n, type.size - n), own, parts->generic);
        }
        buf_putc(b, '.');
        if (symbol->method && *symbol->method)
                buf_puts(b, symbol->method);
        else
                put_method(b, parts->method, own);
        return buf_error(b);
}

int demangle_dotnet(const struct dotnet_symbol *symbol, char **ret) {
        _cleanup_(buf_done) struct buf name = BUF_NULL, type = BUF_NULL;
        _cleanup_(parts_done) struct parts parts = {};
        const char *assembly = symbol->assembly ?: "";
        int r;

        if (!is_method(symbol->linkage))
                return -ENOENT;
        if (is_longer(symbol->linkage, DOTNET_SYMBOL_MAX) || is_longer(assembly, DOTNET_ASSEMBLY_MAX) ||
            (symbol->type && is_longer(symbol->type, DOTNET_SYMBOL_MAX)) ||
            (symbol->method && is_longer(symbol->method, DOTNET_NAME_MAX)))
                return -E2BIG;
        r = take_apart(symbol, &parts);
        if (r == 0)
                r = take_known_type(symbol, &type, &parts);
        if (r == 0)
                r = put_parts(&name, symbol, &parts, piece(assembly, strlen(assembly)));
        return r < 0 ? r : buf_take(&name, ret, NULL);
}
