/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unwind/core.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/procfs.h>
#include <sys/uio.h>
#include <sys/user.h>

#include "common/macro.h"

enum { SEGMENTS_MAX = 4096, AUXV_BYTES_MAX = 4096, CHUNK_BYTES = 1 << 20 };

struct core {
        const struct process *p;
        FILE *f;
        Elf64_Phdr segments[SEGMENTS_MAX];
        size_t segment_count;
        /* NT_FILE: count, page size, {start, end, page offset}…, then the names */
        uint64_t *files;
        size_t file_count;
        char *names;
        size_t name_bytes;
};

static void core_done(struct core *c) {
        if (c->f)
                fclose(c->f);
        free(c->files);
        free(c->names);
}

static int add_file(struct core *c, uint64_t start, uint64_t end, uint64_t offset, const char *name) {
        size_t bytes = strlen(name) + 1;
        uint64_t *files = realloc(c->files, (2 + 3 * (c->file_count + 1)) * sizeof(*files));
        char *names;

        if (!files)
                return -ENOMEM;
        c->files = files;
        names = realloc(c->names, c->name_bytes + bytes);
        if (!names)
                return -ENOMEM;
        c->names = names;

        memcpy(names + c->name_bytes, name, bytes);
        c->name_bytes += bytes;
        memcpy(&files[2 + 3 * c->file_count++], (uint64_t[]){ start, end, offset / STACK_PAGE }, 24);
        files[0] = c->file_count;
        files[1] = STACK_PAGE;
        return 0;
}

static int add_mapping(struct core *c, const char *line) {
        char flags[5], path[4096] = "";
        uint64_t start, end, offset;
        Elf64_Phdr *segment = &c->segments[c->segment_count];

        if (c->segment_count == SEGMENTS_MAX)
                return -E2BIG;
        if (sscanf(line, "%lx-%lx %4s %lx %*s %*s %4095[^\n]", &start, &end, flags, &offset, path) < 4)
                return -EBADMSG;
        if (streq(path, "[vsyscall]") || streq(path, "[vvar]"))
                return 0;

        *segment = (Elf64_Phdr){
                .p_type = PT_LOAD,
                .p_flags = (flags[0] == 'r' ? PF_R : 0u) | (flags[1] == 'w' ? PF_W : 0u) |
                           (flags[2] == 'x' ? PF_X : 0u),
                .p_vaddr = start,
                .p_memsz = end - start,
                .p_align = STACK_PAGE,
        };
        /* Pages that were relocated and protected again lead a debugger to the libraries. */
        if (flags[0] == 'r' && (flags[1] == 'w' || streq(path, "[vdso]") ||
                                (flags[2] != 'x' && end - start <= CORE_READ_ONLY_BYTES)))
                segment->p_filesz = MIN(end - start, (uint64_t) CORE_MAPPING_BYTES);
        c->segment_count++;
        return path[0] == '/' ? add_file(c, start, end, offset, path) : 0;
}

static int add_mappings(struct core *c) {
        for (const char *line = c->p->maps; *line;) {
                int r = add_mapping(c, line);

                if (r < 0)
                        return r;
                line = strchrnul(line, '\n');
                if (*line)
                        line++;
        }
        return 0;
}

/* The stack of the thread may lie behind what is written of its mapping. */
static void add_stack(struct core *c, uint64_t sp) {
        for (size_t i = 0; i < c->segment_count; i++) {
                Elf64_Phdr *s = &c->segments[i];
                Elf64_Phdr rest = *s;

                if (sp < s->p_vaddr + s->p_filesz || sp >= s->p_vaddr + s->p_memsz ||
                    c->segment_count == SEGMENTS_MAX)
                        continue;
                rest.p_vaddr = sp & ~(uint64_t) (STACK_PAGE - 1);
                rest.p_memsz = s->p_vaddr + s->p_memsz - rest.p_vaddr;
                rest.p_filesz = MIN(rest.p_memsz, (uint64_t) CORE_MAPPING_BYTES);
                s->p_memsz = rest.p_vaddr - s->p_vaddr;
                memmove(s + 2, s + 1, (c->segment_count - i - 1) * sizeof(*s));
                s[1] = rest;
                c->segment_count++;
                return;
        }
}

static void write_note(FILE *f, uint32_t type, const void *data, size_t bytes) {
        Elf64_Nhdr header = { 5, (uint32_t) bytes, type };

        fwrite(&header, sizeof(header), 1, f);
        fwrite("CORE\0\0\0", 8, 1, f);
        fwrite(data, bytes, 1, f);
        fwrite("\0\0\0", (4 - bytes % 4) % 4, 1, f);
}

