/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/cause.h"

#include "common/text.h"
#include "report/dotnet.h"
#include "report/names.h"
#include "report/paths.h"
#include "report/storm.h"

/*
 * inotify-watch-storm: the program watches every directory of a tree (FC-01,
 * FC-16). Not to be confused with file-walk, which looks at files and watches
 * none, nor with a service that has some watches: it takes 1,000.
 *
 * Where the tree begins decides the advice. It is the working directory when
 * the program took that for its own directory, as .NET hosts do; any other
 * place has a reason of its own, often a directory that does not exist, whose
 * nearest existing ancestor is then watched.
 */

enum {
        ROOT_CANDIDATES = 16, /* of the first paths: a few single watches may come before the walk */
        ROOT_PERCENT = 80, /* of the paths that lie below the root */
        TOP_DIRS_TOLD = 3,
        NEAR_LIMIT_PERCENT = 80,
};

struct watch_storm {
        struct storm storm;
        char *first_path, *root, *cwd; /* owned, absolute and normal; first_path and root may be "" */
        char *missing; /* owned: the directory that does not exist, or NULL */
        uint64_t root_watch_ns; /* 0: no path was recorded */
        bool root_is_cwd, dotnet;
        uint32_t stack;
};

static void watch_storm_done(struct watch_storm *w) {
        free(w->first_path);
        free(w->root);
        free(w->cwd);
        free(w->missing);
}

/* ---- where ---- */

static bool is_watch(const struct analysis *a, const struct storm *s, const struct rec_path *p) {
        return p->kind == REC_PATH_INOTIFY && process_program(a->recording, p->process) == s->program;
}

/* Absolute forms of the watched paths in the order of time. *ret_n 0: none was recorded. */
static int watched_paths(const struct analysis *a, const struct watch_storm *w, char ***ret, size_t *ret_n) {
        const struct recording *r = a->recording;
        char **paths = calloc((size_t) r->n_paths + 1, sizeof(*paths));
        size_t n = 0;

        if (!paths)
                return -ENOMEM;
        for (uint32_t i = 0; i < r->n_paths; i++) {
                if (!is_watch(a, &w->storm, r->paths + i))
                        continue;
                if (path_absolute(w->cwd, recording_text(r, r->paths[i].path), paths + n) < 0) {
                        path_list_free(paths, n);
                        return -ENOMEM;
                }
                n++;
        }
        *ret = paths;
        *ret_n = n;
        return 0;
}

/* The first path that most others lie below; else the first one. */
static size_t find_root(char **paths, size_t n) {
        for (size_t i = 0; i < MIN(n, (size_t) ROOT_CANDIDATES); i++) {
                size_t below = 0;

                for (size_t j = 0; j < n; j++)
                        below += path_is_below(paths[j], paths[i]);
                if (below * 100 >= n * ROOT_PERCENT)
                        return i;
        }
        return 0;
}

/* Time of the watch of that number; 0: there is none. */
static uint64_t watch_time(const struct analysis *a, const struct watch_storm *w, size_t number) {
        for (uint32_t i = 0; i < a->recording->n_paths; i++)
                if (is_watch(a, &w->storm, a->recording->paths + i) && number-- == 0)
                        return a->recording->paths[i].time_ns;
        return 0;
}

static int find_places(const struct analysis *a, struct watch_storm *w) {
        char **paths = NULL;
        size_t n, root;
        int error = process_cwd(a->recording, w->storm.process, watch_time(a, w, 0), &w->cwd);

        if (error < 0)
                return error;
        error = watched_paths(a, w, &paths, &n);
        if (error < 0)
                return error;
        root = find_root(paths, n);
        w->root_watch_ns = watch_time(a, w, root);
        w->first_path = strdup(n > 0 ? paths[0] : "");
        w->root = strdup(n > 0 ? paths[root] : "");
        path_list_free(paths, n);
        if (!w->first_path || !w->root)
                return -ENOMEM;
        w->root_is_cwd = *w->root && streq(w->root, w->cwd);
        return 0;
}

/* A program that climbs from a path to the nearest directory that exists looks in vain for one directly below
 * the root just before it watches that. */
static int find_missing(const struct analysis *a, struct watch_storm *w) {
        const struct recording *r = a->recording;

        if (w->root_is_cwd || !*w->root)
                return 0;
        for (uint32_t i = 0; i < r->n_paths; i++) {
                const struct rec_path *p = r->paths + i;
                _cleanup_free_ char *path = NULL;

                if (p->kind != REC_PATH_MISSING || process_program(r, p->process) != w->storm.program)
                        continue;
                if (p->time_ns > w->root_watch_ns)
                        break;
                if (path_absolute(w->cwd, recording_text(r, p->path), &path) < 0)
                        return -ENOMEM;
                if (path_is_child(path, w->root)) { /* the last one before the watches is the one */
                        free(w->missing);
                        w->missing = TAKE_PTR(path);
                }
        }
        return 0;
}

