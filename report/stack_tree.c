/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/stack_tree.h"

#include "common/hash.h"
#include "common/macro.h"
#include "report/dotnet.h"
#include "report/process_index.h"
#include "report/runtime_part.h"
#include "report/thread_times.h"

enum {
        DEPTH_MAX = 1024, /* frames of one stack that are shown; the unwinder stops earlier */
        PATH_WORDS_MAX = 64 * 1024 * 1024, /* of all different stacks; beyond, a stack is a mark */
        PLACE_MAX = 4096, /* bytes of a path */
        NAME_MAX_BYTES = 16 * 1024, /* more than any name has that report/names.h gives */
};

/* Instead of the index of a stack. */
enum {
        NO_STACK = REC_NONE,
        NO_STACK_COMPAT = REC_NONE - 1,
        NO_STACK_AT_ALL = REC_NONE - 2 /* a leaf only */
};

/* One kind of stack: equal samples are counted together. */
struct group {
        uint32_t process_label, thread_label, leaf_label; /* REC_NONE: none */
        uint32_t stack; /* index, or NO_STACK … */
        uint32_t kernel_stack; /* index, or REC_NONE */
        uint32_t reserved; /* 0: groups are compared by their bytes */
        uint64_t amount;
        uint32_t *path; /* ranks of labels, root first; borrowed from builder.words */
        size_t length;
};

struct builder {
        const struct recording *r;
        enum report_view view;
        bool kernel;
        enum stack_tree_direction direction;
        struct thread_times threads;
        uint32_t *process_labels; /* the last one: unknown */
        struct stack_tree tree;
        struct hash *known; /* kind, text → label */
        size_t labels_allocated;
        bool *shown; /* per frame: it is in the picture */
        bool *dotnet; /* per module */
        struct hash *parameters; /* short name of a method → index of its parameters */
        struct hash *overloaded; /* short names that have more than one list of them */
        uint32_t *frame_labels, *first_frame_label; /* per frame, outermost inline first */
        uint32_t *ranks; /* label → place in the order of texts */
        struct group *groups;
        size_t n_groups;
        uint32_t *words;
};

static void builder_done(struct builder *b) {
        stack_tree_done(&b->tree);
        thread_times_done(&b->threads);
        free(b->process_labels);
        hash_free(b->known);
        hash_free(b->parameters);
        hash_free(b->overloaded);
        free(b->shown);
        free(b->dotnet);
        free(b->frame_labels);
        free(b->first_frame_label);
        free(b->ranks);
        free(b->groups);
        free(b->words);
}

/* ---- labels ---- */

/* While it grows the text buffer moves: texts are kept as offsets until it is complete. */
static const char *offset_as_text(size_t offset) {
        return (const char *) offset;
}

static size_t keep_text(struct builder *b, const char *text, size_t size_max) {
        size_t at = b->tree.texts.size;

        buf_append(&b->tree.texts, text, strnlen(text, size_max));
        buf_putc(&b->tree.texts, '\0');
        return at;
}

static int add_label(struct builder *b, enum frame_kind kind, const char *text, const char *full,
                     const char *place, uint32_t *ret) {
        _cleanup_(buf_done) struct buf key = BUF_NULL;
        uint64_t label = 0;
        size_t text_at;
        int r;

        buf_putc(&key, (char) kind);
        buf_puts(&key, text);
        if (buf_error(&key) < 0)
                return buf_error(&key);
        r = hash_intern(b->known, key.data, key.size, b->tree.n_labels, &label);
        if (r < 0)
                return r;
        *ret = (uint32_t) label;
        if (r == 0)
                return 0;

        if (b->tree.n_labels == b->labels_allocated) {
                size_t allocated = MAX(b->labels_allocated * 2, (size_t) 256);
                struct stack_label *grown = reallocarray(b->tree.labels, allocated, sizeof(*grown));

                if (!grown)
                        return -ENOMEM;
                b->tree.labels = grown;
                b->labels_allocated = allocated;
        }
        text_at = keep_text(b, text, NAME_MAX_BYTES);
        b->tree.labels[b->tree.n_labels++] = (struct stack_label){
                .text = offset_as_text(text_at),
                .full = offset_as_text(streq(full, text) ? text_at : keep_text(b, full, NAME_MAX_BYTES)),
                .place = offset_as_text(keep_text(b, place, PLACE_MAX)),
                .kind = kind,
        };
        return buf_error(&b->tree.texts);
}

