/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/journal.h"

#include <inttypes.h>
#include <sys/uio.h>
#include <systemd/sd-journal.h>

#include "common/buf.h"
#include "common/macro.h"
#include "common/text.h"

/* OBJECT_SYSTEMD_* make journalctl -u and --invocation= show it with the unit's own entries
 * (systemd.journal-fields(7)); they count only from a privileged sender. */
int journal_send(const struct journal_entry *entry) {
        enum { FIELDS = 10 };
        struct buf fields[FIELDS] = {};
        struct iovec iov[FIELDS];
        int n = 0, r = 0;

        buf_puts(&fields[n++], "MESSAGE_ID=" JOURNAL_MESSAGE_ID);
        buf_puts(&fields[n++], "PRIORITY=5");
        if (entry->message)
                buf_printf(&fields[n++], "MESSAGE=%s", entry->message);
        else
                buf_printf(&fields[n++], "MESSAGE=%s: its start was recorded, see 'startprof info %s'",
                           entry->unit, entry->recording);
        buf_printf(&fields[n++], "STARTPROF_UNIT=%s", entry->unit);
        buf_printf(&fields[n++], "OBJECT_SYSTEMD_UNIT=%s", entry->unit);
        buf_puts(&fields[n], "OBJECT_SYSTEMD_INVOCATION_ID=");
        text_hex(&fields[n++], entry->invocation_id, 16);
        buf_printf(&fields[n++], "STARTPROF_CAUSE=%s", entry->cause);
        buf_printf(&fields[n++], "STARTPROF_RESULT=%s", entry->result);
        buf_printf(&fields[n++], "STARTPROF_DURATION_USEC=%" PRIu64, entry->duration_usec);
        buf_printf(&fields[n++], "STARTPROF_RECORDING=%s", entry->recording);

        for (int i = 0; i < n; i++) {
                r = r < 0 ? r : buf_error(&fields[i]);
                iov[i] = (struct iovec){ fields[i].data, fields[i].size };
        }
        if (r >= 0)
                r = sd_journal_sendv(iov, n);
        for (int i = 0; i < n; i++)
                buf_done(&fields[i]);
        return r;
}
