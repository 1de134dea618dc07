/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/perf_ring.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "common/fd.h"

enum {
        /* 128 KB, a power of two of pages: some thousand records between two looks of the collector. */
        RING_BYTES = 32 * 4096,
        RECORD_MAX = 65536, /* the size in a header has 16 bits */
        TIME_BYTES = 8, /* sample_id: only the time (PERF_SAMPLE_TIME) */
};

/* In no header of Debian 12 yet. */
#ifndef PERF_RECORD_MISC_MMAP_BUILD_ID
#define PERF_RECORD_MISC_MMAP_BUILD_ID (1 << 14)
#endif

struct perf_ring {
        int fd; /* owned */
        void *memory; /* owned mapping: control page, then the ring */
        size_t page_bytes;
        bool build_id;
        _Alignas(8) uint8_t wrapped[RECORD_MAX]; /* a record that the end of the ring cuts in two */
};

/* The part of a PERF_RECORD_MMAP2 before the path (linux/perf_event.h, enum perf_event_type). */
struct mmap2_record {
        struct perf_event_header header;
        uint32_t pid, tid;
        uint64_t start, bytes, file_offset;
        union {
                struct {
                        uint32_t major, minor;
                        uint64_t inode, generation;
                };
                struct {
                        uint8_t build_id_bytes;
                        uint8_t reserved[3];
                        uint8_t build_id[20];
                };
        };
        uint32_t prot, flags;
};

struct comm_record {
        struct perf_event_header header;
        uint32_t pid, tid;
};

struct lost_record {
        struct perf_event_header header;
        uint64_t id, lost;
};

static void parse_mmap2(const void *record, size_t bytes, bool build_id, struct perf_record *ret) {
        const char *path = (const char *) record + sizeof(struct mmap2_record);
        struct mmap2_record mmap2;

        if (bytes < sizeof(mmap2) + TIME_BYTES + 1)
                return;
        if (!memchr(path, '\0', bytes - sizeof(mmap2) - TIME_BYTES))
                return;
        memcpy(&mmap2, record, sizeof(mmap2));
        ret->kind = PERF_RING_MAP;
        ret->map = (struct perf_map){
                .pid = mmap2.pid,
                .time_ns = ret->time_ns,
                .start = mmap2.start,
                .bytes = mmap2.bytes,
                .file_offset = mmap2.file_offset,
                .path = path,
        };
        if (build_id && mmap2.header.misc & PERF_RECORD_MISC_MMAP_BUILD_ID) {
                ret->map.build_id_bytes =
                        MIN((uint32_t) mmap2.build_id_bytes, (uint32_t) sizeof(mmap2.build_id));
                memcpy(ret->map.build_id, mmap2.build_id, ret->map.build_id_bytes);
        } else {
                ret->map.device = makedev(mmap2.major, mmap2.minor);
                ret->map.inode = mmap2.inode;
        }
}

static void parse_comm(const void *record, size_t bytes, struct perf_record *ret) {
        struct comm_record comm;

        if (bytes < sizeof(comm) + TIME_BYTES)
                return;
        memcpy(&comm, record, sizeof(comm));
        if (!(comm.header.misc & PERF_RECORD_MISC_COMM_EXEC))
                return;
        ret->kind = PERF_RING_IMAGE;
        ret->pid = comm.pid;
}

static void parse_lost(const void *record, size_t bytes, struct perf_record *ret) {
        struct lost_record lost;

        if (bytes < sizeof(lost))
                return;
        memcpy(&lost, record, sizeof(lost));
        ret->kind = PERF_RING_LOST;
        ret->lost = lost.lost;
}

void perf_record_parse(const void *record, size_t bytes, bool build_id, struct perf_record *ret) {
        struct perf_event_header header;

        *ret = (struct perf_record){ .kind = PERF_RING_OTHER };
        if (bytes < sizeof(header) + TIME_BYTES)
                return;
        memcpy(&header, record, sizeof(header));
        memcpy(&ret->time_ns, (const char *) record + bytes - TIME_BYTES, TIME_BYTES);

        if (header.type == PERF_RECORD_MMAP2)
                parse_mmap2(record, bytes, build_id, ret);
        else if (header.type == PERF_RECORD_COMM)
                parse_comm(record, bytes, ret);
        else if (header.type == PERF_RECORD_LOST)
                parse_lost(record, bytes, ret);
}

