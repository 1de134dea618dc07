/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

#include "common/fd.h"
#include "common/procfs.h"
#include "proto/recording.h"
#include "proto/worker_link.h"
#include "symbolize/elf_image.h"
#include "toolchain.h"
#include "worker/sandbox.h"

/* The real worker as a parent sees it: fed with mappings and a stack of a forked child of this program. */

enum { MODULES_MAX = 64, NOBODY = 65534 };
#define FOREVER UINT64_MAX

DEFINE_CLEANUP(struct recording *, recording_free);
DEFINE_CLEANUP(struct recording_writer *, recording_writer_free);

struct mapping {
        uint64_t start, end, offset;
        uint32_t module;
};

/* What stands for a module's file. */
enum disguise { HONEST, GONE, GARBAGE, FIFO, HUGE_SPARSE, SHRINKING };

struct fixture {
        struct toolchain tools;

        struct {
                char path[PATH_MAX];
                uint32_t kind;
                struct build_id build_id;
                enum disguise disguise;
        } modules[MODULES_MAX];
        uint32_t n_modules;
        struct mapping mappings[MODULES_MAX * 4];
        uint32_t n_mappings;

        uint64_t regs[REG_COUNT];
        uint8_t stack[STACK_COPY_MAX];
        size_t stack_bytes;

        unsigned files_wanted;
        const char *perf_map; /* the text of it, or NULL */
        int shrinking; /* the file of SHRINKING */
};

/* ---- what this program is when it runs itself ---- */

static const char *own_path(char path[static PATH_MAX]) {
        ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);

        assert_true(n > 0);
        path[n] = 0;
        return path;
}

/* Children are this program executed anew, so that they run by themselves also where the test does not (under
 * valgrind). argv[1] says what for. */
static pid_t run_self(const char *role, int channel) {
        char path[PATH_MAX], number[16];
        pid_t pid;

        (void) own_path(path);
        (void) snprintf(number, sizeof(number), "%d", channel);
        pid = fork();
        if (pid == 0) {
                execl(path, path, role, number, NULL);
                _exit(1);
        }
        assert_true(pid > 0);
        return pid;
}

/* The chain whose stack is copied. Called through pointers that the compiler cannot see through, so that no
 * function is inlined or cloned. */
static int worker_test_leaf(int n);
static int worker_test_middle(int n);
static int worker_test_outer(int n);
static int (*volatile leaf)(int) = worker_test_leaf;
static int (*volatile middle)(int) = worker_test_middle;
static int (*volatile outer)(int) = worker_test_outer;

static int worker_test_leaf(int n) {
        __asm__ volatile("int3");
        return n + 1;
}

static int worker_test_middle(int n) {
        return leaf(n) + 1;
}

static int worker_test_outer(int n) {
        return middle(n) + 1;
}

static int be_stopped(void) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
                return 1;
        return outer(1) + 1;
}

static void to_dwarf_order(const struct user_regs_struct *r, uint64_t ret[static REG_COUNT]) {
        const uint64_t regs[REG_COUNT] = {
                r->rax, r->rdx, r->rcx, r->rbx, r->rsi, r->rdi, r->rbp, r->rsp, r->r8,
                r->r9,  r->r10, r->r11, r->r12, r->r13, r->r14, r->r15, r->rip,
        };

        memcpy(ret, regs, sizeof(regs));
}

static uint32_t module_of(struct fixture *f, const char *path) {
        for (uint32_t i = 0; i < f->n_modules; i++)
                if (streq(f->modules[i].path, path))
                        return i;

        assert_true(f->n_modules < MODULES_MAX);
        (void) snprintf(f->modules[f->n_modules].path, PATH_MAX, "%s", path);
        f->modules[f->n_modules].kind = streq(path, "[vdso]") ? REC_MODULE_VDSO : REC_MODULE_FILE;
        return f->n_modules++;
}

static int take_mapping(const struct procfs_mapping *m, void *userdata) {
        struct fixture *f = userdata;

        if (m->permissions[2] != 'x' || m->path[0] == 0 || streq(m->path, "[vsyscall]"))
                return 0;
        assert_true(f->n_mappings < ARRAY_SIZE(f->mappings));
        f->mappings[f->n_mappings++] = (struct mapping){
                .start = m->start,
                .end = m->end,
                .offset = m->offset,
                .module = module_of(f, m->path),
        };
        return 0;
}

