/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/described.h"

#include "report/report.h"
#include "tests/report_forms.h"

/* SY-19, SY-20: what processes, files and functions have been called, or could be. */
static const char *const names[] = {
        "evil;comm 1",
        "a b c 42",
        "x 42",
        "42",
        " ",
        ";",
        ";;",
        "a\nb",
        "\n",
        "\r\n",
        "a\tb",
        ")x R",
        "bad\xff\xfe\n)x",
        "\xff",
        "\xc0\x80", /* an overlong NUL */
        "\xed\xa0\x80", /* half of a surrogate pair */
        "\xf4\x90\x80\x80", /* behind the last code point */
        "\xe2\x82", /* cut off */
        "\xc2\x85", /* NEL */
        "\xe2\x80\xa8", /* line separator */
        "\xe2\x80\xaegnp.exe",
        "\xef\xbf\xbe",
        "\x1b[2J\x1b]0;title\x07",
        "\x7f",
        "\\",
        "\\x3b",
        "\"",
        "'",
        "&amp;",
        "&",
        "<script>alert(1)</script>",
        "]]>",
        "<![CDATA[",
        "-->",
        "<!--",
        "</text></svg>",
        "\"/><g onload=\"x",
        "%s%n%d",
        "${x}`id`",
        "../../etc/passwd",
        "[GC]",
        "[no stack]",
        "operator<< <char>",
        "void f(int) [clone .cold]",
        "A.<>c.<M>b__0",
        "..ctor",
        ".",
        "(",
        "<",
        "::<>",
        "()",
        "\xc3\xa4\xe6\xbc\xa2\xf0\x9f\x98\x80", /* nothing wrong with these */
};

/* As the description of a recording has it: every byte in numbers. */
static void put_quoted(struct buf *b, const char *name) {
        buf_putc(b, '"');
        for (const char *p = name; *p; p++)
                buf_printf(b, "\\x%02x", (unsigned char) *p);
        buf_putc(b, '"');
}

static void put_line(struct buf *b, const char *format, const char *name) {
        const char *at = strchr(format, '@');

        buf_append(b, format, (size_t) (at - format));
        put_quoted(b, name);
        buf_puts(b, at + 1);
}

/* The name is everything that can have one. */
static struct described describe_all_named(const char *name) {
        _cleanup_(buf_done) struct buf b = BUF_NULL;

        put_line(&b, "start begin=1ms until=1s hz=99 unit=@ type=notify\n", name);
        put_line(&b, "property WorkingDirectory @\n", name);
        put_line(&b, "process 1 begin=1ms exec=2ms slot=ExecStart comm=@", name);
        put_line(&b, " exe=@", name);
        put_line(&b, " args=@", name);
        put_line(&b, " cwd=@\n", name);
        put_line(&b, "process 2 parent=1 begin=1ms comm=\"\" exe=@\n", name);
        put_line(&b, "module @ symbols=none reason=1\nstack s\n", name);
        put_line(&b, " frame - @ offset=1\n", name);
        put_line(&b, " frame @ ", name);
        put_line(&b, "@ source=symtab\n", name);
        put_line(&b, " frame @ ", name);
        put_line(&b, "@ source=nativeaot inlined=inner\n", name);
        put_line(&b, " frame @ ", name);
        put_line(&b, "@ source=perf-map\n", name);
        put_line(&b, "samples 1 user from=2ms to=900ms count=50 stack=s comm=@\n", name);
        put_line(&b, "samples 2 kernel from=2ms to=900ms count=5 call=read stack=s comm=@\n", name);
        put_line(&b, "samples 1 wait from=2ms to=900ms count=5 call=read stack=s comm=@\n", name);
        buf_puts(&b,
                 "call 1 inotify_add_watch count=5000 first=3ms last=990ms\nwait 1 on-cpu blocked=990ms\n");
        put_line(&b, "path inotify 1 @ at=3ms call=inotify_add_watch count=20 to=990ms\n", name);
        put_line(&b, "dir inotify 1 @ count=5000\n", name);
        put_line(&b, "milestone exec at=2ms process=1 slot=ExecStart detail=@\n", name);
        return describe(buf_text(&b), NULL);
}

static void no_name_breaks_a_form_of_the_report(void **state) {
        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                _described_ d = describe_all_named(names[i]);

                for (int format = 0; format < REPORT_FORMAT_MAX; format++)
                        for (int view = 0; view < REPORT_VIEW_MAX; view++) {
                                struct report_options options = { .view = (enum report_view) view,
                                                                  .recording = names[i] };
                                _cleanup_free_ char *text =
                                        forms_write(d.recording, (enum report_format) format, &options);
                                const char *wrong;

                                assert_non_null(text);
                                assert_true(*text);
                                wrong = forms_check((enum report_format) format, text, 80);
                                if (wrong)
                                        fail_msg("name %zu, form %d: %s in\n%s", i, format, wrong, text);
                        }
        }
}

