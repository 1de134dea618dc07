/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolize/expression.h"

#include <dwarf.h>
#include <string.h>

static bool in_hole(const struct stack_range *range, uint64_t address) {
        uint64_t page = address / STACK_PAGE - range->address / STACK_PAGE;

        return page < 32 && range->holes >> page & 1;
}

bool stack_memory_read(const struct stack_memory *m, uint64_t address, size_t bytes, uint64_t *ret) {
        for (size_t i = 0; i < STACK_RANGES; i++) {
                const struct stack_range *range = &m->ranges[i];
                uint64_t offset = address - range->address; /* below the range: huge */
                uint64_t value = 0;

                if (offset >= range->size || bytes > range->size - offset)
                        continue;
                if (range->holes && (in_hole(range, address) || in_hole(range, address + bytes - 1)))
                        return false;
                memcpy(&value, range->bytes + offset, bytes);
                *ret = value;
                return true;
        }

        return false;
}

struct evaluation {
        const uint8_t *code;
        size_t at, end;
        const struct registers *registers;
        const struct stack_memory *memory;
        enum expression_result result;
        unsigned depth;
        uint64_t stack[EXPRESSION_STACK_MAX];
};

static void fail(struct evaluation *e, enum expression_result result) {
        if (e->result == EXPRESSION_OK)
                e->result = result;
}

static void push(struct evaluation *e, uint64_t value) {
        if (e->depth == EXPRESSION_STACK_MAX)
                fail(e, EXPRESSION_UNSUPPORTED);
        else
                e->stack[e->depth++] = value;
}

/* The entry `below` the top. */
static uint64_t peek(struct evaluation *e, uint64_t below) {
        if (below >= e->depth) {
                fail(e, EXPRESSION_UNSUPPORTED);
                return 0;
        }
        return e->stack[e->depth - 1 - below];
}

static uint64_t pop(struct evaluation *e) {
        uint64_t value = peek(e, 0);

        if (e->depth > 0)
                e->depth--;
        return value;
}

static uint64_t take_fixed(struct evaluation *e, size_t bytes) {
        uint64_t value = 0;

        if (bytes > e->end - e->at) {
                fail(e, EXPRESSION_UNSUPPORTED);
                e->at = e->end;
                return 0;
        }
        memcpy(&value, e->code + e->at, bytes);
        e->at += bytes;
        return value;
}

/* sign: extend the last bit. */
static uint64_t take_leb(struct evaluation *e, bool sign) {
        uint64_t value = 0;
        unsigned shift = 0;
        uint8_t byte;

        do {
                byte = (uint8_t) take_fixed(e, 1);
                if (shift < 64)
                        value |= (uint64_t) (byte & 0x7f) << shift;
                shift += 7;
        } while (byte & 0x80);

        if (sign && (byte & 0x40) && shift < 64)
                value |= ~UINT64_C(0) << shift;
        return value;
}

static void push_register(struct evaluation *e, uint64_t reg, uint64_t offset) {
        if (reg >= REG_COUNT || !(e->registers->valid & UINT32_C(1) << reg))
                fail(e, EXPRESSION_UNSUPPORTED);
        else
                push(e, e->registers->value[reg] + offset);
}

static void dereference(struct evaluation *e, size_t bytes) {
        uint64_t address = pop(e), value = 0;

        if (bytes == 0 || bytes > 8)
                fail(e, EXPRESSION_UNSUPPORTED);
        else if (e->result == EXPRESSION_OK && !stack_memory_read(e->memory, address, bytes, &value))
                fail(e, EXPRESSION_NOT_COPIED);
        push(e, value);
}

static void jump(struct evaluation *e, bool taken) {
        int64_t distance = (int16_t) take_fixed(e, 2);
        int64_t target = (int64_t) e->at + distance;

        if (!taken)
                return;
        if (target < 0 || (uint64_t) target > e->end)
                fail(e, EXPRESSION_UNSUPPORTED);
        else
                e->at = (size_t) target;
}

static void rotate(struct evaluation *e) {
        uint64_t first = pop(e), second = pop(e), third = pop(e);

        push(e, first);
        push(e, third);
        push(e, second);
}

static bool run_constant(struct evaluation *e, uint8_t op) {
        switch (op) {
        case DW_OP_const1u: push(e, take_fixed(e, 1)); return true;
        case DW_OP_const1s: push(e, (uint64_t) (int8_t) take_fixed(e, 1)); return true;
        case DW_OP_const2u: push(e, take_fixed(e, 2)); return true;
        case DW_OP_const2s: push(e, (uint64_t) (int16_t) take_fixed(e, 2)); return true;
        case DW_OP_const4u: push(e, take_fixed(e, 4)); return true;
        case DW_OP_const4s: push(e, (uint64_t) (int32_t) take_fixed(e, 4)); return true;
        case DW_OP_const8u:
        case DW_OP_const8s: push(e, take_fixed(e, 8)); return true;
        case DW_OP_constu: push(e, take_leb(e, false)); return true;
        case DW_OP_consts: push(e, take_leb(e, true)); return true;
        default: return false;
        }
}

