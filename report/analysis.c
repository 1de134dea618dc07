/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/analysis.h"

#include <signal.h>
#include <sys/wait.h>

#include "common/text.h"
#include "report/cause.h"
#include "report/names.h"

enum {
        ROWS_IN_SUMMARY = 3,
        ROWS_LOOKED_AT = 16,
};

const struct language_gap *analysis_gap(const struct analysis *a, uint32_t module) {
        for (size_t i = 0; i < a->n_gaps; i++)
                if (a->gaps[i].module == module)
                        return a->gaps + i;
        return NULL;
}

double analysis_share(const struct analysis *a, uint64_t duration_ns) {
        return a->duration_ns > 0 ? (double) duration_ns / (double) a->duration_ns : 0;
}

uint64_t analysis_at_usec(const struct analysis *a, uint64_t time_ns) {
        uint64_t origin = a->path.origin_ns, end = a->path.end_ns;

        if (time_ns <= origin)
                return 0;
        return (MIN(MAX(time_ns, origin + a->path.queue_ns), end) - origin) / NSEC_PER_USEC;
}

uint32_t analysis_classes(const struct analysis *a, uint32_t syscall) {
        return syscall < SYSCALL_NUMBERS ? a->classes[syscall] : 0;
}

void analysis_row_text(struct buf *b, const struct breakdown_row *row) {
        static const char *const words[PIECE_KIND_MAX] = {
                [PIECE_QUEUE] = "in systemd's job queue",
                [PIECE_BEFORE_EXEC] = "before exec, in systemd",
                [PIECE_CPU_USER] = "on CPU in user code",
                [PIECE_CPU_KERNEL] = "on CPU in ",
                [PIECE_WAIT] = "waiting in ",
                [PIECE_FAULT] = "waiting for a page",
                [PIECE_RUNNABLE] = "ready, waiting for a CPU",
                [PIECE_THROTTLED] = "throttled by its CPU quota",
                [PIECE_SYSTEMD] = "in systemd",
                [PIECE_NOT_OBSERVED] = "not observed",
        };

        if (row->kind == PIECE_CPU_KERNEL && row->syscall == REC_CALL_NONE) {
                buf_puts(b, "on CPU in the kernel");
                return;
        }
        if (row->kind == PIECE_WAIT && row->syscall == REC_CALL_NONE) {
                buf_puts(b, row->io ? "waiting for the disk" : "waiting, call unknown");
                return;
        }
        buf_puts(b, row->kind < PIECE_KIND_MAX ? words[row->kind] : "");
        if (row->kind == PIECE_CPU_KERNEL || row->kind == PIECE_WAIT)
                breakdown_detail(b, row);
}

/* What rows of all processes together say the same as this one; 0: an earlier row has said it. */
static uint64_t time_of_all(const struct analysis *a, size_t row) {
        const struct breakdown_row *rows = a->breakdown.rows;
        uint64_t sum = 0;

        for (size_t i = 0; i < a->breakdown.n_rows; i++) {
                if (rows[i].kind != rows[row].kind || rows[i].syscall != rows[row].syscall ||
                    rows[i].io != rows[row].io)
                        continue;
                if (i < row)
                        return 0;
                sum += rows[i].duration_ns;
        }
        return sum;
}

/* "no single cause: 45% on CPU in user code, 30% waiting in poll, …" */
static int consist_of(struct analysis *a) {
        _cleanup_(buf_done) struct buf b = BUF_NULL;
        unsigned told = 0;

        buf_puts(&b, "no single cause");
        for (size_t i = 0; i < MIN(a->breakdown.n_rows, (size_t) ROWS_LOOKED_AT) && told < ROWS_IN_SUMMARY;
             i++) {
                double percent = analysis_share(a, time_of_all(a, i)) * 100;

                if (percent < 1)
                        continue;
                buf_printf(&b, "%s%.0f%% ", told == 0 ? ": " : ", ", percent);
                analysis_row_text(&b, a->breakdown.rows + i);
                told++;
        }
        return buf_take(&b, &a->consists_of, NULL);
}

/* What happened before T0 counts as at T0; equal times have the order of the kinds, which is that of a start. */
static int by_time(const void *x, const void *y, void *userdata) {
        const struct analysis *a = userdata;
        const struct rec_milestone *milestones = a->recording->milestones;
        uint32_t i = *(const uint32_t *) x, k = *(const uint32_t *) y;
        uint64_t first = analysis_at_usec(a, milestones[i].time_ns),
                 second = analysis_at_usec(a, milestones[k].time_ns);

        if (first != second)
                return first < second ? -1 : 1;
        if (milestones[i].kind != milestones[k].kind)
                return milestones[i].kind < milestones[k].kind ? -1 : 1;
        return i < k ? -1 : i > k;
}

