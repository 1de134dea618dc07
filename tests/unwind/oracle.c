/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unwind/oracle.h"

#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/macro.h"
#include "symbolize/expression.h"

struct oracle {
        Dwfl *dwfl;
        pid_t pid;
        unsigned generation;
        bool attached;
        char program[256]; /* the first mapping: changes with exec */

        /* of the stack that is unwound */
        const struct unwind_stack *stack;
        struct stack_memory memory;
        uint64_t *pcs;
        size_t count, max;
};

/* Only PATH.dbg beside the file, as ours. */
static int find_debuginfo(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr base,
                          const char *file, const char *link, GElf_Word crc, char **ret) {
        if (!file || asprintf(ret, "%s.dbg", file) < 0)
                return -1;
        return open(*ret, O_RDONLY | O_CLOEXEC);
}

static const Dwfl_Callbacks callbacks = {
        .find_elf = dwfl_linux_proc_find_elf,
        .find_debuginfo = find_debuginfo,
};

static pid_t next_thread(Dwfl *dwfl, void *userdata, void **thread) {
        struct oracle *o = userdata;

        if (*thread)
                return 0;
        *thread = o;
        return o->pid;
}

static bool get_thread(Dwfl *dwfl, pid_t tid, void *userdata, void **thread) {
        *thread = userdata;
        return true;
}

static bool read_memory(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *ret, void *userdata) {
        struct oracle *o = userdata;
        uint64_t value;

        if (!stack_memory_read(&o->memory, address, 8, &value))
                return false;
        *ret = value;
        return true;
}

static bool set_registers(Dwfl_Thread *thread, void *userdata) {
        struct oracle *o = userdata;
        Dwarf_Word regs[REG_COUNT];

        for (size_t i = 0; i < REG_COUNT; i++)
                regs[i] = o->stack->regs[i];
        return dwfl_thread_state_registers(thread, 0, REG_COUNT, regs);
}

static const Dwfl_Thread_Callbacks thread_callbacks = {
        .next_thread = next_thread,
        .get_thread = get_thread,
        .memory_read = read_memory,
        .set_initial_registers = set_registers,
};

static bool refresh(struct oracle *o, struct process *p) {
        dwfl_report_begin(o->dwfl);
        if (dwfl_linux_proc_report(o->dwfl, p->pid) != 0 || dwfl_report_end(o->dwfl, NULL, NULL) != 0)
                return false;
        if (!o->attached)
                o->attached = dwfl_attach_state(o->dwfl, NULL, p->pid, &thread_callbacks, o);
        o->generation = p->generation;
        return o->attached;
}

/* Attaching holds on to a module, which must not be reported away: an exec needs a new Dwfl. */
static bool program_changed(struct oracle *o, const struct process *p) {
        size_t bytes = MIN((size_t) (strchrnul(p->maps, '\n') - p->maps), sizeof(o->program) - 1);

        if (o->program[0] != 0)
                return strncmp(o->program, p->maps, bytes) != 0;
        memcpy(o->program, p->maps, bytes);
        return false;
}

struct oracle *oracle_get(struct process *p) {
        struct oracle *o = p->oracle;

        if (o && o->generation != p->generation && program_changed(o, p)) {
                oracle_free(p);
                o = NULL;
        }
        if (!o) {
                o = p->oracle = calloc(1, sizeof(*o));
                o->dwfl = dwfl_begin(&callbacks);
                o->pid = p->pid;
                (void) program_changed(o, p);
        }
        if (o->generation != p->generation && !refresh(o, p))
                return NULL;
        return o;
}

void oracle_free(struct process *p) {
        struct oracle *o = p->oracle;

        if (o)
                dwfl_end(o->dwfl);
        free(o);
        p->oracle = NULL;
}

static int on_frame(Dwfl_Frame *frame, void *userdata) {
        struct oracle *o = userdata;
        Dwarf_Addr pc;
        bool interrupted;

        if (o->count == o->max || !dwfl_frame_pc(frame, &pc, &interrupted))
                return DWARF_CB_ABORT;
        o->pcs[o->count++] = interrupted ? pc : pc - 1;
        return DWARF_CB_OK;
}

size_t oracle_unwind(struct oracle *o, const struct unwind_stack *stack, uint64_t *ret, size_t max,
                     bool *ret_complete) {
        o->stack = stack;
        o->memory.ranges[0] = (struct stack_range){ stack->regs[DWARF_RSP], stack->bytes, stack->size };
        o->memory.ranges[1] =
                (struct stack_range){ stack->second_address, stack->second, stack->second_size };
        o->pcs = ret;
        o->count = 0;
        o->max = max;
        *ret_complete = dwfl_getthread_frames(o->dwfl, o->pid, on_frame, o) == 0;
        return o->count;
}
