/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/cause.h"

#include "report/storm.h"

/*
 * The order matters to the functions only: a row may ask what the rows above
 * found. The last ones are those that would be true of many other causes, too.
 */
const struct cause causes[] = {
        { "inotify-watch-storm", "inotify watch storm", cause_inotify_find, CAUSE_PERCENT, CAUSE_USEC,
          false },
        { "fork-storm", "fork storm", cause_fork_find, CAUSE_PERCENT, CAUSE_USEC, false },
        { "sync-storm", "sync storm", cause_sync_find, CAUSE_PERCENT, CAUSE_USEC, false },
        { "fd-close-storm", "fd close storm", cause_close_find, CAUSE_PERCENT, CAUSE_USEC, false },
        { "missing-file-storm", "missing-file storm", cause_missing_find, CAUSE_PERCENT, CAUSE_USEC, false },
        { "file-walk", "file walk", cause_walk_find, CAUSE_PERCENT, CAUSE_USEC, false },
        { "readiness-missing", "readiness missing", cause_readiness_find, CAUSE_PERCENT, CAUSE_USEC, true },
        { "inotify-limit", "inotify limit", cause_inotify_limit_find, CAUSE_PERCENT, 0, true },
        { "pidfile-missing", "PID file missing", cause_pidfile_find, CAUSE_PERCENT, CAUSE_USEC, true },
        { "start-post-wait", "ExecStartPost", cause_start_post_find, CAUSE_PERCENT, CAUSE_USEC, false },
        { "sleep", "sleep", cause_sleep_find, CAUSE_PERCENT, CAUSE_USEC, false },
        { "lock-wait", "lock wait", cause_lock_find, CAUSE_PERCENT, CAUSE_USEC, false },
        { "dns-wait", "DNS", cause_dns_find, CAUSE_PERCENT, CAUSE_USEC, false },
        { "name-service-wait", "name service", cause_names_find, CAUSE_PERCENT, CAUSE_USEC, false },
        { "dbus-wait", "D-Bus", cause_dbus_find, CAUSE_PERCENT, CAUSE_USEC, false },
        { "entropy-wait", "entropy", cause_entropy_find, CAUSE_PERCENT, CAUSE_USEC, false },
        { "connect-wait", "connect", cause_connect_find, CAUSE_PERCENT, CAUSE_USEC, false },
        { "socket-wait", "socket", cause_socket_find, CAUSE_PERCENT, CAUSE_USEC, false },
        { "pipe-wait", "FIFO", cause_fifo_find, CAUSE_PERCENT, CAUSE_USEC, false },
        { "cpu-throttled", "throttled", cause_cpu_throttled_find, CAUSE_PERCENT, CAUSE_USEC, false },
        { "memory-throttled", "short of memory", cause_memory_throttled_find, CAUSE_PERCENT, CAUSE_USEC,
          false },
        { "dependency-wait", "waiting for other units", cause_dependency_find, CAUSE_PERCENT, CAUSE_USEC,
          false },
        { "before-exec", "before exec", cause_before_exec_find, CAUSE_PERCENT, CAUSE_USEC, false },
        { "cpu-bound", "CPU-bound", cause_cpu_find, 70, 500000, false },
        { "call-storm", "call storm", cause_call_find, CAUSE_PERCENT, CAUSE_USEC, false },
};

const size_t n_causes = ARRAY_SIZE(causes);

bool cause_found(const struct analysis *a, const char *id, uint32_t program) {
        for (size_t i = 0; i < a->n_findings; i++)
                if (streq(a->findings[i].cause, id) &&
                    (program == REC_NONE ||
                     process_program(a->recording, a->findings[i].process) == program))
                        return true;
        return false;
}

static bool reaches(const struct analysis *a, const struct finding *f, uint32_t percent, uint64_t usec) {
        return f->duration_ns >= usec * NSEC_PER_USEC &&
               (unsigned __int128) f->duration_ns * 100 >= (unsigned __int128) a->duration_ns * percent;
}

static int look_for(struct analysis *a, const struct cause *cause) {
        struct finding f = { .process = REC_NONE, .stack = REC_NONE };
        int r = cause->find(a, &f);

        f.cause = cause->id;
        f.title = cause->title;
        if (r > 0 && f.error < 0)
                r = f.error;
        if (r <= 0 || !reaches(a, &f, FINDING_PERCENT, MIN((uint64_t) FINDING_USEC, cause->verdict_usec))) {
                finding_done(&f);
                return r < 0 ? r : 0;
        }
        f.can_be_verdict = reaches(a, &f, cause->verdict_percent, cause->verdict_usec);
        a->findings[a->n_findings++] = f;
        return 0;
}

static const struct cause *row_of(const struct finding *f) {
        for (size_t i = 0; i < n_causes; i++)
                if (streq(causes[i].id, f->cause))
                        return causes + i;
        return causes;
}

/* Verdicts before others, what decided the end before what took long, then by time. */
static int by_weight(const void *x, const void *y) {
        const struct finding *a = x, *b = y;
        bool a_end = row_of(a)->beats_time, b_end = row_of(b)->beats_time;

        if (a->can_be_verdict != b->can_be_verdict)
                return a->can_be_verdict ? -1 : 1;
        if (a_end != b_end)
                return a_end ? -1 : 1;
        if (a->duration_ns != b->duration_ns)
                return a->duration_ns > b->duration_ns ? -1 : 1;
        return row_of(a) < row_of(b) ? -1 : 1;
}

int causes_find(struct analysis *a) {
        _Static_assert(ARRAY_SIZE(causes) <= ANALYSIS_FINDINGS_MAX, "room for one finding of each cause");

        for (size_t i = 0; i < n_causes; i++) {
                int r = look_for(a, causes + i);

                if (r < 0)
                        return r;
        }
        qsort(a->findings, a->n_findings, sizeof(*a->findings), by_weight);
        a->has_verdict = a->n_findings > 0 && a->findings[0].can_be_verdict;
        return 0;
}
