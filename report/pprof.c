/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <zlib.h>

#include "common/hash.h"
#include "common/text.h"
#include "report/names.h"
#include "report/process_index.h"
#include "report/protobuf.h"
#include "report/thread_times.h"
#include "report/writers.h"

/*
 * pprof's profile.proto, gzipped: a location for each frame, with a line for each function that was inlined there, a
 * mapping with its build-id for each module, and two values, nanoseconds on a CPU and nanoseconds blocked. Modules lie
 * side by side in an address space that is made up: a recording has offsets in files.
 */

enum { /* numbers of fields */
       PROFILE_SAMPLE_TYPE = 1,
       PROFILE_SAMPLE = 2,
       PROFILE_MAPPING = 3,
       PROFILE_LOCATION = 4,
       PROFILE_FUNCTION = 5,
       PROFILE_STRING = 6,
       PROFILE_TIME_NANOS = 9,
       PROFILE_DURATION_NANOS = 10,
       PROFILE_PERIOD_TYPE = 11,
       PROFILE_PERIOD = 12,
       PROFILE_DEFAULT_TYPE = 14,
       VALUE_TYPE_TYPE = 1,
       VALUE_TYPE_UNIT = 2,
       SAMPLE_LOCATION = 1,
       SAMPLE_VALUE = 2,
       SAMPLE_LABEL = 3,
       LABEL_KEY = 1,
       LABEL_TEXT = 2,
       LABEL_NUMBER = 3,
       MAPPING_ID = 1,
       MAPPING_START = 2,
       MAPPING_LIMIT = 3,
       MAPPING_FILE = 5,
       MAPPING_BUILD_ID = 6,
       MAPPING_HAS_FUNCTIONS = 7,
       MAPPING_HAS_FILENAMES = 8,
       MAPPING_HAS_LINES = 9,
       MAPPING_HAS_INLINES = 10,
       LOCATION_ID = 1,
       LOCATION_MAPPING = 2,
       LOCATION_ADDRESS = 3,
       LOCATION_LINE = 4,
       LINE_FUNCTION = 1,
       LINE_LINE = 2,
       FUNCTION_ID = 1,
       FUNCTION_NAME = 2,
       FUNCTION_SYSTEM_NAME = 3,
       FUNCTION_FILE = 4,
};

enum {
        MODULE_SHIFT = 40, /* the room of each module in the made-up address space */
        FRAMES_MAX = 1024, /* of one stack */
        TOTAL_FRAMES_MAX =
                64 * 1024 * 1024, /* of all: a file can make a few bytes into stacks without end */
};

/* Equal samples are one. */
struct key {
        uint32_t process, tid, stack, leaf; /* leaf: location of what it did in the kernel, 0: none */
};

struct group {
        struct key key;
        uint64_t cpu_ns, blocked_ns;
};

struct pprof {
        const struct recording *r;
        struct buf out;
        struct hash *strings, *functions, *marks, *known_groups;
        struct group *groups;
        size_t n_groups, groups_allocated;
        bool *written; /* per frame: its location */
        bool *mapped; /* per module */
        size_t frames;
};

static void pprof_done(struct pprof *w) {
        buf_done(&w->out);
        hash_free(w->strings);
        hash_free(w->functions);
        hash_free(w->marks);
        hash_free(w->known_groups);
        free(w->groups);
        free(w->written);
        free(w->mapped);
}

/* Index in the table of strings, whose first one is empty. A failure sticks in `out`. */
static uint64_t text_index(struct pprof *w, const char *raw) {
        _cleanup_(buf_done) struct buf text = BUF_NULL;
        uint64_t index = 0;
        int r;

        text_utf8(&text, raw);
        r = buf_error(&text) < 0
                    ? -ENOMEM
                    : hash_intern(w->strings, buf_text(&text), text.size, hash_count(w->strings), &index);
        if (r < 0)
                w->out.error = w->out.error ?: r;
        if (r > 0)
                protobuf_text(&w->out, PROFILE_STRING, buf_text(&text));
        return index;
}

