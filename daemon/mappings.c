/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/mappings.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/hash.h"
#include "common/procfs.h"

enum {
        VDSO_BYTES_MAX = 1 << 20, /* two or three pages in fact */
        NAME_BYTES_MAX = 255,
        LINK_PLACES = 3, /* beside, .debug/, /usr/lib/debug/DIR */
        BUILD_ID_PLACES = 2, /* the process's root, ours */
        DWZ_PLACES = 4, /* two in the process's root, two in ours */
};

struct root {
        int dir_fd; /* owned, O_PATH */
        int namespace_fd; /* owned: keeps the mounts below the root */
};

struct module {
        char *path; /* owned */
        enum rec_module_kind kind;
        uint8_t build_id[20];
        uint32_t build_id_bytes;
        uint64_t inode; /* 0: not known */
        uint32_t root, file; /* or REC_NONE */
        bool owned;
        struct module_owner owner;
};

struct mappings {
        int references; /* atomic */
        pthread_mutex_t lock;
        int proc_fd; /* borrowed */
        struct root roots[ROOTS_MAX];
        uint32_t n_roots;
        int files[FILES_MAX]; /* owned, O_PATH */
        uint32_t n_files;
        struct module *modules; /* owned */
        uint32_t n_modules;
        uint32_t n_owned;
        struct hash *root_numbers, *file_numbers, *module_numbers; /* owned */
};

struct file_identity {
        uint64_t device, inode;
};

struct root_identity {
        struct file_identity namespace, directory;
};

struct mappings *mappings_new(int proc_fd) {
        _cleanup_(mappings_unrefp) struct mappings *m = calloc(1, sizeof(*m));
        pthread_mutexattr_t attributes;

        if (!m)
                return NULL;
        m->references = 1;
        m->proc_fd = proc_fd;
        /* The collector must not wait for a thread that nobody lets run. */
        pthread_mutexattr_init(&attributes);
        pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
        pthread_mutex_init(&m->lock, &attributes);
        pthread_mutexattr_destroy(&attributes);
        m->root_numbers = hash_new();
        m->file_numbers = hash_new();
        m->module_numbers = hash_new();
        if (!m->root_numbers || !m->file_numbers || !m->module_numbers)
                return NULL;
        return TAKE_PTR(m);
}

struct mappings *mappings_ref(struct mappings *m) {
        __atomic_add_fetch(&m->references, 1, __ATOMIC_RELAXED);
        return m;
}

struct mappings *mappings_unref(struct mappings *m) {
        if (!m || __atomic_sub_fetch(&m->references, 1, __ATOMIC_ACQ_REL) > 0)
                return NULL;
        for (uint32_t i = 0; i < m->n_roots; i++) {
                fd_close(m->roots[i].dir_fd);
                fd_close(m->roots[i].namespace_fd);
        }
        for (uint32_t i = 0; i < m->n_files; i++)
                fd_close(m->files[i]);
        for (uint32_t i = 0; i < m->n_modules; i++)
                free(m->modules[i].path);
        free(m->modules);
        hash_free(m->root_numbers);
        hash_free(m->file_numbers);
        hash_free(m->module_numbers);
        pthread_mutex_destroy(&m->lock);
        free(m);
        return NULL;
}

/* ---- pinning: magic links of /proc, nothing that can block ---- */

