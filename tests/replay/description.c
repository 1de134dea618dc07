/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/replay/description.h"

#include <errno.h>

#include "common/buf.h"
#include "common/macro.h"
#include "common/parse.h"
#include "proto/recording.h"
#include "report/syscalls.h"

enum { WORDS_MAX = 32, NAMED_MAX = 4096 };

/* TQ on the clock of the recorded machine: any time but 0. */
#define BASE_NS (1000 * NSEC_PER_SEC)

struct words {
        char *word[WORDS_MAX];
        size_t n;
};

struct stack_name {
        char *name;
        uint32_t index;
};

/* What has been read so far. Rows that others refer to are kept; the rest goes to the writer at once. */
struct description {
        struct recording_writer *w;
        struct rec_start start;
        struct buf processes, programs, modules, symbols, frames, names, stacks, stack_frames, sample_stacks;
        struct stack_name stack_names[NAMED_MAX];
        size_t n_stacks;
        uint32_t n_samples;
        const char *file;
        unsigned line;
        int error;
};

#define ROWS(b, type)  ((struct type *) (b).data)
#define COUNT(b, type) ((uint32_t) ((b).size / sizeof(struct type)))

static void complain(struct description *d, const char *what, const char *word) {
        fprintf(stderr, "%s:%u: %s: %s\n", d->file, d->line, what, word);
        d->error = -EINVAL;
}

/* ---- words ---- */

static char *take_word(char **rest) {
        char *in = *rest, *out, *begin;
        bool quoted = false;

        in += strspn(in, " \t\n");
        if (!*in || *in == '#')
                return NULL;
        begin = out = in;
        for (; *in && (quoted || !strchr(" \t\n", *in)); in++) {
                if (*in == '"')
                        quoted = !quoted;
                else if (*in == '\\' && in[1] == 'n') {
                        *out++ = '\n';
                        in++;
                } else if (*in == '\\' && in[1] == 'x') {
                        unsigned byte = 0;

                        sscanf(in + 2, "%2x", &byte);
                        *out++ = (char) byte;
                        in += 3;
                } else if (*in == '\\' && in[1])
                        *out++ = *++in;
                else
                        *out++ = *in;
        }
        *rest = *in ? in + 1 : in;
        *out = '\0';
        return begin;
}

static const char *option(const struct words *w, const char *name, const char *otherwise) {
        for (size_t i = 1; i < w->n; i++) {
                const char *value = startswith(w->word[i], name);

                if (value && *value == '=')
                        return value + 1;
        }
        return otherwise;
}

static uint64_t number(struct description *d, const struct words *w, const char *name, uint64_t otherwise) {
        const char *text = option(w, name, NULL);
        char *end;
        uint64_t n;

        if (!text)
                return otherwise;
        n = strtoull(text, &end, 0);
        if (*end)
                complain(d, "not a number", text);
        return n;
}

static uint64_t span_ns(struct description *d, const char *text) {
        uint64_t usec = 0;

        if (parse_usec(text, &usec) < 0)
                complain(d, "not a time span", text);
        return usec * NSEC_PER_USEC;
}

static uint64_t span(struct description *d, const struct words *w, const char *name) {
        return span_ns(d, option(w, name, "0"));
}

/* A time of the recording; 0 when the option is missing. */
static uint64_t moment(struct description *d, const struct words *w, const char *name) {
        const char *text = option(w, name, NULL);

        return text ? BASE_NS + span_ns(d, text) : 0;
}

static uint32_t one_of(struct description *d, const char *word, const char *(*name)(uint32_t), uint32_t n) {
        for (uint32_t i = 0; i < n; i++)
                if (streq(word, name(i)))
                        return i;
        complain(d, "unknown word", word);
        return 0;
}

static const char *path_kind_name(uint32_t kind) {
        static const char *const names[] = { "",       "inotify", "missing",       "connect",
                                             "listen", "notify",  "chdir",         "open",
                                             "sync",   "lock",    "inotify-limit", "object" };

        return names[kind];
}

