/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdint.h>
#include <stddef.h>

/*
 * /proc, read below a directory descriptor of it, so that tests read captured trees. A process may go at
 * any moment: -ESRCH or -ENOENT then. All texts are malloc()ed.
 */

enum { PROCFS_FILE_MAX = 1 << 20 };

struct procfs_stat {
        char comm[64]; /* between the first '(' and the *last* ')': a comm may hold both */
        char state;
        uint32_t parent;
        uint64_t start_ticks; /* since boot */
};

struct procfs_status {
        uint32_t inner_pid; /* in the process's own pid namespace */
        uint32_t uids[4]; /* real, effective, saved, of file system */
};

int procfs_open(int *ret_fd); /* "/proc" */
int procfs_stat(int proc_fd, uint32_t pid, struct procfs_stat *ret);
/* -EBADMSG: a line is missing or malformed. */
int procfs_status(int proc_fd, uint32_t pid, struct procfs_status *ret);
/* argv joined by single spaces, cut at `max` bytes. "" for kernel threads. */
int procfs_arguments(int proc_fd, uint32_t pid, size_t max, char **ret);
/* How often a thread has left a CPU, by itself or not; as long as it stays, the thread has not run. -EBADMSG. */
int procfs_switches(int proc_fd, uint32_t tgid, uint32_t tid, uint64_t *ret);
int procfs_link(int proc_fd, uint32_t pid, const char *name /* "exe", "cwd", "root" */, char **ret);
/* Path below the v2 hierarchy ("0::" line of /proc/PID/cgroup), as the reader's cgroup namespace shows it. */
int procfs_cgroup(int proc_fd, uint32_t pid, char **ret);
/* Where the cgroup v2 hierarchy is mounted (mountinfo of the reader); -ENOENT: none. */
int procfs_cgroup_root(int proc_fd, char **ret);
/* A number in a file such as "sys/fs/inotify/max_user_watches". */
int procfs_u64(int proc_fd, const char *path, uint64_t *ret);

struct procfs_mapping {
        uint64_t start, end, offset, inode;
        uint32_t major, minor;
        char permissions[5];
        const char *path; /* unescaped (\012), "" for anonymous; valid in the callback only */
};
/* Calls f for each line of /proc/PID/maps until it returns non-zero, which is returned. -EBADMSG: a line
 * that is none. */
int procfs_maps(int proc_fd, uint32_t pid, int (*f)(const struct procfs_mapping *m, void *userdata),
                void *userdata);
