/* SPDX-License-Identifier: GPL-2.0-or-later */

/* tree DIR A B C: makes A directories in DIR, B in each of them, C in each of those. */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void make_level(int parent, char **widths) {
        for (int i = 0; widths[0] && i < (int) strtol(widths[0], NULL, 10); i++) {
                char name[32];
                int fd;

                snprintf(name, sizeof(name), "d%03d", i);
                if (mkdirat(parent, name, 0755) < 0)
                        exit(1);
                if (!widths[1])
                        continue;
                fd = openat(parent, name, O_RDONLY | O_DIRECTORY);
                if (fd < 0)
                        exit(1);
                make_level(fd, widths + 1);
                close(fd);
        }
}

int main(int argc, char **argv) {
        int fd;

        if (argc < 3)
                return 2;
        mkdir(argv[1], 0755);
        fd = open(argv[1], O_RDONLY | O_DIRECTORY);
        if (fd < 0)
                return 1;
        make_level(fd, argv + 2);
        return 0;
}
