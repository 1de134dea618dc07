/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolize/elf_image.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum {
        SEGMENTS_MAX = 1024, /* linkers write about ten */
        SECTIONS_MAX = 65536, /* a linked file has some dozens; more is only legal in ET_REL */
};
#define FILE_BYTES_MAX (UINT64_C(2) << 30) /* the debug file of a browser is 1.5 GB */

struct elf_image {
        const uint8_t *data;
        size_t bytes;
        bool mapped; /* by us */
        bool any_type; /* ET_REL, too */
        uint16_t type; /* ET_EXEC, ET_DYN */
        uint64_t programs_offset; /* checked: the table is inside */
        unsigned program_count;

        /* owned */
        struct elf_segment *segments;
        struct elf_section *sections;
        unsigned segment_count, section_count;
};

static bool inside(uint64_t offset, uint64_t bytes, uint64_t total) {
        return offset <= total && bytes <= total - offset;
}

static bool sum_overflows(uint64_t a, uint64_t b) {
        return a + b < a;
}

/* The file promises no alignment, so headers are copied out. The caller has checked that it is inside. */
static Elf64_Shdr section_header(const struct elf_image *image, uint64_t table, uint64_t index) {
        Elf64_Shdr header;

        memcpy(&header, image->data + table + index * sizeof(header), sizeof(header));
        return header;
}

static int read_header(const struct elf_image *image, Elf64_Ehdr *ret) {
        Elf64_Ehdr header;

        if (image->bytes < sizeof(header))
                return -EBADMSG;
        memcpy(&header, image->data, sizeof(header));

        if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
            header.e_ident[EI_DATA] != ELFDATA2LSB || header.e_machine != EM_X86_64)
                return -EBADMSG;
        if (header.e_type != ET_EXEC && header.e_type != ET_DYN &&
            !(image->any_type && header.e_type == ET_REL))
                return -EBADMSG;

        *ret = header;
        return 0;
}

/* p_offset and p_filesz may point past the end of a debug file, which keeps the program headers of the
 * file it was split from: elf_image_at() compares with the size of the image again. */
static int take_segment(const Elf64_Phdr *header, struct elf_segment *ret) {
        if (sum_overflows(header->p_offset, header->p_filesz) ||
            sum_overflows(header->p_vaddr, header->p_memsz) || header->p_filesz > header->p_memsz)
                return -EBADMSG;

        *ret = (struct elf_segment){
                .vaddr = header->p_vaddr,
                .offset = header->p_offset,
                .file_bytes = header->p_filesz,
                .memory_bytes = header->p_memsz,
                .executable = header->p_flags & PF_X,
                .writable = header->p_flags & PF_W,
        };
        return 0;
}

static Elf64_Phdr program_header(const struct elf_image *image, unsigned index) {
        Elf64_Phdr header;

        memcpy(&header, image->data + image->programs_offset + index * sizeof(header), sizeof(header));
        return header;
}

static int read_segments(struct elf_image *image, const Elf64_Ehdr *header) {
        if (header->e_phnum == 0)
                return 0;
        if (header->e_phnum > SEGMENTS_MAX || header->e_phentsize != sizeof(Elf64_Phdr) ||
            !inside(header->e_phoff, (uint64_t) header->e_phnum * sizeof(Elf64_Phdr), image->bytes))
                return -EBADMSG;

        image->segments = calloc(header->e_phnum, sizeof(*image->segments));
        if (!image->segments)
                return -ENOMEM;
        image->programs_offset = header->e_phoff;
        image->program_count = header->e_phnum;

        for (unsigned i = 0; i < image->program_count; i++) {
                Elf64_Phdr program = program_header(image, i);
                int r;

                if (program.p_type != PT_LOAD)
                        continue;
                r = take_segment(&program, &image->segments[image->segment_count]);
                if (r < 0)
                        return r;
                image->segment_count++;
        }

        return 0;
}

/* The text at `offset` of a string section; "" when it would run past the section. */
static const char *text_in(const struct elf_section *strings, uint32_t offset) {
        if (!strings || !strings->data || strings->type != SHT_STRTAB || offset >= strings->bytes ||
            !memchr(strings->data + offset, 0, strings->bytes - offset))
                return "";
        return (const char *) strings->data + offset;
}

