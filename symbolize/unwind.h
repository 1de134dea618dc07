/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/macro.h"
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
int unwind_table_new(const struct elf_image *image, const struct elf_image *debug,
                     struct unwind_table **ret);
struct unwind_table *unwind_table_free(struct unwind_table *t);
DEFINE_CLEANUP(struct unwind_table *, unwind_table_free);
size_t unwind_table_bytes(const struct unwind_table *t); /* memory held */

/* One executable mapping of a process, as the unwinder needs it. */
struct unwind_mapping {
        uint64_t start, end; /* addresses in the process */
        uint64_t bias; /* address - bias = virtual address in the module's ELF file */
        uint64_t offset; /* file offset of `start` */
        uint32_t module; /* index of REC_MODULES */
        const struct unwind_table *table; /* NULL: no CFI (JIT code): frame pointers */
        const struct elf_image *image; /* to look at code bytes (leaf check, prologues); NULL: not */
};

/* Where is an address mapped? Fills *ret and is true, or false. */
typedef bool (*unwind_find_fn)(void *userdata, uint64_t address, struct unwind_mapping *ret);

struct unwind_stack {
        uint64_t regs[REG_COUNT];
        uint32_t flags; /* enum sample_flags */
        const uint8_t *bytes; /* from regs[DWARF_RSP] upwards */
        size_t size;
        uint32_t holes; /* bit n: the page n above that of the first byte was not there */
        /* On an alternate signal stack: a copy of the stack that the signal interrupted; second_size 0:
         * none. */
        uint64_t second_address;
        const uint8_t *second;
        size_t second_size;
        uint32_t second_holes;
};

struct unwind_frame {
        /* Inside the instruction that the frame is at: for the innermost and for interrupted frames the
         * pc, for callers the return address - 1, in a system call the pc - 1. */
        uint64_t address;
        uint64_t offset; /* file offset of it, or the address when module is REC_NONE */
        uint32_t module;
        uint32_t how; /* enum rec_frame_how */
};

enum { UNWIND_DEPTH_MAX = 1024 };

/*
 * Innermost first; *ret_count ≤ max frames, at most UNWIND_DEPTH_MAX. Returns enum rec_stack_end.
 * Allocates nothing.
 *
 * COMPLETE means that a root was reached: a frame whose return address is undefined by CFI or 0, the
 * entry of the program (no CFI, rbp 0, argc and argv at SP), the end of a frame-pointer chain, a thread
 * that has not run yet. A frame whose code has no CFI is left by the frame pointer or, innermost, by the
 * return address at SP; such a return address is believed only behind a call instruction (code without
 * image: in an executable mapping).
 */
uint32_t unwind(const struct unwind_stack *stack, unwind_find_fn find, void *userdata,
                struct unwind_frame *ret, size_t max, size_t *ret_count);
