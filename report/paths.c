/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/paths.h"

#include "common/macro.h"

static void put_component(struct buf *b, const char *component, size_t n) {
        if (n == 0 || (n == 1 && *component == '.'))
                return;
        buf_putc(b, '/');
        buf_append(b, component, n);
}

static void put_components(struct buf *b, const char *path) {
        while (*path) {
                size_t n = strcspn(path, "/");

                put_component(b, path, n);
                path += n;
                path += strspn(path, "/");
        }
}

int path_absolute(const char *cwd, const char *path, char **ret) {
        struct buf b = BUF_NULL;
        int error;

        if (*path != '/')
                put_components(&b, cwd);
        put_components(&b, path);
        if (b.size == 0)
                buf_putc(&b, '/');
        error = buf_take(&b, ret, NULL);
        buf_done(&b);
        return error;
}

bool path_is_below(const char *path, const char *top) {
        const char *rest;

        if (streq(top, "/"))
                return *path == '/';
        rest = startswith(path, top);
        return rest && (*rest == '\0' || *rest == '/');
}

bool path_is_child(const char *path, const char *top) {
        const char *rest = startswith(path, top);

        if (!rest)
                return false;
        if (!streq(top, "/") && *rest++ != '/')
                return false;
        return *rest && !strchr(rest, '/');
}

char *path_directory(const char *path) {
        const char *slash = strrchr(path, '/');

        if (!slash)
                return strdup("");
        return slash == path ? strdup("/") : strndup(path, (size_t) (slash - path));
}

void path_list_free(char **paths, size_t n) {
        for (size_t i = 0; i < n; i++)
                free(paths[i]);
        free(paths);
}

int process_cwd(const struct recording *r, uint32_t process, uint64_t time_ns, char **ret) {
        const char *at_exec = process < r->n_processes ? recording_text(r, r->processes[process].cwd) : "";
        char *cwd = NULL;
        int error = *at_exec ? path_absolute("", at_exec, &cwd) : (cwd = strdup("")) ? 0 : -ENOMEM;

        if (error < 0)
                return error;
        for (uint32_t i = 0; i < r->n_paths; i++) {
                const struct rec_path *p = r->paths + i;
                char *next;

                if (p->kind != REC_PATH_CHDIR || p->process != process || p->time_ns > time_ns)
                        continue;
                error = path_absolute(cwd, recording_text(r, p->path), &next);
                free(cwd);
                if (error < 0)
                        return error;
                cwd = next;
        }
        *ret = cwd;
        return 0;
}

size_t top_dirs(const struct recording *r, uint32_t kind, uint32_t program,
                struct top_dir ret[static TOP_DIRS_MAX]) {
        size_t n = 0;

        for (uint32_t i = 0; i < r->n_dirs; i++) {
                const struct rec_dir *d = r->dirs + i;
                size_t at = n;

                if (d->kind != kind || d->program != program || d->count == 0)
                        continue;
                while (at > 0 && ret[at - 1].count < d->count)
                        at--;
                if (at == TOP_DIRS_MAX)
                        continue;
                n = MIN(n + 1, (size_t) TOP_DIRS_MAX);
                memmove(ret + at + 1, ret + at, (n - at - 1) * sizeof(*ret));
                ret[at] = (struct top_dir){ .path = recording_text(r, d->path), .count = d->count };
        }
        return n;
}

bool dropin_put_path(struct buf *b, const char *path) {
        size_t length = strlen(path);

        if (*path != '/' || path[length - 1] == ' ' || path[length - 1] == '\\')
                return false;
        for (const char *p = path; *p; p++)
                if ((unsigned char) *p < 0x20 || *p == 0x7f)
                        return false;
        for (const char *p = path; *p; p++) {
                if (*p == '%')
                        buf_putc(b, '%');
                buf_putc(b, *p);
        }
        return true;
}
