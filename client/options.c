/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/macro.h"
#include "common/parse.h"
#include "proto/varlink.h"

enum { FREQUENCY_DEFAULT = 99 }; /* not 100: not in step with timers */

/* For the daemon time spans are signed. */
#define SPAN_MAX_USEC ((uint64_t) INT64_MAX / NSEC_PER_USEC)

#define ON(command) (1u << (command))
#define ON_RUN      ON(COMMAND_RUN)
#define ON_NAMING   (ON(COMMAND_RUN) | ON(COMMAND_INFO) | ON(COMMAND_EXPORT))
#define ON_TABLES   (ON(COMMAND_RUN) | ON(COMMAND_LIST) | ON(COMMAND_INFO) | ON(COMMAND_STATUS))
#define ON_ALL      (ON(COMMAND_MAX) - 1)

static const char *const command_names[COMMAND_MAX] = {
        [COMMAND_LIST] = "list",
        [COMMAND_INFO] = "info",
        [COMMAND_EXPORT] = "export",
        [COMMAND_STATUS] = "status",
};

/* Sets one option; false: *error says why not. value is NULL for options without one. */
typedef bool (*set_fn)(struct options *o, const char *value, struct buf *error);

static bool set_frequency(struct options *o, const char *value, struct buf *error) {
        uint32_t hz;

        if (parse_u32(value, &hz) < 0 || hz < PROFILER_FREQUENCY_MIN || hz > PROFILER_FREQUENCY_MAX) {
                buf_printf(error, "--frequency=%s: a number of samples per second from %d to %d is needed",
                           value, PROFILER_FREQUENCY_MIN, PROFILER_FREQUENCY_MAX);
                return false;
        }
        o->frequency_hz = hz;
        return true;
}

static bool set_restart(struct options *o, const char *value, struct buf *error) {
        o->restart = true;
        return true;
}

static bool set_wait(struct options *o, const char *value, struct buf *error) {
        o->wait = true;
        return true;
}

static bool set_perf_map(struct options *o, const char *value, struct buf *error) {
        o->perf_map = true;
        return true;
}

static bool set_kernel(struct options *o, const char *value, struct buf *error) {
        o->kernel = true;
        return true;
}

static bool set_no_debuginfod(struct options *o, const char *value, struct buf *error) {
        o->no_debuginfod = true;
        return true;
}

static bool set_all_symbols(struct options *o, const char *value, struct buf *error) {
        o->all_symbols = true;
        return true;
}

static bool set_until(struct options *o, const char *value, struct buf *error) {
        uint64_t usec;

        if (streq(value, "active") || streq(value, "listen") || streq(value, "exit")) {
                o->until = value;
                o->until_usec = 0;
                return true;
        }
        if (parse_usec(value, &usec) < 0 || usec == 0 || usec > SPAN_MAX_USEC) {
                buf_printf(error, "--until=%s: 'active', 'listen', 'exit' or a time such as 20s is needed",
                           value);
                return false;
        }
        o->until = NULL;
        o->until_usec = usec;
        return true;
}

static bool set_timeout(struct options *o, const char *value, struct buf *error) {
        uint64_t usec;

        if (parse_usec(value, &usec) < 0 || usec == 0 || (usec > SPAN_MAX_USEC && usec != UINT64_MAX)) {
                buf_printf(error, "--timeout=%s: a time such as 90s, or 'infinity', is needed", value);
                return false;
        }
        o->timeout_usec = usec;
        return true;
}

static bool set_debug_dir(struct options *o, const char *value, struct buf *error) {
        if (o->n_debug_dirs == DEBUG_DIR_MAX) {
                buf_printf(error, "--debug-dir=%s: at most %d directories can be given", value,
                           DEBUG_DIR_MAX);
                return false;
        }
        o->debug_dirs[o->n_debug_dirs++] = value;
        return true;
}

static bool set_flamegraph(struct options *o, const char *value, struct buf *error) {
        o->flamegraph = value;
        return true;
}

