/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/commands.h"
#include "client/daemon.h"
#include "client/message.h"
#include "client/table.h"
#include "common/buf.h"
#include "common/macro.h"
#include "common/text.h"
#include "common/unit_name.h"

enum { COLUMN_WHEN, COLUMN_UNIT, COLUMN_TOOK, COLUMN_RESULT, COLUMN_CAUSE, COLUMN_ID, COLUMN_COUNT };
enum { CELL_MAX = 64 };

static const char *const header[COLUMN_COUNT] = { "WHEN", "UNIT", "TOOK", "RESULT", "CAUSE", "ID" };

/* Cells of one line; texts are borrowed from the recording's object or lie in the row. */
struct row {
        const char *cells[COLUMN_COUNT];
        char when[CELL_MAX], took[CELL_MAX];
};

static const char *string_of(json_t *recording, const char *name) {
        const char *text = "";

        (void) varlink_get_string(recording, name, &text);
        return text;
}

static void format_when(json_t *recording, char text[static CELL_MAX]) {
        uint64_t usec = 0;
        struct tm local;
        time_t seconds;

        (void) varlink_get_u64(recording, "realtime_usec", &usec);
        seconds = (time_t) (usec / USEC_PER_SEC);
        if (!localtime_r(&seconds, &local) || strftime(text, CELL_MAX, "%a %Y-%m-%d %H:%M:%S", &local) == 0)
                text[0] = '\0';
}

static void format_took(json_t *recording, char text[static CELL_MAX]) {
        _cleanup_(buf_done) struct buf span = BUF_NULL;
        uint64_t usec = 0;

        (void) varlink_get_u64(recording, "duration_usec", &usec);
        text_span(&span, usec);
        snprintf(text, CELL_MAX, "%s", buf_text(&span));
}

static void fill(json_t *recording, struct row *row) {
        format_when(recording, row->when);
        format_took(recording, row->took);
        row->cells[COLUMN_WHEN] = row->when;
        row->cells[COLUMN_UNIT] = string_of(recording, "unit");
        row->cells[COLUMN_TOOK] = row->took;
        row->cells[COLUMN_RESULT] = string_of(recording, "result");
        row->cells[COLUMN_CAUSE] = string_of(recording, "cause");
        row->cells[COLUMN_ID] = string_of(recording, "id");
}

/* Is it of one of the units that were named? */
static bool wanted(json_t *recording, char *const *units, unsigned n_units) {
        const char *unit = string_of(recording, "unit");

        for (unsigned i = 0; i < n_units; i++)
                if (streq(unit, units[i]))
                        return true;
        return n_units == 0;
}

static int print_rows(json_t *recordings) {
        size_t n = json_array_size(recordings);
        _cleanup_free_ const char **cells = NULL;
        _cleanup_free_ struct row *rows = NULL;

        if (n == 0) {
                message_note("no recordings: 'startprof UNIT' makes one");
                return 0;
        }
        rows = calloc(n, sizeof(*rows));
        cells = calloc(n, sizeof(rows->cells));
        if (!rows || !cells)
                return message_no_memory();
        for (size_t i = 0; i < n; i++) {
                fill(json_array_get(recordings, i), &rows[i]);
                memcpy(cells + i * COLUMN_COUNT, rows[i].cells, sizeof(rows[i].cells));
        }
        return table_print(header, cells, n, COLUMN_COUNT);
}

static int print_wanted(const struct options *options, json_t *all, char *const *units, unsigned n_units) {
        json_t *recordings = json_array(), *recording;
        size_t i;
        int r;

        if (!recordings)
                return message_no_memory();
        json_array_foreach(all, i, recording) if (wanted(recording, units, n_units))
                json_array_append(recordings, recording);
        r = options->json != JSON_OFF ? table_print_json(recordings, options->json) : print_rows(recordings);
        json_decref(recordings);
        return r;
}

static int list(const struct options *options, char *const *units, unsigned n_units) {
        _cleanup_(varlink_answer_done) struct varlink_answer answer = VARLINK_ANSWER_NULL;
        _cleanup_(varlink_client_freep) struct varlink_client *client = NULL;
        json_t *all;
        int r;

        r = daemon_connect(options->socket, &client);
        if (r != 0)
                return r;
        r = daemon_call(client, "List",
                        n_units == 1 ? json_pack("{s:o}", "unit", varlink_string(units[0])) : json_object(),
                        &answer);
        if (r != 0)
                return r;
        all = json_object_get(answer.parameters, "recordings");
        return json_is_array(all) ? print_wanted(options, all, units, n_units) : daemon_gone(-EBADMSG);
}

int list_main(const struct options *options) {
        unsigned n = 0;
        char **units;
        int r = 0;

        units = calloc(options->n_arguments + 1, sizeof(char *));
        if (!units)
                return message_no_memory();
        for (; n < options->n_arguments && r == 0; n++)
                if (unit_name_mangle(options->arguments[n], &units[n]) < 0)
                        r = message_fail(EXIT_USAGE, "'%s' cannot be the name of a unit",
                                         options->arguments[n]);
        if (r == 0)
                r = list(options, units, n);
        for (unsigned i = 0; i < n; i++)
                free(units[i]);
        free(units);
        return r;
}
