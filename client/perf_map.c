/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/perf_map.h"

#include "common/buf.h"

/* Inside the quotes of an Environment= line: systemd.syntax(7), and % begins a specifier. */
static void put_quoted(struct buf *b, const char *text) {
        for (; *text; text++) {
                unsigned char c = (unsigned char) *text;

                if (c == '"' || c == '\\')
                        buf_printf(b, "\\%c", c);
                else if (c == '%')
                        buf_puts(b, "%%");
                else if (c < ' ' || c == 0x7f)
                        buf_printf(b, "\\x%02x", c);
                else
                        buf_putc(b, (char) c);
        }
}

char *perf_map_lines(const char *node_options) {
        _cleanup_(buf_done) struct buf b = BUF_NULL;
        char *lines;

        buf_puts(&b, "[Service]\n"
                     "Environment=DOTNET_PerfMapEnabled=1\n"
                     "Environment=PYTHONPERFSUPPORT=1\n"
                     "Environment=\"NODE_OPTIONS=");
        if (node_options && *node_options) {
                put_quoted(&b, node_options);
                buf_putc(&b, ' ');
        }
        buf_puts(&b, "--perf-basic-prof\"\n");
        return buf_take(&b, &lines, NULL) < 0 ? NULL : lines;
}
