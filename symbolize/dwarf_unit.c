/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolize/dwarf_unit.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"

enum {
        ABBREVS_MAX = 1 << 18, /* of a unit; compilers write hundreds, LTO thousands */
        ATTRIBUTES_MAX = 1 << 20,
        INDIRECT_MAX = 4, /* DW_FORM_indirect that names itself */
        UNKNOWN_FORM = -2,
        VARIABLE = -1,
};

static int fixed_bytes(const struct dwarf_unit *u, uint16_t form) {
        switch (form) {
        case DW_FORM_flag_present:
        case DW_FORM_implicit_const: return 0;
        case DW_FORM_data1:
        case DW_FORM_flag:
        case DW_FORM_ref1:
        case DW_FORM_strx1:
        case DW_FORM_addrx1: return 1;
        case DW_FORM_data2:
        case DW_FORM_ref2:
        case DW_FORM_strx2:
        case DW_FORM_addrx2: return 2;
        case DW_FORM_strx3:
        case DW_FORM_addrx3: return 3;
        case DW_FORM_data4:
        case DW_FORM_ref4:
        case DW_FORM_ref_sup4:
        case DW_FORM_strx4:
        case DW_FORM_addrx4: return 4;
        case DW_FORM_data8:
        case DW_FORM_ref8:
        case DW_FORM_ref_sig8:
        case DW_FORM_ref_sup8: return 8;
        case DW_FORM_data16: return 16;
        case DW_FORM_addr: return u->address_bytes;
        case DW_FORM_ref_addr: return u->version <= 2 ? u->address_bytes : u->offset_bytes;
        case DW_FORM_strp:
        case DW_FORM_line_strp:
        case DW_FORM_sec_offset:
        case DW_FORM_strp_sup:
        case DW_FORM_GNU_ref_alt:
        case DW_FORM_GNU_strp_alt: return u->offset_bytes;
        case DW_FORM_udata:
        case DW_FORM_sdata:
        case DW_FORM_ref_udata:
        case DW_FORM_strx:
        case DW_FORM_addrx:
        case DW_FORM_loclistx:
        case DW_FORM_rnglistx:
        case DW_FORM_GNU_addr_index:
        case DW_FORM_GNU_str_index:
        case DW_FORM_string:
        case DW_FORM_block1:
        case DW_FORM_block2:
        case DW_FORM_block4:
        case DW_FORM_block:
        case DW_FORM_exprloc:
        case DW_FORM_indirect: return VARIABLE;
        default: return UNKNOWN_FORM;
        }
}

static bool read_block(struct dwarf_cursor *c, uint64_t bytes, struct dwarf_value *ret) {
        ret->number = bytes;
        dwarf_skip(c, bytes);
        return true;
}

static bool read_variable(struct dwarf_cursor *c, struct dwarf_value *ret) {
        switch (ret->form) {
        case DW_FORM_sdata: ret->number = (uint64_t) dwarf_sleb(c); return true;
        case DW_FORM_string: ret->text = dwarf_text(c); return true;
        case DW_FORM_block1: return read_block(c, dwarf_u8(c), ret);
        case DW_FORM_block2: return read_block(c, dwarf_uint(c, 2), ret);
        case DW_FORM_block4: return read_block(c, dwarf_uint(c, 4), ret);
        case DW_FORM_block:
        case DW_FORM_exprloc: return read_block(c, dwarf_uleb(c), ret);
        default: ret->number = dwarf_uleb(c); return true;
        }
}

bool dwarf_value_read(const struct dwarf_unit *u, struct dwarf_cursor *c,
                      const struct dwarf_attribute *attribute, struct dwarf_value *ret) {
        int bytes;

        *ret = (struct dwarf_value){ .form = attribute->form };
        for (unsigned i = 0; ret->form == DW_FORM_indirect; i++) {
                if (i == INDIRECT_MAX)
                        return false;
                ret->form = (uint16_t) dwarf_uleb(c);
        }
        if (ret->form == DW_FORM_implicit_const) {
                ret->number = (uint64_t) attribute->constant;
                return true;
        }

        bytes = fixed_bytes(u, ret->form);
        switch (bytes) {
        case UNKNOWN_FORM: return false;
        case VARIABLE: return read_variable(c, ret);
        case 0: ret->number = 1; return true;
        case 16: return read_block(c, 16, ret);
        default: ret->number = dwarf_uint(c, (unsigned) bytes); return true;
        }
}

