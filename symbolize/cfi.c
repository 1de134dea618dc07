/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolize/cfi.h"

#include <dwarf.h>
#include <elf.h>
#include <errno.h>
#include <string.h>

#include "common/macro.h"

/* Reads forward over bytes that may end anywhere: a read past the end gives 0 and sets `bad`, for good. */
struct cursor {
        const struct cfi_section *section;
        size_t at, end; /* offsets in the section, end ≤ its size */
        bool bad;
};

static const uint8_t *take(struct cursor *c, uint64_t bytes) {
        const uint8_t *p = c->section->data + c->at;

        if (c->bad || bytes > c->end - c->at) {
                c->bad = true;
                return NULL;
        }

        c->at += bytes;
        return p;
}

static uint64_t take_fixed(struct cursor *c, size_t bytes) {
        const uint8_t *p = take(c, bytes);
        uint64_t value = 0;

        if (p)
                memcpy(&value, p, bytes); /* little-endian, as the machine */
        return value;
}

static uint8_t take_byte(struct cursor *c) {
        if (c->bad || c->at >= c->end) {
                c->bad = true;
                return 0;
        }
        return c->section->data[c->at++];
}

static uint64_t take_uleb(struct cursor *c) {
        uint64_t value = 0;

        for (unsigned shift = 0;; shift += 7) {
                uint8_t byte = take_byte(c);

                if (shift < 64)
                        value |= (uint64_t) (byte & 0x7f) << shift;
                if (!(byte & 0x80))
                        return value;
        }
}

static int64_t take_sleb(struct cursor *c) {
        uint64_t value = 0;
        unsigned shift = 0;
        uint8_t byte;

        do {
                byte = take_byte(c);
                if (shift < 64)
                        value |= (uint64_t) (byte & 0x7f) << shift;
                shift += 7;
        } while (byte & 0x80);

        if ((byte & 0x40) && shift < 64)
                value |= ~UINT64_C(0) << shift;
        return (int64_t) value;
}

/* The value of a pointer before any base is added. */
static uint64_t take_encoded_value(struct cursor *c, uint8_t encoding) {
        switch (encoding & 0x0f) {
        case DW_EH_PE_absptr:
        case DW_EH_PE_udata8:
        case DW_EH_PE_sdata8: return take_fixed(c, 8);
        case DW_EH_PE_uleb128: return take_uleb(c);
        case DW_EH_PE_sleb128: return (uint64_t) take_sleb(c);
        case DW_EH_PE_udata2: return take_fixed(c, 2);
        case DW_EH_PE_sdata2: return (uint64_t) (int16_t) take_fixed(c, 2);
        case DW_EH_PE_udata4: return take_fixed(c, 4);
        case DW_EH_PE_sdata4: return (uint64_t) (int32_t) take_fixed(c, 4);
        default: c->bad = true; return 0;
        }
}

static uint64_t section_vaddr(const struct elf_image *image, const char *name) {
        const struct elf_section *section = image ? elf_image_section(image, name) : NULL;

        return section ? section->vaddr : 0;
}

static void align_to_pointer(struct cursor *c) {
        uint64_t misaligned = (c->section->vaddr + c->at) & 7;

        if (misaligned)
                take(c, 8 - misaligned);
}

static uint64_t follow(struct cursor *c, uint64_t address) {
        const void *p = c->section->image ? elf_image_at(c->section->image, address, 8) : NULL;
        uint64_t value = 0;

        if (p)
                memcpy(&value, p, sizeof(value));
        else
                c->bad = true;
        return value;
}

static uint64_t take_pointer(struct cursor *c, uint8_t encoding) {
        uint64_t place, base = 0, value;

        if (encoding == DW_EH_PE_omit) {
                c->bad = true;
                return 0;
        }
        if ((encoding & 0x70) == DW_EH_PE_aligned)
                align_to_pointer(c);

        place = c->section->vaddr + c->at;
        value = take_encoded_value(c, encoding);

        switch (encoding & 0x70) {
        case DW_EH_PE_absptr:
        case DW_EH_PE_aligned: break;
        case DW_EH_PE_pcrel: base = place; break;
        case DW_EH_PE_textrel: base = section_vaddr(c->section->image, ".text"); break;
        case DW_EH_PE_datarel: /* on x86-64 the global offset table */
                base = section_vaddr(c->section->image, ".got");
                break;
        default: /* relative to the function: its own start cannot be */ c->bad = true;
        }

        if (encoding & DW_EH_PE_indirect)
                return follow(c, base + value);
        return base + value;
}

