/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/log.h"

#include <stdarg.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/fd.h"
#include "common/text.h"

/* Set once by main() before there are threads. */
static enum log_level max_level = LOG_LEVEL_INFO;

void log_set_max_level(enum log_level level) {
        max_level = level;
}

/* $JOURNAL_STREAM is "DEVICE:INODE" of the journal's socket; it is inherited by programs whose stderr was
 * redirected since, so it has to be compared (systemd.exec(5)). */
static bool stderr_is_journal(void) {
        const char *stream = getenv("JOURNAL_STREAM");
        char ours[64];
        struct stat st;

        if (!stream || fstat(STDERR_FILENO, &st) < 0)
                return false;
        snprintf(ours, sizeof(ours), "%llu:%llu", (unsigned long long) st.st_dev,
                 (unsigned long long) st.st_ino);
        return streq(stream, ours);
}

/* One write, so that lines of several threads and processes do not mix. Names of strangers may be in the
 * text, so it is escaped as for a terminal. Nobody is left to tell when stderr cannot be written. */
static void print_line(enum log_level level, const char *text) {
        _cleanup_(buf_done) struct buf line = BUF_NULL;

        if (stderr_is_journal())
                buf_printf(&line, "<%d>", (int) level);
        text_escape_terminal(&line, text);
        buf_putc(&line, '\n');
        if (buf_error(&line) == 0)
                (void) fd_write_full(STDERR_FILENO, line.data, line.size);
}

void log_message(enum log_level level, const char *format, ...) {
        int saved_errno = errno;
        char text[1024];
        va_list ap;

        if (level > max_level)
                return;
        va_start(ap, format);
        vsnprintf(text, sizeof(text), format, ap);
        va_end(ap);
        print_line(level, text);
        errno = saved_errno;
}

int log_error_errno(int error, const char *format, ...) {
        int saved_errno = errno;
        char text[1024];
        va_list ap;
        size_t n;

        va_start(ap, format);
        vsnprintf(text, sizeof(text), format, ap);
        va_end(ap);
        n = strlen(text);
        snprintf(text + n, sizeof(text) - n, ": %s", strerror(-error));
        print_line(LOG_LEVEL_ERROR, text);
        errno = saved_errno;
        return error;
}