static void put_value_type(struct pprof *w, uint32_t field, const char *type, const char *unit) {
        _cleanup_(buf_done) struct buf m = BUF_NULL;

        protobuf_number(&m, VALUE_TYPE_TYPE, text_index(w, type));
        protobuf_number(&m, VALUE_TYPE_UNIT, text_index(w, unit));
        protobuf_message(&w->out, field, &m);
}

/* Its id. */
static uint64_t function_of(struct pprof *w, const char *name, const char *full, const char *file) {
        uint64_t key[3] = { text_index(w, name), text_index(w, full), text_index(w, file) }, id = 0;
        int r = hash_intern(w->functions, key, sizeof(key), hash_count(w->functions) + 1, &id);

        if (r < 0)
                w->out.error = w->out.error ?: r;
        if (r > 0) {
                _cleanup_(buf_done) struct buf m = BUF_NULL;

                protobuf_number(&m, FUNCTION_ID, id);
                protobuf_number(&m, FUNCTION_NAME, key[0]);
                protobuf_number(&m, FUNCTION_SYSTEM_NAME, key[1]);
                protobuf_number(&m, FUNCTION_FILE, key[2]);
                protobuf_message(&w->out, PROFILE_FUNCTION, &m);
        }
        return id;
}

static void put_line(struct pprof *w, struct buf *location, uint64_t function, uint32_t line) {
        _cleanup_(buf_done) struct buf m = BUF_NULL;

        protobuf_number(&m, LINE_FUNCTION, function);
        protobuf_number(&m, LINE_LINE, line);
        protobuf_message(location, LOCATION_LINE, &m);
}

static void put_mapping(struct pprof *w, uint32_t module) {
        const struct rec_module *m = w->r->modules + module;
        _cleanup_(buf_done) struct buf b = BUF_NULL, id = BUF_NULL;

        if (w->mapped[module])
                return;
        w->mapped[module] = true;
        text_hex(&id, m->build_id, m->build_id_bytes);
        protobuf_number(&b, MAPPING_ID, (uint64_t) module + 1);
        protobuf_number(&b, MAPPING_START, ((uint64_t) module + 1) << MODULE_SHIFT);
        protobuf_number(&b, MAPPING_LIMIT, ((uint64_t) module + 2) << MODULE_SHIFT);
        protobuf_number(&b, MAPPING_FILE, text_index(w, recording_text(w->r, m->path)));
        protobuf_number(&b, MAPPING_BUILD_ID, text_index(w, buf_text(&id)));
        for (uint32_t field = MAPPING_HAS_FUNCTIONS; field <= MAPPING_HAS_INLINES; field++)
                protobuf_number(&b, field, 1); /* all that could be found is here */
        protobuf_message(&w->out, PROFILE_MAPPING, &b);
}

static uint64_t frame_location(struct pprof *w, uint32_t frame) {
        const struct rec_frame *f = w->r->frames + frame;
        _cleanup_(buf_done) struct buf m = BUF_NULL;
        const struct rec_name *rows = NULL;
        uint32_t n = frame_names(w->r, frame, &rows);
        uint64_t id = (uint64_t) frame + 1;

        if (w->written[frame])
                return id;
        w->written[frame] = true;
        protobuf_number(&m, LOCATION_ID, id);
        if (f->module < w->r->n_modules) {
                put_mapping(w, f->module);
                protobuf_number(&m, LOCATION_MAPPING, (uint64_t) f->module + 1);
                protobuf_number(&m, LOCATION_ADDRESS,
                                ((uint64_t) f->module + 1) << MODULE_SHIFT |
                                        (f->offset & ((UINT64_C(1) << MODULE_SHIFT) - 1)));
        } else
                protobuf_number(&m, LOCATION_ADDRESS, f->offset);
        for (uint32_t i = 0; i < MAX(n, UINT32_C(1)); i++) {
                _cleanup_(buf_done) struct buf name = BUF_NULL, full = BUF_NULL;
                const struct rec_name *row = n > 0 ? rows + i : NULL;

                frame_short_name(&name, w->r, frame, row);
                frame_full_name(&full, w->r, frame, row);
                put_line(w, &m,
                         function_of(w, buf_text(&name), buf_text(&full),
                                     row && row->file ? recording_text(w->r, row->file) : ""),
                         row ? row->line : 0);
        }
        protobuf_message(&w->out, PROFILE_LOCATION, &m);
        return id;
}

