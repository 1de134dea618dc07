/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/json_text.h"

#include "common/buf.h"
#include "common/macro.h"
#include "common/text.h"

int json_put_text(FILE *out, const char *text) {
        _cleanup_(buf_done) struct buf b = BUF_NULL;

        text_utf8(&b, text);
        if (buf_error(&b) < 0)
                return buf_error(&b);
        fputc('"', out);
        for (const char *p = buf_text(&b); *p; p++)
                if (*p == '"' || *p == '\\')
                        fprintf(out, "\\%c", *p);
                else if ((unsigned char) *p < 0x20 || *p == 0x7f)
                        fprintf(out, "\\u%04x", (unsigned) (unsigned char) *p);
                else
                        fputc(*p, out);
        fputc('"', out);
        return 0;
}
