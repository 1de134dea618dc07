/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/probe.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "bpf/startprof.skel.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/procfs.h"

enum {
        CPUS_MAX = 4096,
        RING_MSEC =
                100, /* that it holds samples of the largest stacks for: twice as long as the collector looks away */
        RING_MIN = 1024 * 1024,
        RING_MAX = 64 * 1024 * 1024, /* counted twice in our resident memory */
        CGROUP_WALK_DEPTH = 32,
        CGROUP_WALK_MAX = CGROUPS_MAX,
        FEATURES = 4,
        FREQUENCY_AT_LOAD = 99,
        BLOCKED_AT_ONCE = 64, /* threads in one read of the iterator */
};

/* The hooks, in the order in which they are attached: who is a member first, then what members do. */
enum hook {
        HOOK_EXIT,
        HOOK_FORK,
        HOOK_EXEC,
        HOOK_SWITCH,
        HOOK_WAKING,
        HOOK_WAKEUP_NEW,
        HOOK_SYS_EXIT,
        HOOK_SIGNAL,
        HOOK_ATTACH,
        HOOK_MKDIR,
        HOOK_MAX,
};

struct cpu {
        int clock_fd; /* owned: the sampling event, -EBADF on an offline CPU */
        int fault_fd; /* owned: each major fault, likewise */
        struct perf_ring *mappings; /* owned, NULL on an offline CPU */
};

struct probe {
        struct startprof *programs; /* owned skeleton */
        struct cpu_state *cpu_states; /* owned mapping, one per possible CPU */
        struct bpf_link *hooks[HOOK_MAX]; /* owned, NULL while nothing is armed */
        struct ring_buffer *ring; /* owned */
        int poll_fd; /* owned */
        struct cpu *cpus; /* owned */
        unsigned n_cpus, n_online;
        bool build_id;
        uint32_t armed; /* bit per session */
        uint32_t used; /* bit per session: armed, or not released yet */
        uint32_t frequency_hz;
        struct probe_feature features[FEATURES];
        const struct probe_sink *sink; /* borrowed, only during probe_drain() */
        uint32_t sized_for_hz; /* the rings */
};

static uint64_t now_ns(void) {
        struct timespec ts;

        clock_gettime(CLOCK_MONOTONIC, &ts);
        return (uint64_t) ts.tv_sec * NSEC_PER_SEC + (uint64_t) ts.tv_nsec;
}

/* ---- loading ---- */

static int print_libbpf(enum libbpf_print_level level, const char *format, va_list arguments) {
        _cleanup_free_ char *text = NULL;
        char *saved = NULL;

        if (level == LIBBPF_DEBUG || vasprintf(&text, format, arguments) < 0)
                return 0;
        for (char *line = strtok_r(text, "\n", &saved); line; line = strtok_r(NULL, "\n", &saved))
                log_debug("%s", line);
        return 0;
}

static bool is_locked_down(void) {
        _cleanup_free_ char *text = NULL;

        return read_file_at(AT_FDCWD, "/sys/kernel/security/lockdown", 4096, &text, NULL) == 0 &&
               strstr(text, "[confidentiality]");
}

/* What can be told before trying; errors that BPF would report less clearly. */
static int check_machine(const char **ret_reason) {
        _cleanup_close_ int proc_fd = -EBADF;
        _cleanup_free_ char *cgroup_root = NULL;
        int r;

        if (access("/sys/kernel/btf/vmlinux", R_OK) < 0) {
                *ret_reason = "This kernel carries no BTF type information (/sys/kernel/btf/vmlinux is "
                              "missing); a "
                              "kernel of 5.10 or newer built with CONFIG_DEBUG_INFO_BTF=y is needed.";
                return -EOPNOTSUPP;
        }
        if (is_locked_down()) {
                *ret_reason = "The kernel is locked down in confidentiality mode, in which BPF programs may "
                              "not read "
                              "kernel memory.";
                return -EPERM;
        }
        r = procfs_open(&proc_fd);
        if (r >= 0)
                r = procfs_cgroup_root(proc_fd, &cgroup_root);
        if (r < 0) {
                *ret_reason = "No cgroup v2 hierarchy is mounted; on hosts with cgroup v1 only, boot with "
                              "systemd.unified_cgroup_hierarchy=1.";
                return -EOPNOTSUPP;
        }
        return 0;
}

