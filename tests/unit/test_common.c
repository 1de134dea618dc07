/* SPDX-License-Identifier: GPL-2.0-or-later */

/* The small containers and helpers of common/: buf, hash, parse, fd. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/atomic_file.h"
#include "common/fd.h"
#include "common/hash.h"
#include "common/parse.h"

/* ---- buf ---- */

static void a_buffer_is_always_a_string(void **state) {
        _cleanup_(buf_done) struct buf b = BUF_NULL;

        assert_string_equal(buf_text(&b), "");
        for (int i = 0; i < 10000; i++) {
                buf_printf(&b, "%d", i % 10);
                assert_int_equal(b.data[b.size], '\0');
        }
        assert_int_equal(b.size, 10000);
        buf_reset(&b);
        assert_string_equal(buf_text(&b), "");
}

static void an_error_sticks_until_it_is_asked_for(void **state) {
        _cleanup_(buf_done) struct buf b = BUF_NULL;
        char *data = NULL;

        buf_puts(&b, "kept");
        assert_null(buf_extend(&b, (size_t) BUF_MAX + 1));
        buf_puts(&b, "ignored");
        assert_int_equal(buf_error(&b), -EFBIG);
        assert_int_equal(buf_take(&b, &data, NULL), -EFBIG);
        assert_null(data);
}

static void what_is_taken_leaves_an_empty_buffer(void **state) {
        _cleanup_(buf_done) struct buf b = BUF_NULL;
        _cleanup_free_ char *data = NULL, *empty = NULL;
        size_t size;

        buf_append(&b, "a\0b", 3);
        assert_int_equal(buf_take(&b, &data, &size), 0);
        assert_int_equal(size, 3);
        assert_memory_equal(data, "a\0b", 4);
        assert_int_equal(b.size, 0);
        assert_int_equal(buf_take(&b, &empty, NULL), 0);
        assert_string_equal(empty, "");
}

/* ---- hash ---- */

static void a_map_keeps_what_it_was_given_while_it_grows_and_shrinks(void **state) {
        enum { N = 5000 };
        _cleanup_(hash_freep) struct hash *h = hash_new();
        uint64_t value;

        assert_non_null(h);
        for (uint32_t i = 0; i < N; i++)
                assert_int_equal(hash_put(h, &i, sizeof(i), i * 3), 1);
        for (uint32_t i = 0; i < N; i += 2)
                assert_true(hash_remove(h, &i, sizeof(i)));
        for (uint32_t i = 0; i < N; i++) {
                int r = hash_get(h, &i, sizeof(i), &value);

                assert_int_equal(r, i % 2 == 0 ? -ENOENT : 0);
                if (r == 0)
                        assert_int_equal(value, i * 3);
        }
        assert_int_equal(hash_count(h), N / 2);
}

static void interning_keeps_the_first_and_putting_the_last(void **state) {
        _cleanup_(hash_freep) struct hash *h = hash_new();
        uint64_t value = 0;

        assert_int_equal(hash_intern(h, "k", 1, 1, &value), 1);
        assert_int_equal(hash_intern(h, "k", 1, 2, &value), 0);
        assert_int_equal(value, 1);
        assert_int_equal(hash_put(h, "k", 1, 3), 0);
        assert_int_equal(hash_get(h, "k", 1, &value), 0);
        assert_int_equal(value, 3);
        assert_int_equal(hash_get(h, "kk", 2, &value), -ENOENT);
        assert_int_equal(value, 3);
}

static void every_entry_is_seen_once(void **state) {
        _cleanup_(hash_freep) struct hash *h = hash_new();
        uint64_t sum = 0, value;
        size_t position = 0, bytes;
        const void *key;

        for (uint64_t i = 1; i <= 100; i++)
                hash_put(h, &i, sizeof(i), i);
        while (hash_next(h, &position, &key, &bytes, &value)) {
                assert_int_equal(bytes, sizeof(uint64_t));
                assert_memory_equal(key, &value, sizeof(value));
                sum += value;
        }
        assert_int_equal(sum, 5050);
}

/* ---- parse ---- */

static void numbers_are_whole_or_nothing(void **state) {
        static const char *const bad[] = { "", " 1", "1 ", "+1", "-1", "0x1", "1.5", "a" };
        uint64_t n = 7;
        uint32_t small = 7;

        for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
                assert_int_equal(parse_u64(bad[i], &n), -EINVAL);
        assert_int_equal(parse_u64("18446744073709551616", &n), -ERANGE);
        assert_int_equal(n, 7);
        assert_int_equal(parse_u64("18446744073709551615", &n), 0);
        assert_true(n == UINT64_MAX);
        assert_int_equal(parse_u32("4294967296", &small), -ERANGE);
        assert_int_equal(parse_u32("4294967295", &small), 0);
        assert_true(small == UINT32_MAX);
}

