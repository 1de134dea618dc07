/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/fetch.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/daemon.h"
#include "client/message.h"
#include "client/names.h"
#include "common/buf.h"
#include "common/macro.h"
#include "common/text.h"
#include "report/quality.h"
#include "symbolize/debuginfod.h"
#include "symbolize/file_source.h"

#define SERVERS_DIRECTORY "/etc/debuginfod"

enum {
        SHARE_DIVISOR = 100, /* modules with less than one sample in so many are left alone */
        NAMED_MAX = 3, /* modules that a message names */
};

struct wanted {
        struct build_id ids[DEBUGINFOD_FILES_MAX];
        const char *paths[DEBUGINFOD_FILES_MAX]; /* borrowed from the recording */
        enum debuginfod_result results[DEBUGINFOD_FILES_MAX];
        size_t count;
        bool terminal;
};

/* Would a debug file help? Not where the module's own file is missing or makes its code at run time. */
static bool wants(const struct recording *r, const struct module_quality *m) {
        const struct rec_module *module = &r->modules[m->module];
        uint32_t reason = r->symbols ? r->symbols[m->module].reason : (uint32_t) REC_REASON_STRIPPED;

        return m->unnamed_frames > 0 && module->kind == REC_MODULE_FILE && module->build_id_bytes > 0 &&
               module->build_id_bytes <= BUILD_ID_MAX &&
               (reason == REC_REASON_STRIPPED || reason == REC_REASON_MISMATCH ||
                reason == REC_REASON_VERSION || reason == REC_REASON_NO_STACK_DATA ||
                reason == REC_REASON_BAD_DOTNET);
}

static void choose(const struct recording *r, const struct quality *q, bool all, struct wanted *w) {
        for (uint32_t i = 0; i < q->n_modules && w->count < DEBUGINFOD_FILES_MAX; i++) {
                const struct module_quality *m = &q->modules[i];
                const struct rec_module *module = &r->modules[m->module];
                struct build_id *id = &w->ids[w->count];

                if (!all && (uint64_t) m->samples * SHARE_DIVISOR < q->samples)
                        break; /* the others have even less */
                if (!wants(r, m))
                        continue;
                id->size = (uint8_t) module->build_id_bytes;
                memcpy(id->bytes, module->build_id, id->size);
                w->paths[w->count++] = recording_text(r, module->path);
        }
}

static const char *file_name(const char *path) {
        const char *slash = strrchr(path, '/');

        return slash ? slash + 1 : path;
}

static void clear_line(const struct wanted *w) {
        if (w->terminal)
                (void) fputs("\r\x1b[K", stderr);
}

static void show(void *userdata, size_t index, uint64_t bytes, uint64_t total) {
        const struct wanted *w = userdata;
        _cleanup_(buf_done) struct buf name = BUF_NULL;

        if (!w->terminal)
                return;
        text_escape_terminal(&name, file_name(w->paths[index]));
        clear_line(w);
        (void) fprintf(stderr, "debug file %zu of %zu: %.40s, %.1f", index + 1, w->count, buf_text(&name),
                       (double) bytes / 1e6);
        if (total > 0)
                (void) fprintf(stderr, " of %.1f", (double) total / 1e6);
        (void) fputs(" MB (Ctrl-C: go on without)", stderr);
        (void) fflush(stderr);
}

/* "libfoo.so, libbar.so and 3 more" of those with this result. */
static size_t list(const struct wanted *w, enum debuginfod_result result, struct buf *names) {
        size_t n = 0;

        for (size_t i = 0; i < w->count; i++) {
                if (w->results[i] != result)
                        continue;
                if (n++ < NAMED_MAX)
                        buf_printf(names, "%s%s", n > 1 ? ", " : "", file_name(w->paths[i]));
        }
        if (n > NAMED_MAX)
                buf_printf(names, " and %zu more", n - NAMED_MAX);
        return n;
}

static void say(const struct wanted *w, enum debuginfod_result result, const char *what) {
        _cleanup_(buf_done) struct buf names = BUF_NULL;

        if (list(w, result, &names) > 0)
                message_note("%s: %s", what, buf_text(&names));
}

static void say_results(const struct wanted *w, int error) {
        if (error == -ENOSYS) {
                message_note(
                        "debug files cannot be fetched: libdebuginfod is not installed (libdebuginfod1)");
                return;
        }
        if (error < 0 && error != -ETIME && error != -EINTR) {
                message_note("debug files cannot be fetched: %s", strerror(-error));
                return;
        }
        say(w, DEBUGINFOD_NOT_FOUND, "no debuginfod server sent the debug files of");
        say(w, DEBUGINFOD_FAILED, "the debuginfod servers failed to send the debug files of");
        say(w, DEBUGINFOD_NOT_TRIED,
            error == -EINTR   ? "interrupted before the debug files were here of"
            : error == -ETIME ? "debuginfod servers were too slow with the debug files of"
                              : "not asked for, since fetching failed: the debug files of");
}

/* The package makes it; who installed otherwise gets it here. /var/cache is root's: nobody else can be in the way. */
static void make_cache(uid_t uid, gid_t gid) {
        static const char directory[] = "/var/cache/startprof";

        if (mkdir(directory, 0755) == 0 && lchown(directory, uid, gid) < 0)
                message_note("%s: %s", directory, strerror(errno));
}

static bool fetch(struct wanted *w, const char *urls) {
        struct debuginfod_options how = { .urls = urls,
                                          .deadline_ns = daemon_now() + FETCH_SECONDS * NSEC_PER_SEC };
        int r;

        names_unprivileged(&how.uid, &how.gid);
        if (geteuid() == 0) {
                how.cache = FILE_SOURCE_OWN_CACHE;
                make_cache(how.uid, how.gid);
        }
        w->terminal = isatty(STDERR_FILENO);
        show(w, 0, 0, 0);
        r = debuginfod_fetch(&how, w->ids, w->count, show, w, w->results);
        clear_line(w);
        say_results(w, r);
        for (size_t i = 0; i < w->count; i++)
                if (w->results[i] == DEBUGINFOD_FETCHED)
                        return true;
        return false;
}

bool fetch_debug_files(const struct recording *r, const struct options *options) {
        _cleanup_(buf_done) struct buf urls = BUF_NULL;
        _cleanup_(quality_done) struct quality q = QUALITY_NULL;
        struct wanted w = {};

        if (options->no_debuginfod || debuginfod_servers(SERVERS_DIRECTORY, &urls) < 0 || urls.size == 0 ||
            quality_init(r, &q) < 0)
                return false;
        choose(r, &q, options->all_symbols, &w);
        return w.count > 0 && fetch(&w, buf_text(&urls));
}
