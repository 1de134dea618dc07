/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolize/dwarf_scope.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>

#include "common/buf.h"
#include "symbolize/range_map.h"

struct dwarf_scopes {
        struct buf scopes; /* of struct dwarf_scope */
        struct range_map map;
};

/* One scan. */
struct scan {
        const struct dwarf_unit *unit;
        struct dwarf_scopes *scopes;
        bool types_without_code;
        uint32_t open[DWARF_DEPTH_MAX]; /* per level of entries: the scope they are in */
        unsigned level;
        uint32_t depth; /* of scopes, for the ranges that are being added */
        uint32_t adding;
        int error; /* of adding a range: it must not look like a list that is bad */
};

static uint32_t scope_count(const struct dwarf_scopes *s) {
        return (uint32_t) (s->scopes.size / sizeof(struct dwarf_scope));
}

const struct dwarf_scope *dwarf_scopes_get(const struct dwarf_scopes *s, uint32_t index) {
        return &((const struct dwarf_scope *) s->scopes.data)[index];
}

/* Compilers of these put the code of methods outside the type that declares them. */
static bool language_is_c(uint16_t language) {
        switch (language) {
        case DW_LANG_C89:
        case DW_LANG_C:
        case DW_LANG_C99:
        case DW_LANG_C11:
        case DW_LANG_C_plus_plus:
        case DW_LANG_C_plus_plus_03:
        case DW_LANG_C_plus_plus_11:
        case DW_LANG_C_plus_plus_14: return true;
        default: return false;
        }
}

/* Is there no code below an entry of that kind? */
static bool without_code(const struct scan *s, uint16_t tag) {
        switch (tag) {
        case DW_TAG_enumeration_type:
        case DW_TAG_array_type:
        case DW_TAG_subroutine_type: return true;
        case DW_TAG_structure_type:
        case DW_TAG_class_type:
        case DW_TAG_union_type: return s->types_without_code;
        default: return false;
        }
}

static int add_range(void *userdata, uint64_t begin, uint64_t end) {
        struct scan *s = userdata;

        s->error = range_map_add(&s->scopes->map, begin, end, s->depth, s->adding);
        return s->error;
}

/* A scope for an entry that is code; without ranges it is only the declaration or the abstract form of one. */
static int add_scope(struct scan *s, uint64_t entry, bool inlined, const struct dwarf_code *code,
                     uint32_t *ret) {
        uint32_t parent = s->open[s->level];
        struct dwarf_scope scope = {
                .entry = entry,
                .parent = inlined ? parent : DWARF_SCOPE_NONE,
                .inlined = inlined && parent != DWARF_SCOPE_NONE,
        };

        *ret = parent;
        if (!code->ranges.form && !(code->low.form && code->high.form))
                return 0;
        if (scope_count(s->scopes) == DWARF_SCOPES_MAX)
                return -E2BIG;

        s->adding = scope_count(s->scopes);
        s->depth = s->level;
        buf_append(&s->scopes->scopes, &scope, sizeof(scope));
        if (buf_error(&s->scopes->scopes) < 0)
                return buf_error(&s->scopes->scopes);
        *ret = s->adding;
        (void) dwarf_code_walk(s->unit, code, add_range, s); /* a bad list is an empty one */
        return s->error;
}

/* Reads the attributes of a function. */
static int read_function(struct scan *s, const struct dwarf_abbrev *abbrev, struct dwarf_cursor *c,
                         uint64_t entry, uint32_t *ret) {
        struct dwarf_code code = {};

        for (uint32_t i = 0; i < abbrev->count; i++) {
                const struct dwarf_attribute *a = &s->unit->abbrevs.attributes[abbrev->first + i];
                struct dwarf_value value;

                if (!dwarf_value_read(s->unit, c, a, &value))
                        return -ENOTSUP;
                (void) dwarf_code_take(&code, a->name, &value);
        }
        return add_scope(s, entry, abbrev->tag == DW_TAG_inlined_subroutine, &code, ret);
}

/* Steps over an entry, and over all below it where the compiler says how far that goes. Sets *ret_inside
 * when the next entry is a child. */