static const char *error_name(uint32_t error) {
        switch (error) {
        case 0: return "0";
        case ENOENT: return "ENOENT";
        case EBADF: return "EBADF";
        case ENOSPC: return "ENOSPC";
        case EMFILE: return "EMFILE";
        case EAGAIN: return "EAGAIN";
        default: return "";
        }
}

static const char *end_name(uint32_t end) {
        static const char *const names[] = { "up", "listen", "idle", "time", "exit", "interrupted" };

        return names[end];
}

static uint32_t call_number(struct description *d, const char *name) {
        if (streq(name, "none"))
                return REC_CALL_NONE;
        if (streq(name, "fault"))
                return REC_CALL_FAULT;
        if (streq(name, "on-cpu"))
                return REC_CALL_ON_CPU;
        for (uint32_t i = 0; i < SYSCALL_NAMES_MAX; i++)
                if (syscall_names_native[i] && streq(syscall_names_native[i], name))
                        return i;
        if (startswith(name, "ia32:"))
                for (uint32_t i = 0; i < SYSCALL_NAMES_MAX; i++)
                        if (syscall_names_ia32[i] && streq(syscall_names_ia32[i], name + 5))
                                return i | REC_CALL_IA32;
        complain(d, "no such system call", name);
        return 0;
}

static uint32_t text(struct description *d, const char *t) {
        return recording_writer_text(d->w, t);
}

/* ---- processes ---- */

static uint32_t find_program(struct description *d, uint32_t exe, uint32_t slot) {
        struct rec_program row = { .exe = exe, .slot = slot };

        for (uint32_t i = 0; i < COUNT(d->programs, rec_program); i++)
                if (ROWS(d->programs, rec_program)[i].exe == exe &&
                    ROWS(d->programs, rec_program)[i].slot == slot)
                        return i;
        buf_append(&d->programs, &row, sizeof(row));
        return COUNT(d->programs, rec_program) - 1;
}

static uint32_t find_process(struct description *d, const char *pid) {
        uint32_t n = COUNT(d->processes, rec_process), wanted = (uint32_t) strtoul(pid, NULL, 10);

        if (streq(pid, "*") && n > 0) /* any one, another each time */
                return d->line % n;
        for (uint32_t i = 0; i < n; i++)
                if (ROWS(d->processes, rec_process)[i].pid == wanted)
                        return i;
        complain(d, "no such process", pid);
        return 0;
}

static void read_process(struct description *d, const struct words *w, uint32_t pid) {
        uint32_t slot = one_of(d, option(w, "slot", ""), recording_slot_str, REC_SLOT_MAX);
        struct rec_process row = {
                .pid = pid,
                .parent_pid = (uint32_t) number(d, w, "parent", 0),
                .begin_ns = moment(d, w, "begin"),
                .exec_ns = moment(d, w, "exec"),
                .end_ns = moment(d, w, "end"),
                .comm = text(d, option(w, "comm", "")),
                .exe = text(d, option(w, "exe", "")),
                .arguments = text(d, option(w, "args", "")),
                .cwd = text(d, option(w, "cwd", "/")),
                .slot = slot,
                .exit_code = (uint32_t) number(d, w, "exit", 0),
        };

        row.program = find_program(d, row.exe, slot);
        buf_append(&d->processes, &row, sizeof(row));
}

/* Many processes, one after the other. */
static void read_many(struct description *d, const struct words *w) {
        uint32_t n = (uint32_t) strtoul(w->word[1], NULL, 10), pid = (uint32_t) number(d, w, "pid", 10000);
        uint64_t every = span(d, w, "every"), life = span(d, w, "life");
        struct rec_wait wait = { .syscall = REC_CALL_ON_CPU,
                                 .blocked_ns = span(d, w, "on-cpu"),
                                 .count = 1 };

        for (uint32_t i = 0; i < n; i++) {
                struct rec_process *row;

                read_process(d, w, pid + i);
                if (buf_error(&d->processes) < 0)
                        return;
                row = ROWS(d->processes, rec_process) + COUNT(d->processes, rec_process) - 1;
                row->begin_ns += i * every;
                row->exec_ns = row->begin_ns + life / 4;
                row->end_ns = row->begin_ns + life;
                wait.process = COUNT(d->processes, rec_process) - 1;
                wait.tid = pid + i;
                if (wait.blocked_ns > 0)
                        recording_writer_rows(d->w, REC_WAITS, &wait, sizeof(wait), 1);
        }
}

