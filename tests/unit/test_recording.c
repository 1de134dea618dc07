/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/macro.h"
#include "proto/recording.h"

DEFINE_CLEANUP(struct recording *, recording_free);
DEFINE_CLEANUP(struct recording_writer *, recording_writer_free);

struct bytes {
        uint8_t *data;
        size_t size;
};

#define ADD(w, type, ...) recording_writer_rows(w, type, &(__VA_ARGS__), sizeof(__VA_ARGS__), 1)

/* One process, two modules, one sample with a stack of two frames. */
static struct recording_writer *small_writer(void) {
        struct recording_writer *w = recording_writer_new(true);

        assert_non_null(w);
        ADD(w, REC_START,
            (struct rec_start){ .unit = recording_writer_text(w, "a.service"), .frequency_hz = 99 });
        ADD(w, REC_PROPERTIES,
            (struct rec_property){ .name = recording_writer_text(w, "WorkingDirectory"),
                                   .value = recording_writer_text(w, "/") });
        ADD(w, REC_PROGRAMS, (struct rec_program){ .exe = recording_writer_text(w, "/bin/a") });
        ADD(w, REC_PROCESSES, (struct rec_process){ .pid = 7, .comm = recording_writer_text(w, "a") });
        ADD(w, REC_MODULES, (struct rec_module){ .path = recording_writer_text(w, "/bin/a") });
        ADD(w, REC_MODULES, (struct rec_module){ .path = recording_writer_text(w, "/lib/libc.so.6") });
        ADD(w, REC_SAMPLES, (struct rec_sample){ .time_ns = 5, .weight_ns = 10 });
        ADD(w, REC_CALLS, (struct rec_call){ .count = 3, .syscall = 254 });
        ADD(w, REC_WAITS, (struct rec_wait){ .blocked_ns = 4, .process = REC_NONE });
        ADD(w, REC_MILESTONES, (struct rec_milestone){ .kind = REC_MILESTONE_ACTIVE, .process = REC_NONE });
        return w;
}

static struct recording_writer *stack_layer(const char *name) {
        struct recording_writer *w = recording_writer_new(false);
        const uint32_t frames[] = { 1, 0 };

        assert_non_null(w);
        ADD(w, REC_FRAMES, (struct rec_frame){ .offset = 0x10, .module = 0 });
        ADD(w, REC_FRAMES, (struct rec_frame){ .offset = 0x20, .module = 1, .how = REC_HOW_CFI });
        recording_writer_rows(w, REC_STACK_FRAMES, frames, sizeof(frames[0]), 2);
        ADD(w, REC_STACKS, (struct rec_stack){ .first = 0, .count = 2 });
        ADD(w, REC_SAMPLE_STACKS, (struct rec_sample_stack){ .sample = 0, .stack = 0 });
        ADD(w, REC_NAMES, (struct rec_name){ .frame = 0, .name = recording_writer_text(w, name) });
        return w;
}

static struct bytes finish(struct recording_writer *w, bool compress) {
        struct bytes b = {};
        void *data;

        assert_int_equal(recording_writer_finish(w, compress, &data, &b.size), 0);
        b.data = data;
        return b;
}

static struct bytes small_file(bool compress) {
        _cleanup_(recording_writer_freep) struct recording_writer *w = small_writer(),
                                                                  *layer = stack_layer("main");
        struct bytes stacks = finish(layer, compress), file;

        recording_writer_layer(w, stacks.data, stacks.size);
        file = finish(w, compress);
        free(stacks.data);
        return file;
}

static struct recording *open_ok(const struct bytes *b) {
        struct recording *r = NULL;

        assert_int_equal(recording_open(b->data, b->size, &r), 0);
        return r;
}

static void check_small(const struct recording *r) {
        assert_string_equal(recording_text(r, r->start->unit), "a.service");
        assert_string_equal(recording_property(r, "WorkingDirectory"), "/");
        assert_null(recording_property(r, "Slice"));
        assert_int_equal(r->n_processes, 1);
        assert_int_equal(r->processes[0].pid, 7);
        assert_string_equal(recording_text(r, r->modules[1].path), "/lib/libc.so.6");
        assert_int_equal(r->samples[0].stack, 0);
        assert_int_equal(r->stacks[0].count, 2);
        assert_int_equal(r->stack_frames[0], 1);
        assert_int_equal(r->frame_names[1] - r->frame_names[0], 1);
        assert_int_equal(r->frame_names[2] - r->frame_names[1], 0);
        assert_string_equal(recording_text(r, r->names[r->frame_names[0]].name), "main");
        assert_int_equal(r->calls[0].count, 3);
}