static void copy_child(struct fixture *f, pid_t pid) {
        struct user_regs_struct regs;
        struct iovec ours = { .iov_base = f->stack, .iov_len = sizeof(f->stack) }, theirs;
        _cleanup_close_ int proc = -EBADF;
        ssize_t n = -1;

        assert_int_equal(procfs_open(&proc), 0);
        assert_int_equal(procfs_maps(proc, (uint32_t) pid, take_mapping, f), 0);
        assert_int_equal(ptrace(PTRACE_GETREGS, pid, NULL, &regs), 0);
        to_dwarf_order(&regs, f->regs);

        /* Up to the end of the stack, which a child of a small program reaches before 64 KB. */
        theirs = (struct iovec){ .iov_base = (void *) regs.rsp, .iov_len = sizeof(f->stack) };
        while (n < 0 && theirs.iov_len > 0) {
                n = process_vm_readv(pid, &ours, 1, &theirs, 1, 0);
                if (n < 0)
                        theirs.iov_len -= 512;
        }
        assert_true(n > 0);
        f->stack_bytes = (size_t) n;
}

static int set_up(void **state) {
        static struct fixture f;
        pid_t pid;
        int status;

        *state = &f;
        f.shrinking = -EBADF;
        if (toolchain_init(&f.tools) < 0)
                return -1;

        pid = run_self("stack", -1);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP);
        copy_child(&f, pid);
        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        return 0;
}

static int tear_down(void **state) {
        struct fixture *f = *state;

        toolchain_done(&f->tools);
        return 0;
}

/* ---- the parent's side ---- */

static int open_disguised(struct fixture *f, enum disguise disguise, int *ret_fd) {
        char path[PATH_MAX];

        switch (disguise) {
        case GARBAGE:
                assert_int_equal(toolchain_source(&f->tools, "garbage",
                                                  "\177ELF and nothing else, for longer than a header is, "
                                                  "and even longer"),
                                 0);
                *ret_fd = open(toolchain_path(&f->tools, "garbage", path), O_RDONLY | O_CLOEXEC);
                break;
        case FIFO:
                (void) mkfifo(toolchain_path(&f->tools, "fifo", path), 0600);
                *ret_fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
                break;
        case HUGE_SPARSE:
                *ret_fd = memfd_create("sparse", MFD_CLOEXEC);
                assert_int_equal(ftruncate(*ret_fd, INT64_C(4) << 30), 0);
                break;
        case SHRINKING:
                assert_int_equal(toolchain_source(&f->tools, "small.c", "int main(void) { return 0; }\n"),
                                 0);
                assert_int_equal(toolchain_run(&f->tools, "gcc -s -o @small @small.c"), 0);
                f->shrinking = open(toolchain_path(&f->tools, "small", path), O_RDWR | O_CLOEXEC);
                *ret_fd = open(path, O_RDONLY | O_CLOEXEC);
                break;
        default: return -ENOENT;
        }
        assert_true(*ret_fd >= 0);
        return 0;
}

static int open_file(void *userdata, uint32_t module, enum worker_role role, uint32_t attempt,
                     const char *name, int *ret_fd, char path[static WORKER_PATH_MAX]) {
        struct fixture *f = userdata;
        enum disguise disguise = f->modules[module].disguise;

        f->files_wanted++;
        assert_true(module < f->n_modules);
        if (role == WORKER_ROLE_PERF_MAP && f->perf_map) {
                (void) snprintf(path, WORKER_PATH_MAX, "/tmp/perf-1.map");
                *ret_fd = fd_new_sealed("map", f->perf_map, strlen(f->perf_map));
                return MIN(*ret_fd, 0);
        }
        if (role != WORKER_ROLE_FILE) {
                /* It has the file mapped now, and looks for what the file lacks. */
                if (disguise == SHRINKING)
                        assert_int_equal(ftruncate(f->shrinking, 0), 0);
                return -ENXIO;
        }
        if (disguise != HONEST)
                return open_disguised(f, disguise, ret_fd);

        *ret_fd = open(f->modules[module].path, O_RDONLY | O_CLOEXEC);
        (void) snprintf(path, WORKER_PATH_MAX, "%s", f->modules[module].path);
        return *ret_fd < 0 ? -errno : 0;
}

/* Beside the directory of this program. */
static const char *worker_path(void) {
        static char path[PATH_MAX];

        (void) own_path(path);
        for (int i = 0; i < 3; i++)
                *strrchr(path, '/') = 0;
        (void) snprintf(path + strlen(path), sizeof(path) - strlen(path), "/startprof-worker");
        return path;
}

static struct worker_link *start_worker(struct fixture *f) {
        const struct worker_options options = {
                .path = worker_path(), .uid = NOBODY, .gid = NOBODY, .nice = 1
        };
        struct worker_link *link = NULL;

        f->files_wanted = 0;
        assert_int_equal(worker_link_new(&options, open_file, f, &link), 0);
        return link;
}

