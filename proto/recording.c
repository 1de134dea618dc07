/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proto/recording.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <zstd.h>

#include "common/buf.h"
#include "common/fd.h"
#include "common/hash.h"
#include "common/macro.h"

_Static_assert(__BYTE_ORDER == __LITTLE_ENDIAN, "rows are used as they lie in the file");

enum {
        TYPE_MAX = REC_SYMBOLS + 1, /* array size for section types */
        TEXTS_MAX = 4, /* text members of one row */
        SECTION_MAX = 4096, /* sections of a file: layers are few */
        ZSTD_LEVEL = 3,
};

/* Rows of one type as they are collected from the sections. */
struct rows {
        void *data; /* owned */
        size_t count;
};

struct opened {
        struct recording view; /* first: what the caller sees */
        struct rows rows[TYPE_MAX];
        struct buf strings;
        uint32_t *frame_names;
        struct rec_symbols *symbols;
        uint64_t inflated_bytes; /* of the sections in the file */
        uint64_t rows_bytes; /* of all rows here */
};

struct row_type {
        uint32_t bytes; /* sizeof the row here; 0: no such type */
        uint32_t texts[TEXTS_MAX]; /* offsets of text members, NO_TEXT ends */
};

#define NO_TEXT            UINT32_MAX
#define TEXT(type, member) offsetof(struct type, member)
#define ROWS(type, ...)                                                                                     \
        {                                                                                                   \
                sizeof(struct type), {                                                                      \
                        __VA_ARGS__                                                                         \
                }                                                                                           \
        }

static const struct row_type row_types[TYPE_MAX] = {
        [REC_START] = ROWS(rec_start, TEXT(rec_start, unit), TEXT(rec_start, type), NO_TEXT),
        [REC_PROPERTIES] = ROWS(rec_property, TEXT(rec_property, name), TEXT(rec_property, value), NO_TEXT),
        [REC_PROCESSES] = ROWS(rec_process, TEXT(rec_process, comm), TEXT(rec_process, exe),
                               TEXT(rec_process, arguments), TEXT(rec_process, cwd)),
        [REC_MODULES] = ROWS(rec_module, TEXT(rec_module, path), NO_TEXT),
        [REC_SAMPLES] = ROWS(rec_sample, TEXT(rec_sample, comm), TEXT(rec_sample, waker_comm), NO_TEXT),
        [REC_CALLS] = ROWS(rec_call, NO_TEXT),
        [REC_WAITS] = ROWS(rec_wait, NO_TEXT),
        [REC_PATHS] = ROWS(rec_path, TEXT(rec_path, path), NO_TEXT),
        [REC_MILESTONES] = ROWS(rec_milestone, TEXT(rec_milestone, detail), NO_TEXT),
        [REC_PROGRAMS] = ROWS(rec_program, TEXT(rec_program, exe), NO_TEXT),
        [REC_DIRS] = ROWS(rec_dir, TEXT(rec_dir, path), NO_TEXT),
        [REC_FRAMES] = ROWS(rec_frame, NO_TEXT),
        [REC_STACKS] = ROWS(rec_stack, NO_TEXT),
        [REC_STACK_FRAMES] = { sizeof(uint32_t), { NO_TEXT } },
        [REC_SAMPLE_STACKS] = ROWS(rec_sample_stack, NO_TEXT),
        [REC_NAMES] = ROWS(rec_name, TEXT(rec_name, name), TEXT(rec_name, file), NO_TEXT),
        [REC_SYMBOLS] = ROWS(rec_symbols, TEXT(rec_symbols, debug_path), NO_TEXT),
};

/* ---- sections ---- */

struct section {
        uint32_t type;
        uint32_t row_bytes; /* in the file */
        const uint8_t *data; /* inflated */
        size_t bytes;
        uint8_t *inflated; /* owned when it was compressed */
};

static void section_done(struct section *s) {
        free(s->inflated);
        s->inflated = NULL;
}