/* ---- modules and stacks ---- */

static const char *module_kind_name(uint32_t kind) {
        static const char *const names[] = { "file", "anonymous", "vdso", "kernel", "deleted" };

        return names[kind];
}

static void read_module(struct description *d, const struct words *w) {
        struct rec_module row = {
                .path = text(d, w->word[1]),
                .kind = one_of(d, option(w, "kind", "file"), module_kind_name, 5),
        };
        struct rec_symbols symbols = {
                .module = COUNT(d->modules, rec_module),
                .source = one_of(d, option(w, "symbols", "none"), recording_source_str, REC_SOURCE_MAX),
                .reason = (uint32_t) number(d, w, "reason", 0),
                .debug_path = text(d, option(w, "debug", "")),
        };
        const char *id = option(w, "build-id", "");

        row.build_id_bytes = (uint32_t) strlen(id) / 2;
        if (row.build_id_bytes > sizeof(row.build_id) || parse_hex(id, row.build_id, row.build_id_bytes) < 0)
                complain(d, "not a build-id", id);
        buf_append(&d->modules, &row, sizeof(row));
        buf_append(&d->symbols, &symbols, sizeof(symbols));
}

static uint32_t find_module(struct description *d, const char *path) {
        uint32_t wanted = text(d, path);

        if (streq(path, "-"))
                return REC_NONE;
        for (uint32_t i = 0; i < COUNT(d->modules, rec_module); i++)
                if (ROWS(d->modules, rec_module)[i].path == wanted)
                        return i;
        complain(d, "no such module", path);
        return REC_NONE;
}

static void read_stack(struct description *d, const struct words *w) {
        struct rec_stack row = {
                .first = (uint32_t) (d->stack_frames.size / sizeof(uint32_t)),
                .end = one_of(d, option(w, "end", "complete"), recording_stack_end_str, REC_STACK_END_MAX),
        };

        if (d->n_stacks == NAMED_MAX) {
                complain(d, "too many stacks", w->word[1]);
                return;
        }
        d->stack_names[d->n_stacks] = (struct stack_name){ strdup(w->word[1]), (uint32_t) d->n_stacks };
        d->n_stacks++;
        buf_append(&d->stacks, &row, sizeof(row));
}

/* Equal frames are one: by module and offset, which a name stands for unless it is given. */
static uint32_t find_frame(struct description *d, const struct words *w, uint32_t module) {
        uint64_t hash = 5381;
        struct rec_frame row = { .module = module, .how = REC_HOW_CFI };
        struct rec_name name = { .source = one_of(d, option(w, "source", "symtab"), recording_source_str,
                                                  REC_SOURCE_MAX) };

        for (const char *p = w->word[1]; *p; p++)
                hash = hash * 33 + (unsigned char) *p;
        row.offset = number(d, w, "offset", 0x1000 + hash % 0xfffff);
        for (uint32_t i = 0; i < COUNT(d->frames, rec_frame); i++)
                if (ROWS(d->frames, rec_frame)[i].module == module &&
                    ROWS(d->frames, rec_frame)[i].offset == row.offset)
                        return i;

        buf_append(&d->frames, &row, sizeof(row));
        name.frame = COUNT(d->frames, rec_frame) - 1;
        if (option(w, "inlined", NULL)) {
                name.name = text(d, option(w, "inlined", ""));
                name.inlined = 1;
                buf_append(&d->names, &name, sizeof(name));
                name.inlined = 0;
        }
        name.name = streq(w->word[1], "-") ? 0 : text(d, w->word[1]);
        if (name.name == 0) {
                name.source = REC_SOURCE_NONE;
                name.reason = REC_REASON_STRIPPED;
        }
        buf_append(&d->names, &name, sizeof(name));
        return name.frame;
}

