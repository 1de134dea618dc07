/* SPDX-License-Identifier: GPL-2.0-or-later */

/* stack KILOBYTES MILLISECONDS: burns CPU time with that much live stack, then ready. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "notify.h"

enum { FRAME_BYTES = 1000 };

static uint64_t cpu_ms(void) {
        struct timespec ts;

        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
        return (uint64_t) ts.tv_sec * 1000 + (uint64_t) ts.tv_nsec / 1000000;
}

__attribute__((noinline)) static uint64_t descend(unsigned long frames, uint64_t end_ms) {
        volatile char room[FRAME_BYTES];
        uint64_t x = 1;

        memset((char *) room, 1, sizeof(room));
        if (frames > 1)
                return descend(frames - 1, end_ms) + (uint64_t) room[0];
        while (cpu_ms() < end_ms)
                for (int i = 0; i < 20000; i++)
                        x = x * 6364136223846793005u + (uint64_t) room[i % FRAME_BYTES];
        return x;
}

int main(int argc, char **argv) {
        unsigned long kilobytes = argc > 2 ? strtoul(argv[1], NULL, 10) : 4;
        volatile uint64_t sink =
                descend(kilobytes * 1024 / FRAME_BYTES, argc > 2 ? strtoul(argv[2], NULL, 10) : 100);

        (void) sink;
        notify_ready();
        for (;;)
                pause();
}
