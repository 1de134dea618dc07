/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * The world that the helpers of tests/bpf_native/stub show to the logic under test: a clock, a current task,
 * user memory with holes, maps, and a ring buffer that keeps what was sent.
 */

enum { HOST_RECORDS_MAX = 512, HOST_RECORD_BYTES_MAX = 80 * 1024 };

struct host_record {
        size_t bytes;
        _Alignas(8) uint8_t data[HOST_RECORD_BYTES_MAX];
};

struct host {
        uint64_t now_ns, jiffies;
        uint32_t cpu;
        void *task; /* current */
        uint32_t tgid, tid;
        const char *comm;
        uint64_t kernel_stack[4]; /* of every task; up to the first 0 */
        uintptr_t hole_begin, hole_end; /* user memory there faults */
        size_t map_limit; /* entries of every hash map; 0: as declared */
        size_t records_limit; /* 0: HOST_RECORDS_MAX; less: the ring is full */
        struct host_record records[HOST_RECORDS_MAX];
        size_t n_records;
};

extern struct host host;

/* Empties maps and ring and zeroes the rest. */
void host_reset(void);
