/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/macro.h"
#include "daemon/probe.h"
#include "tests/bpf/actions.h"
#include "tests/bpf/harness.h"

/* Waits and the stacks that waited. */

#define PERIOD_NS (NSEC_PER_SEC / FREQUENCY)

static bool is_complete(const struct recording *r, const struct rec_sample *sample) {
        return sample->stack != REC_NONE && r->stacks[sample->stack].end == REC_STACK_COMPLETE;
}

/* The sample of a wait in this call with this function on its complete stack; NULL: none. */
static const struct rec_sample *find_wait(const struct recording *r, uint32_t call, const char *function) {
        for (uint32_t i = 0; r && i < r->n_samples; i++) {
                const struct rec_sample *sample = &r->samples[i];

                if (sample->kind == REC_SAMPLE_WAIT && sample->syscall == call && is_complete(r, sample) &&
                    has_frame(r, sample->stack, function))
                        return sample;
        }
        return NULL;
}

void waits_have_their_stacks(void) {
        static const struct {
                uint32_t call;
                const char *function;
        } waits[] = {
                { SYS_read, "wait_in_read" },   { SYS_futex, "wait_in_futex" },
                { SYS_poll, "wait_in_poll" },   { SYS_clock_nanosleep, "wait_in_nanosleep" },
                { SYS_flock, "wait_in_flock" }, { SYS_connect, "wait_in_connect" },
        };
        const struct rec_sample *sample;
        struct unit unit;

        name_unit(&unit, "waits.service");
        arm(&unit);
        make_cgroup(unit.dir);
        run(unit.dir, "wait", "60");
        finish(&unit);

        for (size_t i = 0; i < ARRAY_SIZE(waits); i++) {
                sample = find_wait(unit.recording, waits[i].call, waits[i].function);
                if (!expect(sample, "no complete stack of %s", waits[i].function))
                        continue;
                expect(sample->blocked_ns >= 50 * NSEC_PER_MSEC && sample->weight_ns >= sample->blocked_ns,
                       "%s: blocked for %llu ns, weight %llu", waits[i].function,
                       (unsigned long long) sample->blocked_ns, (unsigned long long) sample->weight_ns);
                expect(has_frame(unit.recording, sample->kernel_stack, "do_syscall_64") ||
                               !(unit.start.features & PROBE_TASK_REGS),
                       "%s has no kernel stack with names", waits[i].function);
        }
        sample = find_wait(unit.recording, SYS_read, "wait_in_read");
        expect(sample && strstr(recording_text(unit.recording, sample->waker_comm), "waker"),
               "who woke the reader is not known");
        expect_nothing_lost(&unit);
        done(&unit);
}

void major_faults_have_their_stacks(void) {
        uint64_t weight = 0, named = 0;
        struct unit unit;

        name_unit(&unit, "faults.service");
        arm(&unit);
        make_cgroup(unit.dir);
        run(unit.dir, "fault", "64");
        finish(&unit);

        for (uint32_t i = 0; unit.recording && i < unit.recording->n_samples; i++) {
                const struct rec_sample *sample = &unit.recording->samples[i];

                if (sample->kind != REC_SAMPLE_FAULT)
                        continue;
                weight += sample->weight_ns;
                if (is_complete(unit.recording, sample) &&
                    has_frame(unit.recording, sample->stack, "touch_pages"))
                        named += sample->weight_ns;
        }
        expect(sum_waits(unit.recording, REC_CALL_FAULT) >= PERIOD_NS,
               "the file was not read from a disk: %llu ns in faults",
               (unsigned long long) sum_waits(unit.recording, REC_CALL_FAULT));
        expect(named > 0 && named * 100 >= weight * 99, "%llu of %llu ns in faults have their stack",
               (unsigned long long) named, (unsigned long long) weight);
        done(&unit);
}

