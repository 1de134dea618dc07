/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "common/macro.h"
#include "symbolize/elf_image.h"

/*
 * The symbols that Fedora and its kin leave in stripped files: section .gnu_debugdata, an ELF file of its own
 * with a .symtab, packed by xz (gdb's manual, "MiniDebugInfo").
 */
struct mini_debuginfo;

enum {
        MINI_DEBUGINFO_BYTES_MAX = 64 << 20, /* unpacked; that of the largest library of Fedora has 6 MB */
        MINI_DEBUGINFO_MEMORY_MAX = 80 << 20, /* of the unpacker: xz -9 needs 65 MB */
};

/*
 * Unpacks it. image is borrowed only for that.
 *
 * 0
 * -ENODATA   there is none
 * -EBADMSG   it is not xz, or not an ELF file
 * -EFBIG     more than the limits
 * -ENOMEM
 */
int mini_debuginfo_new(const struct elf_image *image, struct mini_debuginfo **ret);
struct mini_debuginfo *mini_debuginfo_free(struct mini_debuginfo *m);
DEFINE_CLEANUP(struct mini_debuginfo *, mini_debuginfo_free);
/* Valid as long as m. */
const struct elf_image *mini_debuginfo_image(const struct mini_debuginfo *m);
