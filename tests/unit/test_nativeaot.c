/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/fd.h"
#include "symbolize/name.h"
#include "symbolize/nativeaot.h"

/* Files that tests/fuzz/corpus/nativeaot.py writes: methods of 0x20 bytes from 0x14000 on, a stub at 0x15000. */
#define CORPUS "tests/fuzz/corpus/nativeaot/"

enum {
        BASE = 0x10000,
        CODE = 0x4000,
        METHOD_BYTES = 0x20,
        STUB = 0x5000,
        MODULES = 0x700,
        HEADER = 0x800,
        DATA = 0x1000, /* where its blobs begin */
        DATA_END = 0x1400,
        LANGUAGE = 0x5800,
        FRAMES = 0x5c00,
        FRAMES_END = 0x5d10,
        FILE_MAX = 1 << 16,
};

struct file {
        uint8_t *data; /* owned */
        size_t bytes;
};

static void file_done(struct file *f) {
        free(f->data);
}

static struct file read_file(const char *path) {
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
        struct file f = {};

        assert_true(fd >= 0);
        assert_int_equal(fd_read_file(fd, FILE_MAX, (char **) &f.data, &f.bytes), 0);
        return f;
}

#define _file_ _cleanup_(file_done) struct file

/* What nativeaot_new() says of a copy without a byte too much, so that a sanitizer sees reads behind it. */
static int open_bytes(const struct file *f, struct nativeaot **ret) {
        _cleanup_(elf_image_freep) struct elf_image *image = NULL;

        assert_int_equal(elf_image_from_memory(f->data, f->bytes, &image), 0);
        return nativeaot_new(image, ret);
}

static const char *name_at(const struct nativeaot *n, uint64_t vaddr) {
        struct nativeaot_method m = {};

        return nativeaot_find(n, vaddr, &m) < 0 ? "none" : m.name ?: "stub";
}

static const char *const names[] = {
        "stub",
        "A.Bé.List`1.Map<U,V>(U, V)",
        "System.Object+Part.Bytes()",
        "A.Bé.List`1.Add(T, Int32[]&, Object+Part*, List`1+Node[,,], List`1, IntPtr)",
        "A.Bé.List`1+Node.Map()",
        "Program..ctor()",
        "A.Bé.List`1..ctor()",
        "A.Bé.List`1.Get<U,V>(U, V)",
        "stub", /* a constructor, but of which type? */
        "A.Bé.List`1.Add(T, Int32[]&, Object+Part*, List`1+Node[,,], List`1, IntPtr)", /* its handler */
};

/* Refused, or no name that the file as it was does not have at this place. */
static void has_no_other_names(const struct file *f) {
        _cleanup_(nativeaot_freep) struct nativeaot *n = NULL;

        if (open_bytes(f, &n) < 0)
                return;
        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                const char *name = name_at(n, BASE + CODE + i * METHOD_BYTES);

                if (!streq(name, "stub"))
                        assert_string_equal(name, names[i]);
        }
}

static void put_u16(struct file *f, size_t at, uint16_t value) {
        memcpy(f->data + at, &value, sizeof(value));
}

static void put_u64(struct file *f, size_t at, uint64_t value) {
        memcpy(f->data + at, &value, sizeof(value));
}

static uint64_t get_u64(const struct file *f, size_t at) {
        uint64_t value;

        memcpy(&value, f->data + at, sizeof(value));
        return value;
}

/* Of the file that needs no relocation: where the row of this blob is. */
static size_t row_of(const struct file *f, uint32_t id) {
        for (size_t at = HEADER + 16; at < HEADER + 16 + 5 * 24; at += 24)
                if ((uint32_t) get_u64(f, at) == id)
                        return at;
        fail();
        return 0;
}

static void names_are_those_of_the_runtime(void **state) {
        static const char *const files[] = { CORPUS "net8", CORPUS "net9", CORPUS "net10",
                                             CORPUS "net10-fixed" };

        for (size_t f = 0; f < ARRAY_SIZE(files); f++) {
                _cleanup_(nativeaot_freep) struct nativeaot *n = NULL;
                _file_ file = read_file(files[f]);

                assert_int_equal(open_bytes(&file, &n), 0);
                for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                        uint64_t start = BASE + CODE + i * METHOD_BYTES;

                        assert_string_equal(name_at(n, start), names[i]);
                        assert_string_equal(name_at(n, start + METHOD_BYTES - 1), names[i]);
                }
        }
}