/* The length field of an entry, 32 or 64 bits wide. */
static uint64_t take_length(struct cursor *c, bool *ret_wide) {
        uint64_t length = take_fixed(c, 4);

        *ret_wide = length == UINT32_MAX;
        return *ret_wide ? take_fixed(c, 8) : length;
}

/* ---- CIEs ---- */

static void set_rule(struct cfi_row *row, uint64_t reg, enum cfi_kind kind, int64_t value) {
        if (reg >= REG_COUNT) /* vector and x87 registers do not lead anywhere */
                return;

        row->kind[reg] = (uint8_t) kind;
        row->value[reg] = value;
        row->offsets &= ~(UINT32_C(1) << reg);
        row->unusual &= ~(UINT32_C(1) << reg);
        if (kind == CFI_OFFSET)
                row->offsets |= UINT32_C(1) << reg;
        else if (kind != CFI_DEFAULT)
                row->unusual |= UINT32_C(1) << reg;
}

struct machine {
        struct cursor code;
        const struct cfi_cie *cie;
        struct cfi_row row;
        uint64_t address; /* where row begins */
        uint64_t advance; /* set by the instruction: row ends so much further */
        unsigned remembered;
        struct cfi_row stack[CFI_REMEMBER_MAX];
};

static bool execute(struct machine *m);

static void read_augmentation(struct cursor *c, const char *text, struct cfi_cie *cie) {
        for (const char *p = text; *p; p++)
                switch (*p) {
                case 'R': cie->encoding = take_byte(c); break;
                case 'P': { /* only its length matters: a pointer to a pointer is not followed */
                        uint8_t encoding = take_byte(c);

                        if (encoding != DW_EH_PE_omit)
                                take_pointer(c, encoding & ~DW_EH_PE_indirect);
                        break;
                }
                case 'L': cie->lsda_encoding = take_byte(c); break;
                case 'S': cie->signal = true; break;
                case 'B': /* of other machines */
                case 'G': break;
                default: /* the data's length is known, its meaning is not */ return;
                }
}

static bool run_initial(const struct cursor *c, struct cfi_cie *cie) {
        struct machine m;

        if (c->end - c->at > CFI_CIE_PROGRAM_MAX)
                return false;

        m.code = *c;
        m.cie = cie;
        m.row = cie->initial;
        m.address = 0;
        m.remembered = 0;
        while (m.code.at < m.code.end)
                if (!execute(&m) || m.advance)
                        return false;

        cie->initial = m.row;
        return true;
}

static bool read_cie_body(struct cursor *c, struct cfi_cie *cie) {
        uint8_t version = take_byte(c);
        const char *text = (const char *) c->section->data + c->at;
        size_t length = strnlen(text, c->end - c->at);
        uint64_t return_register;

        if (!take(c, length + 1) || (version != 1 && version != 3 && version != 4))
                return false;
        if (version == 4 && (take_byte(c) != 8 || take_byte(c) != 0)) /* address and segment size */
                return false;
        if (streq(text, "eh")) /* GCC 2 */
                take(c, 8);
        else if (*text != 0 && *text != 'z')
                return false;

        cie->code_align = take_uleb(c);
        cie->data_align = take_sleb(c);
        return_register = version == 1 ? take_byte(c) : take_uleb(c);
        if (return_register != DWARF_RIP)
                return false;

        cie->augmented = *text == 'z';
        if (cie->augmented) {
                uint64_t bytes = take_uleb(c);
                struct cursor data = *c;

                if (!take(c, bytes))
                        return false;
                data.end = c->at;
                read_augmentation(&data, text + 1, cie);
                if (data.bad)
                        return false;
        }

        return !c->bad && run_initial(c, cie);
}

static void read_cie(const struct cfi_reader *r, uint32_t offset, struct cfi_cie *ret) {
        struct cursor c = { .section = &r->section, .at = offset, .end = r->section.bytes };
        bool wide;
        uint64_t length = take_length(&c, &wide), id;

        *ret = (struct cfi_cie){
                .offset = offset,
                .lsda_encoding = DW_EH_PE_omit,
                .initial = { .cfa_register = DWARF_RSP },
        };
        if (c.bad || length > c.end - c.at)
                return;

        c.end = c.at + length;
        id = take_fixed(&c, wide && !r->section.eh ? 8 : 4);
        if (id != (r->section.eh ? 0 : wide ? UINT64_MAX : UINT32_MAX))
                return;

        ret->usable = read_cie_body(&c, ret);
}