static bool run_stack(struct evaluation *e, uint8_t op) {
        uint64_t reg, a, b;

        switch (op) {
        case DW_OP_nop: return true;
        case DW_OP_dup: push(e, peek(e, 0)); return true;
        case DW_OP_drop: pop(e); return true;
        case DW_OP_over: push(e, peek(e, 1)); return true;
        case DW_OP_pick: push(e, peek(e, take_fixed(e, 1))); return true;
        case DW_OP_swap:
                a = pop(e);
                b = pop(e);
                push(e, a);
                push(e, b);
                return true;
        case DW_OP_rot: rotate(e); return true;
        case DW_OP_deref: dereference(e, 8); return true;
        case DW_OP_deref_size: dereference(e, take_fixed(e, 1)); return true;
        case DW_OP_bregx:
                reg = take_leb(e, false);
                push_register(e, reg, take_leb(e, true));
                return true;
        case DW_OP_skip: jump(e, true); return true;
        case DW_OP_bra: jump(e, pop(e) != 0); return true;
        default: return false;
        }
}

static bool run_unary(struct evaluation *e, uint8_t op) {
        uint64_t a;

        switch (op) {
        case DW_OP_abs:
                a = pop(e);
                push(e, (int64_t) a < 0 ? -a : a);
                return true;
        case DW_OP_neg: push(e, -pop(e)); return true;
        case DW_OP_not: push(e, ~pop(e)); return true;
        case DW_OP_plus_uconst:
                a = pop(e);
                push(e, a + take_leb(e, false));
                return true;
        default: return false;
        }
}

static uint64_t shift_arithmetic(uint64_t value, uint64_t count) {
        uint64_t bits = count < 63 ? count : 63;

        return (uint64_t) ((int64_t) value >> bits);
}

static uint64_t divide(struct evaluation *e, uint64_t a, uint64_t b) {
        if (b == 0 || (a == (uint64_t) INT64_MIN && b == UINT64_MAX)) {
                fail(e, EXPRESSION_UNSUPPORTED);
                return 0;
        }
        return (uint64_t) ((int64_t) a / (int64_t) b);
}

static uint64_t modulo(struct evaluation *e, uint64_t a, uint64_t b) {
        if (b == 0) {
                fail(e, EXPRESSION_UNSUPPORTED);
                return 0;
        }
        return a % b;
}

/* a is below b on the stack. Comparisons are signed (DWARF 5, section 2.5.1.4). */
static bool run_binary(struct evaluation *e, uint8_t op) {
        uint64_t b = peek(e, 0), a = peek(e, 1), value;
        int64_t sa = (int64_t) a, sb = (int64_t) b;

        switch (op) {
        case DW_OP_and: value = a & b; break;
        case DW_OP_or: value = a | b; break;
        case DW_OP_xor: value = a ^ b; break;
        case DW_OP_plus: value = a + b; break;
        case DW_OP_minus: value = a - b; break;
        case DW_OP_mul: value = a * b; break;
        case DW_OP_div: value = divide(e, a, b); break;
        case DW_OP_mod: value = modulo(e, a, b); break;
        case DW_OP_shl: value = b < 64 ? a << b : 0; break;
        case DW_OP_shr: value = b < 64 ? a >> b : 0; break;
        case DW_OP_shra: value = shift_arithmetic(a, b); break;
        case DW_OP_eq: value = a == b; break;
        case DW_OP_ne: value = a != b; break;
        case DW_OP_ge: value = sa >= sb; break;
        case DW_OP_gt: value = sa > sb; break;
        case DW_OP_le: value = sa <= sb; break;
        case DW_OP_lt: value = sa < sb; break;
        default: fail(e, EXPRESSION_UNSUPPORTED); return false;
        }

        pop(e);
        pop(e);
        push(e, value);
        return true;
}

static void run_one(struct evaluation *e) {
        uint8_t op = (uint8_t) take_fixed(e, 1);

        if (op >= DW_OP_lit0 && op <= DW_OP_lit31)
                push(e, op - DW_OP_lit0);
        else if (op >= DW_OP_breg0 && op <= DW_OP_breg31)
                push_register(e, op - DW_OP_breg0, take_leb(e, true));
        else if (!run_constant(e, op) && !run_stack(e, op) && !run_unary(e, op))
                run_binary(e, op);
}

enum expression_result expression_run(const uint8_t *code, size_t bytes, const struct registers *registers,
                                      const struct stack_memory *memory, const uint64_t *cfa,
                                      uint64_t *ret) {
        struct evaluation e; /* its stack is filled as far as it is used */
        uint64_t value;

        e.code = code;
        e.at = 0;
        e.end = bytes;
        e.registers = registers;
        e.memory = memory;
        e.result = EXPRESSION_OK;
        e.depth = 0;
        if (cfa)
                push(&e, *cfa);

        for (unsigned steps = 0; e.at < e.end && e.result == EXPRESSION_OK; steps++) {
                if (steps == EXPRESSION_STEPS_MAX)
                        return EXPRESSION_UNSUPPORTED;
                run_one(&e);
        }

        value = pop(&e);
        if (e.result == EXPRESSION_OK)
                *ret = value;
        return e.result;
}
