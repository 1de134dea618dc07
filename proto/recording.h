/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The recording: one start of one unit, complete without root, without the
 * processes and without the machine it was made on.
 *
 * A file is a header and sections. A section is an array of fixed-width
 * little-endian rows; sections are only ever appended, rows only ever grow at
 * their end, so a reader takes min(row size in the file, its own) and zeroes
 * the rest. Every text is an offset into the nearest STRINGS section *before*
 * the section that uses it, so whoever has something to add (the worker: the
 * stacks and names; a client: better names) appends a STRINGS section and its
 * own sections after it and touches nothing else. For NAMES and SYMBOLS the
 * last word on a frame or module counts. recording_open() makes all offsets
 * absolute: in a struct recording every text is read with recording_text().
 *
 * Times are CLOCK_MONOTONIC nanoseconds of the recorded machine unless a name
 * says usec. Indexes are checked when the file is opened: every index in a
 * struct recording is in range or REC_NONE.
 */

#define RECORDING_MAGIC "STARTPRF"
enum {
        RECORDING_VERSION = 1, /* greater: refused with -EPROTONOSUPPORT */
        RECORDING_SIZE_MAX = 512 * 1024 * 1024, /* inflated; a start of an hour stays below */
};
#define REC_NONE UINT32_MAX

struct rec_file_header {
        char magic[8];
        uint32_t version;
        uint32_t reserved;
};

struct rec_section_header {
        uint32_t type; /* enum rec_section; unknown ones are skipped */
        uint32_t flags; /* enum rec_section_flags */
        uint32_t row_bytes; /* 1 for STRINGS */
        uint32_t reserved;
        uint64_t stored_bytes; /* of the payload that follows, padded to 8 in the file */
        uint64_t raw_bytes; /* after inflation; a multiple of row_bytes */
};

enum rec_section_flags {
        REC_SECTION_ZSTD = 1 << 0,
};

/* Numbers are part of the format: append only. */
enum rec_section {
        REC_STRINGS = 1,
        REC_START = 2, /* exactly one row */
        REC_PROPERTIES = 3,
        REC_PROCESSES = 4,
        REC_MODULES = 5,
        REC_SAMPLES = 6,
        REC_CALLS = 7,
        REC_WAITS = 8,
        REC_PATHS = 9,
        REC_MILESTONES = 10,
        REC_PROGRAMS = 11,
        REC_DIRS = 12, /* histogram of the top directories of paths */
        /* appended by the worker, improved by clients */
        REC_FRAMES = 20,
        REC_STACKS = 21,
        REC_STACK_FRAMES = 22,
        REC_SAMPLE_STACKS = 23,
        REC_NAMES = 24,
        REC_SYMBOLS = 25,
};

enum rec_result { /* of the start; recording_result_str() gives the JSON word */
                  REC_RESULT_ACTIVE,
                  REC_RESULT_RUNNING,
                  REC_RESULT_FAILED,
                  REC_RESULT_TIMEOUT,
                  REC_RESULT_EXITED,
                  REC_RESULT_SKIPPED,
                  REC_RESULT_DEPENDENCY,
                  REC_RESULT_CANCELED,
                  REC_RESULT_INTERRUPTED,
                  REC_RESULT_MAX,
};

enum rec_end { /* what ended the capture, besides the result */
               REC_END_UP, /* systemd says active (or the oneshot ran) */
               REC_END_LISTEN,
               REC_END_IDLE, /* simple and idle units, see design §4 */
               REC_END_TIME, /* --until=TIME */
               REC_END_EXIT, /* --until=exit, or the unit is gone */
               REC_END_INTERRUPTED, /* Ctrl-C, --timeout, client gone */
               REC_END_MAX,
};

enum rec_lost { /* as enum loss_kind of proto/event.h, but numbers are stored here */
                REC_LOST_SAMPLES,
                REC_LOST_EVENTS,
                REC_LOST_PATHS,
                REC_LOST_WAITS,
                REC_LOST_CALL_KEYS,
                REC_LOST_WAIT_KEYS,
                REC_LOST_PROGRAMS,
                REC_LOST_PROCESSES,
                REC_LOST_MAPPINGS,
                REC_LOST_STACK_QUEUE,
                REC_LOST_MAX = 16,
};

