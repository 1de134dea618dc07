/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What the kernel side tells the daemon: the records of the BPF ring buffer
 * and the keys and values of the counting maps. Compiled for BPF and for the
 * host; fixed width, no padding by chance, never stored and never sent to a
 * client (proto/recording.h is that, and daemon/collect.c the only bridge).
 *
 * Times are bpf_ktime_get_ns(): CLOCK_MONOTONIC, the clock of systemd's
 * *Monotonic properties. Pids come twice where both are needed: "host" in the
 * initial pid namespace (keys of the kernel side), else in the namespace of
 * the daemon (what /proc, perf records and systemd say; 0 if invisible there).
 */

#ifndef __bpf__
#include <linux/types.h>
#include <stdint.h>
#endif

enum {
        SESSION_MAX = 16, /* units captured at once; index of every per-session array */
        TARGET_PATH_MAX = 256, /* a unit name has at most 255 characters, a cgroup name 255 */
        TARGET_DEPTH_MAX = 24, /* slices between the manager's cgroup and the unit's */
        EVENT_COMM_MAX = 16, /* TASK_COMM_LEN */
        EVENT_PATH_MAX = 256, /* of a path or socket address that is kept; longer ones are cut */
        STACK_COPY_MAX = 64 * 1024, /* clang's live stack is 50 KB at most (measured) */
        STACK_PAGE = 4096,
        KERNEL_FRAMES_MAX = 16, /* of a kernel stack that are kept, innermost first */
        PROGRAM_MAX = 256, /* (executable, command slot) pairs counted apart in one session */
        SYSCALL_NR_MAX = 512,
        SYSCALL_IA32 = 0x400, /* set in a call number of the ia32 table */
        SYSCALL_NONE = 0xffff, /* not in a system call */
        SYSCALL_FAULT = 0xfffe, /* waits: in a page fault */
};

enum event_type {
        EVENT_NULL,
        EVENT_CGROUP, /* the cgroup of an armed unit was made */
        EVENT_JOIN, /* a process became a member: moved in, or born inside */
        EVENT_FORK, /* a member made a process */
        EVENT_EXEC,
        EVENT_EXIT, /* the last thread of a member ended */
        EVENT_SAMPLE, /* a member was on a CPU; the user stack follows */
        EVENT_WAIT, /* a member's accumulated blocked time crossed the period; the user stack follows */
        EVENT_PATH, /* a call with its path or address, see enum path_kind */
        EVENT_TYPE_MAX,
};

/* At the front of every ring record. */
struct event_head {
        __u32 type; /* enum event_type */
        __u32 session; /* < SESSION_MAX */
        __u64 time_ns;
        __u32 tgid, tid; /* in the daemon's pid namespace */
        __u32 host_tgid, host_tid;
};

struct event_cgroup {
        struct event_head head; /* tgid: who made it (systemd) */
        __u64 cgroup_id;
};

struct event_join {
        struct event_head head;
        __u32 born; /* 1: by CLONE_INTO_CGROUP or a fork seen inside; 0: moved */
        __u32 parent_tgid;
        char comm[EVENT_COMM_MAX];
};

struct event_fork {
        struct event_head head; /* of the parent */
        __u32 child_tgid;
        __u32 child_host_tgid;
};

struct event_exec {
        struct event_head head;
        __u32 program; /* counts from now on are kept under this index, see struct call_key */
        __u32 path_size; /* with the NUL; the path as the kernel was given it (bprm->filename) */
        __u64 arg_start, arg_end; /* of the new image's argument strings: /proc/PID/cmdline */
        char comm[EVENT_COMM_MAX];
        char path[EVENT_PATH_MAX];
        /* char arguments[]: the first bytes of the argument strings, NUL between them, to the record's end */
};

struct event_exit {
        struct event_head head;
        __u32 exit_code; /* as wait status: signal in the low 7 bits, status << 8 */
        __u32 reserved;
};

enum sample_flags {
        SAMPLE_USER = 1 << 0, /* interrupted in user mode; else in the kernel on its behalf */
        SAMPLE_SYSCALL = 1 << 1, /* in the system call of `syscall` */
        SAMPLE_COMPAT = 1 << 2, /* 32-bit user code: no stack */
        SAMPLE_STACK_CUT = 1 << 3, /* the cap ended the copy */
        SAMPLE_STACK_FAULT = 1 << 4, /* a page could not be read (end of the stack, or not present) */
        SAMPLE_NO_REGS = 1 << 5, /* no user registers: kernel thread, exiting */
        SAMPLE_ON_FAULT = 1 << 6, /* in the kernel for a page fault or interrupt, not a call */
        SAMPLE_GONE =
                1
                << 7, /* the daemon's: its memory is not there any more, it ends or becomes another program */
};

