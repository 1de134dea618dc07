/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/output.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/message.h"
#include "common/atomic_file.h"
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

static int open_output(const char *path, struct output *o) {
        int r;

        r = open_directory(path, &o->dir_fd, &o->name);
        if (r < 0)
                return cannot_write(path, -r);
        r = check_target(o->dir_fd, path, o->name);
        if (r != 0)
                return r;
        r = atomic_file_open(o->dir_fd, &o->file);
        if (r < 0)
                return cannot_write(path, -r);
        o->stream = fdopen(o->file.fd, "w");
        return o->stream ? 0 : cannot_write(path, errno);
}

int output_open(const char *path, struct output *ret) {
        int r;

        *ret = OUTPUT_NULL;
        ret->path = path;
        r = open_output(path, ret);
        if (r != 0)
                output_done(ret);
        return r;
}

int output_finish(struct output *o) {
        mode_t mask = umask(0);
        int r;

        umask(mask);
        if (fflush(o->stream) != 0 || ferror(o->stream))
                return cannot_write(o->path, errno);
        r = atomic_file_commit(&o->file, o->name, 0666 & ~mask);
        return r < 0 ? cannot_write(o->path, -r) : 0;
}

void output_done(struct output *o) {
        if (o->stream) {
                fclose(o->stream);
                o->file.fd = -EBADF;
        }
        atomic_file_done(&o->file);
        if (o->dir_fd >= 0)
                close(o->dir_fd);
        *o = OUTPUT_NULL;
}

int output_write(const char *path, const void *data, size_t bytes) {
        _cleanup_(output_done) struct output o = OUTPUT_NULL;
        int r;

        r = output_open(path, &o);
        if (r != 0)
                return r;
        fwrite(data, 1, bytes, o.stream);
        return output_finish(&o);
}
