/* SPDX-License-Identifier: GPL-2.0-or-later */

/* burn MILLISECONDS [exit]: that much CPU time from the first instruction of main() on, then ready. */

#include <stdint.h>
#include <time.h>

#include "notify.h"

static uint64_t cpu_ms(void) {
        struct timespec ts;

        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
        return (uint64_t) ts.tv_sec * 1000 + (uint64_t) ts.tv_nsec / 1000000;
}

__attribute__((noinline)) uint64_t burn_inner(uint64_t x) {
        for (unsigned i = 0; i < 20000; i++)
                x = x * 6364136223846793005u + 1442695040888963407u;
        return x;
}

__attribute__((noinline)) uint64_t burn_cpu(uint64_t ms) {
        uint64_t begin = cpu_ms(), x = 1;

        while (cpu_ms() - begin < ms)
                x = burn_inner(x);
        return x;
}

int main(int argc, char **argv) {
        volatile uint64_t sink = burn_cpu(argc > 1 ? strtoull(argv[1], NULL, 10) : 50);

        (void) sink;
        if (argc > 2)
                return 0;
        notify_ready();
        for (;;)
                pause();
}
