/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * replay build FILE.rec FILE.startprof   makes a recording from a description
 * replay plain FILE.rec FILE.startprof   the same, not compressed
 * replay write FORMAT FILE.startprof     writes the report: text, color, json, pretty, folded, svg, journal;
 *                                        waits and wall: folded stacks of these views; wall-svg
 * replay time FORMAT FILE.startprof      the CPU time that takes, in milliseconds
 */

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/macro.h"
#include "report/report.h"
#include "tests/replay/description.h"

static int build(const char *from, bool compress, const char *to) {
        _cleanup_fclose_ FILE *in = fopen(from, "re");
        _cleanup_close_ int fd = -EBADF;
        _cleanup_free_ void *data = NULL;
        size_t bytes;
        int r;

        if (!in)
                return -errno;
        r = description_read(in, from, compress, &data, &bytes);
        if (r < 0)
                return r;
        fd = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        return fd < 0 ? -errno : fd_write_full(fd, data, bytes);
}

static int write_journal(const struct recording *r) {
        _cleanup_free_ char *text = NULL;
        int error = report_journal(r, &text);

        if (error == 0)
                puts(text);
        return error;
}

static int write_report(const char *format, const char *file, FILE *out) {
        struct report_options options = { .recording = "demo-1" };
        _cleanup_close_ int fd = open(file, O_RDONLY | O_CLOEXEC);
        enum report_format f = REPORT_JSON_PRETTY;
        struct recording *r = NULL;
        int error = fd < 0 ? -errno : recording_open_fd(fd, &r);

        if (error < 0)
                return error;
        if (streq(format, "journal"))
                error = write_journal(r);
        else {
                options.color = streq(format, "color");
                if (startswith(format, "wa"))
                        options.view = streq(format, "waits") ? REPORT_WAITS : REPORT_WALL;
                if (options.color)
                        f = REPORT_TEXT;
                else if (streq(format, "waits") || streq(format, "wall"))
                        f = REPORT_FOLDED;
                else if (streq(format, "wall-svg"))
                        f = REPORT_SVG;
                else if (!streq(format, "pretty"))
                        error = report_format_from_name(format, &f);
                if (error == 0)
                        error = report_write(r, f, &options, out);
        }
        recording_free(r);
        return error;
}

static int time_report(const char *format, const char *file) {
        _cleanup_fclose_ FILE *null = fopen("/dev/null", "we");
        struct timespec begin, end;
        int r;

        if (!null)
                return -errno;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
        r = write_report(format, file, null);
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
        if (r == 0)
                printf("%ld\n",
                       (end.tv_sec - begin.tv_sec) * 1000 + (end.tv_nsec - begin.tv_nsec) / 1000000);
        return r;
}

int main(int argc, char *argv[]) {
        int r = -EINVAL;

        if (argc == 4 && streq(argv[1], "build"))
                r = build(argv[2], true, argv[3]);
        else if (argc == 4 && streq(argv[1], "plain"))
                r = build(argv[2], false, argv[3]);
        else if (argc == 4 && streq(argv[1], "write"))
                r = write_report(argv[2], argv[3], stdout);
        else if (argc == 4 && streq(argv[1], "time"))
                r = time_report(argv[2], argv[3]);
        if (r < 0)
                fprintf(stderr, "replay: %s\n", strerror(-r));
        return r < 0;
}
