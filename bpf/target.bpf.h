/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Who is watched. A unit's cgroup is recognised when it is made, by the tail of its path and by the cgroup
 * that this tail starts in. A process is a member from the moment it joins such a cgroup, is born in it, or
 * is forked by a member, until its last thread ends, wherever it is moved in the meantime.
 *
 * Processes that were in the cgroup before (leftovers of an earlier start) never become members, nor what
 * they fork: they are older than the arming, and their children's parent is in the cgroup without being one.
 */

#include "bpf/common.bpf.h"

struct {
        __uint(type, BPF_MAP_TYPE_HASH);
        __type(key, __u64); /* id of an armed cgroup, or of one below it */
        __type(value, __u32); /* session */
        __uint(max_entries, CGROUPS_MAX);
} cgroups SEC(".maps");

struct {
        __uint(type, BPF_MAP_TYPE_HASH);
        __type(key, struct program_key);
        __type(value, __u32); /* index within the session */
        __uint(max_entries, SESSION_MAX *PROGRAM_MAX);
} programs SEC(".maps");

struct {
        __uint(type, BPF_MAP_TYPE_HASH);
        __type(key, __u64); /* session << 32 | index */
        __type(value, __u32);
        __uint(max_entries, SESSION_MAX *PROGRAM_MAX);
} program_numbers SEC(".maps");

enum {
        CGROUP_PATH_MAX = 1024, /* TRACE_CGROUP_PATH_LEN, kernel/cgroup/cgroup-internal.h */
        CLAIM_ATTEMPTS = 8, /* as many CPUs may execute a new program at once */
};

/* Too large for the stack of a program. */
struct exec_record {
        struct event_exec event;
        char arguments[ARGUMENTS_MAX];
};

union scratch {
        char path[CGROUP_PATH_MAX];
        __u64 tail[TARGET_PATH_MAX / 8];
        struct exec_record exec;
};

struct {
        __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
        __type(key, __u32);
        __type(value, union scratch);
        __uint(max_entries, 1);
} scratches SEC(".maps");

static __always_inline union scratch *get_scratch(void) {
        __u32 zero = 0;

        return bpf_map_lookup_elem(&scratches, &zero);
}

/* Is `tail`, filled with zeros behind its end, the path of the target? */
static __always_inline bool tail_equals(const __u64 tail[static TARGET_PATH_MAX / 8],
                                        const struct target *target) {
        const __u64 *path = (const __u64 *) target->path;
        __u64 different = 0;

        for (int i = 0; i < TARGET_PATH_MAX / 8; i++)
                different |= tail[i] ^ path[i];
        return different == 0;
}

/* The id of the cgroup `depth` levels above; 0 when there are not so many. */
static __always_inline __u64 ancestor_id(struct cgroup *cgroup, __u32 depth) {
        for (int i = 0; i <= TARGET_DEPTH_MAX && cgroup; i++) {
                if (i == depth)
                        return BPF_CORE_READ(cgroup, kn, id);
                cgroup = BPF_CORE_READ(cgroup, self.parent, cgroup);
        }
        return 0;
}

/* Reads the last `size` bytes of the path, the NUL included, into `tail`. False: the path is shorter. */
static __always_inline bool read_tail(__u64 tail[static TARGET_PATH_MAX / 8], const char *path,
                                      __u32 path_size, __u32 size) {
        if (size < 2 || size > TARGET_PATH_MAX || path_size < size)
                return false;
        for (int i = 0; i < TARGET_PATH_MAX / 8; i++)
                tail[i] = 0;
        return bpf_probe_read_kernel(tail, size, path + path_size - size) == 0;
}

/*
 * Is the new cgroup the one that this session waits for? A function of its own with plain numbers as
 * arguments, so that the verifier reads it once and not for each session.
 */
__noinline int is_target(__u32 session, __u64 cgroup, __u64 path, __u32 path_size) {
        struct control *control = control_of(session);
        union scratch *scratch = get_scratch();

        if (!scratch || control->armed_ns == 0)
                return 0;
        if (!read_tail(scratch->tail, (const char *) path, path_size, control->target.path_size))
                return 0;
        if (!tail_equals(scratch->tail, &control->target))
                return 0;
        return ancestor_id((struct cgroup *) cgroup, control->target.depth) == control->target.root_id;
}

static __always_inline __u32 path_size_of(const char *path) {
        union scratch *scratch = get_scratch();
        long n = scratch ? bpf_probe_read_kernel_str(scratch->path, sizeof(scratch->path), path) : 0;

        return n > 0 ? n : 0;
}

static __always_inline void tell_cgroup(__u32 session, __u64 id) {
        __u64 now = bpf_ktime_get_ns();
        struct session_stat *stat = stat_of(session);
        struct event_cgroup *event;

        if (stat->cgroup_id == 0)
                stat->cgroup_time_ns = now;
        stat->cgroup_id = id;
        event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
        if (!event) {
                count_lost(session, LOSS_EVENT);
                return;
        }
        fill_head(&event->head, EVENT_CGROUP, session, now, (void *) bpf_get_current_task());
        event->cgroup_id = id;
        bpf_ringbuf_submit(event, BPF_RB_FORCE_WAKEUP);
}

