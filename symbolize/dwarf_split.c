/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolize/dwarf_split.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/fd.h"

enum {
        COLUMNS_MAX = 16, /* sections of a .dwp; eight are known */
        SLOTS_MAX = 1 << 24,
        WORK_MAX = 256 << 20, /* on one .dwo */
};

/* .debug_cu_index (DWARF 5, 7.3.5.3; version 2 is GNU's for DWARF 4). */
struct unit_index {
        uint32_t version, columns, units, slots;
        const uint8_t *hashes, *rows, *sections, *offsets;
};

struct dwarf_package {
        struct elf_image *image; /* owned */
        struct dwarf_file file;
        struct unit_index index;
};

static uint32_t number32(const uint8_t *at, uint64_t index) {
        uint32_t value;

        memcpy(&value, at + index * sizeof(value), sizeof(value));
        return value;
}

static int read_index(const struct debug_span *span, struct unit_index *ret) {
        struct dwarf_cursor c = dwarf_cursor_at(span, 0);
        struct unit_index index = { .version = (uint32_t) dwarf_uint(&c, 4) & 0xffff };
        uint64_t bytes;

        index.columns = (uint32_t) dwarf_uint(&c, 4);
        index.units = (uint32_t) dwarf_uint(&c, 4);
        index.slots = (uint32_t) dwarf_uint(&c, 4);
        if (c.failed || (index.version != 2 && index.version != 5) || index.columns > COLUMNS_MAX ||
            index.slots == 0 || index.slots > SLOTS_MAX || (index.slots & (index.slots - 1)) ||
            index.units > index.slots)
                return -EBADMSG;
        bytes = (uint64_t) index.slots * 12 + (uint64_t) index.columns * 4 * (1 + index.units);
        if (bytes > dwarf_left(&c))
                return -EBADMSG;

        index.hashes = c.at;
        index.rows = index.hashes + (size_t) index.slots * 8;
        index.sections = index.rows + (size_t) index.slots * 4;
        index.offsets = index.sections + (size_t) index.columns * 4;
        *ret = index;
        return 0;
}

/* The row of a unit, from 0. */
static int find_row(const struct unit_index *index, uint64_t id, uint32_t *ret) {
        uint64_t mask = index->slots - 1, slot = id & mask, stride = ((id >> 32) & mask) | 1;

        for (uint32_t i = 0; i < index->slots; i++, slot = (slot + stride) & mask) {
                uint32_t row = number32(index->rows, slot);
                uint64_t hash;

                memcpy(&hash, index->hashes + slot * sizeof(hash), sizeof(hash));
                if (row == 0 && hash == 0)
                        return -ENOENT;
                if (hash != id)
                        continue;
                if (row == 0 || row > index->units)
                        return -EBADMSG;
                *ret = row - 1;
                return 0;
        }
        return -ENOENT;
}

/* Numbers of sections that both versions share are equal but for lists of ranges, which only DWARF 5 has. */
static void find_parts(const struct unit_index *index, uint32_t row, uint64_t *ret_info,
                       struct dwarf_parts *ret) {
        *ret_info = 0;
        *ret = (struct dwarf_parts){};
        for (uint32_t i = 0; i < index->columns; i++) {
                uint32_t offset = number32(index->offsets, (uint64_t) row * index->columns + i);

                switch (number32(index->sections, i)) {
                case DW_SECT_INFO: *ret_info = offset; break;
                case DW_SECT_ABBREV: ret->abbrev = offset; break;
                case DW_SECT_LINE: ret->line = offset; break;
                case DW_SECT_STR_OFFSETS: ret->str_offsets = offset; break;
                case DW_SECT_RNGLISTS:
                        if (index->version >= 5)
                                ret->rnglists = offset;
                        break;
                default: break;
                }
        }
}

static int open_package(struct dwarf_package *p, int fd) {
        int r;

        r = elf_image_new_any(fd, &p->image);
        r = r ?: dwarf_file_init(&p->file, p->image, true);
        return r ?: read_index(&p->file.spans[DWARF_CU_INDEX], &p->index);
}

int dwarf_package_new(const struct dwarf_companions *companions, struct dwarf_package **ret) {
        for (uint32_t attempt = 0; companions->ask && attempt < DEBUG_FILE_ATTEMPTS_MAX; attempt++) {
                _cleanup_(dwarf_package_freep) struct dwarf_package *p = NULL;
                _cleanup_close_ int fd = -EBADF;
                char path[WORKER_PATH_MAX];
                int r;

                r = companions->ask(companions->userdata, WORKER_ROLE_DEBUG_BESIDE, attempt, ".dwp", &fd,
                                    path);
                if (r == -ENXIO)
                        break;
                if (r < 0)
                        continue;
                p = calloc(1, sizeof(*p));
                if (!p)
                        return -ENOMEM;
                r = open_package(p, fd);
                if (r == -ENOMEM)
                        return r;
                if (r == 0) {
                        *ret = TAKE_PTR(p);
                        return 0;
                }
        }
        return -ENOENT;
}