static void check_killed_by(int signal) {
        const struct rec_sample *sample;
        struct unit unit;
        pid_t pid;

        name_unit(&unit, "killed.service");
        arm(&unit);
        make_cgroup(unit.dir);
        pid = start(unit.dir, "pause", "0");
        wait_until_in_call(pid, SYS_pause);
        usleep(50000); /* the wait that is looked for */
        kill(pid, signal);
        expect(WTERMSIG(wait_for(pid)) == signal, "it was not killed by %d", signal);
        finish(&unit);

        sample = find_wait(unit.recording, SYS_pause, "wait_for_the_end");
        expect(sample && sample->blocked_ns >= 40 * NSEC_PER_MSEC,
               "no stack of the thread that signal %d killed", signal);
        done(&unit);
}

void killed_threads_have_their_stacks(void) {
        check_killed_by(SIGTERM);
        check_killed_by(SIGKILL);
}

void threads_blocked_at_the_end_have_their_stacks(void) {
        const struct rec_sample *sample;
        struct unit unit;
        pid_t pid;

        name_unit(&unit, "blocked.service");
        arm(&unit);
        make_cgroup(unit.dir);
        pid = start(unit.dir, "pause", "0");
        wait_until_in_call(pid, SYS_pause);
        usleep(50000);
        finish(&unit);
        kill(pid, SIGKILL);
        wait_for(pid);

        sample = find_wait(unit.recording, SYS_pause, "wait_for_the_end");
        expect(sample && sample->flags & REC_SAMPLE_OPEN && sample->blocked_ns >= 40 * NSEC_PER_MSEC,
               "no stack of the thread that is still blocked");
        done(&unit);
}

void waits_before_an_exec_say_so(void) {
        const struct recording *r;
        struct unit unit;
        uint64_t weight = 0;

        name_unit(&unit, "exec.service");
        arm(&unit);
        make_cgroup(unit.dir);
        run(unit.dir, "exec", "60");
        finish(&unit);

        r = unit.recording;
        for (uint32_t i = 0; r && i < r->n_samples; i++) {
                const struct rec_sample *sample = &r->samples[i];

                if (sample->kind != REC_SAMPLE_WAIT || sample->syscall != SYS_execve)
                        continue;
                weight += sample->weight_ns;
                /* Another wait in the same call, for the disk, may have shown the old image. */
                expect(sample->flags & REC_SAMPLE_EXEC || has_frame(r, sample->stack, "exec_leased"),
                       "a wait in execve neither says so nor has its stack");
                expect(!(sample->flags & REC_SAMPLE_EXEC) || sample->stack == REC_NONE ||
                               r->stacks[sample->stack].count == 0,
                       "a wait of the old image has a stack of the new one");
        }
        expect(weight >= 40 * NSEC_PER_MSEC, "%llu ns of waits in execve are told",
               (unsigned long long) weight);
        done(&unit);
}

/* Not one record for each switch, and the stack of the one in so many is right. */
void a_storm_of_switches_is_bounded(void) {
        uint64_t began, took, switches = 0, fine = 0, waits = 0, blocked;
        struct session_stat stat;
        struct rusage before, after;
        struct unit unit;

        name_unit(&unit, "storm.service");
        arm(&unit);
        make_cgroup(unit.dir);
        began = now_ns();
        getrusage(RUSAGE_CHILDREN, &before);
        run(unit.dir, "ping-pong", "100000");
        getrusage(RUSAGE_CHILDREN, &after);
        took = now_ns() - began;
        blocked = (uint64_t) (after.ru_nvcsw - before.ru_nvcsw);
        capture_stat(unit.capture, &stat);
        finish(&unit);

        for (uint32_t i = 0; unit.recording && i < unit.recording->n_waits; i++)
                if (unit.recording->waits[i].syscall == SYS_read)
                        switches += unit.recording->waits[i].count;
        for (uint32_t i = 0; unit.recording && i < unit.recording->n_samples; i++) {
                const struct rec_sample *sample = &unit.recording->samples[i];

                if (sample->kind != REC_SAMPLE_WAIT || sample->syscall != SYS_read)
                        continue;
                waits++;
                fine += is_complete(unit.recording, sample) &&
                        has_frame(unit.recording, sample->stack, "play");
        }
        /* With a CPU for each, one has often answered before the other blocks: the kernel's own count is right. */
        expect(switches >= 1000 && switches * 100 >= blocked * 95 && switches <= blocked,
               "%llu waits were counted of %llu", (unsigned long long) switches,
               (unsigned long long) blocked);
        expect(waits > 0 && waits <= 2 * (took / PERIOD_NS + 2), "%llu records in %llu ms",
               (unsigned long long) waits, (unsigned long long) (took / NSEC_PER_MSEC));
        expect(fine * 100 >= waits * 99, "%llu of %llu stacks are right", (unsigned long long) fine,
               (unsigned long long) waits);
        expect(stat.waits >= waits, "%llu records were made, %llu came", (unsigned long long) stat.waits,
               (unsigned long long) waits);
        expect_nothing_lost(&unit);
        done(&unit);
}

