/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "symbolize/elf_image.h"

/* What a file is to the process that maps it, told by the file itself: paths are whatever an image of a container
 * makes of them. */
enum module_role {
        MODULE_OTHER,
        MODULE_LIBC, /* glibc's libc.so.6 */
        MODULE_LOADER, /* glibc's ld.so */
};

/* By DT_SONAME. */
enum module_role module_role(const struct elf_image *image);

/* Does the address lie in the first bytes behind the entry point? That is _start, whether it has a symbol or not:
 * it ends in a call that does not return. */
bool module_is_entry(const struct elf_image *image, uint64_t vaddr);