static void what_was_written_is_read_plain_and_compressed(void **state) {
        for (int compress = 0; compress < 2; compress++) {
                struct bytes b = small_file(compress);
                _cleanup_(recording_freep) struct recording *r = open_ok(&b);

                check_small(r);
                free(b.data);
        }
}

static void a_layer_has_the_last_word_on_names_and_keeps_the_rest(void **state) {
        _cleanup_(recording_writer_freep) struct recording_writer *w = recording_writer_new(false);
        _cleanup_(recording_freep) struct recording *r = NULL;
        struct bytes b = small_file(true), layer, whole;

        ADD(w, REC_NAMES,
            (struct rec_name){ .frame = 0, .name = recording_writer_text(w, "inner"), .inlined = 1 });
        ADD(w, REC_NAMES, (struct rec_name){ .frame = 0, .name = recording_writer_text(w, "better") });
        ADD(w, REC_SYMBOLS, (struct rec_symbols){ .module = 1, .source = REC_SOURCE_DEBUG_SYMTAB });
        layer = finish(w, false);
        whole = (struct bytes){ malloc(b.size + layer.size), b.size + layer.size };
        memcpy(whole.data, b.data, b.size);
        memcpy(whole.data + b.size, layer.data, layer.size);

        r = open_ok(&whole);
        assert_string_equal(recording_text(r, r->start->unit), "a.service");
        assert_int_equal(r->frame_names[1] - r->frame_names[0], 2);
        assert_string_equal(recording_text(r, r->names[r->frame_names[0]].name), "inner");
        assert_string_equal(recording_text(r, r->names[r->frame_names[0] + 1].name), "better");
        assert_int_equal(r->symbols[1].source, REC_SOURCE_DEBUG_SYMTAB);
        assert_int_equal(r->symbols[0].source, REC_SOURCE_NONE);
        free(whole.data);
        free(layer.data);
        free(b.data);
}

static void a_layer_that_spoils_the_whole_can_be_dropped(void **state) {
        _cleanup_(recording_writer_freep) struct recording_writer *w = small_writer();
        _cleanup_(recording_freep) struct recording *r = NULL;
        struct recording *none = NULL;
        struct bytes b;

        recording_writer_layer(w, "nonsense", 8);
        b = finish(w, false);
        assert_int_equal(recording_open(b.data, b.size, &none), -EBADMSG);
        free(b.data);
        recording_writer_drop_layers(w);
        b = finish(w, false);
        r = open_ok(&b);
        assert_string_equal(recording_text(r, r->start->unit), "a.service");
        free(b.data);
}

static void every_truncation_fails_or_is_a_shorter_recording(void **state) {
        struct bytes b = small_file(false);

        for (size_t cut = 0; cut < b.size; cut++) {
                uint8_t *copy = malloc(cut + 1); /* so that sanitizers see a step beyond */
                struct recording *r = NULL;

                assert_non_null(copy);
                memcpy(copy, b.data, cut);
                if (recording_open(copy, cut, &r) < 0)
                        assert_null(r);
                else
                        assert_string_equal(recording_text(r, r->start->unit), "a.service");
                recording_free(r);
                free(copy);
        }
        free(b.data);
}

static void no_single_byte_leads_out_of_bounds(void **state) {
        static const uint8_t flips[] = { 0x01, 0x80, 0xff };
        struct bytes b = small_file(false);

        for (size_t at = 0; at < b.size; at++)
                for (size_t i = 0; i < sizeof(flips); i++) {
                        struct recording *r = NULL;

                        b.data[at] ^= flips[i];
                        if (recording_open(b.data, b.size, &r) >= 0)
                                for (uint32_t s = 0; s < r->n_samples; s++)
                                        (void) strlen(
                                                recording_text(r, r->processes[r->samples[s].process].comm));
                        recording_free(r);
                        b.data[at] ^= flips[i];
                }
        free(b.data);
}

