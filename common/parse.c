/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/parse.h"

#include <stdbool.h>

#include "common/macro.h"

static bool is_digit(char c) {
        return c >= '0' && c <= '9';
}

/* Digits from *p on; *p is behind them afterwards. -EINVAL: none there. */
static int take_digits(const char **p, uint64_t *ret) {
        const char *s = *p;
        uint64_t n = 0;

        if (!is_digit(*s))
                return -EINVAL;
        for (; is_digit(*s); s++)
                if (__builtin_mul_overflow(n, UINT64_C(10), &n) ||
                    __builtin_add_overflow(n, (uint64_t) (*s - '0'), &n))
                        return -ERANGE;
        *p = s;
        *ret = n;
        return 0;
}

int parse_u64(const char *text, uint64_t *ret) {
        uint64_t n;
        int r = take_digits(&text, &n);

        /* What follows the digits decides first: "99999999999999999999x" is no number at all. */
        if (r == -ERANGE)
                return text[strspn(text, "0123456789")] == '\0' ? -ERANGE : -EINVAL;
        if (r < 0)
                return r;
        if (*text != '\0')
                return -EINVAL;
        *ret = n;
        return 0;
}

int parse_u32(const char *text, uint32_t *ret) {
        uint64_t n;
        int r = parse_u64(text, &n);

        if (r < 0)
                return r;
        if (n > UINT32_MAX)
                return -ERANGE;
        *ret = (uint32_t) n;
        return 0;
}

/* Months and years as systemd.time(7) counts them: 30.44 and 365.25 days. */
static const struct {
        const char *name;
        uint64_t usec;
} units[] = {
        { "us", 1 },
        { "usec", 1 },
        { "\xc2\xb5s", 1 }, /* µs */
        { "\xce\xbcs", 1 }, /* μs */
        { "ms", USEC_PER_MSEC },
        { "msec", USEC_PER_MSEC },
        { "s", USEC_PER_SEC },
        { "sec", USEC_PER_SEC },
        { "second", USEC_PER_SEC },
        { "seconds", USEC_PER_SEC },
        { "m", 60 * USEC_PER_SEC },
        { "min", 60 * USEC_PER_SEC },
        { "minute", 60 * USEC_PER_SEC },
        { "minutes", 60 * USEC_PER_SEC },
        { "h", 3600 * USEC_PER_SEC },
        { "hr", 3600 * USEC_PER_SEC },
        { "hour", 3600 * USEC_PER_SEC },
        { "hours", 3600 * USEC_PER_SEC },
        { "d", 86400 * USEC_PER_SEC },
        { "day", 86400 * USEC_PER_SEC },
        { "days", 86400 * USEC_PER_SEC },
        { "w", 7 * 86400 * USEC_PER_SEC },
        { "week", 7 * 86400 * USEC_PER_SEC },
        { "weeks", 7 * 86400 * USEC_PER_SEC },
        { "M", 2629800 * USEC_PER_SEC },
        { "month", 2629800 * USEC_PER_SEC },
        { "months", 2629800 * USEC_PER_SEC },
        { "y", 31557600 * USEC_PER_SEC },
        { "year", 31557600 * USEC_PER_SEC },
        { "years", 31557600 * USEC_PER_SEC },
};

static const char *skip_space(const char *s) {
        return s + strspn(s, " \t\n\r");
}

/* The unit at *p, seconds when there is none. */
static int take_unit(const char **p, uint64_t *ret) {
        size_t n = strcspn(*p, " \t\n\r0123456789.");

        if (n == 0) {
                *ret = USEC_PER_SEC;
                return **p == '.' ? -EINVAL : 0;
        }
        for (size_t i = 0; i < ARRAY_SIZE(units); i++)
                if (strlen(units[i].name) == n && memcmp(units[i].name, *p, n) == 0) {
                        *p += n;
                        *ret = units[i].usec;
                        return 0;
                }
        return -EINVAL;
}

/* ".5" of a unit. Digits below a microsecond are read and dropped. */
static int take_fraction(const char **p, const char **ret_digits, size_t *ret_n) {
        const char *digits;
        size_t n;

        *ret_n = 0;
        if (**p != '.')
                return 0;
        digits = *p + 1;
        n = strspn(digits, "0123456789");
        if (n == 0)
                return -EINVAL;
        *p = digits + n;
        *ret_digits = digits;
        *ret_n = n;
        return 0;
}

/* One "1.5min" at *p. */
static int take_part(const char **p, uint64_t *ret) {
        const char *digits = NULL;
        uint64_t n, unit, scale;
        size_t n_digits;
        int r;

        r = take_digits(p, &n);
        if (r < 0)
                return r;
        r = take_fraction(p, &digits, &n_digits);
        if (r < 0)
                return r;
        *p = skip_space(*p);
        r = take_unit(p, &unit);
        if (r < 0)
                return r;

        if (__builtin_mul_overflow(n, unit, &n))
                return -ERANGE;
        scale = unit;
        for (size_t i = 0; i < n_digits && scale > 0; i++) {
                scale /= 10;
                if (__builtin_add_overflow(n, scale * (uint64_t) (digits[i] - '0'), &n))
                        return -ERANGE;
        }
        *ret = n;
        return 0;
}

int parse_usec(const char *text, uint64_t *ret) {
        uint64_t sum = 0;
        const char *p = skip_space(text), *infinity;

        infinity = startswith(p, "infinity");
        if (infinity && *skip_space(infinity) == '\0') {
                *ret = UINT64_MAX;
                return 0;
        }
        do {
                uint64_t part;
                int r = take_part(&p, &part);

                if (r < 0)
                        return r;
                if (__builtin_add_overflow(sum, part, &sum))
                        return -ERANGE;
                p = skip_space(p);
        } while (*p != '\0');

        if (sum == UINT64_MAX)
                return -ERANGE; /* that number means "infinity" */
        *ret = sum;
        return 0;
}

static int hex_digit(char c) {
        if (is_digit(c))
                return c - '0';
        if (c >= 'a' && c <= 'f')
                return c - 'a' + 10;
        if (c >= 'A' && c <= 'F')
                return c - 'A' + 10;
        return -EINVAL;
}

int parse_hex(const char *text, uint8_t *ret, size_t bytes) {
        if (strlen(text) != 2 * bytes)
                return -EINVAL;
        for (size_t i = 0; i < 2 * bytes; i++)
                if (hex_digit(text[i]) < 0)
                        return -EINVAL;

        for (size_t i = 0; i < bytes; i++)
                ret[i] = (uint8_t) ((unsigned) hex_digit(text[2 * i]) << 4 |
                                    (unsigned) hex_digit(text[2 * i + 1]));
        return 0;
}