/* Files have a few CIEs which most FDEs share. */
static const struct cfi_cie *find_cie(struct cfi_reader *r, uint32_t offset) {
        struct cfi_cie *cie = &r->cies[(offset >> 2 ^ offset >> 12) % CFI_CIE_CACHE];

        if (cie->offset != offset)
                read_cie(r, offset, cie);
        return cie;
}

/* ---- FDEs ---- */

int cfi_reader_init(struct cfi_reader *r, const struct cfi_section *section) {
        if (section->bytes > CFI_SECTION_MAX)
                return -EBADMSG;

        r->section = *section;
        r->position = 0;
        for (size_t i = 0; i < CFI_CIE_CACHE; i++)
                r->cies[i].offset = UINT32_MAX;
        return 0;
}

/* Augmentation data of an FDE: where its language's own data is. Nobody needs that to unwind, so what is wrong
 * there does no harm. */
static uint64_t read_lsda(struct cursor data, uint8_t encoding) {
        struct cursor value = data;
        uint64_t address;

        if (encoding == DW_EH_PE_omit || take_encoded_value(&value, encoding) == 0)
                return 0;
        address = take_pointer(&data, encoding);
        return data.bad ? 0 : address;
}

/* c stands behind the CIE pointer. */
static bool read_fde(struct cfi_reader *r, struct cursor *c, uint64_t cie_offset, struct cfi_fde *ret) {
        const struct cfi_cie *cie;
        uint64_t start, range, lsda = 0;

        if (cie_offset >= r->section.bytes)
                return false;
        cie = find_cie(r, (uint32_t) cie_offset);
        if (!cie->usable)
                return false;

        start = take_pointer(c, cie->encoding);
        range = take_encoded_value(c, cie->encoding);
        if (cie->augmented) {
                uint64_t bytes = take_uleb(c);
                struct cursor data = *c;

                take(c, bytes);
                data.end = c->at;
                lsda = read_lsda(data, cie->lsda_encoding);
        }
        if (c->bad || range == 0 || start + range < start)
                return false;

        *ret = (struct cfi_fde){
                .start = start,
                .end = start + range,
                .lsda = lsda,
                .cie = (uint32_t) cie_offset,
                .program = (uint32_t) c->at,
                .program_end = (uint32_t) c->end,
        };
        return true;
}

/* Reads the entry at r->position and moves on. 1: an FDE; 0: something else; -EBADMSG. */
static int read_entry(struct cfi_reader *r, struct cfi_fde *ret) {
        struct cursor c = { .section = &r->section, .at = r->position, .end = r->section.bytes };
        bool wide;
        uint64_t length = take_length(&c, &wide), id, id_at;

        if (c.bad || length > c.end - c.at)
                return -EBADMSG;
        c.end = c.at + length;
        r->position = c.end;
        if (length == 0) { /* linkers may leave the terminators of single objects inside */
                if (r->section.terminated)
                        r->position = r->section.bytes;
                return 0;
        }

        /* In .eh_frame the id keeps 4 bytes in the wide form (unlike DWARF) and is the distance back to
         * the CIE. */
        id_at = c.at;
        id = take_fixed(&c, wide && !r->section.eh ? 8 : 4);
        if (c.bad)
                return 0;
        if (r->section.eh) {
                if (id == 0 || id > id_at)
                        return 0;
                return read_fde(r, &c, id_at - id, ret);
        }
        if (id == (wide ? UINT64_MAX : UINT32_MAX))
                return 0;
        return read_fde(r, &c, id, ret);
}

int cfi_next(struct cfi_reader *r, struct cfi_fde *ret) {
        while (r->position < r->section.bytes) {
                int k = read_entry(r, ret);

                if (k != 0)
                        return k;
        }

        return 0;
}

/* ---- the programs ---- */

static int64_t factored(const struct machine *m, uint64_t value) {
        return (int64_t) (value * (uint64_t) m->cie->data_align);
}

static void define_cfa(struct machine *m, uint64_t reg, int64_t offset) {
        if (reg >= DWARF_RIP)
                m->code.bad = true;
        m->row.cfa_register = (uint8_t) reg;
        m->row.cfa_value = offset;
}

static int64_t take_expression(struct machine *m) {
        uint64_t bytes = take_uleb(&m->code);
        size_t at = m->code.at;

        if (bytes > 0xffff)
                m->code.bad = true;
        take(&m->code, bytes);
        return CFI_EXPRESSION_VALUE(at, bytes);
}