/* The location of "[openat]" or of a mark; they have the ids behind those of the frames. */
static uint64_t mark_location(struct pprof *w, const char *text) {
        uint64_t id = 0;
        int r = hash_intern(w->marks, text, strlen(text),
                            (uint64_t) w->r->n_frames + 1 + hash_count(w->marks), &id);

        if (r < 0)
                w->out.error = w->out.error ?: r;
        if (r > 0) {
                _cleanup_(buf_done) struct buf m = BUF_NULL;

                protobuf_number(&m, LOCATION_ID, id);
                put_line(w, &m, function_of(w, text, text, ""), 0);
                protobuf_message(&w->out, PROFILE_LOCATION, &m);
        }
        return id;
}

static int add_group(struct pprof *w, const struct key *key, uint64_t cpu_ns, uint64_t blocked_ns) {
        uint64_t index;
        int r = hash_intern(w->known_groups, key, sizeof(*key), w->n_groups, &index);

        if (r < 0)
                return r;
        if (r > 0) {
                if (w->n_groups == w->groups_allocated) {
                        size_t want = MAX(w->groups_allocated * 2, (size_t) 256);
                        struct group *grown = reallocarray(w->groups, want, sizeof(*grown));

                        if (!grown)
                                return -ENOMEM;
                        w->groups = grown;
                        w->groups_allocated = want;
                }
                w->groups[w->n_groups++] = (struct group){ .key = *key };
        }
        w->groups[index].cpu_ns += cpu_ns;
        w->groups[index].blocked_ns += blocked_ns;
        return 0;
}

static int add_sample(struct pprof *w, const struct rec_sample *s) {
        _cleanup_(buf_done) struct buf leaf = BUF_NULL;
        struct key key = { .process = s->process, .tid = s->tid, .stack = s->stack };
        bool cpu = sample_is_cpu(s);

        if (s->process >= w->r->n_processes || s->weight_ns == 0)
                return 0;
        sample_leaf(&leaf, s);
        if (leaf.size > 0)
                key.leaf = (uint32_t) mark_location(w, buf_text(&leaf));
        return buf_error(&leaf) < 0 ? -ENOMEM
                                    : add_group(w, &key, cpu ? s->weight_ns : 0, cpu ? 0 : s->weight_ns);
}

static void put_label(struct pprof *w, struct buf *sample, const char *key, const char *text,
                      uint64_t number) {
        _cleanup_(buf_done) struct buf m = BUF_NULL;

        protobuf_number(&m, LABEL_KEY, text_index(w, key));
        if (text)
                protobuf_number(&m, LABEL_TEXT, text_index(w, text));
        else
                protobuf_number(&m, LABEL_NUMBER, number);
        protobuf_message(sample, SAMPLE_LABEL, &m);
}

