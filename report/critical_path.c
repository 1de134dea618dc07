/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/critical_path.h"

#include "common/macro.h"
#include "report/process_index.h"
#include "report/syscalls.h"

enum {
        FOLLOW_DEPTH_MAX = 64, /* a shell that starts a shell that starts …: what people write has 5 */
        FUTEX_FOLLOW_PERCENT = 5, /* below, whom a thread waited for changes nothing */
        SHORTFALL_PERCENT = 2, /* of its time on the path that a thread's rows may leave open: the */
        SHORTFALL_USEC = 2000, /* moments before its first and after its last switch */
        CPU_WINDOW_SAMPLES = 10, /* fewer say nothing about when the CPU time was spent */
};

/* The work: a recording, its index, and the path as far as it has grown. */
struct walk {
        const struct recording *r;
        struct process_index index;
        struct critical_path path;
        size_t allocated;
        int error; /* sticks */
};

/* A piece of time of a process that has to be explained. */
struct window {
        uint32_t process;
        uint64_t from_ns, to_ns; /* when */
        uint64_t budget_ns; /* how much of it, at most to_ns - from_ns */
        unsigned depth;
        bool sibling; /* it stands for a thread that waits for this one */
};

const char *piece_kind_str(uint32_t kind) {
        static const char *const words[PIECE_KIND_MAX] = {
                [PIECE_QUEUE] = "queue",       [PIECE_BEFORE_EXEC] = "before-exec",
                [PIECE_CPU_USER] = "cpu-user", [PIECE_CPU_KERNEL] = "cpu-kernel",
                [PIECE_WAIT] = "wait",         [PIECE_FAULT] = "fault",
                [PIECE_RUNNABLE] = "runnable", [PIECE_THROTTLED] = "throttled",
                [PIECE_SYSTEMD] = "systemd",   [PIECE_NOT_OBSERVED] = "not-observed",
        };

        return kind < PIECE_KIND_MAX ? words[kind] : "not-observed";
}

void spread(uint64_t total, const uint64_t *weights, size_t n, uint64_t *ret_parts) {
        unsigned __int128 sum = 0, reached = 0;
        uint64_t given = 0;

        for (size_t i = 0; i < n; i++)
                sum += weights[i];
        for (size_t i = 0; i < n; i++) {
                uint64_t until;

                reached += weights[i];
                /* The product may need more than 128 bits only beyond 2^64 weights. */
                until = sum > 0 ? (uint64_t) (reached * total / sum) : 0;
                ret_parts[i] = until - given;
                given = until;
        }
}

static uint64_t scale(uint64_t value, uint64_t part, uint64_t whole) {
        return whole > 0 ? (uint64_t) ((unsigned __int128) value * part / whole) : 0;
}

static uint64_t clamp(uint64_t value, uint64_t low, uint64_t high) {
        return MIN(MAX(value, low), high);
}

uint64_t critical_path_process_end(const struct critical_path *c, const struct rec_process *p) {
        return p->end_ns > 0 ? clamp(p->end_ns, c->origin_ns, c->end_ns) : c->end_ns;
}

static uint64_t process_begin(const struct walk *w, const struct rec_process *p) {
        return clamp(p->begin_ns, w->path.origin_ns, w->path.end_ns);
}

static void add_piece(struct walk *w, struct piece piece) {
        if (w->error < 0 || piece.duration_ns == 0)
                return;
        if (w->path.n_pieces == w->allocated) {
                size_t allocated = MAX(w->allocated * 2, (size_t) 64);
                struct piece *grown = reallocarray(w->path.pieces, allocated, sizeof(*grown));

                if (!grown) {
                        w->error = -ENOMEM;
                        return;
                }
                w->path.pieces = grown;
                w->allocated = allocated;
        }
        w->path.pieces[w->path.n_pieces++] = piece;
}

/* ---- the time of one process ---- */

static void explain_process(struct walk *w, const struct window *window);

static bool in_window(const struct window *window, const struct rec_sample *s) {
        return s->time_ns >= window->from_ns && s->time_ns <= window->to_ns;
}

