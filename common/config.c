/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>

#include "common/fd.h"
#include "common/macro.h"

#define NAME "startprof/startprofd.conf"

static const char *const places[] = { "/etc", "/run", "/usr/local/lib", "/usr/lib" };

struct reader {
        struct config *config; /* borrowed */
        config_complain_fn complain;
        const char *path;
        unsigned line;
        char section[64];
};

static void complain(const struct reader *r, const char *what) {
        if (r->complain)
                r->complain(r->path, r->line, what);
}

/* ---- values ---- */

static void forget_directories(struct config *c) {
        while (c->n_debug_directories > 0)
                free(c->debug_directories[--c->n_debug_directories]);
}

/* The next word of a list, in place; "quotes" keep its spaces. NULL: no more. */
static char *next_word(char **rest) {
        char *word = *rest + strspn(*rest, " \t"), *end;

        if (!*word)
                return NULL;
        if (*word == '"' || *word == '\'') {
                end = strchr(word + 1, *word);
                word++;
        } else
                end = word + strcspn(word, " \t");
        if (!end) {
                *rest = word + strlen(word);
                return word;
        }
        *rest = *end ? end + 1 : end;
        *end = '\0';
        return word;
}

/* Lists grow from line to line; an empty one begins anew. */
static int set_directories(const struct reader *r, char *value) {
        struct config *c = r->config;
        char *word;

        if (!*value)
                forget_directories(c);
        while ((word = next_word(&value))) {
                char *copy;

                if (word[0] != '/') {
                        complain(r, "a directory is not absolute, left out");
                        continue;
                }
                if (c->n_debug_directories == CONFIG_DIRECTORIES_MAX) {
                        complain(r, "too many directories, the rest is left out");
                        break;
                }
                copy = strdup(word);
                if (!copy)
                        return -ENOMEM;
                c->debug_directories[c->n_debug_directories++] = copy;
        }
        return 0;
}

/* value: may be written to. -ENOMEM; what it cannot use it complains about. */
static const struct setting {
        const char *section, *key;
        int (*set)(const struct reader *r, char *value);
} settings[] = {
        { "Symbols", "DebugDirectories", set_directories },
};

/* ---- lines ---- */

static char *strip(char *text) {
        size_t n;

        text += strspn(text, " \t\r");
        n = strlen(text);
        while (n > 0 && strchr(" \t\r", text[n - 1]))
                text[--n] = '\0';
        return text;
}

static int assign(const struct reader *r, char *line) {
        char *equals = strchr(line, '=');
        const char *key;

        if (!equals) {
                complain(r, "neither [Section] nor Setting=value, left out");
                return 0;
        }
        *equals = '\0';
        key = strip(line);
        for (size_t i = 0; i < ARRAY_SIZE(settings); i++)
                if (streq(settings[i].section, r->section) && streq(settings[i].key, key))
                        return settings[i].set(r, strip(equals + 1));
        complain(r, "no such setting in this section, left out");
        return 0;
}

static int parse_line(struct reader *r, char *line) {
        size_t n;

        line = strip(line);
        n = strlen(line);
        if (n == 0 || line[0] == '#' || line[0] == ';')
                return 0;
        if (line[0] != '[')
                return assign(r, line);
        if (line[n - 1] != ']' || n - 2 >= sizeof(r->section)) {
                complain(r, "not a section, left out");
                return 0;
        }
        line[n - 1] = '\0';
        (void) snprintf(r->section, sizeof(r->section), "%s", line + 1);
        return 0;
}

/* A backslash at its end joins a line with the next one, by a space. Comments between them are left out. */
static int parse_text(struct reader *r, char *text) {
        char *next, *begin = NULL, *end = NULL;
        int error = 0;

        for (char *line = text; error == 0 && line; line = next) {
                size_t n;

                next = strchr(line, '\n');
                if (next)
                        *next++ = '\0';
                r->line++;
                if (begin && (line[strspn(line, " \t")] == '#' || line[strspn(line, " \t")] == ';'))
                        continue;
                n = strlen(line);
                if (begin)
                        memmove(end, line, n + 1); /* never forwards: end is before line */
                else
                        begin = end = line;
                end += n;
                if (n > 0 && end[-1] == '\\') {
                        end[-1] = ' ';
                        continue;
                }
                error = parse_line(r, begin);
                begin = NULL;
        }
        return error == 0 && begin ? parse_line(r, begin) : error;
}

