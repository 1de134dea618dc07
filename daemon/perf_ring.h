/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/macro.h"

/*
 * The mapping events of one CPU: a dummy perf event whose side-band records (PERF_RECORD_MMAP2 of executable
 * memory, PERF_RECORD_COMM of execs) tell what code lies where in every process.
 *
 * With build_id = 1 (kernel 5.12) a record carries the build-id of the mapped file, or, when it has none,
 * the inode, as all records did before. On such a ring the record's own flag PERF_RECORD_MISC_MMAP_BUILD_ID
 * says which. On a ring without build_id = 1 the flag means nothing: the kernel builds one header for all
 * rings, and one such event anywhere on the machine sets it for everybody. So the layout follows the ring's
 * attribute first.
 */
struct perf_ring;

struct perf_map {
        uint32_t pid;
        uint64_t time_ns; /* CLOCK_MONOTONIC */
        uint64_t start, bytes, file_offset;
        uint64_t inode, device; /* 0: the build-id is known instead */
        uint8_t build_id[20];
        uint32_t build_id_bytes; /* 0: not known */
        const char *path; /* as the process sees it; in the record */
};

enum perf_record_kind {
        PERF_RING_OTHER, /* not of interest, or malformed */
        PERF_RING_MAP,
        PERF_RING_IMAGE, /* an exec: the old image is gone */
        PERF_RING_LOST,
};

struct perf_record {
        enum perf_record_kind kind;
        struct perf_map map; /* MAP */
        uint32_t pid; /* IMAGE */
        uint64_t time_ns;
        uint64_t lost; /* LOST */
};

/*
 * Reads one record of a ring. The bytes come from the kernel, yet sizes are checked.
 *
 * record   8-byte aligned, `bytes` long, as its own header says
 * build_id the ring was opened with build_id = 1
 */
void perf_record_parse(const void *record, size_t bytes, bool build_id, struct perf_record *ret);

/*
 * Opens the event of a CPU, disabled, and maps its ring. -ENODEV: the CPU is offline; -EINVAL: build_id is
 * not known to this kernel; -EACCES, -EPERM: not permitted; others of perf_event_open(2) and mmap(2).
 */
int perf_ring_new(unsigned cpu, bool build_id, struct perf_ring **ret);
struct perf_ring *perf_ring_free(struct perf_ring *ring); /* NULL is fine */
DEFINE_CLEANUP(struct perf_ring *, perf_ring_free);
int perf_ring_enable(struct perf_ring *ring, bool on); /* errors of ioctl(2) */
int perf_ring_fd(const struct perf_ring *ring); /* to poll: readable when a quarter is full; borrowed */
/* Parses everything that is there; f is called for all kinds but OTHER. */
void perf_ring_drain(struct perf_ring *ring, void (*f)(void *userdata, const struct perf_record *record),
                     void *userdata);
