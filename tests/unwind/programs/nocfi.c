/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Built with a frame pointer and without any CFI; a hand-written leaf function has neither. Callbacks come back from
 * the C library, which has CFI. */
#include <stdlib.h>

static volatile unsigned long work;

__asm__(".text\n"
        ".globl leaf\n"
        ".type leaf, @function\n"
        "leaf: mov $2000, %ecx\n"
        "1: dec %ecx\n"
        "jnz 1b\n"
        "ret\n"
        ".size leaf, . - leaf\n");
void leaf(void);

static int by_value(const void *a, const void *b) {
        unsigned long x = *(const unsigned long *) a, y = *(const unsigned long *) b;

        work++;
        if (x % 16 == 0)
                leaf();
        return x < y ? -1 : x > y;
}

__attribute__((noinline)) static void sort(int depth) {
        unsigned long values[64];

        if (depth > 0) {
                sort(depth - 1);
                work++;
                return;
        }
        for (int i = 0; i < 64; i++)
                values[i] = (unsigned long) rand();
        qsort(values, 64, sizeof(values[0]), by_value);
        work += values[0];
}

int main(void) {
        for (int i = 0; i < 20000; i++)
                sort(10);
        return work == 0;
}
