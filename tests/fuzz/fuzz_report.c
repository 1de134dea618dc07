/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * A recording from a stranger, in every form of the report: whatever its rows say, the pieces of the critical
 * path add up.
 *
 * Corpus (corpus/report): the plain (not compressed) recordings of some replay cases,
 *   replay plain tests/replay/cases/NAME.rec tests/fuzz/corpus/report/NAME
 */

#include <stdint.h>
#include <stdlib.h>

#include "report/analysis.h"
#include "report/report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_sum(const struct recording *r) {
        struct analysis *a;
        uint64_t sum = 0;

        if (analysis_new(r, &a) < 0)
                return;
        for (size_t i = 0; i < a->breakdown.n_rows; i++)
                sum += a->breakdown.rows[i].duration_ns;
        if (sum != a->duration_ns)
                abort();
        analysis_free(a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        struct report_options options = {};
        struct recording *r = NULL;
        char *journal = NULL;
        FILE *out;

        if (recording_open(data, size, &r) < 0)
                return 0;
        out = fopen("/dev/null", "we");
        check_sum(r);
        for (int format = 0; out && format < REPORT_FORMAT_MAX; format++)
                (void) report_write(r, (enum report_format) format, &options, out);
        if (report_journal(r, &journal) == 0)
                free(journal);
        if (out)
                fclose(out);
        recording_free(r);
        return 0;
}
