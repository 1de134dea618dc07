/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "worker/requests.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/fd.h"
#include "report/report.h"
#include "worker/modules.h"
#include "worker/naming.h"
#include "worker/space.h"
#include "worker/stacks.h"

DEFINE_CLEANUP(struct recording *, recording_free);

struct requests {
        struct channel *channel; /* borrowed */

        /* owned: the capture so far */
        struct modules *modules;
        struct spaces *spaces;
        struct stacks *stacks;
        struct unwind_frame frames[UNWIND_DEPTH_MAX];
};

/* For the unwinder: one address space of the capture. */
struct view {
        struct requests *requests;
        uint32_t space;
};

struct requests *requests_new(struct channel *channel) {
        _cleanup_(requests_freep) struct requests *r = calloc(1, sizeof(*r));

        if (!r)
                return NULL;
        r->channel = channel;
        r->modules = modules_new(channel);
        r->spaces = spaces_new();
        r->stacks = stacks_new();
        if (!r->modules || !r->spaces || !r->stacks)
                return NULL;
        return TAKE_PTR(r);
}

struct requests *requests_free(struct requests *r) {
        if (!r)
                return NULL;

        modules_free(r->modules);
        spaces_free(r->spaces);
        stacks_free(r->stacks);
        free(r);
        return NULL;
}

/* ---- what is told ---- */

static int on_module(struct requests *r, const struct worker_module *m) {
        struct name_module_options options = { .kind = m->kind };

        if (m->module != modules_count(r->modules) || m->build_id_bytes > BUILD_ID_MAX)
                return -EBADMSG;
        memcpy(options.build_id.bytes, m->build_id, m->build_id_bytes);
        options.build_id.size = (uint8_t) m->build_id_bytes;
        return modules_add(r->modules, &options);
}

static int on_space(struct requests *r, const struct worker_space *m) {
        return spaces_begin(r->spaces, m->space, m->from);
}

static int on_map(struct requests *r, const struct worker_map *m) {
        struct space_mapping mapping = {
                .start = m->start,
                .end = m->end,
                .offset = m->file_offset,
                .module = m->module,
        };

        if (m->module >= modules_count(r->modules))
                return -EBADMSG;
        return spaces_map(r->spaces, m->space, &mapping);
}

/* The virtual address comes from the segment that holds this very byte of the file: one mapping may show the
 * end of one segment and the beginning of the next, which lie apart in memory. */
static bool find_mapping(void *userdata, uint64_t address, struct unwind_mapping *ret) {
        const struct view *view = userdata;
        const struct space_mapping *mapping = spaces_find(view->requests->spaces, view->space, address);
        const struct module *module;
        const struct elf_image *image;
        uint64_t vaddr;

        if (!mapping)
                return false;
        *ret = (struct unwind_mapping){
                .start = mapping->start,
                .end = mapping->end,
                .offset = mapping->offset,
                .module = mapping->module,
        };

        module = modules_get(view->requests->modules, mapping->module);
        image = module->names ? name_module_image(module->names) : NULL;
        if (image && elf_image_vaddr(image, mapping->offset + (address - mapping->start), &vaddr) == 0) {
                ret->bias = address - vaddr;
                ret->table = module->table;
                ret->image = image;
        }
        return true;
}

static bool is_sound(const struct requests *r, const struct worker_stack *m) {
        size_t bytes = m->head.bytes - sizeof(*m);

        return m->stack_bytes <= bytes && m->second_bytes == bytes - m->stack_bytes &&
               m->kernel_frames <= KERNEL_FRAMES_MAX &&
               (m->kernel_frames == 0 || m->kernel_module < modules_count(r->modules));
}

