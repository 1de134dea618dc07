/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/symbol_advice.h"

/* The server of elfutils asks those of the distributions. */
#define SERVERS "https://debuginfod.elfutils.org/"

void symbol_advice(struct buf *b, const struct recording *r, uint32_t reason) {
        const char *unit = recording_text(r, r->start->unit);

        switch (reason) {
        case REC_REASON_STRIPPED:
                buf_printf(b,
                           "Install its debug symbols, name their folder with --debug-dir=, or fetch them: "
                           "DEBUGINFOD_URLS=" SERVERS " startprof info %s",
                           unit);
                break;
        case REC_REASON_MISMATCH:
                buf_printf(b,
                           "Its files are of another build by now: profile what is there: "
                           "startprof --restart %s",
                           unit);
                break;
        default: break;
        }
}
