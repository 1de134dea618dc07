/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/cause.h"

#include "common/text.h"
#include "report/names.h"
#include "report/page.h"
#include "report/storm.h"

/*
 * Causes in which nothing is being done:
 *
 *   readiness-missing   the service is up and idle, and never said so (FC-04)
 *   pidfile-missing     the daemon is there, and its PID file is not (FC-13)
 *   sleep               a program sleeps for a time it was told (FC-22)
 */

enum { IDLE_PERCENT = 50 }; /* of the start spent idle: below, it was busy until late */

static bool said_ready(const struct recording *r) {
        for (uint32_t i = 0; i < r->n_milestones; i++)
                if (r->milestones[i].kind == REC_MILESTONE_READY_SENT)
                        return true;
        for (uint32_t i = 0; i < r->n_paths; i++)
                if (r->paths[i].kind == REC_PATH_NOTIFY)
                        return true;
        return false;
}

/* Polling with an answer outstanding is not idleness. */
static bool asked_a_name_server(const struct recording *r) {
        for (uint32_t i = 0; i < r->n_paths; i++)
                if (r->paths[i].kind == REC_PATH_CONNECT &&
                    endswith(recording_text(r, r->paths[i].path), ":53"))
                        return true;
        return false;
}

static uint64_t idle_time(const struct analysis *a, uint32_t *ret_process, uint32_t *ret_syscall) {
        const struct recording *r = a->recording;
        uint64_t sum = 0, most = 0;

        for (size_t i = 0; i < a->breakdown.n_rows; i++) {
                const struct breakdown_row *row = a->breakdown.rows + i;

                if (row->kind != PIECE_WAIT || row->process >= r->n_processes ||
                    r->processes[row->process].slot != REC_SLOT_START)
                        continue;
                if (row->syscall != REC_CALL_NONE && !(analysis_classes(a, row->syscall) & CALL_IDLE))
                        continue;
                sum += row->duration_ns;
                if (row->duration_ns > most) {
                        most = row->duration_ns;
                        *ret_process = row->process;
                        *ret_syscall = row->syscall;
                }
        }
        return sum;
}

/* When the unit was last seen at work. */
static uint64_t last_activity(const struct recording *r) {
        uint64_t last = 0;

        for (uint32_t i = 0; i < r->n_samples; i++)
                if (r->samples[i].kind == REC_SAMPLE_CPU_USER || r->samples[i].kind == REC_SAMPLE_CPU_KERNEL)
                        last = MAX(last, r->samples[i].time_ns);
        return last;
}

/* Not a service that still works, or waits for something in particular, when systemd gives up: half of the
 * time it must be in a call that a finished daemon waits in. READY=1 from the wrong process is another cause. */
int cause_readiness_find(const struct analysis *a, struct finding *f) {
        const struct recording *r = a->recording;
        const char *type = recording_text(r, r->start->type);
        _cleanup_(buf_done) struct buf b = BUF_NULL;
        uint32_t syscall = REC_CALL_NONE;

        if (r->start->result != REC_RESULT_TIMEOUT && r->start->result != REC_RESULT_INTERRUPTED)
                return 0;
        if (!startswith(type, "notify") || said_ready(r) || asked_a_name_server(r))
                return 0;
        f->duration_ns = idle_time(a, &f->process, &syscall);
        if (f->process == REC_NONE || f->duration_ns < a->duration_ns / 100 * IDLE_PERCENT)
                return 0;
        f->stack = hottest_stack(a, process_program(r, f->process), 0);

        buf_printf(&b, "%s was idle", process_name(r, f->process));
        if (syscall != REC_CALL_NONE) {
                buf_puts(&b, " in ");
                syscall_text(&b, syscall);
        }
        buf_puts(&b, " for ");
        put_time_and_share(&b, a, f->duration_ns);
        buf_printf(&b, " and never sent READY=1 (Type=%s)", type);
        finding_summary(f, "readiness missing: %s", buf_text(&b));
        finding_text(f, "process", process_name(r, f->process));
        finding_number(f, "pid", r->processes[f->process].pid);
        finding_number(f, "idle_usec", f->duration_ns / NSEC_PER_USEC);
        finding_number(f, "last_activity_usec", analysis_at_usec(a, last_activity(r)));
        finding_detail(f, "The service is probably up: systemd only waits to be told.");
        finding_advice(f, "[Service]\nType=exec\n",
                       "Do not wait for a message that this program does not send.");
        finding_advice(f, NULL,
                       "Or make the program call sd_notify(\"READY=1\") when it is up, on every path.");
        return buf_error(&b) < 0 ? -ENOMEM : 1;
}

/* systemd has one thing left to wait for when the process that it started has ended well: the PID file. Not a
 * parent that still runs, nor one that failed. */
