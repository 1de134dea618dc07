/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stddef.h>

#include "common/buf.h"

/*
 * A socket address as a recording shows it: "inet:127.0.0.1:53", "inet6:[::1]:53", "unix:/run/x",
 * "unix:@abstract", "netlink", "family:38". The bytes come from the profiled service and may be anything.
 */
void address_text(struct buf *b, const void *address, size_t bytes);
