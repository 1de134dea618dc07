/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "worker/modules.h"

#include <errno.h>
#include <stdlib.h>

#include "common/fd.h"
#include "worker/debug_index.h"
#include "symbolize/unwind_store.h"

enum { FIRST_MODULES = 64 };

struct slot {
        struct module module;
        struct name_module_options options;
        bool loaded;
        struct code_names *code; /* owned */
        bool code_asked;
};

struct modules {
        struct channel *channel; /* borrowed */
        struct slot *slots; /* owned */
        uint32_t count, allocated;
        struct debug_index *index; /* owned; of the user's directories */
};

struct asker {
        struct modules *modules;
        struct channel *channel;
        uint32_t module;
};

struct modules *modules_new(struct channel *channel) {
        struct modules *m = calloc(1, sizeof(*m));

        if (m)
                m->channel = channel;
        return m;
}

struct modules *modules_free(struct modules *m) {
        if (!m)
                return NULL;

        for (uint32_t i = 0; i < m->count; i++) {
                unwind_table_free(m->slots[i].module.table);
                name_module_free(m->slots[i].module.names);
                code_names_free(m->slots[i].code);
        }
        debug_index_free(m->index);
        free(m->slots);
        free(m);
        return NULL;
}

uint32_t modules_count(const struct modules *m) {
        return m->count;
}

int modules_add(struct modules *m, const struct name_module_options *options) {
        if (m->count == MODULES_MAX)
                return -ERANGE;
        if (m->count == m->allocated) {
                uint32_t allocated = MAX(m->allocated * 2, (uint32_t) FIRST_MODULES);
                struct slot *slots = reallocarray(m->slots, allocated, sizeof(*slots));

                if (!slots)
                        return -ENOMEM;
                m->slots = slots;
                m->allocated = allocated;
        }

        m->slots[m->count++] = (struct slot){ .options = *options };
        return 0;
}

/* The directories are read once for all modules, at the first question. */
static int ask_directories(const struct asker *asker, uint32_t attempt, const char *build_id, int *ret_fd,
                           char path[static WORKER_PATH_MAX]) {
        struct modules *m = asker->modules;
        uint32_t number = 0;
        int r = 0;

        if (attempt > 0)
                return -ENXIO;
        if (!m->index)
                r = debug_index_new(asker->channel, asker->module, &m->index);
        if (r == 0)
                r = debug_index_find(m->index, build_id, &number);
        return r < 0 ? r
                     : channel_ask_file(asker->channel, asker->module, WORKER_ROLE_DEBUG_DIRECTORY, number,
                                        "", ret_fd, path);
}

static int ask(void *userdata, enum worker_role role, uint32_t attempt, const char *name, int *ret_fd,
               char path[static WORKER_PATH_MAX]) {
        const struct asker *asker = userdata;

        if (role == WORKER_ROLE_DEBUG_DIRECTORY)
                return ask_directories(asker, attempt, name, ret_fd, path);
        return channel_ask_file(asker->channel, asker->module, role, attempt, name, ret_fd, path);
}

static int read_table(const struct asker *asker, const char *key, struct unwind_table **ret) {
        char path[WORKER_PATH_MAX];
        _cleanup_close_ int fd = -EBADF;
        _cleanup_free_ char *data = NULL;
        size_t bytes;
        int r;

        r = channel_ask_file(asker->channel, asker->module, WORKER_ROLE_TABLE, 0, key, &fd, path);
        if (r >= 0)
                r = fd_read_file(fd, UNWIND_STORED_MAX, &data, &bytes);
        return r < 0 ? r : unwind_store_unpack(data, bytes, ret);
}

static void give_table(const struct asker *asker, const char *key, const struct unwind_table *table) {
        _cleanup_close_ int fd = -EBADF;
        _cleanup_free_ void *data = NULL;
        size_t bytes;

        if (unwind_store_pack(table, &data, &bytes) < 0)
                return;
        fd = fd_new_sealed("startprof-table", data, bytes);
        if (fd >= 0)
                (void) channel_give_table(asker->channel, asker->module, key, fd);
}

static void find_table(const struct asker *asker, const struct elf_image *image,
                       const struct elf_image *debug, struct unwind_table **ret) {
        char key[UNWIND_KEY_MAX];
        bool keyed = unwind_store_key(image, debug, key) == 0;

        if (keyed && read_table(asker, key, ret) == 0)
                return;
        if (unwind_table_new(image, debug, ret) == 0 && keyed)
                give_table(asker, key, *ret);
}

/* CFI that is broken is no CFI: the unwinder goes by frame pointers there, and says so. */
static void load(struct modules *m, uint32_t index) {
        struct slot *slot = &m->slots[index];
        struct asker asker = { .modules = m, .channel = m->channel, .module = index };
        struct module *module = &slot->module;

        slot->loaded = true;
        if (name_module_new(&slot->options, ask, &asker, &module->names) < 0 ||
            !name_module_image(module->names))
                return;
        find_table(&asker, name_module_image(module->names), name_module_debug(module->names),
                   &module->table);
}

/* A map that cannot be read is none: its functions have no names. */
static void load_code(struct modules *m, uint32_t index) {
        struct slot *slot = &m->slots[index];
        struct asker asker = { .modules = m, .channel = m->channel, .module = index };
        char path[WORKER_PATH_MAX] = "";
        _cleanup_close_ int fd = -EBADF;

        slot->code_asked = true;
        if (slot->options.kind == REC_MODULE_ANONYMOUS &&
            ask(&asker, WORKER_ROLE_PERF_MAP, 0, "", &fd, path) == 0)
                (void) code_names_new(fd, path, &slot->code);
}

struct code_names *modules_code(struct modules *m, uint32_t index) {
        if (!m->slots[index].code_asked)
                load_code(m, index);
        return m->slots[index].code;
}

const struct module *modules_get(struct modules *m, uint32_t index) {
        if (!m->slots[index].loaded)
                load(m, index);
        return &m->slots[index].module;
}

int modules_lines(struct modules *m, uint32_t index, uint64_t offset, const struct name_line **ret,
                  size_t *ret_count) {
        const struct module *module = modules_get(m, index);
        struct asker asker = { .modules = m, .channel = m->channel, .module = index };

        *ret_count = 0;
        if (!module->names)
                return 0;
        return name_find_lines(module->names, offset,
                               &(struct dwarf_companions){ .ask = ask, .userdata = &asker }, ret, ret_count);
}