struct rec_start {
        uint64_t queued_ns; /* TQ */
        uint64_t begin_ns; /* T0; 0: never began (skipped, dependency, canceled) */
        uint64_t end_ns; /* T1, or when the capture ended */
        uint64_t cgroup_ns; /* the cgroup was made; 0: it was there before */
        uint64_t armed_ns; /* capture was ready */
        uint64_t realtime_usec; /* CLOCK_REALTIME at TQ */
        uint8_t invocation_id[16]; /* zero: none */
        uint8_t boot_id[16];
        uint32_t result; /* enum rec_result */
        uint32_t end; /* enum rec_end */
        uint32_t frequency_hz;
        uint32_t cpu_count;
        uint32_t attempts; /* starts of the unit seen, Restart= included; the first is reported */
        uint32_t unit; /* text: canonical Id */
        uint32_t type; /* text: Type= of the unit ("notify") */
        uint32_t features; /* bits of the kernel features in use, daemon/probe.h */
        uint64_t lost[REC_LOST_MAX]; /* enum rec_lost */
        uint64_t cost_ns; /* CPU time that profiling took from the machine during the start */
        uint64_t samples_generated; /* by the kernel, within the capture; received + lost */
        uint64_t watch_limit; /* fs.inotify.max_user_watches, 0: unknown */
        uint64_t instance_limit; /* fs.inotify.max_user_instances */
};

/* Properties of the unit and of the host that a cause may need as evidence:
 * "WorkingDirectory" "/", "TimeoutStartUSec" "90000000", "host.kernel" "6.1.0",
 * "JobResult" "done", "host.version" …; names as systemd's D-Bus ones. */
struct rec_property {
        uint32_t name, value; /* texts */
};

enum rec_slot { /* which command line of the unit a process comes from */
                REC_SLOT_UNKNOWN,
                REC_SLOT_EXECUTOR /* systemd's own child before its exec */,
                REC_SLOT_CONDITION,
                REC_SLOT_START_PRE,
                REC_SLOT_START,
                REC_SLOT_START_POST,
                REC_SLOT_RELOAD,
                REC_SLOT_STOP,
                REC_SLOT_MAX,
};

struct rec_process {
        uint32_t pid, parent_pid; /* as systemd sees them */
        uint64_t begin_ns; /* fork, or the moment it joined */
        uint64_t exec_ns; /* first exec; 0: none */
        uint64_t end_ns; /* 0: alive at the end of the capture */
        uint32_t comm, exe, arguments; /* texts; arguments: argv joined by spaces, cut, no environment */
        uint32_t cwd; /* text; at exec */
        uint32_t program; /* index into PROGRAMS, of its last exec, or REC_NONE */
        uint32_t slot; /* enum rec_slot */
        uint32_t exit_code; /* as a wait status */
        uint32_t flags; /* reserved, 0 */
};

struct rec_program { /* what calls are counted by: executable and command slot */
        uint32_t exe; /* text */
        uint32_t slot; /* enum rec_slot */
};

enum rec_module_kind {
        REC_MODULE_FILE,
        REC_MODULE_ANONYMOUS /* JIT code */,
        REC_MODULE_VDSO,
        REC_MODULE_KERNEL,
        REC_MODULE_DELETED /* a file without a name any more */
};

struct rec_module {
        uint32_t path; /* text, as the process sees it */
        uint32_t kind; /* enum rec_module_kind */
        uint8_t build_id[20];
        uint32_t build_id_bytes; /* 0: none */
};

enum rec_sample_kind {
        REC_SAMPLE_CPU_USER,
        REC_SAMPLE_CPU_KERNEL,
        REC_SAMPLE_WAIT, /* blocked in a call, or `syscall` REC_CALL_NONE */
        REC_SAMPLE_FAULT, /* blocked in a page fault */
        REC_SAMPLE_MAX,
};

enum rec_sample_flags {
        REC_SAMPLE_IO = 1 << 0, /* wait: in_iowait */
        REC_SAMPLE_COMPAT = 1 << 1, /* 32-bit: no stack */
        REC_SAMPLE_CUT = 1 << 2, /* the stack copy ended at the cap */
        REC_SAMPLE_NO_STACK = 1 << 3, /* none was taken; see stack reasons otherwise */
        REC_SAMPLE_IN_FAULT = 1 << 4, /* CPU_KERNEL: for a fault or interrupt, not a call */
        REC_SAMPLE_EXEC = 1 << 5, /* wait: an exec replaced the image that waited; no stack */
        REC_SAMPLE_OPEN = 1 << 6, /* wait: had not ended when the capture did */
};

