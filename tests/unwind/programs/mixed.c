/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A bit of everything in one process: the vdso, PLT entries, a realigned stack (DRAP), callbacks of the C library,
 * children by vfork. Also built static and as a static PIE. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile double result;

__attribute__((noinline)) static void realigned(int n, double (*f)(double)) {
        _Alignas(64) double values[16];

        for (int i = 0; i < 16; i++)
                values[i] = f(n + i);
        result += values[n % 16];
}

static int by_value(const void *a, const void *b) {
        int x = *(const int *) a, y = *(const int *) b;

        return x < y ? -1 : x > y;
}

static void sort(void) {
        int values[256];

        for (int i = 0; i < 256; i++)
                values[i] = rand();
        qsort(values, 256, sizeof(int), by_value);
        result += values[0];
}

static void read_clocks(void) {
        struct timespec t;

        for (int i = 0; i < 500; i++) {
                clock_gettime(CLOCK_MONOTONIC, &t);
                result += (double) t.tv_nsec;
        }
}

int main(void) {
        for (int i = 0; i < 4000; i++) {
                char *text = malloc(1000 + (size_t) i % 1000);

                memset(text, 'x', 999);
                text[999] = 0;
                result += (double) strlen(text) + strtod("3.25", NULL);
                free(text);
                realigned(i, i % 2 ? sin : cbrt);
                sort();
                read_clocks();
                if (i % 200 == 0) {
                        pid_t pid = vfork();

                        if (pid == 0)
                                _exit(0);
                        waitpid(pid, NULL, 0);
                }
        }
        return result == 0;
}
