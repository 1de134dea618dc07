/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolize/dwarf_index.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/fd.h"
#include "symbolize/dwarf_line.h"
#include "symbolize/dwarf_scope.h"
#include "symbolize/dwarf_split.h"
#include "symbolize/range_map.h"

enum {
        HOPS_MAX = 16, /* from an inlined function to its name; compilers make up to three */
        PATH_BYTES_MAX = WORKER_PATH_MAX,
        TEXT_TOUCHES = 64 << 10, /* what the kernel maps at once around a text */
};

/* A unit that was hit, or one that another unit refers to, of which only the entries are read. */
struct part {
        struct dwarf_unit unit;
        bool scanned;

        /* owned; NULL: there are none */
        struct dwarf_split *split;
        struct dwarf_scopes *scopes;
        struct dwarf_lines *lines, *split_lines;

        size_t bytes;
        uint64_t used; /* the tick at which it was last asked for */
};

/* A file and its units. */
struct source {
        struct dwarf_file file;
        struct part **parts; /* owned; one per unit, NULL until it is hit */
        uint8_t *broken; /* per unit: it is not tried again */
};

struct dwarf_index {
        const struct elf_image *image; /* borrowed */
        struct source main, alternate;
        struct range_map units; /* address → number of the unit in main */
        uint64_t tick;
        size_t cached_bytes;

        /* owned; looked for when first needed */
        struct elf_image *alternate_image;
        struct dwarf_package *package;
        bool alternate_tried, package_tried;

        struct buf text; /* of the last answer */
};

/* ---- parts ---- */

static struct part *part_free(struct part *p) {
        if (!p)
                return NULL;

        dwarf_lines_free(p->split_lines);
        dwarf_split_free(p->split);
        dwarf_lines_free(p->lines);
        dwarf_scopes_free(p->scopes);
        dwarf_unit_done(&p->unit);
        free(p);
        return NULL;
}
DEFINE_CLEANUP(struct part *, part_free);

static int source_init(struct source *s, const struct elf_image *image) {
        int r;

        r = dwarf_file_init(&s->file, image, false);
        if (r < 0)
                return r;
        s->parts = calloc(s->file.unit_count, sizeof(struct part *));
        s->broken = calloc(s->file.unit_count, 1);
        return s->parts && s->broken ? 0 : -ENOMEM;
}

static void source_done(struct source *s) {
        for (size_t i = 0; s->parts && i < s->file.unit_count; i++)
                part_free(s->parts[i]);
        free(s->parts);
        free(s->broken);
        dwarf_file_done(&s->file);
        *s = (struct source){};
}

static int unit_number(const struct dwarf_file *f, uint64_t offset, uint32_t *ret) {
        size_t low = 0, high = f->unit_count;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (f->units[middle] <= offset)
                        low = middle + 1;
                else
                        high = middle;
        }
        if (low == 0)
                return -ENOENT;
        *ret = (uint32_t) (low - 1);
        return 0;
}

static size_t unit_bytes(const struct dwarf_unit *u) {
        return u->abbrevs.count * sizeof(*u->abbrevs.abbrevs) +
               u->abbrevs.attribute_count * sizeof(*u->abbrevs.attributes);
}

/* Entries only. -ENOENT: it cannot be read. */
static int get_part(struct dwarf_index *index, struct source *s, uint32_t number, struct part **ret) {
        _cleanup_(part_freep) struct part *p = NULL;
        int r;

        if (s->broken[number])
                return -ENOENT;
        if (!s->parts[number]) {
                p = calloc(1, sizeof(*p));
                if (!p)
                        return -ENOMEM;
                r = dwarf_unit_init(&p->unit, &s->file, s->file.units[number], NULL, false);
                if (r < 0) {
                        s->broken[number] = r != -ENOMEM;
                        return r == -ENOMEM ? r : -ENOENT;
                }
                p->bytes = sizeof(*p) + unit_bytes(&p->unit);
                index->cached_bytes += p->bytes;
                s->parts[number] = TAKE_PTR(p);
        }

        s->parts[number]->used = index->tick;
        *ret = s->parts[number];
        return 0;
}

/* What could not be read is missing; only memory is worth a failure. */
static int optional(int r) {
        return r == -ENOMEM ? r : 0;
}

static int find_split(struct dwarf_index *index, struct part *p, const struct dwarf_companions *companions) {
        int r;

        if (!p->unit.has_split_id || !p->unit.split_name)
                return 0;
        if (!index->package_tried) {
                index->package_tried = true;
                r = optional(dwarf_package_new(companions, &index->package));
                if (r < 0)
                        return r;
        }
        return optional(dwarf_split_new(&p->unit, index->package, companions, &p->split));
}

