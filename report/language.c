/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/language.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/macro.h"
#include "report/names.h"

enum {
        PYTHON_MINOR_MIN = 12, /* the first that writes perf maps */
        FRAMES_MAX =
                256 * 1024 * 1024, /* of all stacks: a file can make few frames into stacks without end */
};

/* What the modules of a stack say. */
struct stack_facts {
        enum language language; /* by the library of a run-time, or its executable */
        uint32_t unnamed; /* module of code made at run time that no map names; REC_NONE */
        uint32_t interpreter; /* module of Python's; REC_NONE */
        bool mapped; /* a perf map named a frame */
};

/* "python3.13", "libpython3.13.so.1.0" */
static bool is_python(const char *name) {
        const char *minor = startswith(name, "libpython3.") ?: startswith(name, "python3.");

        return minor && strtoul(minor, NULL, 10) >= PYTHON_MINOR_MIN;
}

static enum language language_of_file(const char *path) {
        static const struct {
                const char *name;
                enum language language;
        } files[] = {
                { "libcoreclr.so", LANGUAGE_DOTNET },
                { "dotnet", LANGUAGE_DOTNET },
                { "node", LANGUAGE_NODE },
                { "nodejs", LANGUAGE_NODE },
                { "libjvm.so", LANGUAGE_JAVA },
                { "java", LANGUAGE_JAVA },
        };
        const char *name = path_basename(path);

        for (size_t i = 0; i < ARRAY_SIZE(files); i++)
                if (streq(name, files[i].name))
                        return files[i].language;
        if (startswith(name, "libnode.so"))
                return LANGUAGE_NODE;
        return is_python(name) ? LANGUAGE_PYTHON : LANGUAGE_NONE;
}

static void look_at_module(const struct recording *r, const enum language *files, uint32_t module,
                           struct stack_facts *facts) {
        if (module >= r->n_modules)
                return;
        if (r->modules[module].kind == REC_MODULE_ANONYMOUS) {
                if (r->symbols && r->symbols[module].source == REC_SOURCE_PERF_MAP)
                        facts->mapped = true;
                else
                        facts->unnamed = module;
                return;
        }
        if (files[module] == LANGUAGE_PYTHON)
                facts->interpreter = module;
        if (facts->language == LANGUAGE_NONE)
                facts->language = files[module];
}

static void look_at_stacks(const struct recording *r, const enum language *files,
                           struct stack_facts *facts) {
        uint64_t frames = 0;

        for (uint32_t i = 0; i < r->n_stacks; i++) {
                const struct rec_stack *s = r->stacks + i;

                frames += s->count;
                facts[i] = (struct stack_facts){ .unnamed = REC_NONE, .interpreter = REC_NONE };
                for (uint32_t j = 0; j < s->count && frames <= FRAMES_MAX; j++)
                        look_at_module(r, files, r->frames[r->stack_frames[s->first + j]].module, &facts[i]);
        }
}

/* What the stacks of a process say together. */
static void look_at_processes(const struct recording *r, const struct stack_facts *stacks,
                              struct stack_facts *processes) {
        for (uint32_t i = 0; i < r->n_processes; i++)
                processes[i] = (struct stack_facts){
                        .language = language_of_file(recording_text(r, r->processes[i].exe)),
                        .interpreter = REC_NONE,
                };
        for (uint32_t i = 0; i < r->n_samples; i++) {
                const struct rec_sample *s = r->samples + i;
                struct stack_facts *process;

                if (s->stack >= r->n_stacks || s->process >= r->n_processes)
                        continue;
                process = &processes[s->process];
                process->mapped |= stacks[s->stack].mapped;
                if (stacks[s->stack].interpreter != REC_NONE)
                        process->interpreter = stacks[s->stack].interpreter;
                if (process->language == LANGUAGE_NONE)
                        process->language = stacks[s->stack].language;
        }
}

/* Marks the modules: gaps[m] is the gap of module m, if its language is not NONE. */
static void mark(const struct recording *r, const struct stack_facts *stacks,
                 const struct stack_facts *processes, struct language_gap *gaps) {
        for (uint32_t i = 0; i < r->n_samples; i++) {
                const struct rec_sample *s = r->samples + i;
                const struct stack_facts *process;
                uint32_t module;

                if (s->stack >= r->n_stacks || s->process >= r->n_processes)
                        continue;
                process = &processes[s->process];
                module = process->language == LANGUAGE_PYTHON ? process->interpreter
                                                              : stacks[s->stack].unnamed;
                if (process->language == LANGUAGE_NONE || module == REC_NONE || process->mapped)
                        continue;
                gaps[module] = (struct language_gap){ .module = module,
                                                      .language = process->language,
                                                      .pid = r->processes[s->process].pid };
        }
}

int language_gaps(const struct recording *r, struct language_gap **ret, size_t *ret_count) {
        _cleanup_free_ struct stack_facts *stacks = calloc((size_t) r->n_stacks + 1, sizeof(*stacks));
        _cleanup_free_ struct stack_facts *processes =
                calloc((size_t) r->n_processes + 1, sizeof(*processes));
        _cleanup_free_ enum language *files = calloc((size_t) r->n_modules + 1, sizeof(*files));
        struct language_gap *gaps = calloc((size_t) r->n_modules + 1, sizeof(*gaps));
        size_t count = 0;

        if (!stacks || !processes || !files || !gaps) {
                free(gaps);
                return -ENOMEM;
        }
        for (uint32_t i = 0; i < r->n_modules; i++)
                files[i] = language_of_file(recording_text(r, r->modules[i].path));
        look_at_stacks(r, files, stacks);
        look_at_processes(r, stacks, processes);
        mark(r, stacks, processes, gaps);
        for (uint32_t i = 0; i < r->n_modules; i++)
                if (gaps[i].language != LANGUAGE_NONE)
                        gaps[count++] = gaps[i];
        *ret = gaps;
        *ret_count = count;
        return 0;
}

void language_advice(struct buf *b, const struct language_gap *gap) {
        static const char *const texts[LANGUAGE_MAX] = {
                [LANGUAGE_DOTNET] =
                        "Methods that .NET compiled while it ran have names when it writes a perf map.",
                [LANGUAGE_NODE] = "JavaScript functions have names when node writes a perf map.",
                [LANGUAGE_PYTHON] = "Python's functions have names when it writes a perf map.",
        };

        if (gap->language == LANGUAGE_JAVA)
                buf_printf(b,
                           "Methods that Java compiled have names when it writes a perf map, which no "
                           "switch makes "
                           "it do in time: run `jcmd %" PRIu32
                           " Compiler.perfmap` while the capture goes on.",
                           gap->pid);
        else
                buf_puts(b, texts[gap->language]);
}

const char *language_dropin(enum language language) {
        switch (language) {
        case LANGUAGE_DOTNET: return "[Service]\nEnvironment=DOTNET_PerfMapEnabled=1\n";
        case LANGUAGE_NODE: return "[Service]\nEnvironment=NODE_OPTIONS=--perf-basic-prof\n";
        case LANGUAGE_PYTHON: return "[Service]\nEnvironment=PYTHONPERFSUPPORT=1\n";
        default: return NULL;
        }
}