static void restore(struct machine *m, uint64_t reg) {
        const struct cfi_row *initial = &m->cie->initial;

        if (reg < REG_COUNT)
                set_rule(&m->row, reg, initial->kind[reg], initial->value[reg]);
}

static void advance(struct machine *m, uint64_t delta) {
        m->advance = delta * m->cie->code_align;
}

static void remember(struct machine *m) {
        if (m->remembered == CFI_REMEMBER_MAX)
                m->code.bad = true;
        else
                m->stack[m->remembered++] = m->row;
}

static void recall(struct machine *m) {
        if (m->remembered == 0)
                m->code.bad = true;
        else
                m->row = m->stack[--m->remembered];
}

/* Instructions that say where a register is. False: not one of them. */
static bool execute_rule(struct machine *m, uint8_t op) {
        struct cursor *c = &m->code;
        uint64_t reg;

        switch (op) {
        case DW_CFA_offset_extended:
                reg = take_uleb(c);
                set_rule(&m->row, reg, CFI_OFFSET, factored(m, take_uleb(c)));
                return true;
        case DW_CFA_offset_extended_sf:
                reg = take_uleb(c);
                set_rule(&m->row, reg, CFI_OFFSET, factored(m, (uint64_t) take_sleb(c)));
                return true;
        case DW_CFA_GNU_negative_offset_extended:
                reg = take_uleb(c);
                set_rule(&m->row, reg, CFI_OFFSET, factored(m, -take_uleb(c)));
                return true;
        case DW_CFA_val_offset:
                reg = take_uleb(c);
                set_rule(&m->row, reg, CFI_VAL_OFFSET, factored(m, take_uleb(c)));
                return true;
        case DW_CFA_val_offset_sf:
                reg = take_uleb(c);
                set_rule(&m->row, reg, CFI_VAL_OFFSET, factored(m, (uint64_t) take_sleb(c)));
                return true;
        case DW_CFA_restore_extended: restore(m, take_uleb(c)); return true;
        case DW_CFA_undefined: set_rule(&m->row, take_uleb(c), CFI_UNDEFINED, 0); return true;
        case DW_CFA_same_value: set_rule(&m->row, take_uleb(c), CFI_SAME, 0); return true;
        case DW_CFA_register:
                reg = take_uleb(c);
                set_rule(&m->row, reg, CFI_REGISTER, (int64_t) take_uleb(c));
                return true;
        case DW_CFA_expression:
                reg = take_uleb(c);
                set_rule(&m->row, reg, CFI_EXPRESSION, take_expression(m));
                return true;
        case DW_CFA_val_expression:
                reg = take_uleb(c);
                set_rule(&m->row, reg, CFI_VAL_EXPRESSION, take_expression(m));
                return true;
        default: return false;
        }
}

/* Instructions that say what the CFA is. */
static bool execute_cfa(struct machine *m, uint8_t op) {
        struct cursor *c = &m->code;
        uint64_t reg;

        switch (op) {
        case DW_CFA_def_cfa:
                reg = take_uleb(c);
                define_cfa(m, reg, (int64_t) take_uleb(c));
                return true;
        case DW_CFA_def_cfa_sf:
                reg = take_uleb(c);
                define_cfa(m, reg, factored(m, (uint64_t) take_sleb(c)));
                return true;
        case DW_CFA_def_cfa_register: define_cfa(m, take_uleb(c), m->row.cfa_value); return true;
        case DW_CFA_def_cfa_offset: define_cfa(m, m->row.cfa_register, (int64_t) take_uleb(c)); return true;
        case DW_CFA_def_cfa_offset_sf:
                define_cfa(m, m->row.cfa_register, factored(m, (uint64_t) take_sleb(c)));
                return true;
        case DW_CFA_def_cfa_expression:
                m->row.cfa_value = take_expression(m);
                m->row.cfa_register = CFI_CFA_EXPRESSION;
                return true;
        default: return false;
        }
}

