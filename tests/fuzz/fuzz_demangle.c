/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Names from a stranger's file through every demangler, and what comes out through what shortens it for the
 * screen.
 *
 * Corpus (corpus/demangle): a symbol, or four lines: symbol, class and method of DWARF, assembly.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "report/csharp.h"
#include "report/names.h"
#include "symbolize/demangle.h"
#include "symbolize/demangle_dotnet.h"
#include "symbolize/demangle_outline.h"

enum { LINES = 4, INPUT_MAX = 64 * 1024 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void shorten(const char *name) {
        _cleanup_(buf_done) struct buf b = BUF_NULL;

        name_shorten(&b, name);
        csharp_shorten(&b, name);
        csharp_parameters(&b, name);
        if (buf_error(&b) < 0)
                abort();
}

static void check(int r, const char *name, size_t limit) {
        if (r < 0 ? name != NULL : !name || !*name || strlen(name) > limit)
                abort();
        if (name)
                shorten(name);
}

static char *split(char *text) {
        char *end = text ? strchr(text, '\n') : NULL;

        if (!end)
                return NULL;
        *end = '\0';
        return end + 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_free_ char *text = strndup((const char *) data, size < INPUT_MAX ? size : INPUT_MAX),
                            *name = NULL, *dotnet = NULL, *outline = NULL;
        char *lines[LINES] = { text };
        int r;

        if (!text)
                return 0;
        for (size_t i = 1; i < LINES; i++)
                lines[i] = split(lines[i - 1]);
        r = demangle(text, &name);
        check(r, name, DEMANGLE_OUTPUT_MAX);
        r = demangle_dotnet(&(struct dotnet_symbol){ lines[0], lines[1], lines[2], lines[3] }, &dotnet);
        check(r, dotnet, 4 * DOTNET_NAME_MAX);
        r = demangle_outline(text, &outline);
        check(r, outline, OUTLINE_MAX);
        shorten(text);
        return 0;
}
