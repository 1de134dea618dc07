/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Numbers and time spans as users type them. The whole text must be one: -EINVAL, or -ERANGE when it does
 * not fit. Nothing is written on error. */

int parse_u64(const char *text, uint64_t *ret); /* decimal digits only */
int parse_u32(const char *text, uint32_t *ret);
/* systemd.time(7) spans: "5s", "2min 3ms", "1.5s", plain numbers are seconds, "infinity" is UINT64_MAX. */
int parse_usec(const char *text, uint64_t *ret);
/* Lower-case or upper-case hex to bytes; exactly `bytes` of them. */
int parse_hex(const char *text, uint8_t *ret, size_t bytes);
