/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "proto/event.h"

/*
 * What the programs and daemon/probe.c share besides the records of proto/event.h: control blocks in memory
 * that both see, and keys and values of the maps that only the probe reads. Compiled for BPF and for the host.
 */

enum {
        MEMBERS_MAX = 32768, /* processes of all sessions alive at once */
        THREADS_MAX = 32768,
        CGROUPS_MAX = 4096, /* cgroups of armed units, their children included */
        CALL_KEYS_MAX = 16384,
        CALL_SLOTS = 256, /* counters that a CPU keeps at hand; a power of two */
        WAIT_KEYS_MAX = 32768,
        DIR_KEYS_MAX = 8192,
        DIR_TEXT_MAX = 56, /* of two path components; longer ones are cut */
        ARGUMENTS_MAX = 1024, /* of a command line that is kept */
        PATHS_FIRST = 256, /* per program and kind: all of the first so many are told, */
        PATHS_THEN_EVERY = 256, /* then every so many-th */
};

/* One session, written by the probe while it is not armed. */
struct control {
        struct target target;
        __u64 armed_ns; /* 0: free; set last, cleared first */
        __u32 programs; /* the last index given out; 0 is whatever has not executed anything yet */
        __u32 reserved;
};

/* A process of a unit, by its host tgid. */
struct member {
        __u32 tgid; /* in the daemon's pid namespace */
        __u16 session;
        __u16 program;
        __u32 generation;
        __u32 reserved;
        __u64 joined_ns;
};

struct program_key {
        __u32 session;
        __u32 generation;
        __u64 path_hash;
};

enum thread_phase {
        THREAD_RUNNING,
        THREAD_RUNNABLE, /* preempted, or new */
        THREAD_BLOCKED,
        THREAD_WOKEN, /* runnable after a wait */
};

/* A thread of a member, by its host tid. */
struct thread_state {
        __u32 session;
        __u32 tgid, tid; /* in the daemon's pid namespace */
        __u32 phase; /* enum thread_phase */
        __u64 since_ns; /* when the phase began */
        __u64 blocked_ns; /* WOKEN: of the wait that just ended */
        __u64 on_cpu_ns, preempted_ns; /* not yet in the waits map */
        __u64 switches;
        __u64 unpaid_ns; /* blocked time that no EVENT_WAIT has stood for yet */
        __u32 syscall; /* BLOCKED, WOKEN: waiting in */
        __u32 flags; /* enum wait_flags */
        __u64 ip; /* likewise: of user code, where it entered the kernel */
        __u32 waker_tgid, waker_tid;
        char waker_comm[EVENT_COMM_MAX];
        /* Since the last signal that is handled on the alternate stack: that, and the SP that was interrupted. */
        __u64 alternate_begin, alternate_end, interrupted_sp;
        __u32 kernel_frames; /* WOKEN, if the wait is to be told: where it waited in the kernel */
        __u32 reserved;
        __u64 kernel[KERNEL_FRAMES_MAX];
};

struct dir_key {
        __u32 session;
        __u16 program;
        __u16 kind; /* enum path_kind */
        char dir[DIR_TEXT_MAX];
};

/* How many paths of each kind a program had, to choose those that are told. */
struct path_counts {
        __u32 count[PATH_KIND_MAX + 4]; /* 16: a power of two spares a multiplication */
};

/* A counter of one CPU on its way into the map `calls`. */
struct call_slot {
        struct call_key key;
        struct call_value value; /* count 0: free */
};

/*
 * What a CPU keeps for itself, so that counting a call takes neither a hash nor an atomic instruction. Value
 * of an array map with an element per CPU, seen by the probe as memory.
 */
struct cpu_state {
        __u64 epoch; /* of what is remembered of the last process */
        __u32 host_tgid;
        __u16 session; /* SESSION_MAX: no member */
        __u16 program;
        __u64 tick; /* jiffies of time_ns: a clock that is right to a tick, for 2 ns */
        __u64 time_ns;
        __u32 pending_tid; /* host tid of the thread whose wait is in the CPU's slot, not told yet; 0: none */
        __u32 reserved;
        __u64 pending_ip; /* thread_state.ip of it */
        __u64 calls[SESSION_MAX];
        struct call_slot slots[CALL_SLOTS];
};

/* What the program find_facts, run once in the daemon itself, finds out about the machine. */
struct probe_facts {
        __u64 pid_namespace; /* the address of the daemon's */
        __u32 pid_level; /* how deep it is nested */
        __u32 ran; /* 1: the program was executed */
        __u32 task_regs_helper; /* 1: bpf_task_pt_regs() is there */
        __u32 reserved;
};

_Static_assert(sizeof(struct member) == 24, "layout");
_Static_assert(sizeof(struct program_key) == 16, "layout");
_Static_assert(sizeof(struct thread_state) == 264, "layout");
_Static_assert(sizeof(struct dir_key) == 64, "layout");
_Static_assert(sizeof(struct path_counts) == 64, "layout");
_Static_assert(sizeof(struct call_slot) == 32, "layout");
_Static_assert(sizeof(struct cpu_state) == 48 + 8 * SESSION_MAX + 32 * CALL_SLOTS, "layout");
