/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolize/name.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/fd.h"
#include "symbolize/demangle.h"
#include "symbolize/demangle_outline.h"
#include "symbolize/dotnet_code.h"
#include "symbolize/kallsyms.h"
#include "symbolize/mini_debuginfo.h"
#include "symbolize/nativeaot.h"
#include "symbolize/plt.h"
#include "symbolize/symbols.h"

enum { RAW_NAME_MAX = DEMANGLE_OUTPUT_MAX };

struct name_module {
        struct name_module_options options;
        enum rec_reason reason; /* why nothing can be named; or NONE */
        bool debug_stale; /* a debug file of another build was found */
        char debug_path[WORKER_PATH_MAX];

        /* owned; symbols are read when the first name is asked for */
        struct elf_image *image, *debug;
        struct symbols *symbols, *debug_symbols;
        struct mini_debuginfo *mini;
        struct symbols *mini_symbols;
        struct name_lines *lines;
        struct kallsyms *kernel;
        struct dotnet_code dotnet;
        struct nativeaot *methods;
        enum rec_reason no_methods; /* why a .NET file has none; or NONE */
        char *text; /* of the last name */

        /* what was found so far */
        enum rec_source best;
        enum rec_reason missing;
};

static int quality(uint32_t source) {
        switch (source) {
        case REC_SOURCE_NONE: return 0;
        case REC_SOURCE_LABEL: return 1;
        case REC_SOURCE_DYNSYM: return 2;
        default: return 3;
        }
}

bool name_source_better(uint32_t a, uint32_t b) {
        return quality(a) > quality(b);
}

/* Assemblies of .NET are Windows executables everywhere; their code may be mapped and run as it is. */
static bool is_assembly(int fd) {
        char magic[2];

        return fd_pread_full(fd, magic, sizeof(magic), 0) == sizeof(magic) &&
               memcmp(magic, "MZ", sizeof(magic)) == 0;
}

static int open_image(struct name_module *m, debug_file_ask_fn ask, void *userdata) {
        _cleanup_close_ int fd = -EBADF;
        char path[WORKER_PATH_MAX];
        int r;

        r = ask(userdata, WORKER_ROLE_FILE, 0, "", &fd, path);
        if (r < 0)
                return r;
        r = elf_image_new(fd, &m->image);
        return r == -EBADMSG && is_assembly(fd) ? -ENOEXEC : r;
}

static enum rec_reason reason_of(int error) {
        switch (error) {
        case 0: return REC_REASON_NONE;
        case -EBADMSG: return REC_REASON_BAD_ELF;
        case -ENOEXEC: return REC_REASON_PRECOMPILED;
        case -EFBIG:
        case -ENOMEM: return REC_REASON_LIMIT;
        default: return REC_REASON_NO_FILE;
        }
}

/* The "file" of the kernel is its own list of names: without addresses for those who may not see them, empty where
 * it is masked. */
static enum rec_reason read_kernel(struct name_module *m, debug_file_ask_fn ask, void *userdata) {
        _cleanup_free_ char *text = NULL;
        _cleanup_close_ int fd = -EBADF;
        char path[WORKER_PATH_MAX];
        size_t bytes = 0;
        int r;

        r = ask(userdata, WORKER_ROLE_FILE, 0, "", &fd, path);
        if (r == 0)
                r = fd_read_file(fd, KALLSYMS_BYTES_MAX, &text, &bytes);
        if (r < 0)
                return reason_of(r);
        r = kallsyms_new(text, bytes, &m->kernel);
        return r == -EACCES || r == -ENODATA ? REC_REASON_HIDDEN : reason_of(r);
}

/* Is the file the one that was mapped? While the process lives its own descriptor says so, and the build-id
 * only confirms it. */
static bool is_recorded_file(const struct name_module *m) {
        struct build_id id = BUILD_ID_NULL;

        (void) elf_image_build_id(m->image, &id);
        if (m->options.build_id.size > 0)
                return build_id_equal(&m->options.build_id, &id);
        return !m->options.elsewhere;
}

static bool has_symtab(const struct elf_image *image) {
        const struct elf_section *section = image ? elf_image_section(image, ".symtab") : NULL;

        return section && section->data;
}

static int find_debug_file(struct name_module *m, debug_file_ask_fn ask, void *userdata) {
        int r;

        if ((has_symtab(m->image) && name_lines_in(m->image)) || m->options.kind == REC_MODULE_VDSO)
                return 0;

        r = debug_file_find(m->image, ask, userdata, &m->debug, m->debug_path);
        m->debug_stale = r == -ESTALE;
        return r == -ENOMEM ? r : 0;
}

