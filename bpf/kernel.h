/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The few kernel structures that the programs look into, with only the
 * members they use. preserve_access_index makes libbpf put in the offsets of
 * the running kernel, so neither order nor completeness matters here. A name
 * with three underscores is another shape of the same structure ("flavour"):
 * used only behind bpf_core_field_exists().
 */

#ifdef __bpf__
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
#endif

struct kernfs_node {
        __u64 id; /* of a cgroup: its inode number (from 5.5 a plain number) */
};

struct cgroup;

struct cgroup_subsys_state {
        struct cgroup *cgroup;
        struct cgroup_subsys_state *parent;
};

struct cgroup_root {
        int hierarchy_id; /* 0: the unified hierarchy, v2 */
};

struct cgroup {
        struct cgroup_subsys_state self;
        struct kernfs_node *kn;
        struct cgroup_root *root;
};

struct css_set {
        struct cgroup *dfl_cgrp; /* in v2, also on hybrid hosts */
};

struct pid_namespace;

struct upid {
        int nr;
        struct pid_namespace *ns;
};

struct pid {
        unsigned int level;
        struct upid numbers[1];
};

struct pid_namespace {
        unsigned int level;
};

typedef struct {
        int counter;
} atomic_t;

struct signal_struct {
        atomic_t live; /* threads that have not begun to exit */
        int group_exit_code;
        unsigned int flags;
};

struct mm_struct {
        unsigned long start_stack; /* SP of the first instruction: argc lies there, strings above */
        unsigned long arg_start, arg_end;
};

struct linux_binprm {
        const char *filename;
};

struct qstr {
        const unsigned char *name;
};

struct dentry {
        struct qstr d_name;
};

struct path {
        struct dentry *dentry;
};

struct inode {
        unsigned short i_mode;
};

struct file {
        struct path f_path;
        struct inode *f_inode;
        void *private_data; /* of a socket: struct socket */
};

struct fdtable {
        unsigned int max_fds;
        struct file **fd;
};

struct files_struct {
        struct fdtable *fdt;
};

struct in6_addr___bytes {
        __u8 bytes[16];
};

struct sock_common {
        unsigned short skc_family;
        unsigned char skc_state; /* net/tcp_states.h */
        __u32 skc_daddr; /* of the peer, in the order of the network, as the port */
        __u16 skc_dport;
        struct in6_addr___bytes skc_v6_daddr; /* with CONFIG_IPV6 */
};

struct sock {
        struct sock_common __sk_common;
};

struct socket {
        short type;
        struct sock *sk;
};

struct sockaddr_un___bytes {
        unsigned short sun_family;
};

struct unix_address {
        int len;
        struct sockaddr_un___bytes name[0];
};

struct unix_sock {
        struct unix_address *addr;
        struct sock *peer;
};

struct thread_info {
        __u32 status;
};

struct thread_struct {
        unsigned long fsbase;
};

struct task_struct {
        struct thread_info thread_info;
        void *stack;
        unsigned int flags;
        struct mm_struct *mm;
        int exit_code;
        unsigned in_iowait : 1;
        int pid;
        int tgid;
        struct task_struct *real_parent;
        struct task_struct *group_leader;
        struct pid *thread_pid;
        __u64 start_time; /* CLOCK_MONOTONIC */
        char comm[16];
        struct signal_struct *signal;
        struct css_set *cgroups;
        struct files_struct *files;
        struct thread_struct thread;
        unsigned long sas_ss_sp; /* the alternate signal stack, sigaltstack(2) */
        size_t sas_ss_size;
        unsigned long nvcsw, nivcsw; /* times it left a CPU, by itself or not */
};

/* 5.14 renamed `state` (2f064a59a11f), a long, to `__state`, an unsigned int. */
struct task_struct___new {
        unsigned int __state;
};

struct task_struct___old {
        long state;
};

struct pt_regs {
        unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip;
        unsigned long flags, sp;
};

struct sigaction {
        unsigned long sa_flags;
};

struct k_sigaction {
        struct sigaction sa;
};

struct seq_file;

struct bpf_iter_meta {
        struct seq_file *seq;
};

struct bpf_iter__task { /* context of the programs of the iterator over tasks */
        struct bpf_iter_meta *meta;
        struct task_struct *task; /* NULL: there are no more */
};

#ifdef __bpf__
#pragma clang attribute pop
#endif

/* Numbers of the helpers that not every kernel has; the flavour keeps the names apart from linux/bpf.h. */
enum bpf_func_id___late {
        BPF_FUNC_get_task_stack___late = 141, /* 5.9 */
        BPF_FUNC_get_current_task_btf___late = 158, /* 5.11 */
        BPF_FUNC_task_pt_regs___late = 175, /* 5.15 */
};

enum {
        PF_EXITING = 0x00000004,
        PF_KTHREAD = 0x00200000,
        SIGNAL_GROUP_EXIT = 0x00000004,
        TS_COMPAT = 0x0002, /* thread_info.status: in a call of the ia32 table */
        SA_ONSTACK = 0x08000000,
        ALTERNATE_STACK_MAX = 16 * 1024 * 1024, /* larger ones are left out */
};

/* The registers that an entry from user mode leaves on the kernel stack, as the processor and the entry
 * code of x86-64 lay them out (asm/ptrace.h). `cs` shares its 8 bytes with other things where FRED exists. */
struct saved_regs {
        __u64 r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp,
                ss;
};

/* A part of them. */
struct entry_regs {
        __u64 orig_ax, ip;
};

enum {
        THREAD_SIZE = 16384, /* x86-64 without KASAN; only used before 5.15 */
        USER_CS_MASK = 0xffff,
        USER_RPL = 3, /* low bits of cs in user mode */
        USER32_CS = 0x23,
};
