/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * hostile KIND FILE: burns 100 ms in code that is mapped from FILE, which is no friend of those who read it; then
 * ready. KIND says what is wrong with it:
 *
 *   sizes    tables that are said to be far outside of the file
 *   loop     sections that refer to themselves, strings without an end, notes and unwind tables that lie
 *   large    a symbol table of almost 2 GB, all holes
 *   sparse   4 GB, all holes
 *   fifo     not there any more, but a FIFO of that name
 *   device   not there any more, but a link to /dev/zero
 *   shrink   becomes shorter and longer all the time
 */

#include <elf.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include "notify.h"

enum { PAGE = 4096, CODE = PAGE, SECTIONS = 2 * PAGE, STRINGS = 3 * PAGE, TABLE = 4 * PAGE, END = 8 * PAGE };

static const uint8_t code[] = { 0x48, 0xff, 0xcf, 0x75, 0xfb, 0xc3 }; /* l: dec rdi; jnz l; ret */
static const char strings[] = "\0.symtab\0.strtab\0.eh_frame\0.note";
static int file = -1;

static void put(uint64_t offset, const void *data, size_t bytes) {
        if (pwrite(file, data, bytes, (off_t) offset) != (ssize_t) bytes)
                _exit(2);
}

static void put_header(uint64_t sections, uint16_t section_count, uint16_t segment_count) {
        Elf64_Ehdr header = {
                .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
                .e_type = ET_DYN,
                .e_machine = EM_X86_64,
                .e_version = EV_CURRENT,
                .e_phoff = sizeof(header),
                .e_shoff = sections,
                .e_ehsize = sizeof(header),
                .e_phentsize = sizeof(Elf64_Phdr),
                .e_phnum = segment_count,
                .e_shentsize = sizeof(Elf64_Shdr),
                .e_shnum = section_count,
                .e_shstrndx = 2,
        };

        put(0, &header, sizeof(header));
}

static void put_segment(uint64_t bytes) {
        Elf64_Phdr segment = { .p_type = PT_LOAD,
                               .p_flags = PF_R | PF_X,
                               .p_filesz = bytes,
                               .p_memsz = bytes,
                               .p_align = PAGE };

        put(sizeof(Elf64_Ehdr), &segment, sizeof(segment));
}

/* Symbols from TABLE on, and their names; link: the section with the names. */
static void put_sections(uint64_t symbol_bytes, uint32_t link, uint64_t string_bytes) {
        Elf64_Shdr sections[5] = {
                [1] = { .sh_name = 1,
                        .sh_type = SHT_SYMTAB,
                        .sh_offset = TABLE,
                        .sh_size = symbol_bytes,
                        .sh_link = link,
                        .sh_entsize = sizeof(Elf64_Sym) },
                [2] = { .sh_name = 9, .sh_type = SHT_STRTAB, .sh_offset = STRINGS, .sh_size = string_bytes },
                [3] = { .sh_name = 17,
                        .sh_type = SHT_PROGBITS,
                        .sh_flags = SHF_ALLOC,
                        .sh_addr = STRINGS,
                        .sh_offset = STRINGS,
                        .sh_size = 2 * PAGE },
                [4] = { .sh_name = 27, .sh_type = SHT_NOTE, .sh_offset = STRINGS + 16, .sh_size = PAGE },
        };

        put(SECTIONS, sections, sizeof(sections));
        put(STRINGS, strings, sizeof(strings));
        put_header(SECTIONS, 5, 1);
}

static void make_loop(void) {
        uint8_t ones[PAGE];

        memset(ones, 0xff, sizeof(ones));
        put_segment(UINT64_MAX / 2);
        put_sections(UINT64_MAX / 2, 1, PAGE);
        put(STRINGS + sizeof(strings), ones, PAGE - sizeof(strings)); /* no end */
        put(TABLE, ones, sizeof(ones)); /* in .eh_frame: an entry of 64 bits and more bytes than there are */
}

static void make(const char *kind) {
        if (strcmp(kind, "sizes") == 0)
                put_header(UINT64_MAX - 100, UINT16_MAX, UINT16_MAX);
        else if (strcmp(kind, "loop") == 0)
                make_loop();
        else if (strcmp(kind, "large") == 0) {
                put_segment(END);
                put_sections(UINT64_C(0x70000000) / 24 * 24, 2, sizeof(strings));
                (void) !ftruncate(file, 0x78000000);
        } else {
                put_segment(END);
                put_sections(3 * PAGE / 24 * 24, 2, sizeof(strings));
                (void) !ftruncate(file, strcmp(kind, "sparse") == 0 ? 4LL << 30 : END);
        }
}

/* Once it is mapped, the name is of no use to us. */
static void replace(const char *kind, const char *path) {
        bool fifo = strcmp(kind, "fifo") == 0, device = strcmp(kind, "device") == 0;

        if (fifo || device)
                (void) unlink(path);
        if (fifo)
                (void) mkfifo(path, 0600);
        if (device)
                (void) !symlink("/dev/zero", path);
}

static void *shrink(void *unused) {
        for (;;) {
                (void) !ftruncate(file, SECTIONS);
                (void) !ftruncate(file, END);
        }
        return unused;
}

static uint64_t cpu_ms(void) {
        struct timespec ts;

        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
        return (uint64_t) ts.tv_sec * 1000 + (uint64_t) ts.tv_nsec / 1000000;
}

int main(int argc, char **argv) {
        void (*burn)(uint64_t);
        pthread_t thread;
        void *memory;

        if (argc < 3)
                return 2;
        (void) unlink(argv[2]);
        file = open(argv[2], O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
        put(CODE, code, sizeof(code));
        make(argv[1]);
        memory = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, CODE);
        if (memory == MAP_FAILED)
                return 2;
        replace(argv[1], argv[2]);
        memcpy(&burn, &memory, sizeof(burn));
        if (strcmp(argv[1], "shrink") == 0)
                (void) pthread_create(&thread, NULL, shrink, NULL);
        while (cpu_ms() < 100)
                burn(100000);
        notify_ready();
        for (;;)
                pause();
}
