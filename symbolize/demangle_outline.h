/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The outline of C++ names that are too long to be demangled: template arguments of any size are skipped, not
 * read, in one pass over the name and with room for the outline only.
 *
 *   _ZN2ns3FooIJLi0ELi1E…EE3barEv → ns::Foo<…>::bar
 */
enum { OUTLINE_MAX = 512 };

/*
 * Mangled as the Itanium C++ ABI says ("_Z…"). What the outline does not know (an expression among the arguments)
 * ends it: "ns::Foo<…>…" is the begin of the name, never another one.
 *
 * 0          *ret is the outline, malloc()ed, at most OUTLINE_MAX bytes
 * -ENOENT    nothing of the name can be told
 * -ENOMEM
 */
int demangle_outline(const char *mangled, char **ret);
