/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/answer.h"
#include "client/commands.h"
#include "client/recording_arg.h"
#include "common/macro.h"

int info_main(const struct options *options) {
        _cleanup_(answer_done) struct answer answer = ANSWER_NULL;
        int r;

        r = recording_arg_load(options, &answer);
        if (r != 0)
                return r;
        answer_improve(&answer, options);
        return answer_print(&answer, options);
}
