/* SPDX-License-Identifier: GPL-2.0-or-later */

/* What gets lost when many threads with large stacks are sampled often, and that all of it is said. */

#include <inttypes.h>

#include "common/macro.h"
#include "tests/bpf/harness.h"

enum {
        ORDINARY_HZ = 999,
        EXTREME_HZ = 9990,
};

static uint64_t received(const struct unit *unit) {
        return (uint64_t) count_samples(unit->recording, REC_SAMPLE_CPU_USER) +
               count_samples(unit->recording, REC_SAMPLE_CPU_KERNEL);
}

/* Sixty-four threads that want all CPUs for two seconds of CPU time. */
static void be_busy(struct unit *unit, const char *action, uint32_t frequency_hz) {
        name_unit(unit, "busy.service");
        arm_at(unit, frequency_hz);
        make_cgroup(unit->dir);
        run(unit->dir, action, "2000");
        finish(unit);
}

void nothing_is_lost_at_an_ordinary_frequency(void) {
        struct unit unit;

        be_busy(&unit, "busy-deep", ORDINARY_HZ);
        expect(received(&unit) >= ORDINARY_HZ, "%" PRIu64 " samples of 2 s", received(&unit));
        expect(received(&unit) == unit.start.samples_generated, "%" PRIu64 " of %" PRIu64 " samples",
               received(&unit), unit.start.samples_generated);
        expect_nothing_lost(&unit);
        done(&unit);
}

/* With kilobytes of live stack each. Stacks that the worker had no time for are not samples lost. */
void what_is_lost_at_an_extreme_frequency_is_counted(void) {
        struct unit unit;
        uint64_t lost;

        be_busy(&unit, "busy-deep", EXTREME_HZ);
        lost = unit.start.lost[REC_LOST_SAMPLES];
        expect(received(&unit) + lost == unit.start.samples_generated,
               "%" PRIu64 " received and %" PRIu64 " lost of %" PRIu64 " samples", received(&unit), lost,
               unit.start.samples_generated);
        expect(received(&unit) >= ORDINARY_HZ, "%" PRIu64 " samples of 2 s", received(&unit));
        for (int i = 0; i < REC_LOST_MAX; i++)
                expect(i == REC_LOST_SAMPLES || i == REC_LOST_WAITS || i == REC_LOST_STACK_QUEUE ||
                               unit.start.lost[i] == 0,
                       "%" PRIu64 " lost of kind %d", unit.start.lost[i], i);
        done(&unit);
}

static uint64_t received_waits(const struct unit *unit) {
        uint64_t n = 0;

        for (uint32_t i = 0; unit->recording && i < unit->recording->n_samples; i++) {
                const struct rec_sample *sample = &unit->recording->samples[i];

                n += (sample->kind == REC_SAMPLE_WAIT || sample->kind == REC_SAMPLE_FAULT) &&
                     !(sample->flags & REC_SAMPLE_OPEN);
        }
        return n;
}

/* Waits are told by the same ring. */
void waits_lost_at_an_extreme_frequency_are_counted(void) {
        struct session_stat stat;
        struct unit unit;
        uint64_t lost;

        name_unit(&unit, "waits.service");
        arm_at(&unit, EXTREME_HZ);
        make_cgroup(unit.dir);
        run(unit.dir, "ping-pong", "200000");
        capture_stat(unit.capture, &stat);
        finish(&unit);

        lost = unit.start.lost[REC_LOST_WAITS];
        expect(received_waits(&unit) + lost == stat.waits,
               "%" PRIu64 " received and %" PRIu64 " lost of %" PRIu64 " waits", received_waits(&unit), lost,
               (uint64_t) stat.waits);
        expect(stat.waits >= 100, "%" PRIu64 " waits were told", (uint64_t) stat.waits);
        done(&unit);
}
