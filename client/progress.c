/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "client/terminal.h"
#include "common/buf.h"
#include "common/text.h"
#include "proto/varlink.h"

struct progress {
        const char *unit;
        bool enabled, shown;
};

struct progress *progress_new(const char *unit) {
        struct progress *p = malloc(sizeof(*p));
        const char *term = getenv("TERM");

        if (p)
                *p = (struct progress){
                        .unit = unit,
                        .enabled = isatty(STDERR_FILENO) && term && *term && !streq(term, "dumb"),
                };
        return p;
}

struct progress *progress_free(struct progress *p) {
        if (p)
                progress_clear(p);
        free(p);
        return NULL;
}

void progress_clear(struct progress *p) {
        if (p->shown)
                fputs("\r\x1b[K", stderr);
        p->shown = false;
}

/* ", 46,259 watches": what, and how it ends when there are several */
static void put_count(struct buf *line, json_t *reply, const char *member, const char *what,
                      const char *plural) {
        uint64_t n = 0;

        if (varlink_get_u64(reply, member, &n) <= 0 || n == 0)
                return;
        buf_puts(line, ", ");
        text_count(line, n);
        buf_printf(line, " %s%s", what, n == 1 ? "" : plural);
}

static const char *state_text(const char *state) {
        static const struct {
                const char *state, *text;
        } texts[] = {
                { "armed", "waiting for its start" },
                { "queued", "queued" },
                { "starting", "starting" },
                { "finishing", "naming functions" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
                if (streq(texts[i].state, state))
                        return texts[i].text;
        return state;
}

/* Cut to so many columns; the text is UTF-8 by now. */
static void cut(struct buf *line, unsigned columns) {
        for (size_t i = 0; i < line->size; i++)
                if (((unsigned char) line->data[i] & 0xc0) != 0x80 && columns-- == 0) {
                        line->data[i] = '\0';
                        line->size = i;
                }
}

char *progress_line(const char *unit, json_t *reply, unsigned columns) {
        _cleanup_(buf_done) struct buf line = BUF_NULL;
        const char *state = "", *hottest = "";
        uint64_t elapsed = 0;
        char *text;

        (void) varlink_get_string(reply, "state", &state);
        (void) varlink_get_string(reply, "hottest", &hottest);
        text_escape_terminal(&line, unit);
        buf_puts(&line, ": ");
        text_escape_terminal(&line, state_text(state));
        if (!streq(state, "finishing") && varlink_get_u64(reply, "elapsed_usec", &elapsed) > 0 &&
            elapsed > 0) {
                buf_puts(&line, " for ");
                text_span(&line, elapsed);
        }
        put_count(&line, reply, "samples", "sample", "s");
        put_count(&line, reply, "calls", "call", "s");
        put_count(&line, reply, "inotify_watches", "inotify watch", "es");
        put_count(&line, reply, "processes", "process", "es");
        if (*hottest) {
                buf_puts(&line, ", hottest: ");
                text_escape_terminal(&line, hottest);
        }
        cut(&line, columns);
        return buf_take(&line, &text, NULL) < 0 ? NULL : text;
}

void progress_show(struct progress *p, json_t *reply) {
        _cleanup_free_ char *line = NULL;

        if (!p->enabled)
                return;
        /* the last column is left free: a full line would wrap */
        line = progress_line(p->unit, reply, terminal_columns(STDERR_FILENO) - 1);
        if (!line)
                return;
        fprintf(stderr, "\r%s\x1b[K", line);
        fflush(stderr);
        p->shown = true;
}
