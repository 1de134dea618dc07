/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/procfs.h"
#include "daemon/table_store.h"
#include "symbolize/unwind_store.h"
#include "symbolize/unwind_table.h"

/* A library that every machine has, with a .eh_frame that is large enough. */
static int is_libc(const struct procfs_mapping *m, void *userdata) {
        char *path = userdata;

        if (!strstr(m->path, "/libc.so.6"))
                return 0;
        snprintf(path, 4096, "%s", m->path);
        return 1;
}

struct world {
        struct elf_image *image;
        struct unwind_table *table;
        void *stored;
        size_t bytes;
};

static int set_up(void **state) {
        _cleanup_close_ int proc = -EBADF, fd = -EBADF;
        struct world *w = calloc(1, sizeof(*w));
        char path[4096] = "";

        assert_non_null(w);
        assert_int_equal(procfs_open(&proc), 0);
        assert_int_equal(procfs_maps(proc, (uint32_t) getpid(), is_libc, path), 1);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        assert_int_equal(elf_image_new(fd, &w->image), 0);
        assert_int_equal(unwind_table_new(w->image, NULL, &w->table), 0);
        assert_int_equal(unwind_store_pack(w->table, &w->stored, &w->bytes), 0);
        *state = w;
        return 0;
}

static int tear_down(void **state) {
        struct world *w = *state;

        unwind_table_free(w->table);
        elf_image_free(w->image);
        free(w->stored);
        free(w);
        return 0;
}

static void what_is_read_is_what_was_written(void **state) {
        _cleanup_(unwind_table_freep) struct unwind_table *read = NULL;
        struct world *w = *state;

        assert_int_equal(unwind_store_unpack(w->stored, w->bytes, &read), 0);
        assert_int_equal(read->row_count, w->table->row_count);
        assert_true(read->row_count > 1000);
        assert_int_equal(read->has_signal_frames, w->table->has_signal_frames);
        for (uint64_t pc = 0; pc < w->table->pcs[w->table->row_count - 1] + 4096; pc += 3)
                assert_memory_equal(unwind_table_find(read, read->base + pc),
                                    unwind_table_find(w->table, read->base + pc),
                                    sizeof(struct unwind_rule));
        assert_memory_equal(read->pool, w->table->pool, read->pool_bytes);
}

static void an_empty_table_is_one(void **state) {
        struct unwind_rule none = { .flags = UNWIND_RULE_NONE };
        struct unwind_table empty = { .rules = &none, .rule_count = 1 };
        _cleanup_(unwind_table_freep) struct unwind_table *read = NULL;
        _cleanup_free_ void *stored = NULL;
        size_t bytes;

        assert_int_equal(unwind_store_pack(&empty, &stored, &bytes), 0);
        assert_int_equal(unwind_store_unpack(stored, bytes, &read), 0);
        assert_int_equal(unwind_table_find(read, 0x1234)->flags, UNWIND_RULE_NONE);
}

static void a_part_is_no_table(void **state) {
        struct unwind_table *read = NULL;
        struct world *w = *state;

        for (size_t bytes = 0; bytes < w->bytes; bytes += bytes < 200 ? 1 : 997)
                assert_int_equal(unwind_store_unpack(w->stored, bytes, &read), -EBADMSG);
        assert_null(read);
}

/* Changed at random it is refused, or at least leads nowhere outside of itself: a sanitizer looks on. */
static void a_changed_one_is_refused_or_harmless(void **state) {
        struct world *w = *state;
        _cleanup_free_ uint8_t *changed = malloc(w->bytes);
        unsigned refused = 0, seed = 1;

        assert_non_null(changed);
        for (unsigned i = 0; i < 400; i++) {
                struct unwind_table *read = NULL;

                memcpy(changed, w->stored, w->bytes);
                for (unsigned k = 0; k <= i % 8; k++) {
                        seed = seed * 1103515245u + 12345u;
                        changed[(seed >> 4) % (i % 2 ? 64 : w->bytes)] ^= (uint8_t) (1u << (seed >> 29));
                }
                if (unwind_store_unpack(changed, w->bytes, &read) < 0) {
                        refused++;
                        continue;
                }
                for (uint64_t pc = 0; pc < 2000000; pc += 1009) {
                        const struct unwind_rule *rule = unwind_table_find(read, read->base + pc);
                        size_t bytes;

                        if (rule->extra != 0)
                                (void) unwind_table_pool(read, rule->extra, &bytes);
                }
                unwind_table_free(read);
        }
        assert_true(refused > 100);
}