static void addresses_outside_have_none(void **state) {
        _cleanup_(nativeaot_freep) struct nativeaot *n = NULL;
        _file_ file = read_file(CORPUS "net10");

        assert_int_equal(open_bytes(&file, &n), 0);
        assert_string_equal(name_at(n, 0), "none");
        assert_string_equal(name_at(n, BASE + CODE - 1), "none");
        assert_string_equal(name_at(n, BASE + CODE + ARRAY_SIZE(names) * METHOD_BYTES), "none");
        assert_string_equal(name_at(n, UINT64_MAX), "none");
}

static void stubs_and_handlers_lead_to_their_methods(void **state) {
        _cleanup_(nativeaot_freep) struct nativeaot *n = NULL;
        _file_ file = read_file(CORPUS "net10");
        struct nativeaot_method m;

        assert_int_equal(open_bytes(&file, &n), 0);
        assert_int_equal(nativeaot_find(n, BASE + STUB, &m), 0);
        assert_string_equal(m.name, names[7]);
        assert_int_equal(m.end, BASE + STUB + 9);
        assert_int_equal(m.entry, BASE + CODE + 7 * METHOD_BYTES);

        assert_int_equal(nativeaot_find(n, BASE + CODE + 9 * METHOD_BYTES + 3, &m), 0);
        assert_int_equal(m.start, BASE + CODE + 9 * METHOD_BYTES);
        assert_int_equal(m.entry, BASE + CODE + 3 * METHOD_BYTES);
}

static void other_programs_are_none(void **state) {
        _cleanup_(nativeaot_freep) struct nativeaot *n = NULL;
        _file_ file = read_file(CORPUS "net10");
        _file_ other = read_file("tests/fuzz/corpus/elf/exec");

        assert_int_equal(open_bytes(&other, &n), -ENODATA);
        file.data[HEADER] = 'X'; /* a section of that name, but no header */
        assert_int_equal(open_bytes(&file, &n), -ENODATA);
        assert_null(n);
}

static void unknown_versions_are_refused(void **state) {
        static const uint16_t versions[][2] = { { 0, 0 },  { 8, 0 },          { 9, 0 },  { 9, 2 },
                                                { 10, 0 }, { 11, 1 },         { 16, 1 }, { 17, 0 },
                                                { 18, 3 }, { 0xffff, 0xffff } };
        _cleanup_(nativeaot_freep) struct nativeaot *n = NULL;
        _file_ file = read_file(CORPUS "net10");

        for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
                put_u16(&file, HEADER + 4, versions[i][0]);
                put_u16(&file, HEADER + 6, versions[i][1]);
                assert_int_equal(open_bytes(&file, &n), -ENOTSUP);
        }
}

static void a_version_that_is_not_the_true_one_gives_no_names(void **state) {
        _cleanup_(nativeaot_freep) struct nativeaot *n = NULL;
        _file_ older = read_file(CORPUS "net9"), newer = read_file(CORPUS "net10");

        put_u16(&older, HEADER + 4, 16);
        put_u16(&older, HEADER + 6, 0);
        assert_int_equal(open_bytes(&older, &n), -EBADMSG);
        put_u16(&newer, HEADER + 4, 10);
        put_u16(&newer, HEADER + 6, 1);
        assert_int_equal(open_bytes(&newer, &n), -EBADMSG);
}

static void a_file_without_stack_trace_data_says_so(void **state) {
        _cleanup_(nativeaot_freep) struct nativeaot *n = NULL;
        _file_ file = read_file(CORPUS "net10-fixed");
        size_t row = row_of(&file, 327);

        memset(file.data + get_u64(&file, row + 8) - BASE, 0, 4); /* the count */
        assert_int_equal(open_bytes(&file, &n), -ENOENT);
        put_u64(&file, row, 9999); /* an id of something else */
        assert_int_equal(open_bytes(&file, &n), -ENOENT);
}

static void a_count_that_lies_is_refused(void **state) {
        _cleanup_(nativeaot_freep) struct nativeaot *n = NULL;
        _file_ file = read_file(CORPUS "net10-fixed");
        size_t at = get_u64(&file, row_of(&file, 327) + 8) - BASE;

        file.data[at]++;
        assert_int_equal(open_bytes(&file, &n), -EBADMSG);
        file.data[at] -= 2;
        assert_int_equal(open_bytes(&file, &n), -EBADMSG);
}

