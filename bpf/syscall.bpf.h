/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * System calls, at their exit only: counted by (program, call, errno), and a bounded choice of the paths and
 * addresses that they were about. Arguments are read from the saved registers, where they survive, and user
 * memory has been touched by the call itself by then.
 */

#include "bpf/wait.bpf.h"

/* Sums; counts are added when a slot of a CPU is needed for another key, and at the end. */
struct {
        __uint(type, BPF_MAP_TYPE_HASH);
        __type(key, struct call_key);
        __type(value, struct call_value);
        __uint(max_entries, CALL_KEYS_MAX);
} calls SEC(".maps");

struct {
        __uint(type, BPF_MAP_TYPE_HASH);
        __type(key, struct dir_key);
        __type(value, __u64);
        __uint(max_entries, DIR_KEYS_MAX);
} dirs SEC(".maps");

/* Too large for the stack of a program. What a loop remembers lies here as well: the verifier follows every
 * value in a register through all turns, but takes memory as it comes. */
struct path_scratch {
        struct event_path event;
        struct dir_key dir;
        __u64 arguments[3];
        __u32 program;
        __u32 components, end;
};

struct {
        __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
        __type(key, __u32);
        __type(value, struct path_scratch);
        __uint(max_entries, 1);
} path_scratches SEC(".maps");

/* System-call numbers of x86-64 (asm/unistd_64.h; the header cannot be included for BPF). */
enum {
        NR_WRITE = 1,
        NR_OPEN = 2,
        NR_STAT = 4,
        NR_LSTAT = 6,
        NR_ACCESS = 21,
        NR_CONNECT = 42,
        NR_SENDTO = 44,
        NR_SENDMSG = 46,
        NR_LISTEN = 50,
        NR_EXECVE = 59,
        NR_FCNTL = 72,
        NR_FLOCK = 73,
        NR_FSYNC = 74,
        NR_FDATASYNC = 75,
        NR_CHDIR = 80,
        NR_READLINK = 89,
        NR_INOTIFY_INIT = 253,
        NR_INOTIFY_ADD_WATCH = 254,
        NR_OPENAT = 257,
        NR_NEWFSTATAT = 262,
        NR_READLINKAT = 267,
        NR_FACCESSAT = 269,
        NR_SYNC_FILE_RANGE = 277,
        NR_INOTIFY_INIT1 = 294,
        NR_SYNCFS = 306,
        NR_EXECVEAT = 322,
        NR_STATX = 332,
        NR_OPENAT2 = 437,
        NR_FACCESSAT2 = 439,
        NR_IA32_EXECVE = 11, /* of the other table */
};

enum {
        ERROR_NOENT = 2,
        ERROR_INTR = 4,
        ERROR_MFILE = 24,
        ERROR_NOSPC = 28,
        ERROR_RESTART_FIRST = 512, /* ERESTARTSYS … ERESTART_RESTARTBLOCK, linux/errno.h: user space sees */
        ERROR_RESTART_LAST = 516, /* EINTR, or the call is made again */
        ERROR_MAX = 4095,
        COMMAND_SETLKW = 7, /* F_SETLKW, F_OFD_SETLKW */
        COMMAND_OFD_SETLKW = 38,
        NOTIFY_MESSAGE_MIN = 7, /* "READY=1" */
        NOTIFY_MESSAGE_MAX = EVENT_PATH_MAX, /* as far as is looked */
        ADDRESS_MAX = 128, /* struct sockaddr_storage */
        MSGHDR_IOV_OFFSET = 16, /* struct msghdr of the 64-bit ABI: name, namelen, iov, iovlen */
};

/* ---- decisions; no helpers, no maps ---- */

static __always_inline __u16 error_of(long result) {
        if (result >= 0 || result < -ERROR_MAX)
                return 0;
        if (result <= -ERROR_RESTART_FIRST && result >= -ERROR_RESTART_LAST)
                return ERROR_INTR;
        return -result;
}

