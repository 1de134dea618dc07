/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/bpf_native/host.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "common/macro.h"

enum { ENTRIES_MAX = 4096, KEY_BYTES_MAX = 64 };

struct entry {
        const void *map;
        uint8_t key[KEY_BYTES_MAX];
        void *value; /* owned; does not move */
};

struct host host;
static struct entry entries[ENTRIES_MAX];
static size_t n_entries;

void host_reset(void) {
        for (size_t i = 0; i < n_entries; i++)
                free(entries[i].value);
        n_entries = 0;
        memset(&host, 0, sizeof(host));
        host.comm = "";
}

static struct entry *find(const void *map, size_t key_bytes, const void *key) {
        for (size_t i = 0; i < n_entries; i++)
                if (entries[i].map == map && memcmp(entries[i].key, key, key_bytes) == 0)
                        return &entries[i];
        return NULL;
}

static size_t count(const void *map) {
        size_t n = 0;

        for (size_t i = 0; i < n_entries; i++)
                n += entries[i].map == map;
        return n;
}

static struct entry *add(const void *map, size_t key_bytes, size_t value_bytes, const void *key) {
        struct entry *entry = &entries[n_entries];

        if (n_entries == ENTRIES_MAX || key_bytes > KEY_BYTES_MAX)
                abort();
        entry->map = map;
        memcpy(entry->key, key, key_bytes);
        entry->value = calloc(1, value_bytes);
        if (!entry->value)
                abort();
        n_entries++;
        return entry;
}

static bool is_array(size_t type) {
        return type == BPF_MAP_TYPE_ARRAY || type == BPF_MAP_TYPE_PERCPU_ARRAY;
}

/* Arrays have all their elements from the beginning. */
void *host_map_lookup(const void *map, size_t key_bytes, size_t value_bytes, size_t type, size_t max,
                      const void *key) {
        struct entry *entry = find(map, key_bytes, key);

        if (!entry && is_array(type) && *(const uint32_t *) key < max)
                entry = add(map, key_bytes, value_bytes, key);
        return entry ? entry->value : NULL;
}

long host_map_update(const void *map, size_t key_bytes, size_t value_bytes, size_t type, size_t max,
                     const void *key, const void *value, __u64 flags) {
        struct entry *entry = find(map, key_bytes, key);

        if (entry && flags == BPF_NOEXIST)
                return -17; /* EEXIST */
        if (!entry && count(map) >= (host.map_limit ? host.map_limit : max))
                return -7; /* E2BIG */
        if (!entry)
                entry = add(map, key_bytes, value_bytes, key);
        memcpy(entry->value, value, value_bytes);
        return 0;
}

long host_map_delete(const void *map, size_t key_bytes, size_t value_bytes, size_t type, size_t max,
                     const void *key) {
        struct entry *entry = find(map, key_bytes, key);

        if (!entry)
                return -2; /* ENOENT */
        free(entry->value);
        *entry = entries[--n_entries];
        return 0;
}

static bool ring_is_full(void) {
        return host.n_records >= (host.records_limit ? host.records_limit : HOST_RECORDS_MAX);
}

void *bpf_ringbuf_reserve(void *ring, __u64 bytes, __u64 flags) {
        struct host_record *record = &host.records[host.n_records];

        if (ring_is_full() || bytes > sizeof(record->data))
                return NULL;
        host.n_records++;
        record->bytes = bytes;
        memset(record->data, 0xee, bytes); /* the ring is not zeroed: who forgets a member is found out */
        return record->data;
}

void bpf_ringbuf_submit(void *data, __u64 flags) {
}

long bpf_ringbuf_output(void *ring, const void *data, __u64 bytes, __u64 flags) {
        void *record = bpf_ringbuf_reserve(ring, bytes, flags);

        if (!record)
                return -11; /* EAGAIN */
        memcpy(record, data, bytes);
        return 0;
}

__u64 bpf_ringbuf_query(void *ring, __u64 flags) {
        return 0;
}

__u64 bpf_ktime_get_ns(void) {
        return host.now_ns;
}

__u64 bpf_jiffies64(void) {
        return host.jiffies;
}

__u32 bpf_get_smp_processor_id(void) {
        return host.cpu;
}

__u64 bpf_get_current_pid_tgid(void) {
        return (__u64) host.tgid << 32 | host.tid;
}

__u64 bpf_get_current_task(void) {
        return (uintptr_t) host.task;
}

void *bpf_get_current_task_btf(void) {
        return host.task;
}

long bpf_task_pt_regs(void *task) {
        return 0;
}

static long copy_kernel_stack(void *buffer, __u32 bytes) {
        __u32 n = 0;

        while (n < ARRAY_SIZE(host.kernel_stack) && host.kernel_stack[n] != 0 && (n + 1) * 8 <= bytes)
                n++;
        memcpy(buffer, host.kernel_stack, n * 8);
        return n * 8;
}

long bpf_get_stack(void *context, void *buffer, __u32 bytes, __u64 flags) {
        return copy_kernel_stack(buffer, bytes);
}

long bpf_get_task_stack(void *task, void *buffer, __u32 bytes, __u64 flags) {
        return copy_kernel_stack(buffer, bytes);
}

long bpf_seq_write(void *seq, const void *data, __u32 bytes) {
        return bpf_ringbuf_output(seq, data, bytes, 0);
}

long bpf_get_current_comm(void *buffer, __u32 bytes) {
        memset(buffer, 0, bytes);
        memcpy(buffer, host.comm, strnlen(host.comm, bytes - 1));
        return 0;
}

static bool faults(const void *from, size_t bytes) {
        uintptr_t begin = (uintptr_t) from;

        return begin < (1 << 20) || begin + bytes < begin ||
               (begin < host.hole_end && begin + bytes > host.hole_begin);
}

long bpf_probe_read_kernel(void *to, __u32 bytes, const void *from) {
        if (!from) {
                memset(to, 0, bytes);
                return -14; /* EFAULT */
        }
        memcpy(to, from, bytes);
        return 0;
}

/* One missing byte fails the whole read, and what was there before is zeroed. */
long bpf_probe_read_user(void *to, __u32 bytes, const void *from) {
        if (faults(from, bytes)) {
                memset(to, 0, bytes);
                return -14;
        }
        memcpy(to, from, bytes);
        return 0;
}

long bpf_probe_read_kernel_str(void *to, __u32 bytes, const void *from) {
        size_t n;

        if (!from || bytes == 0)
                return -14;
        n = strnlen(from, bytes - 1);
        memcpy(to, from, n);
        ((char *) to)[n] = '\0';
        return (long) n + 1;
}

long bpf_probe_read_user_str(void *to, __u32 bytes, const void *from) {
        return faults(from, 1) ? -14 : bpf_probe_read_kernel_str(to, bytes, from);
}