/* ---- the bytes themselves: only the probe, and no collector, sees them ---- */

struct marks {
        uint64_t own, foreign;
        uint32_t events;
};

static void look_for_marks(void *userdata, const struct event_head *head, size_t bytes) {
        const struct event_sample *event = (const struct event_sample *) head;
        struct marks *marks = userdata;
        const uint64_t *word = (const uint64_t *) (event + 1);

        if (head->type != EVENT_SAMPLE && head->type != EVENT_WAIT)
                return;
        marks->events++;
        for (size_t i = 0; i < (bytes - sizeof(*event)) / sizeof(*word); i++) {
                if ((word[i] & UINT64_C(0xffffffff00000000)) != MARK)
                        continue;
                if ((uint32_t) word[i] == head->tgid)
                        marks->own++;
                else
                        marks->foreign++;
        }
}

static void ignore_mapping(void *userdata, const struct perf_record *record) {
}

void copies_hold_nothing_of_other_processes(void) {
        enum { PROCESSES = 8 };
        _cleanup_(probe_freep) struct probe *probe = NULL;
        struct marks marks = {};
        const struct probe_sink sink = { look_for_marks, ignore_mapping, &marks };
        struct target target;
        const char *reason;
        uint32_t session, frequency;
        pid_t pids[PROCESSES];
        struct unit unit;

        name_unit(&unit, "marks.service");
        target = target_of(&unit);
        if (!expect(probe_new(99, &probe, &reason) == 0, "%s", reason) ||
            !expect(probe_arm(probe, &target, NULL, FREQUENCY, &session, &frequency) == 0, "arming"))
                return;
        make_cgroup(unit.dir);
        for (int i = 0; i < PROCESSES; i++)
                pids[i] = start(unit.dir, "marks", "100");
        for (int i = 0; i < PROCESSES; i++) {
                while (waitpid(pids[i], NULL, WNOHANG) == 0) {
                        probe_drain(probe, &sink);
                        usleep(5000);
                }
        }
        probe_disarm(probe, session);
        probe_drain(probe, &sink);
        probe_release(probe, session);

        /* Each waits for about a second: 90 records of it, with 512 marks in each copy. */
        expect(marks.events >= PROCESSES * 40, "%u records", marks.events);
        expect(marks.own >= (uint64_t) marks.events * MARKS / 2, "%llu own marks in %u records",
               (unsigned long long) marks.own, marks.events);
        expect(marks.foreign == 0, "%llu marks of other processes", (unsigned long long) marks.foreign);
        done(&unit);
}

void both_stacks_of_a_signal_handler_are_taken(void) {
        uint32_t in_handler = 0, fine = 0;
        struct unit unit;

        name_unit(&unit, "alternate.service");
        arm(&unit);
        make_cgroup(unit.dir);
        run(unit.dir, "alternate", "200");
        finish(&unit);

        for (uint32_t i = 0; unit.recording && i < unit.recording->n_samples; i++) {
                const struct rec_sample *sample = &unit.recording->samples[i];

                if (!has_frame(unit.recording, sample->stack, "burn_in_handler"))
                        continue;
                in_handler++;
                fine += is_complete(unit.recording, sample) &&
                        has_frame(unit.recording, sample->stack, "raise_below_here");
        }
        expect(in_handler >= 10, "%u samples in the handler", in_handler);
        expect(fine == in_handler, "%u of %u go on to what was interrupted", fine, in_handler);
        done(&unit);
}