/* EACCES is the verifier's word: what a process may do at all is told by EPERM. */
static const char *reason_of_load(int error) {
        if (error == -EPERM)
                return "The kernel did not permit loading BPF programs: the daemon needs CAP_BPF and "
                       "CAP_PERFMON (or CAP_SYS_ADMIN), a system-call filter that allows bpf(2), and before "
                       "5.11 LimitMEMLOCK=infinity.";
        if (error == -ENOMEM)
                return "There was not enough memory for the BPF maps.";
        return "The kernel refused the BPF programs; kernel 5.10 or newer with BPF_SYSCALL, BPF_EVENTS and "
               "BPF_JIT is needed (details with startprofd --debug).";
}

static int find_facts(struct probe *p) {
        LIBBPF_OPTS(bpf_test_run_opts, options);
        int r = bpf_prog_test_run_opts(bpf_program__fd(p->programs->progs.find_facts), &options);

        if (r < 0)
                return r;
        return p->programs->bss->facts.ran ? 0 : -EOPNOTSUPP;
}

static uint32_t ring_bytes(unsigned cpus, uint32_t frequency_hz) {
        uint64_t samples = (uint64_t) cpus * frequency_hz * RING_MSEC / 1000;
        uint32_t bytes = RING_MIN;

        while (bytes < RING_MAX && bytes < samples * STACK_COPY_MAX)
                bytes *= 2;
        return bytes;
}

static size_t cpu_states_bytes(const struct probe *p) {
        size_t page = (size_t) sysconf(_SC_PAGESIZE);

        return (p->n_cpus * sizeof(struct cpu_state) + page - 1) / page * page;
}

static int map_cpu_states(struct probe *p) {
        void *memory = mmap(NULL, cpu_states_bytes(p), PROT_READ, MAP_SHARED,
                            bpf_map__fd(p->programs->maps.cpu_states), 0);

        if (memory == MAP_FAILED)
                return -errno;
        p->cpu_states = memory;
        return 0;
}

static int load_programs(struct probe *p) {
        int cpus = libbpf_num_possible_cpus(), r;

        if (cpus <= 0 || cpus > CPUS_MAX)
                return -EOPNOTSUPP;
        p->n_cpus = (unsigned) cpus;
        p->programs = startprof__open();
        if (!p->programs)
                return -errno;
        p->programs->rodata->cpu_count = p->n_cpus;
        p->programs->rodata->use_fallbacks = secure_getenv("STARTPROF_TEST_FALLBACKS") ? 1 : 0;
        r = bpf_map__set_max_entries(p->programs->maps.events, ring_bytes(p->n_cpus, p->sized_for_hz));
        if (r >= 0)
                r = bpf_map__set_max_entries(p->programs->maps.stack_slots, 2 * p->n_cpus);
        if (r >= 0)
                r = bpf_map__set_max_entries(p->programs->maps.cpu_states, p->n_cpus);
        if (r >= 0)
                r = startprof__load(p->programs);
        if (r >= 0)
                r = find_facts(p);
        return r < 0 ? r : map_cpu_states(p);
}

/* ---- perf events ---- */

/* A software event of one CPU that runs a program at every period-th time, once it is enabled. */
static int open_event(unsigned cpu, uint64_t config, uint64_t period, const struct bpf_program *program) {
        struct perf_event_attr attr = {
                .type = PERF_TYPE_SOFTWARE,
                .size = sizeof(attr),
                .config = config,
                .sample_period = period,
                .disabled = 1,
                .exclude_idle = 1,
        };
        _cleanup_close_ int fd =
                (int) syscall(SYS_perf_event_open, &attr, -1, (int) cpu, -1, PERF_FLAG_FD_CLOEXEC);

        if (fd < 0 || ioctl(fd, PERF_EVENT_IOC_SET_BPF, bpf_program__fd(program)) < 0)
                return -errno;
        return TAKE_FD(fd);
}

