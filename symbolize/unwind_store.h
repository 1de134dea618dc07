/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "symbolize/elf_image.h"
#include "symbolize/unwind.h"

/*
 * Tables of the unwinder as files, so that those of large libraries are made once and not for each start. A
 * stored table is data of somebody else again: reading checks all that the walk relies on. Of this machine only:
 * the arrays lie in it as they do in memory.
 */

enum {
        UNWIND_KEY_MAX = 2 * BUILD_ID_MAX + 1 + 64 + 1,
        UNWIND_STORED_MAX = 64 * 1024 * 1024,
        UNWIND_STORED_LEAST = 64 * 1024, /* of CFI: smaller ones are made faster than they are asked for */
};

/*
 * "BUILD-ID-SHA256", in hexadecimal digits: of the section that the table is made from, and where it lies. A
 * build-id alone is not enough, since a hostile file may carry another's.
 *
 * -ENODATA    no build-id or no .eh_frame, less CFI than UNWIND_STORED_LEAST, or some of it is in a .debug_frame
 */
int unwind_store_key(const struct elf_image *image, const struct elf_image *debug /* NULL: none */,
                     char key[static UNWIND_KEY_MAX]);

/* *ret is malloc()ed. -ENOMEM, -EFBIG. */
int unwind_store_pack(const struct unwind_table *table, void **ret, size_t *ret_bytes);
/* -EBADMSG: not such a table, of another version, or an invariant of unwind_table.h does not hold; -ENOMEM. */
int unwind_store_unpack(const void *data, size_t bytes, struct unwind_table **ret);
