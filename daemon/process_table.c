/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/process_table.h"

#include <stdlib.h>

#include "common/hash.h"

enum { SLOTS_MAX = 256 };

struct told_slot {
        uint32_t pid;
        enum rec_slot slot;
};

struct process_table {
        struct process *processes; /* owned */
        uint32_t count, allocated;
        struct hash *by_pid; /* owned: pid → index */
        struct told_slot slots[SLOTS_MAX];
        uint32_t n_slots;
};

struct process_table *process_table_new(void) {
        _cleanup_(process_table_freep) struct process_table *t = calloc(1, sizeof(*t));

        if (!t)
                return NULL;
        t->by_pid = hash_new();
        if (!t->by_pid)
                return NULL;
        return TAKE_PTR(t);
}

struct process_table *process_table_free(struct process_table *t) {
        if (!t)
                return NULL;
        free(t->processes);
        hash_free(t->by_pid);
        free(t);
        return NULL;
}

static int make_room(struct process_table *t) {
        uint32_t allocated = MAX(t->allocated * 2, 64U);
        struct process *processes;

        if (t->count < t->allocated)
                return 0;
        processes = reallocarray(t->processes, allocated, sizeof(*processes));
        if (!processes)
                return -ENOMEM;
        t->processes = processes;
        t->allocated = allocated;
        return 0;
}

uint32_t process_table_add(struct process_table *t, uint32_t pid, uint32_t parent, uint64_t begin_ns) {
        struct process *process;

        if (t->count == PROCESSES_MAX || make_room(t) < 0)
                return REC_NONE;
        if (hash_put(t->by_pid, &pid, sizeof(pid), t->count) < 0)
                return REC_NONE;
        process = &t->processes[t->count];
        *process = (struct process){
                .row = { .pid = pid, .begin_ns = begin_ns, .program = REC_NONE },
                .parent = parent,
                .root = REC_NONE,
        };
        if (parent != REC_NONE)
                process->row.parent_pid = t->processes[parent].row.pid;
        return t->count++;
}

uint32_t process_table_find(const struct process_table *t, uint32_t pid) {
        uint64_t index;

        return hash_get(t->by_pid, &pid, sizeof(pid), &index) == 0 ? (uint32_t) index : REC_NONE;
}

struct process *process_table_get(struct process_table *t, uint32_t index) {
        return &t->processes[index];
}

uint32_t process_table_count(const struct process_table *t) {
        return t->count;
}

void process_table_set_slot(struct process_table *t, uint32_t pid, enum rec_slot slot) {
        for (uint32_t i = 0; i < t->n_slots; i++) {
                if (t->slots[i].pid == pid) {
                        t->slots[i].slot = slot;
                        return;
                }
        }
        if (t->n_slots < SLOTS_MAX)
                t->slots[t->n_slots++] = (struct told_slot){ pid, slot };
}

void process_table_spread_slots(struct process_table *t) {
        for (uint32_t i = 0; i < t->n_slots; i++) {
                uint32_t index = process_table_find(t, t->slots[i].pid);

                if (index != REC_NONE)
                        t->processes[index].row.slot = t->slots[i].slot;
        }
        for (uint32_t i = 0; i < t->count; i++) {
                struct process *process = &t->processes[i];

                if (process->row.slot == REC_SLOT_UNKNOWN && process->parent != REC_NONE)
                        process->row.slot = t->processes[process->parent].row.slot;
        }
}
