/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "symbolize/elf_image.h"

/*
 * A small file as lld lays it out: read-only data, then code whose address is not its offset, both sharing a
 * page of the file; a build-id note; three sections.
 */
struct small {
        Elf64_Ehdr header;
        Elf64_Phdr programs[3];
        uint8_t note[20];
        char names[32];
        uint8_t text[64];
        Elf64_Shdr sections[4];
};

enum { DATA_VADDR = 0x200000, TEXT_VADDR = 0x201000 };

static struct small make_small(void) {
        static const uint8_t note[] = {
                4, 0, 0, 0, 4, 0, 0, 0, NT_GNU_BUILD_ID, 0, 0, 0, 'G', 'N', 'U', 0, 0xde, 0xad, 0xbe, 0xef,
        };
        struct small s = {
                .header = {
                        .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
                        .e_type = ET_EXEC,
                        .e_machine = EM_X86_64,
                        .e_phoff = offsetof(struct small, programs),
                        .e_phentsize = sizeof(Elf64_Phdr),
                        .e_phnum = 3,
                        .e_shoff = offsetof(struct small, sections),
                        .e_shentsize = sizeof(Elf64_Shdr),
                        .e_shnum = 4,
                        .e_shstrndx = 1,
                },
                .programs = {
                        { .p_type = PT_LOAD, .p_flags = PF_R, .p_vaddr = DATA_VADDR,
                          .p_filesz = offsetof(struct small, text), .p_memsz = offsetof(struct small, text) },
                        { .p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_offset = offsetof(struct small, text),
                          .p_vaddr = TEXT_VADDR + offsetof(struct small, text), .p_filesz = 64, .p_memsz = 128 },
                        { .p_type = PT_NOTE, .p_offset = offsetof(struct small, note), .p_filesz = 20, .p_memsz = 20 },
                },
                .names = "\0.shstrtab\0.text\0.bss",
                .sections = {
                        {},
                        { .sh_name = 1, .sh_type = SHT_STRTAB, .sh_offset = offsetof(struct small, names), .sh_size = 32 },
                        { .sh_name = 11, .sh_type = SHT_PROGBITS, .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
                          .sh_addr = TEXT_VADDR + offsetof(struct small, text),
                          .sh_offset = offsetof(struct small, text), .sh_size = 64 },
                        { .sh_name = 17, .sh_type = SHT_NOBITS, .sh_flags = SHF_ALLOC, .sh_addr = 0x300000,
                          .sh_size = 0x1000 },
                },
        };

        memcpy(s.note, note, sizeof(note));
        memset(s.text, 0xc3, sizeof(s.text));
        return s;
}

/* Touches all that the image offers, so that the sanitizers see each wrong bound. */
static unsigned walk(const struct elf_image *image) {
        const struct elf_segment *segments;
        const struct elf_section *sections;
        struct build_id id;
        unsigned sum = 0;
        uint64_t value;
        unsigned n;

        n = elf_image_segments(image, &segments);
        for (unsigned i = 0; i < n; i++) {
                const uint8_t *p = elf_image_at(image, segments[i].vaddr, segments[i].file_bytes);

                for (uint64_t j = 0; p && j < segments[i].file_bytes; j++)
                        sum += p[j];
                (void) elf_image_vaddr(image, segments[i].offset, &value);
                (void) elf_image_offset(image, segments[i].vaddr, &value);
        }
        n = elf_image_sections(image, &sections);
        for (unsigned i = 0; i < n; i++) {
                sum += (unsigned) strlen(sections[i].name);
                for (size_t j = 0; sections[i].data && j < sections[i].bytes; j++)
                        sum += sections[i].data[j];
        }
        (void) elf_image_build_id(image, &id);
        return sum;
}

static void addresses_follow_the_segments_not_the_offset_of_text(void **state) {
        struct small s = make_small();
        _cleanup_(elf_image_freep) struct elf_image *image = NULL;
        uint64_t value;

        assert_int_equal(elf_image_from_memory(&s, sizeof(s), &image), 0);
        assert_int_equal(elf_image_vaddr(image, offsetof(struct small, text) + 5, &value), 0);
        assert_int_equal(value, TEXT_VADDR + offsetof(struct small, text) + 5);
        assert_int_equal(elf_image_offset(image, value, &value), 0);
        assert_int_equal(value, offsetof(struct small, text) + 5);
        assert_int_equal(elf_image_vaddr(image, offsetof(struct small, note), &value), 0);
        assert_int_equal(value, DATA_VADDR + offsetof(struct small, note));
        assert_false(elf_image_is_pie(image));
}