static void announce(struct fixture *f, struct worker_link *link) {
        for (uint32_t i = 0; i < f->n_modules; i++)
                assert_int_equal(
                        worker_link_module(link, i, f->modules[i].kind, f->modules[i].build_id.bytes,
                                           f->modules[i].build_id.size, f->modules[i].path, FOREVER),
                        0);
        assert_int_equal(worker_link_space(link, 0, REC_NONE, FOREVER), 0);
        for (uint32_t i = 0; i < f->n_mappings; i++)
                assert_int_equal(worker_link_map(link, 0, f->mappings[i].module, f->mappings[i].start,
                                                 f->mappings[i].end, f->mappings[i].offset, FOREVER),
                                 0);
}

static int try_stack(struct fixture *f, struct worker_link *link, uint32_t sample, uint32_t space,
                     uint64_t deadline_ns) {
        struct worker_stack stack = { .sample = sample,
                                      .space = space,
                                      .flags = SAMPLE_USER,
                                      .stack_bytes = (uint32_t) f->stack_bytes };

        memcpy(stack.regs, f->regs, sizeof(stack.regs));
        return worker_link_stack(link, &stack, f->stack, deadline_ns);
}

static void send_stack(struct fixture *f, struct worker_link *link, uint32_t sample, uint32_t space) {
        assert_int_equal(try_stack(f, link, sample, space, FOREVER), 0);
}

/* A recording of two samples around the layer; layer NULL: without one. */
static void write_recording(struct fixture *f, const void *layer, size_t layer_bytes, void **ret,
                            size_t *ret_bytes) {
        _cleanup_(recording_writer_freep) struct recording_writer *w = recording_writer_new(true);
        struct rec_start start = { .begin_ns = 1, .end_ns = 2, .queued_ns = 1 };
        struct rec_process process = { .pid = 1, .program = REC_NONE };
        struct rec_sample samples[2] = {};

        assert_non_null(w);
        start.unit = recording_writer_text(w, "test.service");
        for (uint32_t i = 0; i < 2; i++)
                samples[i] =
                        (struct rec_sample){ .time_ns = 1, .syscall = REC_CALL_NONE, .stack = REC_NONE };
        recording_writer_rows(w, REC_START, &start, sizeof(start), 1);
        recording_writer_rows(w, REC_PROCESSES, &process, sizeof(process), 1);
        recording_writer_rows(w, REC_SAMPLES, samples, sizeof(samples[0]), 2);
        for (uint32_t i = 0; i < f->n_modules; i++) {
                struct rec_module module = { .kind = f->modules[i].kind,
                                             .build_id_bytes = f->modules[i].build_id.size };

                module.path = recording_writer_text(w, f->modules[i].path);
                memcpy(module.build_id, f->modules[i].build_id.bytes, sizeof(module.build_id));
                recording_writer_rows(w, REC_MODULES, &module, sizeof(module), 1);
        }
        if (layer)
                recording_writer_layer(w, layer, layer_bytes);
        assert_int_equal(recording_writer_finish(w, false, ret, ret_bytes), 0);
}

static struct recording *finish(struct fixture *f, struct worker_link *link) {
        _cleanup_free_ void *layer = NULL, *file = NULL;
        size_t layer_bytes, file_bytes;
        struct recording *recording = NULL;

        assert_int_equal(worker_link_finish(link, FOREVER, &layer, &layer_bytes), 0);
        write_recording(f, layer, layer_bytes, &file, &file_bytes);
        assert_int_equal(recording_open(file, file_bytes, &recording), 0);
        return recording;
}

/* The name row of frame `depth` of a sample. */
static const struct rec_name *name_at(const struct recording *r, uint32_t sample, uint32_t depth) {
        const struct rec_stack *stack;
        uint32_t frame;

        assert_int_not_equal(r->samples[sample].stack, REC_NONE);
        stack = &r->stacks[r->samples[sample].stack];
        assert_true(depth < stack->count);
        frame = r->stack_frames[stack->first + depth];
        assert_true(r->frame_names[frame + 1] > r->frame_names[frame]);
        return &r->names[r->frame_names[frame]];
}

static void assert_named(const struct recording *r, uint32_t sample, uint32_t depth, const char *name) {
        assert_string_equal(recording_text(r, name_at(r, sample, depth)->name), name);
}

/* One stack with the module of this program in disguise. */
static struct recording *capture_disguised(struct fixture *f, enum disguise disguise) {
        _cleanup_(worker_link_freep) struct worker_link *link = start_worker(f);
        struct recording *r;

        f->modules[0].disguise = disguise;
        announce(f, link);
        send_stack(f, link, 0, 0);
        r = finish(f, link);
        f->modules[0].disguise = HONEST;
        return r;
}

/* ---- tests ---- */