/* What the call is to startprof. *argument: which one holds the path, the buffer or the descriptor. */
static __always_inline enum path_kind classify(__u32 nr, __u16 error, __u64 second, __u32 *argument) {
        *argument = 0;
        switch (nr) {
        case NR_INOTIFY_ADD_WATCH:
                *argument = 1;
                return error == 0 ? PATH_INOTIFY : error == ERROR_NOSPC ? PATH_INOTIFY_LIMIT : PATH_NULL;
        case NR_INOTIFY_INIT:
        case NR_INOTIFY_INIT1: return error == ERROR_MFILE ? PATH_INOTIFY_LIMIT : PATH_NULL;
        case NR_OPENAT:
        case NR_OPENAT2:
                *argument = 1;
                return error == 0 ? PATH_OPEN : error == ERROR_NOENT ? PATH_MISSING : PATH_NULL;
        case NR_OPEN: return error == 0 ? PATH_OPEN : error == ERROR_NOENT ? PATH_MISSING : PATH_NULL;
        case NR_NEWFSTATAT:
        case NR_STATX:
        case NR_FACCESSAT:
        case NR_FACCESSAT2:
        case NR_READLINKAT: *argument = 1; return error == ERROR_NOENT ? PATH_MISSING : PATH_NULL;
        case NR_STAT:
        case NR_LSTAT:
        case NR_ACCESS:
        case NR_READLINK: return error == ERROR_NOENT ? PATH_MISSING : PATH_NULL;
        case NR_CONNECT: *argument = 1; return PATH_CONNECT;
        case NR_LISTEN: return error == 0 ? PATH_LISTEN : PATH_NULL;
        case NR_WRITE:
        case NR_SENDTO:
        case NR_SENDMSG: *argument = 1; return error == 0 ? PATH_NOTIFY : PATH_NULL;
        case NR_CHDIR: return error == 0 ? PATH_CHDIR : PATH_NULL;
        case NR_FSYNC:
        case NR_FDATASYNC:
        case NR_SYNC_FILE_RANGE:
        case NR_SYNCFS: return error == 0 ? PATH_SYNC : PATH_NULL;
        case NR_FLOCK: return PATH_LOCK;
        case NR_FCNTL:
                return second == COMMAND_SETLKW || second == COMMAND_OFD_SETLKW ? PATH_LOCK : PATH_NULL;
        default: return PATH_NULL;
        }
}

/* Of how many of its kind (this one included) is one told? */
static __always_inline bool is_told(__u32 ordinal) {
        return ordinal <= PATHS_FIRST || ordinal % PATHS_THEN_EVERY == 0;
}

/*
 * The top directory that a path counts for, into scratch->dir.dir: its first two components. `whole`: the
 * path is a directory itself (a watched one); otherwise its last component is a file and counts for nothing.
 *
 *   /usr/share/zoneinfo → /usr/share    /usr → /usr (whole), / (file)    a/b/c → a/b
 */
static __always_inline void top_directory(struct path_scratch *scratch, bool whole) {
        bool done = false;

        scratch->components = scratch->end = 0;
        /* Unrolled: before 6.2 a loop may not fall through into its own head, as the compiler lays this one out.
         * And without a break, which keeps clang 19 from unrolling it. */
#pragma unroll
        for (__u32 i = 0; i < DIR_TEXT_MAX - 1; i++) {
                char c = done ? '\0' : scratch->event.path[i];

                scratch->dir.dir[i] = c;
                if (c == '/') {
                        scratch->end = i == 0 ? 1 : i;
                        scratch->components += i > 0;
                } else if (c == '\0' && !done && whole)
                        scratch->end = i;
                done = done || c == '\0' || scratch->components == 2;
        }
        for (__u32 i = 0; i < DIR_TEXT_MAX; i++) {
                if (i >= scratch->end)
                        scratch->dir.dir[i] = '\0';
        }
}

/* "\nREADY=1", as eight bytes read at once. */
#define READY_LINE 0x313d59444145520aULL

/* Does the text have "READY=1" at the start of a line? */
static __always_inline bool has_ready(const char *text, __u32 size) {
        __u64 window = 0x0a00000000000000ULL; /* before the text a line ended */

        for (__u32 i = 0; i < NOTIFY_MESSAGE_MAX; i++) {
                if (i >= size)
                        break;
                window = window >> 8 | (__u64) (unsigned char) text[i] << 56;
                if (window == READY_LINE)
                        return true;
        }
        return false;
}

