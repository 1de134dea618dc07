/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/answer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/fetch.h"
#include "client/message.h"
#include "client/names.h"
#include "client/output.h"
#include "client/terminal.h"
#include "common/fd.h"
#include "common/macro.h"

void answer_done(struct answer *a) {
        free(a->data);
        recording_free(a->recording);
        free(a->name);
        *a = ANSWER_NULL;
}

/* ---- reading ---- */

static int cannot_read(const char *name, int error) {
        if (error == -EPROTONOSUPPORT)
                return message_fail(
                        EXIT_FILE,
                        "%s was recorded by a newer startprof than this one (%s): read it with that", name,
                        STARTPROF_VERSION);
        if (error == -EBADMSG || error == -ENODATA)
                return message_fail(EXIT_FILE, "%s is not a recording, or a damaged one", name);
        if (error == -ENOMEM)
                return message_no_memory();
        return message_fail(EXIT_FILE, "cannot read %s: %s", name, strerror(-error));
}

static int read_all(int fd, struct answer *a) {
        struct stat st;

        if (fstat(fd, &st) < 0)
                return -errno;
        if (S_ISDIR(st.st_mode))
                return -EISDIR;
        if (!S_ISREG(st.st_mode))
                return -EBADMSG;
        /* a memory file has the position where its maker stopped writing */
        if (lseek(fd, 0, SEEK_SET) < 0)
                return -errno;
        return fd_read_file(fd, RECORDING_SIZE_MAX, &a->data, &a->bytes);
}

int answer_load(int fd, const char *name, struct answer *ret) {
        _cleanup_(answer_done) struct answer a = ANSWER_NULL;
        int r;

        a.name = strdup(name);
        if (!a.name)
                return message_no_memory();
        r = read_all(fd, &a);
        if (r >= 0)
                r = recording_open(a.data, a.bytes, &a.recording);
        if (r < 0)
                return cannot_read(name, r);
        *ret = a;
        a = ANSWER_NULL;
        return 0;
}

/* ---- naming ---- */

/* The worker is not trusted: its layer counts only if the whole can still be opened. */
static int append_layer(struct answer *a, const void *layer, size_t layer_bytes) {
        _cleanup_free_ char *data = NULL;
        struct recording *recording;
        int r;

        if (layer_bytes > RECORDING_SIZE_MAX - a->bytes)
                return -EFBIG;
        data = malloc(a->bytes + layer_bytes);
        if (!data)
                return -ENOMEM;
        memcpy(data, a->data, a->bytes);
        memcpy(data + a->bytes, layer, layer_bytes);
        r = recording_open(data, a->bytes + layer_bytes, &recording);
        if (r < 0)
                return r;

        recording_free(a->recording);
        free(a->data);
        a->recording = recording;
        a->data = TAKE_PTR(data);
        a->bytes += layer_bytes;
        return 0;
}

static int name_again(struct answer *a, const struct options *options) {
        _cleanup_free_ void *layer = NULL;
        size_t bytes;
        int r;

        r = names_find(a->recording, a->data, a->bytes, options, &layer, &bytes);
        return r < 0 ? r : append_layer(a, layer, bytes);
}

void answer_improve(struct answer *a, const struct options *options) {
        int r;

        if (options->n_debug_dirs == 0 && !names_missing(a->recording, options->kernel))
                return;
        r = name_again(a, options);
        if (r >= 0 && fetch_debug_files(a->recording, options))
                r = name_again(a, options);
        if (r < 0)
                message_note("no better names were found: %s", strerror(-r));
        else if (options->kernel && names_missing_of_kernel(a->recording))
                message_note(
                        "the kernel's functions have no names: only root may see their addresses, and only "
                        "until the next boot");
}

/* ---- showing ---- */

/* Closes nothing: `out` may be standard output. */
static int write_report(const struct answer *a, enum report_format format,
                        const struct report_options *options, FILE *out) {
        int r;

        r = report_write(a->recording, format, options, out);
        if (r == -ENOMEM)
                return message_no_memory();
        if (r < 0 || fflush(out) != 0)
                return message_fail(EXIT_FILE, "cannot write the report: %s", strerror(errno));
        return 0;
}

int answer_print(const struct answer *a, const struct options *options) {
        static const enum report_format formats[] = {
                [JSON_OFF] = REPORT_TEXT,
                [JSON_SHORT] = REPORT_JSON,
                [JSON_PRETTY] = REPORT_JSON_PRETTY,
        };

        return write_report(a, formats[options->json],
                            &(struct report_options){
                                    .color = terminal_colors(STDOUT_FILENO),
                                    .columns = terminal_columns(STDOUT_FILENO),
                                    .recording = a->name,
                            },
                            stdout);
}

int answer_export(const struct answer *a, enum report_format format, const struct options *o,
                  const char *path) {
        const struct report_options options = { .view = o->view, .kernel = o->kernel, .recording = a->name };
        _cleanup_(output_done) struct output out = OUTPUT_NULL;
        int r;

        if (streq(path, "-"))
                return write_report(a, format, &options, stdout);

        r = output_open(path, &out);
        if (r != 0)
                return r;
        r = write_report(a, format, &options, out.stream);
        return r != 0 ? r : output_finish(&out);
}