bool dwarf_entry_skip(const struct dwarf_unit *u, const struct dwarf_abbrev *abbrev,
                      struct dwarf_cursor *c) {
        struct dwarf_value ignored;

        if (abbrev->bytes >= 0) {
                dwarf_skip(c, (uint64_t) abbrev->bytes);
                return true;
        }
        for (uint32_t i = 0; i < abbrev->count; i++)
                if (!dwarf_value_read(u, c, &u->abbrevs.attributes[abbrev->first + i], &ignored))
                        return false;
        return true;
}

/* ---- abbreviations ---- */

static int by_code(const void *a, const void *b) {
        uint64_t x = ((const struct dwarf_abbrev *) a)->code, y = ((const struct dwarf_abbrev *) b)->code;

        return x < y ? -1 : x > y;
}

const struct dwarf_abbrev *dwarf_abbrev_find(const struct dwarf_unit *u, uint64_t code) {
        const struct dwarf_abbrevs *a = &u->abbrevs;

        if (!a->abbrevs)
                return NULL;
        /* Compilers number them 1, 2, 3, … */
        if (code - 1 < a->count && a->abbrevs[code - 1].code == code)
                return &a->abbrevs[code - 1];
        return bsearch(&(struct dwarf_abbrev){ .code = code }, a->abbrevs, a->count, sizeof(*a->abbrevs),
                       by_code);
}

static void measure(const struct dwarf_unit *u, struct dwarf_abbrev *abbrev, uint16_t form) {
        int bytes = fixed_bytes(u, form);

        if (bytes == UNKNOWN_FORM)
                abbrev->known = false;
        if (bytes < 0 || abbrev->bytes < 0)
                abbrev->bytes = -1;
        else
                abbrev->bytes += bytes;
}

/* One abbreviation. 0: the table ends here. */
static int read_abbrev(const struct dwarf_unit *u, struct dwarf_cursor *c, struct buf *abbrevs,
                       struct buf *attributes) {
        struct dwarf_abbrev abbrev = { .code = dwarf_uleb(c), .known = true };

        if (abbrev.code == 0)
                return c->failed ? -EBADMSG : 0;
        abbrev.tag = (uint16_t) dwarf_uleb(c);
        abbrev.children = dwarf_u8(c) != 0;
        abbrev.first = (uint32_t) (attributes->size / sizeof(struct dwarf_attribute));

        for (;;) {
                struct dwarf_attribute attribute = { .name = (uint16_t) dwarf_uleb(c) };

                attribute.form = (uint16_t) dwarf_uleb(c);
                if (attribute.form == DW_FORM_implicit_const)
                        attribute.constant = dwarf_sleb(c);
                if (c->failed)
                        return -EBADMSG;
                if (attribute.name == 0 && attribute.form == 0)
                        break;
                if (attributes->size / sizeof(attribute) == ATTRIBUTES_MAX)
                        return -E2BIG;
                measure(u, &abbrev, attribute.form);
                buf_append(attributes, &attribute, sizeof(attribute));
                abbrev.count++;
        }

        buf_append(abbrevs, &abbrev, sizeof(abbrev));
        return 1;
}

/* Takes what the buffers hold. */
static int take_abbrevs(struct dwarf_unit *u, struct buf *abbrevs, struct buf *attributes) {
        char *data = NULL, *more = NULL;
        int r;

        u->abbrevs.count = abbrevs->size / sizeof(struct dwarf_abbrev);
        u->abbrevs.attribute_count = attributes->size / sizeof(struct dwarf_attribute);
        r = buf_error(attributes);
        r = r ?: buf_take(abbrevs, &data, NULL);
        if (r != 0)
                return r;
        u->abbrevs.abbrevs = (struct dwarf_abbrev *) data;
        r = buf_take(attributes, &more, NULL);
        if (r != 0)
                return r;
        u->abbrevs.attributes = (struct dwarf_attribute *) more;

        for (size_t i = 1; i < u->abbrevs.count; i++)
                if (u->abbrevs.abbrevs[i - 1].code >= u->abbrevs.abbrevs[i].code) {
                        qsort(u->abbrevs.abbrevs, u->abbrevs.count, sizeof(*u->abbrevs.abbrevs), by_code);
                        break;
                }
        return 0;
}

