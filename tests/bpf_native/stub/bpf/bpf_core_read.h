/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Relocated reads for the host: the structures of bpf/kernel.h are the kernel's. */

#define READ_1(s, a)                          (s)->a
#define READ_2(s, a, b)                       (s)->a->b
#define READ_3(s, a, b, c)                    (s)->a->b->c
#define READ_4(s, a, b, c, d)                 (s)->a->b->c->d
#define READ_5(s, a, b, c, d, e)              (s)->a->b->c->d->e
#define READ_N(_1, _2, _3, _4, _5, name, ...) name
#define BPF_CORE_READ(s, ...)                 READ_N(__VA_ARGS__, READ_5, READ_4, READ_3, READ_2, READ_1)(s, __VA_ARGS__)

#define BPF_CORE_READ_BITFIELD(s, field)   ((s)->field)
#define bpf_core_field_offset(type, field) __builtin_offsetof(type, field)
#define bpf_core_read(to, bytes, from)     bpf_probe_read_kernel(to, bytes, from)
#define bpf_core_field_exists(...)         1
/* Helpers as in 5.10. */
#define bpf_core_enum_value_exists(type, value) ((int) (value) < 155)
