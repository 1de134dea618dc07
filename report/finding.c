/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/finding.h"

#include <assert.h>
#include <stdarg.h>

static char *format_text(struct finding *f, const char *format, va_list arguments) {
        char *text;

        if (vasprintf(&text, format, arguments) < 0) {
                f->error = -ENOMEM;
                return NULL;
        }
        return text;
}

static char *copy_text(struct finding *f, const char *text) {
        char *copy = strdup(text);

        if (!copy)
                f->error = -ENOMEM;
        return copy;
}

void finding_summary(struct finding *f, const char *format, ...) {
        va_list arguments;

        va_start(arguments, format);
        free(f->summary);
        f->summary = format_text(f, format, arguments);
        va_end(arguments);
}

void finding_number(struct finding *f, const char *name, uint64_t number) {
        assert(f->n_evidence < FINDING_EVIDENCE_MAX);
        f->evidence[f->n_evidence++] = (struct evidence){ .name = name, .number = number };
}

void finding_text(struct finding *f, const char *name, const char *text) {
        assert(f->n_evidence < FINDING_EVIDENCE_MAX);
        f->evidence[f->n_evidence++] = (struct evidence){ .name = name, .text = copy_text(f, text) };
}

void finding_detail(struct finding *f, const char *format, ...) {
        va_list arguments;

        assert(f->n_detail < FINDING_DETAIL_MAX);
        va_start(arguments, format);
        f->detail[f->n_detail] = format_text(f, format, arguments);
        f->n_detail += f->detail[f->n_detail] != NULL;
        va_end(arguments);
}

void finding_advice(struct finding *f, const char *dropin, const char *format, ...) {
        struct advice *a = f->advice + f->n_advice;
        va_list arguments;

        assert(f->n_advice < FINDING_ADVICE_MAX);
        va_start(arguments, format);
        a->text = format_text(f, format, arguments);
        va_end(arguments);
        a->dropin = dropin ? copy_text(f, dropin) : NULL;
        f->n_advice++;
}

void finding_done(struct finding *f) {
        free(f->summary);
        for (size_t i = 0; i < f->n_evidence; i++)
                free(f->evidence[i].text);
        for (size_t i = 0; i < f->n_advice; i++) {
                free(f->advice[i].text);
                free(f->advice[i].dropin);
        }
        for (size_t i = 0; i < f->n_detail; i++)
                free(f->detail[i]);
        *f = (struct finding){};
}