static int open_event(unsigned cpu, bool build_id) {
        struct perf_event_attr attr = {
                .type = PERF_TYPE_SOFTWARE,
                .size = sizeof(attr),
                .config = PERF_COUNT_SW_DUMMY,
                .sample_type = PERF_SAMPLE_TIME,
                .sample_id_all = 1,
                .disabled = 1,
                .mmap = 1,
                .mmap2 = 1,
                .comm = 1,
                .comm_exec = 1,
                .use_clockid = 1,
                .clockid = CLOCK_MONOTONIC,
                .watermark = 1,
                .wakeup_watermark = RING_BYTES / 4,
                .build_id = build_id,
        };
        long fd = syscall(SYS_perf_event_open, &attr, -1, (int) cpu, -1, PERF_FLAG_FD_CLOEXEC);

        return fd < 0 ? -errno : (int) fd;
}

int perf_ring_new(unsigned cpu, bool build_id, struct perf_ring **ret) {
        _cleanup_(perf_ring_freep) struct perf_ring *ring = calloc(1, sizeof(*ring));

        if (!ring)
                return -ENOMEM;
        ring->build_id = build_id;
        ring->page_bytes = (size_t) sysconf(_SC_PAGESIZE);
        ring->fd = open_event(cpu, build_id);
        if (ring->fd < 0)
                return ring->fd;
        ring->memory =
                mmap(NULL, ring->page_bytes + RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, 0);
        if (ring->memory == MAP_FAILED) {
                ring->memory = NULL;
                return -errno;
        }
        *ret = TAKE_PTR(ring);
        return 0;
}

struct perf_ring *perf_ring_free(struct perf_ring *ring) {
        if (!ring)
                return NULL;
        if (ring->memory)
                munmap(ring->memory, ring->page_bytes + RING_BYTES);
        fd_close(ring->fd);
        free(ring);
        return NULL;
}

int perf_ring_enable(struct perf_ring *ring, bool on) {
        return ioctl(ring->fd, on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0) < 0 ? -errno : 0;
}

int perf_ring_fd(const struct perf_ring *ring) {
        return ring->fd;
}

/* The record at `tail`, in one piece. *ret_bytes 0: the ring makes no sense. */
static const void *record_at(struct perf_ring *ring, uint64_t tail, uint64_t available, size_t *ret_bytes) {
        const uint8_t *data = (const uint8_t *) ring->memory + ring->page_bytes;
        size_t offset = tail % RING_BYTES, first;
        struct perf_event_header header;

        /* Records are 8-byte aligned, so the header itself is never cut. */
        memcpy(&header, data + offset, sizeof(header));
        *ret_bytes = header.size >= sizeof(header) && header.size <= available ? header.size : 0;
        first = RING_BYTES - offset;
        if (header.size <= first)
                return data + offset;
        memcpy(ring->wrapped, data + offset, first);
        memcpy(ring->wrapped + first, data, header.size - first);
        return ring->wrapped;
}

void perf_ring_drain(struct perf_ring *ring, void (*f)(void *userdata, const struct perf_record *record),
                     void *userdata) {
        struct perf_event_mmap_page *control = ring->memory;
        uint64_t tail = control->data_tail;
        uint64_t head = __atomic_load_n(&control->data_head, __ATOMIC_ACQUIRE);

        while (tail + sizeof(struct perf_event_header) <= head) {
                struct perf_record parsed;
                size_t bytes;
                const void *record = record_at(ring, tail, head - tail, &bytes);

                if (bytes == 0) {
                        tail = head;
                        break;
                }
                perf_record_parse(record, bytes, ring->build_id, &parsed);
                if (parsed.kind != PERF_RING_OTHER)
                        f(userdata, &parsed);
                tail += bytes;
        }
        __atomic_store_n(&control->data_tail, tail, __ATOMIC_RELEASE);
}
