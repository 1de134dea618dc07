/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>

#include "common/buf.h"
#include "common/macro.h"
#include "symbolize/demangle_dotnet.h"

/* Lines "SYMBOL\tNAME\n", with a NUL behind them. */
__asm__(".pushsection .rodata\nsymbols:\n.incbin \"tests/unit/dotnet_symbols.tsv\"\n.byte 0\n.popsection\n");
extern const char symbols[] __attribute__((visibility("hidden")));

static void becomes(const char *linkage, const char *wanted) {
        _cleanup_free_ char *name = NULL;

        assert_int_equal(demangle_dotnet(&(struct dotnet_symbol){ .linkage = linkage }, &name), 0);
        assert_string_equal(name, wanted);
}

static void types_are_told_from_methods_and_assemblies(void **state) {
        becomes("S_P_CoreLib_System_Threading_Tasks_TaskToAsyncResult__End",
                "System.Threading.Tasks.TaskToAsyncResult.End");
        becomes("Microsoft_Extensions_Hosting_Microsoft_Extensions_Hosting_HostApplicationBuilder___ctor_1",
                "Microsoft.Extensions.Hosting.HostApplicationBuilder..ctor");
        becomes("System_IO_FileSystem_Watcher_System_IO_FileSystemWatcher_RunningInstance__"
                "AddDirectoryWatch",
                "System.IO.FileSystemWatcher.RunningInstance.AddDirectoryWatch");
        becomes("System_Diagnostics_Process_Interop_Sys__Read", "Interop.Sys.Read");
        becomes("System_Console_Microsoft_Win32_SafeHandles_SafeFileHandleHelper__Open",
                "Microsoft.Win32.SafeHandles.SafeFileHandleHelper.Open");
        becomes("S_P_CoreLib_System___DTString__MatchSpecifiedWords",
                "System.__DTString.MatchSpecifiedWords");
        becomes("Newtonsoft_Json_Newtonsoft_Json_JsonConvert__SerializeObject",
                "Newtonsoft.Json.JsonConvert.SerializeObject");
        becomes("String__Concat_4", "System.String.Concat");
        becomes("UInt8__System_IConvertible_ToInt32", "System.Byte.System.IConvertible.ToInt32");
}

static void type_arguments_go_and_arities_stay(void **state) {
        becomes("S_P_CoreLib_System_Collections_Generic_Dictionary_2<S_P_CoreLib_System_ValueTuple_2<System_"
                "__"
                "Canon__System___Canon>__System___Canon>___ctor_2",
                "System.Collections.Generic.Dictionary`2..ctor");
        becomes("My_Tool_My_Tool_Parts_Outer_1_Inner_1<System___Canon__Int32>__Name",
                "My.Tool.Parts.Outer`1.Inner`1.Name");
        becomes("S_P_CoreLib_System_MemoryExtensions__Sort_3<Int8__Int8__System___Canon>",
                "System.MemoryExtensions.Sort");
        becomes("S_P_CoreLib_System_Action_1<System___Canon>__InvokeMulticastThunk",
                "System.Action`1.InvokeMulticastThunk");
        becomes("S_P_CoreLib_System_Buffers_SpanFunc_5<Char__UInt8<ByRef>>____GetFieldHelper",
                "System.Buffers.SpanFunc`5.__GetFieldHelper");
}

static void what_ends_in_a_number_keeps_it(void **state) {
        becomes("System_Security_Cryptography_Interop_Crypto__EvpSha3_256", "Interop.Crypto.EvpSha3_256");
        becomes("System_Security_Cryptography_System_Security_Cryptography_SHA3_256__HashData_3",
                "System.Security.Cryptography.SHA3_256.HashData");
        becomes("S_P_CoreLib_Internal_Metadata_NativeFormat_MdBinaryReader__Read_116",
                "Internal.Metadata.NativeFormat.MdBinaryReader.Read");
}