static uint64_t last_code(const struct buf *abbrevs) {
        size_t count = abbrevs->size / sizeof(struct dwarf_abbrev);

        return count > 0 ? ((const struct dwarf_abbrev *) abbrevs->data)[count - 1].code : 0;
}

/* until: a code after which to stop, 0: none. */
static int read_abbrevs(struct dwarf_unit *u, uint64_t until) {
        struct dwarf_cursor c =
                dwarf_cursor_at(&u->file->spans[DWARF_ABBREV], u->abbrev_offset + u->parts.abbrev);
        _cleanup_(buf_done) struct buf abbrevs = BUF_NULL, attributes = BUF_NULL;
        const uint8_t *begin = c.at;
        int r;

        do {
                if (abbrevs.size / sizeof(struct dwarf_abbrev) == ABBREVS_MAX)
                        return -E2BIG;
                r = c.failed ? -EBADMSG : read_abbrev(u, &c, &abbrevs, &attributes);
        } while (r > 0 && !(until > 0 && last_code(&abbrevs) == until));
        if (r < 0)
                return r;

        r = dwarf_file_spend(u->file, (uint64_t) (c.at - begin));
        return r < 0 ? r : take_abbrevs(u, &abbrevs, &attributes);
}

/* ---- values ---- */

static const struct dwarf_unit *addresses_of(const struct dwarf_unit *u) {
        return u->skeleton ? u->skeleton : u;
}

static const char *text_at(const struct dwarf_file *f, enum dwarf_section section, uint64_t offset) {
        struct dwarf_cursor c;

        if (!f)
                return NULL;
        c = dwarf_cursor_at(&f->spans[section], offset);
        return c.failed ? NULL : dwarf_text(&c);
}

/* base + index × bytes in a section of equal numbers. */
static bool number_at(const struct debug_span *span, uint64_t base, uint64_t index, unsigned bytes,
                      uint64_t *ret) {
        struct dwarf_cursor c;

        if (index > UINT32_MAX || base > span->bytes)
                return false;
        c = dwarf_cursor_at(span, base + index * bytes);
        *ret = dwarf_uint(&c, bytes);
        return !c.failed;
}

static const char *text_by_index(const struct dwarf_unit *u, uint64_t index) {
        uint64_t offset;

        if (!number_at(&u->file->spans[DWARF_STR_OFFSETS], u->str_offsets_base, index, u->offset_bytes,
                       &offset))
                return NULL;
        return text_at(u->file, DWARF_STR, offset);
}

const char *dwarf_value_text(const struct dwarf_unit *u, const struct dwarf_value *value) {
        switch (value->form) {
        case DW_FORM_string: return value->text;
        case DW_FORM_strp: return text_at(u->file, DWARF_STR, value->number);
        case DW_FORM_line_strp: return text_at(u->file, DWARF_LINE_STR, value->number);
        case DW_FORM_strp_sup:
        case DW_FORM_GNU_strp_alt: return text_at(u->file->alternate, DWARF_STR, value->number);
        case DW_FORM_strx:
        case DW_FORM_strx1:
        case DW_FORM_strx2:
        case DW_FORM_strx3:
        case DW_FORM_strx4:
        case DW_FORM_GNU_str_index: return text_by_index(u, value->number);
        default: return NULL;
        }
}

bool dwarf_value_is_address(const struct dwarf_value *value) {
        switch (value->form) {
        case DW_FORM_addr:
        case DW_FORM_addrx:
        case DW_FORM_addrx1:
        case DW_FORM_addrx2:
        case DW_FORM_addrx3:
        case DW_FORM_addrx4:
        case DW_FORM_GNU_addr_index: return true;
        default: return false;
        }
}

static int address_by_index(const struct dwarf_unit *u, uint64_t index, uint64_t *ret) {
        const struct dwarf_unit *at = addresses_of(u);

        return number_at(&at->file->spans[DWARF_ADDR], at->addr_base, index, at->address_bytes, ret)
                       ? 0
                       : -EBADMSG;
}

