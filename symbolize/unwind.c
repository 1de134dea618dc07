/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolize/unwind.h"

#include <string.h>

#include "common/macro.h"
#include "symbolize/expression.h"
#include "symbolize/unwind_table.h"
#include "symbolize/x86_code.h"

#define BIT(reg) (UINT32_C(1) << (reg))

/* Their values are the caller's too, unless CFI says where those are. */
#define CALLEE_SAVED                                                                                        \
        (BIT(DWARF_RBX) | BIT(DWARF_RBP) | BIT(DWARF_R12) | BIT(DWARF_R13) | BIT(DWARF_R14) | BIT(DWARF_R15))
#define ALL_REGISTERS (BIT(REG_COUNT) - 1)

struct walk {
        unwind_find_fn find;
        void *userdata;
        uint32_t flags; /* of the stack */
        struct stack_memory memory;

        /* the current frame */
        struct registers regs;
        uint64_t address; /* as struct unwind_frame says */
        struct unwind_mapping here; /* in which it is; a first guess for the next one */
        bool interrupted; /* the thread was at the pc, it is no return address */
        uint32_t how; /* enum rec_frame_how */

        uint32_t end; /* enum rec_stack_end, when there is no further frame */
};

static bool finish(struct walk *w, uint32_t end) {
        w->end = end;
        return false;
}

/* Where the copy ends, and so must the walk. */
static bool finish_unread(struct walk *w) {
        bool unreadable =
                w->flags & SAMPLE_STACK_FAULT || w->memory.ranges[0].holes || w->memory.ranges[1].holes;

        return finish(w, unreadable ? REC_STACK_READ_FAULT : REC_STACK_COPY_ENDED);
}

static bool read_word(const struct walk *w, uint64_t address, uint64_t *ret) {
        return stack_memory_read(&w->memory, address, 8, ret);
}

static bool find_mapping(const struct walk *w, uint64_t address, struct unwind_mapping *ret) {
        if (address >= w->here.start && address < w->here.end) {
                *ret = w->here;
                return true;
        }
        return w->find(w->userdata, address, ret);
}

/* `bytes` of code in a mapping, NULL when they cannot be looked at. */
static const uint8_t *code_at(const struct unwind_mapping *m, uint64_t address, size_t bytes) {
        return m->image ? elf_image_at(m->image, address - m->bias, bytes) : NULL;
}

/* As many bytes of code as there are at the pc, at most X86_EPILOGUE_BYTES. */
static const uint8_t *code_here(const struct walk *w, size_t *ret_bytes) {
        static const uint8_t sizes[] = { X86_EPILOGUE_BYTES, X86_SIGRETURN_BYTES, 4, 1 };

        for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
                const uint8_t *code = code_at(&w->here, w->regs.value[DWARF_RIP], sizes[i]);

                if (code) {
                        *ret_bytes = sizes[i];
                        return code;
                }
        }

        return NULL;
}

/* May a call have pushed this address? Code without an image is given the benefit of the doubt only if
 * `unseen`. */
static bool is_return_address(const struct walk *w, uint64_t address, bool unseen) {
        struct unwind_mapping m;
        const uint8_t *code;

        if (!find_mapping(w, address - 1, &m))
                return false;
        if (!m.image)
                return unseen;
        code = code_at(&m, address - X86_CALL_BYTES, X86_CALL_BYTES);
        if (code && x86_call_ends(code, X86_CALL_BYTES))
                return true;
        /* A signal handler was not called, the kernel gives it this one. */
        return find_mapping(w, address, &m) && (code = code_at(&m, address, X86_SIGRETURN_BYTES)) &&
               x86_is_sigreturn(code, X86_SIGRETURN_BYTES);
}

/* Goes to the caller, whose registers are in w->regs. */
static bool enter_caller(struct walk *w, uint32_t how) {
        if (w->regs.value[DWARF_RIP] == 0)
                return finish(w, REC_STACK_COMPLETE);

        w->regs.valid &= CALLEE_SAVED | BIT(DWARF_RSP) | BIT(DWARF_RIP);
        w->interrupted = false;
        w->address = w->regs.value[DWARF_RIP] - 1;
        w->how = how;
        return true;
}