static void a_real_stack_comes_back_with_names(void **state) {
        struct fixture *f = *state;
        _cleanup_(worker_link_freep) struct worker_link *link = start_worker(f);
        _cleanup_(recording_freep) struct recording *r = NULL;

        announce(f, link);
        send_stack(f, link, 0, 0);
        r = finish(f, link);

        assert_int_equal(r->stacks[r->samples[0].stack].end, REC_STACK_COMPLETE);
        assert_named(r, 0, 0, "worker_test_leaf");
        assert_named(r, 0, 1, "worker_test_middle");
        assert_named(r, 0, 2, "worker_test_outer");
        assert_int_equal(name_at(r, 0, 0)->source, REC_SOURCE_SYMTAB);
        assert_int_equal(r->samples[1].stack, REC_NONE);
        assert_int_equal(r->symbols[0].source, REC_SOURCE_SYMTAB);
}

/* This program has DWARF, whatever else: the last row of a frame is the function itself. */
static void frames_have_their_lines(void **state) {
        struct fixture *f = *state;
        _cleanup_(worker_link_freep) struct worker_link *link = start_worker(f);
        _cleanup_(recording_freep) struct recording *r = NULL;

        announce(f, link);
        send_stack(f, link, 0, 0);
        r = finish(f, link);

        for (uint32_t depth = 0; depth < 3; depth++) {
                const struct rec_name *row = name_at(r, 0, depth);

                assert_false(row->inlined);
                assert_non_null(endswith(recording_text(r, row->file), "tests/unit/test_worker.c"));
                assert_in_range(row->line, 1, 2000);
        }
}

static void equal_stacks_are_one_and_their_files_are_asked_for_once(void **state) {
        struct fixture *f = *state;
        _cleanup_(worker_link_freep) struct worker_link *link = start_worker(f);
        _cleanup_(recording_freep) struct recording *r = NULL;
        unsigned wanted;

        announce(f, link);
        send_stack(f, link, 0, 0);
        r = finish(f, link);
        wanted = f->files_wanted;
        r = recording_free(r);

        send_stack(f, link, 1, 0);
        r = finish(f, link);
        assert_int_equal(r->n_stacks, 1);
        assert_int_equal(r->samples[0].stack, r->samples[1].stack);
        assert_int_equal(f->files_wanted, wanted);
}

static void a_forked_process_has_the_mappings_of_its_parent_until_it_execs(void **state) {
        struct fixture *f = *state;
        _cleanup_(worker_link_freep) struct worker_link *link = start_worker(f);
        _cleanup_(recording_freep) struct recording *r = NULL;

        announce(f, link);
        assert_int_equal(worker_link_space(link, 1, 0, FOREVER), 0);
        assert_int_equal(worker_link_space(link, 2, REC_NONE, FOREVER), 0);
        send_stack(f, link, 0, 1);
        send_stack(f, link, 1, 2);
        r = finish(f, link);

        assert_named(r, 0, 0, "worker_test_leaf");
        assert_int_equal(r->stacks[r->samples[1].stack].end, REC_STACK_NO_MODULE);
        assert_int_equal(name_at(r, 1, 0)->name, 0);
        assert_int_equal(name_at(r, 1, 0)->reason, REC_REASON_UNMAPPED);
}

/* The innermost frame lies in memory that is no file, of whose owner there is this map. */
static struct recording *capture_code(struct fixture *f, const char *map) {
        _cleanup_(worker_link_freep) struct worker_link *link = start_worker(f);
        uint64_t page = f->regs[DWARF_RIP] & ~UINT64_C(4095);
        uint32_t module = f->n_modules++;
        struct recording *r;

        (void) snprintf(f->modules[module].path, PATH_MAX, "[anonymous]");
        f->modules[module].kind = REC_MODULE_ANONYMOUS;
        f->perf_map = map;
        announce(f, link);
        assert_int_equal(worker_link_map(link, 0, module, page, page + 4096, page, FOREVER), 0);
        send_stack(f, link, 0, 0);
        r = finish(f, link);
        f->n_modules--;
        f->perf_map = NULL;
        return r;
}

static void code_made_at_run_time_is_named_by_its_map(void **state) {
        struct fixture *f = *state;
        _cleanup_(recording_freep) struct recording *r = NULL;
        const struct rec_symbols *symbols;
        uint64_t page = f->regs[DWARF_RIP] & ~UINT64_C(4095);
        char map[128];

        (void) snprintf(map, sizeof(map), "%" PRIx64 " 1000 a function, made\n", page);
        r = capture_code(f, map);
        assert_named(r, 0, 0, "a function, made");
        assert_int_equal(name_at(r, 0, 0)->source, REC_SOURCE_PERF_MAP);
        assert_int_equal(name_at(r, 0, 0)->displacement, f->regs[DWARF_RIP] - page);
        symbols = &r->symbols[f->n_modules];
        assert_int_equal(symbols->source, REC_SOURCE_PERF_MAP);
        assert_int_equal(symbols->reason, REC_REASON_NONE);
        assert_string_equal(recording_text(r, symbols->debug_path), "/tmp/perf-1.map");
}

