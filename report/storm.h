/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "report/analysis.h"

/*
 * Many calls of one kind by one program: how many, between when and when, and
 * how much of the critical path they explain. Counting is exact; time is what
 * the pieces of the path say about these calls, and of the user code around
 * them as much as a loop of such calls can plausibly need.
 */

enum {
        STORM_ANY_RESULT = -1,
        STORM_SUCCESS = 0, /* else an errno */
        STORM_USER_PER_KERNEL = 4, /* user time that a call's own time explains: directory watchers and path
                                           searches spend one to three times as much around their calls */
};

struct storm {
        uint32_t program; /* index */
        uint32_t process; /* of that program, with most time on the path; or REC_NONE */
        uint64_t count; /* calls of the kind with the wanted result */
        uint64_t all; /* of the kind, whatever the result */
        uint64_t first_ns, last_ns; /* 0: unknown */
};

/* The program with the most such calls; count 0 when there are none. */
struct storm storm_find(const struct analysis *a, uint32_t classes, int result);
/* Calls of other classes by the same program. */
uint64_t storm_calls(const struct analysis *a, uint32_t program, uint32_t classes, int result);
/* Time on the critical path that the storm explains when it consists of calls of these classes, and part/whole
 * of them are meant. */
uint64_t storm_time(const struct analysis *a, const struct storm *s, uint32_t classes, uint64_t part,
                    uint64_t whole);

/* Pieces of one kind (bits 1 << PIECE_…), in calls of these classes (0: any), of one program (REC_NONE: any). */
uint64_t pieces_time(const struct analysis *a, uint32_t kinds, uint32_t classes, uint32_t program);
uint32_t process_program(const struct recording *r, uint32_t process);

/* The stack that most CPU samples of these calls have; failing that, that most waits have. REC_NONE: there is
 * none. program REC_NONE: any; classes 0: any user sample, too. */
uint32_t hottest_stack(const struct analysis *a, uint32_t program, uint32_t classes);
uint32_t hottest_stack_of_call(const struct analysis *a, uint32_t program, uint32_t syscall);
/* Who makes the call: the short name of the innermost frame that is no wrapper of it. False: no name. */
bool stack_function(const struct recording *r, uint32_t stack, struct buf *b);

/* "12,345 watches under / in 5.1s (82% of the start)": the middle of every summary. */
void put_time_and_share(struct buf *b, const struct analysis *a, uint64_t duration_ns);