static int add_mark(struct builder *b, enum frame_kind kind, const char *text, uint32_t *ret) {
        return add_label(b, kind, text, text, "", ret);
}

static const struct runtime_part *part_of(const struct builder *b, uint32_t frame, const char *name,
                                          enum frame_kind kind) {
        uint32_t module = b->r->frames[frame].module;
        bool dotnet = kind == FRAME_MANAGED || (module < b->r->n_modules && b->dotnet[module]);

        return dotnet ? runtime_part(name) : NULL;
}

static int add_frame_row(struct builder *b, uint32_t frame, const struct rec_name *row, uint32_t *ret) {
        _cleanup_(buf_done) struct buf text = BUF_NULL, full = BUF_NULL;
        enum frame_kind kind = frame_kind_of(b->r, frame);
        uint32_t module = b->r->frames[frame].module;
        const char *place = module < b->r->n_modules ? recording_text(b->r, b->r->modules[module].path) : "";
        const struct runtime_part *part;
        uint64_t ignored;

        frame_short_name(&text, b->r, frame, row);
        frame_full_name(&full, b->r, frame, row);
        if (buf_error(&text) < 0 || buf_error(&full) < 0)
                return -ENOMEM;
        part = part_of(b, frame, buf_text(&text), kind);
        if (part)
                return add_label(b, FRAME_RUNTIME, part->label, part->words, place, ret);
        if (hash_get(b->overloaded, buf_text(&text), text.size, &ignored) == 0)
                frame_parameters(&text, b->r, row);
        return buf_error(&text) < 0 ? -ENOMEM
                                    : add_label(b, kind, buf_text(&text), buf_text(&full), place, ret);
}

/* ---- which frames, and what tells their names apart ---- */

static bool is_in_view(const struct builder *b, const struct rec_sample *s) {
        switch (b->view) {
        case REPORT_CPU: return sample_is_cpu(s);
        case REPORT_WAITS: return !sample_is_cpu(s);
        default: return true;
        }
}

static uint32_t kernel_stack_of(const struct builder *b, const struct rec_sample *s) {
        return b->kernel && s->kernel_stack < b->r->n_stacks ? s->kernel_stack : REC_NONE;
}

static void mark_stack(struct builder *b, uint32_t stack, bool *seen) {
        const struct recording *r = b->r;

        if (stack >= r->n_stacks || seen[stack])
                return;
        seen[stack] = true;
        for (uint32_t i = 0; i < MIN(r->stacks[stack].count, (uint32_t) DEPTH_MAX); i++)
                b->shown[r->stack_frames[r->stacks[stack].first + i]] = true;
}

static int mark_shown_frames(struct builder *b) {
        const struct recording *r = b->r;
        _cleanup_free_ bool *seen = calloc((size_t) r->n_stacks + 1, sizeof(*seen));

        b->shown = calloc((size_t) r->n_frames + 1, sizeof(*b->shown));
        if (!seen || !b->shown)
                return -ENOMEM;
        for (uint32_t i = 0; i < r->n_samples; i++) {
                if (!is_in_view(b, r->samples + i))
                        continue;
                mark_stack(b, r->samples[i].stack, seen);
                mark_stack(b, kernel_stack_of(b, r->samples + i), seen);
        }
        return 0;
}

/* Methods whose short name stands for more than one list of parameters in this picture. */
static int note_parameters(struct builder *b, struct hash *lists, uint32_t frame,
                           const struct rec_name *row) {
        _cleanup_(buf_done) struct buf name = BUF_NULL, list = BUF_NULL;
        uint64_t index, known;
        int error;

        frame_parameters(&list, b->r, row);
        if (list.size == 0)
                return buf_error(&list);
        frame_short_name(&name, b->r, frame, row);
        if (buf_error(&name) < 0 || buf_error(&list) < 0)
                return -ENOMEM;
        error = hash_intern(lists, list.data, list.size, hash_count(lists), &index);
        if (error >= 0)
                error = hash_intern(b->parameters, buf_text(&name), name.size, index, &known);
        if (error == 0 && known != index)
                error = hash_put(b->overloaded, buf_text(&name), name.size, 1);
        return MIN(error, 0);
}

static int find_overloads(struct builder *b) {
        _cleanup_(hash_freep) struct hash *lists = hash_new();

        b->parameters = hash_new();
        b->overloaded = hash_new();
        if (!lists || !b->parameters || !b->overloaded)
                return -ENOMEM;
        for (uint32_t frame = 0; frame < b->r->n_frames; frame++) {
                const struct rec_name *rows = NULL;
                uint32_t n = b->shown[frame] ? frame_names(b->r, frame, &rows) : 0;

                for (uint32_t i = 0; i < n; i++) {
                        int error = note_parameters(b, lists, frame, rows + i);

                        if (error < 0)
                                return error;
                }
        }
        return 0;
}

