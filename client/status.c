/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <inttypes.h>

#include "client/commands.h"
#include "client/daemon.h"
#include "client/message.h"
#include "client/table.h"
#include "common/buf.h"
#include "common/macro.h"
#include "common/text.h"

static void put_feature(struct buf *out, json_t *feature) {
        const char *name = "?", *reason = "";
        bool available = false;

        (void) varlink_get_string(feature, "name", &name);
        (void) varlink_get_string(feature, "reason", &reason);
        (void) varlink_get_bool(feature, "available", &available);
        buf_puts(out, available ? "  yes  " : "  no   ");
        text_escape_terminal(out, name);
        if (!available && *reason) {
                buf_puts(out, ": ");
                text_escape_terminal(out, reason);
        }
        buf_putc(out, '\n');
}

static int print_text(json_t *status) {
        _cleanup_(buf_done) struct buf out = BUF_NULL;
        const char *version = "?";
        json_t *feature;
        uint64_t sessions = 0;
        size_t i;

        (void) varlink_get_string(status, "version", &version);
        (void) varlink_get_u64(status, "sessions", &sessions);
        buf_puts(&out, "startprofd ");
        text_escape_terminal(&out, version);
        buf_printf(&out, ", %" PRIu64 " start%s being profiled\n", sessions, sessions == 1 ? "" : "s");
        buf_puts(&out, "What this kernel lets it see:\n");
        json_array_foreach(json_object_get(status, "features"), i, feature) put_feature(&out, feature);
        if (buf_error(&out) < 0)
                return message_no_memory();
        fputs(buf_text(&out), stdout);
        return 0;
}

int status_main(const struct options *options) {
        _cleanup_(varlink_answer_done) struct varlink_answer answer = VARLINK_ANSWER_NULL;
        _cleanup_(varlink_client_freep) struct varlink_client *client = NULL;
        int r;

        r = daemon_connect(options->socket, &client);
        if (r != 0)
                return r;
        r = daemon_call(client, "Status", json_object(), &answer);
        if (r != 0)
                return r;
        if (!answer.parameters)
                return daemon_gone(-EBADMSG);
        return options->json != JSON_OFF ? table_print_json(answer.parameters, options->json)
                                         : print_text(answer.parameters);
}
