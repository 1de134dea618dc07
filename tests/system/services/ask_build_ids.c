/* SPDX-License-Identifier: GPL-2.0-or-later */

/* ask_build_ids: another profiler: asks the kernel for the build-ids of what is mapped on every CPU, then is ready. */

#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "notify.h"

enum { RING_BYTES = 8 * 4096 };

int main(void) {
        struct perf_event_attr attr = {
                .type = PERF_TYPE_SOFTWARE,
                .size = sizeof(attr),
                .config = PERF_COUNT_SW_DUMMY,
                .mmap = 1,
                .mmap2 = 1,
                .build_id = 1,
        };
        long cpus = sysconf(_SC_NPROCESSORS_ONLN);

        for (long cpu = 0; cpu < cpus; cpu++) {
                long fd = syscall(SYS_perf_event_open, &attr, -1, (int) cpu, -1, 0UL);

                if (fd < 0 || mmap(NULL, 4096 + RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, (int) fd,
                                   0) == MAP_FAILED)
                        return 1;
        }
        notify_ready();
        for (;;)
                pause();
}
