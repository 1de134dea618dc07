/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/report.h"

#include "report/writers.h"

static const struct {
        const char *name;
        const char *suffix; /* of a file name */
        enum report_format format;
} formats[] = {
        { "folded", ".folded", REPORT_FOLDED },
        { "svg", ".svg", REPORT_SVG },
        { "speedscope", ".speedscope.json", REPORT_SPEEDSCOPE },
        { "firefox", ".firefox.json", REPORT_FIREFOX },
        { "trace", ".trace.json", REPORT_TRACE },
        { "pprof", ".pb.gz", REPORT_PPROF },
        { "perf", ".perf", REPORT_PERF },
        { "json", ".json", REPORT_JSON },
        { "text", ".txt", REPORT_TEXT },
};

int report_format_from_name(const char *name, enum report_format *ret) {
        for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
                if (streq(name, formats[i].name)) {
                        *ret = formats[i].format;
                        return 0;
                }
        return -EINVAL;
}

int report_format_from_file(const char *file, enum report_format *ret) {
        for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
                if (endswith(file, formats[i].suffix)) {
                        *ret = formats[i].format;
                        return 0;
                }
        return -EINVAL;
}

int report_view_from_name(const char *name, enum report_view *ret) {
        static const char *const names[REPORT_VIEW_MAX] = { "cpu", "waits", "wall" };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (streq(name, names[i])) {
                        *ret = (enum report_view) i;
                        return 0;
                }
        return -EINVAL;
}

const char *report_format_list(void) {
        return "folded, svg, speedscope, firefox, trace, pprof, perf, json, text";
}

int report_write(const struct recording *r, enum report_format format, const struct report_options *options,
                 FILE *out) {
        _cleanup_(analysis_freep) struct analysis *a = NULL;
        int error = analysis_new(r, &a);

        if (error < 0)
                return error;
        switch (format) {
        case REPORT_TEXT: error = report_write_text(a, options, out); break;
        case REPORT_JSON: error = report_write_json(a, options, false, out); break;
        case REPORT_JSON_PRETTY: error = report_write_json(a, options, true, out); break;
        case REPORT_FOLDED: error = report_write_folded(a, options, out); break;
        case REPORT_SVG: error = report_write_svg(a, options, out); break;
        case REPORT_SPEEDSCOPE: error = report_write_speedscope(a, options, out); break;
        case REPORT_PPROF: error = report_write_pprof(a, options, out); break;
        case REPORT_FIREFOX: error = report_write_firefox(a, options, out); break;
        case REPORT_TRACE: error = report_write_trace(a, options, out); break;
        case REPORT_PERF: error = report_write_perf(a, options, out); break;
        case REPORT_FORMAT_MAX: return -EINVAL;
        }
        if (error < 0)
                return error;
        return fflush(out) == EOF || ferror(out) ? -EIO : 0;
}
