/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/worker_msg.h"
#include "symbolize/elf_image.h"

/*
 * The debug file of a module: the symbols and unwind tables that were split off it. This module knows where
 * such files may lie and whether one belongs to the module; it opens nothing, it asks by role.
 *
 * A file belongs to the module when its build-id is equal. Modules without a build-id have only their
 * .gnu_debuglink, whose CRC covers the whole debug file.
 */

/*
 * Opens the candidate number `attempt` (from 0) of a role. Same answers as worker_file_fn: 0 with a
 * descriptor, which becomes the caller's, and the path it was found at; -ENXIO: no such attempt; any other
 * error: not there, go on. name: the suffix or the link's name, "" for roles that need none.
 */
typedef int (*debug_file_ask_fn)(void *userdata, enum worker_role role, uint32_t attempt, const char *name,
                                 int *ret_fd, char path[static WORKER_PATH_MAX]);

enum {
        DEBUG_FILE_ATTEMPTS_MAX = 32, /* of one role and name */
        DEBUG_FILE_LINK_MAX = 255, /* a file name */
};

/*
 * Finds the debug file of `image`, first hit in this order: in the user's directories whatever its name is
 * (WORKER_ROLE_DEBUG_DIRECTORY with the build-id in hex as its name), NAME.dbg and NAME.debug beside it, .gnu_debuglink,
 * by build-id below the debug directories, the debuginfod caches.
 *
 * ret, path  the image is the caller's; both untouched on failure
 *
 * 0
 * -ENOENT    none
 * -ESTALE    some, but all of them of another build or no ELF files
 * -ENOMEM
 */
int debug_file_find(const struct elf_image *image, debug_file_ask_fn ask, void *userdata,
                    struct elf_image **ret, char path[static WORKER_PATH_MAX]);

/* Does it hold anything that a debug file is for: symbols, DWARF? */
bool debug_file_is_useful(const struct elf_image *image);

/*
 * The name in .gnu_debuglink and the CRC of the file it stands for. The name is a file name, never a path:
 * the module chooses it and the parent opens it. name: inside the image.
 * -ENODATA: none. -EBADMSG: malformed, or not a file name.
 */
int debug_file_link(const struct elf_image *image, const char **ret_name, uint32_t *ret_crc);
