/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "worker/code_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbolize/perf_map.h"

struct code_names {
        struct perf_map *map; /* owned */
        char *path; /* owned */
        bool named, missed; /* an address */
};

int code_names_new(int fd, const char *path, struct code_names **ret) {
        _cleanup_(code_names_freep) struct code_names *c = calloc(1, sizeof(*c));
        int r;

        if (!c)
                return -ENOMEM;
        c->path = strdup(path);
        if (!c->path)
                return -ENOMEM;
        r = perf_map_new_fd(fd, &c->map);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(c);
        return 0;
}

struct code_names *code_names_free(struct code_names *c) {
        if (!c)
                return NULL;

        perf_map_free(c->map);
        free(c->path);
        free(c);
        return NULL;
}

bool code_names_look(const struct code_names *c, uint64_t address, struct name *ret) {
        struct perf_map_symbol symbol;

        if (perf_map_find(c->map, address, &symbol) < 0)
                return false;
        *ret = (struct name){ .text = symbol.name,
                              .source = REC_SOURCE_PERF_MAP,
                              .displacement = address - symbol.start };
        return true;
}

void code_names_find(struct code_names *c, uint64_t address, struct name *ret) {
        if (code_names_look(c, address, ret)) {
                c->named = true;
                return;
        }
        c->missed = true;
        *ret = (struct name){ .reason = REC_REASON_NO_SYMBOL };
}

const char *code_names_ledger(const struct code_names *c, struct rec_symbols *ret) {
        ret->source = c->named ? REC_SOURCE_PERF_MAP : REC_SOURCE_NONE;
        ret->reason = c->missed ? REC_REASON_NO_SYMBOL : REC_REASON_NONE;
        return c->path;
}