static bool set_output(struct options *o, const char *value, struct buf *error) {
        o->output = value;
        return true;
}

static bool set_format(struct options *o, const char *value, struct buf *error) {
        o->format = value;
        return true;
}

static bool set_view(struct options *o, const char *value, struct buf *error) {
        if (report_view_from_name(value, &o->view) >= 0)
                return true;
        buf_printf(error, "--view=%s: 'cpu', 'waits' or 'wall' is needed", value);
        return false;
}

static bool set_json(struct options *o, const char *value, struct buf *error) {
        static const char *const words[] = {
                [JSON_OFF] = "off", [JSON_SHORT] = "short", [JSON_PRETTY] = "pretty"
        };

        for (size_t i = 0; i < ARRAY_SIZE(words); i++)
                if (streq(value, words[i])) {
                        o->json = (enum options_json) i;
                        return true;
                }
        buf_printf(error, "--json=%s: 'short', 'pretty' or 'off' is needed", value);
        return false;
}

static bool set_socket(struct options *o, const char *value, struct buf *error) {
        o->socket = value;
        return true;
}

static bool set_help(struct options *o, const char *value, struct buf *error) {
        o->command = COMMAND_HELP;
        return true;
}

static bool set_version(struct options *o, const char *value, struct buf *error) {
        o->command = COMMAND_VERSION;
        return true;
}

static bool refuse_user(struct options *o, const char *value, struct buf *error) {
        buf_puts(error, "--user: units of a user's own service manager are not supported yet");
        return false;
}

static bool refuse_host(struct options *o, const char *value, struct buf *error) {
        buf_printf(error,
                   "--host=%s: other hosts are not supported yet; run startprof there and copy its -o FILE",
                   value);
        return false;
}

static bool refuse_machine(struct options *o, const char *value, struct buf *error) {
        buf_printf(error, "--machine=%s: containers are not supported from outside yet; run startprof in it",
                   value);
        return false;
}

static const struct option_row {
        const char *name;
        char letter; /* '\0': none */
        const char *value; /* what it is called in --help; NULL: takes none */
        unsigned commands; /* ON() bits of those that it means something to */
        set_fn set;
        const char *help; /* NULL: not shown */
} rows[] = {
        { "frequency", 'F', "HZ", ON_RUN, set_frequency, "samples per second and CPU, 1 to 10000 (99)" },
        { "restart", 0, NULL, ON_RUN, set_restart, "restart the unit without asking when it is active" },
        { "wait", 0, NULL, ON_RUN, set_wait, "do not start it: profile its next start, whoever causes it" },
        { "until", 0, "WHEN", ON_RUN, set_until,
          "capture until: active, listen, exit, or a time such as 20s" },
        { "timeout", 0, "TIME", ON_RUN, set_timeout, "end the capture, not the start, after TIME" },
        { "perf-map", 0, NULL, ON_RUN, set_perf_map,
          "let .NET, node and Python name their functions, in this start" },
        { "flamegraph", 0, "FILE.svg", ON_RUN, set_flamegraph, "write a flame graph, too" },
        { "output", 'o', "FILE", ON_RUN | ON(COMMAND_EXPORT), set_output,
          "write the recording, or what export makes" },
        { "format", 0, "FORMAT", ON(COMMAND_EXPORT), set_format, "export this, not what FILE's name says" },
        { "view", 0, "VIEW", ON_RUN | ON(COMMAND_EXPORT), set_view,
          "flame graph and folded stacks of: cpu (default), waits, wall" },
        { "debug-dir", 0, "DIR", ON_NAMING, set_debug_dir,
          "look for debug files below DIR first (repeatable)" },
        { "no-debuginfod", 0, NULL, ON_NAMING, set_no_debuginfod, "fetch no debug files from servers" },
        { "all-symbols", 0, NULL, ON_NAMING, set_all_symbols,
          "fetch also those of modules with less than 1 % of samples" },
        { "kernel", 0, NULL, ON_NAMING, set_kernel,
          "name the kernel's functions; flame graphs go on into it" },
        { "json", 0, "MODE", ON_TABLES, set_json, "print JSON: short, pretty or off" },
        { "socket", 0, "PATH", ON_ALL, set_socket, "of another daemon than the system's" },
        { "help", 'h', NULL, ON_ALL, set_help, "show this" },
        { "version", 0, NULL, ON_ALL, set_version, "show the version" },
        { "user", 0, NULL, ON_ALL, refuse_user, NULL },
        { "host", 'H', "HOST", ON_ALL, refuse_host, NULL },
        { "machine", 'M', "NAME", ON_ALL, refuse_machine, NULL },
};

