/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Works in a signal handler on an alternate stack. */
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>

static volatile unsigned long work;

__attribute__((noinline)) static void busy(int n) {
        for (int i = 0; i < n; i++)
                work = work * 3 + (unsigned long) i;
}

static void on_signal(int sig) {
        busy(400000);
}

__attribute__((noinline)) static int below(int depth) {
        if (depth > 0)
                return below(depth - 1) + 1;
        busy(100000);
        return raise(SIGUSR1) + 1;
}

int main(void) {
        stack_t stack = { .ss_sp = malloc(1 << 16), .ss_size = 1 << 16 };
        struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK };
        int n = 0;

        sigaltstack(&stack, NULL);
        sigaction(SIGUSR1, &action, NULL);
        for (int i = 0; i < 1500; i++)
                n += below(10);
        return n == 0;
}
