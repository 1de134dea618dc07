/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdint.h>

#include "proto/recording.h"

/* Of every entry about a start; the catalog (units/startprof.catalog) explains it. */
#define JOURNAL_MESSAGE_ID "6f2d1c0f4b1e4a77a0c5d3a9e8b45712"

struct journal_entry {
        const char *unit, *cause, *recording;
        const char *message; /* one line, escaped by the worker; NULL when there is no worker's word */
        const char *result; /* as in the report */
        uint64_t duration_usec;
        const uint8_t *invocation_id; /* 16 bytes */
};

/* All fields borrowed. Errors of sd_journal_sendv(3). */
int journal_send(const struct journal_entry *entry);
