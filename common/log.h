/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "common/macro.h"

/*
 * Messages for the administrator: one line on stderr, with a <N> level prefix (sd-daemon(3)) when stderr is
 * the journal ($JOURNAL_STREAM). A function either returns its errors or logs them, never both.
 */
enum log_level {
        LOG_LEVEL_ERROR = 3,
        LOG_LEVEL_WARNING = 4,
        LOG_LEVEL_NOTICE = 5,
        LOG_LEVEL_INFO = 6,
        LOG_LEVEL_DEBUG = 7
};

void log_set_max_level(enum log_level level); /* default: info */
void log_message(enum log_level level, const char *format, ...) _printf_(2, 3);
/* "FORMAT: strerror(-error)"; returns error, to be returned. error is negative. */
int log_error_errno(int error, const char *format, ...) _printf_(2, 3);

#define log_error(...)   log_message(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_message(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_notice(...)  log_message(LOG_LEVEL_NOTICE, __VA_ARGS__)
#define log_info(...)    log_message(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...)   log_message(LOG_LEVEL_DEBUG, __VA_ARGS__)
