/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/macro.h"
#include "symbolize/elf_image.h"

/*
 * C# names of a .NET NativeAOT executable or library, out of the file itself, however stripped: what its own
 * runtime uses for stack traces and reflection. A method covers its frame description entry and those of its
 * exception handlers; tail-jumping stubs of value types count as the method they lead to.
 *
 * All or nothing: each address must be the begin of a method's code, each command, handle and string one that is
 * known, or there are no names at all, so that a file of an unknown layout never gives a wrong one.
 */
struct nativeaot;

struct nativeaot_method {
        const char *name; /* Namespace.Type+Nested.Method<T>(Type, Type); NULL: code of the compiler's own,
                             a stub. Valid as long as the table */
        uint64_t start, end; /* virtual addresses of this part of its code, end exclusive */
        uint64_t entry; /* where the method begins: start, but for exception handlers */
};

/*
 * image: is read here and not kept.
 *
 * -ENODATA   not from the .NET native compiler
 * -ENOTSUP   of a version that is not known, or of several modules
 * -ENOENT    built without the data for stack traces (StackTraceSupport=false)
 * -EBADMSG   the data contradicts the code
 * -E2BIG     more of it than a program can have
 * -ENOMEM
 */
int nativeaot_new(const struct elf_image *image, struct nativeaot **ret);
struct nativeaot *nativeaot_free(struct nativeaot *n);
DEFINE_CLEANUP(struct nativeaot *, nativeaot_free);

/* 0, or -ENOENT: no code of .NET. */
int nativeaot_find(const struct nativeaot *n, uint64_t vaddr, struct nativeaot_method *ret);

/* Sorted by start, without overlap; number of them. */
size_t nativeaot_count(const struct nativeaot *n);
void nativeaot_get(const struct nativeaot *n, size_t index, struct nativeaot_method *ret);
