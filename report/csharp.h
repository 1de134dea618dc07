/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "common/buf.h"

/*
 * C# methods as a programmer thinks of them. The full name tells what the compiler and the runtime made of it:
 *
 *   Streams+<Count>d__0.MoveNext()                  Streams.Count             an async or iterator method
 *   Utilities+<>c__DisplayClass2_0`3.<Join>b__0(T)  Utilities.Join.lambda
 *   Program.<<Main>$>g__Local|0_2(Int32)            Program.<Main>$.Local     a local function
 *   System.Collections.Generic.List`1.Add(T)        System.Collections.Generic.List.Add
 *   void [corlib] System.IO.Path::Combine(string)[Tier0]   System.IO.Path.Combine   of a perf map
 */

/* Appends the short form; nested types keep their "+". A name that is no C# stays as it is, as far as these rules see. */
void csharp_shorten(struct buf *b, const char *name);
/* Appends the parameters with their parentheses, "(Int32, String)"; nothing when the name has none. */
void csharp_parameters(struct buf *b, const char *name);