static void newer_versions_and_other_files_are_told_apart(void **state) {
        struct bytes b = small_file(false);
        struct recording *r = NULL;

        ((struct rec_file_header *) b.data)->version = RECORDING_VERSION + 1;
        assert_true(recording_magic(b.data, b.size));
        assert_int_equal(recording_open(b.data, b.size, &r), -EPROTONOSUPPORT);
        b.data[0] = 'X';
        assert_false(recording_magic(b.data, b.size));
        assert_int_equal(recording_open(b.data, b.size, &r), -EBADMSG);
        assert_null(r);
        free(b.data);
}

/* A header and sections of our own making. */
static struct bytes hand_made(const struct rec_section_header *h, const void *payload,
                              size_t payload_bytes) {
        static const struct rec_file_header file = { .magic = RECORDING_MAGIC,
                                                     .version = RECORDING_VERSION };
        struct bytes b = { calloc(1, 4096), sizeof(file) };

        assert_non_null(b.data);
        memcpy(b.data, &file, sizeof(file));
        memcpy(b.data + b.size, h, sizeof(*h));
        b.size += sizeof(*h);
        memcpy(b.data + b.size, payload, payload_bytes);
        b.size += (payload_bytes + 7) & ~(size_t) 7;
        return b;
}

static void rows_of_other_versions_are_cut_or_filled_with_zeroes(void **state) {
        uint8_t wide[sizeof(struct rec_start) + 16] = {};
        struct rec_start start = { .frequency_hz = 42, .watch_limit = 9 };
        struct rec_section_header h = { .type = REC_START };
        const size_t narrow = offsetof(struct rec_start, watch_limit);

        memcpy(wide, &start, sizeof(start));
        memset(wide + sizeof(start), 0xff, 16);
        for (int i = 0; i < 2; i++) {
                size_t bytes = i == 0 ? sizeof(wide) : narrow;
                struct bytes b;

                h.row_bytes = (uint32_t) bytes;
                h.stored_bytes = h.raw_bytes = bytes;
                b = hand_made(&h, wide, bytes);
                {
                        _cleanup_(recording_freep) struct recording *r = open_ok(&b);

                        assert_int_equal(r->start->frequency_hz, 42);
                        assert_int_equal(r->start->watch_limit, i == 0 ? 9 : 0);
                }
                free(b.data);
        }
}

