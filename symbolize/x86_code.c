/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolize/x86_code.h"

#include <string.h>

/* Bytes of a memory operand with its ModRM byte, 0: a register. */
static size_t operand_bytes(uint8_t modrm, uint8_t sib) {
        uint8_t mod = modrm >> 6, rm = modrm & 7;
        size_t bytes = rm == 4 && mod != 3 ? 2 : 1;

        if (mod == 1)
                return bytes + 1;
        if (mod == 2 || (mod == 0 && rm == 5) || (mod == 0 && rm == 4 && (sib & 7) == 5))
                return bytes + 4;
        return bytes;
}

bool x86_call_ends(const uint8_t *code, size_t bytes) {
        const uint8_t *end = code + bytes;

        if (bytes >= 5 && end[-5] == 0xe8)
                return true;

        /* ff /2, from 2 to 7 bytes long */
        for (size_t length = 2; length <= bytes && length <= X86_CALL_BYTES; length++) {
                const uint8_t *p = end - length;

                if (p[0] == 0xff && (p[1] & 0x38) == 0x10 &&
                    1 + operand_bytes(p[1], length > 2 ? p[2] : 0) == length)
                        return true;
        }

        return false;
}

bool x86_syscall_ends(const uint8_t *code, size_t bytes) {
        return bytes >= 2 && code[bytes - 2] == 0x0f && code[bytes - 1] == 0x05;
}

bool x86_exits(const uint8_t *code, size_t bytes) {
        enum { NR_EXIT = 60, NR_EXIT_GROUP = 231 };
        uint32_t eax = UINT32_MAX;
        size_t at = 0;

        while (at + 2 <= bytes) {
                const uint8_t *p = code + at;

                if (p[0] == 0x0f && p[1] == 0x05)
                        return eax == NR_EXIT || eax == NR_EXIT_GROUP;
                if ((p[0] == 0xb8 || p[0] == 0xbf) && at + 5 <= bytes) { /* mov imm32, eax or edi */
                        if (p[0] == 0xb8)
                                memcpy(&eax, p + 1, sizeof(eax));
                        at += 5;
                } else if (p[0] == 0x31 && (p[1] == 0xc0 || p[1] == 0xff)) { /* xor with itself */
                        if (p[1] == 0xc0)
                                eax = 0;
                        at += 2;
                } else if (p[0] == 0xb0) { /* mov imm8, al */
                        eax = eax == UINT32_MAX ? eax : (eax & ~UINT32_C(0xff)) | p[1];
                        at += 2;
                } else if (p[0] == 0x89 && p[1] == 0xc7) /* mov eax, edi */
                        at += 2;
                else
                        return false;
        }
        return false;
}

bool x86_is_goexit(const uint8_t *code, size_t bytes) {
        return bytes >= X86_GOEXIT_BYTES && code[0] == 0x90 && code[1] == 0xe8 && code[6] == 0x90;
}

bool x86_is_sigreturn(const uint8_t *code, size_t bytes) {
        static const uint8_t sigreturn[X86_SIGRETURN_BYTES] = {
                0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05,
        };

        return bytes >= sizeof(sigreturn) && memcmp(code, sigreturn, sizeof(sigreturn)) == 0;
}

static bool is_move_to_rbp(const uint8_t *code, size_t bytes) {
        return bytes >= 3 && code[0] == 0x48 &&
               ((code[1] == 0x89 && code[2] == 0xe5) || (code[1] == 0x8b && code[2] == 0xec));
}

int x86_prologue(const uint8_t *code_before, const uint8_t *code, size_t bytes) {
        static const uint8_t endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };

        if (bytes >= sizeof(endbr64) && memcmp(code, endbr64, sizeof(endbr64)) == 0)
                return 0;
        if (bytes >= 4 && code[0] == 0x55 && is_move_to_rbp(code + 1, bytes - 1))
                return 0;
        if (code_before && *code_before == 0x55 && is_move_to_rbp(code, bytes))
                return 8;
        return -1;
}

/* ---- epilogues ---- */

static const uint8_t dwarf_number[16] = {
        DWARF_RAX, DWARF_RCX, DWARF_RDX, DWARF_RBX, DWARF_RSP, DWARF_RBP, DWARF_RSI, DWARF_RDI,
        DWARF_R8,  DWARF_R9,  DWARF_R10, DWARF_R11, DWARF_R12, DWARF_R13, DWARF_R14, DWARF_R15,
};

struct epilogue {
        const struct stack_memory *memory;
        struct registers r;
        bool returned;
};

static bool pop(struct epilogue *e, uint8_t reg) {
        uint64_t value;

        if (reg == DWARF_RSP || !stack_memory_read(e->memory, e->r.value[DWARF_RSP], 8, &value))
                return false;

        e->r.value[reg] = value;
        e->r.valid |= UINT32_C(1) << reg;
        e->r.value[DWARF_RSP] += 8;
        return true;
}