/* A cgroup was made; no task can join before this returns. On hybrid hosts the tracepoint fires for each
 * hierarchy. */
static __always_inline int on_cgroup_mkdir(struct cgroup *cgroup, const char *path) {
        __u32 *parent_session, session, path_size;
        __u64 id, parent_id;

        if (BPF_CORE_READ(cgroup, root, hierarchy_id) != 0)
                return 0;

        id = BPF_CORE_READ(cgroup, kn, id);
        parent_id = BPF_CORE_READ(cgroup, self.parent, cgroup, kn, id);
        parent_session = bpf_map_lookup_elem(&cgroups, &parent_id);
        if (parent_session) {
                session = *parent_session;
                bpf_map_update_elem(&cgroups, &id, &session, BPF_ANY);
                return 0;
        }

        path_size = path_size_of(path);
        for (int i = 0; i < SESSION_MAX; i++) {
                if (!is_target(i, (__u64) cgroup, (__u64) path, path_size))
                        continue;
                session = i;
                bpf_map_update_elem(&cgroups, &id, &session, BPF_ANY);
                tell_cgroup(i, id);
                break;
        }
        return 0;
}

static __always_inline bool add_member(struct task_struct *leader, __u32 session, __u32 program,
                                       __u32 generation, __u64 now) {
        __u32 host_tgid = BPF_CORE_READ(leader, tgid);
        struct member member = {
                .tgid = visible_tgid(leader),
                .session = session,
                .program = program,
                .generation = generation,
                .joined_ns = now,
        };

        if (bpf_map_update_elem(&members, &host_tgid, &member, BPF_ANY) == 0) {
                members_changed();
                return true;
        }
        count_lost(session, LOSS_PROCESSES);
        return false;
}

/* `leader` is a new member that no member forked. */
static __always_inline void join(struct task_struct *leader, __u32 session, bool born) {
        __u64 now = bpf_ktime_get_ns();
        struct event_join *event;
        __u32 generation;

        /* Two commands of a session do not join within 64 ns. */
        generation = now >> 6;
        if (!add_member(leader, session, 0, generation, now))
                return;
        event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
        if (!event) {
                count_lost(session, LOSS_EVENT);
                return;
        }
        fill_head(&event->head, EVENT_JOIN, session, now, leader);
        event->born = born;
        event->parent_tgid = visible_tgid(BPF_CORE_READ(leader, real_parent));
        bpf_probe_read_kernel(event->comm, sizeof(event->comm), &leader->comm);
        bpf_ringbuf_submit(event, BPF_RB_FORCE_WAKEUP);
}

/* A process was moved. Those that are older than the arming are leftovers that change between cgroups of
 * their unit; what systemd starts is younger. */
static __always_inline int on_cgroup_attach(struct cgroup *cgroup, struct task_struct *task) {
        struct task_struct *leader = BPF_CORE_READ(task, group_leader);
        __u32 host_tgid = BPF_CORE_READ(leader, tgid), *session;
        struct control *control;
        __u64 id;

        if (BPF_CORE_READ(cgroup, root, hierarchy_id) != 0)
                return 0;
        id = BPF_CORE_READ(cgroup, kn, id);
        session = bpf_map_lookup_elem(&cgroups, &id);
        if (!session || member_of(host_tgid))
                return 0;
        control = control_of(*session);
        if (BPF_CORE_READ(leader, start_time) < control->armed_ns)
                return 0;
        join(leader, *session, false);
        return 0;
}

static __always_inline __u32 *session_of_cgroup(struct task_struct *task) {
        __u64 id = BPF_CORE_READ(task, cgroups, dfl_cgrp, kn, id);

        return bpf_map_lookup_elem(&cgroups, &id);
}

static __always_inline void tell_fork(const struct member *parent, struct task_struct *task,
                                      struct task_struct *child, __u64 now) {
        struct event_fork *event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);

        if (!event) {
                count_lost(parent->session, LOSS_EVENT);
                return;
        }
        fill_head(&event->head, EVENT_FORK, parent->session, now, task);
        event->child_tgid = visible_tgid(child);
        event->child_host_tgid = BPF_CORE_READ(child, tgid);
        bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
}

/* Fires in the parent before the child runs. */
static __always_inline int on_fork(struct task_struct *parent, struct task_struct *child) {
        __u32 host_tgid = BPF_CORE_READ(parent, tgid), *session;
        __u64 now;
        struct member *member;

        if (BPF_CORE_READ(child, tgid) == host_tgid)
                return 0; /* a thread */

        member = member_of(host_tgid);
        if (member) {
                now = bpf_ktime_get_ns();
                if (add_member(child, member->session, member->program, member->generation, now))
                        tell_fork(member, parent, child, now);
                return 0;
        }

        /* Born inside by CLONE_INTO_CGROUP. A parent in the cgroup that is no member is a leftover. */
        session = session_of_cgroup(child);
        if (session && !session_of_cgroup(parent))
                join(child, *session, true);
        return 0;
}

