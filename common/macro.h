/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Small things that every file uses: cleanup attributes, array and string helpers. */

#define _cleanup_(f)     __attribute__((cleanup(f)))
#define _printf_(a, b)   __attribute__((format(printf, a, b)))
#define _unused_         __attribute__((unused))
#define _cleanup_free_   _cleanup_(macro_freep)
#define _cleanup_close_  _cleanup_(macro_closep)
#define _cleanup_fclose_ _cleanup_(macro_fclosep)

/* Defines `static void FUNCp(TYPE *p)` for _cleanup_(FUNCp); FUNC takes NULL. */
#define DEFINE_CLEANUP(type, func)                                                                          \
        static inline _unused_ void func##p(type *p) {                                                      \
                if (*p)                                                                                     \
                        func(*p);                                                                           \
        }

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define MIN(a, b)                                                                                           \
        ({                                                                                                  \
                __auto_type _min_a = (a);                                                                   \
                __auto_type _min_b = (b);                                                                   \
                _min_a < _min_b ? _min_a : _min_b;                                                          \
        })
#define MAX(a, b)                                                                                           \
        ({                                                                                                  \
                __auto_type _max_a = (a);                                                                   \
                __auto_type _max_b = (b);                                                                   \
                _max_a > _max_b ? _max_a : _max_b;                                                          \
        })

/* Gives up ownership: the value, and the variable becomes NULL / -EBADF. */
#define TAKE_PTR(p)                                                                                         \
        ({                                                                                                  \
                __auto_type _taken = (p);                                                                   \
                (p) = NULL;                                                                                 \
                _taken;                                                                                     \
        })
#define TAKE_FD(fd)                                                                                         \
        ({                                                                                                  \
                int _taken = (fd);                                                                          \
                (fd) = -EBADF;                                                                              \
                _taken;                                                                                     \
        })

#define NSEC_PER_USEC UINT64_C(1000)
#define NSEC_PER_MSEC UINT64_C(1000000)
#define NSEC_PER_SEC  UINT64_C(1000000000)
#define USEC_PER_MSEC UINT64_C(1000)
#define USEC_PER_SEC  UINT64_C(1000000)

static inline int streq(const char *a, const char *b) {
        return strcmp(a, b) == 0;
}

/* The text behind the prefix, NULL when s does not begin with it. */
static inline const char *startswith(const char *s, const char *prefix) {
        size_t n = strlen(prefix);

        return strncmp(s, prefix, n) == 0 ? s + n : NULL;
}

/* The suffix inside s, NULL when s does not end with it. */
static inline const char *endswith(const char *s, const char *suffix) {
        size_t s_len = strlen(s), suffix_len = strlen(suffix);

        return s_len >= suffix_len && streq(s + s_len - suffix_len, suffix) ? s + s_len - suffix_len : NULL;
}

void macro_freep(void *p);
void macro_closep(int *fd); /* negative: nothing */
void macro_fclosep(void *f);
