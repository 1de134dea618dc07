/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/maps.h"
#include "common/macro.h"
#include "daemon/perf_ring.h"
#include "proto/event.h"

/*
 * The kernel side as the daemon sees it: programs and maps of bpf/, perf events and their rings. Opened,
 * configured and loaded by probe_new(), attached while a session is armed, and nothing but two disabled perf
 * events per CPU in between. Not thread-safe: daemon/collect.c holds its lock around every call.
 */
struct probe;

struct probe_feature {
        const char *name;
        bool available;
        const char *reason; /* when not: a sentence; else "" */
};

enum probe_feature_bit { /* rec_start.features: append only */
                         PROBE_BUILD_ID = 1 << 0,
                         PROBE_TASK_REGS = 1 << 1,
};

/*
 * Loads everything, with rings for samples of that frequency. *ret_reason is filled on failure: a sentence for the user, static.
 *
 * -EOPNOTSUPP  no BTF, no cgroup v2, or a kernel before 5.10
 * -EPERM       locked down, or privileges are missing
 * others       errors of bpf(2), perf_event_open(2), mmap(2)
 */
int probe_new(uint32_t frequency_hz, struct probe **ret, const char **ret_reason);
struct probe *probe_free(struct probe *p); /* NULL is fine */
DEFINE_CLEANUP(struct probe *, probe_free);

unsigned probe_features(struct probe *p, const struct probe_feature **ret);
uint32_t probe_feature_bits(struct probe *p);
uint32_t probe_cpu_count(struct probe *p);

/*
 * From now on every process of the unit is a member. The hooks are attached for the first session. cgroup_dir
 * may exist: then it and what lies below it are armed by id, too. *ret_frequency_hz is what samples are
 * really taken at: the first session decides.
 *
 * -EBUSY no free session; -EINVAL a target out of range; -ENAMETOOLONG; errors of bpf(2) and ioctl(2)
 */
int probe_arm(struct probe *p, const struct target *target, const char *cgroup_dir, uint32_t frequency_hz,
              uint32_t *ret_session, uint32_t *ret_frequency_hz);
/* Nothing joins any more, but what was counted can still be read. */
void probe_disarm(struct probe *p, uint32_t session);
/* Forgets what the session counted, and frees it. Members that are still alive are forgotten, too. */
void probe_release(struct probe *p, uint32_t session);

void probe_stat(struct probe *p, uint32_t session, struct session_stat *ret);

/* ---- events ---- */

/* One descriptor that polls readable when a ring has something urgent. Borrowed. */
int probe_poll_fd(struct probe *p);

struct probe_sink {
        /* A record of the BPF ring buffer, checked for size: bytes ≥ the struct of its type. Valid in the call. */
        void (*event)(void *userdata, const struct event_head *head, size_t bytes);
        /* What code was mapped where, in any process of the machine. Valid in the call. */
        void (*mapping)(void *userdata, const struct perf_record *record);
        void *userdata;
};

/* Hands over everything that is there now: each ring in its own order. */
void probe_drain(struct probe *p, const struct probe_sink *sink);

/* ---- what was counted: valid until probe_release() ---- */

typedef void (*probe_call_fn)(void *userdata, const struct call_key *key, const struct call_value *value);
typedef void (*probe_wait_fn)(void *userdata, const struct wait_key *key, const struct wait_value *value);
typedef void (*probe_dir_fn)(void *userdata, const struct dir_key *key, uint64_t count);

typedef void (*probe_blocked_fn)(void *userdata, const struct blocked_thread *thread);

int probe_read_calls(struct probe *p, uint32_t session, probe_call_fn f, void *userdata);
/* Open intervals of living threads are counted up to end_ns. */
int probe_read_waits(struct probe *p, uint32_t session, uint64_t end_ns, probe_wait_fn f, void *userdata);
int probe_read_dirs(struct probe *p, uint32_t session, probe_dir_fn f, void *userdata);
/* Members that are blocked at this moment; only before probe_disarm(). Errors of bpf(2) and read(2). */
int probe_read_blocked(struct probe *p, uint32_t session, probe_blocked_fn f, void *userdata);
