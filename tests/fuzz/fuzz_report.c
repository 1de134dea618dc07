/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * A recording from a stranger, in every form of the report: whatever its rows say, the pieces of the critical
 * path add up, and whatever its texts are, each form keeps to its grammar.
 *
 * Corpus (corpus/report): the plain (not compressed) recordings of some replay cases,
 *   replay plain tests/replay/cases/NAME.rec tests/fuzz/corpus/report/NAME
 */

#include <stdint.h>
#include <stdlib.h>

#include "report/analysis.h"
#include "report/page.h"
#include "report/report.h"
#include "tests/report_forms.h"

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

static void check_forms(const struct recording *r) {
        for (int format = 0; format < REPORT_FORMAT_MAX; format++)
                for (int view = 0; view < REPORT_VIEW_MAX; view++) {
                        struct report_options options = { .view = (enum report_view) view };
                        char *text = forms_write(r, (enum report_format) format, &options);
                        const char *wrong =
                                text ? forms_check((enum report_format) format, text, PAGE_COLUMNS_DEFAULT)
                                     : NULL;

                        if (wrong) {
                                fprintf(stderr, "form %d: %s in\n%s\n", format, wrong, text);
                                abort();
                        }
                        free(text);
                }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        struct recording *r = NULL;
        char *journal = NULL;

        if (recording_open(data, size, &r) < 0)
                return 0;
        check_sum(r);
        check_forms(r);
        if (report_journal(r, &journal) == 0)
                free(journal);
        recording_free(r);
        return 0;
}