struct dwarf_package *dwarf_package_free(struct dwarf_package *p) {
        if (!p)
                return NULL;

        dwarf_file_done(&p->file);
        elf_image_free(p->image);
        free(p);
        return NULL;
}

/* ---- one unit ---- */

static int init_unit(struct dwarf_split *s, struct dwarf_file *file, uint64_t offset,
                     const struct dwarf_parts *parts, const struct dwarf_unit *skeleton) {
        int r;

        r = dwarf_unit_init(&s->unit, file, offset, parts, false);
        if (r < 0)
                return r;
        if (!s->unit.has_split_id || s->unit.split_id != skeleton->split_id) {
                dwarf_unit_done(&s->unit);
                return -ENOENT;
        }
        s->unit.skeleton = skeleton;
        if (!s->unit.comp_dir)
                s->unit.comp_dir = skeleton->comp_dir;
        return 0;
}

static int from_package(struct dwarf_split *s, const struct dwarf_unit *skeleton, struct dwarf_package *p) {
        struct dwarf_parts parts;
        uint64_t offset;
        uint32_t row;
        int r;

        r = find_row(&p->index, skeleton->split_id, &row);
        if (r < 0)
                return r;
        find_parts(&p->index, row, &offset, &parts);
        return init_unit(s, &p->file, offset, &parts, skeleton);
}

/* Almost always the first one: a .dwo of LTO may hold several. */
static int from_file(struct dwarf_split *s, const struct dwarf_unit *skeleton, int fd) {
        int r;

        r = elf_image_new_any(fd, &s->image);
        r = r ?: dwarf_file_init(&s->file, s->image, true);
        if (r < 0)
                return r;
        s->file.work = WORK_MAX;
        for (size_t i = 0; i < s->file.unit_count; i++) {
                r = init_unit(s, &s->file, s->file.units[i], NULL, skeleton);
                if (r == 0 || r == -ENOMEM || r == -E2BIG)
                        return r;
        }
        return -ENOENT;
}

static void clear(struct dwarf_split *s) {
        dwarf_unit_done(&s->unit);
        dwarf_file_done(&s->file);
        s->image = elf_image_free(s->image);
}

/* The name is a path on the machine that compiled it; here the file is beside the module, or nowhere. */
static int from_beside(struct dwarf_split *s, const struct dwarf_unit *skeleton,
                       const struct dwarf_companions *companions) {
        const char *slash = skeleton->split_name ? strrchr(skeleton->split_name, '/') : NULL;
        const char *name = slash ? slash + 1 : skeleton->split_name;

        if (!companions->ask || !name || !*name || strlen(name) > DEBUG_FILE_LINK_MAX || streq(name, ".") ||
            streq(name, ".."))
                return -ENOENT;

        for (uint32_t attempt = 0; attempt < DEBUG_FILE_ATTEMPTS_MAX; attempt++) {
                _cleanup_close_ int fd = -EBADF;
                char path[WORKER_PATH_MAX];
                int r;

                r = companions->ask(companions->userdata, WORKER_ROLE_DEBUG_LINK, attempt, name, &fd, path);
                if (r == -ENXIO)
                        break;
                if (r < 0)
                        continue;
                r = from_file(s, skeleton, fd);
                if (r == 0 || r == -ENOMEM)
                        return r;
                clear(s);
        }
        return -ENOENT;
}

int dwarf_split_new(const struct dwarf_unit *skeleton, struct dwarf_package *package,
                    const struct dwarf_companions *companions, struct dwarf_split **ret) {
        _cleanup_(dwarf_split_freep) struct dwarf_split *s = calloc(1, sizeof(*s));
        int r = -ENOENT;

        if (!s)
                return -ENOMEM;
        if (package)
                r = from_package(s, skeleton, package);
        if (r < 0 && r != -ENOMEM)
                r = from_beside(s, skeleton, companions);
        if (r < 0)
                return r;

        *ret = TAKE_PTR(s);
        return 0;
}

struct dwarf_split *dwarf_split_free(struct dwarf_split *s) {
        if (!s)
                return NULL;

        clear(s);
        free(s);
        return NULL;
}
