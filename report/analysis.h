/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "common/buf.h"
#include "report/breakdown.h"
#include "report/critical_path.h"
#include "report/finding.h"
#include "report/language.h"
#include "report/peer.h"
#include "report/quality.h"
#include "report/syscalls.h"

/*
 * The whole answer to one recording, before anybody writes it down: every
 * writer goes through this and adds no judgement of its own.
 */

enum { ANALYSIS_FINDINGS_MAX = 32 }; /* each cause gives one at most */

struct analysis {
        const struct recording *recording; /* borrowed */
        uint64_t duration_ns, duration_usec; /* T1 - TQ */
        struct critical_path path;
        struct breakdown breakdown;
        struct quality quality;
        struct language_gap *gaps; /* owned */
        size_t n_gaps;
        struct peers peers;
        uint32_t *milestones; /* owned: indexes in the order of time */
        uint32_t classes[SYSCALL_NUMBERS]; /* syscall_classes() of every number */
        struct finding findings[ANALYSIS_FINDINGS_MAX]; /* the verdict first, then by time */
        size_t n_findings;
        bool has_verdict; /* findings[0] is one */
        char *consists_of; /* owned: without a verdict, what the time went into, as a line */
};

/* r is borrowed until analysis_free(). 0, -ENOMEM (*ret untouched). */
int analysis_new(const struct recording *r, struct analysis **ret);
struct analysis *analysis_free(struct analysis *a); /* NULL is fine; returns NULL */
DEFINE_CLEANUP(struct analysis *, analysis_free);

/* The verdict, or NULL. */
const struct finding *analysis_verdict(const struct analysis *a);
/* Its id, "none" without one; its line, or what the time consists of. */
const char *analysis_cause(const struct analysis *a);
const char *analysis_summary(const struct analysis *a);

/* What keeps a module's functions from having names, NULL. */
const struct language_gap *analysis_gap(const struct analysis *a, uint32_t module);
/* Part of the whole start, 0 … 1. */
double analysis_share(const struct analysis *a, uint64_t duration_ns);
/* Since TQ; what happened before T0 counts as at T0. */
uint64_t analysis_at_usec(const struct analysis *a, uint64_t time_ns);
/* Bits of enum syscall_class. */
uint32_t analysis_classes(const struct analysis *a, uint32_t syscall);

/* "myservice.service started in 9.2s", by the result; raw. */
void analysis_headline(const struct analysis *a, struct buf *b);
/* "on CPU in openat", "waiting in read (disk)", "before exec": what a row is, for people. */
void analysis_row_text(struct buf *b, const struct breakdown_row *row);
