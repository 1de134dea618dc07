/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * methods FILE: what symbolize/nativeaot reads out of it, a line for each piece of code: start, end, entry and name
 * ("-": none), tabs between them. The first line is the processor time of reading it, in milliseconds.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "symbolize/nativeaot.h"

static double cpu_ms(void) {
        struct timespec t;

        (void) clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
        return (double) t.tv_sec * 1e3 + (double) t.tv_nsec / 1e6;
}

int main(int argc, char **argv) {
        _cleanup_(elf_image_freep) struct elf_image *image = NULL;
        _cleanup_(nativeaot_freep) struct nativeaot *methods = NULL;
        _cleanup_close_ int fd = argc == 2 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -EBADF;
        double begin;
        int r;

        if (fd < 0 || elf_image_new(fd, &image) < 0) {
                fprintf(stderr, "usage: methods ELF-FILE\n");
                return 2;
        }
        begin = cpu_ms();
        r = nativeaot_new(image, &methods);
        if (r < 0) {
                fprintf(stderr, "%s\n", strerror(-r));
                return 1;
        }

        printf("%.2f\n", cpu_ms() - begin);
        for (size_t i = 0; i < nativeaot_count(methods); i++) {
                struct nativeaot_method m;

                nativeaot_get(methods, i, &m);
                printf("%llx\t%llx\t%llx\t%s\n", (unsigned long long) m.start, (unsigned long long) m.end,
                       (unsigned long long) m.entry, m.name ? m.name : "-");
        }
        return 0;
}
