/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/macro.h"
#include "symbolize/elf_image.h"

/*
 * Sections of a debug file as their readers want them: inflated. Three ways of packing are in use: SHF_COMPRESSED
 * with zlib or zstd (gABI, "Compressed sections"; ELFCOMPRESS_ZSTD needs elfutils 0.189, so this is done here),
 * and the older ".zdebug_NAME" with a header of its own ("ZLIB" and a big-endian size).
 *
 * A file that unpacks into more than it says, or than the limits, is refused: the sizes in it are not believed
 * before they are compared with what is there.
 */
enum {
        DEBUG_SECTION_BYTES_MAX = 192 << 20, /* of one inflated section, and of all of one file */
        DEBUG_SECTIONS_MAX = 24, /* inflated, of one file */
};

struct debug_sections;

struct debug_span {
        const uint8_t *data; /* NULL: empty */
        size_t bytes;
};

/* image is borrowed and must outlive the sections. -ENOMEM. */
int debug_sections_new(const struct elf_image *image, struct debug_sections **ret);
struct debug_sections *debug_sections_free(struct debug_sections *s);
DEFINE_CLEANUP(struct debug_sections *, debug_sections_free);

/*
 * The content of a section (".debug_info"), wherever and however it is stored; valid as long as s.
 *
 * 0
 * -ENODATA   no such section, or it was split off
 * -EBADMSG   what is stored does not inflate to the size it says
 * -ENOTSUP   packed in a way that nobody knew in 2026
 * -EFBIG     more than DEBUG_SECTION_BYTES_MAX
 * -ENOMEM
 */
int debug_sections_get(struct debug_sections *s, const char *name, struct debug_span *ret);
