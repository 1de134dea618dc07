/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/process_index.h"

#include "common/macro.h"

enum {
        FREQUENCY_DEFAULT_HZ = 99,
        DESCENT_DEPTH_MAX = 64, /* generations between a daemon and the process that systemd started */
};

void cpu_mix_add(struct cpu_mix *mix, const struct rec_sample *s) {
        uint32_t what = CPU_MIX_USER;
        size_t i;

        if (s->kind == REC_SAMPLE_CPU_KERNEL)
                what = s->flags & REC_SAMPLE_IN_FAULT ? REC_CALL_FAULT : s->syscall;
        for (i = 0; i < mix->n && mix->syscalls[i] != what; i++)
                ;
        if (i == CPU_MIX_MAX)
                i = 0;
        if (i == mix->n) {
                mix->syscalls[i] = what;
                mix->weights[i] = 0;
                mix->n++;
        }
        mix->weights[i]++;
}

bool sample_is_cpu(const struct rec_sample *s) {
        return s->kind == REC_SAMPLE_CPU_USER || s->kind == REC_SAMPLE_CPU_KERNEL;
}

/* ---- orders ---- */

static int compare(uint64_t a, uint64_t b) {
        return a < b ? -1 : a > b;
}

/* Birth, and the place in the file where that is equal. */
static int compare_birth(const struct recording *r, uint32_t a, uint32_t b) {
        int c = compare(r->processes[a].begin_ns, r->processes[b].begin_ns);

        return c != 0 ? c : compare(a, b);
}

static int by_pid_and_birth(const void *a, const void *b, void *userdata) {
        const struct recording *r = userdata;
        uint32_t x = *(const uint32_t *) a, y = *(const uint32_t *) b;
        int c = compare(r->processes[x].pid, r->processes[y].pid);

        return c != 0 ? c : compare_birth(r, x, y);
}

static int by_birth(const void *a, const void *b, void *userdata) {
        return compare_birth(userdata, *(const uint32_t *) a, *(const uint32_t *) b);
}

static int by_thread(const void *a, const void *b, void *userdata) {
        const struct recording *r = userdata;
        uint32_t x = *(const uint32_t *) a, y = *(const uint32_t *) b;
        int c = compare(r->waits[x].tid, r->waits[y].tid);

        return c != 0 ? c : compare(x, y);
}

/* ---- building ---- */

/* Groups the rows 0 … n-1 by owner(row), REC_NONE: nobody's. *ret_rows in order inside each group. */
static int group(const struct recording *r, uint32_t n_owners, uint32_t n,
                 uint32_t (*owner)(const void *userdata, uint32_t row), const void *userdata,
                 uint32_t **ret_rows, uint32_t **ret_first) {
        _cleanup_free_ uint32_t *first = calloc((size_t) n_owners + 2, sizeof(*first));
        uint32_t *rows = calloc((size_t) n + 1, sizeof(*rows));

        if (!first || !rows) {
                free(rows);
                return -ENOMEM;
        }
        /* first[i + 1] is where group i is being filled; in the end it is where group i + 1 begins. */
        for (uint32_t row = 0; row < n; row++) {
                uint32_t o = owner(userdata, row);

                if (o < n_owners)
                        first[o + 2]++;
        }
        for (uint32_t i = 2; i < n_owners + 2; i++)
                first[i] += first[i - 1];
        for (uint32_t row = 0; row < n; row++) {
                uint32_t o = owner(userdata, row);

                if (o < n_owners)
                        rows[first[o + 1]++] = row;
        }
        *ret_rows = rows;
        *ret_first = TAKE_PTR(first);
        return 0;
}

static uint32_t sample_owner(const void *userdata, uint32_t row) {
        const struct recording *r = userdata;

        return r->samples[row].process;
}

static uint32_t wait_owner(const void *userdata, uint32_t row) {
        return ((const struct recording *) userdata)->waits[row].process;
}

static uint32_t child_owner(const void *userdata, uint32_t row) {
        return ((const struct process_index *) userdata)->parents[row];
}