static void the_key_tells_contents_apart(void **state) {
        struct world *w = *state;
        char key[UNWIND_KEY_MAX], other[UNWIND_KEY_MAX];
        const struct elf_section *section = elf_image_section(w->image, ".eh_frame");
        _cleanup_(elf_image_freep) struct elf_image *image = NULL;
        _cleanup_free_ uint8_t *copy = NULL;
        const uint8_t *data;
        size_t bytes;

        assert_int_equal(unwind_store_key(w->image, NULL, key), 0);
        assert_true(strlen(key) > 64 && strchr(key, '-'));
        data = elf_image_data(w->image, &bytes);
        copy = malloc(bytes);
        assert_non_null(copy);
        memcpy(copy, data, bytes);
        copy[section->offset + 1000] ^= 1; /* the same build-id, as a hostile file would have it */
        assert_int_equal(elf_image_from_memory(copy, bytes, &image), 0);
        assert_int_equal(unwind_store_key(image, NULL, other), 0);
        assert_string_not_equal(key, other);
        assert_memory_equal(key, other, 41);
}

/* ---- where the daemon keeps them ---- */

static int memory_file(const char *text) {
        return fd_new_sealed("table", text, strlen(text));
}

static void tables_are_kept_by_key(void **state) {
        char directory[] = "/tmp/test_tables.XXXXXX", key[] = "ab-0000";
        _cleanup_(table_store_closep) struct table_store *s = NULL;
        _cleanup_close_ int fd = memory_file("table"), kept = -EBADF, dir = -EBADF;
        _cleanup_free_ char *text = NULL;
        size_t bytes;

        assert_non_null(mkdtemp(directory));
        dir = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_int_equal(table_store_open(directory, &s), 0);
        assert_int_equal(table_store_get(s, key), -ENOENT);
        assert_int_equal(table_store_get(s, "../x"), -EINVAL);
        assert_int_equal(table_store_put(s, "", fd), -EINVAL);
        assert_int_equal(table_store_put(s, key, STDIN_FILENO), -EINVAL);
        assert_int_equal(table_store_put(s, key, fd), 0);
        kept = table_store_get(s, key);
        assert_true(kept >= 0);
        assert_int_equal(fd_read_file(kept, 100, &text, &bytes), 0);
        assert_string_equal(text, "table");

        for (int i = 0; i < TABLES_MAX + 5; i++) {
                snprintf(key, sizeof(key), "ab-%04x", i);
                assert_int_equal(table_store_put(s, key, fd), 0);
        }
        assert_int_equal(table_store_get(s, "ab-0000"), -ENOENT);
        for (int i = 0; i < TABLES_MAX + 5; i++) {
                snprintf(key, sizeof(key), "ab-%04x", i);
                (void) unlinkat(dir, key, 0);
        }
        assert_int_equal(rmdir(directory), 0);
}

static void only_files_of_root_are_trusted(void **state) {
        char name[] = "/tmp/test_trust.XXXXXX";
        _cleanup_close_ int fd = mkstemp(name);

        assert_true(fd >= 0);
        assert_int_equal(fchmod(fd, 0666), 0);
        assert_false(table_store_trusts(fd));
        assert_int_equal(fchmod(fd, 0620), 0);
        assert_false(table_store_trusts(fd));
        assert_int_equal(fchmod(fd, 0644), 0);
        assert_int_equal(table_store_trusts(fd), getuid() == 0);
        unlink(name);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
        const struct CMUnitTest tests[] = {
                TEST(what_is_read_is_what_was_written),
                TEST(an_empty_table_is_one),
                TEST(a_part_is_no_table),
                TEST(a_changed_one_is_refused_or_harmless),
                TEST(the_key_tells_contents_apart),
                cmocka_unit_test(tables_are_kept_by_key),
                cmocka_unit_test(only_files_of_root_are_trusted),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
