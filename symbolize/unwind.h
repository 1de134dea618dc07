/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/event.h"
#include "proto/recording.h"
#include "symbolize/elf_image.h"

/*
 * Stacks from copies: registers and the bytes from SP upwards, unwound by compact tables made once per
 * module from .eh_frame (or the .debug_frame of its debug file). Never invents a frame: a stack that cannot
 * be finished says why it ended.
 */

/* The rules of one module: rows sorted by address, equal rules shared. */
struct unwind_table;

/* image is borrowed and only read during the call. debug: image of its debug file, for .debug_frame; may be
 * NULL. An image without any CFI gives an empty table. -EBADMSG: CFI that runs out of its section (rows
 * found before are not used); -ENOMEM. */
int unwind_table_new(const struct elf_image *image, const struct elf_image *debug, struct unwind_table **ret);
struct unwind_table *unwind_table_free(struct unwind_table *t);
size_t unwind_table_bytes(const struct unwind_table *t);        /* memory held */

/* One executable mapping of a process, as the unwinder needs it. */
struct unwind_mapping {
        uint64_t start, end;            /* addresses in the process */
        uint64_t bias;                  /* address - bias = virtual address in the module's ELF file */
        uint64_t offset;                /* file offset of `start` */
        uint32_t module;                /* index of REC_MODULES */
        const struct unwind_table *table;       /* NULL: no CFI (JIT code): frame pointers */
        const struct elf_image *image;  /* to look at code bytes (leaf check, prologues); NULL: not */
};

/* Where is an address mapped? Fills *ret and is true, or false. */
typedef bool (*unwind_find_fn)(void *userdata, uint64_t address, struct unwind_mapping *ret);

struct unwind_stack {
        uint64_t regs[REG_COUNT];
        uint32_t flags;                 /* enum sample_flags: in a system call the pc is a return address? see .c */
        const uint8_t *bytes;           /* from regs[DWARF_RSP] upwards */
        size_t size;
};

struct unwind_frame {
        uint64_t address;               /* for the innermost and for interrupted frames the pc, else return
                                           address - 1 (inside the call) */
        uint64_t offset;                /* file offset of it, or the address when module is REC_NONE */
        uint32_t module;
        uint32_t how;                   /* enum rec_frame_how */
};

enum { UNWIND_DEPTH_MAX = 1024 };

/* Innermost first; *ret_count ≤ max frames. Returns enum rec_stack_end. Allocates nothing. */
uint32_t unwind(const struct unwind_stack *stack, unwind_find_fn find, void *userdata, struct unwind_frame *ret,
                size_t max, size_t *ret_count);