static void sort_groups(const struct recording *r, uint32_t n_owners, uint32_t *rows, const uint32_t *first,
                        int (*order)(const void *, const void *, void *)) {
        for (uint32_t i = 0; i < n_owners; i++)
                if (first[i + 1] - first[i] > 1)
                        qsort_r(rows + first[i], first[i + 1] - first[i], sizeof(*rows), order, (void *) r);
}

/* The process of that pid that was born last before `child`. */
static uint32_t find_parent(const struct recording *r, const uint32_t *by_pid, uint32_t child) {
        uint32_t low = 0, high = r->n_processes, parent_pid = r->processes[child].parent_pid;

        while (low < high) { /* the first one that is greater than (parent_pid, birth of child) */
                uint32_t middle = low + (high - low) / 2, m = by_pid[middle];
                int c = compare(r->processes[m].pid, parent_pid);

                if (c < 0 || (c == 0 && compare_birth(r, m, child) < 0))
                        low = middle + 1;
                else
                        high = middle;
        }
        if (low == 0 || r->processes[by_pid[low - 1]].pid != parent_pid)
                return REC_NONE;
        return by_pid[low - 1];
}

static bool is_start_slot(uint32_t slot) {
        return slot != REC_SLOT_RELOAD && slot != REC_SLOT_STOP;
}

static int find_parents(struct process_index *x) {
        const struct recording *r = x->recording;
        _cleanup_free_ uint32_t *by_pid = calloc((size_t) r->n_processes + 1, sizeof(*by_pid));

        x->parents = calloc((size_t) r->n_processes + 1, sizeof(*x->parents));
        x->tops = calloc((size_t) r->n_processes + 1, sizeof(*x->tops));
        if (!by_pid || !x->parents || !x->tops)
                return -ENOMEM;

        for (uint32_t i = 0; i < r->n_processes; i++)
                by_pid[i] = i;
        qsort_r(by_pid, r->n_processes, sizeof(*by_pid), by_pid_and_birth, (void *) r);
        for (uint32_t i = 0; i < r->n_processes; i++) {
                x->parents[i] = find_parent(r, by_pid, i);
                if (x->parents[i] == REC_NONE && is_start_slot(r->processes[i].slot))
                        x->tops[x->n_tops++] = i;
        }
        for (uint32_t i = 0; i < r->n_processes && x->n_tops == 0; i++) /* better one of those than none */
                if (x->parents[i] == REC_NONE)
                        x->tops[x->n_tops++] = i;
        qsort_r(x->tops, x->n_tops, sizeof(*x->tops), by_birth, (void *) r);
        return 0;
}

static struct cpu_mix *program_mix(const struct process_index *x, uint32_t process) {
        const struct recording *r = x->recording;
        uint32_t program = r->processes[process].program;

        return x->program_mixes + (program < r->n_programs ? program : r->n_programs);
}

static int build(struct process_index *x) {
        const struct recording *r = x->recording;
        int error = find_parents(x);

        if (error < 0)
                return error;
        error = group(r, r->n_processes, r->n_processes, child_owner, x, &x->children, &x->first_child);
        if (error < 0)
                return error;
        error = group(r, r->n_processes, r->n_samples, sample_owner, r, &x->samples, &x->first_sample);
        if (error < 0)
                return error;
        error = group(r, r->n_processes, r->n_waits, wait_owner, r, &x->waits, &x->first_wait);
        if (error < 0)
                return error;
        sort_groups(r, r->n_processes, x->children, x->first_child, by_birth);
        sort_groups(r, r->n_processes, x->waits, x->first_wait, by_thread);

        x->program_mixes = calloc((size_t) r->n_programs + 1, sizeof(*x->program_mixes));
        if (!x->program_mixes)
                return -ENOMEM;
        for (uint32_t i = 0; i < r->n_samples; i++)
                if (sample_is_cpu(r->samples + i) && r->samples[i].process < r->n_processes)
                        cpu_mix_add(program_mix(x, r->samples[i].process), r->samples + i);
        return 0;
}