/* A frame of the stack above, innermost first: frame NAME MODULE. */
static void read_frame(struct description *d, const struct words *w) {
        uint32_t frame, count = (uint32_t) number(d, w, "levels", 1);

        if (d->n_stacks == 0 || w->n < 3) {
                complain(d, "a frame needs a stack above it, a name and a module", w->word[0]);
                return;
        }
        frame = find_frame(d, w, find_module(d, w->word[2]));
        for (uint32_t i = 0; i < count; i++)
                buf_append(&d->stack_frames, &frame, sizeof(frame));
        if (buf_error(&d->stacks) == 0)
                ROWS(d->stacks, rec_stack)[COUNT(d->stacks, rec_stack) - 1].count += count;
}

/* ---- what was measured ---- */

static const char *sample_kind_name(uint32_t kind) {
        static const char *const names[] = { "user", "kernel", "wait", "fault" };

        return names[kind];
}

/* Index of a stack by its name; REC_NONE: name is NULL, or after a complaint. */
static uint32_t find_stack(struct description *d, const char *name) {
        for (size_t i = 0; name && i < d->n_stacks; i++)
                if (streq(d->stack_names[i].name, name))
                        return d->stack_names[i].index;
        if (name)
                complain(d, "no such stack", name);
        return REC_NONE;
}

/* samples PID KIND count=, evenly between from= and to=. */
static void read_samples(struct description *d, const struct words *w) {
        uint32_t process = find_process(d, w->word[1]), count = (uint32_t) number(d, w, "count", 1);
        uint64_t from = moment(d, w, "from"), to = moment(d, w, "to");
        struct rec_sample row = {
                .process = process,
                .weight_ns = option(w, "weight", NULL) ? span(d, w, "weight")
                                                       : NSEC_PER_SEC / d->start.frequency_hz,
                .blocked_ns = span(d, w, "blocked"),
                .tid = (uint32_t) number(d, w, "tid", strtoul(w->word[1], NULL, 10)),
                .comm = text(d, option(w, "comm", "")),
                .kind = one_of(d, w->word[2], sample_kind_name, REC_SAMPLE_MAX),
                .flags = (uint32_t) number(d, w, "flags", 0),
                .syscall = call_number(d, option(w, "call", "none")),
                .stack = REC_NONE,
        };

        struct rec_sample_stack join = {
                .stack = find_stack(d, option(w, "stack", NULL)),
                .kernel = find_stack(d, option(w, "kernel", NULL)) + 1, /* 0: none */
        };

        for (uint32_t i = 0; i < count; i++) {
                row.time_ns = from + (to - from) * i / count;
                recording_writer_rows(d->w, REC_SAMPLES, &row, sizeof(row), 1);
                join.sample = d->n_samples++;
                if (join.stack != REC_NONE)
                        buf_append(&d->sample_stacks, &join, sizeof(join));
        }
}

static void read_call(struct description *d, const struct words *w) {
        struct rec_call row = {
                .program = ROWS(d->processes, rec_process)[find_process(d, w->word[1])].program,
                .syscall = call_number(d, w->word[2]),
                .error = one_of(d, option(w, "error", "0"), error_name, 128),
                .count = number(d, w, "count", 1),
                .first_ns = moment(d, w, "first"),
                .last_ns = moment(d, w, "last"),
        };

        recording_writer_rows(d->w, REC_CALLS, &row, sizeof(row), 1);
}

static void read_wait(struct description *d, const struct words *w) {
        struct rec_wait row = {
                .process = find_process(d, w->word[1]),
                .tid = (uint32_t) number(d, w, "tid", strtoul(w->word[1], NULL, 10)),
                .syscall = call_number(d, w->word[2]),
                .blocked_ns = span(d, w, "blocked"),
                .io_ns = span(d, w, "io"),
                .runnable_ns = span(d, w, "runnable"),
                .longest_ns = span(d, w, "longest"),
                .count = number(d, w, "count", 1),
        };

        recording_writer_rows(d->w, REC_WAITS, &row, sizeof(row), 1);
}

