# SPDX-License-Identifier: GPL-2.0-or-later
        .text
        .globl sized
        .type sized, @function
sized:  .cfi_startproc
 .skip 8, 0x90
 push %rbp
 .cfi_def_cfa_offset 16
 .cfi_offset 6, -16
 .skip 7,0x90
 .cfi_endproc
        .size sized, 8
        .globl sizeless
sizeless: .skip 16, 0x90
        .globl __call, local_call
        .weak call, call_longer
        .local local_call
        .type call, @function
        .type __call, @function
        .type call_longer, @function
        .type local_call, @function
call: __call: call_longer: local_call: .skip 16, 0x90
        .size call, 16
        .size __call, 16
        .size call_longer, 16
        .size local_call, 16
        .type outer, @function
        .type inner, @function
outer:  .skip 8, 0x90
inner:  .skip 24, 0x90
        .size outer, 32
        .size inner, 8
last:   .skip 16, 0x90
        .section .text.other, "ax"
other:  .skip 16, 0x90
        .data
        .globl variable
        .type variable, @object
variable: .skip 16
        .size variable, 16
        .text
        .globl _ZN3foo3barEi
        .type _ZN3foo3barEi, @function
_ZN3foo3barEi: .skip 16, 0x90
        .size _ZN3foo3barEi, 16