static const struct dwarf_unit *code_of(const struct part *p) {
        return p->split ? &p->split->unit : &p->unit;
}

/* Lines and scopes of a unit that an address was found in. */
static int scan_part(struct dwarf_index *index, struct part *p, const struct dwarf_companions *companions) {
        size_t bytes = 0;
        int r;

        if (p->scanned)
                return 0;
        p->scanned = true;
        r = find_split(index, p, companions);
        r = r ?: optional(dwarf_lines_new(&p->unit, &p->lines));
        r = r ?: optional(dwarf_scopes_new(code_of(p), &p->scopes));
        if (r == 0 && p->split)
                r = optional(dwarf_lines_new(&p->split->unit, &p->split_lines));
        if (r < 0)
                return r;

        bytes += p->lines ? dwarf_lines_bytes(p->lines) : 0;
        bytes += p->split_lines ? dwarf_lines_bytes(p->split_lines) : 0;
        bytes += p->scopes ? dwarf_scopes_bytes(p->scopes) : 0;
        bytes += p->split ? sizeof(*p->split) + unit_bytes(&p->split->unit) : 0;
        p->bytes += bytes;
        index->cached_bytes += bytes;
        return 0;
}

static void drop_oldest(struct dwarf_index *index, struct source *s) {
        uint64_t oldest = UINT64_MAX;
        size_t found = 0;

        for (size_t i = 0; i < s->file.unit_count; i++)
                if (s->parts[i] && s->parts[i]->used < oldest) {
                        oldest = s->parts[i]->used;
                        found = i;
                }
        if (oldest == UINT64_MAX)
                return;
        index->cached_bytes -= s->parts[found]->bytes;
        s->parts[found] = part_free(s->parts[found]);
}

/* Between two answers: what was kept too long goes, and pages of the files that were read. */
static void trim(struct dwarf_index *index) {
        while (index->cached_bytes > DWARF_CACHE_BYTES) {
                size_t before = index->cached_bytes;

                drop_oldest(index, &index->main);
                if (index->alternate.parts)
                        drop_oldest(index, &index->alternate);
                if (index->cached_bytes == before)
                        break;
        }
        if (index->main.file.touched > DWARF_RESIDENT_BYTES) {
                elf_image_forget(index->image);
                index->main.file.touched = 0;
        }
}

/* ---- which unit an address is of ---- */

struct adding {
        struct dwarf_index *index;
        uint32_t number;
};

static int add_unit_range(void *userdata, uint64_t begin, uint64_t end) {
        const struct adding *a = userdata;

        return range_map_add(&a->index->units, begin, end, 0, a->number);
}

/* The pairs of one set of .debug_aranges. Returns 1 if there was one that is code. */
static int read_pairs(struct adding *a, struct dwarf_cursor *c, unsigned bytes) {
        int found = 0;

        while (dwarf_left(c) >= 2 * bytes) {
                uint64_t begin = dwarf_uint(c, bytes), size = dwarf_uint(c, bytes);

                if (begin == 0 && size == 0)
                        break;
                if (begin == 0 || size == 0 || begin + size < begin)
                        continue; /* dropped by the linker */
                int r = add_unit_range(a, begin, begin + size);

                if (r < 0)
                        return r;
                found = 1;
        }
        return found;
}

/* One set. covered: per unit. */
static int read_set(struct dwarf_index *index, struct dwarf_cursor *all, uint8_t *covered) {
        const struct dwarf_file *f = &index->main.file;
        struct adding a = { .index = index };
        const uint8_t *begin = all->at;
        struct dwarf_cursor c;
        uint8_t offset_bytes, address_bytes;
        uint64_t length = dwarf_length(all, &offset_bytes), offset, header;
        uint16_t version;
        int r;

        if (all->failed || length > dwarf_left(all))
                return -EBADMSG;
        c = (struct dwarf_cursor){ .at = all->at, .end = all->at + length };
        all->at += length;

        version = (uint16_t) dwarf_uint(&c, 2);
        offset = dwarf_uint(&c, offset_bytes);
        address_bytes = dwarf_u8(&c);
        dwarf_u8(&c); /* segments */
        if (c.failed || version != 2 || (address_bytes != 8 && address_bytes != 4) ||
            unit_number(f, offset, &a.number) < 0 || f->units[a.number] != offset)
                return 0;
        /* Pairs are aligned to their size, counted from the beginning of the set. */
        header = (uint64_t) (c.at - begin) % (2u * address_bytes);
        if (header > 0)
                dwarf_skip(&c, 2u * address_bytes - header);

        r = read_pairs(&a, &c, address_bytes);
        if (r > 0)
                covered[a.number] = 1;
        return MIN(r, 0);
}