/* Node tells of its builtins, which lie in a file that may have no symbols for them. */
static void code_in_a_file_without_symbols_is_named_by_the_map_of_its_process(void **state) {
        struct fixture *f = *state;
        _cleanup_(worker_link_freep) struct worker_link *link = start_worker(f);
        _cleanup_(recording_freep) struct recording *r = NULL;
        uint64_t page = f->regs[DWARF_RIP] & ~UINT64_C(4095);
        uint32_t module = f->n_modules++;
        char map[128];

        (void) snprintf(map, sizeof(map), "%" PRIx64 " 1000 Builtin:Leaf\n", page);
        (void) snprintf(f->modules[module].path, PATH_MAX, "[anonymous]");
        f->modules[module].kind = REC_MODULE_ANONYMOUS;
        f->modules[0].disguise = GONE; /* the file of this program */
        f->perf_map = map;
        announce(f, link);
        assert_int_equal(worker_link_map(link, 0, module, 4096, 8192, 4096, FOREVER), 0);
        send_stack(f, link, 0, 0);
        r = finish(f, link);
        f->n_modules--;
        f->modules[0].disguise = HONEST;
        f->perf_map = NULL;

        assert_named(r, 0, 0, "Builtin:Leaf");
        assert_int_equal(name_at(r, 0, 0)->source, REC_SOURCE_PERF_MAP);
        assert_int_equal(name_at(r, 0, 0)->displacement, f->regs[DWARF_RIP] - page);
}

static void code_that_no_map_tells_of_says_why_it_has_no_name(void **state) {
        struct fixture *f = *state;
        _cleanup_(recording_freep) struct recording *without = capture_code(f, NULL);
        _cleanup_(recording_freep) struct recording *other = capture_code(f, "1000 10 elsewhere\n");

        assert_named(without, 0, 0, "");
        assert_int_equal(name_at(without, 0, 0)->reason, REC_REASON_JIT);
        assert_int_equal(without->symbols[f->n_modules].reason, REC_REASON_JIT);
        assert_named(other, 0, 0, "");
        assert_int_equal(name_at(other, 0, 0)->reason, REC_REASON_NO_SYMBOL);
        assert_int_equal(other->symbols[f->n_modules].reason, REC_REASON_NO_SYMBOL);
}

static void a_file_that_is_gone_gives_the_reason(void **state) {
        _cleanup_(recording_freep) struct recording *r = capture_disguised(*state, GONE);

        assert_int_equal(name_at(r, 0, 0)->name, 0);
        assert_int_equal(name_at(r, 0, 0)->reason, REC_REASON_NO_FILE);
        assert_int_equal(r->symbols[0].reason, REC_REASON_NO_FILE);
        assert_int_equal(r->symbols[0].source, REC_SOURCE_NONE);
}

static void garbage_and_a_fifo_are_no_elf_files(void **state) {
        _cleanup_(recording_freep) struct recording *garbage = capture_disguised(*state, GARBAGE);
        _cleanup_(recording_freep) struct recording *fifo = capture_disguised(*state, FIFO);

        assert_int_equal(name_at(garbage, 0, 0)->reason, REC_REASON_BAD_ELF);
        assert_int_equal(name_at(fifo, 0, 0)->reason, REC_REASON_BAD_ELF);
}

static void a_sparse_file_of_four_gigabytes_is_beyond_the_limit(void **state) {
        _cleanup_(recording_freep) struct recording *r = capture_disguised(*state, HUGE_SPARSE);

        assert_int_equal(name_at(r, 0, 0)->reason, REC_REASON_LIMIT);
}

static void a_file_of_another_build_is_refused(void **state) {
        struct fixture *f = *state;
        _cleanup_(recording_freep) struct recording *r = NULL;

        f->modules[0].build_id = (struct build_id){ .bytes = { 1, 2, 3 }, .size = 20 };
        r = capture_disguised(f, HONEST);
        f->modules[0].build_id = BUILD_ID_NULL;
        assert_int_equal(name_at(r, 0, 0)->name, 0);
        assert_int_equal(name_at(r, 0, 0)->reason, REC_REASON_MISMATCH);
}

