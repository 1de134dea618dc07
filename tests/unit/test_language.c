/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "report/language.h"
#include "tests/unit/described.h"

#define START "start begin=0 until=1s\n"

static size_t gaps_of(const char *text, struct language_gap *ret_first) {
        _described_ d = describe(text, NULL);
        _cleanup_free_ struct language_gap *gaps = NULL;
        size_t count = 0;

        assert_int_equal(language_gaps(d.recording, &gaps, &count), 0);
        if (count > 0)
                *ret_first = gaps[0];
        return count;
}

static void expect(const char *text, enum language language, uint32_t module) {
        struct language_gap gap = {};

        assert_int_equal(gaps_of(text, &gap), 1);
        assert_int_equal(gap.language, language);
        assert_int_equal(gap.module, module);
        assert_int_equal(gap.pid, 7);
}

static void node_is_known_by_its_executable(void **state) {
        expect(START "process 7 begin=0 exec=0 exe=/usr/bin/node\nmodule \"\" kind=anonymous symbols=none "
                     "reason=6\n"
                     "stack s\nframe - \"\" offset=0x10\nsamples 7 user from=0 to=1s count=5 stack=s\n",
               LANGUAGE_NODE, 0);
}

static void dotnet_is_known_by_the_library_in_its_stacks(void **state) {
        expect(START
               "process 7 begin=0 exec=0 exe=/srv/app\nmodule \"\" kind=anonymous symbols=none reason=6\n"
               "module /usr/share/dotnet/shared/Microsoft.NETCore.App/10.0.1/libcoreclr.so\n"
               "stack s\nframe - \"\" offset=0x10\n"
               "frame - /usr/share/dotnet/shared/Microsoft.NETCore.App/10.0.1/libcoreclr.so offset=0x10\n"
               "samples 7 user from=0 to=1s count=5 stack=s\n",
               LANGUAGE_DOTNET, 0);
}

static void python_is_one_from_3_12_on_without_any_code_made_at_run_time(void **state) {
        struct language_gap gap;

        expect(START "process 7 begin=0 exec=0 exe=/usr/bin/python3.13\nmodule /usr/bin/python3.13\n"
                     "stack s\nframe f /usr/bin/python3.13\nsamples 7 user from=0 to=1s count=5 stack=s\n",
               LANGUAGE_PYTHON, 0);
        expect(START "process 7 begin=0 exec=0 exe=/srv/app\nmodule /usr/lib/libpython3.12.so.1.0\n"
                     "stack s\nframe f /usr/lib/libpython3.12.so.1.0\nsamples 7 user from=0 to=1s count=5 "
                     "stack=s\n",
               LANGUAGE_PYTHON, 0);
        assert_int_equal(
                gaps_of(START
                        "process 7 begin=0 exec=0 exe=/usr/bin/python3.11\nmodule /usr/bin/python3.11\n"
                        "stack s\nframe f /usr/bin/python3.11\nsamples 7 user from=0 to=1s count=5 "
                        "stack=s\n",
                        &gap),
                0);
}

static void with_a_map_nothing_is_missing(void **state) {
        struct language_gap gap;

        assert_int_equal(
                gaps_of(START
                        "process 7 begin=0 exec=0 exe=/usr/bin/python3.13\nmodule /usr/bin/python3.13\n"
                        "module \"\" kind=anonymous symbols=perf-map\nstack s\nframe f /usr/bin/python3.13\n"
                        "frame g \"\" offset=0x10\nsamples 7 user from=0 to=1s count=5 stack=s\n",
                        &gap),
                0);
}

static void code_of_an_unknown_maker_is_no_languages(void **state) {
        struct language_gap gap;

        assert_int_equal(gaps_of(START
                                 "process 7 begin=0 exec=0 exe=/usr/bin/qemu\n"
                                 "module \"\" kind=anonymous symbols=none reason=6\nstack s\n"
                                 "frame - \"\" offset=0x10\nsamples 7 user from=0 to=1s count=5 stack=s\n",
                                 &gap),
                         0);
}

static void java_has_a_command_instead_of_a_switch(void **state) {
        struct language_gap gap = { .language = LANGUAGE_JAVA, .pid = 42 };
        _cleanup_(buf_done) struct buf b = BUF_NULL;

        assert_null(language_dropin(LANGUAGE_JAVA));
        language_advice(&b, &gap);
        assert_non_null(strstr(buf_text(&b), "jcmd 42 Compiler.perfmap"));
        assert_string_equal(language_dropin(LANGUAGE_DOTNET),
                            "[Service]\nEnvironment=DOTNET_PerfMapEnabled=1\n");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(node_is_known_by_its_executable),
                cmocka_unit_test(dotnet_is_known_by_the_library_in_its_stacks),
                cmocka_unit_test(python_is_one_from_3_12_on_without_any_code_made_at_run_time),
                cmocka_unit_test(with_a_map_nothing_is_missing),
                cmocka_unit_test(code_of_an_unknown_maker_is_no_languages),
                cmocka_unit_test(java_has_a_command_instead_of_a_switch),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
