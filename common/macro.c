/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/macro.h"

#include <stdio.h>

#include "common/fd.h"

void macro_freep(void *p) {
        free(*(void **) p);
}

void macro_closep(int *fd) {
        fd_close(*fd);
}

void macro_fclosep(void *f) {
        int saved_errno = errno;
        FILE *file = *(FILE **) f;

        if (file)
                fclose(file);
        errno = saved_errno;
}
