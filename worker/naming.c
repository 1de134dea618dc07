/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "worker/naming.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "worker/code_views.h"
#include "worker/labels.h"

DEFINE_CLEANUP(struct recording_writer *, recording_writer_free);

/* Is a module's line wanted? */
enum touch { UNTOUCHED, SAMPLED, IMPROVED };

/* What is known of a frame: a name, and what DWARF adds to it. */
struct found {
        struct name name;
        const struct name_line *lines; /* innermost first; the last is of `name` */
        size_t line_count;
};

/* A text for the frame, or the reason why not. A module without memory for its files is like one without. */
static int find_name(struct modules *modules, const struct rec_frame *frame, struct name *ret) {
        const struct module *module;
        struct code_names *code;

        if (frame->module == REC_NONE) {
                *ret = (struct name){ .reason = REC_REASON_UNMAPPED };
                return 0;
        }
        code = modules_code(modules, frame->module);
        if (code) {
                code_names_find(code, frame->offset, ret);
                return 0;
        }
        module = modules_get(modules, frame->module);
        if (!module->names) {
                *ret = (struct name){ .reason = REC_REASON_LIMIT };
                return 0;
        }
        return name_find(module->names, frame->offset, ret);
}

/* Symbol tables name the function, DWARF tells what is in it, and names functions that no table has. */
static int find(struct modules *modules, const struct rec_frame *frame, struct found *ret) {
        const struct name_line *outermost;
        int r;

        *ret = (struct found){};
        r = find_name(modules, frame, &ret->name);
        if (r < 0 || frame->module == REC_NONE)
                return r;
        r = modules_lines(modules, frame->module, frame->offset, &ret->lines, &ret->line_count);
        if (r < 0 || ret->line_count == 0)
                return r;

        outermost = &ret->lines[ret->line_count - 1];
        if (outermost->text && name_source_better(REC_SOURCE_DWARF, ret->name.source))
                ret->name = (struct name){ .text = outermost->text, .source = REC_SOURCE_DWARF };
        return 0;
}

static void write_row(struct recording_writer *w, uint32_t frame, const struct name *name,
                      const struct name_line *line) {
        struct rec_name row = {
                .frame = frame,
                .name = recording_writer_text(w, name->text),
                .source = name->source,
                .reason = name->reason,
                .displacement = (uint32_t) MIN(name->displacement, (uint64_t) UINT32_MAX),
        };

        if (line) {
                row.file = recording_writer_text(w, line->file);
                row.line = line->line;
                row.inlined = line->inlined;
        }
        recording_writer_rows(w, REC_NAMES, &row, sizeof(row), 1);
}

static void write_found(struct recording_writer *w, uint32_t frame, const struct found *found) {
        for (size_t i = 0; i + 1 < found->line_count; i++) {
                struct name name = { .text = found->lines[i].text, .source = REC_SOURCE_DWARF };

                if (!name.text)
                        name = (struct name){ .reason = REC_REASON_NO_SYMBOL };
                write_row(w, frame, &name, &found->lines[i]);
        }
        write_row(w, frame, &found->name,
                  found->line_count > 0 ? &found->lines[found->line_count - 1] : NULL);
}

static void write_ledger(struct recording_writer *w, struct modules *modules, uint32_t index,
                         const struct rec_symbols *before) {
        const struct module *module = modules_get(modules, index);
        struct rec_symbols row = { .module = index, .reason = REC_REASON_LIMIT };
        struct code_names *code = modules_code(modules, index);

        if (code)
                row.debug_path = recording_writer_text(w, code_names_ledger(code, &row));
        else if (module->names) {
                const char *path = name_module_ledger(module->names, &row);

                row.debug_path = recording_writer_text(w, path);
        }
        if (before && name_source_better(before->source, row.source))
                row.source = before->source;
        recording_writer_rows(w, REC_SYMBOLS, &row, sizeof(row), 1);
}

static struct frame_place place_of(struct modules *modules, const struct rec_frame *frame, bool named) {
        const struct module *module = frame->module != REC_NONE ? modules_get(modules, frame->module) : NULL;
        const struct elf_image *image = module && module->names ? name_module_image(module->names) : NULL;
        struct frame_place place = { .named = named };
        uint64_t vaddr;

        if (!image)
                return place;
        place.role = module_role(image);
        place.entry = elf_image_vaddr(image, frame->offset, &vaddr) == 0 && module_is_entry(image, vaddr);
        return place;
}

/* Frames without a name come after those with one, when it is known what can stand for it. */
static void write_unnamed(struct recording_writer *w, const struct labels *labels, uint32_t frame,
                          enum rec_reason reason) {
        struct name name = { .text = labels_get(labels, frame), .reason = reason };

        if (name.text) {
                name.source = REC_SOURCE_LABEL;
                name.reason = REC_REASON_NONE;
        }
        write_row(w, frame, &name, NULL);
}

