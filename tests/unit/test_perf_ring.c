/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "daemon/perf_ring.h"

enum { BUILD_ID_FLAG = 1 << 14, EXEC_FLAG = 1 << 13 };

/* A PERF_RECORD_MMAP2 as the kernel writes it. */
struct mmap2 {
        struct perf_event_header header;
        uint32_t pid, tid;
        uint64_t start, bytes, offset;
        uint8_t identity[24];
        uint32_t prot, flags;
        char path[16];
        uint64_t time;
};

static struct mmap2 example(uint16_t misc) {
        struct mmap2 record = {
                .header = { .type = PERF_RECORD_MMAP2, .misc = misc, .size = sizeof(record) },
                .pid = 100,
                .tid = 101,
                .start = 0x1000,
                .bytes = 0x2000,
                .offset = 0x3000,
                .path = "/usr/bin/x",
                .time = 77,
        };

        for (size_t i = 0; i < sizeof(record.identity); i++)
                record.identity[i] = (uint8_t) (i + 1);
        return record;
}

static void build_ids_are_read_where_the_ring_has_them(void **state) {
        struct mmap2 record = example(BUILD_ID_FLAG);
        struct perf_record parsed;

        record.identity[0] = 20;
        perf_record_parse(&record, sizeof(record), true, &parsed);
        assert_int_equal(parsed.kind, PERF_RING_MAP);
        assert_int_equal(parsed.map.pid, 100);
        assert_int_equal(parsed.map.time_ns, 77);
        assert_int_equal(parsed.map.start, 0x1000);
        assert_int_equal(parsed.map.bytes, 0x2000);
        assert_int_equal(parsed.map.file_offset, 0x3000);
        assert_string_equal(parsed.map.path, "/usr/bin/x");
        assert_int_equal(parsed.map.build_id_bytes, 20);
        assert_memory_equal(parsed.map.build_id, record.identity + 4, 20);
        assert_int_equal(parsed.map.inode, 0);
}

/* The flag is set by other people's events as well; such a ring holds inodes nevertheless. */
static void the_flag_means_nothing_on_a_ring_of_inodes(void **state) {
        struct mmap2 record = example(BUILD_ID_FLAG);
        struct perf_record parsed;
        uint32_t numbers[2] = { 254, 3 };
        uint64_t inode = 4711;

        memcpy(record.identity, numbers, sizeof(numbers));
        memcpy(record.identity + 8, &inode, sizeof(inode));
        perf_record_parse(&record, sizeof(record), false, &parsed);
        assert_int_equal(parsed.map.build_id_bytes, 0);
        assert_int_equal(parsed.map.inode, 4711);
        assert_int_equal(parsed.map.device, makedev(254, 3));
}

/* A file without a build-id: the record falls back to the inode. */
static void without_the_flag_it_is_an_inode(void **state) {
        struct mmap2 record = example(0);
        struct perf_record parsed;

        perf_record_parse(&record, sizeof(record), true, &parsed);
        assert_int_equal(parsed.map.build_id_bytes, 0);
        assert_int_not_equal(parsed.map.inode, 0);
}

static void a_build_id_longer_than_there_is_room_is_cut(void **state) {
        struct mmap2 record = example(BUILD_ID_FLAG);
        struct perf_record parsed;

        record.identity[0] = 255;
        perf_record_parse(&record, sizeof(record), true, &parsed);
        assert_int_equal(parsed.map.build_id_bytes, 20);
}

static void execs_are_told_and_other_names_are_not(void **state) {
        struct {
                struct perf_event_header header;
                uint32_t pid, tid;
                char comm[8];
                uint64_t time;
        } record = { .header = { PERF_RECORD_COMM, EXEC_FLAG, sizeof(record) }, .pid = 5, .time = 9 };
        struct perf_record parsed;

        perf_record_parse(&record, sizeof(record), true, &parsed);
        assert_int_equal(parsed.kind, PERF_RING_IMAGE);
        assert_int_equal(parsed.pid, 5);
        assert_int_equal(parsed.time_ns, 9);
        record.header.misc = 0; /* prctl(PR_SET_NAME) */
        perf_record_parse(&record, sizeof(record), true, &parsed);
        assert_int_equal(parsed.kind, PERF_RING_OTHER);
}

static void losses_are_told(void **state) {
        struct {
                struct perf_event_header header;
                uint64_t id, lost, time;
        } record = { { PERF_RECORD_LOST, 0, sizeof(record) }, 1, 42, 9 };
        struct perf_record parsed;

        perf_record_parse(&record, sizeof(record), true, &parsed);
        assert_int_equal(parsed.kind, PERF_RING_LOST);
        assert_int_equal(parsed.lost, 42);
}

static void every_truncation_is_within_bounds(void **state) {
        struct mmap2 record = example(0);

        for (size_t n = 0; n < sizeof(record); n++) {
                _cleanup_free_ void *copy = malloc(n + 1);
                struct perf_record parsed;

                memcpy(copy, &record, n);
                perf_record_parse(copy, n, true, &parsed);
                if (parsed.kind == PERF_RING_MAP)
                        assert_true(strlen(parsed.map.path) < n);
        }
}

static void a_path_without_an_end_is_refused(void **state) {
        struct mmap2 record = example(0);
        struct perf_record parsed;

        memset(record.path, 'x', sizeof(record.path));
        perf_record_parse(&record, sizeof(record), true, &parsed);
        assert_int_equal(parsed.kind, PERF_RING_OTHER);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(build_ids_are_read_where_the_ring_has_them),
                cmocka_unit_test(the_flag_means_nothing_on_a_ring_of_inodes),
                cmocka_unit_test(without_the_flag_it_is_an_inode),
                cmocka_unit_test(a_build_id_longer_than_there_is_room_is_cut),
                cmocka_unit_test(execs_are_told_and_other_names_are_not),
                cmocka_unit_test(losses_are_told),
                cmocka_unit_test(every_truncation_is_within_bounds),
                cmocka_unit_test(a_path_without_an_end_is_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
