/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Build-ids: the identity of an executable file.
 *
 * Two files are the same to startprof when their build-ids are equal. Paths,
 * inodes and times only suggest it: containers, upgrades and overlayfs make
 * each of them lie.
 */

/* What the kernel reports at most (BUILD_ID_SIZE_MAX, linux/buildid.h). */
#define BUILD_ID_MAX 20

struct build_id {
        uint8_t bytes[BUILD_ID_MAX];
        uint8_t size; /* in bytes; 0: the file has none */
};

#define BUILD_ID_NULL                                                                                       \
        (struct build_id) {                                                                                 \
        }

/*
 * Finds the build-id in the notes of an ELF file (a PT_NOTE segment or a
 * SHT_NOTE section), 64-bit little-endian, as readelf -n shows it.
 *
 * notes, size   borrowed; may hold anything, it is read within bounds
 * ret           filled on success, untouched on failure
 *
 * 0          found
 * -ENODATA   well-formed notes, but no build-id among them
 * -EBADMSG   a note runs past the end, or the id is empty or longer than
 *            BUILD_ID_MAX
 */
int build_id_from_notes(const void *notes, size_t size, struct build_id *ret);

/* Equal and present: two files without build-ids are never the same file. */
bool build_id_equal(const struct build_id *a, const struct build_id *b);
