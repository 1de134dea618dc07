/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolize/demangle.h"

#include <errno.h>
#include <libiberty/demangle.h>
#undef ARRAY_SIZE /* libiberty.h has one, too */
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"

/* The library's own limit refuses names from 1024 characters on, which templates reach; DEMANGLE_INPUT_MAX
 * bounds the depth of its recursion (4096 levels take 2 MB of stack). */
enum { OPTIONS = DMGL_NO_RECURSE_LIMIT };

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

/* The streaming entries keep their parse in automatic memory, so jumping out of them loses nothing but, for a
 * Rust name with Unicode in it, one small array. Rust first: a legacy Rust name is a valid C++ one. */
static int expand(const char *mangled, struct output *output) {
        if (setjmp(output->full) != 0)
                return -E2BIG;

        if (rust_demangle_callback(mangled, OPTIONS, append, output))
                return 0;
        buf_reset(&output->text);
        return cplus_demangle_v3_callback(mangled, OPTIONS, append, output) ? 0 : -ENOENT;
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
