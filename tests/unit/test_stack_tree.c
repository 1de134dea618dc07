/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/described.h"

#include "report/stack_tree.h"

#define START         "start begin=0 until=1s\nprocess 1 begin=0 exec=0 comm=app\n"
#define PROGRAM       "module /app\n"
#define SAMPLE(stack) "samples 1 user from=1ms to=9ms count=10 stack=" stack "\n"

/* The rows from the process to the innermost frame of a tree without branches, one a line. */
static void has_rows_with(const struct described *d, bool kernel, const char *wanted) {
        _cleanup_(stack_tree_done) struct stack_tree t = STACK_TREE_NULL;
        _cleanup_(buf_done) struct buf b = BUF_NULL;

        assert_int_equal(stack_tree_init(d->recording, REPORT_CPU, kernel, STACK_TREE_DOWN, &t), 0);
        for (size_t i = 2; i < t.n_nodes; i++)
                buf_printf(&b, "%s\n", t.labels[t.nodes[i].label].text);
        assert_string_equal(buf_text(&b), wanted);
}

static void has_rows(const struct described *d, const char *wanted) {
        has_rows_with(d, false, wanted);
}

static void methods_have_no_parameters(void **state) {
        _described_ d = describe(START PROGRAM
                                 "stack s\n"
                                 "frame \"A.B.C(Int32)\" /app source=nativeaot\n"
                                 "frame \"A.B..ctor(String, List`1)\" /app source=nativeaot\n" SAMPLE("s"),
                                 NULL);

        has_rows(&d, "A.B..ctor\nA.B.C\n");
}

static void overloads_in_one_picture_are_told_apart(void **state) {
        _described_ d =
                describe(START PROGRAM "stack s\n"
                                       "frame \"A.B.C(Int32)\" /app source=nativeaot\n"
                                       "frame \"A.B.C(Int32, String)\" /app source=nativeaot\n"
                                       "frame \"A.B.D(Int32)\" /app source=nativeaot\n"
                                       "stack unused\n"
                                       "frame \"A.B.D(String)\" /app source=nativeaot\n" SAMPLE(
                                               "s") "samples 1 wait from=1ms to=9ms count=10 stack=unused\n",
                         NULL);

        has_rows(&d, "A.B.D\nA.B.C(Int32, String)\nA.B.C(Int32)\n");
}

static void what_runs_an_async_method_has_its_name(void **state) {
        _described_ d =
                describe(START PROGRAM "stack s\n"
                                       "frame \"A.W+<Run>d__2.MoveNext()\" /app source=nativeaot\n"
                                       "frame \"A.W+<>c.<Run>b__0_0()\" /app source=nativeaot\n"
                                       "frame \"A.W.<Run>g__Go|0_1()\" /app source=nativeaot\n" SAMPLE("s"),
                         NULL);

        has_rows(&d, "A.W.Run.Go\nA.W.Run.lambda\nA.W.Run\n");
}

static void parts_of_the_runtime_are_one_row(void **state) {
        _described_ d = describe(
                START PROGRAM
                "stack s\n"
                "frame WKS::gc_heap::mark_object_simple /app\n"
                "frame WKS::gc_heap::gc1 /app\n"
                "frame WKS::GCHeap::Alloc /app\n"
                "frame RhpGcAlloc /app\n"
                "frame RhpNewFast /app\n"
                "frame \"A.B.C()\" /app source=nativeaot\n"
                "frame \"Internal.Runtime.TypeLoader.TypeBuilder.BuildType(TypeDesc)\" /app "
                "source=nativeaot\n"
                "frame \"Internal.Runtime.TypeLoader.TypeLoaderEnvironment.X()\" /app source=nativeaot\n"
                "frame RhTypeCast_CheckCastAny /app\n"
                "frame RhpInterfaceDispatch16 /app\n"
                "frame __GetGCStaticBase_S_P_CoreLib_System_HashCode /app\n"
                "frame System.Action`1.InvokeMulticastThunk /app\n"
                "frame RhpCheckedAssignRef /app\n"
                "frame \"System.Runtime.EH.RhThrowEx(Object, ExInfo&)\" /app source=nativeaot\n"
                "frame SystemNative_Read /app\n"
                "frame \"Interop+Sys.Read(SafeHandle, Byte*, Int32)\" /app source=nativeaot\n"
                "frame main /app\n" SAMPLE("s"),
                NULL);

        has_rows(&d,
                 "main\n[P/Invoke]\n[exceptions]\n[write barrier]\n[managed stub]\n[interface dispatch]\n"
                 "[type checks]\n[type loader]\nA.B.C\n[allocation]\n[GC]\n");
}

static void only_dotnet_has_them(void **state) {
        _described_ d = describe(START PROGRAM "stack s\n"
                                               "frame Thread::Hijack /app\n"
                                               "frame GCHeap::collect /app\n"
                                               "frame RhpNewFast /app\n" SAMPLE("s"),
                                 NULL);

        has_rows(&d, "RhpNewFast\nGCHeap::collect\nThread::Hijack\n");
}

static void a_recursion_is_not_one_row(void **state) {
        _described_ d = describe(START PROGRAM "module /lib/libc.so.6\nstack s\n"
                                               "frame \"A.B.C()\" /app source=nativeaot levels=3\n"
                                               "frame memcpy /lib/libc.so.6 levels=2\n" SAMPLE("s"),
                                 NULL);

        has_rows(&d, "memcpy\nmemcpy\nA.B.C\nA.B.C\nA.B.C\n");
}

static void methods_of_a_perf_map_look_the_same(void **state) {
        _described_ d = describe(
                START "module \"\" kind=anonymous\nstack s\n"
                      "frame \"void [app] A.W+<Run>d__2::MoveNext()[Tier0]\" \"\" source=perf-map\n"
                      "frame \"LazyCompile:~f(a<b) /srv/x+y.js:3\" \"\" source=perf-map\n" SAMPLE("s"),
                NULL);

        has_rows(&d, "LazyCompile:~f(a<b) /srv/x+y.js:3\nA.W.Run\n");
}

static void the_kernels_part_of_a_stack_comes_when_asked_for(void **state) {
        _described_ d = describe(START PROGRAM
                                 "module [kernel] kind=kernel\n"
                                 "stack s\nframe read_all /app\nframe main /app\n"
                                 "stack k\nframe schedule [kernel] source=kallsyms\n"
                                 "frame - [kernel] offset=0xffffffff81000010\n"
                                 "frame ksys_read [kernel] source=kallsyms\n"
                                 "samples 1 kernel from=1ms to=9ms count=10 call=read stack=s kernel=k\n",
                                 NULL);

        has_rows(&d, "main\nread_all\n[read]\n");
        has_rows_with(&d, true,
                      "main\nread_all\n[read]\nksys_read\n[kernel]+0xffffffff81000010\nschedule\n");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(methods_have_no_parameters),
                cmocka_unit_test(overloads_in_one_picture_are_told_apart),
                cmocka_unit_test(what_runs_an_async_method_has_its_name),
                cmocka_unit_test(parts_of_the_runtime_are_one_row),
                cmocka_unit_test(only_dotnet_has_them),
                cmocka_unit_test(a_recursion_is_not_one_row),
                cmocka_unit_test(methods_of_a_perf_map_look_the_same),
                cmocka_unit_test(the_kernels_part_of_a_stack_comes_when_asked_for),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