static void a_file_that_shrinks_while_it_is_mapped_costs_the_worker_only(void **state) {
        struct fixture *f = *state;
        _cleanup_(worker_link_freep) struct worker_link *link = start_worker(f);
        void *layer = NULL;
        size_t bytes;

        f->modules[0].disguise = SHRINKING;
        announce(f, link);
        (void) try_stack(f, link, 0, 0, FOREVER);
        assert_int_equal(worker_link_finish(link, FOREVER, &layer, &bytes), -EPROTO);
        assert_int_equal(worker_link_finish(link, FOREVER, &layer, &bytes), -EPROTO);
        f->modules[0].disguise = HONEST;
        f->shrinking = fd_close(f->shrinking);
        a_real_stack_comes_back_with_names(state);
}

/* The only child of this process. */
static pid_t child_pid(void) {
        _cleanup_free_ char *text = NULL;
        size_t bytes;
        char path[64];

        (void) snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
        if (read_file_at(AT_FDCWD, path, 4096, &text, &bytes) < 0)
                skip();
        return (pid_t) strtol(text, NULL, 10);
}

static void a_killed_worker_is_an_error_and_not_more(void **state) {
        struct fixture *f = *state;
        _cleanup_(worker_link_freep) struct worker_link *link = start_worker(f);
        void *layer = NULL;
        size_t bytes;

        announce(f, link);
        assert_int_equal(kill(child_pid(), SIGKILL), 0);
        assert_int_equal(worker_link_finish(link, FOREVER, &layer, &bytes), -EPROTO);
        assert_int_equal(worker_link_space(link, 1, 0, FOREVER), -EPROTO);
}

static void a_worker_that_does_not_read_holds_nobody_beyond_the_deadline(void **state) {
        struct fixture *f = *state;
        _cleanup_(worker_link_freep) struct worker_link *link = start_worker(f);
        void *layer = NULL;
        size_t bytes;
        int r = 0;

        announce(f, link);
        assert_int_equal(kill(child_pid(), SIGSTOP), 0);
        for (unsigned i = 0; r == 0 && i < 10000; i++)
                r = try_stack(f, link, 0, 0, 1);
        assert_int_equal(r, -ETIMEDOUT);
        assert_int_equal(worker_link_finish(link, 1, &layer, &bytes), -ETIMEDOUT);
}

static void what_is_no_worker_is_told_at_once(void **state) {
        struct worker_options options = { .path = "/nonexistent/worker", .uid = NOBODY, .gid = NOBODY };
        struct worker_link *link = NULL;
        int r;

        /* The child tells why it could not be executed, except where vfork() is a fork (valgrind). */
        r = worker_link_new(&options, open_file, *state, &link);
        assert_true(r == -ENOENT || r == -EPROTO);
        options.path = "/bin/true";
        assert_int_equal(worker_link_new(&options, open_file, *state, &link), -EPROTO);
        assert_null(link);
}

/* ---- naming again, and the report ---- */

static void set_build_ids(struct fixture *f) {
        for (uint32_t i = 0; i < f->n_modules; i++) {
                _cleanup_(elf_image_freep) struct elf_image *image = NULL;
                _cleanup_close_ int fd = open(f->modules[i].path, O_RDONLY | O_CLOEXEC);

                f->modules[i].build_id = BUILD_ID_NULL;
                if (fd >= 0 && elf_image_new(fd, &image) == 0)
                        (void) elf_image_build_id(image, &f->modules[i].build_id);
        }
}

/* A recording whose frames could not be named when it was made. */
static int unnamed_recording(struct fixture *f, void **ret, size_t *ret_bytes) {
        _cleanup_(worker_link_freep) struct worker_link *link = start_worker(f);
        _cleanup_free_ void *layer = NULL;
        size_t layer_bytes;

        /* What the first unwinding needs is there; the name is lost by taking the module's own file away. */
        f->modules[0].disguise = GONE;
        announce(f, link);
        send_stack(f, link, 0, 0);
        assert_int_equal(worker_link_finish(link, FOREVER, &layer, &layer_bytes), 0);
        f->modules[0].disguise = HONEST;
        write_recording(f, layer, layer_bytes, ret, ret_bytes);
        return fd_new_sealed("recording", *ret, *ret_bytes);
}

static struct recording *name_again(struct fixture *f) {
        _cleanup_(worker_link_freep) struct worker_link *link = NULL;
        _cleanup_(recording_writer_freep) struct recording_writer *w = NULL;
        _cleanup_free_ void *file = NULL, *layer = NULL, *both = NULL;
        size_t file_bytes, layer_bytes;
        struct recording *recording = NULL;
        _cleanup_close_ int fd = unnamed_recording(f, &file, &file_bytes);