int dwarf_value_address(const struct dwarf_unit *u, const struct dwarf_value *value, uint64_t *ret) {
        if (!dwarf_value_is_address(value))
                return -EBADMSG;
        if (value->form != DW_FORM_addr)
                return address_by_index(u, value->number, ret);
        *ret = value->number;
        return 0;
}

int dwarf_value_reference(const struct dwarf_unit *u, const struct dwarf_value *value, uint64_t *ret,
                          bool *ret_alternate) {
        bool alternate = false;
        uint64_t offset = value->number;

        switch (value->form) {
        case DW_FORM_ref1:
        case DW_FORM_ref2:
        case DW_FORM_ref4:
        case DW_FORM_ref8:
        case DW_FORM_ref_udata:
                if (offset >= u->end - u->offset)
                        return -EBADMSG;
                offset += u->offset;
                break;
        case DW_FORM_ref_addr: break;
        case DW_FORM_GNU_ref_alt:
        case DW_FORM_ref_sup4:
        case DW_FORM_ref_sup8: alternate = true; break;
        default: return -EBADMSG; /* DW_FORM_ref_sig8 refers to types */
        }

        *ret = offset;
        *ret_alternate = alternate;
        return 0;
}

/* ---- ranges ---- */

struct walk {
        const struct dwarf_unit *unit;
        dwarf_range_fn fn;
        void *userdata;
        uint64_t base;
};

/* Linkers mark code that they dropped with 0, or (lld) with the largest numbers. */
static int give(const struct walk *w, uint64_t begin, uint64_t end) {
        if (begin == 0 || begin >= end || begin >= UINT64_MAX - 1)
                return 0;
        return w->fn(w->userdata, begin, end);
}

/* .debug_ranges, up to DWARF 4: pairs relative to a base. */
static int walk_ranges(struct walk *w, struct dwarf_cursor *c) {
        unsigned bytes = w->unit->address_bytes;
        uint64_t escape = bytes == 8 ? UINT64_MAX : UINT32_MAX;

        for (;;) {
                uint64_t begin = dwarf_uint(c, bytes), end = dwarf_uint(c, bytes);
                int r;

                if (c->failed)
                        return -EBADMSG;
                if (begin == 0 && end == 0)
                        return 0;
                if (begin == escape) {
                        w->base = end;
                        continue;
                }
                r = give(w, w->base + begin, w->base + end);
                if (r < 0)
                        return r;
        }
}

/* One entry of .debug_rnglists (DWARF 5, 7.25). 0: the list ends. */
static int walk_rnglist_entry(struct walk *w, struct dwarf_cursor *c) {
        unsigned bytes = w->unit->address_bytes;
        uint64_t begin = 0, end = 0;
        int r = 0;

        switch (dwarf_u8(c)) {
        case DW_RLE_end_of_list: return 0;
        case DW_RLE_base_addressx: r = address_by_index(w->unit, dwarf_uleb(c), &w->base); break;
        case DW_RLE_base_address: w->base = dwarf_uint(c, bytes); break;
        case DW_RLE_startx_endx:
                r = address_by_index(w->unit, dwarf_uleb(c), &begin);
                r = r ?: address_by_index(w->unit, dwarf_uleb(c), &end);
                break;
        case DW_RLE_startx_length:
                r = address_by_index(w->unit, dwarf_uleb(c), &begin);
                end = begin + dwarf_uleb(c);
                break;
        case DW_RLE_offset_pair:
                begin = w->base + dwarf_uleb(c);
                end = w->base + dwarf_uleb(c);
                break;
        case DW_RLE_start_end:
                begin = dwarf_uint(c, bytes);
                end = dwarf_uint(c, bytes);
                break;
        case DW_RLE_start_length:
                begin = dwarf_uint(c, bytes);
                end = begin + dwarf_uleb(c);
                break;
        default: r = -EBADMSG;
        }
        if (r == 0 && c->failed)
                r = -EBADMSG;
        r = r ?: give(w, begin, end);
        return r < 0 ? r : 1;
}