/* Goes to the frame that a signal interrupted. */
static bool enter_interrupted(struct walk *w) {
        if (w->regs.value[DWARF_RIP] == 0)
                return finish(w, REC_STACK_NO_CFI);

        w->interrupted = true;
        w->address = w->regs.value[DWARF_RIP];
        w->how = REC_HOW_SIGNAL;
        return true;
}

/* ---- with CFI ---- */

static bool run_expression(struct walk *w, uint32_t pool_offset, const uint64_t *cfa, uint64_t *ret) {
        size_t bytes;
        const uint8_t *code = unwind_table_pool(w->here.table, pool_offset, &bytes);

        switch (expression_run(code, bytes, &w->regs, &w->memory, cfa, ret)) {
        case EXPRESSION_OK: return true;
        case EXPRESSION_NOT_COPIED: return finish_unread(w);
        default: return finish(w, REC_STACK_NO_CFI);
        }
}

static bool compute_cfa(struct walk *w, const struct unwind_rule *rule, uint64_t *ret) {
        uint64_t cfa;

        if (rule->cfa_register == CFI_CFA_EXPRESSION) {
                if (!run_expression(w, (uint32_t) rule->cfa_value, NULL, &cfa))
                        return false;
        } else {
                if (!(w->regs.valid & BIT(rule->cfa_register)))
                        return finish(w, REC_STACK_NO_CFI);
                cfa = w->regs.value[rule->cfa_register] + (uint64_t) (int64_t) rule->cfa_value;
        }

        /* A caller's frame is above its callee's: this ends every loop. Only a thread that has just
         * popped its return address into a register (vfork) is level with its caller. The kernel may
         * change the stack. */
        if (!(rule->flags & UNWIND_RULE_SIGNAL) &&
            (cfa < w->regs.value[DWARF_RSP] || (cfa == w->regs.value[DWARF_RSP] && !w->interrupted)))
                return finish(w, REC_STACK_NO_CFI);

        *ret = cfa;
        return true;
}

/* True: *ret is the value; false: it is not known, and w->end says why. */
static bool apply_extra(struct walk *w, const struct unwind_extra *extra, uint64_t cfa, uint64_t *ret) {
        uint64_t value = (uint64_t) (int64_t) extra->value;

        switch (extra->kind) {
        case CFI_OFFSET: return read_word(w, cfa + value, ret) || finish_unread(w);
        case CFI_VAL_OFFSET: *ret = cfa + value; return true;
        case CFI_SAME:
                *ret = w->regs.value[extra->reg];
                return w->regs.valid & BIT(extra->reg) || finish(w, REC_STACK_NO_CFI);
        case CFI_REGISTER:
                *ret = w->regs.value[value];
                return w->regs.valid & BIT(value) || finish(w, REC_STACK_NO_CFI);
        case CFI_EXPRESSION:
                if (!run_expression(w, (uint32_t) extra->value, &cfa, &value))
                        return false;
                return read_word(w, value, ret) || finish_unread(w);
        case CFI_VAL_EXPRESSION: return run_expression(w, (uint32_t) extra->value, &cfa, ret);
        default: return finish(w, REC_STACK_NO_CFI);
        }
}

/* Registers of the caller from the extras of a rule into `next`, from the ones of the current frame.
 * Without the return address and the stack pointer there is no caller; other registers may stay unknown. */
