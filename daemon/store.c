/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/atomic_file.h"
#include "common/fd.h"
#include "common/text.h"

#define RECORDING_SUFFIX ".startprof"
#define SUMMARY_SUFFIX   ".json"

enum {
        FILE_NAME_SIZE = NAME_MAX + 16,
        SUMMARY_MAX = 64 * 1024,
        BOOT_ID_SHOWN = 4, /* bytes: tells boots of one machine apart */
        UNIT_SHOWN_MAX = 160, /* of a name with up to 255 characters; the invocation makes the id unique */
};

struct store {
        int dir_fd; /* owned */
};

int store_open(const char *directory, struct store **ret) {
        _cleanup_close_ int fd = -EBADF;
        struct store *s;

        if (mkdir(directory, 0700) < 0 && errno != EEXIST)
                return -errno;
        fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        s = malloc(sizeof(*s));
        if (!s)
                return -ENOMEM;
        *s = (struct store){ .dir_fd = TAKE_FD(fd) };
        *ret = s;
        return 0;
}

struct store *store_close(struct store *s) {
        if (!s)
                return NULL;
        fd_close(s->dir_fd);
        free(s);
        return NULL;
}

/* ---- ids ---- */

static bool is_zero(const uint8_t id[static 16]) {
        for (size_t i = 0; i < 16; i++)
                if (id[i] != 0)
                        return false;
        return true;
}

int store_make_id(const char *unit, const uint8_t boot_id[static 16], const uint8_t invocation_id[static 16],
                  uint64_t realtime_usec, char **ret) {
        _cleanup_(buf_done) struct buf b = BUF_NULL;

        buf_printf(&b, "%.*s.", UNIT_SHOWN_MAX, unit);
        text_hex(&b, boot_id, BOOT_ID_SHOWN);
        buf_putc(&b, '.');
        if (is_zero(invocation_id))
                buf_printf(&b, "%032" PRIx64, realtime_usec);
        else
                text_hex(&b, invocation_id, 16);
        return buf_take(&b, ret, NULL);
}

/* Unit names hold no slash and do not begin with a dot followed by nothing; whatever else, it stays in the
 * directory. */
static bool is_id(const char *id) {
        size_t length = strlen(id);

        return length > 0 && length <= STORE_ID_MAX && id[0] != '.' && !strchr(id, '/');
}

static void file_name(char name[static NAME_MAX + 1], const char *id, const char *suffix) {
        snprintf(name, FILE_NAME_SIZE, "%.*s%s", STORE_ID_MAX, id, suffix);
}

/* ---- writing and reading ---- */

int store_write(struct store *s, const char *id, const void *data, size_t bytes, json_t *summary) {
        _cleanup_free_ char *text = NULL;
        char name[FILE_NAME_SIZE];
        int r;

        if (!is_id(id))
                return -EINVAL;
        text = json_dumps(summary, JSON_COMPACT);
        if (!text)
                return -ENOMEM;
        file_name(name, id, SUMMARY_SUFFIX);
        r = write_file_atomic_at(s->dir_fd, name, text, strlen(text), 0600);
        if (r < 0)
                return r;
        file_name(name, id, RECORDING_SUFFIX);
        r = write_file_atomic_at(s->dir_fd, name, data, bytes, 0600);
        if (r < 0) {
                file_name(name, id, SUMMARY_SUFFIX);
                (void) unlinkat(s->dir_fd, name, 0);
        }
        return r;
}

int store_fd(struct store *s, const char *id) {
        char name[FILE_NAME_SIZE];
        int fd;

        if (!is_id(id))
                return -EINVAL;
        file_name(name, id, RECORDING_SUFFIX);
        fd = openat(s->dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        return fd < 0 ? -errno : fd;
}

/* ---- listing ---- */

struct listed {
        json_t *recording; /* owned */
        uint64_t realtime_usec;
};

static int newest_first(const void *a, const void *b) {
        uint64_t x = ((const struct listed *) a)->realtime_usec,
                 y = ((const struct listed *) b)->realtime_usec;

        return x < y ? 1 : x > y ? -1 : 0;
}

/* A summary that is missing or damaged costs its recording the place in the list, not the list. */
static json_t *load_summary(struct store *s, const char *id) {
        _cleanup_free_ char *text = NULL;
        char name[FILE_NAME_SIZE];
        struct stat st;
        json_t *summary;
        size_t bytes;

        file_name(name, id, SUMMARY_SUFFIX);
        if (read_file_at(s->dir_fd, name, SUMMARY_MAX, &text, &bytes) < 0)
                return NULL;
        summary = json_loadb(text, bytes, 0, NULL);
        file_name(name, id, RECORDING_SUFFIX);
        if (!json_is_object(summary) || fstatat(s->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
                json_decref(summary);
                return NULL;
        }
        json_object_set_new(summary, "id", json_string(id));
        json_object_set_new(summary, "size", json_integer(st.st_size));
        return summary;
}

static int add_listed(struct store *s, const char *file, const char *unit, struct listed **list, size_t *n) {
        const char *suffix = endswith(file, RECORDING_SUFFIX), *of;
        char id[FILE_NAME_SIZE];
        struct listed *more;
        json_t *summary;

        if (!suffix || file[0] == '.')
                return 0;
        snprintf(id, sizeof(id), "%.*s", (int) (suffix - file), file);
        summary = load_summary(s, id);
        if (!summary)
                return 0;
        of = json_string_value(json_object_get(summary, "unit"));
        if (unit && (!of || !streq(unit, of))) {
                json_decref(summary);
                return 0;
        }
        more = reallocarray(*list, *n + 1, sizeof(**list));
        if (!more) {
                json_decref(summary);
                return -ENOMEM;
        }
        *list = more;
        more[(*n)++] = (struct listed){
                .recording = summary,
                .realtime_usec = (uint64_t) json_integer_value(json_object_get(summary, "realtime_usec")),
        };
        return 0;
}

int store_list(struct store *s, const char *unit, json_t **ret) {
        _cleanup_free_ struct listed *list = NULL;
        json_t *array = NULL;
        struct dirent *entry;
        size_t n = 0;
        int fd, r = 0;
        DIR *dir;

        fd = openat(s->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        dir = fdopendir(fd);
        if (!dir) {
                fd_close(fd);
                return -ENOMEM;
        }
        while (r >= 0 && (entry = readdir(dir)))
                r = add_listed(s, entry->d_name, unit, &list, &n);
        closedir(dir);

        if (n > 0)
                qsort(list, n, sizeof(*list), newest_first);
        if (r >= 0)
                array = json_array();
        for (size_t i = 0; i < n; i++)
                if (array)
                        json_array_append_new(array, list[i].recording);
                else
                        json_decref(list[i].recording);
        if (!array)
                return r < 0 ? r : -ENOMEM;
        *ret = array;
        return 0;
}
