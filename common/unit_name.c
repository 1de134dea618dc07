/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/unit_name.h"

#include "common/buf.h"
#include "common/macro.h"

#define DIGITS   "0123456789"
#define LETTERS  "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define PLAIN    DIGITS LETTERS ":-_.\\"
#define PLAIN_AT PLAIN "@"

static const char *const types[] = {
        "service",   "mount", "swap", "socket", "target", "device",
        "automount", "timer", "path", "slice",  "scope",
};

static bool is_type(const char *s) {
        for (size_t i = 0; i < ARRAY_SIZE(types); i++)
                if (streq(s, types[i]))
                        return true;
        return false;
}

bool unit_name_is_valid(const char *name) {
        const char *dot = strrchr(name, '.');

        if (!dot || dot == name || name[0] == '@')
                return false;
        return strlen(name) <= UNIT_NAME_MAX && is_type(dot + 1) && strspn(name, PLAIN_AT) == strlen(name);
}

bool unit_name_is_template(const char *name) {
        const char *at = strchr(name, '@');

        return unit_name_is_valid(name) && at && at + 1 == strrchr(name, '.');
}

bool unit_name_is_service(const char *name) {
        return unit_name_is_valid(name) && endswith(name, ".service");
}

static void put_escaped(struct buf *b, char c) {
        buf_printf(b, "\\x%02x", (uint8_t) c);
}

/* Takes the name out of b if it is valid. */
static int take_valid(struct buf *b, char **ret) {
        if (buf_error(b) < 0)
                return buf_error(b);
        if (!unit_name_is_valid(buf_text(b)))
                return -EINVAL;
        return buf_take(b, ret, NULL);
}

/* The next component of a path at *p, "." skipped; false at the end. */
static bool next_component(const char **p, size_t *ret_bytes) {
        for (;;) {
                *p += strspn(*p, "/");
                *ret_bytes = strcspn(*p, "/");
                if (*ret_bytes == 0)
                        return false;
                if (*ret_bytes != 1 || **p != '.')
                        return true;
                *p += *ret_bytes;
        }
}

/* "/dev/a b" → "dev-a\x20b.device", "/dev" → "dev.mount", "/" → "-.mount"; -EINVAL with "..". */
static int mangle_path(const char *path, char **ret) {
        _cleanup_(buf_done) struct buf b = BUF_NULL;
        bool below_dev = false, device = false;
        size_t n;

        for (const char *p = path; next_component(&p, &n); p += n) {
                if (n == 2 && memcmp(p, "..", 2) == 0)
                        return -EINVAL;
                device = below_dev;
                if (b.size > 0)
                        buf_putc(&b, '-');
                else
                        below_dev = n == 3 && (memcmp(p, "dev", 3) == 0 || memcmp(p, "sys", 3) == 0);
                for (size_t i = 0; i < n; i++)
                        if (p[i] == '-' || p[i] == '\\' || !strchr(PLAIN, p[i]) ||
                            (b.size == 0 && p[i] == '.'))
                                put_escaped(&b, p[i]);
                        else
                                buf_putc(&b, p[i]);
        }
        if (b.size == 0)
                buf_putc(&b, '-');
        buf_puts(&b, device ? ".device" : ".mount");
        return take_valid(&b, ret);
}

int unit_name_mangle(const char *typed, char **ret) {
        _cleanup_(buf_done) struct buf b = BUF_NULL;

        if (typed[0] == '\0')
                return -EINVAL;
        if (typed[0] == '/' && mangle_path(typed, ret) == 0)
                return 0;
        /* systemctl would look for all units that match; one start has one unit. */
        if (strpbrk(typed, "*?["))
                return -EINVAL;

        for (const char *p = typed; *p; p++)
                if (*p == '/')
                        buf_putc(&b, '-');
                else if (!strchr(PLAIN_AT, *p))
                        put_escaped(&b, *p);
                else
                        buf_putc(&b, *p);
        if (buf_error(&b) == 0 && !unit_name_is_valid(buf_text(&b)))
                buf_puts(&b, ".service");
        return take_valid(&b, ret);
}

/* Controllers of systemd 252 to 257, real ones and those it makes of BPF programs. */
static const char *const controllers[] = {
        "cpu",
        "cpuacct",
        "cpuset",
        "io",
        "blkio",
        "memory",
        "devices",
        "pids",
        "bpf-firewall",
        "bpf-devices",
        "bpf-foreign",
        "bpf-socket-bind",
        "bpf-restrict-network-interfaces",
};

enum { PREFIXES_ESCAPED_SINCE = 254 };

static bool clashes(const char *name, unsigned systemd_version) {
        static const char *const kernel_files[] = { "notify_on_release", "release_agent", "tasks" };
        const char *dot = systemd_version >= PREFIXES_ESCAPED_SINCE ? strchr(name, '.') : strrchr(name, '.');

        if (name[0] == '_' || name[0] == '.' || startswith(name, "cgroup."))
                return true;
        for (size_t i = 0; i < ARRAY_SIZE(kernel_files); i++)
                if (streq(name, kernel_files[i]))
                        return true;
        for (size_t i = 0; dot && i < ARRAY_SIZE(controllers); i++)
                if (strlen(controllers[i]) == (size_t) (dot - name) && startswith(name, controllers[i]))
                        return true;
        return false;
}

int unit_name_cgroup(const char *name, unsigned systemd_version, char **ret) {
        _cleanup_(buf_done) struct buf b = BUF_NULL;

        if (clashes(name, systemd_version))
                buf_putc(&b, '_');
        buf_puts(&b, name);
        return buf_take(&b, ret, NULL);
}

/* Appends "/NAME" for a slice, escaped as its directory is. */
static void put_slice(struct buf *b, const char *prefix, size_t bytes, unsigned systemd_version) {
        _cleanup_free_ char *directory = NULL;
        char name[UNIT_NAME_MAX + 1];

        snprintf(name, sizeof(name), "%.*s.slice", (int) bytes, prefix);
        if (unit_name_cgroup(name, systemd_version, &directory) < 0) {
                b->error = -ENOMEM;
                return;
        }
        buf_printf(b, "/%s", directory);
}

int unit_slice_cgroup(const char *slice, unsigned systemd_version, char **ret) {
        _cleanup_(buf_done) struct buf b = BUF_NULL;
        const char *end = endswith(slice, ".slice");
        size_t prefix;

        if (!end || !unit_name_is_valid(slice) || strchr(slice, '@'))
                return -EINVAL;
        prefix = (size_t) (end - slice);
        if (streq(slice, "-.slice"))
                return buf_take(&b, ret, NULL);
        if (slice[0] == '-')
                return -EINVAL;

        for (size_t i = 0; i < prefix; i++)
                if (slice[i] == '-') {
                        if (i + 1 == prefix || slice[i + 1] == '-')
                                return -EINVAL;
                        put_slice(&b, slice, i, systemd_version);
                }
        put_slice(&b, slice, prefix, systemd_version);
        return buf_take(&b, ret, NULL);
}
