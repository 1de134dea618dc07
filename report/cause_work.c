/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/cause.h"

#include "common/text.h"
#include "report/names.h"
#include "report/storm.h"

/*
 * Causes in which work is being done, and no more particular one explains it:
 *
 *   fork-storm   very many short processes (FC-24)
 *   cpu-bound    the program's own code needs the time (FC-28, FC-50): honest work, no fault
 *   call-storm   one other system call is the start
 */

enum {
        FORK_PROCESSES_MIN =
                200, /* of one executable: init scripts of distributions start about 50 in all */
        FORK_LIFE_USEC = 100000, /* on average at most: longer ones do work of their own */
        CPU_BOUND_PERCENT = 70,
};

/* The executable with the most processes, how many, and their life. */
struct crowd {
        uint32_t exe, any; /* text; one of them */
        uint64_t n, life_ns;
};

static int by_exe(const void *x, const void *y, void *userdata) {
        const struct recording *r = userdata;
        uint32_t a = r->processes[*(const uint32_t *) x].exe, b = r->processes[*(const uint32_t *) y].exe;

        return a < b ? -1 : a > b;
}

static int find_crowd(const struct analysis *a, struct crowd *ret) {
        const struct recording *r = a->recording;
        _cleanup_free_ uint32_t *order = calloc((size_t) r->n_processes + 1, sizeof(*order));
        struct crowd c = {}, best = {};

        if (!order)
                return -ENOMEM;
        for (uint32_t i = 0; i < r->n_processes; i++)
                order[i] = i;
        qsort_r(order, r->n_processes, sizeof(*order), by_exe, (void *) r);
        for (uint32_t i = 0; i < r->n_processes; i++) {
                const struct rec_process *p = r->processes + order[i];

                if (c.n == 0 || p->exe != c.exe)
                        c = (struct crowd){ .exe = p->exe, .any = order[i] };
                c.n++;
                c.life_ns += critical_path_process_end(&a->path, p) -
                             MIN(p->begin_ns, critical_path_process_end(&a->path, p));
                if (c.n > best.n)
                        best = c;
        }
        *ret = best;
        return 0;
}

/* Not a few long helpers, and not a crowd of workers that live on. */
int cause_fork_find(const struct analysis *a, struct finding *f) {
        const struct recording *r = a->recording;
        _cleanup_(buf_done) struct buf b = BUF_NULL;
        struct crowd c;

        if (find_crowd(a, &c) < 0)
                return -ENOMEM;
        if (c.n < FORK_PROCESSES_MIN || c.life_ns / c.n > FORK_LIFE_USEC * NSEC_PER_USEC)
                return 0;
        for (size_t i = 0; i < a->path.n_pieces; i++) {
                const struct piece *p = a->path.pieces + i;

                if (p->process < r->n_processes && r->processes[p->process].exe == c.exe)
                        f->duration_ns += p->duration_ns;
        }
        f->duration_ns += pieces_time(a, 1u << PIECE_CPU_KERNEL | 1u << PIECE_WAIT, CALL_FORK, REC_NONE);
        f->duration_ns = MIN(f->duration_ns, a->duration_ns);
        f->process = c.any;
        text_count(&b, c.n);
        buf_printf(&b, " short processes (%s) took ", path_basename(recording_text(r, c.exe)));
        put_time_and_share(&b, a, f->duration_ns);
        finding_summary(f, "fork storm: %s", buf_text(&b));
        finding_number(f, "processes", c.n);
        finding_text(f, "exe", recording_text(r, c.exe));
        finding_number(f, "average_life_usec", c.life_ns / c.n / NSEC_PER_USEC);
        finding_advice(f, NULL, "Do the work of many in one process: most such programs take a list.");
        return buf_error(&b) < 0 ? -ENOMEM : 1;
}

static bool has_verdict(const struct analysis *a) {
        for (size_t i = 0; i < a->n_findings; i++)
                if (a->findings[i].can_be_verdict)
                        return true;
        return false;
}

