/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/cause.h"

#include <errno.h>

#include "common/text.h"
#include "report/names.h"
#include "report/paths.h"
#include "report/storm.h"

/*
 * Causes that are one kind of system call made very often:
 *
 *   fd-close-storm      closing descriptors that are not open (FC-02)
 *   missing-file-storm  looking for files that do not exist (FC-11)
 *   file-walk           looking at, or changing, every file of a tree (FC-05, FC-55)
 */

/* Calls that are the work of a cause found before. */
static bool is_explained(const struct analysis *a, uint32_t program) {
        return cause_found(a, "inotify-watch-storm", program) || cause_found(a, "fork-storm", program);
}

/* " by rsyslogd in close_all: " and the evidence that all of them share. */
static void tell_who(const struct analysis *a, const struct storm *s, struct finding *f, struct buf *b) {
        _cleanup_(buf_done) struct buf function = BUF_NULL;

        finding_text(f, "process", process_name(a->recording, s->process));
        finding_number(f, "pid", a->recording->processes[s->process].pid);
        finding_number(f, "begin_usec", analysis_at_usec(a, s->first_ns));
        finding_number(f, "span_usec", (s->last_ns - MIN(s->first_ns, s->last_ns)) / NSEC_PER_USEC);
        buf_printf(b, " by %s", process_name(a->recording, s->process));
        if (stack_function(a->recording, f->stack, &function)) {
                buf_printf(b, " in %s", buf_text(&function));
                finding_text(f, "function", buf_text(&function));
        }
}

static int begin(const struct analysis *a, const struct storm *s, uint32_t classes, struct finding *f) {
        if (s->process == REC_NONE)
                return 0;
        f->process = s->process;
        f->stack = hottest_stack(a, s->program, classes);
        return 1;
}

static int finish(struct finding *f, const char *title, struct buf *b) {
        finding_summary(f, "%s: %s", title, buf_text(b));
        if (buf_error(b) < 0)
                f->error = -ENOMEM;
        return 1;
}

/* Not a program that closes many files which it had open: nine in ten calls must fail. */
int cause_close_find(const struct analysis *a, struct finding *f) {
        _cleanup_(buf_done) struct buf b = BUF_NULL;
        struct storm s = storm_find(a, CALL_CLOSE, EBADF);

        if (s.count < CAUSE_CALLS_MIN || s.count * 10 < s.all * 9 || !begin(a, &s, CALL_CLOSE, f))
                return 0;
        f->duration_ns = storm_time(a, &s, CALL_CLOSE, s.count, s.all);
        finding_number(f, "failed_closes", s.count);
        text_count(&b, s.count);
        buf_puts(&b, " closes of descriptors that were not open took ");
        put_time_and_share(&b, a, f->duration_ns);
        tell_who(a, &s, f, &b);
        finding_detail(f, "The program closes every descriptor up to the limit on open files.");
        finding_advice(f, "[Service]\nLimitNOFILE=1024:524288\n",
                       "Lower the limit. In the program: close_range(), or only what /proc/self/fd lists.");
        return finish(f, "fd close storm", &b);
}

/* Not a walk through files that exist: half of the look-ups must fail; nor a watch storm, which may look for
 * something in every directory. */
int cause_missing_find(const struct analysis *a, struct finding *f) {
        _cleanup_(buf_done) struct buf b = BUF_NULL;
        struct storm s = storm_find(a, CALL_LOOKUP, ENOENT);
        struct top_dir top[TOP_DIRS_MAX];
        size_t n;

        if (s.count < CAUSE_CALLS_MIN || s.count * 2 < s.all || is_explained(a, s.program) ||
            !begin(a, &s, CALL_LOOKUP, f))
                return 0;
        f->duration_ns = storm_time(a, &s, CALL_LOOKUP, s.count, s.all);
        finding_number(f, "missing", s.count);
        finding_number(f, "lookups", s.all);
        text_count(&b, s.count);
        buf_puts(&b, " of ");
        text_count(&b, s.all);
        buf_puts(&b, " look-ups found no file and took ");
        put_time_and_share(&b, a, f->duration_ns);
        tell_who(a, &s, f, &b);
        n = top_dirs(a->recording, REC_PATH_MISSING, s.program, top);
        if (n > 0) {
                finding_text(f, "top_directory", top[0].path);
                finding_detail(f, "Most of them below %s.", top[0].path);
        }
        finding_advice(f, NULL,
                       "Shorten the search path of the program, or let it cache where its files are.");
        return finish(f, "missing-file storm", &b);
}

/* What a walk did to the files, as far as that tells it from a program that only reads its directories. */
static uint64_t walk_size(const struct analysis *a, const struct storm *s, const char **ret_verb) {
        uint64_t owner = storm_calls(a, s->program, CALL_OWNER, STORM_SUCCESS);
        uint64_t looked = storm_calls(a, s->program, CALL_STAT, STORM_SUCCESS);

        if (owner >= CAUSE_CALLS_MIN) {
                *ret_verb = "owners or modes set";
                return owner;
        }
        if (s->count >= CAUSE_CALLS_MIN && s->count > looked) {
                *ret_verb = "directory reads";
                return s->count;
        }
        *ret_verb = "files looked at";
        return looked;
}

/* Not a watch storm, which walks, too; nor a program that looks at files by name: a walk lists directories. */
int cause_walk_find(const struct analysis *a, struct finding *f) {
        enum {
                FILES_PER_LIST_MAX = 2000
        }; /* 32 KB hold so many short names: more looks need another reason */
        _cleanup_(buf_done) struct buf b = BUF_NULL;
        struct storm s = storm_find(a, CALL_LIST, STORM_SUCCESS);
        const char *verb, *arguments;
        uint64_t size;

        if (s.count == 0 || is_explained(a, s.program) || cause_found(a, "missing-file-storm", s.program))
                return 0;
        size = walk_size(a, &s, &verb);
        if (size < CAUSE_CALLS_MIN || size / FILES_PER_LIST_MAX > s.count || !begin(a, &s, CALL_WALK, f))
                return 0;
        f->duration_ns = storm_time(a, &s, CALL_WALK, 1, 1);
        arguments = recording_text(a->recording, a->recording->processes[f->process].arguments);
        finding_number(f, "files", size);
        finding_number(f, "directory_reads", s.count);
        finding_text(f, "command", arguments);
        text_count(&b, size);
        buf_printf(&b, " %s in ", verb);
        put_time_and_share(&b, a, f->duration_ns);
        tell_who(a, &s, f, &b);
        if (*arguments)
                finding_detail(f, "Command: %s", arguments);
        finding_advice(
                f, NULL, "%s",
                storm_calls(a, s.program, CALL_OWNER, STORM_SUCCESS) >= CAUSE_CALLS_MIN
                        ? "Set the owner once, when the files are made, or use StateDirectory= with User=."
                        : "Let it keep what it found, or look at a smaller tree.");
        return finish(f, "file walk", &b);
}
