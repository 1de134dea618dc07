/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Asks for the time, all of its time. */
#include <sched.h>
#include <sys/time.h>
#include <time.h>

static volatile long sum;

__attribute__((noinline)) static void ask(int depth) {
        struct timespec monotonic;
        struct timeval now;

        if (depth > 0)
                ask(depth - 1);
        for (int i = 0; i < 20; i++) {
                gettimeofday(&now, NULL);
                clock_gettime(CLOCK_MONOTONIC, &monotonic);
                sum = sum + now.tv_usec + monotonic.tv_nsec + time(NULL) + sched_getcpu();
        }
}

int main(void) {
        for (int i = 0; i < 30000; i++)
                ask(5);
        return sum == 0;
}