static int section_inflate(struct section *s, const uint8_t *stored, size_t stored_bytes, size_t raw_bytes) {
        size_t n;

        /* Not calloc(): the size was checked against the limit, the content is written whole or refused. */
        s->inflated = malloc(raw_bytes + 1);
        if (!s->inflated)
                return -ENOMEM;
        n = ZSTD_decompress(s->inflated, raw_bytes, stored, stored_bytes);
        if (ZSTD_isError(n) || n != raw_bytes) {
                section_done(s);
                return -EBADMSG;
        }
        s->data = s->inflated;
        return 0;
}

/* Takes the section at *p and moves *p and *left behind it. */
static int section_next(struct opened *o, const uint8_t **p, size_t *left, struct section *ret) {
        struct rec_section_header header;
        struct section s = {};
        size_t padded;
        int r;

        if (*left < sizeof(header))
                return -EBADMSG;
        memcpy(&header, *p, sizeof(header));
        if (header.stored_bytes > *left - sizeof(header) || header.row_bytes == 0 ||
            header.raw_bytes % header.row_bytes != 0)
                return -EBADMSG;
        padded = MIN((header.stored_bytes + 7) & ~UINT64_C(7), (uint64_t) (*left - sizeof(header)));

        /* Unknown flags may change the meaning of the payload; a newer minor writer must not use them. */
        if (header.flags & ~(uint32_t) REC_SECTION_ZSTD)
                return -EBADMSG;
        if (header.raw_bytes > RECORDING_SIZE_MAX - o->inflated_bytes)
                return -EBADMSG;
        o->inflated_bytes += header.raw_bytes;

        s.type = header.type;
        s.row_bytes = header.row_bytes;
        s.bytes = header.raw_bytes;
        if (header.flags & REC_SECTION_ZSTD) {
                r = section_inflate(&s, *p + sizeof(header), header.stored_bytes, header.raw_bytes);
                if (r < 0)
                        return r;
        } else if (header.raw_bytes != header.stored_bytes)
                return -EBADMSG;
        else
                s.data = *p + sizeof(header);

        *p += sizeof(header) + padded;
        *left -= sizeof(header) + padded;
        *ret = s;
        return 0;
}

/* ---- from sections to rows ---- */

/* Strings of a layer follow those of the layers before; every layer begins with "" and ends with a NUL. */
static int take_strings(struct opened *o, const struct section *s, size_t *base) {
        if (s->row_bytes != 1 || s->bytes == 0 || s->data[0] != '\0' || s->data[s->bytes - 1] != '\0')
                return -EBADMSG;
        *base = o->strings.size;
        buf_append(&o->strings, s->data, s->bytes);
        return buf_error(&o->strings);
}

static int rebase_row(const struct opened *o, const struct row_type *type, uint8_t *row, size_t base) {
        for (size_t i = 0; i < TEXTS_MAX && type->texts[i] != NO_TEXT; i++) {
                uint32_t text;

                memcpy(&text, row + type->texts[i], sizeof(text));
                if (text == 0)
                        continue;
                if (base > o->strings.size || text >= o->strings.size - base)
                        return -EBADMSG;
                text += (uint32_t) base;
                memcpy(row + type->texts[i], &text, sizeof(text));
        }
        return 0;
}

static int take_rows(struct opened *o, const struct section *s, size_t base) {
        const struct row_type *type = row_types + s->type;
        struct rows *rows = o->rows + s->type;
        size_t count = s->bytes / s->row_bytes, keep = MIN(s->row_bytes, type->bytes);
        uint8_t *more, *row;
        int r;

        if (count == 0)
                return 0;
        /* Rows narrower than ours grow: the sum in memory is limited as the sum in the file is. */
        if (count > (RECORDING_SIZE_MAX - o->rows_bytes) / type->bytes)
                return -EBADMSG;
        o->rows_bytes += count * type->bytes;
        more = realloc(rows->data, (rows->count + count) * type->bytes);
        if (!more)
                return -ENOMEM;
        rows->data = more;

        row = more + rows->count * type->bytes;
        memset(row, 0, count * type->bytes);
        for (size_t i = 0; i < count; i++, row += type->bytes) {
                memcpy(row, s->data + i * s->row_bytes, keep);
                r = rebase_row(o, type, row, base);
                if (r < 0)
                        return r;
        }
        rows->count += count;
        return 0;
}