static int label_frames(struct builder *b) {
        const struct recording *r = b->r;
        size_t n = 0;

        b->first_frame_label = calloc((size_t) r->n_frames + 1, sizeof(*b->first_frame_label));
        b->frame_labels = calloc((size_t) r->n_frames + r->n_names + 1, sizeof(*b->frame_labels));
        if (!b->first_frame_label || !b->frame_labels)
                return -ENOMEM;
        for (uint32_t frame = 0; frame < r->n_frames; frame++) {
                const struct rec_name *rows = NULL;
                uint32_t n_rows = frame_names(r, frame, &rows);
                int error;

                b->first_frame_label[frame] = (uint32_t) n;
                for (uint32_t i = MAX(n_rows, UINT32_C(1)); i > 0 && b->shown[frame]; i--) {
                        error = add_frame_row(b, frame, n_rows > 0 ? rows + i - 1 : NULL,
                                              b->frame_labels + n);
                        if (error < 0)
                                return error;
                        n++;
                }
        }
        b->first_frame_label[r->n_frames] = (uint32_t) n;
        return 0;
}

/* ---- groups of equal samples ---- */

/* "[openat]"; in user code REC_NONE: the innermost row is a frame. */
static int leaf_label(struct builder *b, const struct rec_sample *s, uint32_t *ret) {
        _cleanup_(buf_done) struct buf text = BUF_NULL;

        *ret = REC_NONE;
        sample_leaf(&text, s);
        if (buf_error(&text) < 0 || text.size == 0)
                return buf_error(&text);
        return add_mark(b, FRAME_KERNEL, buf_text(&text), ret);
}

static int label_processes(struct builder *b) {
        b->process_labels = calloc((size_t) b->r->n_processes + 1, sizeof(*b->process_labels));
        if (!b->process_labels)
                return -ENOMEM;
        for (uint32_t i = 0; i < b->r->n_processes; i++) {
                const char *name = process_name(b->r, i),
                           *exe = recording_text(b->r, b->r->processes[i].exe);
                int error;

                name = *name ? name : "[unknown process]";
                error = add_label(b, FRAME_PROCESS, name, *exe ? exe : name, "", b->process_labels + i);
                if (error < 0)
                        return error;
        }
        return add_mark(b, FRAME_PROCESS, "[unknown process]", b->process_labels + b->r->n_processes);
}

static uint32_t process_label(const struct builder *b, uint32_t process) {
        return b->process_labels[MIN(process, b->r->n_processes)];
}

/* A row for the thread, where the view has one. */
static int thread_label(struct builder *b, const struct thread_time *thread, uint32_t *ret) {
        _cleanup_(buf_done) struct buf text = BUF_NULL;

        *ret = REC_NONE;
        if (b->view != REPORT_WALL || !thread)
                return 0;
        buf_printf(&text, "%s (thread %u)", recording_text(b->r, thread->comm), thread->tid);
        return buf_error(&text) < 0 ? buf_error(&text) : add_mark(b, FRAME_PROCESS, buf_text(&text), ret);
}

/* Of the thread's exact time on a CPU each of its samples stands for the same part. */
static uint64_t amount_of(const struct builder *b, const struct rec_sample *s,
                          const struct thread_time *thread) {
        uint64_t ns = s->weight_ns;

        if (b->view == REPORT_CPU)
                return s->weight_ns > 0;
        if (sample_is_cpu(s) && thread && thread->on_cpu_ns > 0)
                ns = thread->on_cpu_ns / thread->cpu_samples;
        return ns / NSEC_PER_USEC;
}

static int make_group(struct builder *b, const struct rec_sample *s, struct group *g) {
        const struct thread_time *thread = thread_times_find(&b->threads, s->process, s->tid);
        int error = leaf_label(b, s, &g->leaf_label);

        if (error >= 0)
                error = thread_label(b, thread, &g->thread_label);
        if (error < 0)
                return error;
        g->process_label = process_label(b, s->process);
        g->stack = s->stack < b->r->n_stacks      ? s->stack
                   : s->flags & REC_SAMPLE_COMPAT ? NO_STACK_COMPAT
                                                  : NO_STACK;
        g->kernel_stack = kernel_stack_of(b, s);
        g->amount = amount_of(b, s, thread);
        return 0;
}