/* Where a list of .debug_rnglists begins. */
static int rnglist_offset(const struct dwarf_unit *u, const struct dwarf_value *value, uint64_t *ret) {
        uint64_t offset = value->number;

        if (value->form == DW_FORM_rnglistx) {
                if (!number_at(&u->file->spans[DWARF_RNGLISTS], u->rnglists_base, offset, u->offset_bytes,
                               &offset))
                        return -EBADMSG;
                offset += u->rnglists_base;
        } else
                offset += u->parts.rnglists;
        *ret = offset;
        return 0;
}

static int walk_list(const struct dwarf_unit *u, const struct dwarf_value *value, dwarf_range_fn fn,
                     void *userdata) {
        const struct dwarf_unit *at = addresses_of(u);
        struct walk w = { .unit = u, .fn = fn, .userdata = userdata, .base = at->low_pc };
        struct dwarf_cursor c;
        const uint8_t *begin;
        uint64_t offset;
        int r;

        if (u->version >= 5) {
                r = rnglist_offset(u, value, &offset);
                if (r < 0)
                        return r;
                c = dwarf_cursor_at(&u->file->spans[DWARF_RNGLISTS], offset);
        } else
                /* A split unit of DWARF 4 has its ranges in the file that was linked. */
                c = dwarf_cursor_at(&at->file->spans[DWARF_RANGES],
                                    value->number + (u->skeleton ? at->ranges_base : 0));
        if (c.failed)
                return -EBADMSG;

        begin = c.at;
        if (u->version < 5)
                r = walk_ranges(&w, &c);
        else
                do
                        r = walk_rnglist_entry(&w, &c);
                while (r > 0);
        /* Also for a list that is bad: many entries may point at it. */
        return dwarf_file_spend(at->file, (uint64_t) (c.at - begin)) ?: r;
}

bool dwarf_code_take(struct dwarf_code *code, uint16_t name, const struct dwarf_value *value) {
        switch (name) {
        case DW_AT_low_pc: code->low = *value; return true;
        case DW_AT_high_pc: code->high = *value; return true;
        case DW_AT_ranges: code->ranges = *value; return true;
        default: return false;
        }
}

int dwarf_code_walk(const struct dwarf_unit *u, const struct dwarf_code *code, dwarf_range_fn fn,
                    void *userdata) {
        struct walk w = { .unit = u, .fn = fn, .userdata = userdata };
        uint64_t low, high;
        int r;

        if (code->ranges.form)
                return walk_list(u, &code->ranges, fn, userdata);
        if (!code->low.form || !code->high.form)
                return 0;

        r = dwarf_value_address(u, &code->low, &low);
        if (r < 0)
                return r;
        if (dwarf_value_is_address(&code->high)) {
                r = dwarf_value_address(u, &code->high, &high);
                if (r < 0)
                        return r;
        } else
                high = low + code->high.number; /* since DWARF 4 */
        return give(&w, low, high);
}

/* ---- units ---- */

/* What stands between the fields that all have and the first entry. */
static int read_unit_type(struct dwarf_unit *u, struct dwarf_cursor *c) {
        switch (u->type) {
        case DW_UT_compile:
        case DW_UT_partial: return 0;
        case DW_UT_skeleton:
        case DW_UT_split_compile:
                u->split_id = dwarf_uint(c, 8);
                u->has_split_id = true;
                return 0;
        default: return -ENOTSUP; /* types have no code */
        }
}

int dwarf_unit_header(struct dwarf_file *f, uint64_t offset, struct dwarf_unit *ret) {
        const struct debug_span *info = &f->spans[DWARF_INFO];
        struct dwarf_cursor c = dwarf_cursor_at(info, offset);
        struct dwarf_unit u = { .file = f, .offset = offset, .type = DW_UT_compile };
        uint64_t length = dwarf_length(&c, &u.offset_bytes);
        int r;

        if (c.failed || length == 0 || length > dwarf_left(&c))
                return -EBADMSG;
        u.end = (uint64_t) (c.at - info->data) + length;
        c.end = info->data + u.end;

        u.version = (uint16_t) dwarf_uint(&c, 2);
        if (u.version < 2 || u.version > 5)
                return -ENOTSUP;
        if (u.version >= 5) {
                u.type = dwarf_u8(&c);
                u.address_bytes = dwarf_u8(&c);
                u.abbrev_offset = dwarf_uint(&c, u.offset_bytes);
        } else {
                u.abbrev_offset = dwarf_uint(&c, u.offset_bytes);
                u.address_bytes = dwarf_u8(&c);
        }
        r = read_unit_type(&u, &c);
        if (r < 0)
                return r;
        if (c.failed || (u.address_bytes != 8 && u.address_bytes != 4))
                return -EBADMSG;

        u.first = (uint64_t) (c.at - info->data);
        *ret = u;
        return 0;
}