int name_module_new(const struct name_module_options *options, debug_file_ask_fn ask, void *userdata,
                    struct name_module **ret) {
        _cleanup_(name_module_freep) struct name_module *m = NULL;
        int r;

        m = calloc(1, sizeof(*m));
        if (!m)
                return -ENOMEM;
        m->options = *options;

        if (options->kind == REC_MODULE_ANONYMOUS)
                m->reason = REC_REASON_JIT;
        else if (options->kind == REC_MODULE_KERNEL)
                m->reason = read_kernel(m, ask, userdata);
        else
                m->reason = reason_of(open_image(m, ask, userdata));
        if (m->image && !is_recorded_file(m)) {
                m->image = elf_image_free(m->image);
                m->reason = REC_REASON_MISMATCH;
        }
        if (m->image) {
                r = find_debug_file(m, ask, userdata);
                if (r < 0)
                        return r;
        }

        *ret = TAKE_PTR(m);
        return 0;
}

struct name_module *name_module_free(struct name_module *m) {
        if (!m)
                return NULL;

        symbols_free(m->symbols);
        symbols_free(m->debug_symbols);
        symbols_free(m->mini_symbols);
        mini_debuginfo_free(m->mini);
        name_lines_free(m->lines);
        elf_image_free(m->image);
        elf_image_free(m->debug);
        kallsyms_free(m->kernel);
        nativeaot_free(m->methods);
        free(m->text);
        free(m);
        return NULL;
}

const struct elf_image *name_module_image(const struct name_module *m) {
        return m->image;
}

const struct elf_image *name_module_debug(const struct name_module *m) {
        return m->debug;
}

/* Only where there is no symbol table: it holds a part of one. What cannot be read is as good as not there. */
static int read_mini(struct name_module *m) {
        int r;

        if (has_symtab(m->image) || has_symtab(m->debug))
                return 0;
        r = mini_debuginfo_new(m->image, &m->mini);
        r = r ?: symbols_new(mini_debuginfo_image(m->mini), &m->mini_symbols);
        return r == -ENOMEM ? r : 0;
}

/* What a .NET file says of itself; its symbols and its debug file may still name what that does not. */
static void read_methods(struct name_module *m) {
        switch (nativeaot_new(m->image, &m->methods)) {
        case 0:
        case -ENODATA: break;
        case -ENOTSUP: m->no_methods = REC_REASON_VERSION; break;
        case -ENOENT: m->no_methods = REC_REASON_NO_STACK_DATA; break;
        case -EBADMSG: m->no_methods = REC_REASON_BAD_DOTNET; break;
        default: m->no_methods = REC_REASON_LIMIT; break;
        }
}

/* A table that does not fit into the worker's memory costs this module its names, no other. */
static void read_symbols(struct name_module *m) {
        int r;

        if (m->symbols)
                return;
        r = symbols_new(m->image, &m->symbols);
        if (r == 0 && m->debug)
                r = symbols_new(m->debug, &m->debug_symbols);
        r = r ?: read_mini(m);
        if (r == 0)
                dotnet_code_init(has_symtab(m->debug) ? m->debug : m->image, &m->dotnet);
        if (r == 0 && m->options.kind != REC_MODULE_VDSO)
                read_methods(m);
        m->reason = reason_of(r);
}

/* The debug file knows every function, the file itself maybe only its exports. */
static int find_symbol(const struct name_module *m, uint64_t vaddr, struct symbol *ret) {
        struct symbol symbol;
        int r;

        if (m->debug_symbols && symbols_find(m->debug_symbols, vaddr, &symbol) == 0 &&
            symbol.source == REC_SOURCE_SYMTAB) {
                symbol.source = REC_SOURCE_DEBUG_SYMTAB;
                *ret = symbol;
                return 0;
        }
        if (m->mini_symbols && symbols_find(m->mini_symbols, vaddr, &symbol) == 0) {
                symbol.source = REC_SOURCE_MINIDEBUG;
                *ret = symbol;
                return 0;
        }
        r = symbols_find(m->symbols, vaddr, ret);
        if (r == 0 && m->options.kind == REC_MODULE_VDSO)
                ret->source = REC_SOURCE_VDSO;
        return r;
}

/* Demangled, or as it is without the version that .symtab carries behind an "@". */
static int readable(const struct name_module *m, uint64_t vaddr, const char *raw, char **ret) {
        int r;

        if (dotnet_code_is_method(&m->dotnet, vaddr, raw))
                r = demangle_dotnet(
                        &(struct dotnet_symbol){ .linkage = raw, .assembly = m->dotnet.assembly }, ret);
        else
                r = demangle(raw, ret);
        if (r == -E2BIG)
                r = demangle_outline(raw, ret);
        if (r != -ENOENT && r != -E2BIG)
                return r;
        *ret = strndup(raw, MIN(strcspn(raw, "@"), (size_t) RAW_NAME_MAX));
        return *ret ? 0 : -ENOMEM;
}