/* x86-64 user registers in DWARF order (System V ABI, figure 3.36): rax rdx
 * rcx rbx rsi rdi rbp rsp r8..r15 rip. <sys/ucontext.h> has REG_RSP and so on for another order. */
enum {
        DWARF_RAX,
        DWARF_RDX,
        DWARF_RCX,
        DWARF_RBX,
        DWARF_RSI,
        DWARF_RDI,
        DWARF_RBP,
        DWARF_RSP,
        DWARF_R8,
        DWARF_R9,
        DWARF_R10,
        DWARF_R11,
        DWARF_R12,
        DWARF_R13,
        DWARF_R14,
        DWARF_R15,
        DWARF_RIP,
        REG_COUNT
};

enum wait_flags {
        WAIT_IO = 1 << 0, /* in_iowait: the disk */
        WAIT_FAULT = 1 << 1, /* in a page fault */
        WAIT_EXEC = 1 << 2, /* the image that waited is gone: no stack */
        WAIT_OPEN = 1 << 3, /* it had not ended when the capture did */
};

/* What only a wait has; zero in EVENT_SAMPLE. */
struct event_wait {
        __u64 blocked_ns; /* of the wait that crossed the period */
        __u64 runnable_ns; /* then, from wakeup to running */
        __u64 weight_ns; /* blocked time that this record stands for */
        __u32 flags; /* enum wait_flags */
        __u32 waker_tgid, waker_tid; /* 0: an interrupt, or outside the daemon's namespace */
        __u32 reserved;
        char waker_comm[EVENT_COMM_MAX];
};

/* EVENT_SAMPLE, and EVENT_WAIT: there time_ns says when the thread ran again. */
struct event_sample {
        struct event_head head;
        __u32 flags; /* enum sample_flags; 0 registers and stack: SAMPLE_NO_REGS */
        __u32 cpu;
        __u32 syscall; /* number, | SYSCALL_IA32, SYSCALL_NONE, or of a wait SYSCALL_FAULT */
        __u32 stack_bytes; /* copied from regs[DWARF_RSP] upwards, behind this struct */
        __u64 second_address; /* a thread on its alternate signal stack: the stack that was interrupted */
        __u32 second_bytes; /* copied from there, behind the first ones */
        __u32 kernel_frames; /* in `kernel` */
        /* Bit n: the page n above that of the address was not there, as those that nobody has written to yet; its
         * bytes are 0. */
        __u32 holes, second_holes;
        __u64 regs[REG_COUNT];
        char comm[EVENT_COMM_MAX]; /* of the thread */
        struct event_wait wait;
        __u64 kernel[KERNEL_FRAMES_MAX]; /* where it was in the kernel: addresses, innermost first */
        /* __u8 stack[stack_bytes + second_bytes] */
};

enum path_kind {
        PATH_NULL,
        PATH_INOTIFY, /* inotify_add_watch that succeeded */
        PATH_MISSING, /* open or stat that failed with ENOENT */
        PATH_CONNECT, /* sockaddr of a connect() */
        PATH_LISTEN, /* listen() that succeeded; no bytes */
        PATH_NOTIFY, /* a datagram to a unix socket whose text starts READY=1; bytes: the text */
        PATH_CHDIR, /* chdir() that succeeded */
        PATH_OPEN, /* open that succeeded (bounded sample) */
        PATH_SYNC, /* fsync, fdatasync, sync_file_range: the descriptor in `argument` */
        PATH_LOCK, /* flock, fcntl lock: the descriptor in `argument` */
        PATH_OBJECT, /* what a wait that was told just before, by the same thread, was for; argument: see enum object_kind */
        PATH_INOTIFY_LIMIT, /* inotify_init1 EMFILE, inotify_add_watch ENOSPC */
        PATH_KIND_MAX,
};

/* PATH_OBJECT: kind, TCP state and descriptor are in `argument`. Of sockets, `path` is the address of the peer, as a
 * struct sockaddr; of files, the last part of the name. */
enum object_kind {
        OBJECT_OTHER,
        OBJECT_FILE,
        OBJECT_DIRECTORY,
        OBJECT_PIPE, /* or FIFO */
        OBJECT_DEVICE,
        OBJECT_TCP,
        OBJECT_UDP,
        OBJECT_UNIX,
        OBJECT_SOCKET, /* of another family */
        OBJECT_KIND_MAX,
};

enum {
        OBJECT_STATE_SHIFT = 32,
        OBJECT_KIND_SHIFT = 40,
};

struct event_path {
        struct event_head head;
        __u32 kind; /* enum path_kind */
        __u32 syscall;
        __s32 result; /* what the call returned */
        __u32 path_size; /* bytes in `path`; text has its NUL unless it was cut */
        __u64 argument; /* descriptor, or watch mask */
        char path[EVENT_PATH_MAX];
};

