/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Symbol names as the programmer wrote them: C++ (Itanium ABI) and Rust (legacy and v0). Names come from
 * strangers' files and can be made to expand without end, so input and output are bounded. Parameters and
 * return types are left out: "std::vector<int>::push_back", "<alloc::vec::Vec<T>>::push". OCaml, D and Swift
 * are left as they are; .NET: demangle_dotnet.h.
 */
enum {
        DEMANGLE_INPUT_MAX = 4 * 1024,
        DEMANGLE_OUTPUT_MAX = 4 * 1024, /* without the NUL */
};

/*
 * 0          *ret is the demangled name, malloc()ed
 * -ENOENT    not mangled, or not in a way that is known: use the name as it is
 * -E2BIG     one of the bounds; likewise
 * -ENOMEM
 */
int demangle(const char *mangled, char **ret);