/* No fault by itself: nothing else may explain as much of the start. */
int cause_cpu_find(const struct analysis *a, struct finding *f) {
        const struct recording *r = a->recording;
        const uint32_t kinds = 1u << PIECE_CPU_USER | 1u << PIECE_FAULT;
        _cleanup_(buf_done) struct buf b = BUF_NULL, function = BUF_NULL;

        if (has_verdict(a)) /* that cause's time is on the CPU, too */
                return 0;
        f->duration_ns = pieces_time(a, kinds, 0, REC_NONE);
        for (size_t i = 0; i < a->breakdown.n_rows && f->process == REC_NONE; i++)
                if (a->breakdown.rows[i].kind == PIECE_CPU_USER)
                        f->process = a->breakdown.rows[i].process;
        if (f->duration_ns < a->duration_ns / 100 * CPU_BOUND_PERCENT || f->process == REC_NONE)
                return 0;
        f->stack = hottest_stack(a, process_program(r, f->process), 0);
        put_time_and_share(&b, a, f->duration_ns);
        buf_printf(&b, " of work in the code of %s", process_name(r, f->process));
        if (stack_function(r, f->stack, &function))
                buf_printf(&b, ", most often in %s", buf_text(&function));
        finding_summary(f, "CPU-bound: %s", buf_text(&b));
        finding_text(f, "process", process_name(r, f->process));
        finding_number(f, "pid", r->processes[f->process].pid);
        if (function.size > 0)
                finding_text(f, "function", buf_text(&function));
        finding_detail(f, "No wait worth naming: the program works all the time.");
        finding_advice(f, NULL,
                       "The flame graph shows what it works on; TimeoutStartSec= may have to allow for it.");
        return buf_error(&b) < 0 ? -ENOMEM : 1;
}

/* The call with most time of its own; those that a finding above or an idle wait explains do not count. */
static const struct breakdown_row *slowest_call(const struct analysis *a) {
        for (size_t i = 0; i < a->breakdown.n_rows; i++) {
                const struct breakdown_row *row = a->breakdown.rows + i;

                if (row->kind != PIECE_CPU_KERNEL && row->kind != PIECE_WAIT)
                        continue;
                if (!syscall_name(row->syscall) ||
                    (analysis_classes(a, row->syscall) & (CALL_IDLE | CALL_SYNC)))
                        continue;
                return row;
        }
        return NULL;
}

int cause_call_find(const struct analysis *a, struct finding *f) {
        const struct recording *r = a->recording;
        const struct breakdown_row *row = slowest_call(a);
        _cleanup_(buf_done) struct buf b = BUF_NULL, name = BUF_NULL, function = BUF_NULL;
        uint64_t count = 0, failed = 0;
        uint32_t program;

        if (has_verdict(a) || !row)
                return 0;
        program = process_program(r, row->process);
        for (uint32_t i = 0; i < r->n_calls; i++)
                if (r->calls[i].program == program && r->calls[i].syscall == row->syscall) {
                        count += r->calls[i].count;
                        failed += r->calls[i].error != 0 ? r->calls[i].count : 0;
                }
        if (count < CAUSE_CALLS_MIN)
                return 0;
        for (size_t i = 0; i < a->breakdown.n_rows; i++) {
                const struct breakdown_row *other = a->breakdown.rows + i;

                if (other->syscall == row->syscall && process_program(r, other->process) == program)
                        f->duration_ns += other->duration_ns;
        }
        f->process = row->process;
        f->stack = hottest_stack_of_call(a, program, row->syscall);
        syscall_text(&name, row->syscall);
        text_count(&b, count);
        buf_printf(&b, " calls of %s took ", buf_text(&name));
        put_time_and_share(&b, a, f->duration_ns);
        buf_printf(&b, " by %s", process_name(r, row->process));
        if (stack_function(r, f->stack, &function))
                buf_printf(&b, " in %s", buf_text(&function));
        finding_summary(f, "call storm: %s", buf_text(&b));
        finding_text(f, "call", buf_text(&name));
        finding_number(f, "calls", count);
        finding_number(f, "failed_calls", failed);
        finding_text(f, "process", process_name(r, row->process));
        finding_number(f, "pid", r->processes[row->process].pid);
        finding_advice(f, NULL, "The hottest stacks show who makes them.");
        return buf_error(&b) < 0 || buf_error(&name) < 0 ? -ENOMEM : 1;
}