static int skip_entry(const struct scan *s, const struct dwarf_abbrev *abbrev, struct dwarf_cursor *c,
                      bool *ret_inside) {
        const uint8_t *info = s->unit->file->spans[DWARF_INFO].data;
        bool may_jump = abbrev->children && without_code(s, abbrev->tag), alternate;
        uint64_t target = 0;

        *ret_inside = abbrev->children;
        if (!may_jump)
                return dwarf_entry_skip(s->unit, abbrev, c) ? 0 : -ENOTSUP;

        for (uint32_t i = 0; i < abbrev->count; i++) {
                const struct dwarf_attribute *a = &s->unit->abbrevs.attributes[abbrev->first + i];
                struct dwarf_value value;

                if (!dwarf_value_read(s->unit, c, a, &value))
                        return -ENOTSUP;
                if (a->name == DW_AT_sibling &&
                    (dwarf_value_reference(s->unit, &value, &target, &alternate) < 0 || alternate))
                        target = 0;
        }
        /* Only ever forwards: a file could send us in a circle. */
        if (!c->failed && target > (uint64_t) (c->at - info) && target <= s->unit->end) {
                c->at = info + target;
                *ret_inside = false;
        }
        return 0;
}

/* One entry. */
static int step(struct scan *s, struct dwarf_cursor *c) {
        uint64_t entry = (uint64_t) (c->at - s->unit->file->spans[DWARF_INFO].data);
        uint64_t code = dwarf_uleb(c);
        const struct dwarf_abbrev *abbrev;
        uint32_t scope = s->open[s->level];
        bool inside;
        int r;

        if (code == 0) {
                if (s->level > 0)
                        s->level--;
                return 0;
        }
        abbrev = dwarf_abbrev_find(s->unit, code);
        if (!abbrev)
                return -EBADMSG;
        if (!abbrev->known)
                return -ENOTSUP;

        if (abbrev->tag == DW_TAG_subprogram || abbrev->tag == DW_TAG_inlined_subroutine) {
                inside = abbrev->children;
                r = read_function(s, abbrev, c, entry, &scope);
        } else
                r = skip_entry(s, abbrev, c, &inside);
        if (r < 0)
                return r;
        if (c->failed)
                return -EBADMSG;

        if (inside) {
                if (++s->level == DWARF_DEPTH_MAX)
                        return -E2BIG;
                s->open[s->level] = scope;
        }
        return 0;
}

static int scan_unit(const struct dwarf_unit *u, struct dwarf_scopes *scopes) {
        struct dwarf_cursor c = dwarf_cursor_at(&u->file->spans[DWARF_INFO], u->first);
        _cleanup_free_ struct scan *s = calloc(1, sizeof(*s));
        int r;

        if (!s)
                return -ENOMEM;
        *s = (struct scan){
                .unit = u,
                .scopes = scopes,
                .types_without_code = language_is_c(u->language),
                .open = { DWARF_SCOPE_NONE },
        };
        r = dwarf_file_spend(u->file, u->end - u->first);
        if (r < 0)
                return r;

        c.end = u->file->spans[DWARF_INFO].data + u->end;
        while (dwarf_left(&c) > 0) {
                r = step(s, &c);
                if (r < 0)
                        return r;
        }
        return 0;
}

int dwarf_scopes_new(const struct dwarf_unit *u, struct dwarf_scopes **ret) {
        _cleanup_(dwarf_scopes_freep) struct dwarf_scopes *s = calloc(1, sizeof(*s));
        int r;

        if (!s)
                return -ENOMEM;
        r = scan_unit(u, s);
        r = r ?: range_map_seal(&s->map);
        if (r < 0)
                return r;

        *ret = TAKE_PTR(s);
        return 0;
}

struct dwarf_scopes *dwarf_scopes_free(struct dwarf_scopes *s) {
        if (!s)
                return NULL;

        buf_done(&s->scopes);
        range_map_done(&s->map);
        free(s);
        return NULL;
}

int dwarf_scopes_find(const struct dwarf_scopes *s, uint64_t address, uint32_t *ret) {
        return range_map_find(&s->map, address, ret);
}

size_t dwarf_scopes_bytes(const struct dwarf_scopes *s) {
        return sizeof(*s) + s->scopes.allocated + range_map_bytes(&s->map);
}