/* CPU samples of one thread, in the window and altogether. */
static void count_samples(const struct walk *w, const struct window *window, uint32_t tid, uint64_t *ret_in,
                          uint64_t *ret_all) {
        const uint32_t *samples;
        size_t n = process_index_samples(&w->index, window->process, &samples);

        *ret_in = *ret_all = 0;
        for (size_t i = 0; i < n; i++) {
                const struct rec_sample *s = w->r->samples + samples[i];

                if (s->tid != tid || !sample_is_cpu(s))
                        continue;
                ++*ret_all;
                *ret_in += in_window(window, s);
        }
}

/* What the CPU time went into, by the nearest samples there are: the thread's in the window, the thread's,
 * those of all processes of the program (for processes shorter than the sampling period). */
static void add_cpu(struct walk *w, const struct window *window, uint32_t tid, uint64_t duration_ns) {
        struct cpu_mix mix = CPU_MIX_NULL;
        const uint32_t *samples;
        size_t n = process_index_samples(&w->index, window->process, &samples);
        uint64_t parts[CPU_MIX_MAX];

        for (int pass = 0; pass < 2 && mix.n == 0; pass++)
                for (size_t i = 0; i < n; i++) {
                        const struct rec_sample *s = w->r->samples + samples[i];

                        if (s->tid == tid && sample_is_cpu(s) && (pass == 1 || in_window(window, s)))
                                cpu_mix_add(&mix, s);
                }
        if (mix.n == 0)
                mix = *process_index_program_mix(&w->index, window->process);
        if (mix.n == 0)
                mix = (struct cpu_mix){ .n = 1, .weights = { 1 }, .syscalls = { CPU_MIX_USER } };

        spread(duration_ns, mix.weights, mix.n, parts);
        for (size_t i = 0; i < mix.n; i++) {
                bool user = mix.syscalls[i] == CPU_MIX_USER;

                add_piece(w, (struct piece){
                                     .duration_ns = parts[i],
                                     .kind = user ? PIECE_CPU_USER : PIECE_CPU_KERNEL,
                                     .syscall = user ? REC_CALL_NONE : mix.syscalls[i],
                                     .process = window->process,
                             });
        }
}

static void add_wait(struct walk *w, uint32_t process, uint32_t syscall, uint64_t duration_ns,
                     uint64_t io_ns) {
        uint32_t kind = syscall == REC_CALL_FAULT ? PIECE_FAULT : PIECE_WAIT;

        add_piece(w, (struct piece){ .duration_ns = io_ns,
                                     .kind = kind,
                                     .syscall = syscall,
                                     .process = process,
                                     .io = true });
        add_piece(w, (struct piece){ .duration_ns = duration_ns - io_ns,
                                     .kind = kind,
                                     .syscall = syscall,
                                     .process = process });
}

/* Time that a process waited for its children: theirs, the earlier one first where several ran at once. */
static void explain_children(struct walk *w, const struct window *parent, uint32_t syscall,
                             uint64_t waited_ns) {
        const uint32_t *children;
        size_t n = process_index_children(&w->index, parent->process, &children);
        _cleanup_free_ uint64_t *lengths = calloc(n + 1, sizeof(*lengths));
        _cleanup_free_ uint64_t *parts = calloc(n + 1, sizeof(*parts));
        uint64_t cursor = parent->from_ns, covered = 0;

        if (!lengths || !parts) {
                w->error = -ENOMEM;
                return;
        }
        for (size_t i = 0; i < n; i++) {
                const struct rec_process *p = w->r->processes + children[i];
                uint64_t from = clamp(process_begin(w, p), cursor, parent->to_ns);
                uint64_t to = clamp(critical_path_process_end(&w->path, p), from, parent->to_ns);

                lengths[i] = to - from;
                covered += lengths[i];
                cursor = to;
        }

        spread(MIN(waited_ns, covered), lengths, n, parts);
        for (size_t i = 0; i < n; i++) {
                const struct rec_process *p = w->r->processes + children[i];
                uint64_t to = critical_path_process_end(&w->path, p);

                if (parts[i] == 0)
                        continue;
                to = MIN(to, parent->to_ns);
                explain_process(w, &(struct window){
                                           .process = children[i],
                                           .from_ns = to - MIN(lengths[i], to),
                                           .to_ns = to,
                                           .budget_ns = parts[i],
                                           .depth = parent->depth + 1,
                                   });
        }
        add_wait(w, parent->process, syscall, waited_ns - MIN(waited_ns, covered), 0);
}