/* Attributes that say how to read the others come wherever the compiler put them. */
static void take_base(struct dwarf_unit *u, uint16_t name, const struct dwarf_value *value) {
        switch (name) {
        case DW_AT_stmt_list:
                u->has_line = true;
                u->line_offset = value->number + u->parts.line;
                break;
        case DW_AT_str_offsets_base: u->str_offsets_base = value->number; break;
        case DW_AT_addr_base:
        case DW_AT_GNU_addr_base: u->addr_base = value->number; break;
        case DW_AT_rnglists_base: u->rnglists_base = value->number; break;
        case DW_AT_GNU_ranges_base: u->ranges_base = value->number; break;
        case DW_AT_language: u->language = (uint16_t) value->number; break;
        case DW_AT_GNU_dwo_id:
                u->split_id = value->number;
                u->has_split_id = true;
                break;
        default: break;
        }
}

static void take_rest(struct dwarf_unit *u, uint16_t name, const struct dwarf_value *value) {
        (void) dwarf_code_take(&u->code, name, value);
        switch (name) {
        case DW_AT_low_pc: (void) dwarf_value_address(u, value, &u->low_pc); break;
        case DW_AT_comp_dir: u->comp_dir = dwarf_value_text(u, value); break;
        case DW_AT_dwo_name:
        case DW_AT_GNU_dwo_name: u->split_name = dwarf_value_text(u, value); break;
        default: break;
        }
}

/* A split unit says no bases: its tables begin behind the header of their section or part (DWARF 5, 3.1.3). */
static void default_bases(struct dwarf_unit *u) {
        uint64_t header = u->offset_bytes == 8 ? 16 : 8;

        if (u->version >= 5) {
                u->str_offsets_base = u->parts.str_offsets + header;
                u->rnglists_base = u->parts.rnglists + header + 4;
                u->addr_base = header;
        } else
                u->str_offsets_base = u->parts.str_offsets;
}

static int read_root(struct dwarf_unit *u) {
        struct dwarf_cursor c = dwarf_cursor_at(&u->file->spans[DWARF_INFO], u->first);
        const struct dwarf_abbrev *abbrev;
        struct dwarf_cursor again;

        c.end = u->file->spans[DWARF_INFO].data + u->end;
        abbrev = dwarf_abbrev_find(u, dwarf_uleb(&c));
        if (!abbrev || !abbrev->known)
                return -EBADMSG;

        again = c;
        for (unsigned pass = 0; pass < 2; pass++, c = again)
                for (uint32_t i = 0; i < abbrev->count; i++) {
                        const struct dwarf_attribute *a = &u->abbrevs.attributes[abbrev->first + i];
                        struct dwarf_value value;

                        if (!dwarf_value_read(u, &c, a, &value) || c.failed)
                                return -EBADMSG;
                        (pass == 0 ? take_base : take_rest)(u, a->name, &value);
                }
        return 0;
}

int dwarf_unit_init(struct dwarf_unit *ret, struct dwarf_file *f, uint64_t offset,
                    const struct dwarf_parts *parts, bool root_only) {
        struct dwarf_cursor c;
        struct dwarf_unit u;
        int r;

        r = dwarf_unit_header(f, offset, &u);
        if (r < 0)
                return r;
        if (parts)
                u.parts = *parts;
        default_bases(&u);

        c = dwarf_cursor_at(&f->spans[DWARF_INFO], u.first);
        r = read_abbrevs(&u, root_only ? dwarf_uleb(&c) : 0);
        r = r ?: read_root(&u);
        if (r < 0) {
                dwarf_unit_done(&u);
                return r;
        }
        *ret = u;
        return 0;
}

void dwarf_unit_done(struct dwarf_unit *u) {
        free(u->abbrevs.abbrevs);
        free(u->abbrevs.attributes);
        u->abbrevs = (struct dwarf_abbrevs){};
}