/* A thread that is blocked at the end of a capture; read from the iterator over tasks. */
struct blocked_thread {
        __u32 session;
        __u32 tgid, tid; /* in the daemon's pid namespace */
        __u32 syscall;
        __u32 flags; /* enum wait_flags */
        __u32 sample_flags; /* enum sample_flags */
        __u64 since_ns, unpaid_ns; /* blocked since; and blocked time before that no record stands for */
        __u64 switches; /* of the task so far: it has not run as long as they stay */
        __u64 stack_end; /* above regs[DWARF_RSP], or 0: unknown */
        __u64 regs[REG_COUNT];
        char comm[EVENT_COMM_MAX];
};

/* ---- maps ---- */

/* What the daemon arms: the cgroup is recognised at its creation by the tail
 * of its path and by the id of the cgroup that the tail starts in. */
struct target {
        __u64 root_id; /* cgroup id (inode) of the manager's cgroup */
        __u32 depth; /* path components of the tail, ≥ 1 */
        __u32 path_size; /* with the NUL */
        char path[TARGET_PATH_MAX]; /* "/system.slice/foo.service", systemd-escaped */
};

/* Calls per (program, call, errno); per-CPU, summed when read. Single
 * processes are not a key: 20,000 short ones must not make 360,000 entries. */
struct call_key {
        __u16 program; /* of its session; 0: before the first exec, or beyond PROGRAM_MAX */
        __u16 syscall;
        __u16 error; /* errno, 0: success */
        __u16 session;
};

struct call_value {
        __u64 count;
        __u64 first_ns, last_ns; /* 0: none on this CPU */
};

/* Blocked and runnable time per thread and call. When the map is full the time
 * goes to tid 0 of its session, so that sums stay right. */
struct wait_key {
        __u32 session;
        __u32 tgid, tid; /* the daemon's namespace */
        __u32 syscall; /* number, SYSCALL_FAULT, SYSCALL_NONE */
};

struct wait_value {
        __u64 blocked_ns, io_ns; /* io_ns is part of blocked_ns */
        __u64 runnable_ns;
        __u64 longest_ns;
        __u64 count;
};

/* On-CPU time per thread, exact, from sched_switch: wait_value.runnable_ns of
 * the key with this call number is not used, blocked_ns holds the time. */
enum { SYSCALL_ON_CPU = 0xfffd };

enum loss_kind {
        LOSS_SAMPLE, /* ring full */
        LOSS_EVENT, /* ring full: exec, fork, exit, join */
        LOSS_PATH,
        LOSS_WAIT,
        LOSS_CALL_KEYS, /* a counter found no room */
        LOSS_WAIT_KEYS,
        LOSS_PROGRAMS,
        LOSS_PROCESSES, /* the member table was full */
        LOSS_MAPPING, /* PERF_RECORD_LOST of the mapping rings */
        LOSS_STACK_QUEUE, /* the worker was behind and the stack was dropped */
        LOSS_KIND_MAX,
};

/* Live numbers of a session, read by the daemon at will. */
struct session_stat {
        __u64 cgroup_id; /* 0: not made yet */
        __u64 cgroup_time_ns;
        __u64 samples, waits; /* records made, those that were lost included */
        __u64 last_on_cpu_ns; /* when a member last left a CPU */
        __s64 on_cpu; /* members running now */
        __s64 in_io; /* members blocked in I/O now */
        __u64 calls;
        __u64 inotify_watches;
        __u64 self_ns; /* spent in our own programs for samples and paths */
        __u64 lost[LOSS_KIND_MAX];
};

_Static_assert(sizeof(struct event_head) == 32, "layout");
_Static_assert(sizeof(struct event_cgroup) == 40, "layout");
_Static_assert(sizeof(struct event_join) == 56, "layout");
_Static_assert(sizeof(struct event_fork) == 40, "layout");
_Static_assert(sizeof(struct event_exec) == 328, "layout");
_Static_assert(sizeof(struct event_exit) == 40, "layout");
_Static_assert(sizeof(struct event_wait) == 56, "layout");
_Static_assert(sizeof(struct event_sample) == 408, "layout");
_Static_assert(sizeof(struct blocked_thread) == 208, "layout");
_Static_assert(sizeof(struct event_path) == 312, "layout");
_Static_assert(sizeof(struct target) == 272, "layout");
_Static_assert(sizeof(struct call_key) == 8, "layout");
_Static_assert(sizeof(struct call_value) == 24, "layout");
_Static_assert(sizeof(struct wait_key) == 16, "layout");
_Static_assert(sizeof(struct wait_value) == 40, "layout");