/* FNV-1a over the whole buffer, which is zero behind the text, eight bytes a step. */
static __always_inline __u64 hash_path(const char path[static EVENT_PATH_MAX]) {
        const __u64 *words = (const __u64 *) path;
        __u64 hash = 0xcbf29ce484222325;

        for (int i = 0; i < EVENT_PATH_MAX / 8; i++) {
                hash = (hash ^ words[i]) * 0x100000001b3;
                hash ^= hash >> 29;
        }
        return hash;
}

/* A number that no program of the session has. It is claimed by an insertion, since atomic instructions that
 * return a value came with 5.12 only. 0: there is none. */
static __always_inline __u32 claim_program(__u32 session) {
        struct control *control = control_of(session);
        __u32 claimed = 1;

        for (int i = 0; i < CLAIM_ATTEMPTS; i++) {
                __u64 number = (__u64) session << 32 | (control->programs + 1);

                if ((__u32) number >= PROGRAM_MAX)
                        return 0;
                control->programs = number;
                if (bpf_map_update_elem(&program_numbers, &number, &claimed, BPF_NOEXIST) == 0)
                        return number;
        }
        return 0;
}

/* The index that calls of this executable, run for this command, are counted under. */
static __always_inline __u32 program_index(const struct member *member,
                                           const char path[static EVENT_PATH_MAX]) {
        struct program_key key = {
                .session = member->session,
                .generation = member->generation,
                .path_hash = hash_path(path),
        };
        __u32 *known = bpf_map_lookup_elem(&programs, &key), index;

        if (known)
                return *known;
        index = claim_program(member->session);
        if (index == 0 || bpf_map_update_elem(&programs, &key, &index, BPF_ANY) < 0) {
                count_lost(member->session, LOSS_PROGRAMS);
                return 0;
        }
        return index;
}

/* The argument strings of the new image; they were just written, so they are there. Bytes read. */
static __always_inline __u32 read_arguments(struct exec_record *record) {
        __u64 size = record->event.arg_end - record->event.arg_start;

        if (size > ARGUMENTS_MAX)
                size = ARGUMENTS_MAX;
        if (bpf_probe_read_user(record->arguments, size, (void *) record->event.arg_start) < 0)
                return 0;
        return size;
}

static __always_inline int on_exec(struct task_struct *task, struct linux_binprm *bprm) {
        struct member *member = member_of(BPF_CORE_READ(task, tgid));
        union scratch *scratch;
        struct exec_record *record;
        __u32 arguments;
        long n;

        if (!member)
                return 0;
        scratch = get_scratch();
        if (!scratch)
                return 0;

        record = &scratch->exec;
        __builtin_memset(record->event.path, 0, sizeof(record->event.path));
        n = bpf_probe_read_kernel_str(record->event.path, sizeof(record->event.path),
                                      BPF_CORE_READ(bprm, filename));
        record->event.path_size = n > 0 ? n : 0;
        member->program = program_index(member, record->event.path);
        members_changed();

        fill_head(&record->event.head, EVENT_EXEC, member->session, bpf_ktime_get_ns(), task);
        record->event.program = member->program;
        record->event.arg_start = BPF_CORE_READ(task, mm, arg_start);
        record->event.arg_end = BPF_CORE_READ(task, mm, arg_end);
        bpf_probe_read_kernel(record->event.comm, sizeof(record->event.comm), &task->comm);
        arguments = read_arguments(record);
        if (arguments > ARGUMENTS_MAX)
                return 0; /* cannot be; for the verifier */
        if (bpf_ringbuf_output(&events, record, sizeof(record->event) + arguments, BPF_RB_FORCE_WAKEUP) < 0)
                count_lost(member->session, LOSS_EVENT);
        return 0;
}

/* As wait(2) will report it (kernel/exit.c, wait_task_zombie()). */
static __always_inline __u32 wait_status(struct task_struct *task) {
        if (BPF_CORE_READ(task, signal, flags) & SIGNAL_GROUP_EXIT)
                return BPF_CORE_READ(task, signal, group_exit_code);
        return BPF_CORE_READ(task, group_leader, exit_code);
}

/* A thread ended; if it was the last, so did the member. `live` was lowered before the tracepoint, so two
 * threads may both see 0: whoever deletes the entry tells. */
static __always_inline void on_exit(struct task_struct *task, const struct member *member) {
        __u32 host_tgid = BPF_CORE_READ(task, tgid), session = member->session, tgid = member->tgid;
        struct event_exit *event;

        if (BPF_CORE_READ(task, signal, live.counter) != 0)
                return;
        if (bpf_map_delete_elem(&members, &host_tgid) < 0)
                return;
        members_changed();
        event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
        if (!event) {
                count_lost(session, LOSS_EVENT);
                return;
        }
        fill_head(&event->head, EVENT_EXIT, session, bpf_ktime_get_ns(), task);
        event->head.tgid = tgid;
        event->exit_code = wait_status(task);
        event->reserved = 0;
        bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
}