int cause_pidfile_find(const struct analysis *a, struct finding *f) {
        const struct recording *r = a->recording;
        const char *file = recording_property(r, "PIDFile");
        _cleanup_(buf_done) struct buf b = BUF_NULL;
        const struct rec_process *parent = NULL;

        if (r->start->result != REC_RESULT_TIMEOUT || !streq(recording_text(r, r->start->type), "forking") ||
            !file || !*file)
                return 0;
        for (uint32_t i = 0; i < r->n_processes; i++)
                if (r->processes[i].slot == REC_SLOT_START &&
                    (!parent || r->processes[i].begin_ns < parent->begin_ns))
                        parent = r->processes + i;
        if (!parent || parent->end_ns == 0 || parent->exit_code != 0 || parent->end_ns >= a->path.end_ns)
                return 0;
        f->process = (uint32_t) (parent - r->processes);
        f->duration_ns = a->path.end_ns - MAX(parent->end_ns, a->path.origin_ns);
        buf_puts(&b, process_name(r, f->process));
        buf_puts(&b, " left its daemon behind at ");
        text_span(&b, analysis_at_usec(a, parent->end_ns));
        buf_printf(&b, ", but systemd waited for PIDFile=%s for ", file);
        put_time_and_share(&b, a, f->duration_ns);
        finding_summary(f, "PID file missing: %s", buf_text(&b));
        finding_text(f, "pid_file", file);
        finding_number(f, "daemonised_usec", analysis_at_usec(a, parent->end_ns));
        finding_advice(
                f, NULL,
                "Let PIDFile= be the path that the daemon writes, in a directory that it may write to "
                "(RuntimeDirectory=).");
        finding_advice(f, NULL, "Or run the daemon in the foreground with Type=exec and without PIDFile=.");
        return buf_error(&b) < 0 ? -ENOMEM : 1;
}

/* Sleeps on the path: their time, the process that slept longest, how many did. */
static void find_sleepers(const struct analysis *a, struct finding *f, uint32_t *ret_sleepers) {
        const struct recording *r = a->recording;
        uint64_t most = 0;

        *ret_sleepers = 0;
        for (size_t i = 0; i < a->breakdown.n_rows; i++) {
                const struct breakdown_row *row = a->breakdown.rows + i;

                if (row->kind != PIECE_WAIT || !(analysis_classes(a, row->syscall) & CALL_SLEEP) ||
                    row->process >= r->n_processes || r->processes[row->process].slot == REC_SLOT_START_POST)
                        continue;
                f->duration_ns += row->duration_ns;
                *ret_sleepers += row->n_processes;
                if (row->duration_ns > most) {
                        most = row->duration_ns;
                        f->process = row->process;
                }
        }
}

/* Only sleeps that somebody asked for: an ExecStartPost= is start-post-wait, an idle daemon readiness-missing. */
int cause_sleep_find(const struct analysis *a, struct finding *f) {
        enum { COMMAND_COLUMNS = 48 };
        const struct recording *r = a->recording;
        _cleanup_(buf_done) struct buf b = BUF_NULL;
        uint64_t longest = 0, count = 0;
        const char *arguments;
        uint32_t sleepers;

        if (cause_found(a, "readiness-missing", REC_NONE) || cause_found(a, "pidfile-missing", REC_NONE))
                return 0;
        find_sleepers(a, f, &sleepers);
        if (f->process >= r->n_processes)
                return 0;
        for (uint32_t i = 0; i < r->n_waits; i++)
                if (process_program(r, r->waits[i].process) == process_program(r, f->process) &&
                    (analysis_classes(a, r->waits[i].syscall) & CALL_SLEEP)) {
                        longest = MAX(longest, r->waits[i].longest_ns);
                        count += r->waits[i].count;
                }
        f->stack = hottest_stack(a, process_program(r, f->process), CALL_SLEEP);
        arguments = recording_text(r, r->processes[f->process].arguments);
        text_keep_begin(&b, *arguments ? arguments : process_name(r, f->process), COMMAND_COLUMNS);
        if (sleepers > 1)
                buf_printf(&b, " (%u processes)", sleepers);
        buf_puts(&b, " slept for ");
        put_time_and_share(&b, a, f->duration_ns);
        if (r->processes[f->process].slot != REC_SLOT_UNKNOWN)
                buf_printf(&b, " in %s=", recording_slot_str(r->processes[f->process].slot));
        finding_summary(f, "sleep: %s", buf_text(&b));
        finding_text(f, "process", process_name(r, f->process));
        finding_text(f, "command", arguments);
        finding_number(f, "longest_usec", longest / NSEC_PER_USEC);
        finding_number(f, "sleeps", count);
        finding_advice(f, NULL,
                       "Wait for what is needed (After=, a path or socket unit) instead of for a time.");
        return buf_error(&b) < 0 ? -ENOMEM : 1;
}
