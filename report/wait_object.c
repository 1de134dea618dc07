/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/wait_object.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/macro.h"

struct waiter {
        uint64_t time_ns;
        uint32_t process, tid, syscall, sample;
};

static int by_thread(const void *x, const void *y) {
        const struct waiter *a = x, *b = y;

        if (a->process != b->process)
                return a->process < b->process ? -1 : 1;
        if (a->tid != b->tid)
                return a->tid < b->tid ? -1 : 1;
        if (a->time_ns != b->time_ns)
                return a->time_ns < b->time_ns ? -1 : 1;
        return a->sample < b->sample ? -1 : a->sample > b->sample;
}

/* The last wait of the thread that ended before the object was told. */
static const struct waiter *waiter_of(const struct waiter *waiters, size_t n, const struct rec_path *p) {
        const struct waiter wanted = {
                .time_ns = p->time_ns, .process = p->process, .tid = p->tid, .sample = UINT32_MAX
        };
        size_t low = 0, high = n;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (by_thread(waiters + middle, &wanted) <= 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        if (low == 0 || waiters[low - 1].process != p->process || waiters[low - 1].tid != p->tid ||
            waiters[low - 1].syscall != p->syscall)
                return NULL;
        return waiters + low - 1;
}

int wait_objects_join(const struct recording *r, uint32_t **ret) {
        _cleanup_free_ struct waiter *waiters = calloc((size_t) r->n_samples + 1, sizeof(*waiters));
        _cleanup_free_ uint32_t *objects = malloc(((size_t) r->n_samples + 1) * sizeof(*objects));
        size_t n = 0;

        if (!waiters || !objects)
                return -ENOMEM;
        for (uint32_t i = 0; i < r->n_samples; i++) {
                const struct rec_sample *s = r->samples + i;

                objects[i] = REC_NONE;
                if (s->kind == REC_SAMPLE_WAIT)
                        waiters[n++] = (struct waiter){ s->time_ns, s->process, s->tid, s->syscall, i };
        }
        qsort(waiters, n, sizeof(*waiters), by_thread);
        for (uint32_t i = 0; i < r->n_paths; i++) {
                const struct rec_path *p = r->paths + i;
                const struct waiter *w = p->kind == REC_PATH_OBJECT ? waiter_of(waiters, n, p) : NULL;

                if (w && objects[w->sample] == REC_NONE)
                        objects[w->sample] = i;
        }
        *ret = TAKE_PTR(objects);
        return 0;
}

/* What the descriptor was opened as before that; "": not seen. */
static const char *opened_as(const struct recording *r, const struct rec_path *object) {
        uint32_t fd = (uint32_t) object->argument;
        const char *path = "";

        for (uint32_t i = 0; i < r->n_paths; i++) {
                const struct rec_path *p = r->paths + i;

                if (p->kind == REC_PATH_OPEN && p->process == object->process && p->result >= 0 &&
                    (uint32_t) p->result == fd && p->time_ns <= object->time_ns)
                        path = recording_text(r, p->path);
        }
        return path;
}

void wait_object_get(const struct recording *r, uint32_t path, struct wait_object *ret) {
        const struct rec_path *p = r->paths + path;
        const char *text = recording_text(r, p->path);

        *ret = (struct wait_object){
                .kind = (uint32_t) (p->argument >> REC_OBJECT_KIND_SHIFT),
                .state = (uint32_t) (p->argument >> REC_OBJECT_STATE_SHIFT) & 0xff,
                .result = p->result,
                .path = text,
        };
        if (ret->kind < REC_OBJECT_TCP && *text != '/') {
                const char *whole = opened_as(r, p);

                if (*whole)
                        ret->path = whole;
        }
}

const char *wait_object_address(const struct wait_object *o) {
        static const char *const prefixes[] = { "inet:", "inet6:", "unix:" };

        for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
                if (startswith(o->path, prefixes[i]))
                        return o->path + strlen(prefixes[i]);
        return o->path;
}