static int add_rest(struct builder *b, const struct thread_time *thread, const char *mark, uint64_t ns,
                    size_t *n) {
        struct group *g = b->groups + *n;
        int error;

        if (ns < NSEC_PER_USEC)
                return 0;
        error = thread_label(b, thread, &g->thread_label);
        if (error >= 0)
                error = add_mark(b, FRAME_MARK, mark, &g->leaf_label);
        if (error < 0)
                return error;
        g->process_label = process_label(b, thread->process);
        g->stack = NO_STACK_AT_ALL;
        g->kernel_stack = REC_NONE;
        g->amount = ns / NSEC_PER_USEC;
        ++*n;
        return 0;
}

/* What no sample stands for. */
static int add_rests(struct builder *b, size_t *n) {
        for (size_t i = 0; i < b->threads.n_threads; i++) {
                const struct thread_time *t = b->threads.threads + i;
                int error = 0;

                if (b->view != REPORT_CPU && t->blocked_ns > t->wait_weight_ns)
                        error = add_rest(b, t, "[short waits]", t->blocked_ns - t->wait_weight_ns, n);
                if (error >= 0 && b->view == REPORT_WALL && t->cpu_samples == 0)
                        error = add_rest(b, t, "[on a CPU, without a sample]", t->on_cpu_ns, n);
                if (error >= 0 && b->view == REPORT_WALL)
                        error = add_rest(b, t, "[waiting for a CPU]", t->runnable_ns, n);
                if (error < 0)
                        return error;
        }
        return 0;
}

static int by_group(const void *x, const void *y) {
        return memcmp(x, y, offsetof(struct group, amount));
}

static void merge_equal(struct builder *b, size_t n) {
        qsort(b->groups, n, sizeof(*b->groups), by_group);
        for (size_t i = 0; i < n; i++)
                if (b->n_groups > 0 && by_group(b->groups + b->n_groups - 1, b->groups + i) == 0)
                        b->groups[b->n_groups - 1].amount += b->groups[i].amount;
                else
                        b->groups[b->n_groups++] = b->groups[i];
}

static int collect_groups(struct builder *b) {
        size_t n = 0;
        int error = label_processes(b);

        if (error >= 0)
                error = thread_times_init(b->r, &b->threads);
        if (error < 0)
                return error;
        b->groups = calloc((size_t) b->r->n_samples + 3 * b->threads.n_threads + 1, sizeof(*b->groups));
        if (!b->groups)
                return -ENOMEM;
        for (uint32_t i = 0; i < b->r->n_samples; i++) {
                if (!is_in_view(b, b->r->samples + i))
                        continue;
                error = make_group(b, b->r->samples + i, b->groups + n);
                if (error < 0)
                        return error;
                n += b->groups[n].amount > 0;
        }
        error = add_rests(b, &n);
        if (error < 0)
                return error;
        merge_equal(b, n);
        return 0;
}

/* ---- paths ---- */

struct marks {
        uint32_t root, incomplete, no_stack, compat, deeper;
};