static bool execute_other(struct machine *m, uint8_t op) {
        struct cursor *c = &m->code;

        switch (op) {
        case DW_CFA_nop: return true;
        case DW_CFA_set_loc: /* backwards wraps, and is past the end */
                m->advance = take_pointer(c, m->cie->encoding) - m->address;
                return true;
        case DW_CFA_advance_loc1: advance(m, take_byte(c)); return true;
        case DW_CFA_advance_loc2: advance(m, take_fixed(c, 2)); return true;
        case DW_CFA_advance_loc4: advance(m, take_fixed(c, 4)); return true;
        case DW_CFA_MIPS_advance_loc8: advance(m, take_fixed(c, 8)); return true;
        case DW_CFA_remember_state: remember(m); return true;
        case DW_CFA_restore_state: recall(m); return true;
        case DW_CFA_GNU_args_size: take_uleb(c); return true;
        default: return false;
        }
}

/* One instruction. False: unknown or cut off. */
static bool execute(struct machine *m) {
        uint8_t op = take_byte(&m->code);

        m->advance = 0;
        switch (op & 0xc0) {
        case DW_CFA_advance_loc: advance(m, op & 0x3f); break;
        case DW_CFA_offset:
                set_rule(&m->row, op & 0x3f, CFI_OFFSET, factored(m, take_uleb(&m->code)));
                break;
        case DW_CFA_restore: restore(m, op & 0x3f); break;
        default:
                if (!execute_cfa(m, op) && !execute_other(m, op) && !execute_rule(m, op))
                        return false;
        }

        return !m->code.bad;
}

int cfi_run(struct cfi_reader *r, const struct cfi_fde *fde, cfi_row_fn row, void *userdata) {
        const struct cfi_cie *cie = find_cie(r, fde->cie);
        struct machine m; /* its stack of rows is filled as far as it is used */

        m.code = (struct cursor){ .section = &r->section, .at = fde->program, .end = fde->program_end };
        m.cie = cie;
        m.row = cie->initial;
        m.address = fde->start;
        m.remembered = 0;

        while (m.code.at < m.code.end) {
                int k;

                if (!execute(&m))
                        return row(userdata, m.address, fde->end, NULL, cie->signal);
                if (!m.advance)
                        continue;
                if (m.advance >= fde->end - m.address) /* what follows holds behind the end */
                        break;

                k = row(userdata, m.address, m.address + m.advance, &m.row, cie->signal);
                if (k < 0)
                        return k;
                m.address += m.advance;
        }

        return row(userdata, m.address, fde->end, &m.row, cie->signal);
}

/* ---- without sections ---- */

static bool find_header_segment(const struct elf_image *image, Elf64_Phdr *ret) {
        size_t bytes;
        const uint8_t *data = elf_image_data(image, &bytes);
        Elf64_Ehdr header;

        memcpy(&header, data, sizeof(header)); /* elf_image has checked that it is there, and the table */
        for (unsigned i = 0; i < header.e_phnum; i++) {
                uint64_t at = header.e_phoff + i * sizeof(*ret);

                if (at > bytes || sizeof(*ret) > bytes - at)
                        return false;
                memcpy(ret, data + at, sizeof(*ret));
                if (ret->p_type == PT_GNU_EH_FRAME)
                        return true;
        }

        return false;
}

int cfi_section_from_segments(const struct elf_image *image, struct cfi_section *ret) {
        const struct elf_segment *segments;
        unsigned count = elf_image_segments(image, &segments);
        struct cfi_section prelude = { .image = image };
        struct cursor c = { .section = &prelude };
        Elf64_Phdr segment;
        uint8_t encoding;
        uint64_t vaddr;

        if (!find_header_segment(image, &segment))
                return -ENODATA;
        prelude.bytes = segment.p_filesz;
        prelude.vaddr = segment.p_vaddr;
        prelude.data = elf_image_at(image, segment.p_vaddr, prelude.bytes);
        if (!prelude.data)
                return -ENODATA;

        c.end = prelude.bytes;
        take_byte(&c); /* version */
        encoding = take_byte(&c);
        take_fixed(&c, 2); /* encodings of the search table */
        vaddr = take_pointer(&c, encoding);
        if (c.bad)
                return -ENODATA;

        for (unsigned i = 0; i < count; i++)
                if (vaddr >= segments[i].vaddr && vaddr - segments[i].vaddr < segments[i].file_bytes) {
                        size_t bytes = segments[i].file_bytes - (vaddr - segments[i].vaddr);
                        const uint8_t *data = elf_image_at(image, vaddr, bytes);

                        if (!data)
                                return -ENODATA;
                        *ret = (struct cfi_section){
                                .data = data,
                                .bytes = bytes,
                                .vaddr = vaddr,
                                .eh = true,
                                .terminated = true,
                                .image = image,
                        };
                        return 0;
                }

        return -ENODATA;
}