static bool apply_extras(struct walk *w, const struct unwind_rule *rule, uint64_t cfa,
                         struct registers *next) {
        size_t bytes;
        const uint8_t *extras = unwind_table_pool(w->here.table, rule->extra, &bytes);

        for (size_t at = 0; at < bytes; at += sizeof(struct unwind_extra)) {
                struct unwind_extra extra;
                uint64_t value;

                memcpy(&extra, extras + at, sizeof(extra));
                if (apply_extra(w, &extra, cfa, &value)) {
                        next->value[extra.reg] = value;
                        next->valid |= BIT(extra.reg);
                } else if (extra.reg == DWARF_RIP || extra.reg == DWARF_RSP)
                        return false;
                else
                        next->valid &= ~BIT(extra.reg);
        }

        return true;
}

/* Compilers do not say that a register was popped again: a place below SP, where nothing is safe, means
 * that the register has its old value back. */
static void apply_saved(const struct walk *w, const struct unwind_rule *rule, uint64_t cfa,
                        struct registers *next) {
        uint64_t sp = w->regs.value[DWARF_RSP];

        for (size_t i = 0; i < UNWIND_SAVED_COUNT; i++) {
                uint8_t reg = unwind_saved_register[i];
                uint64_t place = cfa + (uint64_t) (int64_t) rule->saved[i];

                if (rule->saved[i] == 0 || place < sp)
                        continue;
                if (read_word(w, place, &next->value[reg]))
                        next->valid |= BIT(reg);
                else
                        next->valid &= ~BIT(reg);
        }
}

/* The rules of extras are all about the registers of the current frame, so the caller's are made beside
 * them. */
static bool apply_unusual_rule(struct walk *w, const struct unwind_rule *rule, uint64_t cfa) {
        struct registers next = w->regs;
        uint64_t return_address;

        next.valid &= CALLEE_SAVED;
        if (read_word(w, cfa - 8, &return_address)) {
                next.value[DWARF_RIP] = return_address;
                next.valid |= BIT(DWARF_RIP);
        }
        next.value[DWARF_RSP] = cfa;
        next.valid |= BIT(DWARF_RSP);
        apply_saved(w, rule, cfa, &next);
        if (!apply_extras(w, rule, cfa, &next))
                return false;
        if (!(next.valid & BIT(DWARF_RIP)))
                return finish_unread(w);

        w->regs = next;
        return true;
}

static bool step_by_rule(struct walk *w, const struct unwind_rule *rule) {
        uint64_t cfa, return_address;

        if (rule->flags & UNWIND_RULE_ROOT)
                return finish(w, REC_STACK_COMPLETE);
        if (!compute_cfa(w, rule, &cfa))
                return false;

        if (rule->extra != 0) {
                if (!apply_unusual_rule(w, rule, cfa))
                        return false;
        } else {
                if (!read_word(w, cfa - 8, &return_address))
                        return finish_unread(w);
                apply_saved(w, rule, cfa, &w->regs);
                w->regs.value[DWARF_RSP] = cfa;
                w->regs.value[DWARF_RIP] = return_address;
        }

        return rule->flags & UNWIND_RULE_SIGNAL ? enter_interrupted(w) : enter_caller(w, REC_HOW_CFI);
}

/* ---- without CFI ---- */

/* What the kernel leaves at SP when it calls a handler: the return address, which brought us here, is
 * popped, so this is struct ucontext; uc_mcontext is 40 bytes inside
 * (arch/x86/include/uapi/asm/{ucontext,sigcontext}.h). */
static bool step_signal_frame(struct walk *w) {
        static const uint8_t order[] = {
                DWARF_R8,  DWARF_R9,  DWARF_R10, DWARF_R11, DWARF_R12, DWARF_R13,
                DWARF_R14, DWARF_R15, DWARF_RDI, DWARF_RSI, DWARF_RBP, DWARF_RBX,
                DWARF_RDX, DWARF_RAX, DWARF_RCX, DWARF_RSP, DWARF_RIP,
        };
        uint64_t context = w->regs.value[DWARF_RSP] + 40;
        struct registers next = { .valid = ALL_REGISTERS };

        for (size_t i = 0; i < ARRAY_SIZE(order); i++)
                if (!read_word(w, context + 8 * i, &next.value[order[i]]))
                        return finish_unread(w);

        w->regs = next;
        return enter_interrupted(w);
}

