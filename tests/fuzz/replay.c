/* SPDX-License-Identifier: GPL-2.0-or-later */

/* main() of the fuzz targets in `make check`: every file of the corpus goes through the entry point once, and
 * so do its truncations, since a cut is what a hostile file begins with. Sanitizers find what is wrong. */

#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/macro.h"

enum { FILE_MAX = 1 << 20, TRUNCATIONS_MAX = 256 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay(int dir_fd, const char *name) {
        _cleanup_free_ char *data = NULL;
        size_t size, step;
        int r;

        r = read_file_at(dir_fd, name, FILE_MAX, &data, &size);
        if (r < 0)
                return r;
        LLVMFuzzerTestOneInput((const uint8_t *) data, size);
        step = MAX(size / TRUNCATIONS_MAX, (size_t) 1);
        for (size_t cut = 0; cut < size; cut += step) {
                /* A copy of its own, so that reading past the cut is reading past the allocation. */
                _cleanup_free_ uint8_t *copy = malloc(cut + !cut);

                if (!copy)
                        return -ENOMEM;
                memcpy(copy, data, cut);
                LLVMFuzzerTestOneInput(copy, cut);
        }
        return 0;
}

int main(void) {
        DIR *dir = opendir(CORPUS);
        unsigned count = 0;
        struct dirent *entry;

        if (!dir) {
                fprintf(stderr, "cannot open %s: %m\n", CORPUS);
                return 1;
        }
        while ((entry = readdir(dir))) {
                if (entry->d_name[0] == '.')
                        continue;
                if (replay(dirfd(dir), entry->d_name) < 0) {
                        fprintf(stderr, "cannot replay %s/%s\n", CORPUS, entry->d_name);
                        return 1;
                }
                count++;
        }
        closedir(dir);
        printf("%u inputs replayed\n", count);
        return count > 0 ? 0 : 1;
}
