/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdint.h>

#include "common/buf.h"

/*
 * System calls: their names, and what kind of work they are. Everything here
 * takes the numbers of a recording: bit REC_CALL_IA32 set for the ia32 table,
 * or one of the REC_CALL_* words.
 */

enum {
        SYSCALL_NAMES_MAX = 512, /* numbers of one table lie below; as SYSCALL_NR_MAX of proto/event.h */
        SYSCALL_NUMBERS = 1024 + SYSCALL_NAMES_MAX, /* every number that can have a name lies below */
};

/* syscalls_x86.c; NULL where there is no call. */
extern const char *const syscall_names_native[SYSCALL_NAMES_MAX];
extern const char *const syscall_names_ia32[SYSCALL_NAMES_MAX];

/* What a call is used for, as far as a cause needs to know; bits. */
enum syscall_class {
        CALL_WATCH = 1 << 0, /* inotify_add_watch */
        CALL_WALK = 1 << 1, /* going through a tree: open, list, look at, close */
        CALL_LIST = 1 << 2, /* getdents */
        CALL_LOOKUP = 1 << 3, /* by path; fails with ENOENT where nothing is */
        CALL_STAT = 1 << 4,
        CALL_OWNER = 1 << 5, /* chown, chmod */
        CALL_SYNC = 1 << 6,
        CALL_CLOSE = 1 << 7, /* close; fcntl, which some loops use to set FD_CLOEXEC instead */
        CALL_SLEEP = 1 << 8,
        CALL_IDLE = 1 << 9, /* what a daemon that is done waits in */
        CALL_CHILD = 1 << 10, /* waiting for a child */
        CALL_FUTEX = 1 << 11,
        CALL_FORK = 1 << 12, /* fork, exec and what surrounds them */
        CALL_READ = 1 << 13,
        CALL_POLL = 1 << 14, /* waits for descriptors, up to a timeout */
        CALL_WATCH_INIT = 1 << 15, /* inotify_init */
};

/* "openat"; NULL for a number without a name. Static. */
const char *syscall_name(uint32_t number);
/* The same for people: "openat", "openat (32-bit)", "system call 999", "page fault"; "" for REC_CALL_NONE. */
void syscall_text(struct buf *b, uint32_t number);
/* Bits of enum syscall_class, 0 for what is none of them. A search: fill a table to use it often. */
uint32_t syscall_classes(uint32_t number);
