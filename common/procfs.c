/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/procfs.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/fd.h"
#include "common/macro.h"
#include "common/parse.h"

enum { PID_NAMESPACES_MAX = 33 }; /* MAX_PID_NS_LEVEL and the initial one */

/* "PID/" and the longest name read below it. */
struct pid_path {
        char text[64];
};

static struct pid_path pid_path(uint32_t pid, const char *name) {
        struct pid_path p;

        snprintf(p.text, sizeof(p.text), "%" PRIu32 "/%s", pid, name);
        return p;
}

int procfs_open(int *ret_fd) {
        int fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        if (fd < 0)
                return -errno;
        *ret_fd = fd;
        return 0;
}

/* Decimal at *p, and the single space behind it; -EBADMSG otherwise. */
static int take_field(char **p, uint64_t *ret) {
        size_t n = strspn(*p, "0123456789");
        char end = (*p)[n];
        int r;

        if (n == 0 || (end != ' ' && end != '\n' && end != '\0'))
                return -EBADMSG;
        (*p)[n] = '\0';
        r = parse_u64(*p, ret);
        *p += end ? n + 1 : n;
        return r < 0 ? -EBADMSG : 0;
}

/* The line behind the comm: "S 1 2 …": state, parent, then 17 fields (some negative), then start time
 * (fields 3, 4 and 22 of proc(5)). */
static int parse_stat_fields(char *p, struct procfs_stat *stat) {
        uint64_t parent;
        int r;

        if (p[0] != ' ' || p[1] == '\0' || p[2] != ' ')
                return -EBADMSG;
        stat->state = p[1];
        p += 3;
        r = take_field(&p, &parent);
        if (r < 0 || parent > UINT32_MAX)
                return -EBADMSG;
        stat->parent = (uint32_t) parent;
        for (int i = 5; i < 22; i++) {
                p = strchr(p, ' ');
                if (!p)
                        return -EBADMSG;
                p++;
        }
        return take_field(&p, &stat->start_ticks);
}

int procfs_stat(int proc_fd, uint32_t pid, struct procfs_stat *ret) {
        _cleanup_free_ char *text = NULL;
        struct procfs_stat stat = {};
        char *comm, *end;
        size_t bytes;
        int r;

        r = read_file_at(proc_fd, pid_path(pid, "stat").text, PROCFS_FILE_MAX, &text, &bytes);
        if (r < 0)
                return r;
        comm = strchr(text, '(');
        end = strrchr(text, ')');
        if (!comm || !end || end < comm)
                return -EBADMSG;

        comm++;
        bytes = MIN((size_t) (end - comm), sizeof(stat.comm) - 1);
        memcpy(stat.comm, comm, bytes);
        r = parse_stat_fields(end + 1, &stat);
        if (r < 0)
                return r;
        *ret = stat;
        return 0;
}

/* The numbers of the line "KEY:\tN\tN…", at most max of them. How many, or -EBADMSG. */
static int status_numbers(const char *text, const char *key, uint32_t *ret, int max) {
        const char *p = strstr(text, key);
        int n = 0;

        if (!p)
                return -EBADMSG;
        for (p += strlen(key); n < max && *p == '\t'; n++) {
                char digits[16] = "";
                size_t length = strspn(++p, "0123456789");

                memcpy(digits, p, MIN(length, sizeof(digits) - 1));
                if (parse_u32(digits, &ret[n]) < 0)
                        return -EBADMSG;
                p += length;
        }
        return *p == '\n' || *p == '\t' ? n : -EBADMSG;
}

int procfs_status(int proc_fd, uint32_t pid, struct procfs_status *ret) {
        _cleanup_free_ char *text = NULL;
        uint32_t pids[PID_NAMESPACES_MAX];
        struct procfs_status status;
        size_t bytes;
        int r;

        r = read_file_at(proc_fd, pid_path(pid, "status").text, PROCFS_FILE_MAX, &text, &bytes);
        if (r < 0)
                return r;
        /* The name is the first line, and its newlines are escaped. */
        if (status_numbers(text, "\nUid:", status.uids, ARRAY_SIZE(status.uids)) != ARRAY_SIZE(status.uids))
                return -EBADMSG;
        r = status_numbers(text, "\nNSpid:", pids, ARRAY_SIZE(pids));
        if (r <= 0)
                return -EBADMSG;
        status.inner_pid = pids[r - 1];
        *ret = status;
        return 0;
}