static int add_marks(struct builder *b, struct marks *ret) {
        const struct {
                uint32_t *label;
                enum frame_kind kind;
                const char *text;
        } all[] = {
                { &ret->root, FRAME_PROCESS, recording_text(b->r, b->r->start->unit) },
                { &ret->incomplete, FRAME_MARK, "[incomplete stack]" },
                { &ret->no_stack, FRAME_MARK, "[no stack]" },
                { &ret->compat, FRAME_MARK, "[no stack: 32-bit]" },
                { &ret->deeper, FRAME_MARK, "[deeper]" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
                int error = add_mark(b, all[i].kind, all[i].text, all[i].label);

                if (error < 0)
                        return error;
        }
        return 0;
}

static size_t stack_room(const struct builder *b, uint32_t stack) {
        const struct rec_stack *s;
        size_t room = 0;

        if (stack >= b->r->n_stacks)
                return 0;
        s = b->r->stacks + stack;
        for (uint32_t i = 0; i < MIN(s->count, (uint32_t) DEPTH_MAX); i++) {
                uint32_t frame = b->r->stack_frames[s->first + i];

                room += b->first_frame_label[frame + 1] - b->first_frame_label[frame];
        }
        return room;
}

/* Words that the path of a group may need. */
static size_t path_room(const struct builder *b, const struct group *g) {
        enum { MARKS = 5 }; /* process, thread, mark, leaf, [deeper] */

        return MARKS + stack_room(b, g->stack) + stack_room(b, g->kernel_stack);
}

static void put(struct group *g, uint32_t label) {
        g->path[g->length++] = label;
}

/* "[GC]" called by "[GC]" is one row. */
static bool continues_part(const struct builder *b, const struct group *g, uint32_t label) {
        return g->length > 0 && g->path[g->length - 1] == label &&
               b->tree.labels[label].kind == FRAME_RUNTIME &&
               buf_text(&b->tree.texts)[(size_t) b->tree.labels[label].text] == '[';
}

static void put_frames(const struct builder *b, const struct rec_stack *s, uint32_t shown, struct group *g) {
        for (uint32_t i = shown; i > 0; i--) {
                uint32_t frame = b->r->stack_frames[s->first + i - 1];

                for (uint32_t j = b->first_frame_label[frame]; j < b->first_frame_label[frame + 1]; j++)
                        if (!continues_part(b, g, b->frame_labels[j]))
                                put(g, b->frame_labels[j]);
        }
}

static void put_stack(const struct builder *b, const struct marks *marks, struct group *g) {
        const struct rec_stack *s = b->r->stacks + g->stack;
        uint32_t shown = MIN(s->count, (uint32_t) DEPTH_MAX);

        if (s->end == REC_STACK_GONE)
                return; /* nothing is missing: what it is doing there is said by the call */
        if (s->count == 0 || s->end == REC_STACK_COMPAT)
                put(g, s->end == REC_STACK_COMPAT ? marks->compat : marks->no_stack);
        else if (s->count > shown)
                put(g, marks->deeper);
        else if (s->end != REC_STACK_COMPLETE)
                put(g, marks->incomplete);
        put_frames(b, s, shown, g);
}

static void put_kernel_stack(const struct builder *b, struct group *g) {
        const struct rec_stack *s = b->r->stacks + g->kernel_stack;

        put_frames(b, s, MIN(s->count, (uint32_t) DEPTH_MAX), g);
}

static void reverse(uint32_t *words, size_t n) {
        for (size_t i = 0; i < n / 2; i++) {
                uint32_t kept = words[i];

                words[i] = words[n - 1 - i];
                words[n - 1 - i] = kept;
        }
}

static int make_paths(struct builder *b, const struct marks *marks) {
        size_t needed = 0, used = 0;

        for (size_t i = 0; i < b->n_groups; i++) {
                size_t room = path_room(b, b->groups + i);

                if (needed + room + (b->n_groups - i) * 5 > PATH_WORDS_MAX) {
                        b->groups[i].stack = NO_STACK;
                        b->groups[i].kernel_stack = REC_NONE;
                }
                needed += path_room(b, b->groups + i);
        }
        b->words = calloc(needed + 1, sizeof(*b->words));
        if (!b->words)
                return -ENOMEM;
        for (size_t i = 0; i < b->n_groups; i++) {
                struct group *g = b->groups + i;

                g->path = b->words + used;
                put(g, g->process_label);
                if (g->thread_label != REC_NONE)
                        put(g, g->thread_label);
                if (g->stack < b->r->n_stacks)
                        put_stack(b, marks, g);
                else if (g->stack != NO_STACK_AT_ALL)
                        put(g, g->stack == NO_STACK ? marks->no_stack : marks->compat);
                if (g->leaf_label != REC_NONE)
                        put(g, g->leaf_label);
                if (g->kernel_stack != REC_NONE)
                        put_kernel_stack(b, g);
                used += g->length;
                if (b->direction == STACK_TREE_UP)
                        reverse(g->path, g->length);
        }
        return 0;
}

/* ---- the order of labels, and the tree ---- */

static int by_text(const void *x, const void *y, void *userdata) {
        const struct stack_label *labels = userdata, *a = labels + *(const uint32_t *) x,
                                 *b = labels + *(const uint32_t *) y;
        int c = strcmp(a->text, b->text);

        return c != 0 ? c : (int) a->kind - (int) b->kind;
}

static int rank_labels(struct builder *b) {
        _cleanup_free_ uint32_t *order = calloc(b->tree.n_labels + 1, sizeof(*order));

        b->ranks = calloc(b->tree.n_labels + 1, sizeof(*b->ranks));
        if (!order || !b->ranks)
                return -ENOMEM;
        for (size_t i = 0; i < b->tree.n_labels; i++) {
                struct stack_label *l = b->tree.labels + i;

                order[i] = (uint32_t) i;
                l->text = buf_text(&b->tree.texts) + (size_t) l->text;
                l->full = buf_text(&b->tree.texts) + (size_t) l->full;
                l->place = buf_text(&b->tree.texts) + (size_t) l->place;
        }
        qsort_r(order, b->tree.n_labels, sizeof(*order), by_text, b->tree.labels);
        for (size_t i = 0; i < b->tree.n_labels; i++)
                b->ranks[order[i]] = (uint32_t) i;
        return 0;
}

static int by_path(const void *x, const void *y, void *userdata) {
        const struct group *a = x, *b = y;
        const uint32_t *ranks = userdata;

        for (size_t i = 0; i < MIN(a->length, b->length); i++)
                if (a->path[i] != b->path[i])
                        return ranks[a->path[i]] < ranks[b->path[i]] ? -1 : 1;
        return a->length < b->length ? -1 : a->length > b->length;
}

/* Groups come in the order of their paths, so a path shares its beginning with the one before, and `open`
 * (the nodes of that path) is all that has to be looked at. */
static int grow_tree(struct builder *b, uint32_t root_label) {
        struct stack_tree *t = &b->tree;
        size_t room = 1, longest = 0;
        _cleanup_free_ uint32_t *open = NULL;

        for (size_t i = 0; i < b->n_groups; i++) {
                room += b->groups[i].length;
                longest = MAX(longest, b->groups[i].length);
        }
        t->nodes = calloc(room, sizeof(*t->nodes));
        open = calloc(longest + 1, sizeof(*open));
        if (!t->nodes || !open)
                return -ENOMEM;
        t->nodes[0] = (struct stack_node){ .label = root_label, .parent = REC_NONE };
        t->n_nodes = 1;
        for (size_t i = 0; i < b->n_groups; i++) {
                const struct group *g = b->groups + i, *previous = i > 0 ? g - 1 : NULL;
                size_t common = 0;

                while (previous && common < g->length && common < previous->length &&
                       g->path[common] == previous->path[common])
                        common++;
                for (size_t d = common; d < g->length; d++) {
                        open[d + 1] = (uint32_t) t->n_nodes;
                        t->nodes[t->n_nodes++] = (struct stack_node){ .label = g->path[d],
                                                                      .parent = open[d],
                                                                      .depth = (uint32_t) d + 1 };
                }
                t->nodes[open[g->length]].self += g->amount;
        }
        return 0;
}

static void sum_up(struct stack_tree *t) {
        for (size_t i = t->n_nodes; i-- > 0;) {
                struct stack_node *n = t->nodes + i;

                n->total += n->self;
                n->end = MAX(n->end, (uint32_t) i + 1);
                t->depth = MAX(t->depth, n->depth);
                if (n->parent != REC_NONE) {
                        t->nodes[n->parent].total += n->total;
                        t->nodes[n->parent].end = MAX(t->nodes[n->parent].end, n->end);
                }
        }
}

static int build(struct builder *b) {
        struct marks marks;
        int error;

        b->known = hash_new();
        if (!b->known)
                return -ENOMEM;
        error = add_marks(b, &marks);
        if (error < 0)
                return error;
        error = mark_shown_frames(b);
        if (error >= 0)
                error = dotnet_modules(b->r, &b->dotnet);
        if (error >= 0)
                error = find_overloads(b);
        if (error >= 0)
                error = label_frames(b);
        if (error < 0)
                return error;
        error = collect_groups(b);
        if (error < 0)
                return error;
        error = make_paths(b, &marks);
        if (error < 0)
                return error;
        error = rank_labels(b);
        if (error < 0)
                return error;
        qsort_r(b->groups, b->n_groups, sizeof(*b->groups), by_path, b->ranks);
        error = grow_tree(b, marks.root);
        if (error < 0)
                return error;
        sum_up(&b->tree);
        return 0;
}

int stack_tree_init(const struct recording *r, enum report_view view, bool kernel,
                    enum stack_tree_direction direction, struct stack_tree *ret) {
        _cleanup_(builder_done) struct builder b = {
                .r = r, .view = view, .kernel = kernel, .direction = direction
        };
        int error = build(&b);

        if (error < 0)
                return error;
        *ret = b.tree;
        b.tree = STACK_TREE_NULL;
        return 0;
}

void stack_tree_done(struct stack_tree *t) {
        free(t->labels);
        free(t->nodes);
        buf_done(&t->texts);
        *t = STACK_TREE_NULL;
}
