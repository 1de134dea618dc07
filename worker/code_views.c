/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "worker/code_views.h"

#include <stdlib.h>

/* Where the process of a perf map has a piece of a file. */
struct view {
        uint32_t module;
        uint64_t offset, end_offset, start;
        struct code_names *code; /* borrowed */
};

struct code_views {
        struct view views[CODE_VIEWS_MAX];
        uint32_t count;
};

static const struct view *find_view(const struct code_views *v, uint32_t module, uint64_t offset) {
        for (uint32_t i = 0; i < v->count; i++)
                if (v->views[i].module == module && v->views[i].offset <= offset &&
                    offset < v->views[i].end_offset)
                        return &v->views[i];
        return NULL;
}

/* The map of the code that the process of a space makes; NULL. */
static struct code_names *code_of_space(struct modules *modules, const struct space_mapping *mappings,
                                        uint32_t count) {
        for (uint32_t i = 0; i < count; i++) {
                struct code_names *code = modules_code(modules, mappings[i].module);

                if (code)
                        return code;
        }
        return NULL;
}

/* Many processes run one file: the first that tells of a piece is enough. */
static void add_space(struct code_views *v, struct modules *modules, const struct space_mapping *mappings,
                      uint32_t count) {
        struct code_names *code = code_of_space(modules, mappings, count);

        for (uint32_t i = 0; code && i < count && v->count < CODE_VIEWS_MAX; i++) {
                const struct space_mapping *m = &mappings[i];

                if (modules_code(modules, m->module) || find_view(v, m->module, m->offset))
                        continue;
                v->views[v->count++] = (struct view){
                        .module = m->module,
                        .offset = m->offset,
                        .end_offset = m->offset + (m->end - m->start),
                        .start = m->start,
                        .code = code,
                };
        }
}

struct code_views *code_views_new(struct modules *modules, const struct spaces *spaces) {
        struct code_views *v = calloc(1, sizeof(*v));

        for (uint32_t i = 0; v && i < spaces_count(spaces); i++) {
                const struct space_mapping *mappings;
                uint32_t count = spaces_mappings(spaces, i, &mappings);

                add_space(v, modules, mappings, count);
        }
        return v;
}

struct code_views *code_views_free(struct code_views *v) {
        free(v);
        return NULL;
}

bool code_views_find(const struct code_views *v, uint32_t module, uint64_t offset, struct name *ret) {
        const struct view *view = find_view(v, module, offset);

        return view && code_names_look(view->code, view->start + (offset - view->offset), ret);
}