static int take_sections(struct opened *o, const uint8_t *p, size_t left) {
        size_t base = 0;
        int r;

        for (unsigned n = 0; left > 0; n++) {
                _cleanup_(section_done) struct section s = {};

                if (n >= SECTION_MAX)
                        return -EBADMSG;
                r = section_next(o, &p, &left, &s);
                if (r < 0)
                        return r;
                if (s.type == REC_STRINGS)
                        r = take_strings(o, &s, &base);
                else if (s.type < TYPE_MAX && row_types[s.type].bytes > 0)
                        r = take_rows(o, &s, base);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* ---- checks and joins ---- */

static bool index_ok(uint32_t index, size_t count) {
        return index == REC_NONE || index < count;
}

static int check_processes(const struct recording *r) {
        for (uint32_t i = 0; i < r->n_processes; i++)
                if (!index_ok(r->processes[i].program, r->n_programs) ||
                    r->processes[i].slot >= REC_SLOT_MAX)
                        return -EBADMSG;
        for (uint32_t i = 0; i < r->n_programs; i++)
                if (r->programs[i].slot >= REC_SLOT_MAX)
                        return -EBADMSG;
        for (uint32_t i = 0; i < r->n_modules; i++)
                if (r->modules[i].build_id_bytes > sizeof(r->modules[i].build_id))
                        return -EBADMSG;
        return 0;
}

static int check_samples(const struct recording *r) {
        for (uint32_t i = 0; i < r->n_samples; i++)
                if (r->samples[i].process >= r->n_processes || r->samples[i].kind >= REC_SAMPLE_MAX)
                        return -EBADMSG;
        for (uint32_t i = 0; i < r->n_waits; i++)
                if (!index_ok(r->waits[i].process, r->n_processes))
                        return -EBADMSG;
        return 0;
}

static int check_rest(const struct recording *r) {
        for (uint32_t i = 0; i < r->n_calls; i++)
                if (r->calls[i].program >= r->n_programs)
                        return -EBADMSG;
        for (uint32_t i = 0; i < r->n_paths; i++)
                if (!index_ok(r->paths[i].process, r->n_processes))
                        return -EBADMSG;
        for (uint32_t i = 0; i < r->n_dirs; i++)
                if (!index_ok(r->dirs[i].program, r->n_programs))
                        return -EBADMSG;
        for (uint32_t i = 0; i < r->n_milestones; i++)
                if (!index_ok(r->milestones[i].process, r->n_processes) ||
                    r->milestones[i].kind >= REC_MILESTONE_MAX || r->milestones[i].slot >= REC_SLOT_MAX)
                        return -EBADMSG;
        return 0;
}

static int check_stacks(const struct recording *r) {
        for (uint32_t i = 0; i < r->n_frames; i++)
                if (!index_ok(r->frames[i].module, r->n_modules) || r->frames[i].how >= REC_HOW_MAX)
                        return -EBADMSG;
        for (uint32_t i = 0; i < r->n_stacks; i++)
                if (r->stacks[i].first > r->n_stack_frames ||
                    r->stacks[i].count > r->n_stack_frames - r->stacks[i].first ||
                    r->stacks[i].end >= REC_STACK_END_MAX)
                        return -EBADMSG;
        for (uint32_t i = 0; i < r->n_stack_frames; i++)
                if (r->stack_frames[i] >= r->n_frames)
                        return -EBADMSG;
        return 0;
}

static int check_start(const struct opened *o) {
        const struct rec_start *start = o->rows[REC_START].data;

        if (o->rows[REC_START].count != 1 || start->result >= REC_RESULT_MAX || start->end >= REC_END_MAX)
                return -EBADMSG;
        return 0;
}

static int join_stacks(struct opened *o) {
        const struct rec_sample_stack *joins = o->rows[REC_SAMPLE_STACKS].data;
        struct rec_sample *samples = o->rows[REC_SAMPLES].data;

        for (size_t i = 0; i < o->rows[REC_SAMPLES].count; i++)
                samples[i].stack = samples[i].kernel_stack = REC_NONE;
        for (size_t i = 0; i < o->rows[REC_SAMPLE_STACKS].count; i++) {
                if (joins[i].sample >= o->rows[REC_SAMPLES].count ||
                    joins[i].stack >= o->rows[REC_STACKS].count ||
                    joins[i].kernel > o->rows[REC_STACKS].count)
                        return -EBADMSG;
                samples[joins[i].sample].stack = joins[i].stack;
                if (joins[i].kernel > 0)
                        samples[joins[i].sample].kernel_stack = joins[i].kernel - 1;
        }
        return 0;
}

/* Of several runs of rows for one frame, one per layer, the last counts. A run ends with the row that is not
 * inlined into the next: the first frame of a layer may be the last one of the layer before. */
static int join_names(struct opened *o) {
        const struct rec_name *rows = o->rows[REC_NAMES].data;
        size_t n_rows = o->rows[REC_NAMES].count, n_frames = o->rows[REC_FRAMES].count, total = 0;
        _cleanup_free_ uint32_t *first = NULL;
        struct rec_name *names;

        first = malloc((n_frames + 1) * sizeof(*first));
        o->frame_names = calloc(n_frames + 1, sizeof(*o->frame_names));
        if (!first || !o->frame_names)
                return -ENOMEM;
        memset(first, 0xff, (n_frames + 1) * sizeof(*first));
        for (size_t i = 0; i < n_rows; i++) {
                if (rows[i].frame >= n_frames || rows[i].source >= REC_SOURCE_MAX ||
                    rows[i].reason >= REC_REASON_MAX)
                        return -EBADMSG;
                if (i == 0 || rows[i - 1].frame != rows[i].frame || !rows[i - 1].inlined)
                        first[rows[i].frame] = (uint32_t) i;
        }

        names = calloc(n_rows + 1, sizeof(*names));
        if (!names)
                return -ENOMEM;
        for (size_t frame = 0; frame < n_frames; frame++) {
                o->frame_names[frame] = (uint32_t) total;
                for (size_t i = first[frame]; i < n_rows && rows[i].frame == frame; i++) {
                        names[total++] = rows[i];
                        if (!rows[i].inlined)
                                break;
                }
        }
        o->frame_names[n_frames] = (uint32_t) total;
        free(o->rows[REC_NAMES].data);
        o->rows[REC_NAMES].data = names;
        o->rows[REC_NAMES].count = total;
        return 0;
}

static int join_symbols(struct opened *o) {
        const struct rec_symbols *rows = o->rows[REC_SYMBOLS].data;
        size_t n_modules = o->rows[REC_MODULES].count;

        o->symbols = calloc(n_modules + 1, sizeof(*o->symbols));
        if (!o->symbols)
                return -ENOMEM;
        for (size_t i = 0; i < n_modules; i++)
                o->symbols[i].module = (uint32_t) i;
        for (size_t i = 0; i < o->rows[REC_SYMBOLS].count; i++) {
                if (rows[i].module >= n_modules || rows[i].source >= REC_SOURCE_MAX ||
                    rows[i].reason >= REC_REASON_MAX)
                        return -EBADMSG;
                o->symbols[rows[i].module] = rows[i];
        }
        return 0;
}

#define SHOW(o, member, type)                                                                               \
        ({                                                                                                  \
                (o)->view.member = (o)->rows[type].data;                                                    \
                (o)->view.n_##member = (uint32_t) (o)->rows[type].count;                                    \
        })

static void show(struct opened *o) {
        o->view.start = o->rows[REC_START].data;
        SHOW(o, properties, REC_PROPERTIES);
        SHOW(o, processes, REC_PROCESSES);
        SHOW(o, programs, REC_PROGRAMS);
        SHOW(o, modules, REC_MODULES);
        SHOW(o, samples, REC_SAMPLES);
        SHOW(o, calls, REC_CALLS);
        SHOW(o, waits, REC_WAITS);
        SHOW(o, paths, REC_PATHS);
        SHOW(o, dirs, REC_DIRS);
        SHOW(o, milestones, REC_MILESTONES);
        SHOW(o, frames, REC_FRAMES);
        SHOW(o, stacks, REC_STACKS);
        SHOW(o, stack_frames, REC_STACK_FRAMES);
        SHOW(o, names, REC_NAMES);
        o->view.frame_names = o->frame_names;
        o->view.symbols = o->symbols;
}

static int check_and_join(struct opened *o) {
        static int (*const checks[])(const struct recording *r) = {
                check_processes,
                check_samples,
                check_rest,
                check_stacks,
        };
        int r;

        r = check_start(o);
        if (r < 0)
                return r;
        r = join_stacks(o);
        if (r < 0)
                return r;
        r = join_names(o);
        if (r < 0)
                return r;
        r = join_symbols(o);
        if (r < 0)
                return r;
        show(o);
        for (size_t i = 0; i < ARRAY_SIZE(checks); i++) {
                r = checks[i](&o->view);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* ---- opening ---- */

bool recording_magic(const void *data, size_t bytes) {
        return bytes >= sizeof(struct rec_file_header) && memcmp(data, RECORDING_MAGIC, 8) == 0;
}

struct recording *recording_free(struct recording *r) {
        struct opened *o = (struct opened *) r;

        if (!o)
                return NULL;
        for (size_t i = 0; i < TYPE_MAX; i++)
                free(o->rows[i].data);
        buf_done(&o->strings);
        free(o->frame_names);
        free(o->symbols);
        free(o);
        return NULL;
}
DEFINE_CLEANUP(struct recording *, recording_free);

int recording_open(const void *data, size_t bytes, struct recording **ret) {
        _cleanup_(recording_freep) struct recording *recording = NULL;
        struct rec_file_header header;
        struct opened *o;
        int r;

        if (!recording_magic(data, bytes))
                return -EBADMSG;
        if (bytes > RECORDING_SIZE_MAX)
                return -EFBIG;
        memcpy(&header, data, sizeof(header));
        if (header.version > RECORDING_VERSION)
                return -EPROTONOSUPPORT;
        if (header.version == 0)
                return -EBADMSG;

        o = calloc(1, sizeof(*o));
        if (!o)
                return -ENOMEM;
        recording = &o->view;
        buf_putc(&o->strings, '\0');
        r = take_sections(o, (const uint8_t *) data + sizeof(header), bytes - sizeof(header));
        if (r < 0)
                return r;
        r = check_and_join(o);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(recording);
        return 0;
}

int recording_open_fd(int fd, struct recording **ret) {
        _cleanup_free_ uint8_t *data = NULL;
        struct stat st;
        ssize_t n;

        if (fstat(fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode))
                return -EBADMSG;
        if (st.st_size == 0)
                return -ENODATA;
        if (st.st_size > RECORDING_SIZE_MAX)
                return -EFBIG;
        data = malloc((size_t) st.st_size);
        if (!data)
                return -ENOMEM;
        n = fd_pread_full(fd, data, (size_t) st.st_size, 0);
        if (n < 0)
                return (int) n;
        return recording_open(data, (size_t) n, ret);
}

/* ---- looking ---- */

const char *recording_text(const struct recording *r, uint32_t text) {
        const struct opened *o = (const struct opened *) r;

        return text < o->strings.size ? o->strings.data + text : "";
}

const char *recording_property(const struct recording *r, const char *name) {
        for (uint32_t i = 0; i < r->n_properties; i++)
                if (streq(recording_text(r, r->properties[i].name), name))
                        return recording_text(r, r->properties[i].value);
        return NULL;
}

#define LOOK_UP(table, index) ((index) < ARRAY_SIZE(table) && (table)[index] ? (table)[index] : "")

const char *recording_result_str(uint32_t result) {
        static const char *const words[REC_RESULT_MAX] = {
                "active",  "running",    "failed",   "timeout",     "exited",
                "skipped", "dependency", "canceled", "interrupted",
        };

        return LOOK_UP(words, result);
}

const char *recording_milestone_str(uint32_t kind) {
        static const char *const words[REC_MILESTONE_MAX] = {
                "queued",     "begin",  "cgroup", "executor",  "exec",   "listen",
                "ready-sent", "active", "failed", "timed-out", "exited", "restarted",
        };

        return LOOK_UP(words, kind);
}

const char *recording_slot_str(uint32_t slot) {
        static const char *const words[REC_SLOT_MAX] = {
                "",          "executor",      "ExecCondition", "ExecStartPre",
                "ExecStart", "ExecStartPost", "ExecReload",    "ExecStop",
        };

        return LOOK_UP(words, slot);
}

const char *recording_source_str(uint32_t source) {
        static const char *const words[REC_SOURCE_MAX] = {
                "none",      "symtab",   "dynsym", "debug-symtab", "dwarf",    "nativeaot",
                "minidebug", "perf-map", "label",  "vdso",         "kallsyms",
        };

        return LOOK_UP(words, source);
}

const char *recording_reason_str(uint32_t reason) {
        static const char *const words[REC_REASON_MAX] = {
                "",
                "stripped, no debug file found",
                "file could not be opened any more",
                "debug file of another build",
                "broken ELF file",
                "address in no symbol",
                "code made at run time, no map",
                "code outside every known mapping",
                "limit reached",
                "unknown .NET version",
                "precompiled .NET code, which has no symbols",
                "the kernel hides its addresses",
                "built without .NET stack trace data",
                "contradictory .NET stack trace data",
        };

        return LOOK_UP(words, reason);
}

const char *recording_stack_end_str(uint32_t end) {
        static const char *const words[REC_STACK_END_MAX] = {
                "complete",
                "no call frame information",
                "stack copy ended",
                "stack not readable",
                "too deep",
                "code outside every known mapping",
                "32-bit process",
                "no stack",
                "process ending or in execve",
        };

        return LOOK_UP(words, end);
}

const char *recording_lost_str(uint32_t what) {
        static const char *const words[REC_LOST_MAX] = {
                [REC_LOST_SAMPLES] = "samples",
                [REC_LOST_EVENTS] = "process events",
                [REC_LOST_PATHS] = "paths",
                [REC_LOST_WAITS] = "waits",
                [REC_LOST_CALL_KEYS] = "call counters",
                [REC_LOST_WAIT_KEYS] = "wait counters",
                [REC_LOST_PROGRAMS] = "programs",
                [REC_LOST_PROCESSES] = "processes",
                [REC_LOST_MAPPINGS] = "mappings",
                [REC_LOST_STACK_QUEUE] = "stacks",
        };

        /* A newer daemon lost something that has no name here: it is lost all the same. */
        return *LOOK_UP(words, what) ? words[what] : "events of an unknown kind";
}

/* ---- writing ---- */

struct pending { /* rows of one section type */
        struct buf rows;
        size_t row_bytes;
};

struct recording_writer {
        bool header;
        int error;
        struct buf strings;
        struct hash *texts; /* text → offset */
        struct pending sections[TYPE_MAX];
        struct buf layers;
};

struct recording_writer *recording_writer_free(struct recording_writer *w) {
        if (!w)
                return NULL;
        for (size_t i = 0; i < TYPE_MAX; i++)
                buf_done(&w->sections[i].rows);
        buf_done(&w->strings);
        buf_done(&w->layers);
        hash_free(w->texts);
        free(w);
        return NULL;
}

struct recording_writer *recording_writer_new(bool header) {
        struct recording_writer *w = calloc(1, sizeof(*w));

        if (!w)
                return NULL;
        w->header = header;
        w->texts = hash_new();
        buf_putc(&w->strings, '\0');
        if (!w->texts || buf_error(&w->strings) < 0)
                return recording_writer_free(w);
        return w;
}

uint32_t recording_writer_text(struct recording_writer *w, const char *text) {
        uint64_t offset;
        size_t bytes;
        int r;

        if (!text || !*text)
                return 0;
        bytes = strlen(text);
        if (w->strings.size > UINT32_MAX / 2 || bytes > UINT32_MAX / 2) {
                w->error = w->error ?: -EFBIG;
                return 0;
        }
        r = hash_intern(w->texts, text, bytes, w->strings.size, &offset);
        if (r < 0) {
                w->error = w->error ?: r;
                return 0;
        }
        if (r > 0)
                buf_append(&w->strings, text, bytes + 1);
        return (uint32_t) offset;
}

void recording_writer_rows(struct recording_writer *w, enum rec_section type, const void *rows,
                           size_t row_bytes, size_t count) {
        struct pending *p = w->sections + type;

        p->row_bytes = row_bytes;
        if (count > 0)
                buf_append(&p->rows, rows, row_bytes * count);
}

void recording_writer_layer(struct recording_writer *w, const void *layer, size_t bytes) {
        buf_append(&w->layers, layer, bytes);
}

void recording_writer_drop_layers(struct recording_writer *w) {
        buf_reset(&w->layers);
}

static int compress_into(struct buf *out, const struct buf *raw, size_t *ret_bytes) {
        size_t bound = ZSTD_compressBound(raw->size), n;
        _cleanup_free_ void *packed = malloc(bound);

        if (!packed)
                return -ENOMEM;
        n = ZSTD_compress(packed, bound, raw->data, raw->size, ZSTD_LEVEL);
        if (ZSTD_isError(n))
                return -ENOMEM;
        *ret_bytes = n;
        buf_append(out, packed, n);
        return 0;
}

static int write_section(struct buf *out, uint32_t type, const struct buf *raw, size_t row_bytes,
                         bool compress) {
        struct rec_section_header header = {
                .type = type,
                .row_bytes = (uint32_t) row_bytes,
                .raw_bytes = raw->size,
                .stored_bytes = raw->size,
        };
        size_t at = out->size, stored = raw->size;
        int r;

        if (buf_error(raw) < 0)
                return buf_error(raw);
        buf_append(out, &header, sizeof(header));
        if (compress) {
                r = compress_into(out, raw, &stored);
                if (r < 0)
                        return r;
                header.flags = REC_SECTION_ZSTD;
                header.stored_bytes = stored;
        } else
                buf_append(out, raw->data, raw->size);
        buf_extend(out, (8 - stored % 8) % 8);
        if (buf_error(out) < 0)
                return buf_error(out);
        memcpy(out->data + at, &header, sizeof(header));
        return 0;
}

int recording_writer_finish(struct recording_writer *w, bool compress, void **ret, size_t *ret_bytes) {
        static const struct rec_file_header header = { .magic = RECORDING_MAGIC,
                                                       .version = RECORDING_VERSION };
        _cleanup_(buf_done) struct buf out = BUF_NULL;
        char *data;
        int r;

        if (w->error < 0)
                return w->error;
        if (w->header)
                buf_append(&out, &header, sizeof(header));
        r = write_section(&out, REC_STRINGS, &w->strings, 1, compress);
        if (r < 0)
                return r;
        for (uint32_t type = 0; type < TYPE_MAX; type++) {
                const struct pending *p = w->sections + type;

                if (p->rows.size == 0 && buf_error(&p->rows) == 0)
                        continue;
                r = write_section(&out, type, &p->rows, p->row_bytes, compress);
                if (r < 0)
                        return r;
        }
        r = buf_error(&w->layers);
        if (r < 0)
                return r;
        if (w->layers.size > 0)
                buf_append(&out, w->layers.data, w->layers.size);
        r = buf_take(&out, &data, ret_bytes);
        if (r < 0)
                return r;
        *ret = data;
        return 0;
}