static int open_cpu(struct probe *p, unsigned number) {
        struct cpu *cpu = &p->cpus[number];
        int r;

        cpu->clock_fd = open_event(number, PERF_COUNT_SW_CPU_CLOCK, NSEC_PER_SEC / FREQUENCY_AT_LOAD,
                                   p->programs->progs.tick);
        if (cpu->clock_fd == -ENODEV)
                return 0;
        if (cpu->clock_fd < 0)
                return cpu->clock_fd;
        cpu->fault_fd = open_event(number, PERF_COUNT_SW_PAGE_FAULTS_MAJ, 1, p->programs->progs.major_fault);
        if (cpu->fault_fd < 0)
                return cpu->fault_fd;

        r = perf_ring_new(number, p->build_id, &cpu->mappings);
        if (r == -EINVAL && p->build_id) {
                p->build_id = false;
                r = perf_ring_new(number, false, &cpu->mappings);
        }
        if (r < 0)
                return r;
        p->n_online++;
        return 0;
}

static int open_events(struct probe *p, const char **ret_reason) {
        int r;

        p->cpus = calloc(p->n_cpus, sizeof(*p->cpus));
        if (!p->cpus)
                return -ENOMEM;
        for (unsigned i = 0; i < p->n_cpus; i++)
                p->cpus[i].clock_fd = p->cpus[i].fault_fd = -EBADF;

        p->build_id = true;
        for (unsigned i = 0; i < p->n_cpus; i++) {
                r = open_cpu(p, i);
                if (r == -EACCES || r == -EPERM)
                        *ret_reason =
                                "perf_event_open(2) was not permitted: the daemon needs CAP_PERFMON, on "
                                "kernels "
                                "of Debian and Ubuntu CAP_SYS_ADMIN (kernel.perf_event_paranoid), and a "
                                "system-call filter that allows it.";
                else if (r < 0)
                        *ret_reason = "The kernel offers no software perf events (CONFIG_PERF_EVENTS) or no "
                                      "memory for "
                                      "their rings.";
                if (r < 0)
                        return r;
        }
        return 0;
}

