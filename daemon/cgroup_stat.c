/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/cgroup_stat.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/macro.h"

enum { FILE_BYTES_MAX = 4096 }; /* all of these are shorter */

static bool read_text(const char *dir, const char *name, char text[static FILE_BYTES_MAX]) {
        char path[PATH_MAX];
        _cleanup_close_ int fd = -EBADF;
        ssize_t n;

        if (snprintf(path, sizeof(path), "%s/%s", dir, name) >= (int) sizeof(path))
                return false;
        fd = open(path, O_RDONLY | O_CLOEXEC);
        n = fd < 0 ? -1 : read(fd, text, FILE_BYTES_MAX - 1);
        text[MAX(n, (ssize_t) 0)] = '\0';
        return n > 0;
}

/* The number behind a key at the beginning of a line, as "nr_throttled 12". */
static bool find_number(const char *text, const char *key, uint64_t *ret) {
        size_t length = strlen(key);

        for (const char *line = text; line; line = strchr(line, '\n')) {
                line += *line == '\n';
                if (strncmp(line, key, length) != 0 || line[length] != ' ')
                        continue;
                *ret = strtoull(line + length, NULL, 10);
                return true;
        }
        return false;
}

static void read_level(const char *dir, struct cgroup_level *level) {
        char text[FILE_BYTES_MAX];
        uint64_t periods;

        if (!read_text(dir, "cpu.stat", text) || !find_number(text, "nr_periods", &periods))
                return;
        level->has_cpu = true;
        level->periods = periods;
        (void) find_number(text, "nr_throttled", &level->throttled_periods);
        (void) find_number(text, "throttled_usec", &level->throttled_usec);
}

static void read_memory(const char *dir, struct cgroup_stat *stat) {
        char text[FILE_BYTES_MAX];
        const char *total;

        if (read_text(dir, "memory.events", text)) {
                stat->has_memory = true;
                (void) find_number(text, "high", &stat->memory_high);
                (void) find_number(text, "max", &stat->memory_max);
        }
        /* "some avg10=0.00 avg60=0.00 avg300=0.00 total=1234" */
        if (read_text(dir, "memory.pressure", text) && startswith(text, "some ") &&
            (total = strstr(text, "total=")))
                stat->memory_stall_usec = strtoull(total + strlen("total="), NULL, 10);
}

void cgroup_stat_read(const char *dir, const char *root, struct cgroup_stat *stat) {
        char path[PATH_MAX];
        unsigned n = 0;

        read_memory(dir, stat);
        if (snprintf(path, sizeof(path), "%s", dir) >= (int) sizeof(path))
                return;
        while (n < CGROUP_LEVELS_MAX && startswith(path, root) && !streq(path, root)) {
                char *slash = strrchr(path, '/');

                read_level(path, &stat->levels[n++]);
                if (!slash)
                        break;
                *slash = '\0';
        }
        stat->n_levels = MAX(stat->n_levels, n);
}

void cgroup_stat_forget_own(struct cgroup_stat *stat) {
        stat->levels[0] = (struct cgroup_level){};
        stat->memory_high = stat->memory_max = stat->memory_stall_usec = 0;
        stat->has_memory = false;
}

/* Name of the n-th cgroup from the end of the path. */
static void level_name(const char *dir, unsigned n, char *ret, size_t bytes) {
        const char *end = dir + strlen(dir), *begin;

        for (;; n--) {
                for (begin = end; begin > dir && begin[-1] != '/';)
                        begin--;
                if (n == 0 || begin == dir)
                        break;
                end = begin - 1;
        }
        snprintf(ret, bytes, "%.*s", (int) (end - begin), begin);
}

static void tell_number(const char *name, uint64_t number, void (*f)(void *, const char *, const char *),
                        void *userdata) {
        char text[24];

        snprintf(text, sizeof(text), "%" PRIu64, number);
        f(userdata, name, text);
}

static uint64_t since(uint64_t before, uint64_t now) {
        return now > before ? now - before : 0;
}

void cgroup_stat_tell(const struct cgroup_stat *before, const struct cgroup_stat *now, const char *dir,
                      void (*f)(void *userdata, const char *name, const char *value), void *userdata) {
        unsigned worst = 0;
        char name[NAME_MAX + 1];

        for (unsigned i = 1; i < now->n_levels; i++)
                if (since(before->levels[i].throttled_usec, now->levels[i].throttled_usec) >
                    since(before->levels[worst].throttled_usec, now->levels[worst].throttled_usec))
                        worst = i;
        if (now->levels[worst].has_cpu) {
                const struct cgroup_level *b = &before->levels[worst], *l = &now->levels[worst];

                level_name(dir, worst, name, sizeof(name));
                f(userdata, "cgroup.cpu.throttled_by", name);
                tell_number("cgroup.cpu.periods", since(b->periods, l->periods), f, userdata);
                tell_number("cgroup.cpu.throttled_periods",
                            since(b->throttled_periods, l->throttled_periods), f, userdata);
                tell_number("cgroup.cpu.throttled_usec", since(b->throttled_usec, l->throttled_usec), f,
                            userdata);
        }
        if (now->has_memory) {
                tell_number("cgroup.memory.high", since(before->memory_high, now->memory_high), f, userdata);
                tell_number("cgroup.memory.max", since(before->memory_max, now->memory_max), f, userdata);
                tell_number("cgroup.memory.stall_usec",
                            since(before->memory_stall_usec, now->memory_stall_usec), f, userdata);
        }
}
