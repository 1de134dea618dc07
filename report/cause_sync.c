/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>

#include "common/text.h"
#include "report/cause.h"
#include "report/names.h"
#include "report/paths.h"
#include "report/storm.h"
#include "report/syscalls.h"

/* sync-storm: waiting for the disk to have everything, often or once (FC-06, FC-21). */

enum { SYNC_CALLS_MAX = 6 }; /* fsync, fdatasync, sync, syncfs, sync_file_range, msync: each counts once */

struct sync_call {
        const char *name;
        uint64_t count;
};

/* What was synced, as far as the sample of paths tells it. */
struct sync_files {
        const char *first; /* in time; NULL: none was seen */
        char *directory; /* the deepest that holds all of them; owned */
        size_t count; /* different files */
};

static void sync_files_done(struct sync_files *files) {
        free(files->directory);
}

static int more_calls(const void *x, const void *y) {
        const struct sync_call *a = x, *b = y;

        return a->count > b->count ? -1 : a->count < b->count ? 1 : 0;
}

/* By name, so that a 32-bit fsync() is one, too; most first. */
static size_t find_calls(const struct analysis *a, uint32_t program, struct sync_call ret[SYNC_CALLS_MAX]) {
        size_t n = 0;

        for (uint32_t i = 0; i < a->recording->n_calls; i++) {
                const struct rec_call *c = a->recording->calls + i;
                const char *name = syscall_name(c->syscall);
                size_t at = 0;

                if (c->program != program || c->error != 0 || !name ||
                    !(analysis_classes(a, c->syscall) & CALL_SYNC))
                        continue;
                while (at < n && !streq(ret[at].name, name))
                        at++;
                if (at == SYNC_CALLS_MAX)
                        continue;
                if (at == n)
                        ret[n++] = (struct sync_call){ .name = name };
                ret[at].count += c->count;
        }
        qsort(ret, n, sizeof(*ret), more_calls);
        return n;
}

static bool calls_have(const struct sync_call *calls, size_t n, const char *name) {
        for (size_t i = 0; i < n; i++)
                if (streq(calls[i].name, name))
                        return true;
        return false;
}

static int by_path(const void *x, const void *y) {
        return strcmp(*(const char *const *) x, *(const char *const *) y);
}

/* sync() has no descriptor: older recordings have for it what happened to be in the register. */
static bool has_file(const struct rec_path *p) {
        const char *name = syscall_name(p->syscall);

        return p->kind == REC_PATH_SYNC && (!name || !streq(name, "sync"));
}

/* The first and the last of sorted paths share what all of them share. */
static char *common_directory(const char *first, const char *last) {
        size_t slash = 0;

        for (size_t i = 0; first[i] && first[i] == last[i]; i++)
                if (first[i] == '/')
                        slash = i;
        return strndup(first, MAX(slash, (size_t) 1));
}

static int find_files(const struct recording *r, uint32_t program, struct sync_files *ret) {
        _cleanup_free_ const char **paths = calloc((size_t) r->n_paths + 1, sizeof(*paths));
        size_t n = 0;

        if (!paths)
                return -ENOMEM;
        for (uint32_t i = 0; i < r->n_paths; i++) {
                const struct rec_path *p = r->paths + i;
                const char *path = recording_text(r, p->path);

                if (!has_file(p) || process_program(r, p->process) != program || *path != '/')
                        continue;
                if (n == 0)
                        ret->first = path;
                paths[n++] = path;
        }
        if (n == 0)
                return 0;
        qsort(paths, n, sizeof(*paths), by_path);
        for (size_t i = 0; i < n; i++)
                ret->count += i == 0 || !streq(paths[i], paths[i - 1]);
        ret->directory = common_directory(paths[0], paths[n - 1]);
        return ret->directory ? 0 : -ENOMEM;
}

/* The longest single wait in such a call. */
static uint64_t longest_wait(const struct analysis *a, uint32_t program) {
        uint64_t longest = 0;

        for (uint32_t i = 0; i < a->recording->n_waits; i++) {
                const struct rec_wait *w = a->recording->waits + i;

                if ((analysis_classes(a, w->syscall) & CALL_SYNC) &&
                    process_program(a->recording, w->process) == program)
                        longest = MAX(longest, w->longest_ns);
        }
        return longest;
}