/* A function that has not moved SP yet, or never does: the return address is at SP, or one push above. */
static bool try_leaf(struct walk *w) {
        struct registers *r = &w->regs;
        size_t bytes;
        const uint8_t *code = code_here(w, &bytes);
        int pushed = code ? x86_prologue(code_at(&w->here, r->value[DWARF_RIP] - 1, 1), code, bytes) : -1;
        uint64_t place = r->value[DWARF_RSP] + (uint64_t) MAX(pushed, 0), return_address;

        if (!read_word(w, place, &return_address) || !is_return_address(w, return_address, pushed >= 0))
                return false;
        if (pushed > 0 && !read_word(w, r->value[DWARF_RSP], &r->value[DWARF_RBP]))
                return false;

        r->value[DWARF_RIP] = return_address;
        r->value[DWARF_RSP] = place + 8;
        return true;
}

/* The first frame of a goroutine "returns" to where nobody called from. */
static bool is_goexit(const struct walk *w, uint64_t address) {
        struct unwind_mapping m;
        const uint8_t *code;

        if (!find_mapping(w, address, &m))
                return false;
        code = code_at(&m, address - 1, X86_GOEXIT_BYTES);
        return code && x86_is_goexit(code, X86_GOEXIT_BYTES);
}

static bool try_frame_pointer(struct walk *w) {
        struct registers *r = &w->regs;
        uint64_t rbp = r->value[DWARF_RBP], saved, return_address;

        if (!(r->valid & BIT(DWARF_RBP)) || rbp % 8 != 0 || rbp < r->value[DWARF_RSP] ||
            !read_word(w, rbp, &saved) || !read_word(w, rbp + 8, &return_address))
                return false;
        if (!(return_address == 0 && saved == 0) && !is_return_address(w, return_address, true) &&
            !(saved == 0 && is_goexit(w, return_address)))
                return false;

        r->value[DWARF_RBP] = saved;
        r->value[DWARF_RIP] = return_address;
        r->value[DWARF_RSP] = rbp + 16;
        return true;
}

/* As the kernel starts a program: argc, argv[0] … NULL. A whole copy may end behind argc. */
static bool is_initial_stack(const struct walk *w) {
        enum { ARGUMENTS_MAX = 1 << 21 }; /* more do not fit into 6 MB (_STK_LIM / 4 * 3) */
        uint64_t sp = w->regs.value[DWARF_RSP], argc, argument, end;

        if (!read_word(w, sp, &argc) || argc > ARGUMENTS_MAX)
                return false;
        if (!read_word(w, sp + 8, &argument))
                return !(w->flags & (SAMPLE_STACK_CUT | SAMPLE_STACK_FAULT));
        if (argc > 0 && argument <= sp)
                return false;
        return !read_word(w, sp + 8 + 8 * argc, &end) || end == 0;
}

/* A thread between clone(2) and its first own instruction: glibc gives that place no CFI. It is behind the system call,
 * or behind one or two of the instructions that follow there: test %rax,%rax; jl ERROR; je THREAD. */
static bool is_newborn(const struct walk *w) {
        static const uint8_t after_clone[] = { 0x0f, 0x05, 0x48, 0x85, 0xc0, 0x7c };
        static const uint8_t places[] = { 2, 5, 7 };

        if (!w->interrupted || !(w->regs.valid & BIT(DWARF_RAX)) || w->regs.value[DWARF_RAX] != 0)
                return false;
        for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
                const uint8_t *code = code_at(&w->here, w->regs.value[DWARF_RIP] - places[i], places[i]);

                if (code && memcmp(code, after_clone, MIN((size_t) places[i], sizeof(after_clone))) == 0)
                        return true;
        }
        return false;
}

