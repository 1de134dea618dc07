/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/macro.h"
#include "report/csharp.h"

struct pair {
        const char *full, *shorter;
};

static void shorten_all(const struct pair *pairs, size_t n) {
        for (size_t i = 0; i < n; i++) {
                _cleanup_(buf_done) struct buf b = BUF_NULL;

                csharp_shorten(&b, pairs[i].full);
                assert_string_equal(buf_text(&b), pairs[i].shorter);
        }
}

static void signatures_become_types_and_methods(void **state) {
        static const struct pair pairs[] = {
                { "System.IO.FileSystemWatcher+RunningInstance.AddDirectoryWatch(WatchedDirectory, String)",
                  "System.IO.FileSystemWatcher+RunningInstance.AddDirectoryWatch" },
                { "System.Collections.Generic.List`1.Add(T)", "System.Collections.Generic.List.Add" },
                { "Microsoft.Extensions.Hosting.HostApplicationBuilder..ctor("
                  "HostApplicationBuilderSettings)",
                  "Microsoft.Extensions.Hosting.HostApplicationBuilder..ctor" },
                { "A.B.Log<TState>(LogLevel, TState, Func`3)", "A.B.Log" },
                { "A.B`2+C`1.Get<T,U>()", "A.B+C.Get" },
                { "Program.<Main>$(String[])", "Program.<Main>$" },
                { "System.Int32.op_Addition(Int32, Int32)", "System.Int32.op_Addition" },
                { "System.Byte.System.IConvertible.ToInt32(IFormatProvider)",
                  "System.Byte.IConvertible.ToInt32" },
                { "My.Bag`1.System.Collections.Generic.IEnumerable<T>.GetEnumerator()",
                  "My.Bag.IEnumerable.GetEnumerator" },
                { "Microsoft.E.Manager.Microsoft.E.IBuilder.Add(Source)",
                  "Microsoft.E.Manager.IBuilder.Add" },
                { "My.Tool.Thing.My.Tool.IThing.Do()", "My.Tool.Thing.IThing.Do" },
                { "My.Tool.My.Do()", "My.Tool.My.Do" },
                { "My.System.Tools.Class.Do()", "My.System.Tools.Class.Do" },
                { "System.Byte.System.Foo()", "System.Byte.System.Foo" },
                { "A.B", "A.B" },
                { "main", "main" },
                { "", "" },
        };

        shorten_all(pairs, ARRAY_SIZE(pairs));
}

static void what_the_compiler_made_becomes_what_was_written(void **state) {
        static const struct pair pairs[] = {
                { "My.Streams+<Count>d__0.MoveNext()", "My.Streams.Count" },
                { "My.Streams.<Count>d__0`1.MoveNext", "My.Streams.Count" },
                { "My.Streams+<>c__DisplayClass1_0+<<Later>b__1>d.MoveNext()", "My.Streams.Later.lambda" },
                { "My.Streams+<<Later>g__L|1_0>d.MoveNext()", "My.Streams.Later.L" },
                { "My.Streams+<Count>d__0.System.IDisposable.Dispose()",
                  "My.Streams.Count.IDisposable.Dispose" },
                { "My.Bag`1+<System-Collections-IEnumerable-GetEnumerator>d__1.MoveNext()",
                  "My.Bag.GetEnumerator" },
                { "A.U+<>c__DisplayClass2_0`3.<Join>b__0(T)", "A.U.Join.lambda" },
                { "A.B+<>c.<.cctor>b__82_0()", "A.B..cctor.lambda" },
                { "A.B+<>c__62`1.<Format>b__62_0(Int32)", "A.B.Format.lambda" },
                { "A.B.<PopCount>g__SoftwareFallback|22_0(UInt32)", "A.B.PopCount.SoftwareFallback" },
                { "Program.<<Main>$>g__Local|0_2(Int32)", "Program.<Main>$.Local" },
                { "Program+<>c.<<Main>$>b__0_1()", "Program.<Main>$.lambda" },
                { "Program+<<Main>$>d__0.MoveNext()", "Program.<Main>$" },
                { "T+<>c.<System.Threading.IThreadPoolWorkItem.Execute>b__18_0(Object)",
                  "T.Execute.lambda" },
                { "A+B+<>c.<M>b__0_0()", "A+B.M.lambda" },
                { "A+B+<M>d__3.MoveNext()", "A+B.M" },
                { "A.List`1+Enumerator.MoveNext()", "A.List+Enumerator.MoveNext" },
                { "<PrivateImplementationDetails>.ComputeStringHash(String)",
                  "<PrivateImplementationDetails>.ComputeStringHash" },
                { "N.<File_g>F01__T.Bind_X(Object)", "N.<File_g>F01__T.Bind_X" },
        };

        shorten_all(pairs, ARRAY_SIZE(pairs));
}

static void methods_of_perf_maps_look_like_the_others(void **state) {
        static const struct pair pairs[] = {
                { "void [System.Private.CoreLib] System.IO.Path::Combine(string,string)[Tier0]",
                  "System.IO.Path.Combine" },
                { "instance class [System.Runtime]System.String [app] My.App::get_Name()[OptimizedTier1]",
                  "My.App.get_Name" },
                { "instance void [app] My.App+<Run>d__3::MoveNext()[PreJIT]", "My.App.Run" },
                { "LazyCompile:~f /srv/app.js:3:4", "LazyCompile:~f /srv/app.js:3:4" },
                { "py::main:/srv/app.py", "py::main:/srv/app.py" },
        };

        shorten_all(pairs, ARRAY_SIZE(pairs));
}

static void parameters_are_kept_for_overloads(void **state) {
        static const struct pair pairs[] = {
                { "A.B.C(Int32, String)", "(Int32, String)" },
                { "A.B.C<T>(Func`2, T[])", "(Func, T[])" },
                { "A.B.C()", "()" },
                { "A.B.C", "" },
                { "A.B.C(", "" },
                { "A.B.<M>b__0(Int32&)", "(Int32&)" },
                { "void [a] B::C(string)[Tier0]", "(string)" },
                { "A.B("
                  "XXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX"
                  ")",
                  "(XXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX…)" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
                _cleanup_(buf_done) struct buf b = BUF_NULL;

                csharp_parameters(&b, pairs[i].full);
                assert_string_equal(buf_text(&b), pairs[i].shorter);
        }
}

static void broken_names_come_out_somehow(void **state) {
        static const char *const names[] = { "<",           ">",
                                             "<>",          "<>c",
                                             ".",           "..",
                                             "+",           "`",
                                             "A.<",         "A.<B",
                                             "A.<B>d",      "A.<B>d__.MoveNext",
                                             "<<<",         ">>>",
                                             "(",           ")",
                                             "A(<",         "A<(",
                                             "::",          "] ::",
                                             "A.<>c.<>b__", "<>d.MoveNext",
                                             "A.<B>g__",    "A.<B>g__|" };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                _cleanup_(buf_done) struct buf b = BUF_NULL;

                csharp_shorten(&b, names[i]);
                assert_true(b.size > 0 && b.size <= strlen(names[i]) + strlen(".lambda"));
                csharp_parameters(&b, names[i]);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(signatures_become_types_and_methods),
                cmocka_unit_test(what_the_compiler_made_becomes_what_was_written),
                cmocka_unit_test(methods_of_perf_maps_look_like_the_others),
                cmocka_unit_test(parameters_are_kept_for_overloads),
                cmocka_unit_test(broken_names_come_out_somehow),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