/* path KIND PID PATH at= [count= to=]: with a count, PATH/d0, PATH/d1 and so on follow it. */
static void read_path(struct description *d, const struct words *w) {
        uint64_t count = number(d, w, "count", 0), from = moment(d, w, "at"), to = moment(d, w, "to");
        struct rec_path row = {
                .time_ns = from,
                .argument = number(d, w, "argument", 0) |
                            number(d, w, "state", 0) << REC_OBJECT_STATE_SHIFT |
                            number(d, w, "object", 0) << REC_OBJECT_KIND_SHIFT,
                .process = find_process(d, w->word[2]),
                .kind = one_of(d, w->word[1], path_kind_name, REC_PATH_OBJECT + 1),
                .syscall = call_number(d, option(w, "call", "none")),
                .result = (int32_t) number(d, w, "result", 0),
                .path = text(d, w->word[3]),
                .tid = (uint32_t) strtoul(w->word[2], NULL, 10),
        };

        recording_writer_rows(d->w, REC_PATHS, &row, sizeof(row), 1);
        for (uint64_t i = 0; i < count; i++) {
                char name[512];

                snprintf(name, sizeof(name), "%s/d%llu", streq(w->word[3], "/") ? "" : w->word[3],
                         (unsigned long long) i);
                row.path = text(d, name);
                row.time_ns = from + (to - from) * (i + 1) / count;
                recording_writer_rows(d->w, REC_PATHS, &row, sizeof(row), 1);
        }
}

static void read_dir(struct description *d, const struct words *w) {
        struct rec_dir row = {
                .kind = one_of(d, w->word[1], path_kind_name, REC_PATH_INOTIFY_LIMIT + 1),
                .program = ROWS(d->processes, rec_process)[find_process(d, w->word[2])].program,
                .path = text(d, w->word[3]),
                .count = number(d, w, "count", 1),
        };

        recording_writer_rows(d->w, REC_DIRS, &row, sizeof(row), 1);
}

static void read_milestone(struct description *d, const struct words *w) {
        struct rec_milestone row = {
                .kind = one_of(d, w->word[1], recording_milestone_str, REC_MILESTONE_MAX),
                .time_ns = moment(d, w, "at"),
                .process = option(w, "process", NULL) ? find_process(d, option(w, "process", "")) : REC_NONE,
                .detail = text(d, option(w, "detail", "")),
                .slot = one_of(d, option(w, "slot", ""), recording_slot_str, REC_SLOT_MAX),
        };

        recording_writer_rows(d->w, REC_MILESTONES, &row, sizeof(row), 1);
}

static void read_property(struct description *d, const struct words *w) {
        struct rec_property row = { .name = text(d, w->word[1]), .value = text(d, w->word[2]) };

        recording_writer_rows(d->w, REC_PROPERTIES, &row, sizeof(row), 1);
}

/* ---- the start ---- */

static void read_start(struct description *d, const struct words *w) {
        const char *id = option(w, "invocation", "0123456789abcdef0123456789abcdef");

        d->start = (struct rec_start){
                .queued_ns = BASE_NS,
                .begin_ns = moment(d, w, "begin"),
                .end_ns = moment(d, w, "until"),
                .cgroup_ns = moment(d, w, "begin"),
                .armed_ns = option(w, "armed", NULL) ? moment(d, w, "armed") : BASE_NS - NSEC_PER_MSEC,
                .realtime_usec = UINT64_C(1764547200000000),
                .result = one_of(d, option(w, "result", "active"), recording_result_str, REC_RESULT_MAX),
                .end = one_of(d, option(w, "end", "up"), end_name, REC_END_MAX),
                .frequency_hz = (uint32_t) number(d, w, "hz", 99),
                .cpu_count = (uint32_t) number(d, w, "cpus", 2),
                .attempts = (uint32_t) number(d, w, "attempts", 1),
                .unit = text(d, option(w, "unit", "demo.service")),
                .type = text(d, option(w, "type", "notify")),
                .cost_ns = span(d, w, "cost"),
                .watch_limit = number(d, w, "max-watches", 0),
                .instance_limit = number(d, w, "max-instances", 0),
        };
        if (parse_hex(id, d->start.invocation_id, sizeof(d->start.invocation_id)) < 0)
                complain(d, "not an invocation id", id);
}

