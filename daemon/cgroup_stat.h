/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * What the kernel counts for a cgroup and those above it (Documentation/admin-guide/cgroup-v2.rst): how often and how
 * long it was throttled by its CPU quota, and how it was held by its memory limits. A unit's cgroup is gone as soon as the
 * unit is, so it is read again and again while the start lasts: cheap, the files are the kernel's own.
 */

enum { CGROUP_LEVELS_MAX = 8 };

struct cgroup_level {
        uint64_t periods, throttled_periods, throttled_usec; /* cpu.stat */
        bool has_cpu; /* false: no cpu controller here */
};

struct cgroup_stat {
        struct cgroup_level levels[CGROUP_LEVELS_MAX]; /* the unit's own first, then its slices */
        unsigned n_levels;
        uint64_t memory_high, memory_max; /* memory.events: how often a limit was met */
        uint64_t memory_stall_usec; /* memory.pressure: some task waited for memory */
        bool has_memory;
};

/* dir: of the unit's cgroup; root: that of the hierarchy, where the climb ends. What cannot be read (any more) keeps
 * its value. */
void cgroup_stat_read(const char *dir, const char *root, struct cgroup_stat *stat);

/* The cgroup itself was made anew: it begins with zeros. */
void cgroup_stat_forget_own(struct cgroup_stat *stat);

/* What was added since `before`, as properties of a recording: "cgroup.cpu.throttled_usec" of the level that was throttled
 * longest, "cgroup.cpu.throttled_by" its name, … Nothing for controllers that are not there. */
void cgroup_stat_tell(const struct cgroup_stat *before, const struct cgroup_stat *now, const char *dir,
                      void (*f)(void *userdata, const char *name, const char *value), void *userdata);