static void a_name_for_something_that_is_no_method_is_refused(void **state) {
        _cleanup_(nativeaot_freep) struct nativeaot *n = NULL;
        _file_ file = read_file(CORPUS "net10-fixed");
        size_t end = get_u64(&file, row_of(&file, 327) + 16) - BASE;

        file.data[end - 4]++; /* of the last address: one byte behind the begin of its method */
        assert_int_equal(open_bytes(&file, &n), -EBADMSG);
        file.data[end - 4]--;
        file.data[end - 4 - 2 - 2 - 2 - 4 - 1] |= 0x40; /* an unknown command */
        assert_int_equal(open_bytes(&file, &n), -EBADMSG);
}

static void every_truncation_of_every_part_gives_no_other_names(void **state) {
        static const uint32_t parts[] = { 301, 306, 308, 313, 327 };

        for (size_t p = 0; p < ARRAY_SIZE(parts); p++) {
                _file_ file = read_file(CORPUS "net10-fixed");
                size_t row = row_of(&file, parts[p]);
                uint64_t start = get_u64(&file, row + 8), end = get_u64(&file, row + 16);

                for (uint64_t cut = start; cut < end; cut++) {
                        put_u64(&file, row + 16, cut);
                        has_no_other_names(&file);
                }
                for (uint64_t cut = start + 1; parts[p] == 327 && cut < end; cut++) {
                        _cleanup_(nativeaot_freep) struct nativeaot *n = NULL;

                        put_u64(&file, row + 16, cut);
                        assert_true(open_bytes(&file, &n) < 0);
                }
        }
}

static void sizes_that_lie_are_refused(void **state) {
        static const uint64_t ends[] = { 0, 1, UINT64_MAX, UINT64_C(1) << 63, BASE + 0x100000 };

        for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
                _cleanup_(nativeaot_freep) struct nativeaot *n = NULL;
                _file_ file = read_file(CORPUS "net10-fixed");

                put_u64(&file, row_of(&file, 313) + 16, ends[i]);
                assert_int_equal(open_bytes(&file, &n), -EBADMSG);
        }
}

/* Changes bytes of one part of the file, one at a time. Names may change with the bytes of their texts. */
static void change(size_t begin, size_t end) {
        static const uint8_t with[] = { 0x01, 0x80, 0xff };
        _file_ file = read_file(CORPUS "net10-fixed");

        for (size_t at = begin; at < end; at++)
                for (size_t i = 0; i < ARRAY_SIZE(with); i++) {
                        _cleanup_(nativeaot_freep) struct nativeaot *n = NULL;

                        file.data[at] ^= with[i];
                        if (open_bytes(&file, &n) == 0)
                                for (size_t k = 0; k < nativeaot_count(n); k++) {
                                        struct nativeaot_method m;

                                        nativeaot_get(n, k, &m);
                                        assert_true(m.start < m.end);
                                        assert_true(!m.name || strlen(m.name) > 0);
                                }
                        file.data[at] ^= with[i];
                }
}

static void every_changed_byte_is_survived(void **state) {
        change(MODULES, MODULES + 8);
        change(HEADER, HEADER + 16 + 5 * 24);
        change(DATA, DATA_END);
        change(STUB, STUB + 9);
        change(LANGUAGE, LANGUAGE + 32);
        change(FRAMES, FRAMES_END);
}

/* A type inside of itself: the first bytes of a TypeDefinition up to the type that it is nested in. */
static void types_that_lie_inside_themselves_end(void **state) {
        _file_ file = read_file(CORPUS "net10-fixed");
        uint64_t start = get_u64(&file, row_of(&file, 313) + 8) - BASE,
                 end = get_u64(&file, row_of(&file, 313) + 16) - BASE;
        size_t refused = 0;

        /* Wherever a handle of one of the records is, let it be that of the record before or behind it. */
        for (size_t at = start + 4; at + 1 < end; at++)
                for (uint16_t offset = 4; offset < end - start; offset = (uint16_t) (offset + 3)) {
                        _cleanup_(nativeaot_freep) struct nativeaot *n = NULL;
                        uint16_t before;

                        if (offset % 48 != at % 48) /* a part of all pairs is enough */
                                continue;
                        memcpy(&before, file.data + at, sizeof(before));
                        put_u16(&file, at, (uint16_t) (offset << 2 | 1));
                        refused += open_bytes(&file, &n) < 0;
                        put_u16(&file, at, before);
                }
        assert_true(refused > 0);
}