int process_index_init(const struct recording *r, struct process_index *ret) {
        struct process_index x = { .recording = r };
        int error = build(&x);

        if (error < 0) {
                process_index_done(&x);
                return error;
        }
        *ret = x;
        return 0;
}

void process_index_done(struct process_index *x) {
        free(x->parents);
        free(x->children);
        free(x->first_child);
        free(x->samples);
        free(x->first_sample);
        free(x->waits);
        free(x->first_wait);
        free(x->tops);
        free(x->program_mixes);
        *x = PROCESS_INDEX_NULL;
}

/* ---- asking ---- */

size_t process_index_samples(const struct process_index *x, uint32_t process, const uint32_t **ret) {
        *ret = x->samples + x->first_sample[process];
        return x->first_sample[process + 1] - x->first_sample[process];
}

size_t process_index_waits(const struct process_index *x, uint32_t process, const uint32_t **ret) {
        *ret = x->waits + x->first_wait[process];
        return x->first_wait[process + 1] - x->first_wait[process];
}

size_t process_index_children(const struct process_index *x, uint32_t process, const uint32_t **ret) {
        *ret = x->children + x->first_child[process];
        return x->first_child[process + 1] - x->first_child[process];
}

size_t process_index_tops(const struct process_index *x, const uint32_t **ret) {
        *ret = x->tops;
        return x->n_tops;
}

const struct cpu_mix *process_index_program_mix(const struct process_index *x, uint32_t process) {
        return program_mix(x, process);
}

bool process_index_main_thread(const struct process_index *x, uint32_t process, uint32_t *ret_tid) {
        const uint32_t *waits;
        size_t n = process_index_waits(x, process, &waits);
        uint64_t best = 0, sum = 0;
        uint32_t busiest = 0;

        for (size_t i = 0; i < n; i++) {
                const struct rec_wait *row = x->recording->waits + waits[i];

                if (row->tid == x->recording->processes[process].pid) {
                        *ret_tid = row->tid;
                        return true;
                }
                if (i > 0 && x->recording->waits[waits[i - 1]].tid != row->tid)
                        sum = 0;
                sum += row->blocked_ns;
                if (sum > best) {
                        best = sum;
                        busiest = row->tid;
                }
        }
        if (best == 0)
                return false;
        *ret_tid = busiest;
        return true;
}

static void find_survivor(const struct process_index *x, uint32_t process, uint64_t time_ns, unsigned depth,
                          uint32_t *found) {
        const struct recording *r = x->recording;
        const uint32_t *children;
        size_t n = process_index_children(x, process, &children);

        for (size_t i = 0; i < n; i++) {
                const struct rec_process *p = r->processes + children[i];

                if (p->begin_ns <= time_ns && (p->end_ns == 0 || p->end_ns > time_ns) &&
                    (*found == REC_NONE || compare_birth(r, children[i], *found) < 0))
                        *found = children[i];
                if (depth < DESCENT_DEPTH_MAX)
                        find_survivor(x, children[i], time_ns, depth + 1, found);
        }
}

bool process_index_survivor(const struct process_index *x, uint32_t process, uint64_t time_ns,
                            uint32_t *ret) {
        uint32_t found = REC_NONE;

        find_survivor(x, process, time_ns, 0, &found);
        if (found == REC_NONE)
                return false;
        *ret = found;
        return true;
}

bool process_index_is_shell(const struct process_index *x, uint32_t process) {
        static const char *const shells[] = { "sh", "dash", "bash", "zsh", "ksh", "mksh", "ash", "busybox" };
        const char *exe = recording_text(x->recording, x->recording->processes[process].exe);
        const char *slash = strrchr(exe, '/');

        for (size_t i = 0; i < ARRAY_SIZE(shells); i++)
                if (streq(slash ? slash + 1 : exe, shells[i]))
                        return true;
        return false;
}

uint64_t process_index_period_ns(const struct process_index *x) {
        uint32_t hz = x->recording->start->frequency_hz;

        return NSEC_PER_SEC / (hz > 0 ? hz : FREQUENCY_DEFAULT_HZ);
}