static int read_aranges(struct dwarf_index *index, uint8_t *covered) {
        const struct debug_span *span = &index->main.file.spans[DWARF_ARANGES];
        struct dwarf_cursor c = dwarf_cursor_at(span, 0);
        int r;

        if (!span->data)
                return 0;
        r = dwarf_file_spend(&index->main.file, span->bytes);
        while (r == 0 && dwarf_left(&c) > 0)
                r = read_set(index, &c, covered);
        return r == -EBADMSG ? 0 : r; /* the sets before it are good */
}

/* The root entry says which code a unit is. */
static int read_root_ranges(struct dwarf_index *index, uint32_t number) {
        struct adding a = { .index = index, .number = number };
        struct dwarf_file *f = &index->main.file;
        struct dwarf_unit u;
        int r;

        r = dwarf_unit_init(&u, f, f->units[number], NULL, true);
        if (r == -ENOMEM || r == -E2BIG)
                return r;
        if (r < 0) {
                index->main.broken[number] = 1;
                return 0;
        }
        r = dwarf_code_walk(&u, &u.code, add_unit_range, &a);
        dwarf_unit_done(&u);
        if (f->touched > DWARF_RESIDENT_BYTES)
                trim(index);
        return r == -EBADMSG ? 0 : r;
}

static int map_units(struct dwarf_index *index) {
        _cleanup_free_ uint8_t *covered = calloc(index->main.file.unit_count, 1);
        int r;

        if (!covered)
                return -ENOMEM;
        r = read_aranges(index, covered);
        for (size_t i = 0; r == 0 && i < index->main.file.unit_count; i++)
                if (!covered[i])
                        r = read_root_ranges(index, (uint32_t) i);
        r = r ?: range_map_seal(&index->units);
        if (r < 0)
                return r;
        return index->units.pieces.size > 0 ? 0 : -ENODATA;
}

int dwarf_index_new(const struct elf_image *image, struct dwarf_index **ret) {
        _cleanup_(dwarf_index_freep) struct dwarf_index *index = calloc(1, sizeof(*index));
        int r;

        if (!index)
                return -ENOMEM;
        index->image = image;
        r = source_init(&index->main, image);
        r = r ?: map_units(index);
        if (r < 0)
                return r;

        *ret = TAKE_PTR(index);
        return 0;
}

struct dwarf_index *dwarf_index_free(struct dwarf_index *index) {
        if (!index)
                return NULL;

        source_done(&index->main);
        source_done(&index->alternate);
        elf_image_free(index->alternate_image);
        dwarf_package_free(index->package);
        range_map_done(&index->units);
        buf_done(&index->text);
        free(index);
        return NULL;
}

/* ---- the alternate file ---- */

/* .gnu_debugaltlink: a path and the build-id of the file (dwz(1), -m). */
static int alternate_link(struct source *main, const struct elf_image *image, const char **ret_name,
                          struct build_id *ret_id) {
        struct debug_span span = {};
        struct dwarf_cursor c;
        const char *path, *slash;
        int r;

        r = debug_sections_get(main->file.sections, ".gnu_debugaltlink", &span);
        if (r < 0)
                return r;
        c = dwarf_cursor_at(&span, 0);
        path = dwarf_text(&c);
        if (!path || dwarf_left(&c) == 0 || dwarf_left(&c) > BUILD_ID_MAX)
                return -EBADMSG;

        *ret_id = (struct build_id){ .size = (uint8_t) dwarf_left(&c) };
        memcpy(ret_id->bytes, c.at, dwarf_left(&c));
        slash = strrchr(path, '/');
        *ret_name = slash ? slash + 1 : path;
        if (!**ret_name || strlen(*ret_name) > DEBUG_FILE_LINK_MAX || streq(*ret_name, ".") ||
            streq(*ret_name, ".."))
                return -EBADMSG;
        return 0;
}

static int open_alternate(struct dwarf_index *index, int fd, const struct build_id *id) {
        _cleanup_(elf_image_freep) struct elf_image *image = NULL;
        struct build_id found = BUILD_ID_NULL;
        int r;

        r = elf_image_new_any(fd, &image);
        if (r < 0)
                return r;
        (void) elf_image_build_id(image, &found);
        if (!build_id_equal(&found, id))
                return -ESTALE;
        r = source_init(&index->alternate, image);
        if (r < 0) {
                source_done(&index->alternate);
                return r;
        }
        index->alternate_image = TAKE_PTR(image);
        index->main.file.alternate = &index->alternate.file;
        return 0;
}

