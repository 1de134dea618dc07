/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/table_store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/atomic_file.h"
#include "common/fd.h"

enum {
        TABLE_BYTES_MAX = 64 * 1024 * 1024, /* of one; libLLVM's has 5 */
        KEY_LENGTH_MAX = 120,
};

struct table_store {
        int dir_fd; /* owned */
};

int table_store_open(const char *directory, struct table_store **ret) {
        _cleanup_(table_store_closep) struct table_store *s = calloc(1, sizeof(*s));

        if (!s)
                return -ENOMEM;
        s->dir_fd = -EBADF;
        if (mkdir(directory, 0700) < 0 && errno != EEXIST)
                return -errno;
        s->dir_fd = open(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (s->dir_fd < 0)
                return -errno;
        *ret = TAKE_PTR(s);
        return 0;
}

struct table_store *table_store_close(struct table_store *s) {
        if (!s)
                return NULL;
        fd_close(s->dir_fd);
        free(s);
        return NULL;
}

bool table_store_trusts(int fd) {
        struct stat st;

        return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == 0 &&
               !(st.st_mode & (S_IWGRP | S_IWOTH));
}

/* Hexadecimal digits and dashes: never a path. */
static bool is_key(const char *key) {
        size_t n = strspn(key, "0123456789abcdef-");

        return n > 0 && n <= KEY_LENGTH_MAX && key[n] == '\0';
}

int table_store_get(struct table_store *s, const char *key) {
        int fd;

        if (!is_key(key))
                return -EINVAL;
        fd = openat(s->dir_fd, key, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

struct kept {
        char key[KEY_LENGTH_MAX + 1];
        struct timespec written;
        uint64_t bytes;
};

static int by_age(const void *x, const void *y) {
        const struct kept *a = x, *b = y;

        if (a->written.tv_sec != b->written.tv_sec)
                return a->written.tv_sec < b->written.tv_sec ? -1 : 1;
        return a->written.tv_nsec < b->written.tv_nsec ? -1 : a->written.tv_nsec > b->written.tv_nsec;
}

static size_t list(struct table_store *s, struct kept *kept, size_t max, uint64_t *ret_bytes) {
        int fd = openat(s->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
        struct dirent *entry;
        struct stat st;
        size_t n = 0;

        *ret_bytes = 0;
        while (dir && n < max && (entry = readdir(dir))) {
                if (!is_key(entry->d_name) ||
                    fstatat(s->dir_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                        continue;
                snprintf(kept[n].key, sizeof(kept[n].key), "%.*s", KEY_LENGTH_MAX, entry->d_name);
                kept[n].written = st.st_mtim;
                kept[n].bytes = (uint64_t) st.st_size;
                *ret_bytes += kept[n++].bytes;
        }
        if (dir)
                closedir(dir);
        else
                fd_close(fd);
        return n;
}

/* Two captures may do so at once: then one more goes than needed. */
static void make_room(struct table_store *s, uint64_t bytes) {
        enum { LISTED_MAX = 2 * TABLES_MAX };
        _cleanup_free_ struct kept *kept = calloc(LISTED_MAX, sizeof(*kept));
        uint64_t all;
        size_t n = kept ? list(s, kept, LISTED_MAX, &all) : 0, first = 0;

        if (n == 0)
                return;
        qsort(kept, n, sizeof(*kept), by_age);
        while (first < n && (n - first >= TABLES_MAX || all + bytes > TABLES_BYTES_MAX)) {
                (void) unlinkat(s->dir_fd, kept[first].key, 0);
                all -= kept[first++].bytes;
        }
}

int table_store_put(struct table_store *s, const char *key, int fd) {
        _cleanup_free_ void *data = NULL;
        struct stat st;
        ssize_t n;

        if (!is_key(key))
                return -EINVAL;
        if (!fd_is_sealed(fd) || fstat(fd, &st) < 0)
                return -EINVAL;
        if (st.st_size <= 0 || st.st_size > TABLE_BYTES_MAX)
                return -EFBIG;
        data = malloc((size_t) st.st_size);
        if (!data)
                return -ENOMEM;
        n = fd_pread_full(fd, data, (size_t) st.st_size, 0);
        if (n != st.st_size)
                return n < 0 ? (int) n : -EINVAL;
        make_room(s, (uint64_t) st.st_size);
        return write_file_atomic_at(s->dir_fd, key, data, (size_t) st.st_size, 0600);
}