#define REC_CALL_NONE   0xffffu /* not in a call */
#define REC_CALL_FAULT  0xfffeu
#define REC_CALL_ON_CPU 0xfffdu /* REC_WAITS only: exact time on CPU */
#define REC_CALL_IA32   0x400u /* bit: number of the ia32 table */

struct rec_sample {
        uint64_t time_ns; /* CPU: when; wait: when it was over and the thread woken */
        uint64_t weight_ns; /* time that it stands for */
        uint64_t blocked_ns; /* wait: of this one wait; else 0 */
        uint32_t process; /* index */
        uint32_t tid;
        uint32_t comm; /* text: of the thread */
        uint32_t kind; /* enum rec_sample_kind */
        uint32_t flags; /* enum rec_sample_flags */
        uint32_t syscall; /* number or REC_CALL_NONE */
        uint32_t cpu;
        uint32_t waker_pid; /* wait: who ended it; 0: an interrupt or unseen */
        uint32_t waker_comm; /* text */
        uint32_t stack; /* REC_NONE in the file: SAMPLE_STACKS says; joined when opened */
        uint32_t kernel_stack; /* likewise: where it was in the kernel */
        uint32_t reserved;
};

struct rec_call {
        uint64_t count, first_ns, last_ns;
        uint32_t program; /* index */
        uint32_t syscall;
        uint32_t error; /* errno, 0: success */
        uint32_t flags; /* reserved */
};

/* Exact time per thread and call; rows of one thread add up to its life. */
struct rec_wait {
        uint64_t blocked_ns, io_ns, runnable_ns, longest_ns, count;
        uint32_t process; /* index, or REC_NONE: those that found no room */
        uint32_t tid;
        uint32_t syscall; /* number, REC_CALL_NONE, _FAULT or _ON_CPU */
        uint32_t reserved;
};

enum rec_path_kind { /* stored: append only */
                     REC_PATH_INOTIFY = 1,
                     REC_PATH_MISSING,
                     REC_PATH_CONNECT,
                     REC_PATH_LISTEN,
                     REC_PATH_NOTIFY,
                     REC_PATH_CHDIR,
                     REC_PATH_OPEN,
                     REC_PATH_SYNC,
                     REC_PATH_LOCK,
                     REC_PATH_INOTIFY_LIMIT,
                     REC_PATH_OBJECT, /* what a wait was for; argument: enum rec_object_kind, see rec_object_…() */
};

enum rec_object_kind { /* stored: append only */
                       REC_OBJECT_OTHER,
                       REC_OBJECT_FILE,
                       REC_OBJECT_DIRECTORY,
                       REC_OBJECT_PIPE,
                       REC_OBJECT_DEVICE,
                       REC_OBJECT_TCP,
                       REC_OBJECT_UDP,
                       REC_OBJECT_UNIX,
                       REC_OBJECT_SOCKET,
                       REC_OBJECT_MAX,
};

/* Parts of the argument of a REC_PATH_OBJECT. The path is that of the file, or the peer's address. */
enum {
        REC_OBJECT_STATE_SHIFT = 32, /* of TCP, 8 bits; the descriptor is below */
        REC_OBJECT_KIND_SHIFT = 40,
};

struct rec_path { /* a bounded sample: the first of each kind, then every so many */
        uint64_t time_ns;
        uint64_t argument; /* descriptor or watch mask */
        uint32_t process;
        uint32_t kind; /* enum rec_path_kind */
        uint32_t syscall;
        int32_t result;
        uint32_t path; /* text; addresses as text "inet:1.2.3.4:53", "unix:/run/x", "unix:@abs" */
        uint32_t tid;
};

struct rec_dir { /* how many paths of a kind lay below a top directory */
        uint64_t count;
        uint32_t kind; /* enum rec_path_kind */
        uint32_t program;
        uint32_t path; /* text: "/usr/share" */
        uint32_t reserved;
};

enum rec_milestone_kind { /* stored: append only; recording_milestone_str() */
                          REC_MILESTONE_QUEUED,
                          REC_MILESTONE_BEGIN,
                          REC_MILESTONE_CGROUP,
                          REC_MILESTONE_EXECUTOR,
                          REC_MILESTONE_EXEC,
                          REC_MILESTONE_LISTEN,
                          REC_MILESTONE_READY_SENT,
                          REC_MILESTONE_ACTIVE,
                          REC_MILESTONE_FAILED,
                          REC_MILESTONE_TIMED_OUT,
                          REC_MILESTONE_EXITED,
                          REC_MILESTONE_RESTARTED,
                          REC_MILESTONE_MAX,
};

