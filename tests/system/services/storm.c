/* SPDX-License-Identifier: GPL-2.0-or-later */

/* storm [DIR]: watches every directory below DIR (default: the working directory) with inotify, as a file
 * watcher of a configuration library does, then is ready. FC-01. */

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include "notify.h"

enum {
        WATCH = IN_MODIFY | IN_ATTRIB | IN_MOVED_FROM | IN_MOVED_TO | IN_CREATE | IN_DELETE | IN_ONLYDIR |
                IN_DONT_FOLLOW | IN_EXCL_UNLINK
};

__attribute__((noinline)) void add_directory_watch(int inotify, int parent, const char *name,
                                                   const char *path) {
        struct dirent *entry;
        DIR *dir;
        int fd;

        if (inotify_add_watch(inotify, path, WATCH) < 0)
                return;
        fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
                return;
        dir = fdopendir(fd);
        if (!dir) {
                close(fd);
                return;
        }
        while ((entry = readdir(dir))) {
                char child[4096];

                if (entry->d_type != DT_DIR || !strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
                        continue;
                if (snprintf(child, sizeof(child), "%s/%s", strcmp(path, "/") ? path : "", entry->d_name) <
                    (int) sizeof(child))
                        add_directory_watch(inotify, dirfd(dir), entry->d_name, child);
        }
        closedir(dir);
}

int main(int argc, char **argv) {
        char *root = argc > 1 ? argv[1] : getcwd(NULL, 0);

        add_directory_watch(inotify_init1(IN_CLOEXEC), AT_FDCWD, root, root);
        notify_ready();
        for (;;)
                pause();
}