        assert_true(fd >= 0);
        link = start_worker(f);
        assert_int_equal(worker_link_name(link, fd, FOREVER, &layer, &layer_bytes), 0);
        both = malloc(file_bytes + layer_bytes);
        assert_non_null(both);
        memcpy(both, file, file_bytes);
        memcpy((char *) both + file_bytes, layer, layer_bytes);
        assert_int_equal(recording_open(both, file_bytes + layer_bytes, &recording), 0);
        return recording;
}

static void a_recording_is_named_later_when_the_files_are_the_recorded_ones(void **state) {
        struct fixture *f = *state;
        _cleanup_(recording_freep) struct recording *r = NULL;

        set_build_ids(f);
        if (f->modules[0].build_id.size == 0)
                skip();
        r = name_again(f);
        assert_named(r, 0, 0, "worker_test_leaf");
        assert_int_equal(r->symbols[0].source, REC_SOURCE_SYMTAB);
        assert_int_equal(r->symbols[0].reason, REC_REASON_NONE);
        for (uint32_t i = 0; i < f->n_modules; i++)
                f->modules[i].build_id = BUILD_ID_NULL;
}

static void without_a_build_id_a_file_found_by_name_proves_nothing(void **state) {
        _cleanup_(recording_freep) struct recording *r = name_again(*state);

        assert_int_equal(name_at(r, 0, 0)->name, 0);
        assert_int_equal(name_at(r, 0, 0)->reason, REC_REASON_NO_FILE);
}

static void the_report_for_the_journal_is_made_in_the_worker(void **state) {
        struct fixture *f = *state;
        _cleanup_(worker_link_freep) struct worker_link *link = start_worker(f);
        _cleanup_close_ int fd = -EBADF, nonsense = fd_new_sealed("nonsense", "nonsense", 8);
        _cleanup_free_ void *file = NULL;
        _cleanup_free_ char *report = NULL;
        size_t bytes;

        write_recording(f, NULL, 0, &file, &bytes);
        fd = fd_new_sealed("recording", file, bytes);
        assert_true(fd >= 0 && nonsense >= 0);
        assert_int_equal(worker_link_report(link, nonsense, FOREVER, &report), -EBADMSG);
        assert_int_equal(worker_link_report(link, fd, FOREVER, &report), 0);
        assert_non_null(strstr(report, "test.service"));
}

/* ---- the sandbox ---- */

/* What a line of /proc/PID/status says behind the colon and blanks. */
static void assert_status(const char *status, const char *key, const char *wanted) {
        char line[64];
        const char *found;

        (void) snprintf(line, sizeof(line), "\n%s:\t", key);
        found = strstr(status, line);
        assert_non_null(found);
        found += strlen(line);
        assert_int_equal(strncmp(found, wanted, strlen(wanted)), 0);
}

static void the_worker_has_no_identity_and_no_capabilities(void **state) {
        _cleanup_(worker_link_freep) struct worker_link *link = start_worker(*state);
        _cleanup_free_ char *status = NULL;
        size_t bytes;
        char path[64];

        (void) snprintf(path, sizeof(path), "/proc/%d/status", child_pid());
        assert_int_equal(read_file_at(AT_FDCWD, path, 1 << 16, &status, &bytes), 0);
        assert_status(status, "CapEff", "0000000000000000");
        assert_status(status, "CapPrm", "0000000000000000");
        assert_status(status, "CapAmb", "0000000000000000");
        assert_status(status, "NoNewPrivs", "1");
        assert_status(status, "Seccomp", "2");
        if (geteuid() == 0) {
                assert_status(status, "Uid", "65534\t65534\t65534\t65534");
                assert_status(status, "Gid", "65534\t65534\t65534\t65534");
                assert_status(status, "Groups", " \n");
        }
}

static void the_worker_of_root_has_a_network_of_its_own(void **state) {
        _cleanup_(worker_link_freep) struct worker_link *link = start_worker(*state);
        char ours[64] = "", theirs[64] = "", path[64];

        if (geteuid() != 0)
                skip();
        (void) snprintf(path, sizeof(path), "/proc/%d/ns/net", child_pid());
        assert_true(readlink("/proc/self/ns/net", ours, sizeof(ours) - 1) > 0);
        assert_true(readlink(path, theirs, sizeof(theirs) - 1) > 0);
        assert_string_not_equal(ours, theirs);
}

/* Each call that must fail; 0 when it is refused. Runs inside the sandbox: no library but for the wrappers. */
static int refused(long result) {
        return result == -1 && errno == EPERM ? 0 : 1;
}

