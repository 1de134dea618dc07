/* SPDX-License-Identifier: GPL-2.0-or-later */

/* calls COUNT [FILE]: COUNT failing close() calls; nanoseconds a call go to FILE or standard output; then ready. */

#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include "notify.h"

static uint64_t now_ns(void) {
        struct timespec ts;

        clock_gettime(CLOCK_MONOTONIC, &ts);
        return (uint64_t) ts.tv_sec * 1000000000u + (uint64_t) ts.tv_nsec;
}

int main(int argc, char **argv) {
        unsigned long count = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000000;
        FILE *out = argc > 2 ? fopen(argv[2], "w") : stdout;
        uint64_t begin = now_ns();

        for (unsigned long i = 0; i < count; i++)
                close(-1);
        if (!out)
                return 1;
        fprintf(out, "%.1f\n", (double) (now_ns() - begin) / (double) count);
        fflush(out);
        notify_ready();
        while (getenv("NOTIFY_SOCKET"))
                pause();
        return 0;
}
