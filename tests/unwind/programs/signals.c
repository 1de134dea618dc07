/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A timer interrupts the work anywhere, also in the C library's prologues; the handler works on the same stack. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>

static volatile unsigned long work;

static void on_signal(int sig) {
        for (int i = 0; i < 1000000; i++)
                work = work * 3 + (unsigned long) i;
}

int main(void) {
        struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
        struct itimerval every = { { 0, 4000 }, { 0, 4000 } };
        char text[256];
        size_t sum = 0;

        sigaction(SIGALRM, &action, NULL);
        setitimer(ITIMER_REAL, &every, NULL);
        for (int i = 0; i < 1500000; i++) {
                snprintf(text, sizeof(text), "%d %s %g", i, "text", (double) i);
                sum += strlen(text);
        }
        return sum == 0;
}