static int add_to_poll(struct probe *p, int fd) {
        struct epoll_event event = { .events = EPOLLIN };

        return epoll_ctl(p->poll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

/* A disabled perf event polls as hung up when its ring is used by none; only level-triggered input counts. */
static int open_poll(struct probe *p) {
        int r;

        p->poll_fd = epoll_create1(EPOLL_CLOEXEC);
        if (p->poll_fd < 0)
                return -errno;
        r = add_to_poll(p, bpf_map__fd(p->programs->maps.events));
        for (unsigned i = 0; i < p->n_cpus && r >= 0; i++)
                if (p->cpus[i].mappings)
                        r = add_to_poll(p, perf_ring_fd(p->cpus[i].mappings));
        return r;
}

/* ---- events ---- */

static const size_t event_bytes[EVENT_TYPE_MAX] = {
        [EVENT_CGROUP] = sizeof(struct event_cgroup), [EVENT_JOIN] = sizeof(struct event_join),
        [EVENT_FORK] = sizeof(struct event_fork),     [EVENT_EXEC] = sizeof(struct event_exec),
        [EVENT_EXIT] = sizeof(struct event_exit),     [EVENT_SAMPLE] = sizeof(struct event_sample),
        [EVENT_WAIT] = sizeof(struct event_sample),   [EVENT_PATH] = sizeof(struct event_path),
};

static int on_record(void *userdata, void *data, size_t bytes) {
        struct probe *p = userdata;
        const struct event_head *head = data;

        if (!p->sink || bytes < sizeof(*head) || head->type == EVENT_NULL || head->type >= EVENT_TYPE_MAX)
                return 0;
        if (bytes < event_bytes[head->type] || head->session >= SESSION_MAX)
                return 0;
        p->sink->event(p->sink->userdata, head, bytes);
        return 0;
}

void probe_drain(struct probe *p, const struct probe_sink *sink) {
        p->sink = sink;
        ring_buffer__consume(p->ring);
        for (unsigned i = 0; i < p->n_cpus; i++)
                if (p->cpus[i].mappings)
                        perf_ring_drain(p->cpus[i].mappings, sink->mapping, sink->userdata);
        p->sink = NULL;
}

int probe_poll_fd(struct probe *p) {
        return p->poll_fd;
}

static int open_ring(struct probe *p) {
        uint32_t bytes = ring_bytes(p->n_cpus, p->sized_for_hz);

        p->ring = ring_buffer__new(bpf_map__fd(p->programs->maps.events), on_record, p, NULL);
        if (!p->ring)
                return -errno;
        for (uint32_t written = 0; written < bytes; written += STACK_COPY_MAX) {
                LIBBPF_OPTS(bpf_test_run_opts, options);

                if (bpf_prog_test_run_opts(bpf_program__fd(p->programs->progs.warm_ring), &options) < 0)
                        break; /* costs time later, nothing else */
                ring_buffer__consume(p->ring);
        }
        return 0;
}

/* ---- life ---- */

static void fill_features(struct probe *p) {
        struct probe_feature *f = p->features;

        f[0] = (struct probe_feature){ "BPF programs with BTF", true, "" };
        f[1] = (struct probe_feature){ "build-ids in mapping events", p->build_id,
                                       p->build_id
                                               ? ""
                                               : "The kernel is older than 5.12: files are told apart by "
                                                 "path and inode until the worker reads them." };
        f[2] = (struct probe_feature){ "user registers by helper", p->programs->bss->facts.task_regs_helper,
                                       p->programs->bss->facts.task_regs_helper
                                               ? ""
                                               : "The kernel is older than 5.15: registers are "
                                                 "read from the kernel stack." };
        f[3] = (struct probe_feature){ "32-bit processes", false,
                                       "Their calls are counted and they are sampled, without stacks." };
}

int probe_new(uint32_t frequency_hz, struct probe **ret, const char **ret_reason) {
        _cleanup_(probe_freep) struct probe *p = calloc(1, sizeof(*p));
        const char *reason = "There is not enough memory.";
        int r;

        if (!p) {
                *ret_reason = reason;
                return -ENOMEM;
        }
        p->poll_fd = -EBADF;
        p->sized_for_hz = frequency_hz;
        libbpf_set_print(print_libbpf);
        libbpf_set_strict_mode(LIBBPF_STRICT_ALL);

        r = check_machine(&reason);
        if (r >= 0) {
                r = load_programs(p);
                if (r < 0)
                        reason = reason_of_load(r);
        }
        if (r >= 0)
                r = open_events(p, &reason);
        if (r >= 0)
                r = open_ring(p);
        if (r >= 0)
                r = open_poll(p);
        if (r < 0) {
                *ret_reason = reason;
                return r;
        }
        fill_features(p);
        *ret = TAKE_PTR(p);
        return 0;
}

static void detach(struct probe *p) {
        for (unsigned i = 0; i < p->n_cpus; i++) {
                if (!p->cpus[i].mappings)
                        continue;
                ioctl(p->cpus[i].clock_fd, PERF_EVENT_IOC_DISABLE, 0);
                ioctl(p->cpus[i].fault_fd, PERF_EVENT_IOC_DISABLE, 0);
                perf_ring_enable(p->cpus[i].mappings, false);
        }
        for (int i = HOOK_MAX - 1; i >= 0; i--) {
                bpf_link__destroy(p->hooks[i]);
                p->hooks[i] = NULL;
        }
}

struct probe *probe_free(struct probe *p) {
        if (!p)
                return NULL;
        if (p->cpus)
                detach(p);
        ring_buffer__free(p->ring);
        fd_close(p->poll_fd);
        if (p->cpu_states)
                munmap(p->cpu_states, cpu_states_bytes(p));
        for (unsigned i = 0; p->cpus && i < p->n_cpus; i++) {
                perf_ring_free(p->cpus[i].mappings);
                fd_close(p->cpus[i].clock_fd);
                fd_close(p->cpus[i].fault_fd);
        }
        free(p->cpus);
        startprof__destroy(p->programs);
        free(p);
        return NULL;
}

unsigned probe_features(struct probe *p, const struct probe_feature **ret) {
        *ret = p->features;
        return FEATURES;
}

uint32_t probe_feature_bits(struct probe *p) {
        return (p->build_id ? PROBE_BUILD_ID : 0) |
               (p->programs->bss->facts.task_regs_helper ? PROBE_TASK_REGS : 0);
}

uint32_t probe_cpu_count(struct probe *p) {
        return p->n_online;
}

/* ---- arming ---- */

static struct bpf_program *hook_program(struct probe *p, enum hook hook) {
        switch (hook) {
        case HOOK_EXIT: return p->programs->progs.sched_process_exit;
        case HOOK_FORK: return p->programs->progs.sched_process_fork;
        case HOOK_EXEC: return p->programs->progs.sched_process_exec;
        case HOOK_SWITCH: return p->programs->progs.sched_switch;
        case HOOK_WAKING: return p->programs->progs.sched_waking;
        case HOOK_WAKEUP_NEW: return p->programs->progs.sched_wakeup_new;
        case HOOK_SYS_EXIT: return p->programs->progs.sys_exit;
        case HOOK_SIGNAL: return p->programs->progs.signal_deliver;
        case HOOK_ATTACH: return p->programs->progs.cgroup_attach_task;
        case HOOK_MKDIR: return p->programs->progs.cgroup_mkdir;
        case HOOK_MAX: break;
        }
        return NULL;
}

static int attach_events(struct probe *p, uint32_t frequency_hz) {
        uint64_t period = NSEC_PER_SEC / frequency_hz;
        int r;

        for (unsigned i = 0; i < p->n_cpus; i++) {
                if (!p->cpus[i].mappings)
                        continue;
                r = perf_ring_enable(p->cpus[i].mappings, true);
                if (r < 0)
                        return r;
                if (ioctl(p->cpus[i].clock_fd, PERF_EVENT_IOC_PERIOD, &period) < 0 ||
                    ioctl(p->cpus[i].clock_fd, PERF_EVENT_IOC_ENABLE, 0) < 0 ||
                    ioctl(p->cpus[i].fault_fd, PERF_EVENT_IOC_ENABLE, 0) < 0)
                        return -errno;
        }
        p->frequency_hz = frequency_hz;
        p->programs->bss->wait_period_ns = period;
        return 0;
}

static int attach(struct probe *p, uint32_t frequency_hz) {
        int r = attach_events(p, frequency_hz);

        for (int i = 0; i < HOOK_MAX && r >= 0; i++) {
                p->hooks[i] = bpf_program__attach(hook_program(p, i));
                if (!p->hooks[i])
                        r = -errno;
        }
        if (r < 0)
                detach(p);
        return r;
}

/* Arms the directory and those below it by id. They come and go meanwhile; new ones are seen by the hook. */
static int arm_directory(struct probe *p, int dir_fd, const char *name, uint32_t session, unsigned depth,
                         unsigned *left) {
        int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        struct dirent *entry;
        struct stat st;
        DIR *dir;
        int r = 0;

        if (fd < 0)
                return errno == ENOENT ? 0 : -errno;
        if (fstat(fd, &st) >= 0) {
                uint64_t id = st.st_ino; /* kernfs: on 64 bits the inode number is the id */

                r = bpf_map__update_elem(p->programs->maps.cgroups, &id, sizeof(id), &session,
                                         sizeof(session), BPF_ANY);
                if (r >= 0 && depth == 0)
                        p->programs->bss->stats[session].cgroup_id = id;
        }
        dir = fdopendir(fd);
        if (!dir) {
                fd_close(fd);
                return -ENOMEM;
        }
        while (r >= 0 && depth < CGROUP_WALK_DEPTH && (entry = readdir(dir))) {
                if (entry->d_type != DT_DIR || entry->d_name[0] == '.' || *left == 0)
                        continue;
                (*left)--;
                r = arm_directory(p, fd, entry->d_name, session, depth + 1, left);
        }
        closedir(dir);
        return r;
}

static int reset_session(struct probe *p, uint32_t session, const struct target *target) {
        struct startprof__bss *shared = p->programs->bss;
        struct wait_key rest = { .session = session, .syscall = SYSCALL_NONE };
        struct wait_value none = {};

        memset(&shared->controls[session], 0, sizeof(shared->controls[session]));
        memset(&shared->stats[session], 0, sizeof(shared->stats[session]));
        memset(shared->path_counts[session], 0, sizeof(shared->path_counts[session]));

        /* The matching compares whole buffers: nothing may lie behind the end of the path. */
        shared->controls[session].target = *target;
        memset(shared->controls[session].target.path + target->path_size, 0,
               TARGET_PATH_MAX - target->path_size);
        return bpf_map__update_elem(p->programs->maps.waits, &rest, sizeof(rest), &none, sizeof(none),
                                    BPF_ANY);
}

int probe_arm(struct probe *p, const struct target *target, const char *cgroup_dir, uint32_t frequency_hz,
              uint32_t *ret_session, uint32_t *ret_frequency_hz) {
        uint32_t session = (uint32_t) __builtin_ctz(~p->used);
        unsigned left = CGROUP_WALK_MAX;
        int r;

        if (session >= SESSION_MAX)
                return -EBUSY;
        if (target->path_size < 2 || target->path_size > TARGET_PATH_MAX || target->depth < 1 ||
            target->depth > TARGET_DEPTH_MAX || frequency_hz == 0)
                return -EINVAL;

        r = reset_session(p, session, target);
        if (r < 0)
                return r;
        if (p->armed == 0) {
                r = attach(p, frequency_hz);
                if (r < 0)
                        return r;
        }
        p->armed |= 1U << session;
        p->used |= 1U << session;
        __atomic_store_n(&p->programs->bss->controls[session].armed_ns, now_ns(), __ATOMIC_RELEASE);
        if (cgroup_dir)
                r = arm_directory(p, AT_FDCWD, cgroup_dir, session, 0, &left);
        if (r < 0) {
                probe_disarm(p, session);
                probe_release(p, session);
                return r;
        }
        *ret_session = session;
        *ret_frequency_hz = p->frequency_hz;
        return 0;
}

/* ---- maps ---- */

/* Calls f for each entry until it returns true for "delete"; the largest key and value have 64 and 96 bytes. */
static void each_entry(const struct bpf_map *map,
                       bool (*f)(const void *key, const void *value, void *userdata), void *value,
                       void *userdata) {
        _Alignas(8) uint8_t keys[2][64];
        size_t key_bytes = bpf_map__key_size(map);
        int fd = bpf_map__fd(map), current = 0, r;

        r = bpf_map_get_next_key(fd, NULL, keys[current]);
        while (r == 0) {
                bool delete = key_bytes <= sizeof(keys[0]) &&
                              bpf_map_lookup_elem(fd, keys[current], value) == 0 &&
                              f(keys[current], value, userdata);

                /* The key of the next one is taken first: behind a deleted key the kernel begins anew. */
                r = bpf_map_get_next_key(fd, keys[current], keys[!current]);
                if (delete)
                        bpf_map_delete_elem(fd, keys[current]);
                current = !current;
        }
}

static bool member_of_session(const void *key, const void *value, void *userdata) {
        return ((const struct member *) value)->session == *(uint32_t *) userdata;
}

static bool cgroup_of_session(const void *key, const void *value, void *userdata) {
        return *(const uint32_t *) value == *(uint32_t *) userdata;
}

static bool program_of_session(const void *key, const void *value, void *userdata) {
        return ((const struct program_key *) key)->session == *(uint32_t *) userdata;
}

static bool number_of_session(const void *key, const void *value, void *userdata) {
        return *(const uint64_t *) key >> 32 == *(uint32_t *) userdata;
}

static bool thread_of_session(const void *key, const void *value, void *userdata) {
        return ((const struct thread_state *) value)->session == *(uint32_t *) userdata;
}

static bool call_of_session(const void *key, const void *value, void *userdata) {
        return ((const struct call_key *) key)->session == *(uint32_t *) userdata;
}

static bool wait_of_session(const void *key, const void *value, void *userdata) {
        return ((const struct wait_key *) key)->session == *(uint32_t *) userdata;
}

static bool dir_of_session(const void *key, const void *value, void *userdata) {
        return ((const struct dir_key *) key)->session == *(uint32_t *) userdata;
}

/* Every CPU adds the counters that it has at hand. No member is left, so none of these changes meanwhile. */
static void flush_calls(struct probe *p, uint32_t session) {
        uint64_t context[1] = { session };

        for (unsigned i = 0; i < p->n_cpus; i++) {
                LIBBPF_OPTS(bpf_test_run_opts, options, .ctx_in = context, .ctx_size_in = sizeof(context),
                            .flags = BPF_F_TEST_RUN_ON_CPU, .cpu = i);

                /* An offline CPU (ENXIO) has nothing that is worth waiting for. */
                (void) bpf_prog_test_run_opts(bpf_program__fd(p->programs->progs.flush_calls), &options);
        }
}

void probe_disarm(struct probe *p, uint32_t session) {
        struct member member;
        uint32_t id;

        if (!(p->armed & 1U << session))
                return;
        __atomic_store_n(&p->programs->bss->controls[session].armed_ns, 0, __ATOMIC_RELEASE);
        each_entry(p->programs->maps.cgroups, cgroup_of_session, &id, &session);
        each_entry(p->programs->maps.members, member_of_session, &member, &session);
        __atomic_add_fetch(&p->programs->bss->members_epoch, 1, __ATOMIC_RELEASE);
        p->armed &= ~(1U << session);
        if (p->armed == 0)
                detach(p);
}

void probe_release(struct probe *p, uint32_t session) {
        struct thread_state thread;
        struct wait_value wait;
        struct member member;
        uint32_t program;
        struct call_value call;
        uint64_t count;

        if (!(p->used & 1U << session))
                return;
        probe_disarm(p, session);
        /* A fork may have been between its look-up and its insertion when the members were deleted. */
        each_entry(p->programs->maps.members, member_of_session, &member, &session);
        each_entry(p->programs->maps.threads, thread_of_session, &thread, &session);
        each_entry(p->programs->maps.programs, program_of_session, &program, &session);
        each_entry(p->programs->maps.program_numbers, number_of_session, &program, &session);
        each_entry(p->programs->maps.waits, wait_of_session, &wait, &session);
        each_entry(p->programs->maps.dirs, dir_of_session, &count, &session);
        flush_calls(p, session);
        each_entry(p->programs->maps.calls, call_of_session, &call, &session);
        p->used &= ~(1U << session);
}

void probe_stat(struct probe *p, uint32_t session, struct session_stat *ret) {
        *ret = p->programs->bss->stats[session];
        ret->calls = 0;
        for (unsigned i = 0; i < p->n_cpus; i++)
                ret->calls += p->cpu_states[i].calls[session];
}

struct reading {
        uint32_t session;
        uint64_t end_ns;
        void (*f)(void); /* the caller's function, cast to its type */
        void *userdata;
};

static bool read_call(const void *key, const void *value, void *userdata) {
        const struct reading *reading = userdata;
        struct call_value sum = *(const struct call_value *) value;

        if (((const struct call_key *) key)->session != reading->session)
                return false;
        /* The last one is stamped with a clock that is right to a tick. */
        sum.last_ns = MAX(sum.last_ns, sum.first_ns);
        ((probe_call_fn) reading->f)(reading->userdata, key, &sum);
        return false;
}

int probe_read_calls(struct probe *p, uint32_t session, probe_call_fn f, void *userdata) {
        struct reading reading = { .session = session, .f = (void (*)(void)) f, .userdata = userdata };
        struct call_value call;

        flush_calls(p, session);
        each_entry(p->programs->maps.calls, read_call, &call, &reading);
        return 0;
}

static bool read_wait(const void *key, const void *value, void *userdata) {
        const struct reading *reading = userdata;

        if (((const struct wait_key *) key)->session == reading->session)
                ((probe_wait_fn) reading->f)(reading->userdata, key, value);
        return false;
}

/* What a living thread has not added to the sums yet, as if everything ended at end_ns. */
static bool read_thread(const void *key, const void *value, void *userdata) {
        const struct reading *reading = userdata;
        const struct thread_state *t = value;
        struct wait_key wait_key = { t->session, t->tgid, t->tid, SYSCALL_ON_CPU };
        uint64_t open = reading->end_ns > t->since_ns ? reading->end_ns - t->since_ns : 0;
        struct wait_value sum = { .blocked_ns = t->on_cpu_ns + (t->phase == THREAD_RUNNING ? open : 0),
                                  .count = t->switches };

        if (t->session != reading->session)
                return false;
        ((probe_wait_fn) reading->f)(reading->userdata, &wait_key, &sum);

        wait_key.syscall = SYSCALL_NONE;
        sum = (struct wait_value){ .runnable_ns =
                                           t->preempted_ns + (t->phase == THREAD_RUNNABLE ? open : 0) };
        if (sum.runnable_ns > 0)
                ((probe_wait_fn) reading->f)(reading->userdata, &wait_key, &sum);

        if (t->phase != THREAD_BLOCKED && t->phase != THREAD_WOKEN)
                return false;
        wait_key.syscall = t->syscall;
        sum = (struct wait_value){ .blocked_ns = t->phase == THREAD_BLOCKED ? open : t->blocked_ns,
                                   .runnable_ns = t->phase == THREAD_WOKEN ? open : 0,
                                   .count = 1 };
        sum.longest_ns = sum.blocked_ns;
        sum.io_ns = t->flags & WAIT_IO ? sum.blocked_ns : 0;
        ((probe_wait_fn) reading->f)(reading->userdata, &wait_key, &sum);
        return false;
}

int probe_read_waits(struct probe *p, uint32_t session, uint64_t end_ns, probe_wait_fn f, void *userdata) {
        struct reading reading = {
                .session = session, .end_ns = end_ns, .f = (void (*)(void)) f, .userdata = userdata
        };
        struct thread_state thread;
        struct wait_value wait;

        each_entry(p->programs->maps.waits, read_wait, &wait, &reading);
        each_entry(p->programs->maps.threads, read_thread, &thread, &reading);
        return 0;
}

static bool read_dir(const void *key, const void *value, void *userdata) {
        const struct reading *reading = userdata;

        if (((const struct dir_key *) key)->session == reading->session)
                ((probe_dir_fn) reading->f)(reading->userdata, key, *(const uint64_t *) value);
        return false;
}

int probe_read_dirs(struct probe *p, uint32_t session, probe_dir_fn f, void *userdata) {
        struct reading reading = { .session = session, .f = (void (*)(void)) f, .userdata = userdata };
        uint64_t count;

        each_entry(p->programs->maps.dirs, read_dir, &count, &reading);
        return 0;
}

/* ---- threads that are still blocked ---- */

static int open_iterator(struct probe *p) {
        struct bpf_link *link = bpf_program__attach_iter(p->programs->progs.blocked_threads, NULL);
        int fd;

        if (!link)
                return -errno;
        fd = bpf_iter_create(bpf_link__fd(link));
        if (fd < 0)
                fd = -errno;
        bpf_link__destroy(link);
        return fd;
}

int probe_read_blocked(struct probe *p, uint32_t session, probe_blocked_fn f, void *userdata) {
        struct blocked_thread threads[BLOCKED_AT_ONCE];
        _cleanup_close_ int fd = open_iterator(p);
        ssize_t n;

        if (fd < 0)
                return fd;
        /* The kernel hands over whole records only: it keeps what one task wrote together. */
        while ((n = read(fd, threads, sizeof(threads))) > 0)
                for (size_t i = 0; i < (size_t) n / sizeof(threads[0]); i++)
                        if (threads[i].session == session)
                                f(userdata, &threads[i]);
        return n < 0 ? -errno : 0;
}
