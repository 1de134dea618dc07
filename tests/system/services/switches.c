/* SPDX-License-Identifier: GPL-2.0-or-later */

/* switches COUNT: two threads on one CPU hand a byte to each other that often, then ready. */

#include <pthread.h>
#include <sched.h>

#include "notify.h"

static int pipes[2][2];
static unsigned long count;

static int hand_over(int in, int out) {
        char byte = 0;

        for (unsigned long i = 0; i < count; i++)
                if (read(in, &byte, 1) != 1 || write(out, &byte, 1) != 1)
                        return 1;
        return 0;
}

static void *other(void *userdata) {
        (void) userdata;
        hand_over(pipes[0][0], pipes[1][1]);
        return NULL;
}

int main(int argc, char **argv) {
        pthread_t thread;
        cpu_set_t one;

        count = argc > 1 ? strtoul(argv[1], NULL, 10) / 2 : 100000;
        CPU_ZERO(&one);
        CPU_SET(0, &one);
        if (sched_setaffinity(0, sizeof(one), &one) < 0 || pipe(pipes[0]) < 0 || pipe(pipes[1]) < 0 ||
            pthread_create(&thread, NULL, other, NULL) != 0 || write(pipes[0][1], "x", 1) != 1)
                return 1;
        if (hand_over(pipes[1][0], pipes[0][1]) != 0)
                return 1;
        pthread_join(thread, NULL);
        notify_ready();
        for (;;)
                pause();
}