static bool is_wait_for_child(const struct walk *w, uint32_t process, uint32_t syscall) {
        uint32_t classes = syscall_classes(syscall);

        /* A shell that reads while its child runs is in $(…). */
        return (classes & CALL_CHILD) ||
               ((classes & CALL_READ) && process_index_is_shell(&w->index, process));
}

/* A thread's exact times, as weights of a split: on CPU, runnable, and blocked per row. */
struct thread_times {
        const struct rec_wait **rows;
        uint64_t *weights, *parts, *scratch; /* 2 + n_rows */
        size_t n_rows;
        uint64_t total_ns;
};

enum { PART_CPU, PART_RUNNABLE, PART_ROWS };

static void thread_times_done(struct thread_times *t) {
        free(t->rows);
        free(t->weights);
        free(t->parts);
        free(t->scratch);
}

static int thread_times_init(const struct walk *w, uint32_t process, uint32_t tid,
                             struct thread_times *ret) {
        const uint32_t *waits;
        size_t n = process_index_waits(&w->index, process, &waits);
        struct thread_times t = {
                .rows = calloc(n + 1, sizeof(const struct rec_wait *)),
                .weights = calloc(n + PART_ROWS, sizeof(*t.weights)),
                .parts = calloc(n + PART_ROWS, sizeof(*t.parts)),
                .scratch = calloc(n + PART_ROWS, sizeof(*t.scratch)),
        };

        if (!t.rows || !t.weights || !t.parts || !t.scratch) {
                thread_times_done(&t);
                return -ENOMEM;
        }
        for (size_t i = 0; i < n; i++) {
                const struct rec_wait *row = w->r->waits + waits[i];

                if (row->tid != tid)
                        continue;
                if (row->syscall == REC_CALL_ON_CPU) {
                        t.weights[PART_CPU] += row->blocked_ns;
                } else {
                        t.weights[PART_RUNNABLE] += row->runnable_ns;
                        t.weights[PART_ROWS + t.n_rows] = row->blocked_ns;
                        t.rows[t.n_rows++] = row;
                        t.total_ns += row->blocked_ns;
                }
        }
        t.total_ns += t.weights[PART_CPU] + t.weights[PART_RUNNABLE];
        *ret = t;
        return 0;
}

/* The waits of the thread in this call that ended in the window. Each record stands for its weight. */
static uint64_t waited_in_window(const struct walk *w, const struct window *window,
                                 const struct rec_wait *row) {
        const uint32_t *samples;
        size_t n = process_index_samples(&w->index, window->process, &samples);
        uint64_t sum = 0;

        for (size_t i = 0; i < n; i++) {
                const struct rec_sample *s = w->r->samples + samples[i];

                if (s->tid == row->tid && !sample_is_cpu(s) && s->syscall == row->syscall &&
                    in_window(window, s))
                        sum += MIN(s->weight_ns, row->blocked_ns);
        }
        return MIN(sum, row->blocked_ns);
}

/* How much of a thread's CPU time was in the window: its samples know, if there are enough of them. Else a
 * program works first and waits for work later. */
static uint64_t cpu_in_window(const struct walk *w, const struct window *window, uint32_t tid,
                              uint64_t cpu_ns, uint64_t total_ns) {
        const struct rec_process *p = w->r->processes + window->process;
        uint64_t in, all;

        count_samples(w, window, tid, &in, &all);
        if (all >= CPU_WINDOW_SAMPLES)
                return scale(cpu_ns, in, all);
        return window->from_ns <= MAX(p->exec_ns, p->begin_ns) ? cpu_ns
                                                               : scale(cpu_ns, window->budget_ns, total_ns);
}

/* A thread that was on the path for a part of its life: first what is known to have been then, then its other
 * waits, of which only sums are known. */