enum { ROW_BASE = 256 }; /* values of getopt_long() above every letter */

/* The same table as getopt_long() wants it. */
static void getopt_tables(struct option longs[static ARRAY_SIZE(rows) + 1],
                          char shorts[static 2 * ARRAY_SIZE(rows) + 2]) {
        char *s = shorts;

        *s++ = ':'; /* a missing value is told apart from an unknown option */
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                longs[i] = (struct option){
                        .name = rows[i].name,
                        .has_arg = rows[i].value ? required_argument : no_argument,
                        .val = ROW_BASE + (int) i,
                };
                if (rows[i].letter) {
                        *s++ = rows[i].letter;
                        if (rows[i].value)
                                *s++ = ':';
                }
        }
        longs[ARRAY_SIZE(rows)] = (struct option){};
        *s = '\0';
}

static const struct option_row *row_find(int value) {
        if (value >= ROW_BASE && value < ROW_BASE + (int) ARRAY_SIZE(rows))
                return &rows[value - ROW_BASE];
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                if (value != 0 && rows[i].letter == value)
                        return &rows[i];
        return NULL;
}

/* After getopt_long() said '?' or ':': optopt is 0 for an unknown long option. */
static void say_bad_option(int answer, char *argv[], struct buf *error) {
        const struct option_row *row = row_find(optopt);

        if (answer == ':' && row)
                buf_printf(error, "--%s needs a value: --%s=%s", row->name, row->name, row->value);
        else if (row)
                buf_printf(error, "--%s takes no value", row->name);
        else if (optopt)
                buf_printf(error, "unknown option '-%c'; 'startprof --help' lists them", optopt);
        else
                buf_printf(error, "unknown option '%s'; 'startprof --help' lists them", argv[optind - 1]);
}

/* Takes the command's name off the arguments. */
static void find_command(struct options *o) {
        if (o->command != COMMAND_RUN) /* --help, --version */
                return;
        if (o->n_arguments == 0) {
                o->command = COMMAND_LIST;
                return;
        }
        for (unsigned i = 0; i < COMMAND_MAX; i++)
                if (command_names[i] && streq(o->arguments[0], command_names[i])) {
                        o->command = (enum command) i;
                        o->arguments++;
                        o->n_arguments--;
                        return;
                }
}

static bool check_options(const struct options *o, uint64_t used, bool named, struct buf *error) {
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                if (!(used & (UINT64_C(1) << i)) || (rows[i].commands & ON(o->command)))
                        continue;
                if (named)
                        buf_printf(error, "--%s means nothing to 'startprof %s'", rows[i].name,
                                   o->command == COMMAND_RUN ? "UNIT" : command_names[o->command]);
                else
                        buf_printf(error, "--%s needs a unit: startprof --%s%s%s UNIT", rows[i].name,
                                   rows[i].name, rows[i].value ? "=" : "", rows[i].value ?: "");
                return false;
        }
        if (o->wait && o->restart) {
                buf_puts(error, "--wait does not start the unit and --restart does: choose one");
                return false;
        }
        return true;
}