static bool is_root_without_cfi(const struct walk *w) {
        if (is_newborn(w))
                return true;
        /* The outermost frame has rbp 0 (System V ABI, 3.4.1), but rbp may also be 0 as any other
         * register. */
        if (!(w->regs.valid & BIT(DWARF_RBP)) || w->regs.value[DWARF_RBP] != 0)
                return false;
        return w->how == REC_HOW_FRAME_POINTER || is_initial_stack(w);
}

/* With a frame pointer into what was cut off, the copy is to blame. */
static bool finish_without_cfi(struct walk *w) {
        uint64_t rbp = w->regs.value[DWARF_RBP],
                 unread = w->memory.ranges[0].address + w->memory.ranges[0].size;
        bool beyond = w->regs.valid & BIT(DWARF_RBP) && rbp % 8 == 0 && rbp + 16 > unread &&
                      rbp - unread < STACK_COPY_MAX;

        if (beyond && w->flags & (SAMPLE_STACK_CUT | SAMPLE_STACK_FAULT))
                return finish_unread(w);
        return finish(w, REC_STACK_NO_CFI);
}

/* Does the rest of the function, from the return address on, only leave it? So ends _init, which has no
 * CFI. */
static bool try_epilogue(struct walk *w) {
        struct registers next = w->regs;
        size_t bytes;
        const uint8_t *code = code_here(w, &bytes);

        if (!code || !x86_run_epilogue(code, bytes, &w->memory, &next) ||
            !is_return_address(w, next.value[DWARF_RIP], false))
                return false;

        w->regs = next;
        return true;
}

/* Code made at run time that reserves a word to align the stack, calls, and returns: the trampolines of CPython
 * 3.12 and 3.13 (Python/asm_trampoline.S), one for each Python function, which neither keep a frame pointer nor
 * have CFI. Nobody has their bytes, so the caller has to prove itself by a call instruction in a file. */
static bool try_trampoline(struct walk *w) {
        struct registers *r = &w->regs;
        uint64_t place = r->value[DWARF_RSP] + 8, return_address;

        if (w->interrupted || w->here.image || !read_word(w, place, &return_address) ||
            !is_return_address(w, return_address, false))
                return false;

        r->value[DWARF_RIP] = return_address;
        r->value[DWARF_RSP] = place + 8;
        return true;
}

/* Whoever comes back to this ends: it has no caller. */
static bool is_exit(const struct walk *w) {
        const uint8_t *code =
                w->interrupted ? NULL : code_at(&w->here, w->regs.value[DWARF_RIP], X86_EXIT_BYTES);

        return code && x86_exits(code, X86_EXIT_BYTES);
}

static bool step_without_cfi(struct walk *w) {
        const uint8_t *code = code_at(&w->here, w->regs.value[DWARF_RIP], X86_SIGRETURN_BYTES);

        if (code && x86_is_sigreturn(code, X86_SIGRETURN_BYTES))
                return step_signal_frame(w);
        if (is_exit(w))
                return finish(w, REC_STACK_COMPLETE);
        if (w->interrupted ? try_leaf(w) : try_epilogue(w))
                return enter_caller(w, REC_HOW_LEAF);
        if (try_frame_pointer(w))
                return enter_caller(w, REC_HOW_FRAME_POINTER);
        if (try_trampoline(w))
                return enter_caller(w, REC_HOW_LEAF);
        if (is_root_without_cfi(w))
                return finish(w, REC_STACK_COMPLETE);
        return finish_without_cfi(w);
}

/* ---- one frame after the other ---- */

/* NULL: no CFI. The return address that the kernel gives a signal handler is the start of a function that
 * nobody calls, so the byte before it is in no FDE, in another function's, or in one that was stretched for
 * such readers. */
static const struct unwind_rule *find_rule(struct walk *w) {
        const struct unwind_table *table = w->here.table;
        uint64_t pc = w->regs.value[DWARF_RIP];
        const struct unwind_rule *rule, *at_pc;

        if (!table)
                return NULL;
        rule = unwind_table_find(table, w->address - w->here.bias);
        if (table->has_signal_frames && w->address != pc) {
                at_pc = unwind_table_find(table, pc - w->here.bias);
                if (at_pc->flags & UNWIND_RULE_SIGNAL) {
                        w->address = pc;
                        rule = at_pc;
                }
        }
        return rule->flags & UNWIND_RULE_NONE ? NULL : rule;
}

