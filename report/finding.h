/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/macro.h"

/*
 * One reason why a start took its time: a cause from the vocabulary
 * (startprof-causes(7)), what it cost, numbers as evidence, and what to
 * change. Texts are raw: they may quote names of strangers.
 */

enum {
        FINDING_EVIDENCE_MAX = 16,
        FINDING_ADVICE_MAX = 3,
        FINDING_DETAIL_MAX = 4,
};

struct evidence {
        const char *name; /* static: a key of the JSON, with its unit: "longest_usec" */
        char *text; /* owned; NULL: it is the number */
        uint64_t number;
};

struct advice {
        char *text; /* owned: a sentence */
        char *dropin; /* owned: lines for `systemctl edit`; NULL: there is none */
};

struct finding {
        const char *cause; /* static: id of the vocabulary */
        const char *title; /* static: the same in words: "inotify watch storm" */
        char *summary; /* owned; one line, begins with the title */
        uint64_t duration_ns; /* of the critical path */
        uint32_t stack; /* that did it: an index, or REC_NONE */
        uint32_t process; /* index, or REC_NONE */
        bool can_be_verdict;
        struct evidence evidence[FINDING_EVIDENCE_MAX];
        size_t n_evidence;
        struct advice advice[FINDING_ADVICE_MAX];
        size_t n_advice;
        char *detail[FINDING_DETAIL_MAX]; /* owned: sentences for people */
        size_t n_detail;
        int error; /* no memory: sticks, and the finding is of no use */
};

void finding_done(struct finding *f);

void finding_summary(struct finding *f, const char *format, ...) _printf_(2, 3);
void finding_number(struct finding *f, const char *name, uint64_t number);
void finding_text(struct finding *f, const char *name, const char *text);
void finding_detail(struct finding *f, const char *format, ...) _printf_(2, 3);
/* dropin: NULL when there is none. */
void finding_advice(struct finding *f, const char *dropin, const char *format, ...) _printf_(3, 4);
