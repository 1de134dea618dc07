/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbolize/expression.h"

/*
 * What x86-64 instructions around a program counter tell about the stack, where no CFI does: the little
 * that can be said without disassembling functions (Intel SDM, volume 2).
 */

enum {
        X86_CALL_BYTES = 7, /* of the longest call: REX, opcode, ModRM, SIB, 4 bytes displacement */
        X86_EPILOGUE_BYTES = 48, /* add rsp; six pops with prefixes; vzeroupper; ret */
        X86_SIGRETURN_BYTES = 9,
        X86_EXIT_BYTES = 16,
        X86_GOEXIT_BYTES = 7,
};

/* Does a call instruction end with this one, the last of `bytes` ≤ X86_CALL_BYTES before a return
 * address? */
bool x86_call_ends(const uint8_t *code, size_t bytes);

/* Does a system call instruction end here? */
bool x86_syscall_ends(const uint8_t *code, size_t bytes);

/* Does this code, from a return address on, do nothing but end the thread or the process: set edi and eax, and make
 * the system call exit or exit_group? So go on, if ever, the clone() of Go and of musl. */
bool x86_exits(const uint8_t *code, size_t bytes);

/* nop; call; nop: the place that Go writes as the return address of a goroutine is the call, behind the first nop.
 * code: from one byte before the address on. */
bool x86_is_goexit(const uint8_t *code, size_t bytes);

/* mov $__NR_rt_sigreturn, %rax; syscall: where a signal handler returns to. */
bool x86_is_sigreturn(const uint8_t *code, size_t bytes);

/* At the very beginning of a function that keeps a frame pointer: bytes on the stack below the return
 * address, 0 before `push %rbp`, 8 before `mov %rsp, %rbp`; -1: neither can be said. code_before: one
 * byte before code. */
int x86_prologue(const uint8_t *code_before, const uint8_t *code, size_t bytes);

/*
 * Runs the end of a function: if nothing but pops and changes of rsp stands before the `ret`, that is
 * exactly what the thread will do next. On success *r is the caller's state just after the return,
 * program counter included. False: not such code, or the stack was not copied so far; *r untouched.
 */
bool x86_run_epilogue(const uint8_t *code, size_t bytes, const struct stack_memory *memory,
                      struct registers *r);