/* ---- the program ---- */

/* The time to a tick, which is good enough to stamp the last call of many. (The helper for the coarse clock
 * is not for tracing programs.) */
static __always_inline __u64 rough_time(struct cpu_state *cpu) {
        __u64 tick = bpf_jiffies64();

        if (cpu->tick != tick) {
                cpu->tick = tick;
                cpu->time_ns = bpf_ktime_get_ns();
        }
        return cpu->time_ns;
}

/* The slot where a CPU keeps the counter of this key, if it does. */
static __always_inline __u32 slot_of(__u64 key) {
        return (key * 0x9e3779b97f4a7c15ULL) >> 56 & (CALL_SLOTS - 1);
}

/* Moves the counter of a slot into the map. */
static __always_inline void flush_slot(struct call_slot *slot) {
        struct call_value *sum = bpf_map_lookup_elem(&calls, &slot->key);

        if (!sum) {
                if (bpf_map_update_elem(&calls, &slot->key, &slot->value, BPF_NOEXIST) < 0) {
                        /* Another CPU was first, or the map is full. */
                        sum = bpf_map_lookup_elem(&calls, &slot->key);
                        if (!sum)
                                count_lost(slot->key.session, LOSS_CALL_KEYS);
                }
        }
        if (sum) {
                __sync_fetch_and_add(&sum->count, slot->value.count);
                if (slot->value.first_ns < sum->first_ns)
                        sum->first_ns = slot->value.first_ns;
                if (slot->value.last_ns > sum->last_ns)
                        sum->last_ns = slot->value.last_ns;
        }
        slot->value.count = 0;
}

static __always_inline void count_call(struct cpu_state *cpu, __u32 session, __u32 program, __u32 nr,
                                       __u16 error) {
        union {
                struct call_key key;
                __u64 number;
        } key = { .key = { .program = program, .syscall = nr, .error = error, .session = session } };
        struct call_slot *slot = &cpu->slots[slot_of(key.number)];

        if (*(__u64 *) &slot->key == key.number && slot->value.count != 0) {
                slot->value.count++;
                slot->value.last_ns = rough_time(cpu);
                return;
        }
        if (slot->value.count != 0)
                flush_slot(slot);
        slot->key = key.key;
        slot->value.count = 1;
        slot->value.first_ns = slot->value.last_ns = bpf_ktime_get_ns();
}

static __always_inline struct path_scratch *get_path_scratch(void) {
        __u32 zero = 0;

        return bpf_map_lookup_elem(&path_scratches, &zero);
}

static __always_inline void count_directory(struct path_scratch *scratch) {
        __u64 one = 1, *count;

        top_directory(scratch, scratch->event.kind == PATH_INOTIFY);
        scratch->dir.session = scratch->event.head.session;
        scratch->dir.program = scratch->program;
        scratch->dir.kind = scratch->event.kind;
        count = bpf_map_lookup_elem(&dirs, &scratch->dir);
        if (count)
                __sync_fetch_and_add(count, 1);
        else if (bpf_map_update_elem(&dirs, &scratch->dir, &one, BPF_NOEXIST) < 0)
                count_lost(scratch->event.head.session, LOSS_PATH);
}

static __always_inline void tell_path(struct path_scratch *scratch) {
        __u32 session = scratch->event.head.session;

        fill_head(&scratch->event.head, EVENT_PATH, session, bpf_ktime_get_ns(),
                  (void *) bpf_get_current_task());
        if (bpf_ringbuf_output(&events, &scratch->event, sizeof(scratch->event), BPF_RB_NO_WAKEUP) < 0)
                count_lost(session, LOSS_PATH);
}

static __always_inline void read_path(struct event_path *event, __u64 address) {
        long n = bpf_probe_read_user_str(event->path, sizeof(event->path), (void *) address);

        event->path_size = n > 0 ? n : 0;
        if (n <= 0)
                event->path[0] = '\0';
}

