/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <sys/types.h>

/*
 * What the worker gives up before it reads a stranger's file: user, groups, capabilities, network, core dumps,
 * most of its memory and time, and every system call but those that work on descriptors it already has. It
 * can read what it was handed, compute, and answer.
 */
struct sandbox_options {
        uid_t uid; /* to become, when started as root; never 0 then */
        gid_t gid;
        int nice; /* 0..19 */
};

/* There is no way back. -EINVAL: it would stay root. Errors of the system calls and of seccomp_load(3); after
 * an error the process must end. */
int sandbox_enter(const struct sandbox_options *options);