/* ---- telling ---- */

static void tell_directories(const struct analysis *a, const struct watch_storm *w, struct finding *f,
                             struct buf *b) {
        _cleanup_(buf_done) struct buf all = BUF_NULL;
        struct top_dir top[TOP_DIRS_MAX];
        size_t n = top_dirs(a->recording, REC_PATH_INOTIFY, w->storm.program, top);

        for (size_t i = 0; i < n; i++) {
                buf_printf(&all, "%s%s: %llu", i > 0 ? ", " : "", top[i].path,
                           (unsigned long long) top[i].count);
                if (i < TOP_DIRS_TOLD) {
                        buf_printf(b, "%s%s (", i > 0 ? ", " : "Most of them below ", top[i].path);
                        text_count(b, top[i].count);
                        buf_putc(b, ')');
                }
        }
        if (n > 0) {
                finding_text(f, "top_directories", buf_text(&all));
                buf_puts(b, ". ");
        }
}

static void tell_limit(const struct analysis *a, const struct watch_storm *w, struct finding *f,
                       struct buf *b) {
        uint64_t watch_limit = a->recording->start->watch_limit, percent;

        if (watch_limit == 0)
                return;
        percent = (uint64_t) ((unsigned __int128) w->storm.count * 100 / watch_limit);
        finding_number(f, "max_user_watches", watch_limit);
        finding_number(f, "max_user_watches_percent", percent);
        buf_printf(b, "fs.inotify.max_user_watches allows ");
        text_count(b, watch_limit);
        buf_printf(b, " per user: %llu%% used%s.", (unsigned long long) percent,
                   percent >= NEAR_LIMIT_PERCENT ? ", soon the start will fail with ENOSPC" : "");
}

static void tell_scale(const struct analysis *a, const struct watch_storm *w, struct finding *f) {
        _cleanup_(buf_done) struct buf b = BUF_NULL;

        tell_directories(a, w, f, &b);
        tell_limit(a, w, f, &b);
        if (b.size > 0)
                finding_detail(f, "%s", buf_text(&b));
}

static void tell_why(const struct watch_storm *w, struct finding *f) {
        if (w->root_is_cwd) /* the summary says it */
                return;
        if (w->missing)
                finding_detail(f,
                               "The nearest directory above it is %s, so all below that is watched. The "
                               "working directory is %s.",
                               w->root, w->cwd);
        else if (*w->root)
                finding_detail(f, "The working directory is %s; %s has another reason, see the stack.",
                               w->cwd, w->root);
}

static void summarise(const struct analysis *a, const struct watch_storm *w, struct finding *f) {
        _cleanup_(buf_done) struct buf b = BUF_NULL, function = BUF_NULL;

        text_count(&b, w->storm.count);
        buf_puts(&b, " watches");
        if (*w->root)
                buf_printf(&b, " under %s", w->root);
        buf_puts(&b, " in ");
        put_time_and_share(&b, a, f->duration_ns);
        buf_printf(&b, " by %s", process_name(a->recording, f->process));
        if (stack_function(a->recording, w->stack, &function)) {
                buf_printf(&b, " in %s", buf_text(&function));
                finding_text(f, "function", buf_text(&function));
        }
        if (w->root_is_cwd)
                buf_printf(&b, "; the working directory is %s", w->cwd);
        else if (w->missing)
                buf_printf(&b, "; %s does not exist", w->missing);
        else if (*w->cwd)
                buf_printf(&b, "; the working directory is %s", w->cwd);
        finding_summary(f, "inotify watch storm: %s", buf_text(&b));
        if (buf_error(&b) < 0)
                f->error = -ENOMEM;
}

/* ---- advice ---- */

/* Executable directories that belong to the system: nothing is to be run from there. */
static bool is_system_directory(const char *path) {
        static const char *const dirs[] = {
                "/bin",
                "/sbin",
                "/lib",
                "/lib64",
                "/usr/bin",
                "/usr/sbin",
                "/usr/lib",
                "/usr/lib64",
                "/usr/libexec",
                "/usr/local/bin",
                "/usr/local/sbin",
                "/usr/local/lib",
                "/usr/local/libexec",
                "/usr/games",
                "/snap/bin",
                "/nix/store",
                "/gnu/store",
                "/run",
                "/proc",
        };

        for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
                if (path_is_below(path, dirs[i]))
                        return true;
        return streq(path, "/");
}