/* -ENOENT, -ENOMEM. */
static int read_config(struct config *c, config_complain_fn f, const char *path) {
        struct reader r = { .config = c, .complain = f, .path = path };
        _cleanup_free_ char *text = NULL;
        int error;

        error = read_file_at(AT_FDCWD, path, CONFIG_FILE_BYTES_MAX, &text, NULL);
        if (error == -ENOENT || error == -ENOTDIR || error == -ENOMEM)
                return error == -ENOTDIR ? -ENOENT : error;
        if (error < 0) {
                complain(&r, "cannot be read, left out");
                return 0;
        }
        return parse_text(&r, text);
}

/* ---- files ---- */

static int read_main(struct config *c, config_complain_fn f, const char *root) {
        for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
                _cleanup_free_ char *path = NULL;
                int r;

                if (asprintf(&path, "%s%s/" NAME, root, places[i]) < 0)
                        return -ENOMEM;
                r = read_config(c, f, path);
                if (r != -ENOENT)
                        return r;
        }
        return 0;
}

struct drop_in {
        char *path; /* owned */
        const char *name; /* inside path */
        size_t place;
};

struct drop_ins {
        struct drop_in rows[CONFIG_FILES_MAX];
        size_t count;
};

static void drop_ins_done(struct drop_ins *d) {
        for (size_t i = 0; i < d->count; i++)
                free(d->rows[i].path);
}

static int by_name(const void *x, const void *y) {
        const struct drop_in *a = x, *b = y;
        int order = strcmp(a->name, b->name);

        return order != 0 ? order : (int) a->place - (int) b->place;
}

static int list_place(struct drop_ins *d, const char *root, size_t place) {
        _cleanup_free_ char *directory = NULL;
        const struct dirent *entry;
        int r = 0;
        DIR *dir;

        if (asprintf(&directory, "%s%s/" NAME ".d", root, places[place]) < 0)
                return -ENOMEM;
        dir = opendir(directory);
        if (!dir)
                return 0;
        while (r == 0 && d->count < CONFIG_FILES_MAX && (entry = readdir(dir))) {
                struct drop_in *row = &d->rows[d->count];

                if (!endswith(entry->d_name, ".conf") || entry->d_name[0] == '.')
                        continue;
                if (asprintf(&row->path, "%s/%s", directory, entry->d_name) < 0) {
                        r = -ENOMEM;
                        break;
                }
                row->name = row->path + strlen(directory) + 1;
                row->place = place;
                d->count++;
        }
        (void) closedir(dir);
        return r;
}

static int read_drop_ins(struct config *c, config_complain_fn f, const char *root) {
        _cleanup_(drop_ins_done) struct drop_ins d = {};
        int r = 0;

        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(places); i++)
                r = list_place(&d, root, i);
        qsort(d.rows, d.count, sizeof(d.rows[0]), by_name);
        for (size_t i = 0; r == 0 && i < d.count; i++) {
                if (i > 0 && streq(d.rows[i].name, d.rows[i - 1].name))
                        continue;
                r = read_config(c, f, d.rows[i].path);
                if (r == -ENOENT) /* went meanwhile */
                        r = 0;
        }
        return r;
}

int config_load(const char *root, config_complain_fn f, struct config *ret) {
        struct config c = CONFIG_NULL;
        int r;

        r = read_main(&c, f, root);
        if (r == 0)
                r = read_drop_ins(&c, f, root);
        if (r < 0) {
                config_done(&c);
                return r;
        }
        *ret = c;
        return 0;
}

void config_done(struct config *c) {
        forget_directories(c);
}