static __always_inline void read_address(struct event_path *event, __u64 address, __u64 size) {
        if (size > ADDRESS_MAX)
                size = ADDRESS_MAX;
        event->path_size = bpf_probe_read_user(event->path, size, (void *) address) < 0 ? 0 : size;
}

/* Reads the text of a message that may be a notification: the buffer of a write() or sendto(), or the first
 * piece of a sendmsg(). Bytes; 0: it cannot be one. */
static __always_inline __u32 read_message(struct path_scratch *scratch) {
        struct event_path *event = &scratch->event;
        struct {
                __u64 base, size;
        } piece = { scratch->arguments[1], scratch->arguments[2] };
        __u64 pieces = 0;

        if (event->syscall == NR_SENDMSG) {
                if (bpf_probe_read_user(&pieces, sizeof(pieces), (void *) (piece.base + MSGHDR_IOV_OFFSET)) <
                            0 ||
                    bpf_probe_read_user(&piece, sizeof(piece), (void *) pieces) < 0)
                        return 0;
        }
        if (piece.size < NOTIFY_MESSAGE_MIN)
                return 0;
        /* One byte spares nearly everything that is not a list of VARIABLE=value. */
        if (bpf_probe_read_user(event->path, 1, (void *) piece.base) < 0 || event->path[0] < 'A' ||
            event->path[0] > 'Z')
                return 0;
        if (piece.size > NOTIFY_MESSAGE_MAX)
                piece.size = NOTIFY_MESSAGE_MAX;
        return bpf_probe_read_user(event->path, piece.size, (void *) piece.base) < 0 ? 0 : piece.size;
}

/* Only the READY=1 line is kept, so that nothing else that a service sends is seen. */
static __always_inline void on_message(struct path_scratch *scratch) {
        static const char ready[] = "READY=1";
        __u32 size = read_message(scratch);

        if (size == 0 || !has_ready(scratch->event.path, size))
                return;
        __builtin_memset(scratch->event.path, 0, sizeof(scratch->event.path));
        __builtin_memcpy(scratch->event.path, ready, sizeof(ready));
        scratch->event.path_size = sizeof(ready);
        tell_path(scratch);
}

/* The count is not exact when a program does the same on several CPUs at once; then one path too many is told. */
static __always_inline bool is_chosen(__u32 session, __u32 program, __u32 kind) {
        if (program >= PROGRAM_MAX || kind >= PATH_KIND_MAX)
                return false;
        return is_told(++path_counts[in_range(session)][program].count[kind]);
}

/* The call in the scratch has a path, an address or a message. A function of its own without pointers, so
 * that the verifier reads it once and not for each kind of call. */
__noinline int handle_path(__u32 kind, __u32 argument) {
        struct path_scratch *scratch = get_path_scratch();
        bool counted = kind == PATH_INOTIFY || kind == PATH_MISSING, told;
        struct event_path *event;

        if (!scratch || argument > 1)
                return 0;
        event = &scratch->event;
        if (kind == PATH_NOTIFY) {
                on_message(scratch);
                return 0;
        }

        told = is_chosen(event->head.session, scratch->program, kind);
        if (!told && !counted)
                return 0;
        if (kind == PATH_CONNECT)
                read_address(event, scratch->arguments[1], scratch->arguments[2]);
        else if (counted || kind == PATH_OPEN || kind == PATH_CHDIR ||
                 event->syscall == NR_INOTIFY_ADD_WATCH)
                read_path(event, argument == 0 ? scratch->arguments[0] : scratch->arguments[1]);
        if (counted && event->path_size > 1)
                count_directory(scratch);
        if (told)
                tell_path(scratch);
        return 0;
}

#include "bpf/object.bpf.h"

