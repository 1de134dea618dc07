/* SPDX-License-Identifier: GPL-2.0-or-later */

/* The first program of a test machine: loads the modules of its archive in the order of their names, mounts the disk
 * and goes on as the disk's own init. When it fails, the kernel panics, which ends the machine. */

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { DISK_TRIES = 6000, DISK_TRY_USEC = 10000 };

static int failed(const char *what) {
        perror(what);
        return 1;
}

static int is_module(const struct dirent *entry) {
        return entry->d_name[0] != '.';
}

static int load_modules(void) {
        struct dirent **entries;
        int n = chdir("/modules") < 0 ? -1 : scandir(".", &entries, is_module, alphasort);

        if (n < 0)
                return -1;
        for (int i = 0; i < n; i++) {
                int fd = open(entries[i]->d_name, O_RDONLY | O_CLOEXEC);

                if (fd < 0 || syscall(SYS_finit_module, fd, "", 0) < 0)
                        return failed(entries[i]->d_name), -1;
                close(fd);
                free(entries[i]);
        }
        free(entries);
        return 0;
}

/* Its driver finds it in its own time, and nothing here tells of devices. */
static int mount_disk(void) {
        for (int i = 0; i < DISK_TRIES && access("/dev/vda", F_OK) < 0; i++)
                usleep(DISK_TRY_USEC);
        return mount("/dev/vda", "/root", "ext4", 0, NULL);
}

int main(int argc, char **argv) {
        (void) argc;
        if (mount("devtmpfs", "/dev", "devtmpfs", 0, NULL) < 0)
                return failed("devtmpfs");
        if (load_modules() < 0)
                return failed("modules");
        if (mount_disk() < 0)
                return failed("disk");
        if (mount("/dev", "/root/dev", NULL, MS_MOVE, NULL) < 0 || chdir("/root") < 0 ||
            mount(".", "/", NULL, MS_MOVE, NULL) < 0 || chroot(".") < 0 || chdir("/") < 0)
                return failed("root");
        argv[0] = (char *) "/sbin/init";
        execv(argv[0], argv);
        return failed(argv[0]);
}
