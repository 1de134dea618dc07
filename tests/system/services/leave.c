/* SPDX-License-Identifier: GPL-2.0-or-later */

/* leave: is ready, and leaves a child behind that burns CPU for ever (KillMode=process keeps it). */

#include <sys/prctl.h>

#include "notify.h"

int main(void) {
        if (fork() == 0) {
                prctl(PR_SET_NAME, "leftover");
                for (volatile unsigned long n = 0;; n++)
                        if (n % 1000000 == 0)
                                usleep(1000);
        }
        notify_ready();
        for (;;)
                pause();
}