static int find_alternate(struct dwarf_index *index, const struct dwarf_companions *companions) {
        static const enum worker_role roles[] = { WORKER_ROLE_DEBUG_LINK, WORKER_ROLE_DWZ };
        struct build_id id = BUILD_ID_NULL;
        const char *name;

        index->alternate_tried = true;
        if (!companions->ask || alternate_link(&index->main, index->image, &name, &id) < 0)
                return 0;

        for (size_t i = 0; i < ARRAY_SIZE(roles); i++)
                for (uint32_t attempt = 0; attempt < DEBUG_FILE_ATTEMPTS_MAX; attempt++) {
                        _cleanup_close_ int fd = -EBADF;
                        char path[WORKER_PATH_MAX];
                        int r;

                        r = companions->ask(companions->userdata, roles[i], attempt, name, &fd, path);
                        if (r == -ENXIO)
                                break;
                        if (r == 0)
                                r = open_alternate(index, fd, &id);
                        if (r == 0 || r == -ENOMEM)
                                return r;
                }
        return 0;
}

/* ---- names ---- */

/* What an entry says of the function it is. */
struct function {
        const char *linkage, *name;
        struct dwarf_value origin; /* form 0: none */
        uint64_t call_file;
        uint32_t call_line;
};

struct place { /* of an entry */
        const struct dwarf_unit *unit;
        uint64_t entry;
};

static void take_attribute(const struct dwarf_unit *u, uint16_t name, const struct dwarf_value *value,
                           struct function *f) {
        switch (name) {
        case DW_AT_linkage_name:
        case DW_AT_MIPS_linkage_name: f->linkage = dwarf_value_text(u, value); break;
        case DW_AT_name: f->name = dwarf_value_text(u, value); break;
        case DW_AT_abstract_origin:
        case DW_AT_specification: f->origin = *value; break;
        case DW_AT_call_file: f->call_file = value->number; break;
        case DW_AT_call_line: f->call_line = (uint32_t) MIN(value->number, (uint64_t) UINT32_MAX); break;
        default: break;
        }
}

static int read_entry(const struct place *at, struct function *ret) {
        const struct dwarf_unit *u = at->unit;
        struct dwarf_cursor c = dwarf_cursor_at(&u->file->spans[DWARF_INFO], at->entry);
        const struct dwarf_abbrev *abbrev;
        const uint8_t *begin = c.at;

        if (c.failed || at->entry < u->first || at->entry >= u->end)
                return -EBADMSG;
        c.end = u->file->spans[DWARF_INFO].data + u->end;
        abbrev = dwarf_abbrev_find(u, dwarf_uleb(&c));
        if (!abbrev || !abbrev->known)
                return -EBADMSG;

        *ret = (struct function){};
        for (uint32_t i = 0; i < abbrev->count; i++) {
                const struct dwarf_attribute *a = &u->abbrevs.attributes[abbrev->first + i];
                struct dwarf_value value;

                if (!dwarf_value_read(u, &c, a, &value) || c.failed)
                        return -EBADMSG;
                take_attribute(u, a->name, &value, ret);
        }
        u->file->touched += TEXT_TOUCHES;
        return dwarf_file_spend(u->file, (uint64_t) (c.at - begin) + abbrev->count);
}

/* The unit that holds what `value`, an attribute of an entry of at->unit, refers to. */
static int follow(struct dwarf_index *index, struct place *at, const struct dwarf_value *value) {
        const struct dwarf_unit *u = at->unit;
        struct source *source = &index->main;
        struct part *part = NULL;
        uint64_t entry;
        uint32_t number;
        bool alternate;
        int r;

        r = dwarf_value_reference(u, value, &entry, &alternate);
        if (r < 0)
                return r;
        if (!alternate && entry >= u->offset && entry < u->end) {
                at->entry = entry;
                return 0;
        }
        if (alternate || u->file == &index->alternate.file)
                source = &index->alternate;
        else if (u->file != &index->main.file)
                return -ENOENT; /* from one .dwo into another */

        r = source->parts ? unit_number(&source->file, entry, &number) : -ENOENT;
        if (r == 0)
                r = get_part(index, source, number, &part);
        if (r != 0)
                return r;
        *at = (struct place){ .unit = &part->unit, .entry = entry };
        return 0;
}

