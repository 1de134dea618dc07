/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/message.h"

#include <stdarg.h>
#include <stdio.h>

#include "common/buf.h"
#include "common/text.h"

static void say(const char *format, va_list arguments) {
        _cleanup_(buf_done) struct buf line = BUF_NULL;
        _cleanup_free_ char *text = NULL;

        if (vasprintf(&text, format, arguments) < 0) {
                text = NULL;
                return;
        }

        text_escape_terminal(&line, text);
        fprintf(stderr, "startprof: %s\n", buf_text(&line));
}

int message_fail(enum exit_status status, const char *format, ...) {
        va_list arguments;

        va_start(arguments, format);
        say(format, arguments);
        va_end(arguments);
        return (int) status;
}

int message_no_memory(void) {
        return message_fail(EXIT_CANNOT_PROFILE, "out of memory");
}

int message_make(enum exit_status status, char **ret, const char *format, ...) {
        va_list arguments;

        va_start(arguments, format);
        if (vasprintf(ret, format, arguments) < 0)
                *ret = NULL;
        va_end(arguments);
        return (int) status;
}

int message_fail_made(int status, const char *line) {
        return line ? message_fail((enum exit_status) status, "%s", line) : message_no_memory();
}

void message_note(const char *format, ...) {
        va_list arguments;

        va_start(arguments, format);
        say(format, arguments);
        va_end(arguments);
}
