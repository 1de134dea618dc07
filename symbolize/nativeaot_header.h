/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "symbolize/elf_image.h"
#include "symbolize/nativeaot_cursor.h"

/*
 * The table of contents that the .NET native compiler leaves for its own runtime (ReadyToRun header, signature
 * "RTR"): section __modules points to it. Its version says how everything else is to be read; the numbers
 * are facts of the runtimes 8, 9 and 10, looked at in what their compilers make.
 */

struct nativeaot_format {
        uint16_t major, minor; /* of the header */
        uint8_t kind_bits; /* low bits of a handle that say of what it is one */
        uint8_t commands; /* bits that a command of the stack trace map may have */
        bool needs_method; /* entries of the invoke map may be without a Method record */
};

struct nativeaot_header {
        const struct nativeaot_format *format;
        /* bytes == 0: the file has none */
        struct nativeaot_blob metadata, stack_map, invoke_map, fixups, type_map;
};

/*
 * 0           *ret filled
 * -ENODATA    not from that compiler
 * -ENOTSUP    of a version that is not known, or with more than one module
 * -EBADMSG    something points outside the file
 */
int nativeaot_header_read(const struct elf_image *image, struct nativeaot_header *ret);