static void spans_are_those_of_systemd(void **state) {
        static const struct {
                const char *text;
                uint64_t usec;
        } good[] = {
                { "5", 5 * USEC_PER_SEC },
                { "5s", 5 * USEC_PER_SEC },
                { "50ms", 50 * USEC_PER_MSEC },
                { "1.5s", 1500 * USEC_PER_MSEC },
                { "2min 3ms", 120003 * USEC_PER_MSEC },
                { "1h", 3600 * USEC_PER_SEC },
                { "infinity", UINT64_MAX },
                { "7us", 7 },
        };
        static const char *const bad[] = { "", "s", "5 apples", "-1s", "5ss", "1..5s" };
        uint64_t usec = 1;

        for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
                assert_int_equal(parse_usec(bad[i], &usec), -EINVAL);
        assert_int_equal(usec, 1);
        for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
                assert_int_equal(parse_usec(good[i].text, &usec), 0);
                assert_true(usec == good[i].usec);
        }
}

static void hex_has_the_length_that_was_asked_for(void **state) {
        uint8_t bytes[2] = { 1, 2 };

        assert_int_equal(parse_hex("abc", bytes, 2), -EINVAL);
        assert_int_equal(parse_hex("abcdef", bytes, 2), -EINVAL);
        assert_int_equal(parse_hex("abxd", bytes, 2), -EINVAL);
        assert_int_equal(bytes[0], 1);
        assert_int_equal(parse_hex("aBcD", bytes, 2), 0);
        assert_int_equal(bytes[0], 0xab);
        assert_int_equal(bytes[1], 0xcd);
}

/* ---- fd ---- */

static void sealed_memory_cannot_be_changed(void **state) {
        _cleanup_close_ int fd = fd_new_sealed("test", "hello", 5);
        int pipes[2];

        assert_true(fd >= 0);
        assert_true(fd_is_sealed(fd));
        assert_int_equal(pwrite(fd, "x", 1, 0), -1);
        assert_int_equal(ftruncate(fd, 0), -1);
        assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
        assert_false(fd_is_sealed(pipes[0]));
        close(pipes[0]);
        close(pipes[1]);
}

static void files_are_read_whole_or_refused(void **state) {
        _cleanup_close_ int fd = fd_new_sealed("test", "hello", 5);
        char *data = NULL;
        size_t bytes = 0;

        assert_int_equal(fd_read_file(fd, 4, &data, &bytes), -EFBIG);
        assert_null(data);
        assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
        assert_int_equal(fd_read_file(fd, 5, &data, &bytes), 0);
        assert_int_equal(bytes, 5);
        assert_string_equal(data, "hello");
        free(data);
}

static void a_file_is_replaced_whole_or_stays(void **state) {
        char directory[] = "/tmp/test_common.XXXXXX";
        _cleanup_close_ int dir = -EBADF;
        _cleanup_free_ char *data = NULL;
        struct stat st;
        size_t bytes;

        assert_non_null(mkdtemp(directory));
        dir = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_int_equal(write_file_atomic_at(dir, "f", "old", 3, 0600), 0);
        assert_int_equal(write_file_atomic_at(dir, "f", "newer", 5, 0640), 0);
        assert_int_equal(read_file_at(dir, "f", 100, &data, &bytes), 0);
        assert_string_equal(data, "newer");
        assert_int_equal(fstatat(dir, "f", &st, 0), 0);
        assert_int_equal(st.st_mode & 0777, 0640);

        assert_int_equal(mkdirat(dir, "taken", 0700), 0);
        assert_true(write_file_atomic_at(dir, "taken", "x", 1, 0600) < 0);
        assert_int_equal(unlinkat(dir, "taken", AT_REMOVEDIR), 0);
        assert_int_equal(unlinkat(dir, "f", 0), 0);
        assert_int_equal(rmdir(directory), 0); /* nothing half is left */
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_buffer_is_always_a_string),
                cmocka_unit_test(an_error_sticks_until_it_is_asked_for),
                cmocka_unit_test(what_is_taken_leaves_an_empty_buffer),
                cmocka_unit_test(a_map_keeps_what_it_was_given_while_it_grows_and_shrinks),
                cmocka_unit_test(interning_keeps_the_first_and_putting_the_last),
                cmocka_unit_test(every_entry_is_seen_once),
                cmocka_unit_test(numbers_are_whole_or_nothing),
                cmocka_unit_test(spans_are_those_of_systemd),
                cmocka_unit_test(hex_has_the_length_that_was_asked_for),
                cmocka_unit_test(sealed_memory_cannot_be_changed),
                cmocka_unit_test(files_are_read_whole_or_refused),
                cmocka_unit_test(a_file_is_replaced_whole_or_stays),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