int procfs_arguments(int proc_fd, uint32_t pid, size_t max, char **ret) {
        _cleanup_close_ int fd = openat(proc_fd, pid_path(pid, "cmdline").text, O_RDONLY | O_CLOEXEC);
        _cleanup_free_ char *text = NULL;
        ssize_t n;

        if (fd < 0)
                return -errno;
        max = MIN(max, (size_t) PROCFS_FILE_MAX);
        text = malloc(max + 1);
        if (!text)
                return -ENOMEM;
        n = fd_read_full(fd, text, max);
        if (n < 0)
                return (int) n;

        while (n > 0 && text[n - 1] == '\0')
                n--;
        for (ssize_t i = 0; i < n; i++)
                if (text[i] == '\0')
                        text[i] = ' ';
        text[n] = '\0';
        *ret = TAKE_PTR(text);
        return 0;
}

int procfs_switches(int proc_fd, uint32_t tgid, uint32_t tid, uint64_t *ret) {
        _cleanup_free_ char *text = NULL;
        char name[40];
        uint32_t by_itself, preempted;
        int r;

        snprintf(name, sizeof(name), "task/%" PRIu32 "/status", tid);
        r = read_file_at(proc_fd, pid_path(tgid, name).text, PROCFS_FILE_MAX, &text, NULL);
        if (r < 0)
                return r;
        if (status_numbers(text, "\nvoluntary_ctxt_switches:", &by_itself, 1) != 1 ||
            status_numbers(text, "\nnonvoluntary_ctxt_switches:", &preempted, 1) != 1)
                return -EBADMSG;
        *ret = (uint64_t) by_itself + preempted;
        return 0;
}

int procfs_link(int proc_fd, uint32_t pid, const char *name, char **ret) {
        char target[PATH_MAX];
        ssize_t n;
        char *copy;

        n = readlinkat(proc_fd, pid_path(pid, name).text, target, sizeof(target) - 1);
        if (n < 0)
                return -errno;
        target[n] = '\0';
        copy = strdup(target);
        if (!copy)
                return -ENOMEM;
        *ret = copy;
        return 0;
}

int procfs_cgroup(int proc_fd, uint32_t pid, char **ret) {
        _cleanup_free_ char *text = NULL;
        size_t bytes;
        char *saved = NULL;
        int r;

        r = read_file_at(proc_fd, pid_path(pid, "cgroup").text, PROCFS_FILE_MAX, &text, &bytes);
        if (r < 0)
                return r;
        for (char *line = strtok_r(text, "\n", &saved); line; line = strtok_r(NULL, "\n", &saved)) {
                const char *path = startswith(line, "0::");

                if (path) {
                        char *copy = strdup(path);

                        if (!copy)
                                return -ENOMEM;
                        *ret = copy;
                        return 0;
                }
        }
        return -ENOENT;
}

static bool is_octal(const char *s) {
        return s[0] >= '0' && s[0] <= '3' && s[1] >= '0' && s[1] <= '7' && s[2] >= '0' && s[2] <= '7';
}

/* Undoes the \ooo of seq_path() in place; only for the characters named, since others are never escaped. */
static void unescape(char *s, const char *escaped) {
        char *out = s;

        while (*s) {
                if (s[0] == '\\' && is_octal(s + 1)) {
                        char c = (char) ((s[1] - '0') << 6 | (s[2] - '0') << 3 | (s[3] - '0'));

                        if (c != '\0' && strchr(escaped, c)) {
                                *out++ = c;
                                s += 4;
                                continue;
                        }
                }
                *out++ = *s++;
        }
        *out = '\0';
}

/* "36 35 98:0 /root /point options … - type source options" (proc(5)): fields 4 and 5, and the type. */
static bool parse_mountinfo(char *line, char **ret_root, char **ret_point, char **ret_type) {
        char *fields[5], *saved = NULL, *type = strstr(line, " - ");

        if (!type)
                return false;
        *type = '\0';
        for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
                fields[i] = strtok_r(i == 0 ? line : NULL, " ", &saved);
                if (!fields[i])
                        return false;
        }
        *ret_root = fields[3];
        *ret_point = fields[4];
        *ret_type = strtok_r(type + 3, " ", &saved);
        return *ret_type;
}