static void sizes_that_lie_are_refused(void **state) {
        const struct rec_start start = {};
        const struct rec_section_header lies[] = {
                { .type = REC_START,
                  .row_bytes = 0,
                  .stored_bytes = sizeof(start),
                  .raw_bytes = sizeof(start) },
                { .type = REC_START,
                  .row_bytes = sizeof(start),
                  .stored_bytes = UINT64_MAX,
                  .raw_bytes = sizeof(start) },
                { .type = REC_START,
                  .row_bytes = sizeof(start),
                  .stored_bytes = sizeof(start),
                  .raw_bytes = 2 * sizeof(start) },
                { .type = REC_START,
                  .flags = REC_SECTION_ZSTD,
                  .row_bytes = sizeof(start),
                  .stored_bytes = sizeof(start),
                  .raw_bytes = (uint64_t) sizeof(start) << 50 },
                { .type = REC_START,
                  .flags = 0x80,
                  .row_bytes = sizeof(start),
                  .stored_bytes = sizeof(start),
                  .raw_bytes = sizeof(start) },
                { .type = REC_STRINGS, .row_bytes = 1, .stored_bytes = 3, .raw_bytes = 3 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(lies); i++) {
                struct bytes b = hand_made(&lies[i], &start, sizeof(start));
                struct recording *r = NULL;

                if (lies[i].type == REC_STRINGS)
                        b.data[sizeof(struct rec_file_header) + sizeof(struct rec_section_header)] = 'x';
                assert_int_equal(recording_open(b.data, b.size, &r), -EBADMSG);
                assert_null(r);
                free(b.data);
        }
}

/* Rows of one byte each, which become rows of ours: each section for itself would just fit into memory. */
static void rows_that_grow_are_limited_together(void **state) {
        const size_t count = RECORDING_SIZE_MAX / sizeof(struct rec_module);
        const struct rec_start start = {};
        const struct rec_section_header first = { .type = REC_START,
                                                  .row_bytes = sizeof(start),
                                                  .stored_bytes = sizeof(start),
                                                  .raw_bytes = sizeof(start) };
        const struct rec_section_header second = {
                .type = REC_MODULES, .row_bytes = 1, .stored_bytes = count, .raw_bytes = count
        };
        struct bytes b = hand_made(&first, &start, sizeof(start));
        uint8_t *file = calloc(1, b.size + sizeof(second) + count);
        struct recording *r = NULL;

        assert_non_null(file);
        memcpy(file, b.data, b.size);
        memcpy(file + b.size, &second, sizeof(second));
        assert_int_equal(recording_open(file, b.size + sizeof(second) + count, &r), -EBADMSG);
        assert_null(r);
        free(file);
        free(b.data);
}

static void expect_refused(enum rec_section type, const void *row, size_t row_bytes) {
        _cleanup_(recording_writer_freep) struct recording_writer *w = small_writer(),
                                                                  *layer = stack_layer("main");
        struct bytes stacks = finish(layer, false), b;
        struct recording *r = NULL;

        recording_writer_rows(layer, type, row, row_bytes, 1);
        free(stacks.data);
        stacks = finish(layer, false);
        recording_writer_layer(w, stacks.data, stacks.size);
        b = finish(w, false);
        assert_int_equal(recording_open(b.data, b.size, &r), -EBADMSG);
        free(stacks.data);
        free(b.data);
}

#define REFUSE(type, ...) expect_refused(type, &(__VA_ARGS__), sizeof(__VA_ARGS__))

static void every_index_out_of_range_is_refused(void **state) {
        REFUSE(REC_PROCESSES, (struct rec_process){ .program = 1 });
        REFUSE(REC_PROCESSES, (struct rec_process){ .comm = 1000 });
        REFUSE(REC_SAMPLES, (struct rec_sample){ .process = 1 });
        REFUSE(REC_SAMPLES, (struct rec_sample){ .kind = REC_SAMPLE_MAX });
        REFUSE(REC_CALLS, (struct rec_call){ .program = 1 });
        REFUSE(REC_WAITS, (struct rec_wait){ .process = 1 });
        REFUSE(REC_PATHS, (struct rec_path){ .process = 1 });
        REFUSE(REC_DIRS, (struct rec_dir){ .program = 1 });
        REFUSE(REC_MILESTONES, (struct rec_milestone){ .process = 1 });
        REFUSE(REC_MODULES, (struct rec_module){ .build_id_bytes = 21 });
        REFUSE(REC_FRAMES, (struct rec_frame){ .module = 2 });
        REFUSE(REC_STACKS, (struct rec_stack){ .first = 1, .count = 2 });
        REFUSE(REC_STACKS, (struct rec_stack){ .first = UINT32_MAX, .count = 2 });
        REFUSE(REC_SAMPLE_STACKS, (struct rec_sample_stack){ .stack = 1 });
        REFUSE(REC_SAMPLE_STACKS, (struct rec_sample_stack){ .sample = 1 });
        REFUSE(REC_NAMES, (struct rec_name){ .frame = 2 });
        REFUSE(REC_SYMBOLS, (struct rec_symbols){ .module = 2 });
        REFUSE(REC_START, (struct rec_start){}); /* a second one */
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_was_written_is_read_plain_and_compressed),
                cmocka_unit_test(a_layer_has_the_last_word_on_names_and_keeps_the_rest),
                cmocka_unit_test(a_layer_that_spoils_the_whole_can_be_dropped),
                cmocka_unit_test(every_truncation_fails_or_is_a_shorter_recording),
                cmocka_unit_test(no_single_byte_leads_out_of_bounds),
                cmocka_unit_test(newer_versions_and_other_files_are_told_apart),
                cmocka_unit_test(rows_of_other_versions_are_cut_or_filled_with_zeroes),
                cmocka_unit_test(sizes_that_lie_are_refused),
                cmocka_unit_test(rows_that_grow_are_limited_together),
                cmocka_unit_test(every_index_out_of_range_is_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
