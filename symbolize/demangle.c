/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolize/demangle.h"

#include <errno.h>
#include <libiberty/demangle.h>
#undef ARRAY_SIZE /* libiberty.h has one, too */
#include <setjmp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"

/* For C++ the library's own limit refuses names from 1024 characters on, which templates reach;
 * DEMANGLE_INPUT_MAX bounds the depth of its recursion (4096 levels take 2 MB of stack). In Rust a name can
 * refer back to itself, which only the library's limit ends (1024 levels). */
enum { CXX_OPTIONS = DMGL_NO_RECURSE_LIMIT, RUST_OPTIONS = 0 };

struct output {
        struct buf text;
        jmp_buf full; /* the library offers no other way to stop it */
};

static void append(const char *piece, size_t bytes, void *userdata) {
        struct output *output = userdata;

        if (bytes > DEMANGLE_OUTPUT_MAX - output->text.size)
                longjmp(output->full, 1);
        buf_append(&output->text, piece, bytes);
}

/* One code point as UTF-8; false: there is none of that number. */
static bool put_code_point(struct buf *b, unsigned long c) {
        if (c < 0x80 || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
                return false;
        if (c >= 0x10000) {
                buf_putc(b, (char) (0xf0 | c >> 18));
                buf_putc(b, (char) (0x80 | (c >> 12 & 0x3f)));
        } else if (c >= 0x800)
                buf_putc(b, (char) (0xe0 | c >> 12));
        if (c >= 0x800)
                buf_putc(b, (char) (0x80 | (c >> 6 & 0x3f)));
        else
                buf_putc(b, (char) (0xc0 | c >> 6));
        buf_putc(b, (char) (0x80 | (c & 0x3f)));
        return true;
}

/* Legacy Rust writes "ö" as "$uf6$"; the library reads such escapes of ASCII only. */
static void unescape(struct buf *text) {
        struct buf b = BUF_NULL;

        if (!memmem(buf_text(text), text->size, "$u", 2))
                return;
        for (const char *p = buf_text(text); *p;) {
                enum { DIGITS_MAX = 6 };
                size_t n = *p == '$' && p[1] == 'u' ? strspn(p + 2, "0123456789abcdef") : 0;

                if (n > 0 && n <= DIGITS_MAX && p[2 + n] == '$' &&
                    put_code_point(&b, strtoul(p + 2, NULL, 16)))
                        p += n + 3;
                else
                        buf_putc(&b, *p++);
        }
        buf_done(text);
        *text = b;
}

/* The streaming entries keep their parse in automatic memory, so jumping out of them loses nothing but, for a
 * Rust name with Unicode in it, one small array. Rust first: a legacy Rust name is a valid C++ one. */
static int expand(const char *mangled, struct output *output) {
        if (setjmp(output->full) != 0)
                return -E2BIG;

        if (rust_demangle_callback(mangled, RUST_OPTIONS, append, output)) {
                if (startswith(mangled, "_Z"))
                        unescape(&output->text);
                return 0;
        }
        buf_reset(&output->text);
        return cplus_demangle_v3_callback(mangled, CXX_OPTIONS, append, output) ? 0 : -ENOENT;
}

int demangle(const char *mangled, char **ret) {
        struct output output = { .text = BUF_NULL };
        int r;

        /* What the library knows how to read; it would take bare type encodings as well. */
        if (!startswith(mangled, "_Z") && !startswith(mangled, "_R"))
                return -ENOENT;
        if (strnlen(mangled, DEMANGLE_INPUT_MAX + 1) > DEMANGLE_INPUT_MAX)
                return -E2BIG;

        r = expand(mangled, &output);
        if (r == 0 && output.text.size == 0)
                r = -ENOENT;
        if (r == 0)
                r = buf_take(&output.text, ret, NULL);
        buf_done(&output.text);
        return r;
}