static void fit_to_window(const struct walk *w, const struct window *window, uint32_t tid,
                          struct thread_times *t, uint64_t budget_ns) {
        size_t n = t->n_rows + PART_ROWS;
        uint64_t known = 0, left;

        t->parts[PART_CPU] = cpu_in_window(w, window, tid, t->weights[PART_CPU], t->total_ns);
        t->parts[PART_RUNNABLE] = scale(t->weights[PART_RUNNABLE], budget_ns, t->total_ns);
        for (size_t i = 0; i < MIN(t->n_rows, (size_t) SYSCALL_NAMES_MAX); i++) /* a thread has no more */
                t->parts[PART_ROWS + i] = waited_in_window(w, window, t->rows[i]);
        for (size_t i = 0; i < n; i++) {
                t->parts[i] = MIN(t->parts[i], budget_ns - known);
                known += t->parts[i];
                t->weights[i] -= MIN(t->parts[i], t->weights[i]);
        }
        left = budget_ns - known;
        t->weights[PART_CPU] = 0; /* all of it that was then is known */
        spread(left, t->weights, n, t->scratch);
        for (size_t i = 0; i < n; i++) {
                t->parts[i] += t->scratch[i];
                left -= t->scratch[i];
        }
        t->parts[PART_CPU] += left; /* no wait to give it to */
}

/* The thread whose work the others wait for: the one with most time neither idle nor waiting for a lock. */
static uint32_t busiest_sibling(const struct walk *w, uint32_t process, uint32_t tid) {
        const uint32_t *waits;
        size_t n = process_index_waits(&w->index, process, &waits);
        uint64_t best = 0, sum = 0;
        uint32_t busiest = tid;

        for (size_t i = 0; i < n; i++) { /* rows of one thread are adjacent */
                const struct rec_wait *row = w->r->waits + waits[i];

                if (i > 0 && w->r->waits[waits[i - 1]].tid != row->tid)
                        sum = 0;
                if (row->tid == tid || (syscall_classes(row->syscall) & CALL_IDLE))
                        continue;
                sum += row->blocked_ns;
                if (sum > best) {
                        best = sum;
                        busiest = row->tid;
                }
        }
        return busiest;
}

static void explain_thread(struct walk *w, const struct window *window, uint32_t tid);

/* Time in a futex: somebody else of the process works. */
static void explain_futex(struct walk *w, const struct window *window, uint32_t tid, uint32_t syscall,
                          uint64_t duration_ns) {
        uint32_t sibling = window->sibling ? tid : busiest_sibling(w, window->process, tid);
        struct window theirs = *window;

        if (sibling == tid || duration_ns < window->budget_ns / 100 * FUTEX_FOLLOW_PERCENT) {
                add_wait(w, window->process, syscall, duration_ns, 0);
                return;
        }
        theirs.budget_ns = duration_ns;
        theirs.sibling = true;
        explain_thread(w, &theirs, sibling);
}

static void explain_blocked(struct walk *w, const struct window *window, uint32_t tid,
                            const struct thread_times *t) {
        uint64_t for_children = 0, most = 0;
        uint32_t child_call = REC_CALL_NONE;

        for (size_t i = 0; i < t->n_rows; i++) {
                const struct rec_wait *row = t->rows[i];
                uint64_t part = t->parts[PART_ROWS + i];

                if (!window->sibling && is_wait_for_child(w, window->process, row->syscall)) {
                        for_children += part;
                        if (part > most) {
                                most = part;
                                child_call = row->syscall;
                        }
                } else if (syscall_classes(row->syscall) & CALL_FUTEX) {
                        explain_futex(w, window, tid, row->syscall, part);
                } else {
                        add_wait(w, window->process, row->syscall, part,
                                 scale(part, MIN(row->io_ns, row->blocked_ns), row->blocked_ns));
                }
        }
        if (for_children > 0)
                explain_children(w, window, child_call, for_children);
}

/* Rows are missing for this much of the time: the thread is still blocked, or events were lost. */
static void explain_shortfall(struct walk *w, const struct window *window, uint64_t missing_ns) {
        const uint64_t *lost = w->r->start->lost;
        bool lossy = lost[REC_LOST_WAITS] + lost[REC_LOST_WAIT_KEYS] + lost[REC_LOST_EVENTS] +
                             lost[REC_LOST_PROCESSES] >
                     0;

        if (lossy)
                add_piece(w, (struct piece){ .duration_ns = missing_ns,
                                             .kind = PIECE_NOT_OBSERVED,
                                             .syscall = REC_CALL_NONE,
                                             .process = window->process });
        else
                add_wait(w, window->process, REC_CALL_NONE, missing_ns, 0);
}

