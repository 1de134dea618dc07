/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The BPF helpers for the host: found before libbpf's headers, so that the logic in bpf/ *.bpf.h becomes
 * ordinary functions. tests/bpf_native/host.c implements them on the world that a test sets up.
 */

#include <stddef.h>
#include <stdint.h>

#include <linux/types.h>

#define SEC(name)
#undef __always_inline
#define __always_inline   inline
#define __noinline        static __attribute__((noinline, unused))
#define __uint(name, val) int(*name)[val]
#define __type(name, val) __typeof__(val) *name

#define MAP_SHAPE(map)                                                                                      \
        (map), sizeof(*(map)->key), sizeof(*(map)->value), sizeof(*(map)->type) / sizeof(int),              \
                sizeof(*(map)->max_entries) / sizeof(int)

void *host_map_lookup(const void *map, size_t key_bytes, size_t value_bytes, size_t type, size_t max,
                      const void *key);
long host_map_update(const void *map, size_t key_bytes, size_t value_bytes, size_t type, size_t max,
                     const void *key, const void *value, __u64 flags);
long host_map_delete(const void *map, size_t key_bytes, size_t value_bytes, size_t type, size_t max,
                     const void *key);

#define bpf_map_lookup_elem(map, key)               host_map_lookup(MAP_SHAPE(map), key)
#define bpf_map_update_elem(map, key, value, flags) host_map_update(MAP_SHAPE(map), key, value, flags)
#define bpf_map_delete_elem(map, key)               host_map_delete(MAP_SHAPE(map), key)

void *bpf_ringbuf_reserve(void *ring, __u64 bytes, __u64 flags);
void bpf_ringbuf_submit(void *data, __u64 flags);
long bpf_ringbuf_output(void *ring, const void *data, __u64 bytes, __u64 flags);
__u64 bpf_ringbuf_query(void *ring, __u64 flags);

__u64 bpf_ktime_get_ns(void);
__u64 bpf_jiffies64(void);
__u32 bpf_get_smp_processor_id(void);
__u64 bpf_get_current_pid_tgid(void);
__u64 bpf_get_current_task(void);
void *bpf_get_current_task_btf(void);
long bpf_task_pt_regs(void *task);
long bpf_get_stack(void *context, void *buffer, __u32 bytes, __u64 flags);
long bpf_get_task_stack(void *task, void *buffer, __u32 bytes, __u64 flags);
long bpf_seq_write(void *seq, const void *data, __u32 bytes);
long bpf_get_current_comm(void *buffer, __u32 bytes);
long bpf_probe_read_kernel(void *to, __u32 bytes, const void *from);
long bpf_probe_read_user(void *to, __u32 bytes, const void *from);
long bpf_probe_read_kernel_str(void *to, __u32 bytes, const void *from);
long bpf_probe_read_user_str(void *to, __u32 bytes, const void *from);
