/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "worker/labels.h"

#include <stdlib.h>

/* __libc_start_main and __libc_start_call_main; clone3 and start_thread (glibc 2.34 and later; before, the second
 * was part of the first, or of libpthread). */
enum { LIBC_FRAMES = 2 };

struct frame {
        struct frame_place place;
        const char *label;
};

struct labels {
        struct frame *frames;
        uint32_t n_frames;
};

struct labels *labels_new(uint32_t n_frames) {
        struct labels *l = calloc(1, sizeof(*l));

        if (!l)
                return NULL;
        l->n_frames = n_frames;
        l->frames = calloc((size_t) n_frames + 1, sizeof(*l->frames));
        return l->frames ? l : labels_free(l);
}

struct labels *labels_free(struct labels *l) {
        if (!l)
                return NULL;
        free(l->frames);
        free(l);
        return NULL;
}

void labels_place(struct labels *l, uint32_t frame, const struct frame_place *place) {
        l->frames[frame].place = *place;
}

static void label(struct frame *f, const char *text) {
        if (!f->place.named)
                f->label = text;
}

/* indexes: innermost frame first. */
static void label_stack(struct labels *l, const uint32_t *indexes, uint32_t count) {
        struct frame *root = &l->frames[indexes[count - 1]];

        if (root->place.role == MODULE_OTHER) {
                if (!root->place.entry)
                        return;
                label(root, "[program start]");
                count--;
        }
        for (unsigned i = 0; i < LIBC_FRAMES && count > 0; i++) {
                struct frame *f = &l->frames[indexes[--count]];

                if (f->place.role != MODULE_LIBC)
                        return;
                label(f, "[libc start]");
        }
}

void labels_find(struct labels *l, const struct stacks *stacks) {
        const struct rec_stack *rows;
        const uint32_t *indexes;
        uint32_t count = stacks_rows(stacks, &rows, &indexes);

        for (uint32_t i = 0; i < l->n_frames; i++)
                if (l->frames[i].place.role == MODULE_LOADER)
                        label(&l->frames[i], "[ld.so]");
        for (uint32_t i = 0; i < count; i++)
                if (rows[i].end == REC_STACK_COMPLETE && rows[i].count > 0)
                        label_stack(l, indexes + rows[i].first, rows[i].count);
}

const char *labels_get(const struct labels *l, uint32_t frame) {
        return l->frames[frame].label;
}
