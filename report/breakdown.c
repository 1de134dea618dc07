/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/breakdown.h"

#include "common/macro.h"
#include "report/names.h"
#include "report/syscalls.h"

static int compare(uint64_t a, uint64_t b) {
        return a < b ? -1 : a > b;
}

static int by_key(const void *x, const void *y, void *userdata) {
        const struct breakdown_row *a = x, *b = y;
        const struct recording *r = userdata;
        int c = compare(a->kind, b->kind);

        c = c != 0 ? c : compare(a->syscall, b->syscall);
        c = c != 0 ? c : compare(a->io, b->io);
        return c != 0 ? c : strcmp(process_name(r, a->process), process_name(r, b->process));
}

static int by_key_and_process(const void *x, const void *y, void *userdata) {
        const struct breakdown_row *a = x, *b = y;
        int c = by_key(x, y, userdata);

        return c != 0 ? c : compare(a->process, b->process);
}

static int by_duration(const void *x, const void *y, void *userdata) {
        const struct breakdown_row *a = x, *b = y;
        int c = compare(b->duration_ns, a->duration_ns);

        return c != 0 ? c : by_key(x, y, userdata);
}

/* Joins neighbours of equal key; rows are sorted by it, and within it by process. */
static size_t join(const struct recording *r, struct breakdown_row *rows, size_t n) {
        uint32_t process = REC_NONE; /* of the row that was joined last */
        size_t kept = 0;

        for (size_t i = 0; i < n; i++) {
                struct breakdown_row *last = kept > 0 ? rows + kept - 1 : NULL;

                if (last && by_key(last, rows + i, (void *) r) == 0) {
                        last->duration_ns += rows[i].duration_ns;
                        last->n_processes += rows[i].process != process;
                } else
                        rows[kept++] = rows[i];
                process = rows[i].process;
        }
        return kept;
}

/* The rows' microseconds add up to the start's, so each may differ from its own by less than one. */
static int round_rows(struct breakdown_row *rows, size_t n, uint64_t total_usec) {
        _cleanup_free_ uint64_t *weights = calloc(n * 2 + 1, sizeof(*weights));

        if (!weights)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++)
                weights[i] = rows[i].duration_ns;
        spread(total_usec, weights, n, weights + n);
        for (size_t i = 0; i < n; i++)
                rows[i].duration_usec = weights[n + i];
        return 0;
}

int breakdown_init(const struct recording *r, const struct critical_path *path, struct breakdown *ret) {
        _cleanup_free_ struct breakdown_row *rows = calloc(path->n_pieces + 1, sizeof(*rows));
        size_t n = path->n_pieces;
        int error;

        if (!rows)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                const struct piece *p = path->pieces + i;

                rows[i] = (struct breakdown_row){
                        .duration_ns = p->duration_ns,
                        .kind = p->kind,
                        .syscall = p->syscall,
                        .process = p->process,
                        .n_processes = p->process != REC_NONE,
                        .io = p->io,
                };
        }
        qsort_r(rows, n, sizeof(*rows), by_key_and_process, (void *) r);
        n = join(r, rows, n);
        qsort_r(rows, n, sizeof(*rows), by_duration, (void *) r);
        error = round_rows(rows, n, (path->end_ns - path->origin_ns) / NSEC_PER_USEC);
        if (error < 0)
                return error;
        ret->rows = TAKE_PTR(rows);
        ret->n_rows = n;
        return 0;
}

void breakdown_done(struct breakdown *b) {
        free(b->rows);
        *b = BREAKDOWN_NULL;
}

void breakdown_detail(struct buf *b, const struct breakdown_row *row) {
        if (row->kind == PIECE_CPU_KERNEL && row->syscall == REC_CALL_FAULT)
                buf_puts(b, "page fault or interrupt");
        else if (row->kind == PIECE_WAIT && row->syscall == REC_CALL_NONE)
                buf_puts(b, "unknown call");
        else
                syscall_text(b, row->syscall);
        if (row->io && row->kind == PIECE_WAIT)
                buf_puts(b, " (disk)");
}