static void what_is_in_no_segment_has_no_address(void **state) {
        struct small s = make_small();
        _cleanup_(elf_image_freep) struct elf_image *image = NULL;
        uint64_t value = 7, text = TEXT_VADDR + offsetof(struct small, text);

        assert_int_equal(elf_image_from_memory(&s, sizeof(s), &image), 0);
        assert_int_equal(elf_image_vaddr(image, offsetof(struct small, sections), &value), -ENXIO);
        assert_int_equal(elf_image_offset(image, 0, &value), -ENXIO);
        assert_int_equal(elf_image_offset(image, text + 64, &value),
                         -ENXIO); /* zeroed memory, not in the file */
        assert_int_equal(value, 7);
        assert_non_null(elf_image_at(image, text, 64));
        assert_null(elf_image_at(image, text, 65));
        assert_null(elf_image_at(image, text - 1, 2));
        assert_null(elf_image_at(image, text + 8, SIZE_MAX));
}

static void sections_are_found_by_name_and_nobits_has_no_bytes(void **state) {
        struct small s = make_small();
        _cleanup_(elf_image_freep) struct elf_image *image = NULL;
        const struct elf_section *text, *bss;

        assert_int_equal(elf_image_from_memory(&s, sizeof(s), &image), 0);
        text = elf_image_section(image, ".text");
        bss = elf_image_section(image, ".bss");
        assert_non_null(text);
        assert_ptr_equal(text->data, s.text);
        assert_int_equal(text->bytes, 64);
        assert_non_null(bss);
        assert_null(bss->data);
        assert_int_equal(bss->bytes, 0x1000);
        assert_null(elf_image_section(image, ".nothing"));
}

static void build_id_comes_from_a_segment_or_else_from_a_section(void **state) {
        struct small s = make_small();
        struct build_id id = BUILD_ID_NULL;

        for (int i = 0; i < 2; i++) {
                _cleanup_(elf_image_freep) struct elf_image *image = NULL;

                assert_int_equal(elf_image_from_memory(&s, sizeof(s), &image), 0);
                assert_int_equal(elf_image_build_id(image, &id), 0);
                assert_int_equal(id.size, 4);
                assert_int_equal(id.bytes[3], 0xef);

                /* Again, as a debug file has it: the segment points nowhere. */
                s.programs[2].p_offset = 1 << 20;
                s.sections[2].sh_type = SHT_NOTE;
                s.sections[2].sh_offset = offsetof(struct small, note);
                s.sections[2].sh_size = 20;
                id = BUILD_ID_NULL;
        }
}

static void a_file_without_section_headers_still_has_its_segments(void **state) {
        struct small s = make_small();
        _cleanup_(elf_image_freep) struct elf_image *image = NULL;
        const struct elf_segment *segments;
        const struct elf_section *sections;
        struct build_id id;

        s.header.e_shoff = 0;
        s.header.e_shnum = 0;
        assert_int_equal(elf_image_from_memory(&s, sizeof(s), &image), 0);
        assert_int_equal(elf_image_sections(image, &sections), 0);
        assert_int_equal(elf_image_segments(image, &segments), 2);
        assert_true(segments[1].executable);
        assert_false(segments[1].writable);
        assert_int_equal(elf_image_build_id(image, &id), 0);
}

static void every_truncation_stays_within_its_bytes(void **state) {
        struct small s = make_small();

        for (size_t cut = 0; cut < sizeof(s); cut++) {
                _cleanup_(elf_image_freep) struct elf_image *image = NULL;
                uint8_t *exact = malloc(cut ? cut : 1);

                assert_non_null(exact);
                memcpy(exact, &s, cut);
                if (cut < offsetof(struct small, note))
                        assert_int_equal(elf_image_from_memory(exact, cut, &image), -EBADMSG);
                else {
                        const struct elf_section *sections;

                        assert_int_equal(elf_image_from_memory(exact, cut, &image), 0);
                        assert_int_equal(elf_image_sections(image, &sections), 0);
                        walk(image);
                }
                image = elf_image_free(image);
                free(exact);
        }
}

static void every_changed_byte_stays_within_its_bytes(void **state) {
        static const uint8_t values[] = { 0x00, 0x01, 0x7f, 0x80, 0xff };
        struct small original = make_small();

        for (size_t at = 0; at < sizeof(original); at++)
                for (size_t v = 0; v < sizeof(values); v++) {
                        _cleanup_(elf_image_freep) struct elf_image *image = NULL;
                        struct small *s = malloc(sizeof(*s));

                        assert_non_null(s);
                        *s = original;
                        ((uint8_t *) s)[at] = values[v];
                        if (elf_image_from_memory(s, sizeof(*s), &image) == 0)
                                walk(image);
                        image = elf_image_free(image);
                        free(s);
                }
}

