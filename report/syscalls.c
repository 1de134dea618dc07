/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/syscalls.h"

#include "common/macro.h"
#include "proto/recording.h"

static const struct {
        const char *name;
        uint32_t classes;
} classified[] = {
        { "inotify_add_watch", CALL_WATCH | CALL_WALK | CALL_LOOKUP },
        { "inotify_init", CALL_WATCH_INIT },
        { "inotify_init1", CALL_WATCH_INIT },

        { "getdents", CALL_WALK | CALL_LIST },
        { "getdents64", CALL_WALK | CALL_LIST },
        { "open", CALL_WALK | CALL_LOOKUP },
        { "openat", CALL_WALK | CALL_LOOKUP },
        { "openat2", CALL_WALK | CALL_LOOKUP },
        { "stat", CALL_WALK | CALL_LOOKUP | CALL_STAT },
        { "lstat", CALL_WALK | CALL_LOOKUP | CALL_STAT },
        { "stat64", CALL_WALK | CALL_LOOKUP | CALL_STAT },
        { "lstat64", CALL_WALK | CALL_LOOKUP | CALL_STAT },
        { "newfstatat", CALL_WALK | CALL_LOOKUP | CALL_STAT },
        { "fstatat64", CALL_WALK | CALL_LOOKUP | CALL_STAT },
        { "statx", CALL_WALK | CALL_LOOKUP | CALL_STAT },
        { "fstat", CALL_WALK },
        { "fstat64", CALL_WALK },
        { "readlink", CALL_WALK | CALL_LOOKUP },
        { "readlinkat", CALL_WALK | CALL_LOOKUP },
        { "access", CALL_WALK | CALL_LOOKUP },
        { "faccessat", CALL_WALK | CALL_LOOKUP },
        { "faccessat2", CALL_WALK | CALL_LOOKUP },
        { "getxattr", CALL_WALK | CALL_LOOKUP },
        { "lgetxattr", CALL_WALK | CALL_LOOKUP },
        { "unlink", CALL_WALK | CALL_LOOKUP },
        { "unlinkat", CALL_WALK | CALL_LOOKUP },
        { "setxattr", CALL_WALK | CALL_LOOKUP | CALL_OWNER },
        { "lsetxattr", CALL_WALK | CALL_LOOKUP | CALL_OWNER },
        { "chown", CALL_WALK | CALL_LOOKUP | CALL_OWNER },
        { "chown32", CALL_WALK | CALL_LOOKUP | CALL_OWNER },
        { "lchown", CALL_WALK | CALL_LOOKUP | CALL_OWNER },
        { "lchown32", CALL_WALK | CALL_LOOKUP | CALL_OWNER },
        { "fchown", CALL_WALK | CALL_OWNER },
        { "fchown32", CALL_WALK | CALL_OWNER },
        { "fchownat", CALL_WALK | CALL_LOOKUP | CALL_OWNER },
        { "chmod", CALL_WALK | CALL_LOOKUP | CALL_OWNER },
        { "fchmod", CALL_WALK | CALL_OWNER },
        { "fchmodat", CALL_WALK | CALL_LOOKUP | CALL_OWNER },
        { "fchmodat2", CALL_WALK | CALL_LOOKUP | CALL_OWNER },
        { "close", CALL_WALK | CALL_CLOSE },
        { "fcntl", CALL_WALK | CALL_CLOSE },
        { "fcntl64", CALL_WALK | CALL_CLOSE },

        { "fsync", CALL_SYNC },
        { "fdatasync", CALL_SYNC },
        { "sync", CALL_SYNC },
        { "syncfs", CALL_SYNC },
        { "sync_file_range", CALL_SYNC },
        { "msync", CALL_SYNC },

        { "nanosleep", CALL_SLEEP | CALL_IDLE },
        { "clock_nanosleep", CALL_SLEEP | CALL_IDLE },
        { "clock_nanosleep_time64", CALL_SLEEP | CALL_IDLE },

        { "poll", CALL_IDLE | CALL_POLL },
        { "ppoll", CALL_IDLE | CALL_POLL },
        { "ppoll_time64", CALL_IDLE | CALL_POLL },
        { "select", CALL_IDLE | CALL_POLL },
        { "_newselect", CALL_IDLE | CALL_POLL },
        { "pselect6", CALL_IDLE | CALL_POLL },
        { "pselect6_time64", CALL_IDLE | CALL_POLL },
        { "epoll_wait", CALL_IDLE },
        { "epoll_pwait", CALL_IDLE },
        { "epoll_pwait2", CALL_IDLE },
        { "io_uring_enter", CALL_IDLE },
        { "accept", CALL_IDLE },
        { "accept4", CALL_IDLE },
        { "pause", CALL_IDLE },
        { "rt_sigsuspend", CALL_IDLE },
        { "rt_sigtimedwait", CALL_IDLE },
        { "rt_sigtimedwait_time64", CALL_IDLE },
        { "futex", CALL_IDLE | CALL_FUTEX },
        { "futex_time64", CALL_IDLE | CALL_FUTEX },
        { "futex_wait", CALL_IDLE | CALL_FUTEX },
        { "futex_waitv", CALL_IDLE | CALL_FUTEX },
        { "wait4", CALL_IDLE | CALL_CHILD },
        { "waitid", CALL_IDLE | CALL_CHILD },
        { "waitpid", CALL_IDLE | CALL_CHILD },

        { "fork", CALL_FORK },
        { "vfork", CALL_FORK },
        { "clone", CALL_FORK },
        { "clone3", CALL_FORK },
        { "execve", CALL_FORK | CALL_LOOKUP },
        { "execveat", CALL_FORK | CALL_LOOKUP },
        { "exit_group", CALL_FORK },

        { "read", CALL_READ },
        { "readv", CALL_READ },
        { "pread64", CALL_READ },
        { "preadv", CALL_READ },
};

const char *syscall_name(uint32_t number) {
        if (number < SYSCALL_NAMES_MAX)
                return syscall_names_native[number];
        if (number >= REC_CALL_IA32 && number - REC_CALL_IA32 < SYSCALL_NAMES_MAX)
                return syscall_names_ia32[number - REC_CALL_IA32];
        return NULL;
}

void syscall_text(struct buf *b, uint32_t number) {
        const char *name = syscall_name(number);

        if (number == REC_CALL_NONE)
                return;
        if (number == REC_CALL_FAULT)
                buf_puts(b, "page fault");
        else if (name)
                buf_printf(b, "%s%s", name, number >= REC_CALL_IA32 ? " (32-bit)" : "");
        else
                buf_printf(b, "system call %u", (unsigned) (number & ~REC_CALL_IA32));
}

uint32_t syscall_classes(uint32_t number) {
        const char *name = syscall_name(number);

        if (!name)
                return 0;
        for (size_t i = 0; i < ARRAY_SIZE(classified); i++)
                if (streq(classified[i].name, name))
                        return classified[i].classes;
        return 0;
}
