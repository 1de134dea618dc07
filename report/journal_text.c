/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <jansson.h>

#include "common/text.h"
#include "report/analysis.h"
#include "report/report.h"

/* The sentence for the journal. It is written by the daemon, which trusts neither the worker nor the names in
 * it: so it is one line without control characters already here. */

static void escape(struct buf *b, const char *text) {
        text_escape_terminal(b, text);
}

static int encode(const struct analysis *a, const char *summary, const char *message, char **ret) {
        const struct rec_start *s = a->recording->start;
        const struct finding *f = analysis_verdict(a);
        _cleanup_(buf_done) struct buf unit = BUF_NULL;
        json_t *o;

        escape(&unit, recording_text(a->recording, s->unit));
        o = json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:f}", "unit", buf_text(&unit), "result",
                      recording_result_str(s->result), "cause", analysis_cause(a), "summary", summary,
                      "message", message, "duration_usec",
                      (json_int_t) MIN(a->duration_usec, (uint64_t) INT64_MAX), "share",
                      f ? analysis_share(a, f->duration_ns) : 0.0);
        if (!o)
                return -ENOMEM;
        *ret = json_dumps(o, JSON_COMPACT | JSON_REAL_PRECISION(6));
        json_decref(o);
        return *ret ? 0 : -ENOMEM;
}

int report_journal(const struct recording *r, char **ret) {
        _cleanup_(analysis_freep) struct analysis *a = NULL;
        _cleanup_(buf_done) struct buf headline = BUF_NULL, summary = BUF_NULL, message = BUF_NULL;
        int error = analysis_new(r, &a);

        if (error < 0)
                return error;
        analysis_headline(a, &headline);
        escape(&summary, analysis_summary(a));
        escape(&message, buf_text(&headline));
        buf_printf(&message, ": %s", buf_text(&summary));
        if (buf_error(&headline) < 0 || buf_error(&summary) < 0 || buf_error(&message) < 0)
                return -ENOMEM;
        return encode(a, buf_text(&summary), buf_text(&message), ret);
}
