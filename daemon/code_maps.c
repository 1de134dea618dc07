/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/code_maps.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/procfs.h"

enum { COPY_BYTES = 64 * 1024 };

struct code_map {
        uint32_t module;
        struct module_owner owner;
        uint32_t inner_pid;
        bool uids_known;
        bool ended; /* what has its name from now on is another's */
        uint32_t uids[4];
        int held_fd; /* owned: for reading, as soon as it was seen; or -EBADF */
        int copy_fd; /* owned, or -EBADF */
};

struct code_maps {
        int proc_fd; /* borrowed */
        struct mappings *mappings; /* borrowed */
        struct code_map maps[OWNED_MAX];
        uint32_t count;
        size_t copied_bytes;
};

struct code_maps *code_maps_new(int proc_fd, struct mappings *mappings) {
        struct code_maps *c = calloc(1, sizeof(*c));

        if (!c)
                return NULL;
        c->proc_fd = proc_fd;
        c->mappings = mappings;
        return c;
}

struct code_maps *code_maps_free(struct code_maps *c) {
        if (!c)
                return NULL;

        for (uint32_t i = 0; i < c->count; i++) {
                fd_close(c->maps[i].held_fd);
                fd_close(c->maps[i].copy_fd);
        }
        free(c);
        return NULL;
}

void code_maps_add(struct code_maps *c, uint32_t module, const struct module_owner *owner) {
        struct procfs_status status;
        struct code_map *map;

        if (c->count == OWNED_MAX)
                return;
        map = &c->maps[c->count++];
        *map = (struct code_map){
                .module = module,
                .owner = *owner,
                .inner_pid = owner->pid,
                .held_fd = -EBADF,
                .copy_fd = -EBADF,
        };
        if (procfs_status(c->proc_fd, owner->pid, &status) < 0)
                return; /* it is gone already; most processes have one pid only */
        map->inner_pid = status.inner_pid;
        memcpy(map->uids, status.uids, sizeof(map->uids));
        map->uids_known = true;
}

/* Anybody may put a file of that name into a shared /tmp, or a link to a file that only root can read. */
static bool is_owners(const struct code_map *map, const struct stat *st) {
        bool owned = st->st_uid == 0 || !map->uids_known;

        for (size_t i = 0; i < ARRAY_SIZE(map->uids); i++)
                owned |= map->uids_known && st->st_uid == map->uids[i];
        return owned && S_ISREG(st->st_mode) && st->st_nlink <= 1;
}

static void map_path(const struct code_map *map, char path[static WORKER_PATH_MAX]) {
        snprintf(path, WORKER_PATH_MAX, "/tmp/perf-%" PRIu32 ".map", map->inner_pid);
}

/* For reading, of the file that was looked at. */
static int open_map(const struct code_maps *c, const struct code_map *map) {
        _cleanup_close_ int look = -EBADF;
        char path[WORKER_PATH_MAX], link[64];
        struct stat st;
        int fd;

        map_path(map, path);
        look = mappings_open_beside(c->mappings, map->module, path);
        if (look < 0)
                return look;
        if (fstat(look, &st) < 0)
                return -errno;
        if (!is_owners(map, &st))
                return -EPERM;
        snprintf(link, sizeof(link), "/proc/self/fd/%d", look);
        fd = open(link, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

/* Bytes copied, or negative errno. */
static ssize_t copy_bytes(int from, int to, size_t max) {
        char buffer[COPY_BYTES];
        size_t copied = 0;

        while (copied < max) {
                ssize_t n = fd_pread_full(from, buffer, MIN(sizeof(buffer), max - copied), copied);
                int r;

                if (n <= 0)
                        return n < 0 ? n : (ssize_t) copied;
                r = fd_write_full(to, buffer, (size_t) n);
                if (r < 0)
                        return r;
                copied += (size_t) n;
        }
        return (ssize_t) copied;
}

/* A map that cannot be copied is as none. The one that has the name now is the right one, if any has. */
static void copy_map(struct code_maps *c, struct code_map *map) {
        _cleanup_close_ int from = open_map(c, map), to = -EBADF;
        ssize_t n;

        if (from < 0)
                from = TAKE_FD(map->held_fd);
        if (from < 0)
                return;
        to = memfd_create("perf-map", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        if (to < 0)
                return;
        n = copy_bytes(from, to, MIN((size_t) PERF_MAP_FILE_MAX, PERF_MAPS_TOTAL_MAX - c->copied_bytes));
        if (n <= 0 || fcntl(to, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
                return;
        c->copied_bytes += (size_t) n;
        map->copy_fd = TAKE_FD(to);
}

void code_maps_keep(struct code_maps *c, uint32_t space) {
        for (uint32_t i = 0; i < c->count; i++)
                if (c->maps[i].owner.space == space && !c->maps[i].ended) {
                        copy_map(c, &c->maps[i]);
                        c->maps[i].held_fd = fd_close(c->maps[i].held_fd);
                        c->maps[i].ended = true;
                }
}

static struct code_map *find_map(struct code_maps *c, uint32_t module) {
        for (uint32_t i = 0; i < c->count; i++)
                if (c->maps[i].module == module)
                        return &c->maps[i];
        return NULL;
}

void code_maps_look(struct code_maps *c, uint32_t module) {
        struct code_map *map = find_map(c, module);

        if (map && map->held_fd < 0 && !map->ended)
                map->held_fd = open_map(c, map); /* negative: not yet */
}

int code_maps_open(struct code_maps *c, uint32_t module, int *ret_fd, char path[static WORKER_PATH_MAX]) {
        struct code_map *map = find_map(c, module);
        int fd;

        if (!map)
                return -ENOENT;
        if (map->copy_fd < 0 && !map->ended)
                copy_map(c, map);
        if (map->copy_fd < 0)
                return -ENOENT;
        fd = fcntl(map->copy_fd, F_DUPFD_CLOEXEC, 3);
        if (fd < 0)
                return -errno;
        map_path(map, path);
        *ret_fd = fd;
        return 0;
}
