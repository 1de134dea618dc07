/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/macro.h"
#include "symbolize/build_id.h"

/*
 * An ELF file as strangers write them: mapped read-only, every offset checked before it is followed.
 * x86-64, 64-bit little-endian, ET_EXEC or ET_DYN; sections are optional (they may be stripped off).
 * If the file is truncated while mapped, reading it raises SIGBUS: the worker dies of it and its parent
 * goes on; nobody else may open one.
 */
struct elf_image;

struct elf_segment { /* PT_LOAD */
        uint64_t vaddr, offset, file_bytes, memory_bytes;
        bool executable, writable;
};

struct elf_section {
        const char *name; /* inside the image */
        uint32_t type; /* SHT_* */
        uint64_t flags, vaddr, offset, entry_bytes;
        uint32_t link;
        const uint8_t *data; /* NULL for SHT_NOBITS; as stored: SHF_COMPRESSED is not inflated here */
        size_t bytes;
};

/* Maps fd (borrowed; may be closed afterwards). -EBADMSG: not such an ELF file; -EFBIG; -ENOMEM; errors of mmap(2). */
int elf_image_new(int fd, struct elf_image **ret);
/* The same for files that are not run: ET_REL, as .dwo files and some .dwp are, is taken, too. */
int elf_image_new_any(int fd, struct elf_image **ret);
/* The first over bytes in memory (borrowed, must outlive the image): the vdso, fuzzing. */
int elf_image_from_memory(const void *data, size_t bytes, struct elf_image **ret);
struct elf_image *elf_image_free(struct elf_image *image);
DEFINE_CLEANUP(struct elf_image *, elf_image_free);

unsigned elf_image_segments(const struct elf_image *image, const struct elf_segment **ret);
unsigned elf_image_sections(const struct elf_image *image, const struct elf_section **ret);
/* First section of that name, NULL. */
const struct elf_section *elf_image_section(const struct elf_image *image, const char *name);
/* -ENODATA: none. From PT_NOTE or SHT_NOTE. */
int elf_image_build_id(const struct elf_image *image, struct build_id *ret);
bool elf_image_is_pie(const struct elf_image *image); /* ET_DYN */
/* File offset ↔ virtual address, through the PT_LOAD that holds it (never by .text's delta, SY-10).
 * -ENXIO: in none. */
int elf_image_vaddr(const struct elf_image *image, uint64_t file_offset, uint64_t *ret);
int elf_image_offset(const struct elf_image *image, uint64_t vaddr, uint64_t *ret);
/* `bytes` of file content at a virtual address; NULL when not wholly inside one segment's file part. */
const void *elf_image_at(const struct elf_image *image, uint64_t vaddr, size_t bytes);
/* Gives the memory of a mapped file back to the kernel; what is read again comes from the file. */
void elf_image_forget(const struct elf_image *image);
const uint8_t *elf_image_data(const struct elf_image *image, size_t *ret_bytes);
