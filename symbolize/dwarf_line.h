/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "symbolize/dwarf_unit.h"

/*
 * The line table of one unit (DWARF 5, 6.2, and the forms before it): which line of which file an address comes
 * from. Read as a whole when the unit is first hit, searched by halves.
 */
struct dwarf_lines;

enum {
        DWARF_ROWS_MAX =
                1 << 22, /* of a unit; the largest seen, of a program as one LTO unit, has 1.5 million */
        DWARF_FILES_MAX = 1 << 18,
};

/* u is borrowed and must outlive the lines. -ENODATA: it has none; -EBADMSG, -ENOTSUP, -E2BIG, -ENOMEM. */
int dwarf_lines_new(const struct dwarf_unit *u, struct dwarf_lines **ret);
struct dwarf_lines *dwarf_lines_free(struct dwarf_lines *l);
DEFINE_CLEANUP(struct dwarf_lines *, dwarf_lines_free);

/* 0 with the number of a file and a line, which is 0 for code of no line; -ENOENT. */
int dwarf_lines_find(const struct dwarf_lines *l, uint64_t address, uint64_t *ret_file, uint32_t *ret_line);
/* Appends the path of a file: absolute if the compiler said where it ran. Nothing when there is no such file. */
void dwarf_lines_path(const struct dwarf_lines *l, uint64_t file, struct buf *path);
/* Memory that it takes. */
size_t dwarf_lines_bytes(const struct dwarf_lines *l);
