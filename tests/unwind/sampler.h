/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "symbolize/unwind.h"

/*
 * Stops a program of ours again and again with ptrace(2) and copies registers and stack, as the kernel
 * side of the profiler does. Only for tests: the shipped programs have no such path.
 */

/* A file that is mapped somewhere; kept for all processes. */
struct module {
        char *path;
        struct elf_image *image; /* NULL: not an ELF file */
        struct elf_image *debug; /* PATH.dbg, NULL: not there */
        struct unwind_table *table;
};

struct process {
        pid_t pid;
        char *maps; /* as last read */
        unsigned generation; /* changes with the mappings */
        struct unwind_mapping *mappings;
        size_t mapping_count;
        uint64_t stack_start, stack_end; /* of the first thread */
        void *oracle; /* the caller's */
};

struct sampler_options {
        unsigned samples; /* at most */
        unsigned steps; /* single steps after each stop, each one a sample */
        unsigned gap_us; /* mean time between stops */
        size_t stack_bytes; /* at most */
        bool second; /* off the first thread's own stack: copy that one, too */
};

struct sampler;

/* Borrowed for the call: everything. */
typedef void (*sample_fn)(void *userdata, struct sampler *s, struct process *p,
                          const struct unwind_stack *stack);

/* Runs a program under observation of all its threads and children. 0: it was run and is gone; negative
 * errno. */
int sampler_run(char **argv, const struct sampler_options *options, sample_fn sample, void *userdata);

/* An unwind_find_fn; userdata is struct process. */
bool process_find(void *userdata, uint64_t address, struct unwind_mapping *ret);

const struct module *sampler_module(const struct sampler *s, uint32_t index);
