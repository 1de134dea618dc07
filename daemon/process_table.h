/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/macro.h"
#include "proto/recording.h"

/*
 * The processes of one capture, in the order in which they appeared: a parent's row is before its children's.
 * Pids are those of the daemon's namespace and may be used again; a pid means the youngest process that has it.
 */
struct process_table;

enum { PROCESSES_MAX = 65536 };

struct process {
        /* Texts of the row are numbers of the caller's own table (text_pool.h). */
        struct rec_process row;
        uint32_t parent; /* index, or REC_NONE */
        uint32_t space; /* address space, the worker's number */
        uint32_t root; /* pinned root, or REC_NONE */
        bool joined; /* not forked by a member: systemd's own child */
        bool in_exec; /* its new image is being mapped, and what it is called is not known yet */
        uint32_t samples;
};

struct process_table *process_table_new(void); /* NULL: no memory */
struct process_table *process_table_free(struct process_table *t); /* NULL is fine */
DEFINE_CLEANUP(struct process_table *, process_table_free);

/* Index of the new row; REC_NONE: PROCESSES_MAX or no memory. parent: an index or REC_NONE. */
uint32_t process_table_add(struct process_table *t, uint32_t pid, uint32_t parent, uint64_t begin_ns);
/* The youngest with this pid, dead or alive; REC_NONE. */
uint32_t process_table_find(const struct process_table *t, uint32_t pid);
/* Valid until the next add. index < count. */
struct process *process_table_get(struct process_table *t, uint32_t index);
uint32_t process_table_count(const struct process_table *t);

/* The slot of the youngest process with that pid, also of one that appears later. */
void process_table_set_slot(struct process_table *t, uint32_t pid, enum rec_slot slot);
/* Gives the slots to the rows: children have their parent's unless they have their own. */
void process_table_spread_slots(struct process_table *t);