static void names_that_the_compiler_made_are_restored(void **state) {
        becomes("System_Linq_System_Linq_Utilities___c__DisplayClass2_0_3<Char__Char__System___Canon>___"
                "CombineSelectors_b__0",
                "System.Linq.Utilities.<>c__DisplayClass2_0`3.<CombineSelectors>b__0");
        becomes("S_P_CoreLib_System_Enum___c__62_1<UInt32>___FormatNumberAsHex_b__62_0",
                "System.Enum.<>c__62`1.<FormatNumberAsHex>b__62_0");
        becomes("S_P_CoreLib_System_Type___c____cctor_b__291_0", "System.Type.<>c.<.cctor>b__291_0");
        becomes("S_P_CoreLib_System_IO_FileStream__DisposeAsync_d__57__MoveNext",
                "System.IO.FileStream.<DisposeAsync>d__57.MoveNext");
        becomes("S_P_CoreLib_System_IO_StreamWriter___FlushAsyncInternal_g__Core_79_0_d__MoveNext",
                "System.IO.StreamWriter.<<FlushAsyncInternal>g__Core|79_0>d.MoveNext");
        becomes("S_P_CoreLib_Internal_LowLevelLinq_LowLevelEnumerable__Select_d__1_2<System___Canon__System_"
                "__"
                "Canon>__System_IDisposable_Dispose",
                "Internal.LowLevelLinq.LowLevelEnumerable.<Select>d__1`2.System.IDisposable.Dispose");
        becomes("System_Linq_System_Linq_Enumerable__OfTypeIterator_d__66_1<System___Canon>____m__Finally1",
                "System.Linq.Enumerable.<OfTypeIterator>d__66`1.<>m__Finally1");
        becomes("My_Tool_Program___c__DisplayClass0_0____Main___b__0",
                "My.Tool.Program.<>c__DisplayClass0_0.<<Main>$>b__0");
        becomes("System_Linq__PrivateImplementationDetails___InlineArrayAsSpan<Int32>",
                "<PrivateImplementationDetails>.InlineArrayAsSpan");
        becomes("Some_App_SourceGeneration__Bindings_g_"
                "FD9151BB5E876F0BF9EFD42BD4E9D3906E9C7DF10EC83B7A558F7078328D41540__Bindings__Bind_X",
                "Some.App.SourceGeneration.<Bindings_g>"
                "FD9151BB5E876F0BF9EFD42BD4E9D3906E9C7DF10EC83B7A558F7078328D41540__Bindings.Bind_X");
}

static void the_programs_own_assembly_is_taken_off(void **state) {
        static const struct {
                const char *linkage, *name;
        } cases[] = {
                { "myservice_Program___Main__", "Program.<Main>$" },
                { "myservice_myservice_Worker__ExecuteAsync_d__2__MoveNext",
                  "myservice.Worker.<ExecuteAsync>d__2.MoveNext" },
                { "myservice__Module___MainMethodWrapper", "<Module>.MainMethodWrapper" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_free_ char *name = NULL;

                assert_int_equal(demangle_dotnet(&(struct dotnet_symbol){ .linkage = cases[i].linkage,
                                                                          .assembly = "myservice" },
                                                 &name),
                                 0);
                assert_string_equal(name, cases[i].name);
        }
}

static void stubs_of_value_types_have_the_name_of_their_method(void **state) {
        becomes("unbox_Int64__ToString", "System.Int64.ToString");
        becomes("<Boxed>S_P_CoreLib_System_Collections_Generic_Dictionary_2_Entry<System___Canon__System___"
                "Canon>"
                "__<unbox>S_P_CoreLib_System_Collections_Generic_Dictionary_2_Entry____GetFieldHelper",
                "System.Collections.Generic.Dictionary`2.Entry.__GetFieldHelper");
}

static void dwarf_knows_better(void **state) {
        struct dotnet_symbol symbol = {
                .linkage = "a_b__c__d_2",
                .type = "S_P_CoreLib_System_Collections_Generic_Dictionary_2<Int32__Int32>",
                .method = "System.Collections.Generic.IDictionary<TKey,TValue>.get_Keys",
        };
        char *name = NULL;

        assert_int_equal(demangle_dotnet(&symbol, &name), 0);
        assert_string_equal(name, "System.Collections.Generic.Dictionary`2.System.Collections.Generic."
                                  "IDictionary<TKey,TValue>.get_Keys");
        free(name);
}

static void what_is_no_method_is_left_to_the_caller(void **state) {
        static const char *const names[] = {
                "",
                "main",
                "_start",
                "RhpNewFast",
                "_ZN3WKS7gc_heap3gc1Ev",
                "a__",
                "__a",
                "<>",
                "a<b__c",
                "a>b__c",
                "<Boxed>a__b",
                "<Boxed>a__<unbox>b__c",
                "f(int)",
                "a b__c",
                "___",
                "unbox_",
                "__GetGCStaticBase_S_P_CoreLib_System_HashCode",
        };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                char *name = (char *) names;

                assert_int_equal(demangle_dotnet(&(struct dotnet_symbol){ .linkage = names[i] }, &name),
                                 -ENOENT);
                assert_ptr_equal(name, names);
        }
}

/* The name without "`1", as the list has it. */
static char *without_arities(const char *name) {
        _cleanup_(buf_done) struct buf b = BUF_NULL;
        char *text;

        for (const char *p = name; *p; p++)
                if (*p == '`')
                        p += strspn(p + 1, "0123456789");
                else
                        buf_putc(&b, *p);
        assert_int_equal(buf_take(&b, &text, NULL), 0);
        return text;
}

