/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/macro.h"
#include "tests/unwind/debugger.h"
#include "tests/unwind/oracle.h"
#include "tests/unwind/sampler.h"

/*
 * compare [OPTIONS] COMMAND…: unwinds many stacks of a command with symbolize/unwind and with libdwfl and
 * compares them frame by frame, as far as ours were found by CFI. One line of figures, and the first
 * differences.
 */

static const char *const end_names[REC_STACK_END_MAX] = {
        "complete", "no-cfi", "copy-ended", "read-fault", "depth", "no-module", "compat", "none",
};
static const char *const how_names[REC_HOW_MAX] = { "regs", "cfi", "fp", "leaf", "signal" };

struct comparison {
        /* options */
        double least_complete, most_wrong; /* per cent */
        unsigned least_samples, show;
        uint32_t fine_ends; /* bit per end that counts as complete */
        bool oracle;
        unsigned debugger, debugger_every; /* at most so many stacks are shown to gdb, one in so many */

        unsigned samples, fine, frames, compared, different, shorter, longer, shown;
        unsigned ends[REC_STACK_END_MAX], how[REC_HOW_MAX];
        unsigned debugged, debugger_different;
        unsigned right; /* of the differences to libdwfl: ours, by gdb */
        struct {
                uint64_t pc; /* of the frame below the one that differs */
                const char *verdict;
        } judged[40];
        size_t judged_count;
};

static void print_address(struct sampler *s, struct process *p, uint64_t address) {
        struct unwind_mapping m;

        if (!process_find(p, address, &m))
                printf("%" PRIx64 " ?", address);
        else if (m.module == REC_NONE)
                printf("%" PRIx64 " anonymous", address);
        else
                printf("%s+0x%" PRIx64, sampler_module(s, m.module)->path, address - m.bias);
}

static void show(struct comparison *c, struct sampler *s, struct process *p, const char *what,
                 const struct unwind_frame *ours, size_t count, uint32_t end, const uint64_t *theirs,
                 size_t their_count) {
        if (c->shown++ >= c->show)
                return;

        printf("# %s; ours ends with %s\n", what, end_names[end]);
        for (size_t i = 0; i < MAX(count, their_count) && i < 40; i++) {
                printf("#   %2zu ", i);
                if (i < count) {
                        print_address(s, p, ours[i].address);
                        printf(" (%s)", how_names[ours[i].how]);
                }
                if (i < their_count && (i >= count || theirs[i] != ours[i].address)) {
                        printf("   theirs: ");
                        print_address(s, p, theirs[i]);
                }
                printf("\n");
        }
}

/* libdwfl takes the pc itself in a system call, and the byte before a signal trampoline. */
static bool same_address(uint64_t ours, uint64_t theirs) {
        return ours == theirs || ours == theirs - 1 || ours == theirs + 1;
}

static bool is_code(struct process *p, uint64_t address) {
        struct unwind_mapping m;

        return process_find(p, address, &m);
}

static size_t ask_debugger(const struct sampler *s, const struct process *p,
                           const struct unwind_stack *stack, uint64_t ret[UNWIND_DEPTH_MAX]) {
        size_t count = debugger_unwind(s, p, stack, ret, UNWIND_DEPTH_MAX);

        for (size_t i = 1; i < count; i++)
                ret[i]--;
        return count;
}

static const char ours_right[] = "ours is right";
/* Where the CFI of an epilogue is missing, gdb and libdwfl take any word for a return address. */
static const char no_code[] = "lost, no code is there";

/* Frame `at` is not the same in ours and in libdwfl's (0: none): which of the two does gdb have? At code that
 * was judged before, the answer is the same. */
static const char *judge(struct comparison *c, struct sampler *s, struct process *p,
                         const struct unwind_stack *stack, size_t at, uint64_t ours, uint64_t before,
                         uint64_t theirs) {
        uint64_t frames[UNWIND_DEPTH_MAX] = {};

        for (size_t i = 0; i < c->judged_count; i++)
                if (c->judged[i].pc == before)
                        return c->judged[i].verdict;
        if (c->debugger == 0 || c->judged_count == ARRAY_SIZE(c->judged))
                return "not asked";

        c->judged[c->judged_count].pc = before;
        if (ask_debugger(s, p, stack, frames) == 0)
                c->judged[c->judged_count].verdict = "no answer";
        else if (ours ? same_address(frames[at], ours) : !is_code(p, frames[at]))
                c->judged[c->judged_count].verdict = ours_right;
        else if (ours && !is_code(p, frames[at]))
                c->judged[c->judged_count].verdict = no_code;
        else if (same_address(frames[at], theirs))
                c->judged[c->judged_count].verdict = "libdwfl is right";
        else
                c->judged[c->judged_count].verdict = "neither is right";
        return c->judged[c->judged_count++].verdict;
}