static int open_of_process(struct mappings *m, uint32_t pid, const char *name, int flags) {
        char path[64];
        int fd;

        snprintf(path, sizeof(path), "%" PRIu32 "/%s", pid, name);
        fd = openat(m->proc_fd, path, flags | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

static bool identity_of(int fd, struct file_identity *ret, mode_t *ret_mode) {
        struct stat st;

        if (fstat(fd, &st) < 0)
                return false;
        *ret = (struct file_identity){ st.st_dev, st.st_ino };
        if (ret_mode)
                *ret_mode = st.st_mode;
        return true;
}

static uint32_t add_root(struct mappings *m, const struct root_identity *identity, int *dir_fd,
                         int *namespace_fd) {
        uint64_t number;

        if (hash_get(m->root_numbers, identity, sizeof(*identity), &number) == 0)
                return (uint32_t) number;
        if (m->n_roots == ROOTS_MAX ||
            hash_put(m->root_numbers, identity, sizeof(*identity), m->n_roots) < 0)
                return REC_NONE;
        m->roots[m->n_roots] = (struct root){ TAKE_FD(*dir_fd), TAKE_FD(*namespace_fd) };
        return m->n_roots++;
}

uint32_t mappings_pin_root(struct mappings *m, uint32_t pid) {
        _cleanup_close_ int namespace_fd = open_of_process(m, pid, "ns/mnt", O_RDONLY);
        _cleanup_close_ int dir_fd = open_of_process(m, pid, "root", O_PATH | O_DIRECTORY);
        struct root_identity identity;
        uint32_t number;

        if (namespace_fd < 0 || dir_fd < 0 || !identity_of(namespace_fd, &identity.namespace, NULL) ||
            !identity_of(dir_fd, &identity.directory, NULL))
                return REC_NONE;
        pthread_mutex_lock(&m->lock);
        number = add_root(m, &identity, &dir_fd, &namespace_fd);
        pthread_mutex_unlock(&m->lock);
        return number;
}

static uint32_t add_file(struct mappings *m, const struct file_identity *identity, int *fd) {
        uint64_t number;

        if (hash_get(m->file_numbers, identity, sizeof(*identity), &number) == 0)
                return (uint32_t) number;
        if (m->n_files == FILES_MAX ||
            hash_put(m->file_numbers, identity, sizeof(*identity), m->n_files) < 0)
                return REC_NONE;
        m->files[m->n_files] = TAKE_FD(*fd);
        return m->n_files++;
}

uint32_t mappings_pin_exe(struct mappings *m, uint32_t pid) {
        _cleanup_close_ int fd = open_of_process(m, pid, "exe", O_PATH);
        struct file_identity identity;
        uint32_t number;
        mode_t mode;

        if (fd < 0 || !identity_of(fd, &identity, &mode) || !S_ISREG(mode))
                return REC_NONE;
        pthread_mutex_lock(&m->lock);
        number = add_file(m, &identity, &fd);
        pthread_mutex_unlock(&m->lock);
        return number;
}

/* ---- modules ---- */

enum rec_module_kind mappings_kind_of_path(const char *path) {
        if (streq(path, "[vdso]"))
                return REC_MODULE_VDSO;
        if (streq(path, MAPPINGS_KERNEL))
                return REC_MODULE_KERNEL;
        /* Code without a file: //anon, [heap], memfds that run-times map code from, and shared anonymous memory. */
        if (path[0] == '\0' || path[0] == '[' || startswith(path, "//") || startswith(path, "/memfd:") ||
            startswith(path, "/dev/zero") || startswith(path, "/SYSV") || path[0] != '/')
                return REC_MODULE_ANONYMOUS;
        return endswith(path, " (deleted)") ? REC_MODULE_DELETED : REC_MODULE_FILE;
}

/* "path\0kind" and what makes equal paths different. Bytes of it, 0: does not fit. */
static size_t module_identity(char *buffer, size_t size, const struct module_key *key,
                              enum rec_module_kind kind) {
        size_t n = strlen(key->path) + 1;

        if (n + sizeof(key->device) + sizeof(key->inode) + sizeof(key->root) + 20 > size)
                return 0;
        memcpy(buffer, key->path, n);
        if (key->owner) {
                memcpy(buffer + n, &key->owner->space, sizeof(key->owner->space));
                return n + sizeof(key->owner->space);
        }
        if (kind == REC_MODULE_ANONYMOUS || kind == REC_MODULE_VDSO || kind == REC_MODULE_KERNEL)
                return n;
        if (key->build_id_bytes > 0) {
                memcpy(buffer + n, key->build_id, key->build_id_bytes);
                return n + key->build_id_bytes;
        }
        memcpy(buffer + n, &key->device, sizeof(key->device));
        memcpy(buffer + n + 8, &key->inode, sizeof(key->inode));
        memcpy(buffer + n + 16, &key->root, sizeof(key->root));
        return n + 20;
}

static uint32_t add_module(struct mappings *m, const struct module_key *key, enum rec_module_kind kind) {
        struct module *module, *modules;
        char *path;

        if (m->n_modules == MODULES_MAX)
                return REC_NONE;
        if ((m->n_modules & (m->n_modules - 1)) == 0) { /* 0 and powers of two: full */
                modules = reallocarray(m->modules, MAX(m->n_modules * 2, 1U), sizeof(*modules));
                if (!modules)
                        return REC_NONE;
                m->modules = modules;
        }
        path = strdup(kind == REC_MODULE_ANONYMOUS ? "[anonymous]" : key->path);
        if (!path)
                return REC_NONE;
        module = &m->modules[m->n_modules];
        *module = (struct module){
                .path = path, .kind = kind, .inode = key->inode, .root = key->root, .file = key->file
        };
        if (key->owner) {
                module->owned = true;
                module->owner = *key->owner;
                m->n_owned++;
        }
        module->build_id_bytes = MIN(key->build_id_bytes, (uint32_t) sizeof(module->build_id));
        if (module->build_id_bytes > 0)
                memcpy(module->build_id, key->build_id, module->build_id_bytes);
        return m->n_modules++;
}

/* -ENOENT: not known yet; -ENAMETOOLONG. */
static int find_module(const struct mappings *m, const struct module_key *key, enum rec_module_kind kind,
                       uint64_t *ret) {
        char identity[WORKER_PATH_MAX + 64];
        size_t bytes = module_identity(identity, sizeof(identity), key, kind);

        return bytes == 0 ? -ENAMETOOLONG : hash_get(m->module_numbers, identity, bytes, ret);
}

/* Code made at run time is its owner's; of too many owners, nobody's. */
static struct module_key normal_key(const struct mappings *m, const struct module_key *key,
                                    enum rec_module_kind kind) {
        struct module_key normal = *key;
        uint64_t number;

        if (kind != REC_MODULE_ANONYMOUS) {
                normal.owner = NULL;
                return normal;
        }
        normal = (struct module_key){ .path = "", .root = key->root, .file = REC_NONE, .owner = key->owner };
        if (m->n_owned >= OWNED_MAX && find_module(m, &normal, kind, &number) < 0)
                normal.owner = NULL;
        return normal;
}

static uint32_t intern_module(struct mappings *m, const struct module_key *key) {
        enum rec_module_kind kind = mappings_kind_of_path(key->path);
        struct module_key normal = normal_key(m, key, kind);
        char identity[WORKER_PATH_MAX + 64];
        size_t bytes = module_identity(identity, sizeof(identity), &normal, kind);
        uint64_t number;
        uint32_t added;

        if (bytes == 0)
                return REC_NONE;
        if (hash_get(m->module_numbers, identity, bytes, &number) == 0) {
                struct module *module = &m->modules[number];

                if (module->file == REC_NONE)
                        module->file = normal.file;
                return (uint32_t) number;
        }
        added = add_module(m, &normal, kind);
        if (added != REC_NONE && hash_put(m->module_numbers, identity, bytes, added) < 0) {
                m->n_owned -= normal.owner ? 1 : 0;
                free(m->modules[--m->n_modules].path);
                return REC_NONE;
        }
        return added;
}

uint32_t mappings_module(struct mappings *m, const struct module_key *key) {
        uint32_t number;

        pthread_mutex_lock(&m->lock);
        number = intern_module(m, key);
        pthread_mutex_unlock(&m->lock);
        return number;
}

uint32_t mappings_count(struct mappings *m) {
        uint32_t count;

        pthread_mutex_lock(&m->lock);
        count = m->n_modules;
        pthread_mutex_unlock(&m->lock);
        return count;
}

int mappings_info(struct mappings *m, uint32_t number, struct module_info *ret) {
        int r = -ENOENT;

        pthread_mutex_lock(&m->lock);
        if (number < m->n_modules) {
                const struct module *module = &m->modules[number];

                ret->kind = module->kind;
                ret->build_id_bytes = module->build_id_bytes;
                ret->owned = module->owned;
                ret->owner = module->owner;
                memcpy(ret->build_id, module->build_id, sizeof(ret->build_id));
                snprintf(ret->path, sizeof(ret->path), "%s", module->path);
                r = 0;
        }
        pthread_mutex_unlock(&m->lock);
        return r;
}

/* ---- opening: walks strange paths, may block, never under the lock ---- */

/* What opening needs, copied under the lock. */
struct place {
        struct module_info info;
        uint64_t inode; /* which the file at its path must have; 0: any */
        int root_fd, file_fd; /* owned copies, or -EBADF */
};

static void place_done(struct place *place) {
        fd_close(place->root_fd);
        fd_close(place->file_fd);
}

static int find_place(struct mappings *m, uint32_t number, struct place *ret) {
        int r;

        ret->root_fd = ret->file_fd = -EBADF;
        r = mappings_info(m, number, &ret->info);
        if (r < 0)
                return r;
        pthread_mutex_lock(&m->lock);
        /* A build-id tells better what a file is, and the worker compares it. The device tells nothing: some file
         * systems give stat(2) another one. */
        ret->inode = ret->info.build_id_bytes > 0 ? 0 : m->modules[number].inode;
        if (m->modules[number].root != REC_NONE)
                ret->root_fd = fcntl(m->roots[m->modules[number].root].dir_fd, F_DUPFD_CLOEXEC, 3);
        if (m->modules[number].file != REC_NONE)
                ret->file_fd = fcntl(m->files[m->modules[number].file], F_DUPFD_CLOEXEC, 3);
        pthread_mutex_unlock(&m->lock);
        return 0;
}

/* An O_PATH descriptor of a regular file below root_fd. Links are followed inside the root only, and never
 * magic ones. flags: O_NOFOLLOW or 0. */
static int open_path(int root_fd, const char *path, int flags) {
        struct open_how how = { .flags = (uint64_t) (O_PATH | O_CLOEXEC | flags),
                                .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
        struct stat st;
        int fd;

        fd = (int) syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
        if (fd < 0)
                return -errno;
        if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
                fd_close(fd);
                return -ENOENT;
        }
        return fd;
}

/* The same file for reading: it is known to be a regular one. */
static int reopen(int path_fd) {
        char link[64];
        int fd;

        snprintf(link, sizeof(link), "/proc/self/fd/%d", path_fd);
        fd = open(link, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

static int open_below(int root_fd, const char *path) {
        _cleanup_close_ int fd = -EBADF;

        if (root_fd < 0)
                return -ENOENT;
        fd = open_path(root_fd, path, 0);
        return fd < 0 ? fd : reopen(fd);
}

/* Overlays may show stat(2) other inodes than the kernel tells of mappings (before Linux 6.8): there they prove
 * nothing. */
static bool is_other(const struct place *place, int fd, const struct file_identity *identity) {
        struct statfs fs;

        return place->inode != 0 && identity->inode != place->inode &&
               (fstatfs(fd, &fs) < 0 || fs.f_type != OVERLAYFS_SUPER_MAGIC);
}

/* The file that lies at a module's path now, if it can be the one that was mapped. A name may really end like the
 * kernel's mark of removed files, so that those are looked for, too. An O_PATH descriptor; *ret its identity. */
static int find_file(const struct place *place, struct file_identity *ret) {
        _cleanup_close_ int fd = -EBADF;

        if (place->root_fd < 0 ||
            (place->info.kind != REC_MODULE_FILE && place->info.kind != REC_MODULE_DELETED))
                return -ENOENT;
        fd = open_path(place->root_fd, place->info.path, 0);
        if (fd < 0)
                return fd;
        if (!identity_of(fd, ret, NULL))
                return -errno;
        return is_other(place, fd, ret) ? -ENOENT : TAKE_FD(fd);
}

int mappings_hold(struct mappings *m, uint32_t number) {
        _cleanup_(place_done) struct place place;
        _cleanup_close_ int fd = -EBADF;
        struct file_identity identity;
        uint32_t file;
        int r;

        r = find_place(m, number, &place);
        if (r < 0 || place.file_fd >= 0)
                return r;
        fd = find_file(&place, &identity);
        if (fd < 0)
                return fd;

        pthread_mutex_lock(&m->lock);
        file = add_file(m, &identity, &fd);
        if (m->modules[number].file == REC_NONE)
                m->modules[number].file = file;
        pthread_mutex_unlock(&m->lock);
        return file == REC_NONE ? -EMFILE : 0;
}

int mappings_open_beside(struct mappings *m, uint32_t module, const char *path) {
        _cleanup_(place_done) struct place place;
        int r;

        r = find_place(m, module, &place);
        if (r < 0)
                return r;
        return place.root_fd < 0 ? -ENOENT : open_path(place.root_fd, path, O_NOFOLLOW);
}

static int vdso_size(const struct procfs_mapping *mapping, void *userdata) {
        if (!streq(mapping->path, "[vdso]") || mapping->end - mapping->start > VDSO_BYTES_MAX)
                return 0;
        return (int) (mapping->end - mapping->start);
}

/* Every process of a kernel has the same 64-bit vdso, so ours will do. */
static int open_vdso(int proc_fd) {
        const void *image = (const void *) getauxval(AT_SYSINFO_EHDR);
        int size = procfs_maps(proc_fd, (uint32_t) getpid(), vdso_size, NULL);

        return image && size > 0 ? fd_new_sealed("vdso", image, (size_t) size) : -ENOENT;
}

static int open_module(const struct place *place, int proc_fd) {
        _cleanup_close_ int fd = -EBADF;
        struct file_identity identity;

        if (place->info.kind == REC_MODULE_VDSO)
                return open_vdso(proc_fd);
        if (place->info.kind == REC_MODULE_KERNEL)
                return openat(proc_fd, "kallsyms", O_RDONLY | O_CLOEXEC);
        if (place->file_fd >= 0)
                return reopen(place->file_fd);
        fd = find_file(place, &identity);
        return fd < 0 ? fd : reopen(fd);
}

/* A file name that the worker read from a strange file: only ever a name. */
static bool is_plain_name(const char *name) {
        size_t n = strlen(name);

        return n > 0 && n <= NAME_BYTES_MAX && !strchr(name, '/') && !streq(name, ".") && !streq(name, "..");
}

static int open_formatted(int root_fd, char path[static WORKER_PATH_MAX], const char *format, ...)
        _printf_(3, 4);
static int open_formatted(int root_fd, char path[static WORKER_PATH_MAX], const char *format, ...) {
        va_list arguments;
        int n;

        va_start(arguments, format);
        n = vsnprintf(path, WORKER_PATH_MAX, format, arguments);
        va_end(arguments);
        return n < 0 || n >= WORKER_PATH_MAX ? -ENOENT : open_below(root_fd, path);
}

static int open_debug_link(const struct place *place, uint32_t attempt, const char *name,
                           char path[static WORKER_PATH_MAX]) {
        const char *slash = strrchr(place->info.path, '/');
        int n = slash ? (int) (slash - place->info.path) : 0;

        if (attempt >= LINK_PLACES)
                return -ENXIO;
        if (!is_plain_name(name) || !slash)
                return -ENOENT;
        if (attempt == 0)
                return open_formatted(place->root_fd, path, "%.*s/%s", n, place->info.path, name);
        if (attempt == 1)
                return open_formatted(place->root_fd, path, "%.*s/.debug/%s", n, place->info.path, name);
        return open_formatted(place->root_fd, path, "/usr/lib/debug%.*s/%s", n, place->info.path, name);
}

static void format_build_id(const struct place *place, char ret[static 41]) {
        ret[0] = '\0';
        for (uint32_t i = 0; i < place->info.build_id_bytes; i++)
                snprintf(ret + 2 * i, 3, "%02x", place->info.build_id[i]);
}

static int open_our_root(void) {
        int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

        return fd < 0 ? -errno : fd;
}

static int open_by_build_id(const struct place *place, uint32_t attempt, char path[static WORKER_PATH_MAX]) {
        _cleanup_close_ int our_root = -EBADF;
        int root_fd = place->root_fd;
        char id[41];

        if (attempt >= BUILD_ID_PLACES)
                return -ENXIO;
        if (place->info.build_id_bytes < 2)
                return -ENOENT;
        if (attempt == 1) {
                our_root = open_our_root();
                root_fd = our_root;
        }
        format_build_id(place, id);
        return open_formatted(root_fd, path, "/usr/lib/debug/.build-id/%.2s/%s.debug", id, id + 2);
}

static int open_cached(const struct place *place, uint32_t attempt, char path[static WORKER_PATH_MAX]) {
        const char *configured = secure_getenv("DEBUGINFOD_CACHE_PATH");
        const char *places[] = { "/var/cache/startprof/debuginfod", "/root/.cache/debuginfod_client",
                                 configured };
        _cleanup_close_ int our_root = -EBADF;
        char id[41];

        if (attempt >= ARRAY_SIZE(places) || !places[attempt])
                return -ENXIO;
        if (place->info.build_id_bytes == 0)
                return -ENOENT;
        our_root = open_our_root();
        format_build_id(place, id);
        return open_formatted(our_root, path, "%s/%s/debuginfo", places[attempt], id);
}

/* The process's own /usr/lib/debug, then ours; Debian's debhelper puts a directory of the architecture between. */
static int open_dwz(const struct place *place, uint32_t attempt, const char *name,
                    char path[static WORKER_PATH_MAX]) {
        _cleanup_close_ int our_root = -EBADF;
        int root_fd = place->root_fd;

        if (attempt >= DWZ_PLACES)
                return -ENXIO;
        if (!is_plain_name(name))
                return -ENOENT;
        if (attempt >= DWZ_PLACES / 2) {
                our_root = open_our_root();
                root_fd = our_root;
        }
        return open_formatted(root_fd, path, "/usr/lib/debug/.dwz/%s%s",
                              attempt % 2 ? "x86_64-linux-gnu/" : "", name);
}

int mappings_open(struct mappings *m, uint32_t module, enum worker_role role, uint32_t attempt,
                  const char *name, int *ret_fd, char path[static WORKER_PATH_MAX]) {
        _cleanup_(place_done) struct place place;
        int fd = -ENXIO, r;

        r = find_place(m, module, &place);
        if (r < 0)
                return r;
        snprintf(path, WORKER_PATH_MAX, "%s", place.info.path);
        if (role == WORKER_ROLE_FILE && attempt == 0)
                fd = open_module(&place, m->proc_fd);
        else if (role == WORKER_ROLE_DEBUG_BESIDE && attempt == 0)
                fd = is_plain_name(name) ? open_formatted(place.root_fd, path, "%s%s", place.info.path, name)
                                         : -ENOENT;
        else if (role == WORKER_ROLE_DEBUG_LINK)
                fd = open_debug_link(&place, attempt, name, path);
        else if (role == WORKER_ROLE_DEBUG_BUILD_ID)
                fd = open_by_build_id(&place, attempt, path);
        else if (role == WORKER_ROLE_DEBUG_CACHE)
                fd = open_cached(&place, attempt, path);
        else if (role == WORKER_ROLE_DWZ)
                fd = open_dwz(&place, attempt, name, path);
        if (fd < 0)
                return fd == -ENXIO ? fd : -ENOENT;
        *ret_fd = fd;
        return 0;
}
