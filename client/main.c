/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <locale.h>
#include <stdio.h>

#include "client/commands.h"
#include "client/message.h"
#include "client/options.h"

static int help_main(const struct options *options) {
        options_help(stdout);
        return EXIT_UP;
}

static int version_main(const struct options *options) {
        puts("startprof " STARTPROF_VERSION);
        return EXIT_UP;
}

static int (*const commands[COMMAND_MAX])(const struct options *options) = {
        [COMMAND_RUN] = run_main,         [COMMAND_LIST] = list_main,     [COMMAND_INFO] = info_main,
        [COMMAND_EXPORT] = export_main,   [COMMAND_STATUS] = status_main, [COMMAND_HELP] = help_main,
        [COMMAND_VERSION] = version_main,
};

int main(int argc, char *argv[]) {
        _cleanup_free_ char *error = NULL;
        struct options options;
        int r;

        setlocale(LC_TIME, "");
        if (options_parse(argc, argv, &options, &error) < 0)
                return message_fail_made(EXIT_USAGE, error);

        r = commands[options.command](&options);
        if (fflush(stdout) != 0 && r == EXIT_UP)
                return message_fail(EXIT_FILE, "cannot write to standard output: %m");
        return r;
}
