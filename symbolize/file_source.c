/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolize/file_source.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/dir_files.h"
#include "common/fd.h"
#include "common/parse.h"
#include "common/text.h"

#define SYSTEM_DEBUG_DIR "/usr/lib/debug"

enum { DIRS_MAX = 64, BOOT_ID_BYTES_MAX = 64 };

struct file_source {
        const struct recording *recording; /* borrowed */
        bool kernel; /* may be named */

        /* owned texts */
        char *debug_dirs[DIRS_MAX];
        size_t n_debug_dirs;
        struct dir_files *files; /* owned; in those */
        char *caches[DIRS_MAX];
        size_t n_caches;

        size_t n_foreign; /* the last ones of the caches: of this user, and opened with the rights of this user */
        uid_t foreign_uid;
        gid_t foreign_gid;
};

static int add_dir(char **dirs, size_t *n, const char *base, const char *tail) {
        char *dir;

        if (!base || base[0] != '/' || *n == DIRS_MAX)
                return 0;
        if (asprintf(&dir, "%s%s", base, tail) < 0)
                return -ENOMEM;
        dirs[(*n)++] = dir;
        return 0;
}

/* The places of debuginfod_find_debuginfo(3), and where the debuginfod client of startprof itself keeps files. */
static int add_caches(struct file_source *s) {
        int r;

        r = add_dir(s->caches, &s->n_caches, getenv("DEBUGINFOD_CACHE_PATH"), "");
        if (r == 0)
                r = add_dir(s->caches, &s->n_caches, getenv("XDG_CACHE_HOME"), "/debuginfod_client");
        if (r == 0)
                r = add_dir(s->caches, &s->n_caches, getenv("HOME"), "/.cache/debuginfod_client");
        if (r == 0)
                r = add_dir(s->caches, &s->n_caches, getenv("HOME"), "/.debuginfod_client_cache");
        if (r == 0)
                r = add_dir(s->caches, &s->n_caches, FILE_SOURCE_OWN_CACHE, "");
        return r;
}

/* sudo(8) says who called it. The environment is root's own here: who may set SUDO_UID is root already. */
static int add_foreign_caches(struct file_source *s) {
        const char *sudo = geteuid() == 0 ? getenv("SUDO_UID") : NULL;
        size_t before = s->n_caches;
        const struct passwd *user;
        uint32_t uid;
        int r;

        if (!sudo || parse_u32(sudo, &uid) < 0 || uid == 0)
                return 0;
        user = getpwuid(uid);
        if (!user)
                return 0;
        s->foreign_uid = user->pw_uid;
        s->foreign_gid = user->pw_gid;
        r = add_dir(s->caches, &s->n_caches, user->pw_dir, "/.cache/debuginfod_client");
        if (r == 0)
                r = add_dir(s->caches, &s->n_caches, user->pw_dir, "/.debuginfod_client_cache");
        s->n_foreign = s->n_caches - before;
        return r;
}

int file_source_new(const struct recording *recording, const char *const *debug_dirs, size_t n_debug_dirs,
                    struct file_source **ret) {
        _cleanup_(file_source_freep) struct file_source *s = NULL;
        int r = 0;

        s = calloc(1, sizeof(*s));
        if (!s)
                return -ENOMEM;
        s->recording = recording;

        for (size_t i = 0; r == 0 && i < n_debug_dirs; i++) {
                _cleanup_free_ char *absolute = realpath(debug_dirs[i], NULL);

                r = add_dir(s->debug_dirs, &s->n_debug_dirs, absolute, "");
        }
        if (r == 0)
                r = dir_files_new((const char *const *) s->debug_dirs, s->n_debug_dirs, &s->files);
        if (r == 0)
                r = add_caches(s);
        if (r == 0)
                r = add_foreign_caches(s);
        if (r < 0)
                return r;

        *ret = TAKE_PTR(s);
        return 0;
}

void file_source_allow_kernel(struct file_source *s) {
        s->kernel = true;
}

struct file_source *file_source_free(struct file_source *s) {
        if (!s)
                return NULL;

