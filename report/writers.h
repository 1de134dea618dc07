/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "report/analysis.h"
#include "report/report.h"

/* One function per form; all write the same analysis. 0 or -ENOMEM: whether `out` took it, report_write() asks. */

int report_write_text(const struct analysis *a, const struct report_options *options, FILE *out);
int report_write_json(const struct analysis *a, const struct report_options *options, bool pretty,
                      FILE *out);
int report_write_folded(const struct analysis *a, const struct report_options *options, FILE *out);
int report_write_speedscope(const struct analysis *a, const struct report_options *options, FILE *out);
int report_write_pprof(const struct analysis *a, const struct report_options *options, FILE *out);
int report_write_firefox(const struct analysis *a, const struct report_options *options, FILE *out);
int report_write_trace(const struct analysis *a, const struct report_options *options, FILE *out);
int report_write_perf(const struct analysis *a, const struct report_options *options, FILE *out);
int report_write_svg(const struct analysis *a, const struct report_options *options, FILE *out);