/* ---- as the module names its frames ---- */

static int give_file(void *userdata, enum worker_role role, uint32_t attempt, const char *name, int *ret_fd,
                     char path[WORKER_PATH_MAX]) {
        const struct file *f = userdata;
        int fd;

        if (role != WORKER_ROLE_FILE)
                return -ENXIO;
        fd = memfd_create("program", MFD_CLOEXEC);
        assert_true(fd >= 0);
        assert_int_equal(write(fd, f->data, f->bytes), (ssize_t) f->bytes);
        path[0] = '\0';
        *ret_fd = fd;
        return 0;
}

static struct name_module *module_of(struct file *f) {
        struct name_module *m = NULL;

        assert_int_equal(name_module_new(&(struct name_module_options){}, give_file, f, &m), 0);
        return m;
}

static void frames_are_named_from_the_file_itself(void **state) {
        _file_ file = read_file(CORPUS "net10");
        _cleanup_(name_module_freep) struct name_module *m = module_of(&file);
        struct rec_symbols ledger = {};
        struct name name;

        assert_int_equal(name_find(m, CODE + 5 * METHOD_BYTES + 7, &name), 0);
        assert_string_equal(name.text, "Program..ctor()");
        assert_int_equal(name.source, REC_SOURCE_NATIVEAOT);
        assert_int_equal(name.displacement, 7);
        (void) name_module_ledger(m, &ledger);
        assert_int_equal(ledger.source, REC_SOURCE_NATIVEAOT);
        assert_int_equal(ledger.reason, REC_REASON_NONE);

        assert_int_equal(name_find(m, CODE, &name), 0);
        assert_string_equal(name.text, "[managed stub]");
        assert_int_equal(name.source, REC_SOURCE_LABEL);
        (void) name_module_ledger(m, &ledger);
        assert_int_equal(ledger.source, REC_SOURCE_NATIVEAOT);
        assert_int_equal(ledger.reason, REC_REASON_STRIPPED); /* a debug file would name it */
}

static void the_ledger_says_why_there_are_no_names(void **state) {
        static const struct {
                size_t at;
                uint8_t with;
                enum rec_reason reason;
        } cases[] = {
                { HEADER + 4, 0x40, REC_REASON_VERSION },
                { LANGUAGE + 16 + 1 + 4, 0x11, REC_REASON_BAD_DOTNET }, /* a handler of no method */
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _file_ file = read_file(CORPUS "net10-fixed");
                _cleanup_(name_module_freep) struct name_module *m = NULL;
                struct rec_symbols ledger = {};
                struct name name;

                file.data[cases[i].at] ^= cases[i].with;
                m = module_of(&file);
                assert_int_equal(name_find(m, CODE + METHOD_BYTES, &name), 0);
                assert_null(name.text);
                assert_int_equal(name.reason, cases[i].reason);
                (void) name_module_ledger(m, &ledger);
                assert_int_equal(ledger.reason, cases[i].reason);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(names_are_those_of_the_runtime),
                cmocka_unit_test(addresses_outside_have_none),
                cmocka_unit_test(stubs_and_handlers_lead_to_their_methods),
                cmocka_unit_test(other_programs_are_none),
                cmocka_unit_test(unknown_versions_are_refused),
                cmocka_unit_test(a_version_that_is_not_the_true_one_gives_no_names),
                cmocka_unit_test(a_file_without_stack_trace_data_says_so),
                cmocka_unit_test(a_count_that_lies_is_refused),
                cmocka_unit_test(a_name_for_something_that_is_no_method_is_refused),
                cmocka_unit_test(every_truncation_of_every_part_gives_no_other_names),
                cmocka_unit_test(sizes_that_lie_are_refused),
                cmocka_unit_test(every_changed_byte_is_survived),
                cmocka_unit_test(types_that_lie_inside_themselves_end),
                cmocka_unit_test(frames_are_named_from_the_file_itself),
                cmocka_unit_test(the_ledger_says_why_there_are_no_names),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