        for (size_t i = 0; i < s->n_debug_dirs; i++)
                free(s->debug_dirs[i]);
        for (size_t i = 0; i < s->n_caches; i++)
                free(s->caches[i]);
        dir_files_free(s->files);
        free(s);
        return NULL;
}

/* With a user's rights for this one open: root must not follow the links of a stranger to where only root may read. The
 * kernel takes away CAP_DAC_OVERRIDE and its like with the user id of file systems, capabilities(7). */
static int open_regular_as(uid_t uid, gid_t gid, const char *path, int *ret_fd) {
        int r;

        (void) setfsgid(gid);
        (void) setfsuid(uid);
        r = (uid_t) setfsuid((uid_t) -1) == uid ? fd_open_regular(path, ret_fd) : -EPERM;
        (void) setfsuid(geteuid());
        (void) setfsgid(getegid());
        return r;
}

/* snprintf() into a path; -ENOENT when it does not fit. */
static int _printf_(2, 3) format_path(char path[static WORKER_PATH_MAX], const char *format, ...) {
        va_list arguments;
        int n;

        va_start(arguments, format);
        n = vsnprintf(path, WORKER_PATH_MAX, format, arguments);
        va_end(arguments);
        return n >= 0 && n < WORKER_PATH_MAX ? 0 : -ENOENT;
}

static int in_directories(const struct file_source *s, uint32_t attempt, char path[static WORKER_PATH_MAX]) {
        const char *file = dir_files_path(s->files, attempt);

        return file ? format_path(path, "%s", file) : -ENXIO;
}

/* NAME.dbg and NAME.debug: in the user's directories, then beside the file. */
static int beside(const struct file_source *s, const char *file, uint32_t attempt, const char *suffix,
                  char path[static WORKER_PATH_MAX]) {
        if (attempt < s->n_debug_dirs)
                return format_path(path, "%s%s%s", s->debug_dirs[attempt], strrchr(file, '/'), suffix);
        if (attempt == s->n_debug_dirs)
                return format_path(path, "%s%s", file, suffix);
        return -ENXIO;
}

/* As gdb searches it ("Separate Debug Files"), after the user's directories. */
static int linked(const struct file_source *s, const char *file, uint32_t attempt, const char *name,
                  char path[static WORKER_PATH_MAX]) {
        int dir = (int) MIN(strrchr(file, '/') - file, (ptrdiff_t) WORKER_PATH_MAX);

        if (attempt < s->n_debug_dirs)
                return format_path(path, "%s/%s", s->debug_dirs[attempt], name);
        switch (attempt - s->n_debug_dirs) {
        case 0: return format_path(path, "%.*s/%s", dir, file, name);
        case 1: return format_path(path, "%.*s/.debug/%s", dir, file, name);
        case 2: return format_path(path, SYSTEM_DEBUG_DIR "%.*s/%s", dir, file, name);
        default: return -ENXIO;
        }
}

static int by_build_id(const struct file_source *s, const struct rec_module *module, uint32_t attempt,
                       char path[static WORKER_PATH_MAX]) {
        _cleanup_(buf_done) struct buf id = BUF_NULL;
        const char *dir = attempt < s->n_debug_dirs ? s->debug_dirs[attempt] : SYSTEM_DEBUG_DIR;

        if (attempt > s->n_debug_dirs || module->build_id_bytes < 2)
                return -ENXIO;
        text_hex(&id, module->build_id, module->build_id_bytes);
        if (buf_error(&id) < 0)
                return buf_error(&id);
        return format_path(path, "%s/.build-id/%.2s/%s.debug", dir, buf_text(&id), buf_text(&id) + 2);
}

static int cached(const struct file_source *s, const struct rec_module *module, uint32_t attempt,
                  char path[static WORKER_PATH_MAX]) {
        _cleanup_(buf_done) struct buf id = BUF_NULL;

        if (attempt >= s->n_caches || module->build_id_bytes == 0)
                return -ENXIO;
        text_hex(&id, module->build_id, module->build_id_bytes);
        if (buf_error(&id) < 0)
                return buf_error(&id);
        return format_path(path, "%s/%s/debuginfo", s->caches[attempt], buf_text(&id));
}

