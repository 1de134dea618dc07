/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/names.h"

#include <errno.h>
#include <pwd.h>
#include <unistd.h>

#include "client/daemon.h"
#include "common/config.h"
#include "common/fd.h"
#include "common/macro.h"
#include "proto/worker_link.h"
#include "symbolize/file_source.h"

#define WORKER_USER "startprof"

enum {
        NAMING_SECONDS = 10, /* for all files; then the report comes with what there is */
        NOBODY = 65534, /* systemd's nobody, where the package's user is missing */
};

static bool can_be_named(const struct rec_module *module, bool kernel) {
        return module->kind == REC_MODULE_KERNEL
                       ? kernel
                       : module->kind == REC_MODULE_FILE && module->build_id_bytes > 0;
}

bool names_missing(const struct recording *r, bool kernel) {
        for (uint32_t i = 0; i < r->n_frames; i++) {
                uint32_t module = r->frames[i].module, name = r->frame_names[i];

                if (module == REC_NONE || !can_be_named(&r->modules[module], kernel))
                        continue;
                if (name == r->frame_names[i + 1] || r->names[name].name == 0)
                        return true;
        }
        return false;
}

bool names_missing_of_kernel(const struct recording *r) {
        bool any = false;

        for (uint32_t i = 0; i < r->n_frames; i++) {
                uint32_t module = r->frames[i].module, name = r->frame_names[i];

                if (module == REC_NONE || r->modules[module].kind != REC_MODULE_KERNEL)
                        continue;
                if (name < r->frame_names[i + 1] && r->names[name].source == REC_SOURCE_KALLSYMS)
                        return false;
                any = true;
        }
        return any;
}

void names_unprivileged(uid_t *ret_uid, gid_t *ret_gid) {
        const struct passwd *user;

        *ret_uid = getuid();
        *ret_gid = getgid();
        if (geteuid() != 0)
                return;
        user = getpwnam(WORKER_USER);
        *ret_uid = user ? user->pw_uid : NOBODY;
        *ret_gid = user ? user->pw_gid : NOBODY;
}

/* The directories of the command line, then those of startprofd.conf, whose mistakes are the daemon's to tell. */
static int open_source(const struct recording *r, const struct options *options, struct file_source **ret) {
        const char *directories[DEBUG_DIR_MAX + CONFIG_DIRECTORIES_MAX];
        _cleanup_(config_done) struct config config = CONFIG_NULL;
        size_t n = 0;
        int error;

        error = config_load("", NULL, &config);
        if (error < 0)
                return error;
        for (size_t i = 0; i < options->n_debug_dirs; i++)
                directories[n++] = options->debug_dirs[i];
        for (size_t i = 0; i < config.n_debug_directories; i++)
                directories[n++] = config.debug_directories[i];
        return file_source_new(r, directories, n, ret);
}

int names_find(const struct recording *r, const void *data, size_t bytes, const struct options *options,
               void **ret, size_t *ret_bytes) {
        struct worker_options how = {};
        _cleanup_(file_source_freep) struct file_source *source = NULL;
        _cleanup_(worker_link_freep) struct worker_link *link = NULL;
        uint64_t deadline = daemon_now() + NAMING_SECONDS * NSEC_PER_SEC;
        _cleanup_close_ int fd = -EBADF;
        int error;

        names_unprivileged(&how.uid, &how.gid);
        error = open_source(r, options, &source);
        if (error < 0)
                return error;
        if (options->kernel)
                file_source_allow_kernel(source);
        fd = fd_new_sealed("startprof-recording", data, bytes);
        if (fd < 0)
                return fd;
        error = worker_link_new(&how, file_source_open, source, &link);
        return error < 0 ? error : worker_link_name(link, fd, deadline, ret, ret_bytes);
}
