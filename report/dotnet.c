/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/dotnet.h"

#include "common/macro.h"
#include "report/names.h"

static bool is_dotnet_module(const struct recording *r, uint32_t module) {
        static const char *const files[] = { "libcoreclr.so",       "libclrjit.so",
                                             "libhostfxr.so",       "libhostpolicy.so",
                                             "libSystem.Native.so", "System.Private.CoreLib.dll" };
        const char *name;

        if (module >= r->n_modules)
                return false;
        name = path_basename(recording_text(r, r->modules[module].path));
        for (size_t i = 0; i < ARRAY_SIZE(files); i++)
                if (streq(name, files[i]))
                        return true;
        return false;
}

/* A method of a natively compiled program: its metadata named it, or its debug file, or what that says of the
 * garbage collector, which is linked into it. */
static bool is_compiled_natively(const struct recording *r, uint32_t frame) {
        const struct rec_name *rows;
        uint32_t n = frame_names(r, frame, &rows);
        const char *name;

        if (n == 0)
                return false;
        name = recording_text(r, rows[0].name);
        return rows[0].source == REC_SOURCE_NATIVEAOT ||
               (rows[0].source != REC_SOURCE_PERF_MAP &&
                (startswith(name, "S_P_CoreLib_") || startswith(name, "System.") ||
                 startswith(name, "WKS::") || startswith(name, "SVR::")));
}

static bool is_dotnet_frame(const struct recording *r, uint32_t frame) {
        return is_dotnet_module(r, r->frames[frame].module) || is_compiled_natively(r, frame);
}

int dotnet_modules(const struct recording *r, bool **ret) {
        bool *dotnet = calloc((size_t) r->n_modules + 1, sizeof(*dotnet));

        if (!dotnet)
                return -ENOMEM;
        for (uint32_t i = 0; i < r->n_modules; i++)
                dotnet[i] = is_dotnet_module(r, i);
        for (uint32_t i = 0; i < r->n_frames; i++)
                if (r->frames[i].module < r->n_modules && is_compiled_natively(r, i))
                        dotnet[r->frames[i].module] = true;
        *ret = dotnet;
        return 0;
}

/* Per stack, once: many samples share one. */
static bool has_dotnet_sample(const struct recording *r, uint32_t process) {
        _cleanup_free_ bool *known = calloc((size_t) r->n_stacks + 1, sizeof(*known));

        for (uint32_t i = 0; i < r->n_samples; i++) {
                const struct rec_sample *s = r->samples + i;

                if (s->process != process)
                        continue;
                if (startswith(recording_text(r, s->comm), ".NET "))
                        return true;
                if (!known || s->stack >= r->n_stacks || known[s->stack])
                        continue;
                known[s->stack] = true;
                for (uint32_t j = 0; j < r->stacks[s->stack].count; j++)
                        if (is_dotnet_frame(r, r->stack_frames[r->stacks[s->stack].first + j]))
                                return true;
        }
        return false;
}

static bool has_dotnet_path(const struct recording *r, uint32_t process) {
        for (uint32_t i = 0; i < r->n_paths; i++) {
                const struct rec_path *p = r->paths + i;
                const char *name = path_basename(recording_text(r, p->path));

                if (p->process != process || (p->kind != REC_PATH_OPEN && p->kind != REC_PATH_MISSING))
                        continue;
                if ((startswith(name, "appsettings.") && endswith(name, ".json")) ||
                    endswith(name, ".runtimeconfig.json") || endswith(name, ".deps.json"))
                        return true;
        }
        return false;
}

bool process_is_dotnet(const struct recording *r, uint32_t process) {
        return has_dotnet_sample(r, process) || has_dotnet_path(r, process);
}
