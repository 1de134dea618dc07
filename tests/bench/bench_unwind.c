/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/macro.h"
#include "tests/unwind/oracle.h"
#include "tests/unwind/sampler.h"

/*
 * bench_unwind COMMAND…: takes stacks of a running command, then unwinds all of them again and again with
 * ours and with libdwfl kept warm, by turns. Prints how complete they are, and nanoseconds a frame, medians of the
 * rounds.
 */

enum { STACKS_MAX = 400, ROUNDS = 15 };

struct stacks {
        struct unwind_stack stack[STACKS_MAX];
        size_t count;
        unsigned generation;
        pid_t pid;
        bool done;
};

/* Of CPU time: others work on the machine, too. */
static double now_ns(void) {
        struct timespec t;

        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
        return (double) t.tv_sec * 1e9 + (double) t.tv_nsec;
}

static double unwind_all(const struct stacks *s, struct process *p) {
        struct unwind_frame frames[UNWIND_DEPTH_MAX];
        size_t total = 0, count;
        double begin = now_ns();

        for (size_t i = 0; i < s->count; i++) {
                unwind(&s->stack[i], process_find, p, frames, ARRAY_SIZE(frames), &count);
                total += count;
        }
        return (now_ns() - begin) / (double) total;
}

static double unwind_all_by_oracle(const struct stacks *s, struct oracle *o) {
        uint64_t pcs[UNWIND_DEPTH_MAX];
        size_t total = 0;
        bool complete;
        double begin = now_ns();

        for (size_t i = 0; i < s->count; i++)
                total += oracle_unwind(o, &s->stack[i], pcs, ARRAY_SIZE(pcs), &complete);
        return (now_ns() - begin) / (double) total;
}

static bool read_word(const struct unwind_stack *s, uint64_t address, uint64_t *ret) {
        uint64_t offset = address - s->regs[DWARF_RSP];

        if (address < s->regs[DWARF_RSP] || s->size < sizeof(*ret) || offset > s->size - sizeof(*ret))
                return false;
        memcpy(ret, s->bytes + offset, sizeof(*ret));
        return true;
}

/* What a profiler sees that follows frame pointers, as the kernel does. */
static size_t by_frame_pointers(const struct unwind_stack *s, struct process *p) {
        uint64_t rbp = s->regs[DWARF_RBP], next, caller;
        struct unwind_mapping m;
        size_t count = 1;

        while (read_word(s, rbp, &next) && read_word(s, rbp + 8, &caller) &&
               process_find(p, caller - 1, &m)) {
                count++;
                if (next <= rbp)
                        break;
                rbp = next;
        }
        return count;
}

static void count_frames(const struct stacks *s, struct process *p) {
        struct unwind_frame frames[UNWIND_DEPTH_MAX];
        size_t total = 0, by_pointers = 0, complete = 0, count;

        for (size_t i = 0; i < s->count; i++) {
                complete += unwind(&s->stack[i], process_find, p, frames, ARRAY_SIZE(frames), &count) ==
                            REC_STACK_COMPLETE;
                total += count;
                by_pointers += by_frame_pointers(&s->stack[i], p);
        }
        printf("%zu stacks: complete %.2f%%, %.1f frames by CFI, %.1f by frame pointers\n", s->count,
               100.0 * (double) complete / (double) s->count, (double) total / (double) s->count,
               (double) by_pointers / (double) s->count);
}

static int by_value(const void *a, const void *b) {
        const double *x = a, *y = b;

        return (*x > *y) - (*x < *y);
}

static void measure(struct stacks *s, struct process *p) {
        struct oracle *o = oracle_get(p);
        double ours[ROUNDS], theirs[ROUNDS];

        s->done = true;
        if (!o)
                return;
        count_frames(s, p);
        unwind_all_by_oracle(s, o);
        unwind_all(s, p);
        for (size_t i = 0; i < ROUNDS; i++) {
                ours[i] = unwind_all(s, p);
                theirs[i] = unwind_all_by_oracle(s, o);
        }
        qsort(ours, ROUNDS, sizeof(*ours), by_value);
        qsort(theirs, ROUNDS, sizeof(*theirs), by_value);
        printf("%zu stacks: ours %.0f ns a frame (%.0f to %.0f), libdwfl %.0f (%.0f to %.0f), ratio %.1f\n",
               s->count, ours[ROUNDS / 2], ours[ROUNDS / 4], ours[ROUNDS * 3 / 4], theirs[ROUNDS / 2],
               theirs[ROUNDS / 4], theirs[ROUNDS * 3 / 4], theirs[ROUNDS / 2] / ours[ROUNDS / 2]);
}

static void forget(struct stacks *s) {
        for (size_t i = 0; i < s->count; i++)
                free((void *) s->stack[i].bytes);
        s->count = 0;
}

/* Keeps stacks of one process for as long as its mappings stay as they are. */
static void keep(void *userdata, struct sampler *sampler, struct process *p,
                 const struct unwind_stack *stack) {
        struct stacks *s = userdata;
        uint8_t *copy;

        if (s->done)
                return;
        if (s->pid != p->pid || s->generation != p->generation) {
                forget(s);
                s->pid = p->pid;
                s->generation = p->generation;
        }
        copy = malloc(stack->size + 1);
        memcpy(copy, stack->bytes, stack->size);
        s->stack[s->count] = *stack;
        s->stack[s->count++].bytes = copy;
        if (s->count == STACKS_MAX)
                measure(s, p);
}

/* Time and size of the tables of one file. */
static void measure_table(const char *path) {
        double times[5];
        size_t bytes = 0;
        FILE *f = fopen(path, "re");
        struct elf_image *image;

        if (!f || elf_image_new(fileno(f), &image) < 0) {
                printf("%s: not here\n", path);
                return;
        }
        for (size_t i = 0; i < ARRAY_SIZE(times); i++) {
                struct unwind_table *t;
                double begin = now_ns();

                if (unwind_table_new(image, NULL, &t) < 0)
                        return;
                times[i] = (now_ns() - begin) / 1e6;
                bytes = unwind_table_bytes(t);
                unwind_table_free(t);
        }
        qsort(times, ARRAY_SIZE(times), sizeof(*times), by_value);
        printf("%s: table in %.1f ms, %zu bytes\n", path, times[2], bytes);
        elf_image_free(image);
        fclose(f);
}

int main(int argc, char **argv) {
        struct sampler_options options = { .samples = 20 * STACKS_MAX,
                                           .gap_us = 300,
                                           .stack_bytes = STACK_COPY_MAX };
        struct stacks s = {};

        if (argc == 3 && streq(argv[1], "--table")) {
                measure_table(argv[2]);
                return 0;
        }
        if (argc < 2 || sampler_run(argv + 1, &options, keep, &s) < 0)
                return 2;
        if (!s.done)
                printf("only %zu stacks: the command is too short\n", s.count);
        forget(&s);
        return 0;
}