/* A directory of the service's own: that of its executable, else its state. NULL: none is known, or it would
 * change nothing. -ENOMEM. */
static int own_directory(const struct analysis *a, const struct watch_storm *w, char **ret) {
        const struct recording *r = a->recording;
        const char *exe = recording_text(r, r->processes[w->storm.process].exe), *state;
        _cleanup_free_ char *directory = path_directory(exe);

        if (!directory)
                return -ENOMEM;
        *ret = NULL;
        if (*exe == '/' && !is_system_directory(directory)) {
                if (!streq(directory, w->cwd))
                        *ret = TAKE_PTR(directory);
                return 0;
        }
        state = recording_property(r, "StateDirectory");
        if (!state || !*state || !streq(w->cwd, "/"))
                return 0;
        if (asprintf(ret, "/var/lib/%.*s", (int) strcspn(state, " :"), state) < 0)
                return -ENOMEM;
        return 0;
}

static void advise_dotnet(struct finding *f) {
        finding_advice(f, "[Service]\nEnvironment=DOTNET_hostBuilder__reloadConfigOnChange=false\n",
                       "Or keep the .NET host from watching its configuration files for changes.");
}

static void advise_cwd(const struct analysis *a, const struct watch_storm *w, struct finding *f) {
        _cleanup_free_ char *directory = NULL;
        _cleanup_(buf_done) struct buf dropin = BUF_NULL;

        if (own_directory(a, w, &directory) < 0) {
                f->error = -ENOMEM;
                return;
        }
        buf_puts(&dropin, "[Service]\nWorkingDirectory=");
        if (directory && dropin_put_path(&dropin, directory)) {
                buf_putc(&dropin, '\n');
                finding_advice(f, buf_text(&dropin), "Run it in its own directory instead of %s.", w->cwd);
        } else if (!w->dotnet)
                finding_advice(f, NULL, "Give the unit a WorkingDirectory= with few directories below it.");
        if (buf_error(&dropin) < 0)
                f->error = -ENOMEM;
        if (w->dotnet)
                advise_dotnet(f);
}

static void advise(const struct analysis *a, const struct watch_storm *w, struct finding *f) {
        if (w->root_is_cwd)
                advise_cwd(a, w, f);
        else if (w->missing)
                finding_advice(f, NULL, "Create %s, or let the program watch no file in it%s.", w->missing,
                               w->dotnet ? " (reloadOnChange: false)" : "");
        else if (*w->root && w->dotnet)
                finding_advice(
                        f, NULL,
                        "Look for a configuration file (reloadOnChange: true) whose directory does not "
                        "exist: .NET watches the nearest one above it.");
        else if (*w->root)
                finding_advice(f, NULL, "Let the program watch only the directories that it needs below %s.",
                               w->root);
        else
                finding_advice(f, NULL, "Let the program watch only the directories that it needs.");
}

int cause_inotify_find(const struct analysis *a, struct finding *f) {
        _cleanup_(watch_storm_done) struct watch_storm w = { .storm = storm_find(a, CALL_WATCH,
                                                                                 STORM_SUCCESS) };
        int error;

        if (w.storm.count < CAUSE_CALLS_MIN || w.storm.process == REC_NONE)
                return 0;
        f->duration_ns = storm_time(a, &w.storm, CALL_WALK, 1, 1);
        f->process = w.storm.process;
        f->stack = w.stack = hottest_stack(a, w.storm.program, CALL_WATCH);
        w.dotnet = process_is_dotnet(a->recording, w.storm.process);
        error = find_places(a, &w);
        if (error < 0)
                return error;
        error = find_missing(a, &w);
        if (error < 0)
                return error;

        finding_number(f, "watches", w.storm.count);
        finding_text(f, "process", process_name(a->recording, f->process));
        finding_number(f, "pid", a->recording->processes[f->process].pid);
        finding_number(f, "begin_usec", analysis_at_usec(a, w.storm.first_ns));
        finding_number(f, "span_usec",
                       (w.storm.last_ns - MIN(w.storm.first_ns, w.storm.last_ns)) / NSEC_PER_USEC);
        finding_text(f, "root", w.root);
        finding_text(f, "first_path", w.first_path);
        finding_text(f, "working_directory", w.cwd);
        if (w.missing)
                finding_text(f, "missing_path", w.missing);
        tell_why(&w, f);
        tell_scale(a, &w, f);
        summarise(a, &w, f);
        advise(a, &w, f);
        return 1;
}