static int on_stack(struct requests *r, const struct worker_stack *m) {
        const uint8_t *bytes = (const uint8_t *) (m + 1);
        struct view view = { .requests = r, .space = m->space };
        struct unwind_stack stack = { .flags = m->flags,
                                      .bytes = bytes,
                                      .size = m->stack_bytes,
                                      .holes = m->holes,
                                      .second_address = m->second_address,
                                      .second = bytes + m->stack_bytes,
                                      .second_size = m->second_bytes,
                                      .second_holes = m->second_holes };
        struct stacks_sample sample = { .frames = r->frames,
                                        .kernel = m->kernel,
                                        .kernel_count = m->kernel_frames,
                                        .kernel_module = m->kernel_module };

        if (!is_sound(r, m))
                return -EBADMSG;
        memcpy(stack.regs, m->regs, sizeof(stack.regs));
        sample.end = unwind(&stack, find_mapping, &view, r->frames, ARRAY_SIZE(r->frames), &sample.count);
        explicit_bzero(&stack, sizeof(stack));
        return stacks_add(r->stacks, m->sample, &sample);
}

/* ---- what is asked ---- */

/* Sends the bytes as a sealed descriptor, or the error. */
static int answer(struct requests *r, uint32_t type, int error, const void *data, size_t bytes) {
        struct worker_done done = { .head = { .type = type, .bytes = sizeof(done) }, .error = error };
        _cleanup_close_ int fd = -EBADF;

        if (error == 0) {
                fd = fd_new_sealed("startprof-answer", data, bytes);
                done.error = MIN(fd, 0);
        }
        return channel_send(r->channel, &done.head, fd);
}

static int on_finish(struct requests *r) {
        _cleanup_free_ void *layer = NULL;
        size_t bytes = 0;
        int error;

        error = naming_capture(r->modules, r->spaces, r->stacks, &layer, &bytes);
        return answer(r, WORKER_LAYER, error, layer, bytes);
}

static int name_recording(struct requests *r, int fd, void **ret, size_t *ret_bytes) {
        _cleanup_(recording_freep) struct recording *recording = NULL;
        int error;

        error = recording_open_fd(fd, &recording);
        if (error < 0)
                return error;
        return naming_recording(r->channel, recording, ret, ret_bytes);
}

static int on_name(struct requests *r, int fd) {
        _cleanup_free_ void *layer = NULL;
        size_t bytes = 0;
        int error;

        error = name_recording(r, fd, &layer, &bytes);
        return answer(r, WORKER_LAYER, error, layer, bytes);
}

static int report_recording(int fd, char **ret) {
        _cleanup_(recording_freep) struct recording *recording = NULL;
        int error;

        error = recording_open_fd(fd, &recording);
        if (error < 0)
                return error;
        return report_journal(recording, ret);
}

static int on_report(struct requests *r, int fd) {
        _cleanup_free_ char *text = NULL;
        int error;

        error = report_recording(fd, &text);
        return answer(r, WORKER_REPORT_DONE, error, text, error == 0 ? strlen(text) : 0);
}

int requests_handle(struct requests *r, const struct worker_head *head, int message_fd) {
        static const size_t sizes[] = {
                [WORKER_MODULE] = sizeof(struct worker_module), [WORKER_MAP] = sizeof(struct worker_map),
                [WORKER_SPACE] = sizeof(struct worker_space),   [WORKER_STACK] = sizeof(struct worker_stack),
                [WORKER_FINISH] = sizeof(struct worker_finish), [WORKER_NAME] = sizeof(struct worker_finish),
                [WORKER_REPORT] = sizeof(struct worker_head),
        };

        if (head->type >= ARRAY_SIZE(sizes) || sizes[head->type] == 0 || head->bytes < sizes[head->type])
                return -EBADMSG;

        switch (head->type) {
        case WORKER_MODULE: return on_module(r, (const struct worker_module *) head);
        case WORKER_MAP: return on_map(r, (const struct worker_map *) head);
        case WORKER_SPACE: return on_space(r, (const struct worker_space *) head);
        case WORKER_STACK: return on_stack(r, (const struct worker_stack *) head);
        case WORKER_FINISH: return on_finish(r);
        case WORKER_NAME: return on_name(r, message_fd);
        case WORKER_REPORT: return on_report(r, message_fd);
        default: return -EBADMSG;
        }
}
