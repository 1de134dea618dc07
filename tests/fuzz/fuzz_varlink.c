/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Bytes from a client or from a daemon, in pieces: framing, decoding as a call and as a reply, the members that
 * methods ask for, and encoding again what was understood.
 *
 * Input: u8 size of the pieces (0: all at once), then the stream.
 * Corpus (corpus/varlink): calls, replies and errors as both sides send them, and what nobody should send.
 */

#include <stdint.h>
#include <stdlib.h>

#include "common/macro.h"
#include "proto/varlink.h"

enum { MESSAGE_MAX = 4096 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ask_members(json_t *parameters) {
        static const char *const names[] = {
                "unit", "options", "frequency", "wait", "session", "queued_usec"
        };
        const char *text;
        json_t *object;
        uint64_t number;
        bool flag;

        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                (void) varlink_get_string(parameters, names[i], &text);
                (void) varlink_get_u64(parameters, names[i], &number);
                (void) varlink_get_bool(parameters, names[i], &flag);
                (void) varlink_get_object(parameters, names[i], &object);
        }
}

static void understand(json_t *message) {
        struct varlink_reply reply;
        struct varlink_call call;
        size_t bytes;
        char *text;

        if (varlink_call_decode(message, &call) == 0) {
                ask_members(call.parameters);
                if (varlink_call_encode(&call, &text, &bytes) == 0)
                        free(text);
        }
        if (varlink_reply_decode(message, &reply) == 0) {
                ask_members(reply.parameters);
                if (varlink_reply_encode(&reply, &text, &bytes) == 0)
                        free(text);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        struct varlink_input in = VARLINK_INPUT(MESSAGE_MAX);
        size_t piece, n;
        json_t *message;
        int r = 0;

        if (size == 0)
                return 0;
        piece = data[0] ?: size;
        for (size_t at = 1; at < size && r >= 0; at += n) {
                n = MIN(piece, size - at);
                if (varlink_input_feed(&in, data + at, n) < 0)
                        break;
                while ((r = varlink_input_next(&in, &message)) > 0) {
                        understand(message);
                        json_decref(message);
                }
        }
        varlink_input_done(&in);
        return 0;
}