static void read_lost(struct description *d, const struct words *w) {
        static const char *const names[] = { "samples",   "events",   "paths",     "waits",    "call-keys",
                                             "wait-keys", "programs", "processes", "mappings", "stacks" };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                d->start.lost[i] = number(d, w, names[i], d->start.lost[i]);
}

static void read_pid(struct description *d, const struct words *w) {
        read_process(d, w, (uint32_t) strtoul(w->word[1], NULL, 10));
}

static const struct {
        const char *word;
        size_t words_min;
        void (*read)(struct description *d, const struct words *w);
} directives[] = {
        { "start", 1, read_start }, { "lost", 2, read_lost },           { "property", 3, read_property },
        { "process", 2, read_pid }, { "many", 2, read_many },           { "module", 2, read_module },
        { "stack", 2, read_stack }, { "frame", 3, read_frame },         { "samples", 3, read_samples },
        { "call", 3, read_call },   { "wait", 3, read_wait },           { "path", 4, read_path },
        { "dir", 4, read_dir },     { "milestone", 2, read_milestone },
};

static void read_line(struct description *d, char *line) {
        struct words w = {};
        char *word;

        while (w.n < WORDS_MAX && (word = take_word(&line)))
                w.word[w.n++] = word;
        if (w.n == 0)
                return;
        for (size_t i = 0; i < ARRAY_SIZE(directives); i++) {
                if (!streq(directives[i].word, w.word[0]))
                        continue;
                if (w.n < directives[i].words_min)
                        complain(d, "too few words", w.word[0]);
                else
                        directives[i].read(d, &w);
                return;
        }
        complain(d, "unknown line", w.word[0]);
}

static void add_rows(struct description *d, enum rec_section type, const struct buf *rows,
                     size_t row_bytes) {
        if (buf_error(rows) < 0)
                d->error = buf_error(rows);
        recording_writer_rows(d->w, type, rows->data, row_bytes, rows->size / row_bytes);
}

static void finish(struct description *d) {
        recording_writer_rows(d->w, REC_START, &d->start, sizeof(d->start), 1);
        add_rows(d, REC_PROCESSES, &d->processes, sizeof(struct rec_process));
        add_rows(d, REC_PROGRAMS, &d->programs, sizeof(struct rec_program));
        add_rows(d, REC_MODULES, &d->modules, sizeof(struct rec_module));
        add_rows(d, REC_FRAMES, &d->frames, sizeof(struct rec_frame));
        add_rows(d, REC_NAMES, &d->names, sizeof(struct rec_name));
        add_rows(d, REC_STACKS, &d->stacks, sizeof(struct rec_stack));
        add_rows(d, REC_STACK_FRAMES, &d->stack_frames, sizeof(uint32_t));
        add_rows(d, REC_SAMPLE_STACKS, &d->sample_stacks, sizeof(struct rec_sample_stack));
        add_rows(d, REC_SYMBOLS, &d->symbols, sizeof(struct rec_symbols));
}

static void description_done(struct description *d) {
        struct buf *all[] = { &d->processes, &d->programs, &d->modules,      &d->symbols,      &d->frames,
                              &d->names,     &d->stacks,   &d->stack_frames, &d->sample_stacks };

        for (size_t i = 0; i < ARRAY_SIZE(all); i++)
                buf_done(all[i]);
        for (size_t i = 0; i < d->n_stacks; i++)
                free(d->stack_names[i].name);
        recording_writer_free(d->w);
        free(d);
}

int description_read(FILE *in, const char *name, bool compress, void **ret, size_t *ret_bytes) {
        struct description *d = calloc(1, sizeof(*d));
        _cleanup_free_ char *line = NULL;
        size_t allocated = 0;
        int error;

        if (!d)
                return -ENOMEM;
        d->file = name;
        d->start.frequency_hz = 99;
        d->w = recording_writer_new(true);
        if (!d->w)
                d->error = -ENOMEM;
        while (d->error == 0 && getline(&line, &allocated, in) >= 0) {
                d->line++;
                read_line(d, line);
        }
        if (d->error == 0) {
                finish(d);
                if (d->error == 0)
                        d->error = recording_writer_finish(d->w, compress, ret, ret_bytes);
        }
        error = d->error;
        description_done(d);
        return error;
}
