/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"

/*
 * Texts on their way out. Names of processes, files and symbols are chosen by
 * strangers: they may hold control characters, terminal sequences, markup and
 * bytes that are no UTF-8 (SY-19, SY-20).
 */

/* One line for a terminal or the journal: control characters (C0, DEL, C1), invalid UTF-8 and
 * bidirectional overrides become \xHH, backslash \\. */
void text_escape_terminal(struct buf *b, const char *text);
/* Valid UTF-8 for JSON: invalid bytes become U+FFFD; the rest unchanged. */
void text_utf8(struct buf *b, const char *text);
/* XML text and attribute values: & < > " ' escaped, control characters and invalid UTF-8 → U+FFFD. */
void text_escape_xml(struct buf *b, const char *text);
/* Columns on a terminal (wcwidth by a table is overkill: code points, combining marks and the like count 1). */
size_t text_columns(const char *text);

/* "9.2s", "31ms", "120us", "2min 3s", "1h 2min": at most two units, three digits. */
void text_span(struct buf *b, uint64_t usec);
/* "46,259": thousands apart. */
void text_count(struct buf *b, uint64_t n);
void text_hex(struct buf *b, const uint8_t *bytes, size_t n);
