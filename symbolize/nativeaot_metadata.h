/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdint.h>

#include "common/buf.h"
#include "symbolize/nativeaot_header.h"

/*
 * Embedded metadata of a .NET NativeAOT executable: records of types and methods that refer to each other by
 * handles (what it is, and the offset of its record). A record that is not of a kind that belongs there, a
 * string that is no UTF-8, an offset outside: the whole file is refused, since a stream that is read wrong
 * would give wrong names. Work and depth are bounded, whatever refers to what.
 */

enum nativeaot_kind { /* of handles; the same numbers in .NET 8, 9 and 10 */
                      NATIVEAOT_NIL = 0,
                      NATIVEAOT_ARRAY = 0x01,
                      NATIVEAOT_BY_REF = 0x02,
                      NATIVEAOT_FUNCTION_POINTER = 0x25,
                      NATIVEAOT_METHOD_TYPE_VARIABLE = 0x2c,
                      NATIVEAOT_MODIFIED_TYPE = 0x2d,
                      NATIVEAOT_NAMESPACE_DEFINITION = 0x2f,
                      NATIVEAOT_NAMESPACE_REFERENCE = 0x30,
                      NATIVEAOT_POINTER = 0x32,
                      NATIVEAOT_SZ_ARRAY = 0x37,
                      NATIVEAOT_SCOPE_DEFINITION = 0x38,
                      NATIVEAOT_SCOPE_REFERENCE = 0x39,
                      NATIVEAOT_TYPE_DEFINITION = 0x3a,
                      NATIVEAOT_TYPE_INSTANTIATION = 0x3c,
                      NATIVEAOT_TYPE_REFERENCE = 0x3d,
                      NATIVEAOT_TYPE_SPECIFICATION = 0x3e,
                      NATIVEAOT_TYPE_VARIABLE = 0x3f,
};

struct nativeaot_handle {
        uint32_t kind; /* enum nativeaot_kind, or one that is not known */
        uint32_t offset; /* in the metadata; 0: nil */
};

/* Embedded; no _done: it holds nothing. */
struct nativeaot_metadata {
        struct nativeaot_blob blob; /* borrowed, inside the image */
        const struct nativeaot_format *format;
        uint32_t steps; /* records and elements looked at so far */
        int error; /* the first one, sticks: -EBADMSG, -E2BIG */
        struct { /* the last one: methods of a type mostly follow each other */
                struct nativeaot_handle handle;
                size_t bytes;
                char text[256];
        } owner;
};

/* What the name of a method is made of; offsets in the metadata. */
struct nativeaot_method_ref {
        struct nativeaot_handle owner;
        uint32_t name; /* String */
        uint32_t signature; /* MethodSignature */
        uint32_t generic_names; /* StringArray of the names of its generic parameters, or 0 */
        uint32_t method; /* Method that has them, if generic_names is 0; or 0 */
};

/* -EBADMSG: not metadata. */
int nativeaot_metadata_init(struct nativeaot_metadata *m, const struct nativeaot_header *header);

/* The form of a handle outside of the metadata. */
struct nativeaot_handle nativeaot_handle_of(const struct nativeaot_format *format, uint32_t token);

/*
 * Appends Namespace.Type`1+Nested.Method<T,U>(Type1, Type2): the own arity stays in the name of a generic type,
 * its parameters are not shown, those of methods are; types of parameters have no namespace.
 * This is how the runtime prints its stack traces, but for "+", which it prints as ".", "<T,U>", where it has
 * brackets, and pointers to functions, which are IntPtr here and nothing there. On errors (in m) b holds a part of it.
 */
void nativeaot_print_method(struct nativeaot_metadata *m, const struct nativeaot_method_ref *ref,
                            struct buf *b);

/* Name and signature out of a Method record. */
struct nativeaot_method_ref nativeaot_read_method(struct nativeaot_metadata *m, uint32_t method,
                                                  struct nativeaot_handle owner);

/* One pair of a TypeDefinition and a Method that it lists; equal Method records are shared by several types. */
struct nativeaot_member {
        uint32_t method, type; /* offsets */
};

/* All of the file: fills `members` (struct nativeaot_member, unsorted). Errors: in m, and those of the buffer. */
void nativeaot_list_members(struct nativeaot_metadata *m, struct buf *members);
