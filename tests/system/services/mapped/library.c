/* SPDX-License-Identifier: GPL-2.0-or-later */

/* A library that burns CPU in a function called WORK (-DWORK=name). Others of it differ in that name only. */

#include <stdint.h>

/* Not in the dynamic table: only the right file's own symbols can name it. */
static __attribute__((noinline)) uint64_t WORK(uint64_t n) {
        volatile uint64_t x = 1;

        for (uint64_t i = 0; i < n; i++)
                x = x * 6364136223846793005u + 1442695040888963407u;
        return x;
}

uint64_t library_work(uint64_t n);
uint64_t library_work(uint64_t n) {
        return WORK(n) + 1;
}