struct rec_milestone {
        uint64_t time_ns;
        uint32_t kind; /* enum rec_milestone_kind */
        uint32_t process; /* index or REC_NONE */
        uint32_t detail; /* text: argv[0], Result, … */
        uint32_t slot; /* enum rec_slot */
};

/* ---- stacks and names: written by the worker ---- */

enum rec_frame_how { /* how the frame was found; innermost: REGS */
                     REC_HOW_REGS,
                     REC_HOW_CFI,
                     REC_HOW_FRAME_POINTER,
                     REC_HOW_LEAF /* return address at SP */,
                     REC_HOW_SIGNAL /* interrupted by a signal: exact pc */,
                     REC_HOW_KERNEL /* by the kernel, of its own stack */,
                     REC_HOW_MAX,
};

struct rec_frame { /* normalised; equal ones are one row per `how` */
        uint64_t offset; /* in the file; without a module the address */
        uint32_t module; /* index or REC_NONE */
        uint32_t how; /* enum rec_frame_how */
};

enum rec_stack_end {
        REC_STACK_COMPLETE, /* reached a root frame */
        REC_STACK_NO_CFI,
        REC_STACK_COPY_ENDED,
        REC_STACK_READ_FAULT,
        REC_STACK_DEPTH,
        REC_STACK_NO_MODULE, /* code outside every known mapping */
        REC_STACK_COMPAT,
        REC_STACK_NONE,
        REC_STACK_GONE, /* there is none: the process was ending, or becoming another program */
        REC_STACK_END_MAX,
};

struct rec_stack { /* equal stacks are one row */
        uint32_t first, count; /* into STACK_FRAMES (u32 indexes into FRAMES), innermost first */
        uint32_t end; /* enum rec_stack_end */
        uint32_t reserved;
};

struct rec_sample_stack {
        uint32_t sample, stack;
        uint32_t kernel; /* index of the kernel stack + 1; 0: none */
};

enum rec_source { /* where a name comes from; recording_source_str() */
                  REC_SOURCE_NONE,
                  REC_SOURCE_SYMTAB,
                  REC_SOURCE_DYNSYM,
                  REC_SOURCE_DEBUG_SYMTAB,
                  REC_SOURCE_DWARF,
                  REC_SOURCE_NATIVEAOT,
                  REC_SOURCE_MINIDEBUG,
                  REC_SOURCE_PERF_MAP,
                  REC_SOURCE_LABEL,
                  REC_SOURCE_VDSO,
                  REC_SOURCE_KALLSYMS,
                  REC_SOURCE_MAX,
};

enum rec_reason { /* why a frame or module has no (better) name; recording_reason_str() */
                  REC_REASON_NONE,
                  REC_REASON_STRIPPED /* no symbols, and no debug file found */,
                  REC_REASON_NO_FILE /* could not be opened any more */,
                  REC_REASON_MISMATCH /* build-id differs */,
                  REC_REASON_BAD_ELF,
                  REC_REASON_NO_SYMBOL /* address in no symbol's range */,
                  REC_REASON_JIT /* code made at run time, no map */,
                  REC_REASON_UNMAPPED,
                  REC_REASON_LIMIT,
                  REC_REASON_VERSION /* .NET version unknown */,
                  REC_REASON_PRECOMPILED /* .NET code that was compiled ahead of time into a .dll */,
                  REC_REASON_HIDDEN /* the kernel does not show its addresses */,
                  REC_REASON_NO_STACK_DATA /* .NET program built with StackTraceSupport=false */,
                  REC_REASON_BAD_DOTNET /* its data for stack traces contradicts its code */,
                  REC_REASON_MAX,
};

struct rec_name { /* rows of one frame are adjacent, innermost inline first */
        uint32_t frame;
        uint32_t name; /* text, demangled; 0: none */
        uint32_t file; /* text or 0 */
        uint32_t line;
        uint32_t inlined; /* 1: inlined into the next row of the same frame */
        uint32_t source; /* enum rec_source */
        uint32_t reason; /* enum rec_reason, when there is no name */
        uint32_t displacement; /* from the symbol's start, in bytes */
};

