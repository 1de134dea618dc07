/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The names of .NET methods as the native compiler (ILC of .NET 8, 9 and 10) writes them into the symbol table,
 * back in C#:
 *
 *   S_P_CoreLib_System_Collections_Generic_List_1<Int32>__Add   System.Collections.Generic.List`1.Add
 *   └ assembly  └ namespace and type      └ arity        └ method
 *
 * The compiler writes "_" for every character that is no letter or digit, so some of it can only be guessed:
 * where the method begins, what was a "." and what a "_". What is certain goes first (type arguments stand
 * before the method; compiler-made names have patterns), and DWARF knows the method exactly. The result has no
 * parameters, no type arguments and no number of the overload; nested types are joined by "." as namespaces
 * are.
 */

enum {
        DOTNET_SYMBOL_MAX = 1024 * 1024, /* longer: not looked at */
        DOTNET_NAME_MAX = 4 * 1024, /* of a symbol without its type arguments */
        DOTNET_ASSEMBLY_MAX = 256,
};

struct dotnet_symbol {
        const char *linkage; /* the symbol, or DW_AT_linkage_name */
        const char *type; /* DW_AT_name of the class that the method's declaration lies in; NULL: unknown */
        const char *method; /* DW_AT_name of the method's declaration; NULL: unknown */
        const char *assembly; /* the program's own, as it is written in symbols: what stands before
                                 "__Module___StartupCodeMain"; NULL: unknown */
};

/*
 * All strings are borrowed.
 *
 * 0          *ret is the name, malloc()ed
 * -ENOENT    no such symbol (one of the runtime's C functions, a stub without a method, unbalanced brackets):
 *            use it as it is
 * -E2BIG     one of the limits; likewise
 * -ENOMEM
 */
int demangle_dotnet(const struct dotnet_symbol *symbol, char **ret);