/* Lists a difference. ours: NULL when it has ended. */
static void list(struct comparison *c, struct sampler *s, struct process *p,
                 const struct unwind_stack *stack, size_t at, const struct unwind_frame *ours,
                 uint64_t before, uint64_t theirs) {
        const char *verdict = judge(c, s, p, stack, at, ours ? ours->address : 0, before, theirs);

        if (verdict == ours_right || verdict == no_code)
                c->right++;
        printf("# sample %u, frame %zu, below ", c->samples, at);
        print_address(s, p, before);
        printf(": ");
        if (ours)
                print_address(s, p, ours->address);
        else
                printf("end");
        printf(", libdwfl ");
        print_address(s, p, theirs);
        printf(", by gdb %s\n", verdict);
}

static void compare(struct comparison *c, struct sampler *s, struct process *p,
                    const struct unwind_stack *stack, const struct unwind_frame *ours, size_t count,
                    uint32_t end) {
        uint64_t theirs[UNWIND_DEPTH_MAX];
        struct oracle *o = oracle_get(p);
        bool complete;
        size_t their_count, i;

        if (!o)
                return;
        their_count = oracle_unwind(o, stack, theirs, UNWIND_DEPTH_MAX, &complete);
        for (i = 0; i < count && i < their_count; i++) {
                if (ours[i].how == REC_HOW_FRAME_POINTER || ours[i].how == REC_HOW_LEAF)
                        return;
                c->compared++;
                if (!same_address(ours[i].address, theirs[i])) {
                        c->different++;
                        list(c, s, p, stack, i, &ours[i], ours[i ? i - 1 : 0].address, theirs[i]);
                        return;
                }
        }
        /* Where ours ends libdwfl may take anything on the stack for an address: it is wrong if no code
         * is there. */
        if (i == count && their_count > count && is_code(p, theirs[count])) {
                c->shorter++;
                list(c, s, p, stack, i, NULL, ours[i ? i - 1 : 0].address, theirs[i]);
        } else if (complete && count > their_count)
                c->longer++;
}

/* gdb looks at a core file of the sample, with the means it has: also at code, where CFI ends. */
static void compare_with_debugger(struct comparison *c, struct sampler *s, struct process *p,
                                  const struct unwind_stack *stack, const struct unwind_frame *ours,
                                  size_t count, uint32_t end) {
        uint64_t theirs[UNWIND_DEPTH_MAX];
        size_t their_count, i;

        if (c->debugged == c->debugger || c->samples % c->debugger_every != 0)
                return;
        their_count = ask_debugger(s, p, stack, theirs);
        if (their_count == 0)
                return;

        c->debugged++;
        for (i = 0; i < count && i < their_count; i++) {
                if (ours[i].how == REC_HOW_FRAME_POINTER || ours[i].how == REC_HOW_LEAF)
                        return;
                if (!same_address(ours[i].address, theirs[i]))
                        break;
        }
        /* A stack that was cut off shows what it has. */
        if (i < count || (end == REC_STACK_COMPLETE && i < their_count && is_code(p, theirs[i]))) {
                c->debugger_different++;
                show(c, s, p, "gdb says", ours, count, end, theirs, their_count);
        }
}

static void on_sample(void *userdata, struct sampler *s, struct process *p,
                      const struct unwind_stack *stack) {
        struct comparison *c = userdata;
        struct unwind_frame frames[UNWIND_DEPTH_MAX];
        size_t count;
        uint32_t end = unwind(stack, process_find, p, frames, ARRAY_SIZE(frames), &count);

        c->samples++;
        c->frames += count;
        c->ends[end]++;
        for (size_t i = 0; i < count; i++)
                c->how[frames[i].how]++;
        if (c->fine_ends & UINT32_C(1) << end)
                c->fine++;
        else
                show(c, s, p, "not complete", frames, count, end, NULL, 0);
        if (c->oracle)
                compare(c, s, p, stack, frames, count, end);
        if (c->debugger > 0)
                compare_with_debugger(c, s, p, stack, frames, count, end);
}