/* They come from two sides, the kernel and systemd. */
static int sort_milestones(struct analysis *a, const struct recording *r) {
        a->milestones = calloc((size_t) r->n_milestones + 1, sizeof(*a->milestones));
        if (!a->milestones)
                return -ENOMEM;
        for (uint32_t i = 0; i < r->n_milestones; i++)
                a->milestones[i] = i;
        qsort_r(a->milestones, r->n_milestones, sizeof(*a->milestones), by_time, a);
        return 0;
}

static int analyse(struct analysis *a, const struct recording *r) {
        int error;

        a->recording = r;
        for (uint32_t i = 0; i < SYSCALL_NUMBERS; i++)
                a->classes[i] = syscall_classes(i);
        error = critical_path_init(r, &a->path);
        if (error < 0)
                return error;
        error = sort_milestones(a, r);
        if (error < 0)
                return error;
        a->duration_ns = a->path.end_ns - a->path.origin_ns;
        a->duration_usec = a->duration_ns / NSEC_PER_USEC;
        error = breakdown_init(r, &a->path, &a->breakdown);
        if (error < 0)
                return error;
        error = quality_init(r, &a->quality);
        if (error < 0)
                return error;
        error = language_gaps(r, &a->gaps, &a->n_gaps);
        if (error < 0)
                return error;
        error = peers_init(r, &a->peers);
        if (error < 0)
                return error;
        error = causes_find(a);
        if (error < 0)
                return error;
        return consist_of(a);
}

int analysis_new(const struct recording *r, struct analysis **ret) {
        _cleanup_(analysis_freep) struct analysis *a = calloc(1, sizeof(*a));
        int error;

        if (!a)
                return -ENOMEM;
        error = analyse(a, r);
        if (error < 0)
                return error;
        *ret = TAKE_PTR(a);
        return 0;
}

struct analysis *analysis_free(struct analysis *a) {
        if (!a)
                return NULL;
        for (size_t i = 0; i < a->n_findings; i++)
                finding_done(a->findings + i);
        critical_path_done(&a->path);
        breakdown_done(&a->breakdown);
        quality_done(&a->quality);
        free(a->gaps);
        peers_done(&a->peers);
        free(a->milestones);
        free(a->consists_of);
        free(a);
        return NULL;
}

const struct finding *analysis_verdict(const struct analysis *a) {
        return a->has_verdict ? a->findings : NULL;
}

const char *analysis_cause(const struct analysis *a) {
        return a->has_verdict ? a->findings[0].cause : "none";
}

const char *analysis_summary(const struct analysis *a) {
        return a->has_verdict ? a->findings[0].summary : a->consists_of;
}

/* What a failed start ended with: the last of systemd's processes that did not end well. " (sh, ExecStart=,
 * exited with status 3)". */
static void put_exit(const struct recording *r, struct buf *b) {
        uint32_t last = REC_NONE;

        for (uint32_t i = 0; i < r->n_processes; i++)
                if (r->processes[i].exit_code != 0 && r->processes[i].slot > REC_SLOT_EXECUTOR &&
                    (last == REC_NONE || r->processes[i].end_ns > r->processes[last].end_ns))
                        last = i;
        if (last == REC_NONE)
                return;
        buf_printf(b, " (%s, %s=, ", process_name(r, last), recording_slot_str(r->processes[last].slot));
        if (WIFSIGNALED((int) r->processes[last].exit_code)) {
                const char *name = sigabbrev_np(WTERMSIG((int) r->processes[last].exit_code));

                buf_printf(b, "killed by SIG%s)", name ? name : "?");
        } else
                buf_printf(b, "exited with status %d)", WEXITSTATUS((int) r->processes[last].exit_code));
}

void analysis_headline(const struct analysis *a, struct buf *b) {
        const struct rec_start *s = a->recording->start;
        const char *words;

        switch (s->result) {
        case REC_RESULT_ACTIVE: words = "took %s to start"; break;
        case REC_RESULT_RUNNING:
                words = s->end == REC_END_LISTEN ? "was listening after %s"
                        : s->end == REC_END_IDLE ? "was at rest after %s"
                                                 : "was running after %s";
                break;
        case REC_RESULT_FAILED: words = "failed to start after %s"; break;
        case REC_RESULT_TIMEOUT: words = "timed out after %s"; break;
        case REC_RESULT_EXITED: words = "finished in %s"; break;
        case REC_RESULT_SKIPPED: words = "was skipped after %s: a condition was not met"; break;
        case REC_RESULT_DEPENDENCY: words = "was not started: a dependency failed after %s"; break;
        case REC_RESULT_CANCELED: words = "was not started: its job was canceled after %s"; break;
        default: words = "was still starting after %s, when profiling ended"; break;
        }
        buf_puts(b, recording_text(a->recording, s->unit));
        buf_putc(b, ' ');
        for (; *words; words++)
                if (startswith(words, "%s")) {
                        text_span(b, a->duration_usec);
                        words++;
                } else
                        buf_putc(b, *words);
        if (s->result == REC_RESULT_FAILED)
                put_exit(a->recording, b);
}