static void put_group(struct pprof *w, const struct group *g) {
        uint64_t locations[FRAMES_MAX + 2], values[2] = { g->cpu_ns, g->blocked_ns };
        const struct rec_stack *stack = g->key.stack < w->r->n_stacks ? w->r->stacks + g->key.stack : NULL;
        _cleanup_(buf_done) struct buf m = BUF_NULL;
        size_t n = 0;

        if (g->key.leaf != 0)
                locations[n++] = g->key.leaf;
        for (uint32_t i = 0;
             stack && i < MIN(stack->count, (uint32_t) FRAMES_MAX) && w->frames < TOTAL_FRAMES_MAX;
             i++, w->frames++)
                locations[n++] = frame_location(w, w->r->stack_frames[stack->first + i]);
        if (!stack || (stack->count == 0 && stack->end != REC_STACK_GONE))
                locations[n++] = mark_location(w, "[no stack]");
        else if (stack->end != REC_STACK_COMPLETE && stack->end != REC_STACK_GONE)
                locations[n++] = mark_location(w, "[incomplete stack]");
        protobuf_packed(&m, SAMPLE_LOCATION, locations, n);
        protobuf_packed(&m, SAMPLE_VALUE, values, ARRAY_SIZE(values));
        put_label(w, &m, "unit", recording_text(w->r, w->r->start->unit), 0);
        put_label(w, &m, "process", process_name(w->r, g->key.process), 0);
        put_label(w, &m, "pid", NULL, w->r->processes[g->key.process].pid);
        put_label(w, &m, "tid", NULL, g->key.tid);
        protobuf_message(&w->out, PROFILE_SAMPLE, &m);
}

static int build(struct pprof *w, const struct analysis *a) {
        const struct recording *r = w->r = a->recording;
        int error = 0;

        w->strings = hash_new();
        w->functions = hash_new();
        w->marks = hash_new();
        w->known_groups = hash_new();
        w->written = calloc((size_t) r->n_frames + 1, sizeof(*w->written));
        w->mapped = calloc((size_t) r->n_modules + 1, sizeof(*w->mapped));
        if (!w->strings || !w->functions || !w->marks || !w->known_groups || !w->written || !w->mapped)
                return -ENOMEM;
        text_index(w, "");
        put_value_type(w, PROFILE_SAMPLE_TYPE, "cpu", "nanoseconds");
        put_value_type(w, PROFILE_SAMPLE_TYPE, "wait", "nanoseconds");
        for (uint32_t i = 0; error >= 0 && i < r->n_samples; i++)
                error = add_sample(w, r->samples + i);
        for (size_t i = 0; error >= 0 && i < w->n_groups; i++)
                put_group(w, w->groups + i);
        put_value_type(w, PROFILE_PERIOD_TYPE, "cpu", "nanoseconds");
        protobuf_number(&w->out, PROFILE_PERIOD,
                        r->start->frequency_hz > 0 ? NSEC_PER_SEC / r->start->frequency_hz : 0);
        protobuf_number(&w->out, PROFILE_TIME_NANOS, r->start->realtime_usec * NSEC_PER_USEC);
        protobuf_number(&w->out, PROFILE_DURATION_NANOS, a->duration_ns);
        protobuf_number(&w->out, PROFILE_DEFAULT_TYPE, text_index(w, "cpu"));
        return error < 0 ? error : buf_error(&w->out);
}

static int put_gzipped(const struct buf *b, FILE *out) {
        enum { WINDOW_BITS_GZIP = 15 + 16, MEMORY_LEVEL = 8 }; /* zlib.h: 16 more make a gzip header */
        uint8_t piece[16384] = {};
        z_stream z = { .next_in = (uint8_t *) buf_text(b), .avail_in = (uInt) b->size };
        int r = deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, WINDOW_BITS_GZIP, MEMORY_LEVEL,
                             Z_DEFAULT_STRATEGY);

        if (r != Z_OK)
                return -ENOMEM;
        do {
                z.next_out = piece;
                z.avail_out = sizeof(piece);
                r = deflate(&z, Z_FINISH);
                fwrite(piece, 1, sizeof(piece) - z.avail_out, out);
        } while (r == Z_OK);
        deflateEnd(&z);
        return r == Z_STREAM_END ? 0 : -ENOMEM;
}

int report_write_pprof(const struct analysis *a, const struct report_options *options, FILE *out) {
        _cleanup_(pprof_done) struct pprof w = { .out = BUF_NULL };
        int r = build(&w, a);

        return r < 0 ? r : put_gzipped(&w.out, out);
}
