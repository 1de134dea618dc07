/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/atomic_file.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fd.h"

static int choose_name(char (*name)[40]) {
        uint64_t random;

        if (getrandom(&random, sizeof(random), 0) != (ssize_t) sizeof(random))
                return -EIO;
        snprintf(*name, sizeof(*name), ".startprof-%016" PRIx64 ".tmp", random);
        return 0;
}

static int open_named(struct atomic_file *f) {
        int r = choose_name(&f->temporary);

        if (r < 0)
                return r;
        f->fd = openat(f->dir_fd, f->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        return f->fd < 0 ? -errno : 0;
}

int atomic_file_open(int dir_fd, struct atomic_file *ret) {
        struct atomic_file f = { .dir_fd = dir_fd };
        int r = 0;

        f.fd = openat(dir_fd, ".", O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600);
        /* EISDIR: a kernel that does not know the flag; ENOENT: overlays of some (open(2)) */
        if (f.fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == ENOENT))
                r = open_named(&f);
        else if (f.fd < 0)
                r = -errno;
        if (r < 0)
                return r;
        *ret = f;
        return 0;
}

/* A link cannot replace what is there, a rename can. */
static int give_name(struct atomic_file *f) {
        char path[40];
        int r;

        if (f->temporary[0])
                return 0;
        r = choose_name(&f->temporary);
        if (r < 0)
                return r;
        snprintf(path, sizeof(path), "/proc/self/fd/%d", f->fd);
        if (linkat(AT_FDCWD, path, f->dir_fd, f->temporary, AT_SYMLINK_FOLLOW) < 0) {
                f->temporary[0] = '\0';
                return -errno;
        }
        return 0;
}

/* The name must survive a crash as well as the bytes. Some file systems cannot sync directories (EINVAL). */
static int sync_directory(int dir_fd) {
        _cleanup_close_ int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        if (fd < 0)
                return -errno;
        return fsync(fd) < 0 && errno != EINVAL ? -errno : 0;
}

int atomic_file_commit(struct atomic_file *f, const char *name, mode_t mode) {
        int r;

        if (fchmod(f->fd, mode) < 0 || fsync(f->fd) < 0)
                return -errno;
        r = give_name(f);
        if (r < 0)
                return r;
        if (renameat(f->dir_fd, f->temporary, f->dir_fd, name) < 0)
                return -errno;
        f->temporary[0] = '\0';
        return sync_directory(f->dir_fd);
}

void atomic_file_done(struct atomic_file *f) {
        if (f->temporary[0])
                unlinkat(f->dir_fd, f->temporary, 0);
        if (f->fd >= 0)
                close(f->fd);
        *f = ATOMIC_FILE_NULL;
}

int write_file_atomic_at(int dir_fd, const char *name, const void *data, size_t bytes, mode_t mode) {
        _cleanup_(atomic_file_done) struct atomic_file f = ATOMIC_FILE_NULL;
        int r;

        r = atomic_file_open(dir_fd, &f);
        if (r < 0)
                return r;
        r = fd_write_full(f.fd, data, bytes);
        return r < 0 ? r : atomic_file_commit(&f, name, mode);
}