static struct elf_section take_section(const struct elf_image *image, const Elf64_Shdr *header) {
        struct elf_section section = {
                .name = "",
                .type = header->sh_type,
                .flags = header->sh_flags,
                .vaddr = header->sh_addr,
                .offset = header->sh_offset,
                .entry_bytes = header->sh_entsize,
                .link = header->sh_link,
                .bytes = header->sh_size,
        };

        if (sum_overflows(header->sh_addr, header->sh_size))
                section.bytes = 0;
        if (header->sh_type != SHT_NOBITS && header->sh_type != SHT_NULL &&
            inside(header->sh_offset, section.bytes, image->bytes))
                section.data = image->data + header->sh_offset;
        return section;
}

/* A table that is not wholly inside the file is as good as stripped off: the segments still serve. */
static int read_sections(struct elf_image *image, const Elf64_Ehdr *header) {
        uint64_t count = header->e_shnum;
        uint32_t names = header->e_shstrndx;
        Elf64_Shdr first;

        if (header->e_shoff == 0 || header->e_shentsize != sizeof(Elf64_Shdr) ||
            !inside(header->e_shoff, sizeof(Elf64_Shdr), image->bytes))
                return 0;

        /* Numbers that do not fit the file header are in section 0 (gABI, "Extended section header"). */
        first = section_header(image, header->e_shoff, 0);
        if (count == 0)
                count = first.sh_size;
        if (names == SHN_XINDEX)
                names = first.sh_link;
        if (count == 0 || count > SECTIONS_MAX ||
            !inside(header->e_shoff, count * sizeof(Elf64_Shdr), image->bytes))
                return 0;

        image->sections = calloc(count, sizeof(*image->sections));
        if (!image->sections)
                return -ENOMEM;
        image->section_count = (unsigned) count;

        for (unsigned i = 0; i < count; i++) {
                Elf64_Shdr section = section_header(image, header->e_shoff, i);

                image->sections[i] = take_section(image, &section);
        }
        for (unsigned i = 0; i < count; i++) {
                Elf64_Shdr section = section_header(image, header->e_shoff, i);

                image->sections[i].name =
                        text_in(names < count ? &image->sections[names] : NULL, section.sh_name);
        }

        return 0;
}

static int parse(struct elf_image *image) {
        Elf64_Ehdr header;
        int r;

        r = read_header(image, &header);
        if (r < 0)
                return r;
        image->type = header.e_type;

        r = read_segments(image, &header);
        if (r < 0)
                return r;
        return read_sections(image, &header);
}

static int new_image(const void *data, size_t bytes, bool any_type, struct elf_image **ret) {
        _cleanup_(elf_image_freep) struct elf_image *image = NULL;
        int r;

        image = calloc(1, sizeof(*image));
        if (!image)
                return -ENOMEM;
        image->data = data;
        image->bytes = bytes;
        image->any_type = any_type;

        r = parse(image);
        if (r < 0)
                return r;

        *ret = TAKE_PTR(image);
        return 0;
}

int elf_image_from_memory(const void *data, size_t bytes, struct elf_image **ret) {
        return new_image(data, bytes, false, ret);
}