static void write_status(FILE *f, const struct process *p, const uint64_t *r) {
        struct elf_prstatus status = { .pr_pid = p->pid };
        struct user_regs_struct regs = {
                .rax = r[DWARF_RAX],
                .rdx = r[DWARF_RDX],
                .rcx = r[DWARF_RCX],
                .rbx = r[DWARF_RBX],
                .rsi = r[DWARF_RSI],
                .rdi = r[DWARF_RDI],
                .rbp = r[DWARF_RBP],
                .rsp = r[DWARF_RSP],
                .r8 = r[DWARF_R8],
                .r9 = r[DWARF_R9],
                .r10 = r[DWARF_R10],
                .r11 = r[DWARF_R11],
                .r12 = r[DWARF_R12],
                .r13 = r[DWARF_R13],
                .r14 = r[DWARF_R14],
                .r15 = r[DWARF_R15],
                .rip = r[DWARF_RIP],
                .cs = 0x33,
                .ss = 0x2b,
                .orig_rax = UINT64_MAX,
        };

        _Static_assert(sizeof(regs) == sizeof(status.pr_reg), "the same registers");
        memcpy(status.pr_reg, &regs, sizeof(regs));
        write_note(f, NT_PRSTATUS, &status, sizeof(status));
}

static int write_auxv(FILE *f, const struct process *p) {
        char path[64];
        uint8_t auxv[AUXV_BYTES_MAX];
        _cleanup_fclose_ FILE *in = NULL;

        (void) snprintf(path, sizeof(path), "/proc/%d/auxv", p->pid);
        in = fopen(path, "re");
        if (!in)
                return -errno;
        write_note(f, NT_AUXV, auxv, fread(auxv, 1, sizeof(auxv), in));
        return 0;
}

static int write_notes(struct core *c, const struct unwind_stack *stack) {
        size_t bytes = (2 + 3 * c->file_count) * sizeof(*c->files);
        uint8_t *files = realloc(c->files, bytes + c->name_bytes);

        if (!files)
                return -ENOMEM;
        c->files = (uint64_t *) files;
        memcpy(files + bytes, c->names, c->name_bytes);
        write_status(c->f, c->p, stack->regs);
        write_note(c->f, NT_FILE, files, bytes + c->name_bytes);
        return write_auxv(c->f, c->p);
}

/* What cannot be read stays zero. */
static int write_memory(struct core *c, Elf64_Phdr *segment, uint64_t *position) {
        _cleanup_free_ uint8_t *chunk = malloc(CHUNK_BYTES);

        if (!chunk)
                return -ENOMEM;
        segment->p_offset = *position;
        for (uint64_t at = 0; at < segment->p_filesz; at += CHUNK_BYTES) {
                size_t bytes = MIN(segment->p_filesz - at, (uint64_t) CHUNK_BYTES);

                memset(chunk, 0, bytes);
                (void) process_vm_readv(c->p->pid, &(struct iovec){ chunk, bytes }, 1,
                                        &(struct iovec){ (void *) (segment->p_vaddr + at), bytes }, 1, 0);
                fwrite(chunk, bytes, 1, c->f);
        }
        *position += segment->p_filesz;
        return 0;
}

static int write_all(struct core *c, const struct unwind_stack *stack) {
        Elf64_Ehdr header = {
                .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
                .e_type = ET_CORE,
                .e_machine = EM_X86_64,
                .e_version = EV_CURRENT,
                .e_phoff = sizeof(header),
                .e_ehsize = sizeof(header),
                .e_phentsize = sizeof(Elf64_Phdr),
                .e_phnum = (uint16_t) (c->segment_count + 1),
        };
        Elf64_Phdr notes = { .p_type = PT_NOTE,
                             .p_offset = sizeof(header) + header.e_phnum * sizeof(notes) };
        uint64_t position;
        int r;

        fseek(c->f, (long) notes.p_offset, SEEK_SET);
        r = write_notes(c, stack);
        if (r < 0)
                return r;
        notes.p_filesz = (uint64_t) ftell(c->f) - notes.p_offset;
        position = (notes.p_offset + notes.p_filesz + STACK_PAGE - 1) / STACK_PAGE * STACK_PAGE;
        fseek(c->f, (long) position, SEEK_SET);
        for (size_t i = 0; i < c->segment_count; i++) {
                r = write_memory(c, &c->segments[i], &position);
                if (r < 0)
                        return r;
        }

        rewind(c->f);
        fwrite(&header, sizeof(header), 1, c->f);
        fwrite(&notes, sizeof(notes), 1, c->f);
        fwrite(c->segments, sizeof(*c->segments), c->segment_count, c->f);
        return fflush(c->f) == 0 && !ferror(c->f) ? 0 : -EIO;
}

int core_write(const char *path, const struct process *p, const struct unwind_stack *stack) {
        _cleanup_free_ struct core *c = calloc(1, sizeof(*c));
        int r;

        if (!c)
                return -ENOMEM;
        c->p = p;
        c->f = fopen(path, "we");
        if (!c->f)
                return -errno;
        r = add_mappings(c);
        if (r == 0) {
                add_stack(c, stack->regs[DWARF_RSP]);
                r = write_all(c, stack);
        }
        core_done(c);
        return r;
}