/* Of several mounts the one that shows the whole of the reader's namespace is taken. */
int procfs_cgroup_root(int proc_fd, char **ret) {
        _cleanup_free_ char *text = NULL, *found = NULL;
        size_t bytes;
        char *saved = NULL;
        int r;

        r = read_file_at(proc_fd, "self/mountinfo", PROCFS_FILE_MAX, &text, &bytes);
        if (r < 0)
                return r;
        for (char *line = strtok_r(text, "\n", &saved); line; line = strtok_r(NULL, "\n", &saved)) {
                char *root, *point, *type;

                if (!parse_mountinfo(line, &root, &point, &type) || !streq(type, "cgroup2"))
                        continue;
                if (found && !streq(root, "/"))
                        continue;
                unescape(point, " \t\n\\");
                free(found);
                found = strdup(point);
                if (!found)
                        return -ENOMEM;
                if (streq(root, "/"))
                        break;
        }
        if (!found)
                return -ENOENT;
        *ret = TAKE_PTR(found);
        return 0;
}

int procfs_u64(int proc_fd, const char *path, uint64_t *ret) {
        _cleanup_free_ char *text = NULL;
        size_t bytes;
        int r;

        r = read_file_at(proc_fd, path, PROCFS_FILE_MAX, &text, &bytes);
        if (r < 0)
                return r;
        text[strcspn(text, "\n")] = '\0';
        r = parse_u64(text, ret);
        return r < 0 ? -EBADMSG : 0;
}

/* Hexadecimal at *p up to `end`, which is skipped. */
static int take_hex(char **p, char end, uint64_t *ret) {
        uint64_t n = 0;
        char *s = *p;

        for (; *s != end; s++) {
                const char *digit = *s ? strchr("0123456789abcdef", *s) : NULL;

                if (!digit || n >> 60 != 0)
                        return -EBADMSG;
                n = n << 4 | (uint64_t) (digit - (const char *) "0123456789abcdef");
        }
        if (s == *p)
                return -EBADMSG;
        *p = s + 1;
        *ret = n;
        return 0;
}

/* "7f00-7f01 r-xp 00001000 fe:01 1234    /usr/lib/x" */
static int parse_mapping(char *line, struct procfs_mapping *ret) {
        struct procfs_mapping m = {};
        uint64_t major, minor;
        char *p = line;

        if (take_hex(&p, '-', &m.start) < 0 || take_hex(&p, ' ', &m.end) < 0 || m.end < m.start)
                return -EBADMSG;
        if (strcspn(p, " ") != 4 || p[4] != ' ')
                return -EBADMSG;
        memcpy(m.permissions, p, 4);
        p += 5;
        if (take_hex(&p, ' ', &m.offset) < 0 || take_hex(&p, ':', &major) < 0 ||
            take_hex(&p, ' ', &minor) < 0 || major > UINT32_MAX || minor > UINT32_MAX)
                return -EBADMSG;
        m.major = (uint32_t) major;
        m.minor = (uint32_t) minor;
        if (take_field(&p, &m.inode) < 0)
                return -EBADMSG;
        p += strspn(p, " ");
        unescape(p, "\n");
        m.path = p;
        *ret = m;
        return 0;
}

/* Line by line: there is no limit to the number of mappings worth a fixed size (vm.max_map_count can be
 * raised), and a line is no longer than four times PATH_MAX. */
int procfs_maps(int proc_fd, uint32_t pid, int (*f)(const struct procfs_mapping *m, void *userdata),
                void *userdata) {
        _cleanup_free_ char *line = NULL;
        _cleanup_fclose_ FILE *file = NULL;
        _cleanup_close_ int fd = openat(proc_fd, pid_path(pid, "maps").text, O_RDONLY | O_CLOEXEC);
        size_t allocated = 0;
        ssize_t n;

        if (fd < 0)
                return -errno;
        file = fdopen(fd, "r");
        if (!file)
                return -errno;
        TAKE_FD(fd);

        while (errno = 0, (n = getline(&line, &allocated, file)) >= 0) {
                struct procfs_mapping m;
                int r;

                if (n > 0 && line[n - 1] == '\n')
                        line[n - 1] = '\0';
                r = parse_mapping(line, &m);
                if (r < 0)
                        return r;
                r = f(&m, userdata);
                if (r != 0)
                        return r;
        }
        return ferror(file) ? -errno : 0;
}
