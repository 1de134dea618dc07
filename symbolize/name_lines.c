/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolize/name_lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbolize/demangle.h"
#include "symbolize/demangle_outline.h"

struct name_lines {
        const struct elf_image *image; /* borrowed */
        struct dwarf_index *index; /* owned; NULL: not opened yet, or given up */
        bool opened;

        struct name_line lines[DWARF_FRAMES_MAX];
        char *texts[DWARF_FRAMES_MAX]; /* owned */
};

bool name_lines_in(const struct elf_image *image) {
        static const char *const names[] = { ".debug_info", ".zdebug_info" };

        for (size_t i = 0; image && i < ARRAY_SIZE(names); i++) {
                const struct elf_section *section = elf_image_section(image, names[i]);

                if (section && section->data)
                        return true;
        }
        return false;
}

int name_lines_new(const struct elf_image *image, const struct elf_image *debug, struct name_lines **ret) {
        const struct elf_image *from = name_lines_in(debug) ? debug : name_lines_in(image) ? image : NULL;
        struct name_lines *l;

        if (!from)
                return -ENODATA;
        l = calloc(1, sizeof(*l));
        if (!l)
                return -ENOMEM;
        l->image = from;
        *ret = l;
        return 0;
}

static void forget_texts(struct name_lines *l) {
        for (size_t i = 0; i < DWARF_FRAMES_MAX; i++) {
                free(l->texts[i]);
                l->texts[i] = NULL;
        }
}

struct name_lines *name_lines_free(struct name_lines *l) {
        if (!l)
                return NULL;

        forget_texts(l);
        dwarf_index_free(l->index);
        free(l);
        return NULL;
}

/* Demangled, or as it is. */
static int readable(const char *raw, char **ret) {
        int r = demangle(raw, ret);

        if (r == -E2BIG)
                r = demangle_outline(raw, ret);
        if (r != -ENOENT && r != -E2BIG)
                return r;
        *ret = strndup(raw, DEMANGLE_OUTPUT_MAX);
        return *ret ? 0 : -ENOMEM;
}

int name_lines_find(struct name_lines *l, uint64_t vaddr, const struct dwarf_companions *companions,
                    const struct name_line **ret, size_t *ret_count) {
        struct dwarf_frame frames[DWARF_FRAMES_MAX];
        size_t count = 0;
        int r;

        if (!l->opened) {
                l->opened = true;
                (void) dwarf_index_new(l->image, &l->index); /* DWARF that cannot be read adds nothing */
        }
        forget_texts(l);
        if (l->index &&
            dwarf_index_resolve(l->index, vaddr, companions, frames, ARRAY_SIZE(frames), &count) == -ENOMEM)
                l->index = dwarf_index_free(l->index); /* it may take the memory of the names */

        for (size_t i = 0; i < count; i++) {
                if (frames[i].function) {
                        r = readable(frames[i].function, &l->texts[i]);
                        if (r < 0)
                                return r;
                }
                l->lines[i] = (struct name_line){
                        .text = l->texts[i],
                        .file = frames[i].file,
                        .line = frames[i].line,
                        .inlined = frames[i].inlined,
                };
        }
        *ret = l->lines;
        *ret_count = count;
        return 0;
}