struct rec_symbols { /* the ledger: one row per sampled module */
        uint32_t module;
        uint32_t source; /* the best one that named something here */
        uint32_t reason;
        uint32_t debug_path; /* text: where the debug file was found, or 0 */
};

/* ---- reading ---- */

#define REC_ARRAY(type, name)                                                                               \
        const struct type *name;                                                                            \
        uint32_t n_##name

struct recording {
        const struct rec_start *start;
        REC_ARRAY(rec_property, properties);
        REC_ARRAY(rec_process, processes);
        REC_ARRAY(rec_program, programs);
        REC_ARRAY(rec_module, modules);
        REC_ARRAY(rec_sample, samples);
        REC_ARRAY(rec_call, calls);
        REC_ARRAY(rec_wait, waits);
        REC_ARRAY(rec_path, paths);
        REC_ARRAY(rec_dir, dirs);
        REC_ARRAY(rec_milestone, milestones);
        REC_ARRAY(rec_frame, frames);
        REC_ARRAY(rec_stack, stacks);
        const uint32_t *stack_frames;
        uint32_t n_stack_frames;
        REC_ARRAY(rec_name, names); /* sorted by frame, last layer only */
        const uint32_t *frame_names; /* n_frames + 1: names[frame_names[i]] … [frame_names[i + 1]) */
        const struct rec_symbols *symbols; /* n_modules rows, one per module, in order */
};

/*
 * Opens a recording from memory (which may be changed or freed afterwards).
 * Everything is copied, inflated, bounds-checked and joined.
 *
 * 0                     *ret is the caller's, recording_free()
 * -EBADMSG              not a recording, truncated, or an index or offset out of range
 * -EPROTONOSUPPORT      a newer version
 * -EFBIG                larger than RECORDING_SIZE_MAX
 * -ENOMEM
 */
int recording_open(const void *data, size_t bytes, struct recording **ret);
/* The same from a descriptor of a regular file or memfd (borrowed, offset
 * irrelevant); besides, errors of fstat(2) and pread(2), -ENODATA for an empty file. */
int recording_open_fd(int fd, struct recording **ret);
struct recording *recording_free(struct recording *r); /* NULL is fine; returns NULL */

/* Never NULL: offset 0 is "". Valid as long as r. UTF-8 is not promised. */
const char *recording_text(const struct recording *r, uint32_t text);
/* Value of a property, NULL when absent. */
const char *recording_property(const struct recording *r, const char *name);
const char *recording_result_str(uint32_t result);
const char *recording_milestone_str(uint32_t kind);
const char *recording_slot_str(uint32_t slot); /* "ExecStartPre", "" for unknown */
const char *recording_source_str(uint32_t source);
const char *recording_reason_str(uint32_t reason);
const char *recording_stack_end_str(uint32_t end);
const char *recording_lost_str(uint32_t what); /* of enum rec_lost, in the plural; never "" */

/* ---- writing ---- */

struct recording_writer; /* grows in memory */

/* header: begin with the file header; without, only sections (a layer to append). NULL: no memory. */
struct recording_writer *recording_writer_new(bool header);
struct recording_writer *recording_writer_free(struct recording_writer *w);
/* Offset of a text in the layer's STRINGS section; equal texts are one. NULL and "" are 0.
 * An error (no memory) sticks and is returned by the functions that finish. */
uint32_t recording_writer_text(struct recording_writer *w, const char *text);
/* Adds rows of a section; rows of the same type are joined. `row_bytes` is the sizeof. */
void recording_writer_rows(struct recording_writer *w, enum rec_section type, const void *rows,
                           size_t row_bytes, size_t count);
/* Adds a finished layer (from another process: it is only trusted by recording_open()). It follows this
 * writer's own sections. */
void recording_writer_layer(struct recording_writer *w, const void *layer, size_t bytes);
/* Forgets the layers that were added: they made the whole one that recording_open() refuses. */
void recording_writer_drop_layers(struct recording_writer *w);
/* The bytes of the file: malloc()ed, the caller's. compress: zstd sections. The writer stays valid.
 * -ENOMEM, -EFBIG, or the error that stuck. */
int recording_writer_finish(struct recording_writer *w, bool compress, void **ret, size_t *ret_bytes);

/* Does data begin like a recording (any version)? For ID|UNIT|FILE. */
bool recording_magic(const void *data, size_t bytes);
