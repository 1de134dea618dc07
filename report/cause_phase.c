/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/cause.h"

#include "common/text.h"
#include "report/names.h"
#include "report/storm.h"

/*
 * Causes that are a phase of the start rather than something a program did:
 *
 *   dependency-wait   the job was queued behind other units (FC-09)
 *   before-exec       systemd needed the time to set up the process
 *   start-post-wait   an ExecStartPost= held the unit (FC-35)
 */

enum { QUEUE_USEC = 100000 }; /* less is systemd at work: 5 to 75 ms were seen on busy machines */

int cause_dependency_find(const struct analysis *a, struct finding *f) {
        _cleanup_(buf_done) struct buf b = BUF_NULL;
        const char *after = recording_property(a->recording, "WaitedFor");

        f->duration_ns = a->path.queue_ns;
        if (f->duration_ns < QUEUE_USEC * NSEC_PER_USEC)
                return 0;
        buf_puts(&b, "the job was queued behind other units for ");
        put_time_and_share(&b, a, f->duration_ns);
        if (after && *after) {
                buf_printf(&b, ": %s", after);
                finding_text(f, "waited_for", after);
        }
        finding_summary(f, "waiting for other units: %s", buf_text(&b));
        finding_number(f, "queue_usec", a->path.queue_ns / NSEC_PER_USEC);
        finding_detail(f, "Nothing of this unit ran meanwhile.");
        finding_advice(f, NULL,
                       "See `systemd-analyze critical-chain %s`, and drop After= and Requires= that it does "
                       "not need.",
                       recording_text(a->recording, a->recording->start->unit));
        return buf_error(&b) < 0 ? -ENOMEM : 1;
}

int cause_before_exec_find(const struct analysis *a, struct finding *f) {
        _cleanup_(buf_done) struct buf b = BUF_NULL;

        f->duration_ns = pieces_time(a, 1u << PIECE_BEFORE_EXEC, 0, REC_NONE);
        if (f->duration_ns == 0)
                return 0;
        put_time_and_share(&b, a, f->duration_ns);
        finding_summary(f, "before exec: systemd set up the process for %s", buf_text(&b));
        finding_number(f, "before_exec_usec", f->duration_ns / NSEC_PER_USEC);
        finding_advice(f, NULL,
                       "Look at what comes before the exec: User= look-ups, PAM, credentials, mounts of the "
                       "sandbox.");
        return buf_error(&b) < 0 ? -ENOMEM : 1;
}

/* Not sleep or another wait of the service: the main process was ready, and only the extra command was not.
 * Time in children of the command belongs to it. */
int cause_start_post_find(const struct analysis *a, struct finding *f) {
        const struct recording *r = a->recording;
        _cleanup_(buf_done) struct buf b = BUF_NULL;
        uint64_t first = 0;

        for (size_t i = 0; i < a->path.n_pieces; i++) {
                const struct piece *p = a->path.pieces + i;

                if (p->process < r->n_processes && r->processes[p->process].slot == REC_SLOT_START_POST)
                        f->duration_ns += p->duration_ns;
        }
        for (uint32_t i = 0; i < r->n_processes; i++)
                if (r->processes[i].slot == REC_SLOT_START_POST &&
                    (first == 0 || r->processes[i].begin_ns < first)) {
                        first = r->processes[i].begin_ns;
                        f->process = i;
                }
        if (f->duration_ns == 0)
                return 0;
        buf_puts(&b, "the main process was up, ExecStartPost= held the unit for ");
        put_time_and_share(&b, a, f->duration_ns);
        finding_summary(f, "ExecStartPost: %s", buf_text(&b));
        finding_number(f, "begin_usec", analysis_at_usec(a, first));
        finding_text(f, "command", recording_text(r, r->processes[f->process].arguments));
        finding_detail(f, "Command: %s", recording_text(r, r->processes[f->process].arguments));
        finding_advice(
                f, NULL,
                "Let the service say when it is ready (Type=notify), or do this in a unit of its own.");
        return buf_error(&b) < 0 ? -ENOMEM : 1;
}
