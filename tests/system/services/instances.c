/* SPDX-License-Identifier: GPL-2.0-or-later */

/* instances: makes inotify instances until there are no more, opens one file, and fails. FC-15. */

#include <fcntl.h>
#include <sys/inotify.h>
#include <unistd.h>

int main(void) {
        while (inotify_init1(IN_CLOEXEC) >= 0)
                ;
        (void) !open("/dev/null", O_RDONLY | O_CLOEXEC);
        return 1;
}