static void no_name_breaks_the_line_for_the_journal(void **state) {
        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                _described_ d = describe_all_named(names[i]);
                _cleanup_free_ char *text = NULL;
                const char *message;
                json_t *root;

                assert_int_equal(report_journal(d.recording, &text), 0);
                root = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
                assert_non_null(root);
                message = json_string_value(json_object_get(root, "message"));
                assert_null(forms_check_text(message, true));
                assert_null(strchr(message, '\n'));
                json_decref(root);
        }
}

/* The frame of a symbol in folded stacks. */
static char *folded_frame(const char *name) {
        _cleanup_(buf_done) struct buf b = BUF_NULL;
        _cleanup_free_ char *text = NULL;
        struct described d;
        char *frame;

        buf_puts(&b, "start begin=0 until=1s\nprocess 1 begin=0 exec=0 comm=c\nmodule /m\nstack s\n");
        put_line(&b, "frame @ /m source=perf-map\nsamples 1 user from=1ms to=9ms count=7 stack=s\n", name);
        d = describe(buf_text(&b), NULL);
        text = forms_write(d.recording, REPORT_FOLDED, &(struct report_options){});
        described_done(&d);
        assert_non_null(text);
        assert_memory_equal(text, "c;", 2);
        frame = strndup(text + 2, strcspn(text, " ") - 2);
        assert_non_null(frame);
        return frame;
}

static void different_names_stay_different_in_folded_stacks(void **state) {
        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                for (size_t j = 0; j < i; j++) {
                        _cleanup_free_ char *a = folded_frame(names[i]), *b = folded_frame(names[j]);

                        assert_string_not_equal(a, b);
                }
}

/* "\\" and "\xHH" back to what they stand for. */
static void unescape(const char *text, struct buf *ret) {
        while (*text) {
                unsigned value;

                if (text[0] == '\\' && text[1] == '\\') {
                        buf_putc(ret, '\\');
                        text += 2;
                } else if (sscanf(text, "\\x%2x", &value) == 1) {
                        buf_putc(ret, (char) value);
                        text += 4;
                } else
                        buf_putc(ret, *text++);
        }
}

static void folded_stacks_give_the_bytes_of_a_name_back(void **state) {
        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                _cleanup_free_ char *frame = folded_frame(names[i]);
                _cleanup_(buf_done) struct buf b = BUF_NULL;

                unescape(frame, &b);
                assert_string_equal(buf_text(&b), names[i]);
        }
}

static void json_gives_valid_names_back_as_they_are(void **state) {
        static const char name[] = "\xc3\xa4 ;\n\"\\<&\x01\x7f";
        _described_ d = describe_all_named(name);
        _cleanup_free_ char *text = forms_write(d.recording, REPORT_JSON, &(struct report_options){});
        json_t *root;

        assert_non_null(text);
        root = json_loads(text, 0, NULL);
        assert_non_null(root);
        assert_string_equal(json_string_value(json_object_get(root, "unit")), name);
        json_decref(root);
}

static void megabytes_of_template_arguments_take_no_room(void **state) {
        enum { NAME_BYTES = 4 * 1024 * 1024 };
        _cleanup_(buf_done) struct buf name = BUF_NULL, b = BUF_NULL;
        struct described d;

        buf_puts(&name, "std::vector<");
        while (name.size < NAME_BYTES)
                buf_puts(&name, "std::pair<int, std::string>, ");
        buf_puts(&name, "int>::push_back");
        buf_puts(&b,
                 "start begin=0 until=1s\nprocess 1 begin=0 exec=0 comm=c\nmodule /m\nstack s\nframe \"");
        buf_puts(&b, buf_text(&name));
        buf_puts(&b, "\" /m source=symtab\nsamples 1 user from=1ms to=900ms count=70 stack=s\n");
        d = describe(buf_text(&b), NULL);
        for (int format = 0; format < REPORT_FORMAT_MAX; format++) {
                _cleanup_free_ char *text =
                        forms_write(d.recording, (enum report_format) format, &(struct report_options){});

                assert_non_null(text);
                assert_null(forms_check((enum report_format) format, text, 80));
                assert_true(strlen(text) < 256 * 1024);
        }
        described_done(&d);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(no_name_breaks_a_form_of_the_report),
                cmocka_unit_test(no_name_breaks_the_line_for_the_journal),
                cmocka_unit_test(different_names_stay_different_in_folded_stacks),
                cmocka_unit_test(folded_stacks_give_the_bytes_of_a_name_back),
                cmocka_unit_test(json_gives_valid_names_back_as_they_are),
                cmocka_unit_test(megabytes_of_template_arguments_take_no_room),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