/* ---- files ---- */

static const char *const section_names[] = {
        [DWARF_INFO] = ".debug_info",
        [DWARF_ABBREV] = ".debug_abbrev",
        [DWARF_STR] = ".debug_str",
        [DWARF_LINE_STR] = ".debug_line_str",
        [DWARF_STR_OFFSETS] = ".debug_str_offsets",
        [DWARF_ADDR] = ".debug_addr",
        [DWARF_RANGES] = ".debug_ranges",
        [DWARF_RNGLISTS] = ".debug_rnglists",
        [DWARF_LINE] = ".debug_line",
        [DWARF_ARANGES] = ".debug_aranges",
        [DWARF_CU_INDEX] = ".debug_cu_index",
};

static const char *const split_names[] = {
        [DWARF_INFO] = ".debug_info.dwo",
        [DWARF_ABBREV] = ".debug_abbrev.dwo",
        [DWARF_STR] = ".debug_str.dwo",
        [DWARF_LINE_STR] = ".debug_line_str",
        [DWARF_STR_OFFSETS] = ".debug_str_offsets.dwo",
        [DWARF_ADDR] = ".debug_addr",
        [DWARF_RANGES] = ".debug_ranges",
        [DWARF_RNGLISTS] = ".debug_rnglists.dwo",
        [DWARF_LINE] = ".debug_line.dwo",
        [DWARF_ARANGES] = ".debug_aranges",
        [DWARF_CU_INDEX] = ".debug_cu_index",
};
_Static_assert(ARRAY_SIZE(section_names) == DWARF_SECTION_MAX, "all have names");
_Static_assert(ARRAY_SIZE(split_names) == DWARF_SECTION_MAX, "all have names");

/* Without entries or their abbreviations there is nothing; any other section may be missing. */
static int load_sections(struct dwarf_file *f) {
        for (unsigned i = 0; i < DWARF_SECTION_MAX; i++) {
                int r = debug_sections_get(f->sections, f->split ? split_names[i] : section_names[i],
                                           &f->spans[i]);

                if (r == -ENOMEM || (r < 0 && i <= DWARF_ABBREV))
                        return r;
        }
        return 0;
}

/* Headers lie all over the file: what was read of it is given back on the way. */
static int list_units(struct dwarf_file *f) {
        _cleanup_(buf_done) struct buf units = BUF_NULL;
        uint64_t offset = 0, forgotten = 0;
        char *data;
        int r;

        while (offset < f->spans[DWARF_INFO].bytes && f->unit_count < DWARF_UNITS_MAX) {
                struct dwarf_cursor c = dwarf_cursor_at(&f->spans[DWARF_INFO], offset);
                uint8_t offset_bytes;
                uint64_t length = dwarf_length(&c, &offset_bytes);

                if (c.failed || length > dwarf_left(&c))
                        break; /* those before it are good */
                if (length > 0) {
                        buf_append(&units, &offset, sizeof(offset));
                        f->unit_count++;
                }
                offset = (uint64_t) (c.at - f->spans[DWARF_INFO].data) + length;
                if (offset - forgotten > DWARF_RESIDENT_BYTES) {
                        elf_image_forget(f->image);
                        forgotten = offset;
                }
        }

        r = buf_take(&units, &data, NULL);
        if (r < 0)
                return r;
        f->units = (uint64_t *) data;
        return f->unit_count > 0 ? 0 : -ENODATA;
}

int dwarf_file_init(struct dwarf_file *f, const struct elf_image *image, bool split) {
        int r;

        *f = (struct dwarf_file){ .image = image, .split = split, .work = DWARF_WORK_MAX };
        r = debug_sections_new(image, &f->sections);
        r = r ?: load_sections(f);
        r = r ?: list_units(f);
        if (r < 0)
                dwarf_file_done(f);
        return r;
}

void dwarf_file_done(struct dwarf_file *f) {
        debug_sections_free(f->sections);
        free(f->units);
        *f = (struct dwarf_file){};
}

int dwarf_file_spend(struct dwarf_file *f, uint64_t bytes) {
        if (bytes > f->work) {
                f->work = 0;
                return -E2BIG;
        }
        f->work -= bytes;
        f->touched += bytes;
        return 0;
}
