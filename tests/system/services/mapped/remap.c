/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * remap FIRST SECOND: loads one library after the other at one address, each to work for 100 ms there, then maps
 * a copy of the code there without a file, and is ready. Exit status 3: they did not come to lie at one address.
 */

#include <dlfcn.h>
#include <stdint.h>
#include <sys/mman.h>
#include <time.h>

#include "../notify.h"

enum { BURN_MSEC = 100, ROUNDS = 4, CODE_BYTES = 4096 };

typedef uint64_t (*work_fn)(uint64_t n);

static uint64_t cpu_ms(void) {
        struct timespec ts;

        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
        return (uint64_t) ts.tv_sec * 1000 + (uint64_t) ts.tv_nsec / 1000000;
}

__attribute__((noinline)) void call_first(work_fn work) {
        for (uint64_t begin = cpu_ms(); cpu_ms() - begin < BURN_MSEC;)
                work(100000);
}

__attribute__((noinline)) void call_second(work_fn work) {
        for (uint64_t begin = cpu_ms(); cpu_ms() - begin < BURN_MSEC;)
                work(100000);
}

__attribute__((noinline)) void call_copy(work_fn work) {
        for (uint64_t begin = cpu_ms(); cpu_ms() - begin < BURN_MSEC;)
                work(100000);
}

static work_fn load(const char *path, void **ret) {
        *ret = dlopen(path, RTLD_NOW);
        if (!*ret)
                _exit(2);
        return (work_fn) dlsym(*ret, "library_work");
}

int main(int argc, char **argv) {
        uint8_t code[CODE_BYTES], *page;
        work_fn work = NULL, before;
        void *library;

        if (argc < 3)
                return 2;
        for (unsigned i = 0; i < ROUNDS; i++) {
                before = work;
                work = load(argv[1 + i % 2], &library);
                if (before && work != before)
                        return 3;
                (i % 2 ? call_second : call_first)(work);
                page = (uint8_t *) ((uintptr_t) work & ~(uintptr_t) (CODE_BYTES - 1));
                memcpy(code, page, sizeof(code));
                dlclose(library);
        }
        if (mmap(page, CODE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != page)
                return 4;
        memcpy(page, code, sizeof(code));
        call_copy(work);
        notify_ready();
        for (;;)
                pause();
}