static bool check_arguments(const struct options *o, struct buf *error) {
        static const unsigned most[COMMAND_MAX] = {
                [COMMAND_RUN] = 1,    [COMMAND_LIST] = UINT32_MAX, [COMMAND_INFO] = 1,
                [COMMAND_EXPORT] = 1, [COMMAND_HELP] = UINT32_MAX, [COMMAND_VERSION] = UINT32_MAX,
        };

        if (o->command == COMMAND_RUN && streq(o->arguments[0], "diff")) {
                buf_puts(error, "diff: two starts cannot be compared yet");
                return false;
        }
        if (o->n_arguments > most[o->command]) {
                if (o->command == COMMAND_RUN)
                        buf_printf(error, "one unit at a time: what is '%s' for?", o->arguments[1]);
                else
                        buf_printf(error, "what is '%s' for? 'startprof %s' takes %s",
                                   o->arguments[most[o->command]], command_names[o->command],
                                   most[o->command] == 0 ? "no arguments" : "one recording");
                return false;
        }
        if (o->command == COMMAND_EXPORT && !o->output) {
                buf_puts(error, "export: where to? -o FILE, or -o - with --format= for standard output");
                return false;
        }
        return true;
}

static bool parse(int argc, char *argv[], struct options *o, struct buf *error) {
        struct option longs[ARRAY_SIZE(rows) + 1];
        char shorts[2 * ARRAY_SIZE(rows) + 2];
        uint64_t used = 0;
        int answer;

        getopt_tables(longs, shorts);
        optind = 0; /* begin anew, also in a second call */
        opterr = 0;
        while ((answer = getopt_long(argc, argv, shorts, longs, NULL)) >= 0) {
                const struct option_row *row = answer == '?' || answer == ':' ? NULL : row_find(answer);

                if (!row) {
                        say_bad_option(answer, argv, error);
                        return false;
                }
                if (row->value && !*optarg) {
                        buf_printf(error, "--%s= is empty: --%s=%s", row->name, row->name, row->value);
                        return false;
                }
                if (!row->set(o, row->value ? optarg : NULL, error))
                        return false;
                used |= UINT64_C(1) << (row - rows);
        }

        o->arguments = argv + optind;
        o->n_arguments = (unsigned) (argc - optind);
        bool named = o->n_arguments > 0;
        find_command(o);
        return check_options(o, used, named, error) && check_arguments(o, error);
}

int options_parse(int argc, char *argv[], struct options *ret, char **ret_error) {
        _cleanup_(buf_done) struct buf error = BUF_NULL;
        struct options o = {
                .command = COMMAND_RUN,
                .frequency_hz = FREQUENCY_DEFAULT,
                .timeout_usec = UINT64_MAX,
                .socket = PROFILER_SOCKET,
        };
        int r;

        if (parse(argc, argv, &o, &error)) {
                *ret = o;
                return 0;
        }
        r = buf_take(&error, ret_error, NULL);
        return r < 0 ? r : -EINVAL;
}

void options_help(FILE *out) {
        fputs("startprof [OPTIONS] UNIT            start or restart UNIT, profile it, print the answer\n"
              "startprof list [UNIT...]            recordings, newest first (default with no arguments)\n"
              "startprof info [ID|UNIT|FILE]       the report again (newest by default)\n"
              "startprof export [ID|UNIT|FILE] -o FILE [--format=FORMAT]\n"
              "startprof status                    the daemon and what this kernel lets it see\n"
              "\n"
              "Where did the time of a service's start go, why, and what to change?\n"
              "\n",
              out);
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                char letter[] = { '-', rows[i].letter, ',', '\0' };
                int width;

                if (!rows[i].help)
                        continue;
                width = fprintf(out, "  %3s --%s%s%s", rows[i].letter ? letter : "", rows[i].name,
                                rows[i].value ? "=" : "", rows[i].value ?: "");
                fprintf(out, "%*s%s\n", width < 28 ? 28 - width : 1, "", rows[i].help);
        }
        fputs("\n"
              "Exit status: 0 up, 1 the start failed or was refused, 2 usage, 3 interrupted, 4 no such unit "
              "or\n"
              "recording, 5 cannot profile, 6 bad recording or output. See startprof(1).\n",
              out);
}