int naming_capture(struct modules *modules, const struct spaces *spaces, const struct stacks *stacks,
                   void **ret, size_t *ret_bytes) {
        _cleanup_(code_views_freep) struct code_views *views = code_views_new(modules, spaces);
        _cleanup_(recording_writer_freep) struct recording_writer *w = recording_writer_new(false);
        _cleanup_free_ uint8_t *touched = calloc(modules_count(modules) + 1, 1);
        const struct rec_frame *frames;
        uint32_t count = stacks_frames(stacks, &frames);
        _cleanup_(labels_freep) struct labels *labels = labels_new(count);
        _cleanup_free_ uint8_t *unnamed = calloc((size_t) count + 1, 1); /* 1 + the reason why */

        if (!views || !w || !touched || !labels || !unnamed)
                return -ENOMEM;

        stacks_write(stacks, w);
        for (uint32_t i = 0; i < count; i++) {
                struct frame_place place;
                struct found found;
                int r;

                r = find(modules, &frames[i], &found);
                if (r < 0)
                        return r;
                if (!found.name.text)
                        (void) code_views_find(views, frames[i].module, frames[i].offset, &found.name);
                place = place_of(modules, &frames[i], found.name.text != NULL);
                labels_place(labels, i, &place);
                if (found.name.text)
                        write_found(w, i, &found);
                else
                        unnamed[i] = (uint8_t) (1 + found.name.reason);
                if (frames[i].module != REC_NONE)
                        touched[frames[i].module] = SAMPLED;
        }
        labels_find(labels, stacks);
        for (uint32_t i = 0; i < count; i++)
                if (unnamed[i] > 0)
                        write_unnamed(w, labels, i, unnamed[i] - 1);
        for (uint32_t i = 0; i < modules_count(modules); i++)
                if (touched[i] != UNTOUCHED)
                        write_ledger(w, modules, i, NULL);

        return recording_writer_finish(w, true, ret, ret_bytes);
}

static int add_modules(struct modules *modules, const struct recording *recording) {
        for (uint32_t i = 0; i < recording->n_modules; i++) {
                const struct rec_module *row = &recording->modules[i];
                struct name_module_options options = { .kind = row->kind, .elsewhere = true };
                int r;

                options.build_id.size = (uint8_t) MIN(row->build_id_bytes, (uint32_t) BUILD_ID_MAX);
                memcpy(options.build_id.bytes, row->build_id, options.build_id.size);
                r = modules_add(modules, &options);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* What the recording has for a frame itself, which is its last row; NULL: nothing. */
static const struct rec_name *recorded(const struct recording *recording, uint32_t frame) {
        uint32_t end = recording->frame_names[frame + 1];

        return recording->frame_names[frame] == end ? NULL : &recording->names[end - 1];
}

/* Could there be a line where the recording has none? Only in files. */
static bool may_have_line(const struct recording *recording, uint32_t frame, const struct rec_name *row) {
        uint32_t kind = recording->modules[recording->frames[frame].module].kind;

        return (!row || row->file == 0) && (kind == REC_MODULE_FILE || kind == REC_MODULE_DELETED);
}

/* 1: something better was written; 0: there is nothing. */
static int improve(struct recording_writer *w, struct modules *modules, const struct recording *recording,
                   uint32_t frame) {
        const struct rec_name *row = recorded(recording, frame);
        uint32_t source = row && row->name != 0 ? row->source : (uint32_t) REC_SOURCE_NONE;
        struct found found;
        bool better;
        int r;

        if (recording->frames[frame].module == REC_NONE ||
            !(name_source_better(REC_SOURCE_SYMTAB, source) || may_have_line(recording, frame, row)))
                return 0;
        r = find(modules, &recording->frames[frame], &found);
        if (r < 0 || !found.name.text)
                return r;
        better = found.line_count > 0 && !(row && row->file != 0) &&
                 !name_source_better(source, found.name.source);
        if (!better && !name_source_better(found.name.source, source))
                return 0;

        write_found(w, frame, &found);
        return 1;
}

int naming_recording(struct channel *channel, const struct recording *recording, void **ret,
                     size_t *ret_bytes) {
        _cleanup_(recording_writer_freep) struct recording_writer *w = recording_writer_new(false);
        _cleanup_(modules_freep) struct modules *modules = modules_new(channel);
        _cleanup_free_ uint8_t *touched = calloc(recording->n_modules + 1, 1);
        int r;

        if (!w || !modules || !touched)
                return -ENOMEM;
        r = add_modules(modules, recording);
        if (r < 0)
                return r;

        for (uint32_t i = 0; i < recording->n_frames; i++) {
                r = improve(w, modules, recording, i);
                if (r < 0)
                        return r;
                if (r > 0)
                        touched[recording->frames[i].module] = IMPROVED;
        }
        for (uint32_t i = 0; i < recording->n_modules; i++)
                if (touched[i] == IMPROVED)
                        write_ledger(w, modules, i, &recording->symbols[i]);

        return recording_writer_finish(w, true, ret, ret_bytes);
}
