/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdint.h>

#include "proto/event.h"

/*
 * What startprof-worker and its parent (the daemon, or a client) say to each
 * other over two AF_UNIX SOCK_SEQPACKET pairs, which the worker finds as
 * descriptors 3 and 4. The worker parses strangers' files and is not trusted:
 * the parent checks each message, and takes a layer only through
 * recording_open().
 *
 * The parent announces modules and mappings as they appear and sends stack
 * copies; the worker unwinds at once and forgets the copy. It opens nothing:
 * it asks for files by role with FILE_WANTED and blocks until FILE_REPLY. So
 * a parent answers FILE_WANTED whenever it arrives (proto/worker_link.h does).
 * These two have descriptor 4 for themselves: an answer must not queue behind
 * the stacks that wait for it.
 *
 * FINISH makes the worker name all frames of the stacks it was sent and answer
 * with a layer (STRINGS, FRAMES, STACKS, STACK_FRAMES, SAMPLE_STACKS, NAMES,
 * SYMBOLS). NAME takes a recording and answers with a better layer (STRINGS,
 * NAMES, SYMBOLS). REPORT takes a recording and answers with JSON for the journal.
 */

enum {
        WORKER_FD = 3,
        WORKER_FILES_FD = 4,
        WORKER_PATH_MAX = 4096,
        WORKER_MESSAGE_MAX = STACK_COPY_MAX + 8192, /* below the default net.core.wmem_max */
};

enum worker_msg_type {
        /* parent → worker */
        WORKER_MODULE = 1, /* struct worker_module, path; no reply */
        WORKER_MAP, /* struct worker_map */
        WORKER_SPACE, /* struct worker_space */
        WORKER_STACK, /* struct worker_stack, stack bytes */
        WORKER_FINISH, /* struct worker_finish → WORKER_LAYER */
        WORKER_NAME, /* struct worker_finish + descriptor of a recording → WORKER_LAYER */
        WORKER_REPORT, /* header + descriptor of a recording → WORKER_REPORT_DONE */
        WORKER_FILE_REPLY, /* struct worker_file_reply [+ descriptor] */
        /* worker → parent */
        WORKER_READY = 100, /* header: sandbox is up */
        WORKER_FILE_WANTED, /* struct worker_file_wanted, name */
        WORKER_LAYER, /* struct worker_done [+ sealed memfd] */
        WORKER_REPORT_DONE, /* struct worker_done [+ sealed memfd: JSON text] */
        WORKER_TABLE, /* on WORKER_FILES_FD: struct worker_table, name + sealed memfd; no reply */
};

struct worker_head {
        uint32_t type;
        uint32_t bytes; /* of the whole message */
};

struct worker_module {
        struct worker_head head;
        uint32_t module; /* the parent's index in REC_MODULES; announced in order from 0 */
        uint32_t kind; /* enum rec_module_kind */
        uint8_t build_id[20];
        uint32_t build_id_bytes;
        uint32_t path_bytes; /* with the NUL; path follows */
        uint32_t reserved;
};

struct worker_map { /* overlays what was mapped there before in this space */
        struct worker_head head;
        uint32_t space, module;
        uint64_t start, end, file_offset;
};

struct worker_space { /* a new address space: exec (from REC_NONE: empty) or fork (a copy) */
        struct worker_head head;
        uint32_t space, from;
};

struct worker_stack {
        struct worker_head head;
        uint32_t sample; /* the parent's index in REC_SAMPLES */
        uint32_t space;
        uint32_t flags; /* enum sample_flags */
        uint32_t stack_bytes; /* follow; copied from regs[DWARF_RSP] */
        uint32_t second_bytes; /* follow those; copied from second_address: what a handler interrupted */
        uint32_t kernel_module; /* the parent's index of the kernel, when there are kernel frames */
        uint32_t kernel_frames; /* in `kernel` */
        uint32_t holes, second_holes; /* as in struct event_sample */
        uint32_t reserved;
        uint64_t second_address;
        uint64_t regs[REG_COUNT];
        uint64_t kernel[KERNEL_FRAMES_MAX]; /* innermost first */
};

struct worker_finish {
        struct worker_head head;
        uint32_t flags; /* reserved, 0 */
        uint32_t reserved;
};

enum worker_role {
        WORKER_ROLE_FILE, /* the mapped file of the module */
        WORKER_ROLE_DEBUG_BESIDE, /* NAME.dbg, NAME.debug beside it: `name` is the suffix */
        WORKER_ROLE_DEBUG_LINK, /* `name` from .gnu_debuglink: its directory, .debug/, /usr/lib/debug/DIR; `attempt` counts */
        WORKER_ROLE_DEBUG_BUILD_ID, /* DIR/.build-id/xx/yyyy.debug of the module's build-id in DIR number `attempt`:
                                       the user's --debug-dir first, then /usr/lib/debug */
        WORKER_ROLE_DEBUG_CACHE, /* <debuginfod cache `attempt`>/<build-id>/debuginfo */
        WORKER_ROLE_PERF_MAP, /* of a REC_MODULE_ANONYMOUS: the perf map of the process that made this code */
        WORKER_ROLE_DWZ, /* `name` from .gnu_debugaltlink, in .dwz/ and .dwz/x86_64-linux-gnu/ of the debug directories;
                            `attempt` counts */
        WORKER_ROLE_TABLE, /* the unwinder's table for the module as WORKER_TABLE gave it earlier: `name` is its key */
        WORKER_ROLE_DEBUG_DIRECTORY, /* file number `attempt` in the user's debug directories, whatever its name is */
        WORKER_ROLE_MAX,
};

struct worker_file_wanted {
        struct worker_head head;
        uint32_t module;
        uint32_t role; /* enum worker_role */
        uint32_t attempt; /* from 0 until the reply is -ENXIO: no such further place */
        uint32_t name_bytes; /* with the NUL, 0: no name */
};

struct worker_file_reply {
        struct worker_head head;
        int32_t error; /* 0 and a descriptor (read-only, regular file), or negative errno: -ENOENT not
                                   there, -ENXIO no further attempts */
        uint32_t path_bytes; /* with the NUL; what was opened, for the ledger; follows */
};

struct worker_table { /* for the next worker that needs it; the parent may keep it or not */
        struct worker_head head;
        uint32_t module;
        uint32_t name_bytes; /* with the NUL; the key follows */
};

struct worker_done {
        struct worker_head head;
        int32_t error; /* 0 and a descriptor, or negative errno */
        uint32_t reserved;
};