static enum rec_reason reason_without_symbol(const struct name_module *m) {
        if (has_symtab(m->image) || has_symtab(m->debug))
                return REC_REASON_NO_SYMBOL;
        if (m->no_methods != REC_REASON_NONE)
                return m->no_methods;
        return m->debug_stale ? REC_REASON_MISMATCH : REC_REASON_STRIPPED;
}

static void no_name(struct name_module *m, enum rec_reason reason, struct name *ret) {
        m->missing = reason;
        *ret = (struct name){ .reason = reason };
}

static void find_in_kernel(struct name_module *m, uint64_t address, struct name *ret) {
        struct kallsyms_symbol symbol;

        if (kallsyms_find(m->kernel, address, &symbol) < 0) {
                no_name(m, REC_REASON_NO_SYMBOL, ret);
                return;
        }
        m->best = REC_SOURCE_KALLSYMS;
        *ret = (struct name){ .text = symbol.name,
                              .source = REC_SOURCE_KALLSYMS,
                              .displacement = address - symbol.start };
}

/* Code that no table of symbols knows: what the .NET compiler made for itself has no name, but a kind. */
static void find_nothing(struct name_module *m, uint64_t vaddr, struct name *ret) {
        struct nativeaot_method method;

        no_name(m, reason_without_symbol(m), ret);
        if (m->methods && nativeaot_find(m->methods, vaddr, &method) == 0)
                *ret = (struct name){
                        .text = "[managed stub]",
                        .source = REC_SOURCE_LABEL,
                        .displacement = vaddr - method.start,
                };
}

static bool find_method(struct name_module *m, uint64_t vaddr, struct name *ret) {
        struct nativeaot_method method;

        if (!m->methods || nativeaot_find(m->methods, vaddr, &method) < 0 || !method.name)
                return false;
        m->best = REC_SOURCE_NATIVEAOT;
        *ret = (struct name){
                .text = method.name,
                .source = REC_SOURCE_NATIVEAOT,
                .displacement = vaddr - method.start,
        };
        return true;
}

/* "clock_gettime@plt", as disassemblers call it. 1: it is one; 0: not; -ENOMEM. */
static int find_stub(struct name_module *m, uint64_t vaddr, struct name *ret) {
        _cleanup_free_ char *function = NULL;
        char *text;
        const char *raw;
        uint64_t start;
        int r;

        if (plt_find(m->image, vaddr, &raw, &start) < 0)
                return 0;
        r = readable(m, vaddr, raw, &function);
        if (r < 0)
                return r;
        if (asprintf(&text, "%s@plt", function) < 0)
                return -ENOMEM;
        free(m->text);
        m->text = text;
        *ret = (struct name){ .text = text, .source = REC_SOURCE_DYNSYM, .displacement = vaddr - start };
        return 1;
}

int name_find(struct name_module *m, uint64_t offset, struct name *ret) {
        struct symbol symbol;
        char *text;
        uint64_t vaddr;
        int r;

        if (m->image && m->reason == REC_REASON_NONE)
                read_symbols(m);
        if (m->reason != REC_REASON_NONE) {
                no_name(m, m->reason, ret);
                return 0;
        }
        if (m->kernel) {
                find_in_kernel(m, offset, ret);
                return 0;
        }
        if (elf_image_vaddr(m->image, offset, &vaddr) < 0) {
                no_name(m, REC_REASON_NO_SYMBOL, ret);
                return 0;
        }
        if (find_method(m, vaddr, ret))
                return 0;
        if (find_symbol(m, vaddr, &symbol) < 0) {
                r = find_stub(m, vaddr, ret);
                if (r == 0)
                        find_nothing(m, vaddr, ret);
                return MIN(r, 0);
        }
        r = readable(m, vaddr, symbol.name, &text);
        if (r < 0)
                return r;

        free(m->text);
        m->text = text;
        if (name_source_better(symbol.source, m->best))
                m->best = symbol.source;
        *ret = (struct name){ .text = text, .source = symbol.source, .displacement = vaddr - symbol.vaddr };
        return 0;
}

int name_find_lines(struct name_module *m, uint64_t offset, const struct dwarf_companions *companions,
                    const struct name_line **ret, size_t *ret_count) {
        uint64_t vaddr;
        int r;

        *ret_count = 0;
        if (!m->image || elf_image_vaddr(m->image, offset, &vaddr) < 0)
                return 0;
        if (!m->lines) {
                r = name_lines_new(m->image, m->debug, &m->lines);
                if (r < 0)
                        return r == -ENODATA ? 0 : r;
        }
        r = name_lines_find(m->lines, vaddr, companions, ret, ret_count);
        if (r == 0 && *ret_count > 0 && (*ret)[*ret_count - 1].text && m->best == REC_SOURCE_NONE)
                m->best = REC_SOURCE_DWARF;
        return r;
}

const char *name_module_ledger(const struct name_module *m, struct rec_symbols *ret) {
        ret->source = m->best;
        ret->reason = m->missing;
        return m->debug_path;
}