static bool is_this_boot(const struct recording *r) {
        _cleanup_free_ char *text = NULL;
        char digits[2 * sizeof(r->start->boot_id) + 1];
        uint8_t id[sizeof(r->start->boot_id)];
        size_t n = 0;

        if (read_file_at(AT_FDCWD, "/proc/sys/kernel/random/boot_id", BOOT_ID_BYTES_MAX, &text, NULL) < 0)
                return false;
        for (const char *p = text; *p && n < sizeof(digits) - 1; p++)
                if (*p != '-')
                        digits[n++] = *p;
        digits[n] = '\0';
        return parse_hex(digits, id, sizeof(id)) == 0 && memcmp(id, r->start->boot_id, sizeof(id)) == 0;
}

/* A file of procfs is no regular one in size, but cannot be replaced by anybody. */
static int open_kernel(const struct file_source *s, char path[static WORKER_PATH_MAX]) {
        int fd;

        if (!s->kernel || !is_this_boot(s->recording))
                return -ENOENT;
        (void) snprintf(path, WORKER_PATH_MAX, "/proc/kallsyms");
        fd = open(path, O_RDONLY | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

/* .dwz/ of each debug directory; Debian's debhelper puts a directory of the architecture between. */
static int of_dwz(const struct file_source *s, uint32_t attempt, const char *name,
                  char path[static WORKER_PATH_MAX]) {
        const char *dir = attempt / 2 < s->n_debug_dirs ? s->debug_dirs[attempt / 2] : SYSTEM_DEBUG_DIR;

        if (attempt / 2 > s->n_debug_dirs)
                return -ENXIO;
        return format_path(path, "%s/.dwz/%s%s", dir, attempt % 2 ? "x86_64-linux-gnu/" : "", name);
}

int file_source_open(void *source, uint32_t module, enum worker_role role, uint32_t attempt,
                     const char *name, int *ret_fd, char path[static WORKER_PATH_MAX]) {
        const struct file_source *s = source;
        const struct rec_module *row;
        const char *file;
        int r;

        if (module >= s->recording->n_modules)
                return -ENXIO;
        row = &s->recording->modules[module];
        if (row->kind == REC_MODULE_KERNEL) {
                if (role != WORKER_ROLE_FILE || attempt > 0)
                        return -ENXIO;
                r = open_kernel(s, path);
                if (r < 0)
                        return r;
                *ret_fd = r;
                return 0;
        }
        file = recording_text(s->recording, row->path);
        /* What the kernel calls "[vdso]" or "//anon" is no file; neither is a name that asks for another directory. */
        if (file[0] != '/' || strchr(name, '/'))
                return -ENXIO;

        switch (role) {
        case WORKER_ROLE_FILE: r = attempt == 0 ? format_path(path, "%s", file) : -ENXIO; break;
        case WORKER_ROLE_DEBUG_BESIDE: r = beside(s, file, attempt, name, path); break;
        case WORKER_ROLE_DEBUG_DIRECTORY: r = in_directories(s, attempt, path); break;
        case WORKER_ROLE_DEBUG_LINK: r = linked(s, file, attempt, name, path); break;
        case WORKER_ROLE_DEBUG_BUILD_ID: r = by_build_id(s, row, attempt, path); break;
        case WORKER_ROLE_DEBUG_CACHE: r = cached(s, row, attempt, path); break;
        case WORKER_ROLE_DWZ: r = of_dwz(s, attempt, name, path); break;
        default: r = -ENXIO;
        }
        if (r < 0)
                return r;
        if (role == WORKER_ROLE_DEBUG_CACHE && attempt >= s->n_caches - s->n_foreign)
                r = open_regular_as(s->foreign_uid, s->foreign_gid, path, ret_fd);
        else
                r = fd_open_regular(path, ret_fd);
        return r == -ENXIO ? -ENOENT : r;
}
