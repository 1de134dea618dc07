/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>

#include "common/text.h"
#include "report/cause.h"
#include "report/dotnet.h"
#include "report/names.h"
#include "report/storm.h"

/* inotify-limit: the start failed, and the user had no inotify instance or watch left (FC-15). */

struct inotify_limit {
        struct storm storm; /* of the calls that failed */
        uint32_t class;
        const char *call, *error, *sysctl, *of; /* static */
        uint64_t allowed; /* 0: unknown */
};

/* EMFILE is also the answer to a process that has too many descriptors: then other calls get it, too. */
static bool lacks_descriptors(const struct analysis *a, uint32_t program) {
        for (uint32_t i = 0; i < a->recording->n_calls; i++) {
                const struct rec_call *c = a->recording->calls + i;

                if (c->program == program && c->error == EMFILE &&
                    !(analysis_classes(a, c->syscall) & CALL_WATCH_INIT))
                        return true;
        }
        return false;
}

static bool find_limit(const struct analysis *a, struct inotify_limit *ret) {
        *ret = (struct inotify_limit){
                .storm = storm_find(a, CALL_WATCH_INIT, EMFILE),
                .class = CALL_WATCH_INIT,
                .call = "inotify_init1",
                .error = "EMFILE",
                .sysctl = "fs.inotify.max_user_instances",
                .of = "instances",
                .allowed = a->recording->start->instance_limit,
        };
        if (ret->storm.count > 0 && !lacks_descriptors(a, ret->storm.program))
                return true;
        *ret = (struct inotify_limit){
                .storm = storm_find(a, CALL_WATCH, ENOSPC),
                .class = CALL_WATCH,
                .call = "inotify_add_watch",
                .error = "ENOSPC",
                .sysctl = "fs.inotify.max_user_watches",
                .of = "watches",
                .allowed = a->recording->start->watch_limit,
        };
        return ret->storm.count > 0;
}

/* A program that goes on without watching is not what made the start fail. */
static bool ended_badly(const struct recording *r, uint32_t program) {
        for (uint32_t i = 0; i < r->n_processes; i++)
                if (r->processes[i].program == program && r->processes[i].end_ns != 0 &&
                    r->processes[i].exit_code != 0)
                        return true;
        return false;
}

static const char *refused_path(const struct recording *r, uint32_t program) {
        for (uint32_t i = 0; i < r->n_paths; i++)
                if (r->paths[i].kind == REC_PATH_INOTIFY_LIMIT &&
                    process_program(r, r->paths[i].process) == program)
                        return recording_text(r, r->paths[i].path);
        return "";
}

static void advise(const struct analysis *a, const struct inotify_limit *l, struct finding *f) {
        finding_advice(
                f, NULL,
                "Raise %s (sysctl -w, and a file in /etc/sysctl.d to keep it), or find what else of the "
                "same user holds so many.",
                l->sysctl);
        if (process_is_dotnet(a->recording, f->process))
                finding_advice(f, "[Service]\nEnvironment=DOTNET_hostBuilder__reloadConfigOnChange=false\n",
                               "Or keep the .NET host from watching its configuration files for changes.");
}

/* The time is that of the whole start, which was for nothing. */
int cause_inotify_limit_find(const struct analysis *a, struct finding *f) {
        const struct recording *r = a->recording;
        _cleanup_(buf_done) struct buf b = BUF_NULL, function = BUF_NULL;
        struct inotify_limit l;
        const char *path;

        if (r->start->result != REC_RESULT_FAILED || !find_limit(a, &l) || l.storm.process == REC_NONE ||
            !ended_badly(r, l.storm.program))
                return 0;
        f->duration_ns = a->duration_ns;
        f->process = l.storm.process;
        f->stack = hottest_stack(a, l.storm.program, l.class);
        path = refused_path(r, l.storm.program);

        buf_printf(&b, "%s of %s failed with %s", l.call, process_name(r, f->process), l.error);
        if (stack_function(r, f->stack, &function))
                buf_printf(&b, " in %s", buf_text(&function));
        if (l.allowed > 0) {
                buf_puts(&b, "; a user may have ");
                text_count(&b, l.allowed);
                buf_printf(&b, " %s", l.of);
        }
        finding_summary(f, "inotify limit: %s", buf_text(&b));
        finding_text(f, "call", l.call);
        finding_text(f, "error", l.error);
        finding_number(f, "failed_calls", l.storm.count);
        finding_text(f, "process", process_name(r, f->process));
        finding_number(f, "pid", r->processes[f->process].pid);
        finding_text(f, "limit", l.sysctl);
        if (l.allowed > 0)
                finding_number(f, "limit_value", l.allowed);
        if (*path)
                finding_text(f, "path", path);
        finding_detail(f, "The limit is %s: it is counted for the user, over all its programs.", l.sysctl);
        advise(a, &l, f);
        return buf_error(&b) < 0 ? -ENOMEM : 1;
}
