/* SPDX-License-Identifier: GPL-2.0-or-later */
/* 5,000 frames deep all the time. */
static volatile unsigned long work;

__attribute__((noinline)) static unsigned long down(int depth) {
        if (depth == 0) {
                for (int i = 0; i < 300000000; i++)
                        work = work * 3 + (unsigned long) i;
                return work;
        }
        return down(depth - 1) + 1;
}

int main(void) {
        return down(5000) == 0;
}