/* Puts the call into the scratch; NULL: cannot be. */
static __always_inline struct path_scratch *note_call(__u32 session, __u32 program,
                                                      const struct pt_regs *regs, __u32 nr, long result,
                                                      enum path_kind kind) {
        struct path_scratch *scratch = get_path_scratch();

        if (!scratch)
                return NULL;
        scratch->event.head.session = session;
        scratch->event.kind = kind;
        scratch->event.syscall = nr;
        scratch->event.result = result;
        scratch->event.argument = kind == PATH_INOTIFY || kind == PATH_INOTIFY_LIMIT ? regs->dx : regs->di;
        scratch->event.path_size = 0;
        scratch->arguments[0] = regs->di;
        scratch->arguments[1] = regs->si;
        scratch->arguments[2] = regs->dx;
        scratch->program = program;
        return scratch;
}

static __always_inline void on_path(__u32 session, __u32 program, const struct pt_regs *regs, __u32 nr,
                                    long result, enum path_kind kind, __u32 argument) {
        if (note_call(session, program, regs, nr, result, kind))
                handle_path(kind, argument);
}

static __always_inline void on_waited(__u32 session, __u32 program, const struct pt_regs *regs, __u32 nr,
                                      long result) {
        if (note_call(session, program, regs, nr, result, PATH_OBJECT))
                handle_object(nr);
}

/* The last process that made a call on this CPU is likely to make the next one, and most are no members. */
static __always_inline void remember(struct cpu_state *cpu, __u32 host_tgid) {
        __u64 epoch =
                members_epoch; /* read before the look-up: a change in between spoils it for the next call */
        struct member *member = member_of(host_tgid);

        cpu->host_tgid = host_tgid;
        cpu->session = member ? member->session : SESSION_MAX;
        cpu->program = member ? member->program : 0;
        cpu->epoch = epoch;
}

static __always_inline bool is_exec(__u32 nr) {
        return nr == NR_EXECVE || nr == NR_EXECVEAT || nr == (NR_IA32_EXECVE | SYSCALL_IA32);
}

static __always_inline int on_syscall_exit(const struct pt_regs *regs, long result) {
        __u64 ids = bpf_get_current_pid_tgid();
        __u32 host_tgid = ids >> 32;
        struct cpu_state *cpu = this_cpu();
        __u32 nr, argument, session, program;
        enum path_kind kind;
        __u64 begin;
        __u16 error;

        if (!cpu)
                return 0;
        if (cpu->host_tgid != host_tgid || cpu->epoch != members_epoch)
                remember(cpu, host_tgid);
        session = cpu->session;
        program = cpu->program;
        if (session >= SESSION_MAX)
                return 0;
        nr = call_number(regs->orig_ax, current_call_table());
        if (nr == SYSCALL_NONE)
                return 0;
        if (cpu->pending_tid != 0 && cpu->pending_tid == (__u32) ids) {
                bool gone = is_exec(nr) && result == 0;

                finish_telling(gone ? FINISH_EXEC : FINISH_WITH_STACK);
                if (!gone)
                        on_waited(session, program, regs, nr, result);
        }

        error = error_of(result);
        count_call(cpu, session, program, nr, error);
        cpu->calls[in_range(session)]++;

        kind = classify(nr, error, regs->si, &argument);
        if (kind == PATH_NULL)
                return 0;
        if (kind == PATH_INOTIFY)
                __sync_fetch_and_add(&stat_of(session)->inotify_watches, 1);
        begin = bpf_ktime_get_ns();
        on_path(session, program, regs, nr, result, kind, argument);
        __sync_fetch_and_add(&stat_of(session)->self_ns, bpf_ktime_get_ns() - begin);
        return 0;
}

/* A function of its own, so that the verifier reads it once and not for each slot. */
__noinline int flush_if_of_session(__u32 number, __u32 session) {
        struct cpu_state *cpu = this_cpu();
        struct call_slot *slot;

        if (!cpu || number >= CALL_SLOTS)
                return 0;
        slot = &cpu->slots[number];
        if (slot->value.count != 0 && slot->key.session == session)
                flush_slot(slot);
        return 0;
}

/* The end of a session: nobody counts for it any more. Run on each CPU in turn. */
static __always_inline int flush_session(__u32 session) {
        struct cpu_state *cpu = this_cpu();

        for (int i = 0; i < CALL_SLOTS; i++)
                flush_if_of_session(i, session);
        if (cpu)
                cpu->calls[in_range(session)] = 0;
        return 0;
}
