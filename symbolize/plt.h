/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdint.h>

#include "symbolize/elf_image.h"

/*
 * The stubs through which a module calls functions of others, .plt, .plt.sec and .plt.got: no symbol table has them, but
 * each jumps through a slot that a relocation fills with the address of a named function.
 */

/* Name (raw, inside the image) and range of the stub at vaddr. -ENOENT: no such stub there. */
int plt_find(const struct elf_image *image, uint64_t vaddr, const char **ret_name, uint64_t *ret_start);