/* To the next frame. rule: of the current one. False: there is none, w->end says why. */
static bool step(struct walk *w, const struct unwind_rule *rule) {
        bool known = rule != NULL;

        /* Not all compilers describe epilogues. */
        if (w->interrupted && !(known && rule->flags & (UNWIND_RULE_SIGNAL | UNWIND_RULE_ROOT))) {
                size_t bytes;
                const uint8_t *code = code_here(w, &bytes);

                if (code && x86_run_epilogue(code, bytes, &w->memory, &w->regs))
                        return enter_caller(w, known ? REC_HOW_CFI : REC_HOW_LEAF);
        }

        return known ? step_by_rule(w, rule) : step_without_cfi(w);
}

/* In a system call the pc is behind the instruction, which may be the last one of its function. But a
 * sample may also come when the kernel has already set up a signal handler: then the thread is at the pc. */
static uint64_t innermost_address(const struct walk *w, uint32_t flags) {
        uint64_t pc = w->regs.value[DWARF_RIP];
        struct unwind_mapping m;
        const uint8_t *code;

        if (!(flags & SAMPLE_SYSCALL) || !w->find(w->userdata, pc - 1, &m))
                return pc;
        code = code_at(&m, pc - 2, 2);
        return m.image && !(code && x86_syscall_ends(code, 2)) ? pc : pc - 1;
}

static void begin(struct walk *w, const struct unwind_stack *stack, unwind_find_fn find, void *userdata) {
        w->find = find;
        w->userdata = userdata;
        w->flags = stack->flags;
        w->memory.ranges[0] =
                (struct stack_range){ stack->regs[DWARF_RSP], stack->bytes, stack->size, stack->holes };
        w->memory.ranges[1] = (struct stack_range){ stack->second_address, stack->second, stack->second_size,
                                                    stack->second_holes };
        memcpy(w->regs.value, stack->regs, sizeof(w->regs.value));
        w->regs.valid = ALL_REGISTERS;
        w->address = innermost_address(w, stack->flags);
        w->here = (struct unwind_mapping){};
        w->interrupted = true;
        w->how = REC_HOW_REGS;
        w->end = REC_STACK_NONE;
}

uint32_t unwind(const struct unwind_stack *stack, unwind_find_fn find, void *userdata,
                struct unwind_frame *ret, size_t max, size_t *ret_count) {
        const struct unwind_rule *rule;
        struct walk w;
        bool mapped;

        *ret_count = 0;
        if (stack->flags & SAMPLE_COMPAT)
                return REC_STACK_COMPAT;
        if (stack->flags & SAMPLE_NO_REGS)
                return REC_STACK_NONE;
        if (stack->flags & SAMPLE_GONE)
                return REC_STACK_GONE;

        begin(&w, stack, find, userdata);
        do {
                if (*ret_count == MIN(max, (size_t) UNWIND_DEPTH_MAX))
                        return REC_STACK_DEPTH;

                mapped = find_mapping(&w, w.address, &w.here);
                /* A return address outside all code comes from a stack that was being changed: no frame. */
                if (!mapped && *ret_count > 0)
                        return REC_STACK_NO_MODULE;

                rule = mapped ? find_rule(&w) : NULL;
                ret[(*ret_count)++] = (struct unwind_frame){
                        .address = w.address,
                        .offset = mapped && w.here.module != REC_NONE
                                          ? w.address - w.here.start + w.here.offset
                                          : w.address,
                        .module = mapped ? w.here.module : REC_NONE,
                        .how = w.how,
                };
                if (!mapped)
                        return REC_STACK_NO_MODULE;
        } while (step(&w, rule));

        return w.end;
}
