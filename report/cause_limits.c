/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdlib.h>

#include "common/text.h"
#include "report/cause.h"
#include "report/storm.h"

/* The unit's own limits: what the kernel counted for its cgroup says that they held it. Such time is in no stack. */

static uint64_t counted(const struct analysis *a, const char *name) {
        const char *text = recording_property(a->recording, name);

        return text ? strtoull(text, NULL, 10) : 0;
}

static const char *text_of(const struct analysis *a, const char *name) {
        const char *text = recording_property(a->recording, name);

        return text ? text : "";
}

/* CPU time that the processes of the unit took. */
static uint64_t cpu_time_ns(const struct analysis *a) {
        uint64_t sum = 0;

        for (uint32_t i = 0; i < a->recording->n_waits; i++)
                if (a->recording->waits[i].syscall == REC_CALL_ON_CPU)
                        sum += a->recording->waits[i].blocked_ns;
        return sum;
}

/* "CPUQuota=20%"; of a slice above, whose limit is not known, its name. */
static void put_quota(struct buf *b, const struct analysis *a, bool own) {
        uint64_t usec_per_sec = counted(a, "CPUQuotaPerSecUSec");

        if (own && usec_per_sec > 0 && usec_per_sec <= UINT64_C(1000) * USEC_PER_SEC)
                buf_printf(b, "CPUQuota=%llu%%", (unsigned long long) (usec_per_sec / (USEC_PER_SEC / 100)));
        else
                buf_printf(b, "the CPU quota of %s", text_of(a, "cgroup.cpu.throttled_by"));
}

int cause_cpu_throttled_find(const struct analysis *a, struct finding *f) {
        uint64_t periods = counted(a, "cgroup.cpu.periods"),
                 throttled = counted(a, "cgroup.cpu.throttled_periods");
        const char *unit = recording_text(a->recording, a->recording->start->unit);
        const char *by = text_of(a, "cgroup.cpu.throttled_by");
        _cleanup_(buf_done) struct buf b = BUF_NULL;

        f->duration_ns = pieces_time(a, 1u << PIECE_THROTTLED, 0, REC_NONE);
        if (f->duration_ns == 0 || throttled == 0)
                return 0;
        put_quota(&b, a, streq(by, unit));
        finding_text(f, "quota", buf_text(&b));
        buf_puts(&b, " held it for ");
        put_time_and_share(&b, a, f->duration_ns);
        buf_printf(&b, ", in %llu of %llu periods; the work takes ", (unsigned long long) throttled,
                   (unsigned long long) periods);
        text_span(&b, cpu_time_ns(a) / NSEC_PER_USEC);
        buf_puts(&b, " of CPU time");
        finding_summary(f, "throttled: %s", buf_text(&b));
        finding_text(f, "cgroup", by);
        finding_number(f, "throttled_usec", counted(a, "cgroup.cpu.throttled_usec"));
        finding_number(f, "throttled_periods", throttled);
        finding_number(f, "periods", periods);
        finding_number(f, "cpu_usec", cpu_time_ns(a) / NSEC_PER_USEC);
        if (streq(by, unit))
                finding_advice(
                        f, "[Service]\nCPUQuota=\n",
                        "Raise CPUQuota=, or take it away: CPUWeight= gives way to others, too, and never "
                        "waits while CPUs are idle.");
        else
                finding_advice(f, NULL, "Raise CPUQuota= of %s, or put the unit elsewhere with Slice=.", by);
        return buf_error(&b) < 0 ? -ENOMEM : 1;
}

int cause_memory_throttled_find(const struct analysis *a, struct finding *f) {
        uint64_t high = counted(a, "cgroup.memory.high"), max = counted(a, "cgroup.memory.max");
        uint64_t stall_usec = MIN(counted(a, "cgroup.memory.stall_usec"), a->duration_usec);
        const char *limit = high > 0 ? "MemoryHigh=" : "MemoryMax=";
        _cleanup_(buf_done) struct buf b = BUF_NULL;

        if (high + max == 0 || stall_usec == 0)
                return 0;
        f->duration_ns = stall_usec * NSEC_PER_USEC;
        put_time_and_share(&b, a, f->duration_ns);
        finding_summary(f, "short of memory: %s held it back for %s, %llu times", limit, buf_text(&b),
                        (unsigned long long) (high > 0 ? high : max));
        finding_text(f, "limit", limit);
        finding_number(f, "high_events", high);
        finding_number(f, "max_events", max);
        finding_number(f, "stall_usec", stall_usec);
        finding_advice(
                f, NULL,
                "Raise %s: the start needs more memory, and the kernel takes pages away that are needed "
                "again at once.",
                limit);
        return buf_error(&b) < 0 ? -ENOMEM : 1;
}
