/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/output.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/message.h"
#include "common/fd.h"
#include "common/macro.h"

static int cannot_write(const char *path, int error) {
        return message_fail(EXIT_FILE, "cannot write %s: %s", path, strerror(error));
}

/* Opens the directory; *ret_name points to the last part of path. Negative errno. */
static int open_directory(const char *path, int *ret_fd, const char **ret_name) {
        _cleanup_free_ char *directory = NULL;
        const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
        int fd;

        if (!*name || streq(name, ".") || streq(name, ".."))
                return -EISDIR;
        directory = !slash          ? strdup(".")
                    : slash == path ? strdup("/")
                                    : strndup(path, (size_t) (slash - path));
        if (!directory)
                return -ENOMEM;
        fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        *ret_fd = fd;
        *ret_name = name;
        return 0;
}

/* A symbolic link would be replaced, not followed: refused, as are devices and pipes. */
static int check_target(int dir_fd, const char *path, const char *name) {
        struct stat st;

        if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return errno == ENOENT ? 0 : cannot_write(path, errno);
        if (!S_ISREG(st.st_mode))
                return message_fail(EXIT_FILE, "cannot write %s: it is there and is not a regular file",
                                    path);
        return 0;
}

int output_check(const char *path) {
        _cleanup_close_ int dir_fd = -EBADF;
        const char *name = "";
        int r;

        r = open_directory(path, &dir_fd, &name);
        if (r < 0)
                return cannot_write(path, -r);
        if (faccessat(dir_fd, ".", W_OK | X_OK, AT_EACCESS) < 0)
                return cannot_write(path, errno);
        return check_target(dir_fd, path, name);
}

int output_write(const char *path, const void *data, size_t bytes) {
        _cleanup_close_ int dir_fd = -EBADF;
        const char *name = "";
        mode_t mask;
        int r;

        r = open_directory(path, &dir_fd, &name);
        if (r < 0)
                return cannot_write(path, -r);
        r = check_target(dir_fd, path, name);
        if (r != 0)
                return r;
        mask = umask(0);
        umask(mask);
        r = write_file_atomic_at(dir_fd, name, data, bytes, 0666 & ~mask);
        return r < 0 ? cannot_write(path, -r) : 0;
}
