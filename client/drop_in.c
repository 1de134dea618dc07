/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/drop_in.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/fd.h"

/* The last of all, so that it has the last word. The other name is one that systemd does not read. */
#define FILE_NAME "zz-startprof.conf"
#define HALF_NAME ".zz-startprof.half"
#define MARKER    "# Made by startprof for one start; it removes this file again.\n"

enum { UNIT_DIR_MAX = 512 }; /* NAME_MAX is 255 */

struct drop_in {
        pid_t keeper; /* owned child */
        int pipe_fd; /* owned: closing it tells the keeper */
        int lock_fd; /* owned: the file */
};

/* Where a drop-in lies. */
struct place {
        int directory_fd, unit_fd; /* owned */
        char unit_dir[UNIT_DIR_MAX]; /* "UNIT.d" */
};

#define PLACE_NULL                                                                                          \
        (struct place) {                                                                                    \
                .directory_fd = -EBADF, .unit_fd = -EBADF                                                   \
        }

static void place_done(struct place *p) {
        fd_close(p->unit_fd);
        fd_close(p->directory_fd);
}

static int open_directory(int at, const char *name) {
        int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        return fd < 0 ? -errno : fd;
}

static int make_place(const char *directory, const char *unit, struct place *p) {
        int n = snprintf(p->unit_dir, sizeof(p->unit_dir), "%s.d", unit);

        if (n < 0 || (size_t) n >= sizeof(p->unit_dir))
                return -ENAMETOOLONG;
        p->directory_fd = open_directory(AT_FDCWD, directory);
        if (p->directory_fd < 0)
                return p->directory_fd;
        if (mkdirat(p->directory_fd, p->unit_dir, 0755) < 0 && errno != EEXIST)
                return -errno;
        p->unit_fd = open_directory(p->directory_fd, p->unit_dir);
        return MIN(p->unit_fd, 0);
}

/* The file that is open as fd, if it has this name. 1: removed; 0: it is another's or none; or negative errno. */
static int remove_own(const struct place *p, const char *name, int fd) {
        struct stat ours, there;

        if (fstat(fd, &ours) < 0)
                return -errno;
        if (fstatat(p->unit_fd, name, &there, AT_SYMLINK_NOFOLLOW) < 0)
                return errno == ENOENT ? 0 : -errno;
        if (ours.st_dev != there.st_dev || ours.st_ino != there.st_ino)
                return 0;
        return unlinkat(p->unit_fd, name, 0) < 0 ? -errno : 1;
}

/* The directory goes, too, when nobody else has anything in it. How many files, or negative errno: one is still
 * there. */
static int remove_both(const struct place *p, int fd) {
        int half = remove_own(p, HALF_NAME, fd), whole = remove_own(p, FILE_NAME, fd);

        (void) unlinkat(p->directory_fd, p->unit_dir, AT_REMOVEDIR);
        return half < 0 ? half : whole < 0 ? whole : half + whole;
}

/* ---- the keeper ---- */

static void let_go_of_the_terminal(void) {
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);

        (void) setsid();
        for (int fd = STDIN_FILENO; null >= 0 && fd <= STDERR_FILENO; fd++)
                (void) dup2(null, fd);
        fd_close(null);
}

static int by_number(const void *a, const void *b) {
        return *(const int *) a - *(const int *) b;
}

/* Who waits for our connections to end must not wait for the keeper. */
static void close_all_but(const struct place *p, int pipe_fd, int lock_fd) {
        int kept[] = { STDERR_FILENO, p->directory_fd, p->unit_fd, pipe_fd, lock_fd };

        qsort(kept, ARRAY_SIZE(kept), sizeof(kept[0]), by_number);
        for (size_t i = 0; i < ARRAY_SIZE(kept); i++) {
                unsigned first = (unsigned) kept[i] + 1;
                unsigned last = i + 1 < ARRAY_SIZE(kept) ? (unsigned) kept[i + 1] - 1 : ~0U;

                if (first <= last)
                        (void) close_range(first, last, 0);
        }
}

static _Noreturn void keep(const struct drop_in *d, const struct place *p, int pipe_fd,
                           drop_in_reload_fn reload) {
        sigset_t all;
        ssize_t n;
        char c;
        int r;

        sigfillset(&all);
        sigprocmask(SIG_SETMASK, &all, NULL);
        (void) prctl(PR_SET_NAME, "drop-in-keeper"); /* killall(1) of us is not meant for it */
        let_go_of_the_terminal();
        close_all_but(p, pipe_fd, d->lock_fd);
        do
                n = read(pipe_fd, &c, 1);
        while (n > 0 || (n < 0 && errno == EINTR));

        r = remove_both(p, d->lock_fd);
        if (r > 0)
                r = reload();
        _exit(r >= 0 ? EXIT_SUCCESS : EXIT_FAILURE);
}