static int report(const struct comparison *c) {
        double complete = c->samples ? 100.0 * c->fine / c->samples : 0;
        double wrong = c->samples ? 100.0 * (c->different + c->shorter - c->right) / c->samples : 0;
        bool ok = c->samples >= c->least_samples && complete >= c->least_complete &&
                  wrong <= c->most_wrong && c->debugged >= MIN(c->debugger, 1u) &&
                  c->debugger_different == 0;

        printf("samples %u, complete %.2f %%, frames %.1f, compared %u, different %u, shorter %u (of both "
               "%u right "
               "by gdb), longer %u, ends",
               c->samples, complete, c->samples ? (double) c->frames / c->samples : 0, c->compared,
               c->different, c->shorter, c->right, c->longer);
        for (size_t i = 0; i < REC_STACK_END_MAX; i++)
                if (c->ends[i])
                        printf(" %s=%u", end_names[i], c->ends[i]);
        printf(", how");
        for (size_t i = 0; i < REC_HOW_MAX; i++)
                if (c->how[i])
                        printf(" %s=%u", how_names[i], c->how[i]);
        if (c->debugged)
                printf(", by gdb %u, different %u", c->debugged, c->debugger_different);
        printf("\n");
        return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

static uint32_t parse_end(const char *name) {
        for (uint32_t i = 0; i < REC_STACK_END_MAX; i++)
                if (streq(end_names[i], name))
                        return UINT32_C(1) << i;
        fprintf(stderr, "no such end: %s\n", name);
        exit(2);
}

int main(int argc, char **argv) {
        static const struct option options[] = {
                { "samples", required_argument, NULL, 's' },
                { "steps", required_argument, NULL, 'p' },
                { "gap-us", required_argument, NULL, 'g' },
                { "complete", required_argument, NULL, 'c' },
                { "wrong", required_argument, NULL, 'w' },
                { "least", required_argument, NULL, 'l' },
                { "show", required_argument, NULL, 'n' },
                { "fine", required_argument, NULL, 'f' },
                { "stack-bytes", required_argument, NULL, 'b' },
                { "second", no_argument, NULL, '2' },
                { "no-oracle", no_argument, NULL, 'o' },
                { "gdb", required_argument, NULL, 'd' },
                {},
        };
        struct sampler_options how = { .samples = 1000, .gap_us = 400, .stack_bytes = STACK_COPY_MAX };
        struct comparison c = {
                .least_complete = 99,
                .most_wrong = 0.5,
                .least_samples = 100,
                .show = 3,
                .fine_ends = 1,
                .oracle = true,
                .debugger_every = 25,
        };
        int k;

        while ((k = getopt_long(argc, argv, "+", options, NULL)) >= 0)
                switch (k) {
                case 's': how.samples = (unsigned) strtoul(optarg, NULL, 10); break;
                case 'p': how.steps = (unsigned) strtoul(optarg, NULL, 10); break;
                case 'g': how.gap_us = (unsigned) strtoul(optarg, NULL, 10); break;
                case 'b': how.stack_bytes = MIN(strtoul(optarg, NULL, 10), (size_t) STACK_COPY_MAX); break;
                case 'c': c.least_complete = strtod(optarg, NULL); break;
                case 'w': c.most_wrong = strtod(optarg, NULL); break;
                case 'l': c.least_samples = (unsigned) strtoul(optarg, NULL, 10); break;
                case 'n': c.show = (unsigned) strtoul(optarg, NULL, 10); break;
                case 'f': c.fine_ends |= parse_end(optarg); break;
                case '2': how.second = true; break;
                case 'o': c.oracle = false; break;
                case 'd': c.debugger = (unsigned) strtoul(optarg, NULL, 10); break;
                default: return 2;
                }
        if (optind == argc || how.gap_us == 0)
                return 2;

        k = sampler_run(argv + optind, &how, on_sample, &c);
        if (k < 0) {
                fprintf(stderr, "%s: %s\n", argv[optind], strerror(-k));
                return 2;
        }
        return report(&c);
}
