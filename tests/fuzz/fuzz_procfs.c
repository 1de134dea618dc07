/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Files of /proc whose content the profiled service decides in part: its name, its arguments, what it maps and
 * where, its cgroup.
 *
 * Input: what each of the files holds. Corpus (corpus/procfs): such files of real processes, and mangled ones.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/macro.h"
#include "common/procfs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void put(int dir_fd, const char *name, const uint8_t *data, size_t size) {
        _cleanup_close_ int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

        if (fd < 0 || fd_write_full(fd, data, size) < 0)
                abort();
}

static int read_path(const struct procfs_mapping *m, void *userdata) {
        *(size_t *) userdata += strlen(m->path);
        return 0;
}

/* The directory of this process. */
static void tree_path(char path[static 64]) {
        snprintf(path, 64, "/tmp/fuzz_procfs.%d", (int) getpid());
}

static void remove_tree(void) {
        char path[64];

        tree_path(path);
        (void) rmdir(path);
}

static int tree(void) {
        char path[64];
        int fd;

        tree_path(path);
        (void) mkdir(path, 0700);
        fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                abort();
        (void) mkdirat(fd, "7", 0700);
        (void) mkdirat(fd, "self", 0700);
        return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static const char *const files[] = { "7/stat",   "7/cmdline",      "7/maps",
                                             "7/cgroup", "self/mountinfo", "n" };
        _cleanup_free_ char *arguments = NULL, *cgroup = NULL, *root = NULL;
        _cleanup_close_ int fd = tree();
        struct procfs_stat stat;
        size_t bytes = 0;
        uint64_t n;

        for (size_t i = 0; i < ARRAY_SIZE(files); i++)
                put(fd, files[i], data, size);
        (void) procfs_stat(fd, 7, &stat);
        (void) procfs_arguments(fd, 7, 64, &arguments);
        (void) procfs_maps(fd, 7, read_path, &bytes);
        (void) procfs_cgroup(fd, 7, &cgroup);
        (void) procfs_cgroup_root(fd, &root);
        (void) procfs_u64(fd, "n", &n);
        for (size_t i = 0; i < ARRAY_SIZE(files); i++)
                (void) unlinkat(fd, files[i], 0);
        (void) unlinkat(fd, "7", AT_REMOVEDIR);
        (void) unlinkat(fd, "self", AT_REMOVEDIR);
        remove_tree();
        return 0;
}
