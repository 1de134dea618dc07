/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/dir_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fd.h"

struct dir_files {
        char **paths; /* owned */
        size_t count, allocated;
        size_t directories; /* walked so far */
};

struct names { /* of one directory */
        char **names; /* owned */
        size_t count, allocated;
};

static int add(char ***list, size_t *count, size_t *allocated, char *text) {
        if (*count == *allocated) {
                size_t wanted = MAX(*allocated * 2, (size_t) 16);
                char **larger = reallocarray(*list, wanted, sizeof(*larger));

                if (!larger) {
                        free(text);
                        return -ENOMEM;
                }
                *list = larger;
                *allocated = wanted;
        }
        (*list)[(*count)++] = text;
        return 0;
}

static void names_done(struct names *n) {
        for (size_t i = 0; i < n->count; i++)
                free(n->names[i]);
        free(n->names);
}

static int by_name(const void *a, const void *b) {
        return strcmp(*(char *const *) a, *(char *const *) b);
}

static int read_names(int fd, struct names *ret) {
        DIR *dir = fdopendir(fd); /* owns fd */
        const struct dirent *entry;
        int r = 0;

        if (!dir) {
                fd_close(fd);
                return 0;
        }
        while (r == 0 && ret->count < DIR_FILES_MAX && (entry = readdir(dir))) {
                char *name;

                if (streq(entry->d_name, ".") || streq(entry->d_name, ".."))
                        continue;
                name = strdup(entry->d_name);
                r = name ? add(&ret->names, &ret->count, &ret->allocated, name) : -ENOMEM;
        }
        (void) closedir(dir);
        if (ret->count > 0)
                qsort(ret->names, ret->count, sizeof(*ret->names), by_name);
        return r;
}

static int walk(struct dir_files *d, const char *directory, unsigned depth, int flags);

static int walk_entry(struct dir_files *d, const char *directory, const char *name, unsigned depth,
                      bool directories) {
        struct stat st;
        char *path;
        int r = 0;

        if (asprintf(&path, "%s/%s", directory, name) < 0)
                return -ENOMEM;
        if (lstat(path, &st) < 0)
                r = 0;
        else if (!directories && (S_ISREG(st.st_mode) || S_ISLNK(st.st_mode)) && d->count < DIR_FILES_MAX)
                return add(&d->paths, &d->count, &d->allocated, path);
        else if (directories && S_ISDIR(st.st_mode))
                r = walk(d, path, depth + 1, O_NOFOLLOW);
        free(path);
        return r;
}

static int walk(struct dir_files *d, const char *directory, unsigned depth, int flags) {
        _cleanup_(names_done) struct names names = {};
        int fd, r;

        if (depth > DIR_FILES_DEPTH_MAX || d->directories >= DIR_FILES_MAX || d->count >= DIR_FILES_MAX)
                return 0;
        d->directories++;
        fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags);
        if (fd < 0)
                return 0;
        r = read_names(fd, &names);
        for (size_t i = 0; r == 0 && i < names.count; i++)
                r = walk_entry(d, directory, names.names[i], depth, false);
        for (size_t i = 0; r == 0 && i < names.count; i++)
                r = walk_entry(d, directory, names.names[i], depth, true);
        return r;
}

int dir_files_new(const char *const *directories, size_t count, struct dir_files **ret) {
        _cleanup_(dir_files_freep) struct dir_files *d = calloc(1, sizeof(*d));
        int r = 0;

        if (!d)
                return -ENOMEM;
        for (size_t i = 0; r == 0 && i < count; i++)
                r = walk(d, directories[i], 0, 0);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(d);
        return 0;
}

struct dir_files *dir_files_free(struct dir_files *d) {
        if (!d)
                return NULL;

        for (size_t i = 0; i < d->count; i++)
                free(d->paths[i]);
        free(d->paths);
        free(d);
        return NULL;
}

const char *dir_files_path(const struct dir_files *d, size_t number) {
        return number < d->count ? d->paths[number] : NULL;
}