/* A linkage name is the whole name; it may be further along the way than a plain one. Ways may be circles. */
static int name_function(struct dwarf_index *index, struct place at, struct function *first) {
        const char *name = NULL;
        struct function f;
        int r;

        r = read_entry(&at, first);
        if (r < 0)
                return r;
        f = *first;
        for (unsigned hop = 0; hop < HOPS_MAX; hop++) {
                name = name ?: f.name;
                if (f.linkage || !f.origin.form)
                        break;
                r = follow(index, &at, &f.origin);
                r = r ?: read_entry(&at, &f);
                if (r == -ENOMEM)
                        return r;
                if (r < 0)
                        break;
        }
        first->linkage = f.linkage;
        first->name = name;
        return 0;
}

/* ---- frames ---- */

/* Paths are offsets into index->text until all are there; 0: none. */
struct answer {
        struct dwarf_index *index;
        const struct part *part;
        struct dwarf_frame *frames;
        size_t paths[DWARF_FRAMES_MAX];
        size_t count, max;
};

static size_t add_path(struct answer *a, const struct dwarf_lines *lines, uint64_t file) {
        size_t begin = a->index->text.size;

        if (!lines)
                return 0;
        dwarf_lines_path(lines, file, &a->index->text);
        if (a->index->text.size == begin || a->index->text.size - begin > PATH_BYTES_MAX) {
                a->index->text.size = MIN(begin, a->index->text.size);
                return 0;
        }
        buf_putc(&a->index->text, 0);
        return begin;
}

/* The chain of what was inlined, from `scope` outwards. file, line: of the address. */
static int add_frames(struct answer *a, uint32_t scope, size_t path, uint32_t line) {
        const struct dwarf_lines *files = a->part->split_lines ?: a->part->lines;

        while (a->count < a->max) {
                const struct dwarf_scope *s = dwarf_scopes_get(a->part->scopes, scope);
                struct function f = {};
                int r;

                r = name_function(a->index, (struct place){ .unit = code_of(a->part), .entry = s->entry },
                                  &f);
                if (r == -ENOMEM)
                        return r;
                a->paths[a->count] = path;
                a->frames[a->count++] = (struct dwarf_frame){
                        .function = f.linkage ?: f.name,
                        .line = line,
                        .inlined = s->inlined,
                };
                if (!s->inlined)
                        break;
                scope = s->parent;
                path = f.call_file > 0 || f.call_line > 0 ? add_path(a, files, f.call_file) : 0;
                line = f.call_line;
        }
        return 0;
}

static int answer(struct answer *a, uint64_t address) {
        uint32_t scope, line = 0;
        uint64_t file = 0;
        size_t path = 0;
        bool has_line, has_scope;
        int r = 0;

        has_line = a->part->lines && dwarf_lines_find(a->part->lines, address, &file, &line) == 0;
        has_scope = a->part->scopes && dwarf_scopes_find(a->part->scopes, address, &scope) == 0;
        if (!has_line && !has_scope)
                return -ENOENT;

        if (has_line)
                path = add_path(a, a->part->lines, file);
        if (has_scope)
                r = add_frames(a, scope, path, line);
        else {
                a->paths[0] = path;
                a->frames[a->count++] = (struct dwarf_frame){ .line = line };
        }
        return r ?: buf_error(&a->index->text);
}

int dwarf_index_resolve(struct dwarf_index *index, uint64_t address,
                        const struct dwarf_companions *companions, struct dwarf_frame *frames, size_t max,
                        size_t *ret_count) {
        struct answer a = { .index = index, .frames = frames };
        struct part *part = NULL;
        uint32_t number = 0;
        int r;

        a.max = MIN(max, (size_t) DWARF_FRAMES_MAX);
        index->tick++;
        trim(index);
        buf_reset(&index->text);
        buf_putc(&index->text, 0); /* so that no path is at 0 */

        r = a.max > 0 ? range_map_find(&index->units, address, &number) : -ENOENT;
        if (r == 0 && !index->alternate_tried)
                r = find_alternate(index, companions); /* also the root entries of units use its texts */
        if (r == 0)
                r = get_part(index, &index->main, number, &part);
        if (r == 0)
                r = scan_part(index, part, companions);
        if (r != 0)
                return r;
        a.part = part;
        r = answer(&a, address);
        if (r < 0)
                return r;

        for (size_t i = 0; i < a.count; i++)
                frames[i].file = a.paths[i] > 0 ? index->text.data + a.paths[i] : NULL;
        *ret_count = a.count;
        return 0;
}