static int start_keeper(struct drop_in *d, const struct place *p, drop_in_reload_fn reload) {
        int pipe_fds[2];

        if (pipe2(pipe_fds, O_CLOEXEC) < 0)
                return -errno;
        d->keeper = fork();
        if (d->keeper == 0) {
                fd_close(pipe_fds[1]);
                keep(d, p, pipe_fds[0], reload);
        }
        fd_close(pipe_fds[0]);
        d->pipe_fd = pipe_fds[1];
        return d->keeper < 0 ? -errno : 0;
}

/* ---- making one ---- */

/* The file under a name that means nothing yet, locked: by us, and so by the keeper. */
static int write_half(struct drop_in *d, const struct place *p, const char *lines) {
        int r;

        d->lock_fd =
                openat(p->unit_fd, HALF_NAME, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
        if (d->lock_fd < 0)
                return errno == EEXIST ? -EBUSY : -errno;
        if (flock(d->lock_fd, LOCK_EX | LOCK_NB) < 0)
                return -EBUSY;
        r = fd_write_full(d->lock_fd, MARKER, strlen(MARKER));
        return r < 0 ? r : fd_write_full(d->lock_fd, lines, strlen(lines));
}

/* From here on it counts. */
static int put_in_force(const struct place *p, drop_in_reload_fn reload) {
        if (renameat2(p->unit_fd, HALF_NAME, p->unit_fd, FILE_NAME, RENAME_NOREPLACE) < 0)
                return errno == EEXIST ? -EBUSY : -errno;
        return reload();
}

int drop_in_new(const char *directory, const char *unit, const char *lines, drop_in_reload_fn reload,
                struct drop_in **ret) {
        _cleanup_(place_done) struct place place = PLACE_NULL;
        struct drop_in *d;
        int r;

        d = malloc(sizeof(*d));
        if (!d)
                return -ENOMEM;
        *d = (struct drop_in){ .keeper = -1, .pipe_fd = -EBADF, .lock_fd = -EBADF };

        r = make_place(directory, unit, &place);
        if (r == 0)
                r = write_half(d, &place, lines);
        if (r == 0)
                r = start_keeper(d, &place, reload);
        if (r < 0 && d->lock_fd >= 0)
                (void) remove_both(&place, d->lock_fd);
        if (r == 0)
                r = put_in_force(&place, reload);
        if (r < 0) {
                (void) drop_in_remove(d);
                return r;
        }
        *ret = d;
        return 0;
}

int drop_in_remove(struct drop_in *d) {
        int status = 0, r = 0;

        if (!d)
                return 0;
        fd_close(d->pipe_fd);
        if (d->keeper > 0) {
                while ((r = waitpid(d->keeper, &status, 0)) < 0 && errno == EINTR)
                        ;
                r = r < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != EXIT_SUCCESS ? -EIO : 0;
        }
        fd_close(d->lock_fd);
        free(d);
        return r;
}

/* ---- what crashes left ---- */

/* Ours, and nobody holds it. */
static bool is_left_over(int fd, const char *name) {
        char text[sizeof(MARKER) - 1];
        struct stat st;
        ssize_t n;

        if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || flock(fd, LOCK_EX | LOCK_NB) < 0)
                return false;
        n = fd_read_full(fd, text, sizeof(text));
        return n >= 0 && memcmp(text, MARKER, (size_t) n) == 0 &&
               (n == sizeof(text) || streq(name, HALF_NAME));
}

/* Files of one unit that were removed. */
static int sweep_unit(int directory_fd, const char *unit_dir) {
        static const char *const names[] = { FILE_NAME, HALF_NAME };
        _cleanup_(place_done) struct place p = PLACE_NULL;
        int removed = 0;

        snprintf(p.unit_dir, sizeof(p.unit_dir), "%s", unit_dir);
        p.directory_fd = open_directory(directory_fd, ".");
        p.unit_fd = open_directory(directory_fd, unit_dir);
        if (p.directory_fd < 0 || p.unit_fd < 0)
                return 0;
        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                _cleanup_close_ int fd =
                        openat(p.unit_fd, names[i], O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

                if (is_left_over(fd, names[i]))
                        removed += MAX(remove_both(&p, fd), 0);
        }
        return removed;
}

int drop_in_sweep(const char *directory, drop_in_reload_fn reload) {
        DIR *dir = opendir(directory);
        const struct dirent *entry;
        int removed = 0, r;

        if (!dir)
                return errno == ENOENT ? 0 : -errno;
        while ((entry = readdir(dir)))
                if (endswith(entry->d_name, ".service.d"))
                        removed += sweep_unit(dirfd(dir), entry->d_name);
        closedir(dir);
        r = removed > 0 ? reload() : 0;
        return r < 0 ? r : removed;
}
