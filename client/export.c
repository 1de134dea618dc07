/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/answer.h"
#include "client/commands.h"
#include "client/message.h"
#include "client/output.h"
#include "client/recording_arg.h"
#include "common/macro.h"

static int choose_format(const struct options *options, enum report_format *ret) {
        if (options->format) {
                if (report_format_from_name(options->format, ret) < 0)
                        return message_fail(EXIT_USAGE, "--format=%s: one of %s is needed", options->format,
                                            report_format_list());
                return 0;
        }
        if (report_format_from_file(options->output, ret) < 0)
                return message_fail(EXIT_USAGE,
                                    "the name '%s' tells no format: add --format= with one of %s",
                                    options->output, report_format_list());
        return 0;
}

int export_main(const struct options *options) {
        _cleanup_(answer_done) struct answer answer = ANSWER_NULL;
        enum report_format format;
        int r;

        r = choose_format(options, &format);
        if (r != 0)
                return r;
        r = streq(options->output, "-") ? 0 : output_check(options->output);
        if (r != 0)
                return r;
        r = recording_arg_load(options, &answer);
        if (r != 0)
                return r;
        answer_improve(&answer, options);
        return answer_export(&answer, format, options, options->output);
}
