/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdint.h>

#include "symbolize/nativeaot_metadata.h"

/*
 * The invoke map of a .NET NativeAOT executable: which methods reflection can call, and where. Those are not in
 * the stack trace map. A Method record does not say of which type it is, and equal records are shared by many
 * types (constructors without parameters are one record): the type comes from the method table of the entry, of
 * generic instantiations from the record if only one type lists it; else the entry is passed over.
 */

/* vaddr: what is called, code or a stub. A negative return ends the reading. */
typedef int (*nativeaot_invoke_fn)(void *userdata, uint64_t vaddr, const struct nativeaot_method_ref *ref);

/* 0, also without such a map; -EBADMSG, -E2BIG, -ENOMEM; what `each` returned. */
int nativeaot_invoke_read(const struct nativeaot_header *header, struct nativeaot_metadata *metadata,
                          nativeaot_invoke_fn each, void *userdata);
