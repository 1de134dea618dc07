/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "worker/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <seccomp.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/macro.h"
#include "proto/recording.h"

#if defined(__SANITIZE_ADDRESS__)
#define WITH_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_ADDRESS_SANITIZER 1
#endif
#endif

enum { CPU_SEC_MAX = 120, FILES_MAX = 64 };
#define ADDRESS_SPACE_MAX (UINT64_C(16) << 30) /* files of 300 MB are common in debug directories */
#define DATA_BYTES_MAX    (UINT64_C(1) << 30) /* what it may allocate */

static int limit(int resource, uint64_t value) {
        struct rlimit old;

        if (getrlimit((__rlimit_resource_t) resource, &old) < 0)
                return -errno;
        value = MIN(value, (uint64_t) old.rlim_max);
        return setrlimit((__rlimit_resource_t) resource, &(struct rlimit){ value, value }) < 0 ? -errno : 0;
}

static int limit_resources(void) {
        int r;

        r = limit(RLIMIT_CORE, 0);
        r = r ?: limit(RLIMIT_CPU, CPU_SEC_MAX);
        r = r ?: limit(RLIMIT_NOFILE, FILES_MAX);
        r = r ?: limit(RLIMIT_FSIZE, RECORDING_SIZE_MAX);
#ifndef WITH_ADDRESS_SANITIZER /* its shadow takes 16 TB */
        r = r ?: limit(RLIMIT_AS, ADDRESS_SPACE_MAX);
        r = r ?: limit(RLIMIT_DATA, DATA_BYTES_MAX);
#endif
        return r;
}

static int become(const struct sandbox_options *options) {
        if (geteuid() != 0)
                return 0;
        if (options->uid == 0 || options->gid == 0)
                return -EINVAL;

        /* Only where it is allowed: a service with RestrictNamespaces= has no network of its own to leave, and
         * the filter forbids sockets anyway. */
        (void) unshare(CLONE_NEWNET);

        if (setgroups(0, NULL) < 0 || setresgid(options->gid, options->gid, options->gid) < 0 ||
            setresuid(options->uid, options->uid, options->uid) < 0)
                return -errno;
        return 0;
}

/* Leaving uid 0 empties them, but somebody else may have started us with ambient ones. */
static int drop_capabilities(void) {
        struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {};

        if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
                return -errno;
        return syscall(SYS_capset, &header, none) < 0 ? -errno : 0;
}

/*
 * Calls that need nothing but descriptors at hand. Which of a pair the C library uses depends on its version
 * (glibc 2.36 of Debian 12 implements fstat() by newfstatat(), 2.41 of Debian 13 by fstat()). Everything else
 * fails with EPERM rather than killing, because libraries look for optional things (locales, /proc files).
 */
static const int allowed[] = {
        SCMP_SYS(read),         SCMP_SYS(readv),       SCMP_SYS(pread64),         SCMP_SYS(write),
        SCMP_SYS(writev),       SCMP_SYS(recvmsg),     SCMP_SYS(sendmsg),         SCMP_SYS(close),
        SCMP_SYS(fstat),        SCMP_SYS(lseek),       SCMP_SYS(memfd_create),    SCMP_SYS(ftruncate),
        SCMP_SYS(brk),          SCMP_SYS(munmap),      SCMP_SYS(mremap),          SCMP_SYS(madvise),
        SCMP_SYS(futex),        SCMP_SYS(getrandom),   SCMP_SYS(clock_gettime),   SCMP_SYS(sched_yield),
        SCMP_SYS(getpid),       SCMP_SYS(gettid),      SCMP_SYS(rt_sigprocmask),  SCMP_SYS(rt_sigaction),
        SCMP_SYS(rt_sigreturn), SCMP_SYS(sigaltstack), SCMP_SYS(restart_syscall), SCMP_SYS(exit),
        SCMP_SYS(exit_group),
};

static int allow_with(scmp_filter_ctx filter, int call, unsigned argument, uint64_t mask, uint64_t value) {
        return seccomp_rule_add(filter, SCMP_ACT_ALLOW, call, 1,
                                SCMP_CMP(argument, SCMP_CMP_MASKED_EQ, mask, value));
}

static int fill_filter(scmp_filter_ctx filter) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(allowed); i++)
                r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, allowed[i], 0);

        /* No memory that can be executed. */
        r = r ?: allow_with(filter, SCMP_SYS(mmap), 2, PROT_EXEC, 0);
        r = r ?: allow_with(filter, SCMP_SYS(mprotect), 2, PROT_EXEC, 0);
        /* fstat() of a descriptor; a path beside the flag would only be looked at, as an unprivileged user. */
        r = r ?: allow_with(filter, SCMP_SYS(newfstatat), 3, AT_EMPTY_PATH, AT_EMPTY_PATH);
        r = r ?: allow_with(filter, SCMP_SYS(fcntl), 1, UINT32_MAX, F_ADD_SEALS);
        r = r ?: allow_with(filter, SCMP_SYS(fcntl), 1, UINT32_MAX, F_GET_SEALS);
        r = r ?: allow_with(filter, SCMP_SYS(fcntl), 1, UINT32_MAX, F_GETFL);
        /* abort() of this process. */
        r = r ?: allow_with(filter, SCMP_SYS(tgkill), 0, UINT32_MAX, (uint64_t) getpid());
        return r;
}

static int filter_calls(void) {
        scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
        int r;

        if (!filter)
                return -ENOMEM;
        r = fill_filter(filter);
        r = r ?: seccomp_load(filter);
        seccomp_release(filter);
        return r;
}

int sandbox_enter(const struct sandbox_options *options) {
        int r;

        if (options->nice > 0) /* else its parent sees to it */
                (void) setpriority(PRIO_PROCESS, 0, options->nice);

        r = limit_resources();
        r = r ?: become(options);
        r = r ?: drop_capabilities();
        if (r < 0)
                return r;

        /* Stack copies may hold secrets: no dump, no debugger, no /proc/PID/mem. Changing the user has reset it. */
        if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                return -errno;
        return filter_calls();
}