static void tell_calls(const struct sync_call *calls, size_t n, struct finding *f, struct buf *b) {
        for (size_t i = 0; i < n; i++) {
                if (i > 0)
                        buf_puts(b, i + 1 < n ? ", " : " and ");
                text_count(b, calls[i].count);
                if (i == 0)
                        buf_puts(b, calls[i].count == 1 ? " call" : " calls");
                buf_printf(b, " of %s()", calls[i].name);
                finding_number(f, calls[i].name, calls[i].count);
        }
}

static void tell_files(const struct sync_files *files, struct finding *f) {
        if (!files->first)
                return;
        finding_number(f, "files_seen", files->count);
        finding_text(f, "first_path", files->first);
        finding_text(f, "top_directory", files->directory);
        if (files->count == 1)
                finding_detail(f, "The file was %s each time that was looked at.", files->first);
        else
                finding_detail(f,
                               "%zu different files below %s were seen in a sample of the calls, first %s.",
                               files->count, files->directory, files->first);
}

static void advise(const struct sync_call *calls, size_t n, uint64_t count, struct finding *f) {
        if (calls_have(calls, n, "sync") || calls_have(calls, n, "syncfs")) {
                finding_detail(f, "%s waits for whatever any program has written%s.",
                               calls_have(calls, n, "sync") ? "sync()" : "syncfs()",
                               calls_have(calls, n, "sync") ? ", on every file system of the machine"
                                                            : " to that file system");
                finding_advice(f, NULL, "Leave it out, or sync only the file that matters.");
        } else if (count == 1)
                finding_advice(
                        f, NULL,
                        "The disk is slow, or much was written before: write less during the start, or "
                        "sync it after the service is up.");
        else
                finding_advice(f, NULL,
                               "Sync once at the end instead of once a file; after a crash raise "
                               "TimeoutStartSec=.");
}

/* One sync() is enough if it took the time. Not disk-read: nothing is read in these calls. */
int cause_sync_find(const struct analysis *a, struct finding *f) {
        const uint32_t kinds = 1u << PIECE_WAIT | 1u << PIECE_CPU_KERNEL | 1u << PIECE_RUNNABLE;
        const struct storm s = storm_find(a, CALL_SYNC, STORM_SUCCESS);
        _cleanup_(buf_done) struct buf b = BUF_NULL, function = BUF_NULL;
        _cleanup_(sync_files_done) struct sync_files files = {};
        struct sync_call calls[SYNC_CALLS_MAX];
        const struct recording *r = a->recording;
        size_t n;
        int error;

        if (s.count == 0 || s.process == REC_NONE)
                return 0;
        error = find_files(r, s.program, &files);
        if (error < 0)
                return error;
        n = find_calls(a, s.program, calls);
        f->process = s.process;
        f->stack = hottest_stack(a, s.program, CALL_SYNC);
        f->duration_ns = pieces_time(a, kinds, CALL_SYNC, s.program);

        finding_number(f, "syncs", s.count);
        finding_number(f, "longest_usec", longest_wait(a, s.program) / NSEC_PER_USEC);
        tell_calls(calls, n, f, &b);
        buf_puts(&b, " took ");
        put_time_and_share(&b, a, f->duration_ns);
        buf_printf(&b, " by %s", process_name(r, s.process));
        if (stack_function(r, f->stack, &function)) {
                buf_printf(&b, " in %s", buf_text(&function));
                finding_text(f, "function", buf_text(&function));
        }
        finding_summary(f, "%s: %s", s.count == 1 ? "sync" : "sync storm", buf_text(&b));
        finding_text(f, "process", process_name(r, s.process));
        finding_number(f, "pid", r->processes[s.process].pid);
        finding_number(f, "begin_usec", analysis_at_usec(a, s.first_ns));
        finding_number(f, "span_usec", (s.last_ns - MIN(s.first_ns, s.last_ns)) / NSEC_PER_USEC);
        tell_files(&files, f);
        advise(calls, n, s.count, f);
        return buf_error(&b) < 0 ? -ENOMEM : 1;
}
