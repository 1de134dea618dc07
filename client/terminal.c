/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/terminal.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "common/macro.h"
#include "common/parse.h"

enum { COLUMNS_DEFAULT = 80, COLUMNS_MAX = 1000, ANSWER_MAX = 64 };

static bool dumb(void) {
        const char *term = getenv("TERM");

        return !term || !*term || streq(term, "dumb");
}

static bool is_no(const char *text) {
        static const char *const words[] = { "0", "no", "n", "false", "f", "off" };

        for (size_t i = 0; i < ARRAY_SIZE(words); i++)
                if (strcasecmp(text, words[i]) == 0)
                        return true;
        return false;
}

bool terminal_colors(int fd) {
        const char *systemd = getenv("SYSTEMD_COLORS"), *none = getenv("NO_COLOR");

        /* "auto-16" and the like only choose a palette */
        if (systemd && *systemd && !startswith(systemd, "auto"))
                return !is_no(systemd);
        if (none && *none)
                return false;
        return isatty(fd) && !dumb();
}

unsigned terminal_columns(int fd) {
        const char *columns = getenv("COLUMNS");
        struct winsize size;
        uint32_t n;

        if (columns && parse_u32(columns, &n) >= 0 && n > 0)
                return MIN(n, (uint32_t) COLUMNS_MAX);
        if (ioctl(fd, TIOCGWINSZ, &size) >= 0 && size.ws_col > 0)
                return MIN(size.ws_col, COLUMNS_MAX);
        return COLUMNS_DEFAULT;
}

bool terminal_can_ask(void) {
        return isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
}

bool terminal_ask(const char *question) {
        char answer[ANSWER_MAX];

        fprintf(stderr, "%s [y/N] ", question);
        fflush(stderr);
        if (!fgets(answer, sizeof(answer), stdin))
                return false;
        answer[strcspn(answer, "\r\n")] = '\0';
        return strcasecmp(answer, "y") == 0 || strcasecmp(answer, "yes") == 0;
}