static void explain_thread(struct walk *w, const struct window *window, uint32_t tid) {
        _cleanup_(thread_times_done) struct thread_times t = {};
        uint64_t missing = 0, tolerated = MAX(window->budget_ns / 100 * SHORTFALL_PERCENT,
                                              SHORTFALL_USEC * NSEC_PER_USEC);

        if (w->error < 0)
                return;
        w->error = thread_times_init(w, window->process, tid, &t);
        if (w->error < 0)
                return;
        if (t.total_ns < window->budget_ns && window->budget_ns - t.total_ns > tolerated)
                missing = window->budget_ns - t.total_ns;

        if (t.total_ns > window->budget_ns && t.total_ns - window->budget_ns > tolerated)
                fit_to_window(w, window, tid, &t, window->budget_ns);
        else
                spread(window->budget_ns - missing, t.weights, t.n_rows + PART_ROWS, t.parts);
        if (t.parts[PART_CPU] > 0)
                add_cpu(w, window, tid, t.parts[PART_CPU]);
        add_piece(w, (struct piece){ .duration_ns = t.parts[PART_RUNNABLE],
                                     .kind = PIECE_RUNNABLE,
                                     .syscall = REC_CALL_NONE,
                                     .process = window->process });
        explain_blocked(w, window, tid, &t);
        explain_shortfall(w, window, missing);
}

/* No exact times: CPU samples count for their period, children for their lives, the rest was not seen. */
static void explain_by_samples(struct walk *w, const struct window *window) {
        const uint32_t *samples, *children;
        uint32_t tid = w->r->processes[window->process].pid;
        uint64_t in, all, cpu = 0, left;

        (void) process_index_samples(&w->index, window->process, &samples);
        count_samples(w, window, tid, &in, &all);
        if (in > 0)
                cpu = MIN(in * process_index_period_ns(&w->index), window->budget_ns);
        if (cpu > 0)
                add_cpu(w, window, tid, cpu);
        left = window->budget_ns - cpu;
        if (process_index_children(&w->index, window->process, &children) > 0)
                explain_children(w, window, REC_CALL_NONE, left);
        else
                add_piece(w, (struct piece){ .duration_ns = left,
                                             .kind = PIECE_NOT_OBSERVED,
                                             .syscall = REC_CALL_NONE,
                                             .process = window->process });
}

static void explain_process(struct walk *w, const struct window *window) {
        uint32_t tid;

        if (window->depth > FOLLOW_DEPTH_MAX)
                add_wait(w, window->process, REC_CALL_NONE, window->budget_ns, 0);
        else if (process_index_main_thread(&w->index, window->process, &tid))
                explain_thread(w, window, tid);
        else
                explain_by_samples(w, window);
}

/* ---- the processes that systemd waited for, one after the other ---- */

static void add_plain(struct walk *w, enum piece_kind kind, uint64_t from, uint64_t to) {
        uint64_t armed = clamp(w->r->start->armed_ns, from, MAX(from, to));

        if (to <= from)
                return;
        if (kind != PIECE_QUEUE && armed > from) { /* who knows who was there */
                add_piece(w, (struct piece){ .duration_ns = armed - from,
                                             .kind = PIECE_NOT_OBSERVED,
                                             .syscall = REC_CALL_NONE,
                                             .process = REC_NONE });
                from = armed;
        }
        add_piece(w, (struct piece){ .duration_ns = to - from,
                                     .kind = kind,
                                     .syscall = REC_CALL_NONE,
                                     .process = REC_NONE });
}

static void add_process(struct walk *w, uint32_t process, uint64_t from, uint64_t to) {
        if (to > from)
                explain_process(w, &(struct window){ .process = process,
                                                     .from_ns = from,
                                                     .to_ns = to,
                                                     .budget_ns = to - from });
}

/* Between the end of the process that was waited for and the next one: a daemon that a forking service left
 * behind is what systemd waits for (its PID file, its name on the bus), else it is systemd's own time. */
static void add_gap(struct walk *w, uint32_t previous, uint64_t from, uint64_t to) {
        uint32_t daemon;

        if (to <= from)
                return;
        if (previous != REC_NONE && process_index_survivor(&w->index, previous, from, &daemon)) {
                uint64_t until =
                        clamp(critical_path_process_end(&w->path, w->r->processes + daemon), from, to);

                add_process(w, daemon, from, until);
                from = until;
        }
        add_plain(w, PIECE_SYSTEMD, from, to);
}

/* The first READY=1 of a start that it ended; else T1. With it on its way nothing of the main process is waited
 * for any more. */
