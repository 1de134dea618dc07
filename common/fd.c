/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/fd.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/macro.h"

enum {
        READ_STEP = 4096, /* procfs gives a page at a time at most */
        ALL_SEALS = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE,
};

int fd_close(int fd) {
        if (fd >= 0) {
                int saved_errno = errno;

                close(fd);
                errno = saved_errno;
        }
        return -EBADF;
}

ssize_t fd_read_full(int fd, void *data, size_t bytes) {
        size_t done = 0;

        while (done < bytes) {
                ssize_t n = read(fd, (char *) data + done, bytes - done);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                if (n == 0)
                        break;
                done += (size_t) n;
        }
        return (ssize_t) done;
}

ssize_t fd_pread_full(int fd, void *data, size_t bytes, uint64_t offset) {
        size_t done = 0;

        if (offset > INT64_MAX || bytes > INT64_MAX - offset)
                return -EINVAL;

        while (done < bytes) {
                ssize_t n = pread(fd, (char *) data + done, bytes - done, (off_t) (offset + done));

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                if (n == 0)
                        break;
                done += (size_t) n;
        }
        return (ssize_t) done;
}

int fd_write_full(int fd, const void *data, size_t bytes) {
        while (bytes > 0) {
                ssize_t n = write(fd, data, bytes);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                data = (const char *) data + n;
                bytes -= (size_t) n;
        }
        return 0;
}

/* Sizes of procfs files are not known before, so everything is read in steps until the end. */
int fd_read_file(int fd, size_t max, char **ret, size_t *ret_bytes) {
        _cleanup_(buf_done) struct buf b = BUF_NULL;

        for (;;) {
                char step[READ_STEP];
                ssize_t n = fd_read_full(fd, step, sizeof(step));

                if (n < 0)
                        return (int) n;
                if ((size_t) n > max - b.size)
                        return -EFBIG;
                buf_append(&b, step, (size_t) n);
                if ((size_t) n < sizeof(step))
                        return buf_take(&b, ret, ret_bytes);
        }
}

int read_file_at(int dir_fd, const char *path, size_t max, char **ret, size_t *ret_bytes) {
        _cleanup_close_ int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

        if (fd < 0)
                return -errno;
        return fd_read_file(fd, max, ret, ret_bytes);
}

int fd_new_sealed(const char *name, const void *data, size_t bytes) {
        _cleanup_close_ int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
        int r;

        if (fd < 0)
                return -errno;
        r = fd_write_full(fd, data, bytes);
        if (r < 0)
                return r;
        if (lseek(fd, 0, SEEK_SET) < 0)
                return -errno;
        if (fcntl(fd, F_ADD_SEALS, ALL_SEALS) < 0)
                return -errno;
        return TAKE_FD(fd);
}

bool fd_is_sealed(int fd) {
        int seals = fcntl(fd, F_GET_SEALS);

        return seals >= 0 && (seals & ALL_SEALS) == ALL_SEALS;
}

int fd_set_nonblock(int fd) {
        int flags = fcntl(fd, F_GETFL);

        if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
                return -errno;
        return 0;
}

ssize_t fd_send(int socket_fd, const struct iovec *parts, size_t count, int fd, int flags) {
        union {
                struct cmsghdr header;
                char space[CMSG_SPACE(sizeof(int))];
        } control = {};
        struct msghdr message = { .msg_iov = (struct iovec *) parts, .msg_iovlen = count };
        ssize_t n;

        if (fd >= 0) {
                message.msg_control = &control;
                message.msg_controllen = sizeof(control.space);
                control.header = (struct cmsghdr){
                        .cmsg_len = CMSG_LEN(sizeof(int)),
                        .cmsg_level = SOL_SOCKET,
                        .cmsg_type = SCM_RIGHTS,
                };
                memcpy(CMSG_DATA(&control.header), &fd, sizeof(int));
        }
        n = sendmsg(socket_fd, &message, flags | MSG_NOSIGNAL);
        return n < 0 ? -errno : n;
}

/* Looks before it opens: opening a FIFO hangs, opening a device may do worse. The file that was looked at is the one
 * that is opened. */
int fd_open_regular(const char *path, int *ret_fd) {
        _cleanup_close_ int look = -EBADF;
        char self[sizeof("/proc/self/fd/") + 3 * sizeof(int)];
        struct stat st;
        int fd;

        look = open(path, O_PATH | O_CLOEXEC);
        if (look < 0)
                return -errno;
        if (fstat(look, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode))
                return -ENOENT;

        (void) snprintf(self, sizeof(self), "/proc/self/fd/%d", look);
        fd = open(self, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        if (fd < 0)
                return -errno;
        *ret_fd = fd;
        return 0;
}