static void sizes_and_offsets_that_lie_are_refused_or_ignored(void **state) {
        struct small s = make_small();
        struct elf_image *image = NULL;
        const struct elf_section *section;

        s.header.e_phnum = 0xfffe;
        assert_int_equal(elf_image_from_memory(&s, sizeof(s), &image), -EBADMSG);
        s = make_small();
        s.header.e_phoff = UINT64_MAX - 8;
        assert_int_equal(elf_image_from_memory(&s, sizeof(s), &image), -EBADMSG);
        s = make_small();
        s.programs[1].p_memsz = UINT64_MAX;
        assert_int_equal(elf_image_from_memory(&s, sizeof(s), &image), -EBADMSG);
        s = make_small();
        s.programs[1].p_offset = UINT64_MAX - 4;
        assert_int_equal(elf_image_from_memory(&s, sizeof(s), &image), -EBADMSG);
        assert_null(image);

        s = make_small();
        s.sections[2].sh_size = UINT64_MAX;
        s.sections[3].sh_name = UINT32_MAX;
        memset(s.names + 27, 'x', 5); /* a name that never ends */
        s.sections[1].sh_name = 28;
        assert_int_equal(elf_image_from_memory(&s, sizeof(s), &image), 0);
        section = elf_image_section(image, ".text");
        assert_non_null(section);
        assert_int_equal(section->bytes, 0); /* its address range would wrap around */
        assert_null(elf_image_section(image, ".bss"));
        assert_null(elf_image_section(image, "xxxx"));
        elf_image_free(image);
}

static void other_machines_classes_and_types_are_refused(void **state) {
        struct elf_image *image = NULL;
        struct small s;

        s = make_small();
        s.header.e_machine = EM_AARCH64;
        assert_int_equal(elf_image_from_memory(&s, sizeof(s), &image), -EBADMSG);
        s = make_small();
        s.header.e_ident[EI_CLASS] = ELFCLASS32;
        assert_int_equal(elf_image_from_memory(&s, sizeof(s), &image), -EBADMSG);
        s = make_small();
        s.header.e_ident[EI_DATA] = ELFDATA2MSB;
        assert_int_equal(elf_image_from_memory(&s, sizeof(s), &image), -EBADMSG);
        s = make_small();
        s.header.e_type = ET_REL;
        assert_int_equal(elf_image_from_memory(&s, sizeof(s), &image), -EBADMSG);
        assert_null(image);
}

static void this_program_maps_and_finds_its_own_code(void **state) {
        _cleanup_(elf_image_freep) struct elf_image *image = NULL;
        _cleanup_close_ int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
        const struct elf_section *text;
        uint64_t vaddr;

        assert_true(fd >= 0);
        assert_int_equal(elf_image_new(fd, &image), 0);
        assert_true(elf_image_is_pie(image));
        text = elf_image_section(image, ".text");
        assert_non_null(text);
        assert_int_equal(elf_image_vaddr(image, text->offset, &vaddr), 0);
        assert_int_equal(vaddr, text->vaddr);
        assert_ptr_equal(elf_image_at(image, vaddr, text->bytes), text->data);
        walk(image);
}

static void the_vdso_of_this_kernel_is_an_image_with_symbols(void **state) {
        _cleanup_(elf_image_freep) struct elf_image *image = NULL;
        const void *vdso = (const void *) getauxval(AT_SYSINFO_EHDR); // NOLINT: an address from the kernel

        if (!vdso)
                skip();
        assert_int_equal(elf_image_from_memory(vdso, 4096, &image), 0);
        assert_true(elf_image_is_pie(image));
}

static void what_is_no_file_is_refused(void **state) {
        struct elf_image *image = NULL;
        int pipe_fd[2], memory = memfd_create("sparse", MFD_CLOEXEC);
        struct small s = make_small();

        assert_int_equal(pipe2(pipe_fd, O_CLOEXEC), 0);
        assert_int_equal(elf_image_new(pipe_fd[0], &image), -EBADMSG);
        assert_int_equal(elf_image_new(-1, &image), -EBADF);

        assert_true(memory >= 0);
        assert_int_equal(elf_image_new(memory, &image), -EBADMSG); /* empty */
        assert_int_equal(pwrite(memory, &s, sizeof(s), 0), sizeof(s));
        assert_int_equal(ftruncate(memory, INT64_C(4) << 30), 0);
        assert_int_equal(elf_image_new(memory, &image), -EFBIG);
        assert_null(image);
        close(pipe_fd[0]);
        close(pipe_fd[1]);
        close(memory);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(addresses_follow_the_segments_not_the_offset_of_text),
                cmocka_unit_test(what_is_in_no_segment_has_no_address),
                cmocka_unit_test(sections_are_found_by_name_and_nobits_has_no_bytes),
                cmocka_unit_test(build_id_comes_from_a_segment_or_else_from_a_section),
                cmocka_unit_test(a_file_without_section_headers_still_has_its_segments),
                cmocka_unit_test(every_truncation_stays_within_its_bytes),
                cmocka_unit_test(every_changed_byte_stays_within_its_bytes),
                cmocka_unit_test(sizes_and_offsets_that_lie_are_refused_or_ignored),
                cmocka_unit_test(other_machines_classes_and_types_are_refused),
                cmocka_unit_test(this_program_maps_and_finds_its_own_code),
                cmocka_unit_test(the_vdso_of_this_kernel_is_an_image_with_symbols),
                cmocka_unit_test(what_is_no_file_is_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
