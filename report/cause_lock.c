/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/text.h"
#include "report/cause.h"
#include "report/names.h"
#include "report/storm.h"
#include "report/syscalls.h"

/* Waiting for a lock on a file that somebody else holds. */

/* flock(2), and fcntl(2): no command of it but those that lock waits. */
static bool is_lock_call(uint32_t syscall) {
        const char *name = syscall_name(syscall);

        return name && (streq(name, "flock") || streq(name, "fcntl") || streq(name, "fcntl64"));
}

/* Time on the path, and the process that waited longest. */
static void find_waits(const struct analysis *a, struct finding *f) {
        uint64_t most = 0;

        for (size_t i = 0; i < a->breakdown.n_rows; i++) {
                const struct breakdown_row *row = a->breakdown.rows + i;

                if (row->kind != PIECE_WAIT || !is_lock_call(row->syscall) ||
                    row->process >= a->recording->n_processes)
                        continue;
                f->duration_ns += row->duration_ns;
                if (row->duration_ns > most) {
                        most = row->duration_ns;
                        f->process = row->process;
                }
        }
}

/* The longest one that has a sample; NULL: none has. */
static const struct rec_sample *longest_wait(const struct recording *r, uint32_t process) {
        const struct rec_sample *longest = NULL;

        for (uint32_t i = 0; i < r->n_samples; i++) {
                const struct rec_sample *s = r->samples + i;

                if (s->kind == REC_SAMPLE_WAIT && s->process == process && is_lock_call(s->syscall) &&
                    (!longest || s->blocked_ns > longest->blocked_ns))
                        longest = s;
        }
        return longest;
}

/* What the descriptor was opened as, before `time_ns`; "": not seen. */
static const char *path_of(const struct recording *r, uint32_t process, uint64_t fd, uint64_t time_ns) {
        const char *path = "";

        for (uint32_t i = 0; i < r->n_paths; i++) {
                const struct rec_path *p = r->paths + i;

                if (p->kind == REC_PATH_OPEN && p->process == process && p->result >= 0 &&
                    (uint64_t) p->result == fd && p->time_ns <= time_ns)
                        path = recording_text(r, p->path);
        }
        return path;
}

/* The file whose lock came, or did not, at the end of that wait: the first call that is told from then on. */
static const char *locked_file(const struct recording *r, uint32_t process, const struct rec_sample *wait) {
        for (uint32_t i = 0; wait && i < r->n_paths; i++) {
                const struct rec_path *p = r->paths + i;

                if (p->kind == REC_PATH_LOCK && p->process == process && p->time_ns >= wait->time_ns)
                        return path_of(r, process, p->argument, p->time_ns);
        }
        return "";
}

static void put_summary(const struct analysis *a, struct finding *f, const char *file, const char *holder) {
        _cleanup_(buf_done) struct buf b = BUF_NULL, function = BUF_NULL;

        buf_printf(&b, "%s waited ", process_name(a->recording, f->process));
        put_time_and_share(&b, a, f->duration_ns);
        buf_printf(&b, " for the lock on %s", *file ? file : "a file");
        if (stack_function(a->recording, f->stack, &function))
                buf_printf(&b, " in %s", buf_text(&function));
        if (*holder)
                buf_printf(&b, "; %s let it go", holder);
        finding_summary(f, "lock wait: %s", buf_text(&b));
        if (buf_error(&b) < 0)
                f->error = -ENOMEM;
}

int cause_lock_find(const struct analysis *a, struct finding *f) {
        const struct recording *r = a->recording;
        const struct rec_sample *wait;
        const char *file, *holder;

        find_waits(a, f);
        if (f->process == REC_NONE)
                return 0;
        wait = longest_wait(r, f->process);
        if (wait)
                f->stack = wait->stack;
        file = locked_file(r, f->process, wait);
        holder = wait ? recording_text(r, wait->waker_comm) : "";
        put_summary(a, f, file, holder);
        finding_text(f, "process", process_name(r, f->process));
        finding_number(f, "pid", r->processes[f->process].pid);
        if (*file)
                finding_text(f, "path", file);
        if (*holder) {
                finding_text(f, "holder", holder);
                finding_number(f, "holder_pid", wait->waker_pid);
        }
        if (wait)
                finding_number(f, "longest_usec", wait->blocked_ns / NSEC_PER_USEC);
        finding_advice(
                f, NULL,
                "Somebody else held the lock: is another instance running? Order the two (After=), or "
                "give each a file of its own.");
        return 1;
}
