/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Children that work on the stack of their waiting parent, some frames below it. */
#include <sys/wait.h>
#include <unistd.h>

static volatile unsigned long work;

__attribute__((noinline)) static void busy(int depth) {
        char text[64];

        if (depth > 0)
                busy(depth - 1);
        for (unsigned i = 0; i < 4000; i++) {
                text[i % sizeof(text)] = (char) i;
                work = work * 3 + (unsigned long) text[i * 7 % sizeof(text)] + i;
        }
}

__attribute__((noinline)) static int spawn(int depth) {
        pid_t pid;

        if (depth > 0)
                return spawn(depth - 1) + 1;
        pid = vfork();
        if (pid == 0) {
                busy(20);
                _exit(0);
        }
        busy(1);
        return waitpid(pid, NULL, 0) == pid;
}

int main(void) {
        int n = 0;

        for (int i = 0; i < 2500; i++)
                n += spawn(10);
        return n == 0;
}
