/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Recordings from descriptions, for tests of what report/ says about them; see tests/replay/README.md. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>

#include "report/analysis.h"
#include "tests/replay/description.c"

struct described {
        struct recording *recording;
        struct analysis *analysis;
};

static void described_done(struct described *d) {
        analysis_free(d->analysis);
        recording_free(d->recording);
}

#define _described_ _cleanup_(described_done) struct described

/* The texts one behind the other, up to NULL. */
static struct described describe(const char *first, ...) {
        _cleanup_(buf_done) struct buf text = BUF_NULL;
        _cleanup_free_ void *data = NULL;
        struct described d = {};
        size_t bytes;
        va_list more;
        FILE *in;

        va_start(more, first);
        for (const char *t = first; t; t = va_arg(more, const char *))
                buf_puts(&text, t);
        va_end(more);
        in = fmemopen(text.data, text.size, "r");
        assert_non_null(in);
        assert_int_equal(description_read(in, "description", false, &data, &bytes), 0);
        fclose(in);
        assert_int_equal(recording_open(data, bytes, &d.recording), 0);
        assert_int_equal(analysis_new(d.recording, &d.analysis), 0);
        return d;
}

/* Time of all breakdown rows of one kind, in one call (NULL: any). */
static _unused_ uint64_t row_usec(const struct described *d, uint32_t kind, const char *call) {
        uint64_t sum = 0;

        for (size_t i = 0; i < d->analysis->breakdown.n_rows; i++) {
                const struct breakdown_row *row = d->analysis->breakdown.rows + i;
                const char *name = syscall_name(row->syscall);

                if (row->kind == kind && (!call || (name && streq(name, call))))
                        sum += row->duration_usec;
        }
        return sum;
}

static _unused_ const struct finding *finding_of(const struct described *d, const char *cause) {
        for (size_t i = 0; i < d->analysis->n_findings; i++)
                if (streq(d->analysis->findings[i].cause, cause))
                        return d->analysis->findings + i;
        return NULL;
}

static _unused_ uint64_t evidence_number(const struct finding *f, const char *name) {
        for (size_t i = 0; i < f->n_evidence; i++)
                if (streq(f->evidence[i].name, name))
                        return f->evidence[i].number;
        fail_msg("no evidence %s", name);
        return 0;
}

static _unused_ const char *evidence_text(const struct finding *f, const char *name) {
        for (size_t i = 0; i < f->n_evidence; i++)
                if (streq(f->evidence[i].name, name))
                        return f->evidence[i].text;
        fail_msg("no evidence %s", name);
        return "";
}

#define assert_cause(d, cause) assert_string_equal(analysis_cause((d).analysis), cause)