/* rsp = base register + offset, upwards only */
static bool set_rsp(struct epilogue *e, uint8_t base, int64_t offset) {
        uint64_t rsp = e->r.value[base] + (uint64_t) offset;

        if (!(e->r.valid & UINT32_C(1) << base) || rsp < e->r.value[DWARF_RSP])
                return false;
        e->r.value[DWARF_RSP] = rsp;
        return true;
}

static int32_t little32(const uint8_t *p) {
        int32_t value;

        memcpy(&value, p, sizeof(value));
        return value;
}

/* Instructions with REX.W that change rsp. Their length, 0: another one. */
static size_t run_wide(struct epilogue *e, const uint8_t *p, size_t bytes) {
        if (bytes >= 4 && p[1] == 0x83 && p[2] == 0xc4) /* add imm8, rsp */
                return set_rsp(e, DWARF_RSP, (int8_t) p[3]) ? 4 : 0;
        if (bytes >= 7 && p[1] == 0x81 && p[2] == 0xc4) /* add imm32, rsp */
                return set_rsp(e, DWARF_RSP, little32(p + 3)) ? 7 : 0;
        if (bytes >= 5 && p[1] == 0x8d && p[2] == 0x64 && p[3] == 0x24) /* lea disp8(rsp), rsp */
                return set_rsp(e, DWARF_RSP, (int8_t) p[4]) ? 5 : 0;
        if (bytes >= 4 && p[1] == 0x8d && p[2] == 0x65) /* lea disp8(rbp), rsp */
                return set_rsp(e, DWARF_RBP, (int8_t) p[3]) ? 4 : 0;
        return 0;
}

/* crti.o's _init calls __gmon_start__ if it is there, and then returns: whatever the branch does, rsp is the same
 * behind it. */
static size_t skip_gmon_start(const uint8_t *p, size_t bytes) {
        static const uint8_t test[] = { 0x48, 0x85, 0xc0 }, call_if[] = { 0x74, 0x02, 0xff, 0xd0 };

        if (bytes >= 7 && p[0] == 0x48 && p[1] == 0x8b && p[2] == 0x05) /* mov __gmon_start__, rax */
                return 7;
        if (bytes >= sizeof(test) && memcmp(p, test, sizeof(test)) == 0)
                return sizeof(test);
        if (bytes >= sizeof(call_if) && memcmp(p, call_if, sizeof(call_if)) == 0)
                return sizeof(call_if);
        return 0;
}

static size_t run_return(struct epilogue *e, size_t length) {
        e->returned = pop(e, DWARF_RIP);
        return e->returned ? length : 0;
}

/* One instruction. Its length, 0: not part of an epilogue, or not enough stack. */
static size_t run_instruction(struct epilogue *e, const uint8_t *p, size_t bytes) {
        static const uint8_t vzeroupper[] = { 0xc5, 0xf8, 0x77 };
        size_t skipped = skip_gmon_start(p, bytes);

        if (skipped > 0)
                return skipped;
        if (p[0] == 0xc3)
                return run_return(e, 1);
        if (bytes >= 2 && (p[0] == 0xf3 || p[0] == 0xf2) && p[1] == 0xc3) /* rep ret, bnd ret */
                return run_return(e, 2);
        if (p[0] >= 0x58 && p[0] <= 0x5f)
                return pop(e, dwarf_number[p[0] - 0x58]) ? 1 : 0;
        if (bytes >= 2 && p[0] == 0x41 && p[1] >= 0x58 && p[1] <= 0x5f)
                return pop(e, dwarf_number[8 + p[1] - 0x58]) ? 2 : 0;
        if (p[0] == 0xc9) /* leave */
                return set_rsp(e, DWARF_RBP, 0) && pop(e, DWARF_RBP) ? 1 : 0;
        if (p[0] == 0x48)
                return run_wide(e, p, bytes);
        if (bytes >= sizeof(vzeroupper) && memcmp(p, vzeroupper, sizeof(vzeroupper)) == 0)
                return sizeof(vzeroupper);
        return 0;
}

/* Most addresses are not in an epilogue: tell before the registers are copied. */
static bool may_be_epilogue(uint8_t first) {
        return (first >= 0x58 && first <= 0x5f) || first == 0x41 || first == 0x48 || first == 0xc3 ||
               first == 0x74 || first == 0xc5 || first == 0xc9 || first == 0xf2 || first == 0xf3;
}

bool x86_run_epilogue(const uint8_t *code, size_t bytes, const struct stack_memory *memory,
                      struct registers *r) {
        struct epilogue e;
        size_t at = 0;

        if (bytes == 0 || !may_be_epilogue(code[0]))
                return false;

        e.memory = memory;
        e.r = *r;
        e.returned = false;
        while (at < bytes && !e.returned) {
                size_t length = run_instruction(&e, code + at, bytes - at);

                if (length == 0)
                        return false;
                at += length;
        }
        if (!e.returned)
                return false;

        *r = e.r;
        return true;
}
