/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

/* Descriptors: whole reads and writes, sealed memory files, atomic files. Errors are negative errno. */

/* Closes if ≥ 0, keeps errno; returns -EBADF to assign. */
int fd_close(int fd);

/* Reads until `bytes` or the end of the file. Bytes read, or the error of read(2). */
ssize_t fd_read_full(int fd, void *data, size_t bytes);
ssize_t fd_pread_full(int fd, void *data, size_t bytes, uint64_t offset);
/* Writes all. 0, or the error of write(2). */
int fd_write_full(int fd, const void *data, size_t bytes);

/* The whole of a file or of a procfs file, with a NUL behind it that is not counted; *ret is malloc()ed.
 * -EFBIG when there is more than `max`. Either of ret_bytes and ret may not be NULL. */
int fd_read_file(int fd, size_t max, char **ret, size_t *ret_bytes);
/* The same by name below dir_fd (AT_FDCWD for the working directory); errors of openat(2) besides. */
int read_file_at(int dir_fd, const char *path, size_t max, char **ret, size_t *ret_bytes);

/* A memfd with these bytes, sealed against every change (F_SEAL_SEAL, SHRINK, GROW, WRITE). Descriptor
 * or error. `name` is for /proc only. */
int fd_new_sealed(const char *name, const void *data, size_t bytes);
/* Is it a memfd sealed like that? */
bool fd_is_sealed(int fd);

/* One sendmsg(2) with a descriptor beside the bytes (fd < 0: none), never SIGPIPE; flags as there. Bytes sent, or
 * the error. */
ssize_t fd_send(int socket_fd, const struct iovec *parts, size_t count, int fd, int flags);

/* Opens for reading what is a regular file, and nothing else; links are followed. -ENOENT for other things; errors of
 * open(2). */
int fd_open_regular(const char *path, int *ret_fd);

int fd_set_nonblock(int fd);