static void at_least_98_of_100_symbols_have_the_name_of_the_metadata(void **state) {
        unsigned all = 0, exact = 0;

        for (const char *line = symbols; *line; line = strchr(line, '\n') + 1) {
                size_t symbol = strcspn(line, "\t\n"), whole = strcspn(line, "\n");
                _cleanup_free_ char *linkage = strndup(line, symbol), *name = NULL, *got = NULL,
                                    *wanted = NULL;

                if (*line == '#')
                        continue;
                wanted = strndup(line + symbol + 1, whole - symbol - 1);
                assert_int_equal(
                        demangle_dotnet(&(struct dotnet_symbol){ .linkage = linkage, .assembly = "My_Tool" },
                                        &name),
                        0);
                got = without_arities(name);
                all++;
                exact += streq(got, wanted);
        }
        assert_true(all > 400);
        assert_true(exact * 100 >= all * 98);
}

static void every_truncation_is_safe(void **state) {
        for (const char *line = symbols; *line; line = strchr(line, '\n') + 1)
                for (size_t cut = 0; cut < MIN(strcspn(line, "\t\n"), (size_t) 300); cut++) {
                        _cleanup_free_ char *linkage = strndup(line, cut), *name = NULL;
                        int r;

                        assert_non_null(linkage);
                        r = demangle_dotnet(&(struct dotnet_symbol){ .linkage = linkage }, &name);
                        assert_true(r == 0 || r == -ENOENT);
                        assert_true(r < 0 || *name);
                }
}

static char *repeated(const char *begin, const char *piece, size_t count, const char *end) {
        _cleanup_(buf_done) struct buf b = BUF_NULL;
        char *text;

        buf_puts(&b, begin);
        for (size_t i = 0; i < count; i++)
                buf_puts(&b, piece);
        buf_puts(&b, end);
        assert_int_equal(buf_take(&b, &text, NULL), 0);
        return text;
}

static void long_names_are_read_up_to_the_limits_and_no_further(void **state) {
        _cleanup_free_ char *arguments = repeated("System_A_1<", "Int32__", 100000, "Int32>__B"),
                            *nested = repeated("System_A_1", "<B", 100000, ""),
                            *endless = repeated("System_A_1<", "Int32__", 200000, "Int32>__B"),
                            *underscores = repeated("a", "_", DOTNET_NAME_MAX - 2, "b"),
                            *words = repeated("a", "___", DOTNET_NAME_MAX / 3 - 1, "b"),
                            *long_type = repeated("a", "b", DOTNET_NAME_MAX, "__c");
        char *name = NULL;

        becomes(arguments, "System.A`1.B");
        assert_int_equal(demangle_dotnet(&(struct dotnet_symbol){ .linkage = nested }, &name), -ENOENT);
        assert_int_equal(demangle_dotnet(&(struct dotnet_symbol){ .linkage = endless }, &name), -E2BIG);
        assert_int_equal(demangle_dotnet(&(struct dotnet_symbol){ .linkage = long_type }, &name), -E2BIG);
        assert_null(name);
        assert_int_equal(demangle_dotnet(&(struct dotnet_symbol){ .linkage = underscores }, &name), 0);
        free(name);
        assert_int_equal(demangle_dotnet(&(struct dotnet_symbol){ .linkage = words }, &name), 0);
        free(name);
        name = NULL;
        assert_int_equal(
                demangle_dotnet(&(struct dotnet_symbol){ .linkage = "a__b", .type = endless }, &name),
                -E2BIG);
        assert_int_equal(
                demangle_dotnet(&(struct dotnet_symbol){ .linkage = "a__b", .method = endless }, &name),
                -E2BIG);
        assert_int_equal(
                demangle_dotnet(&(struct dotnet_symbol){ .linkage = "a__b", .assembly = endless }, &name),
                -E2BIG);
        assert_null(name);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(types_are_told_from_methods_and_assemblies),
                cmocka_unit_test(type_arguments_go_and_arities_stay),
                cmocka_unit_test(what_ends_in_a_number_keeps_it),
                cmocka_unit_test(names_that_the_compiler_made_are_restored),
                cmocka_unit_test(the_programs_own_assembly_is_taken_off),
                cmocka_unit_test(stubs_of_value_types_have_the_name_of_their_method),
                cmocka_unit_test(dwarf_knows_better),
                cmocka_unit_test(what_is_no_method_is_left_to_the_caller),
                cmocka_unit_test(at_least_98_of_100_symbols_have_the_name_of_the_metadata),
                cmocka_unit_test(every_truncation_is_safe),
                cmocka_unit_test(long_names_are_read_up_to_the_limits_and_no_further),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