static int try_all(int pipe_fd) {
        static const char *const path = "/etc/passwd";
        int bad = 0;

        bad |= refused(syscall(SYS_open, path, O_RDONLY)) << 0;
        bad |= refused(syscall(SYS_openat, AT_FDCWD, path, O_RDONLY)) << 1;
        bad |= refused(syscall(SYS_openat2, AT_FDCWD, path, NULL, 0)) << 2;
        bad |= refused(syscall(SYS_socket, AF_INET, SOCK_STREAM, 0)) << 3;
        bad |= refused(syscall(SYS_socket, AF_UNIX, SOCK_STREAM, 0)) << 4;
        bad |= refused(syscall(SYS_execve, "/bin/true", NULL, NULL)) << 5;
        bad |= refused(syscall(SYS_fork)) << 6;
        bad |= refused(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)) << 7;
        bad |= refused(syscall(SYS_ptrace, PTRACE_TRACEME, 0, 0, 0)) << 8;
        bad |= refused(syscall(SYS_kill, getppid(), SIGTERM)) << 9;
        bad |= refused(syscall(SYS_connect, pipe_fd, NULL, 0)) << 10;
        bad |= refused(syscall(SYS_io_uring_setup, 1, NULL)) << 11;
        bad |= refused(syscall(SYS_mmap, NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                               0))
               << 12;
        bad |= refused(syscall(SYS_bpf, 0, NULL, 0)) << 13;
        bad |= refused(syscall(SYS_unlink, path)) << 14;
        bad |= refused(syscall(SYS_fcntl, pipe_fd, F_SETOWN, 1)) << 15;
        return bad;
}

static int be_sandboxed(int channel) {
        int bad;

        if (sandbox_enter(&(struct sandbox_options){ .uid = NOBODY, .gid = NOBODY }) < 0)
                return 1;
        bad = try_all(channel);
        return write(channel, &bad, sizeof(bad)) != sizeof(bad);
}

static void inside_the_sandbox_nothing_can_be_opened_started_or_called(void **state) {
        int channel[2], bad = -1;
        pid_t pid;

        assert_int_equal(pipe(channel), 0);
        pid = run_self("sandbox", channel[1]);
        close(channel[1]);
        assert_int_equal(fd_read_full(channel[0], &bad, sizeof(bad)), sizeof(bad));
        assert_int_equal(bad, 0);
        close(channel[0]);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static int be_refused_root(void) {
        return sandbox_enter(&(struct sandbox_options){}) != -EINVAL;
}

static void root_may_not_stay_root(void **state) {
        int status;
        pid_t pid;

        if (geteuid() != 0)
                skip();
        pid = run_self("root", -1);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
}

int main(int argc, char **argv) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_real_stack_comes_back_with_names),
                cmocka_unit_test(frames_have_their_lines),
                cmocka_unit_test(equal_stacks_are_one_and_their_files_are_asked_for_once),
                cmocka_unit_test(a_forked_process_has_the_mappings_of_its_parent_until_it_execs),
                cmocka_unit_test(code_made_at_run_time_is_named_by_its_map),
                cmocka_unit_test(code_in_a_file_without_symbols_is_named_by_the_map_of_its_process),
                cmocka_unit_test(code_that_no_map_tells_of_says_why_it_has_no_name),
                cmocka_unit_test(a_file_that_is_gone_gives_the_reason),
                cmocka_unit_test(garbage_and_a_fifo_are_no_elf_files),
                cmocka_unit_test(a_sparse_file_of_four_gigabytes_is_beyond_the_limit),
                cmocka_unit_test(a_file_of_another_build_is_refused),
                cmocka_unit_test(a_file_that_shrinks_while_it_is_mapped_costs_the_worker_only),
                cmocka_unit_test(a_killed_worker_is_an_error_and_not_more),
                cmocka_unit_test(a_worker_that_does_not_read_holds_nobody_beyond_the_deadline),
                cmocka_unit_test(what_is_no_worker_is_told_at_once),
                cmocka_unit_test(a_recording_is_named_later_when_the_files_are_the_recorded_ones),
                cmocka_unit_test(without_a_build_id_a_file_found_by_name_proves_nothing),
                cmocka_unit_test(the_report_for_the_journal_is_made_in_the_worker),
                cmocka_unit_test(the_worker_has_no_identity_and_no_capabilities),
                cmocka_unit_test(the_worker_of_root_has_a_network_of_its_own),
                cmocka_unit_test(inside_the_sandbox_nothing_can_be_opened_started_or_called),
                cmocka_unit_test(root_may_not_stay_root),
        };

        if (argc == 3 && streq(argv[1], "stack"))
                return be_stopped();
        if (argc == 3 && streq(argv[1], "sandbox"))
                _exit(be_sandboxed((int) strtol(argv[2], NULL, 10)));
        if (argc == 3 && streq(argv[1], "root"))
                _exit(be_refused_root());
        return cmocka_run_group_tests(tests, set_up, tear_down);
}