static int map_image(int fd, bool any_type, struct elf_image **ret) {
        struct elf_image *image;
        struct stat st;
        void *data;
        int r;

        if (fstat(fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode) || st.st_size < (off_t) sizeof(Elf64_Ehdr))
                return -EBADMSG;
        if ((uint64_t) st.st_size > FILE_BYTES_MAX)
                return -EFBIG;

        data = mmap(NULL, (size_t) st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (data == MAP_FAILED)
                return -errno;

        r = new_image(data, (size_t) st.st_size, any_type, &image);
        if (r < 0) {
                munmap(data, (size_t) st.st_size);
                return r;
        }

        image->mapped = true;
        *ret = image;
        return 0;
}

int elf_image_new(int fd, struct elf_image **ret) {
        return map_image(fd, false, ret);
}

int elf_image_new_any(int fd, struct elf_image **ret) {
        return map_image(fd, true, ret);
}

struct elf_image *elf_image_free(struct elf_image *image) {
        if (!image)
                return NULL;

        if (image->mapped)
                munmap((void *) image->data, image->bytes);
        free(image->segments);
        free(image->sections);
        free(image);
        return NULL;
}

unsigned elf_image_segments(const struct elf_image *image, const struct elf_segment **ret) {
        *ret = image->segments;
        return image->segment_count;
}

unsigned elf_image_sections(const struct elf_image *image, const struct elf_section **ret) {
        *ret = image->sections;
        return image->section_count;
}

const struct elf_section *elf_image_section(const struct elf_image *image, const char *name) {
        for (unsigned i = 0; i < image->section_count; i++)
                if (streq(image->sections[i].name, name))
                        return &image->sections[i];
        return NULL;
}

static int build_id_in_segments(const struct elf_image *image, struct build_id *ret) {
        for (unsigned i = 0; i < image->program_count; i++) {
                Elf64_Phdr program = program_header(image, i);

                if (program.p_type == PT_NOTE && inside(program.p_offset, program.p_filesz, image->bytes) &&
                    build_id_from_notes(image->data + program.p_offset, program.p_filesz, ret) == 0)
                        return 0;
        }

        return -ENODATA;
}

/* Segments first, as the kernel reads it; in a debug file the PT_NOTE of the split file may point at
 * anything, but the section is right. */
int elf_image_build_id(const struct elf_image *image, struct build_id *ret) {
        if (build_id_in_segments(image, ret) == 0)
                return 0;

        for (unsigned i = 0; i < image->section_count; i++) {
                const struct elf_section *section = &image->sections[i];

                if (section->type == SHT_NOTE && section->data &&
                    build_id_from_notes(section->data, section->bytes, ret) == 0)
                        return 0;
        }

        return -ENODATA;
}

bool elf_image_is_pie(const struct elf_image *image) {
        return image->type == ET_DYN;
}

/* Linkers let two segments share a page of the file, never a byte; where a file lies about that, code wins. */
int elf_image_vaddr(const struct elf_image *image, uint64_t file_offset, uint64_t *ret) {
        const struct elf_segment *found = NULL;

        for (unsigned i = 0; i < image->segment_count; i++) {
                const struct elf_segment *segment = &image->segments[i];

                if (file_offset < segment->offset || file_offset - segment->offset >= segment->file_bytes)
                        continue;
                if (!found || (segment->executable && !found->executable))
                        found = segment;
        }

        if (!found)
                return -ENXIO;
        *ret = found->vaddr + (file_offset - found->offset);
        return 0;
}

static const struct elf_segment *segment_at(const struct elf_image *image, uint64_t vaddr, uint64_t bytes) {
        for (unsigned i = 0; i < image->segment_count; i++) {
                const struct elf_segment *segment = &image->segments[i];

                if (vaddr >= segment->vaddr && inside(vaddr - segment->vaddr, bytes, segment->file_bytes))
                        return segment;
        }
        return NULL;
}

int elf_image_offset(const struct elf_image *image, uint64_t vaddr, uint64_t *ret) {
        const struct elf_segment *segment = segment_at(image, vaddr, 1);

        if (!segment)
                return -ENXIO;
        *ret = segment->offset + (vaddr - segment->vaddr);
        return 0;
}

const void *elf_image_at(const struct elf_image *image, uint64_t vaddr, size_t bytes) {
        const struct elf_segment *segment = segment_at(image, vaddr, bytes);
        uint64_t offset;

        if (!segment)
                return NULL;
        offset = segment->offset + (vaddr - segment->vaddr);
        return inside(offset, bytes, image->bytes) ? image->data + offset : NULL;
}

void elf_image_forget(const struct elf_image *image) {
        if (image->mapped)
                (void) madvise((void *) image->data, image->bytes, MADV_DONTNEED);
}

const uint8_t *elf_image_data(const struct elf_image *image, size_t *ret_bytes) {
        *ret_bytes = image->bytes;
        return image->data;
}