static uint64_t ready_time(const struct walk *w) {
        uint64_t first = w->path.end_ns;

        for (uint32_t i = 0; i < w->r->n_milestones && w->r->start->result == REC_RESULT_ACTIVE; i++)
                if (w->r->milestones[i].kind == REC_MILESTONE_READY_SENT)
                        first = MIN(first, w->r->milestones[i].time_ns);
        return first;
}

static void follow(struct walk *w, uint64_t begin) {
        const uint32_t *tops;
        size_t n = process_index_tops(&w->index, &tops);
        uint64_t cursor = begin, ready_ns = ready_time(w);
        uint32_t previous = REC_NONE;
        bool executed = false;

        for (size_t i = 0; i < n; i++) {
                const struct rec_process *p = w->r->processes + tops[i];
                uint64_t from = clamp(process_begin(w, p), cursor, w->path.end_ns);
                uint64_t end = clamp(critical_path_process_end(&w->path, p), from, w->path.end_ns);
                uint64_t exec = p->exec_ns > 0 ? clamp(p->exec_ns, from, end) : end;
                uint64_t next = i + 1 < n ? process_begin(w, w->r->processes + tops[i + 1]) : w->path.end_ns;
                bool ready = ready_ns > exec && ready_ns < next;
                uint64_t to = clamp(ready ? ready_ns : next, from, end);

                exec = MIN(exec, to);

                if (executed)
                        add_gap(w, previous, cursor, from);
                else
                        add_plain(w, PIECE_BEFORE_EXEC, cursor, from);
                add_plain(w, PIECE_BEFORE_EXEC, from, exec);
                if (!executed && p->exec_ns > 0)
                        w->path.before_exec_ns = exec - MIN(begin, exec);
                executed = executed || p->exec_ns > 0;
                add_process(w, tops[i], exec, to);
                cursor = to;
                previous = ready ? REC_NONE : tops[i];
        }
        add_gap(w, previous, cursor, w->path.end_ns);
}

/* A thread that is throttled is ready: the kernel counts for the cgroup how long, summed over CPUs. */
static void split_throttled(struct walk *w) {
        const char *text = recording_property(w->r, "cgroup.cpu.throttled_usec");
        uint64_t throttled = text ? strtoull(text, NULL, 10) : 0, runnable = 0;
        size_t n = w->path.n_pieces;

        throttled = MIN(throttled, UINT64_MAX / NSEC_PER_USEC) * NSEC_PER_USEC;
        for (size_t i = 0; i < n; i++)
                if (w->path.pieces[i].kind == PIECE_RUNNABLE)
                        runnable += w->path.pieces[i].duration_ns;
        throttled = MIN(throttled, runnable);
        for (size_t i = 0; i < n && throttled > 0 && w->error >= 0; i++) {
                struct piece part = w->path.pieces[i];

                if (part.kind != PIECE_RUNNABLE)
                        continue;
                part.kind = PIECE_THROTTLED;
                part.duration_ns = (uint64_t) ((unsigned __int128) part.duration_ns * throttled / runnable);
                add_piece(w, part);
                if (w->error >= 0)
                        w->path.pieces[i].duration_ns -= part.duration_ns;
        }
}

int critical_path_init(const struct recording *r, struct critical_path *ret) {
        const struct rec_start *s = r->start;
        struct walk w = { .r = r };
        uint64_t begin;

        w.path.origin_ns = s->queued_ns > 0 && (s->begin_ns == 0 || s->queued_ns < s->begin_ns)
                                   ? s->queued_ns
                                   : s->begin_ns;
        w.path.end_ns = MAX(s->end_ns, w.path.origin_ns);
        begin = s->begin_ns > 0 ? clamp(s->begin_ns, w.path.origin_ns, w.path.end_ns) : w.path.end_ns;
        w.path.queue_ns = begin - w.path.origin_ns;

        w.error = process_index_init(r, &w.index);
        if (w.error < 0)
                return w.error;
        add_plain(&w, PIECE_QUEUE, w.path.origin_ns, begin);
        follow(&w, begin);
        split_throttled(&w);
        process_index_done(&w.index);
        if (w.error < 0) {
                critical_path_done(&w.path);
                return w.error;
        }
        *ret = w.path;
        return 0;
}

void critical_path_done(struct critical_path *c) {
        free(c->pieces);
        *c = CRITICAL_PATH_NULL;
}
