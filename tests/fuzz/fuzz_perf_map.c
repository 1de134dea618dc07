/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * A perf map, which the profiled service writes as it likes.
 *
 * Input: its text. Corpus (corpus/perf_map): beginnings of maps that node, CoreCLR and CPython wrote, and
 * mangled ones. No name may reach past its limits, and none be found before the function that it belongs to.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "symbolize/perf_map.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_(perf_map_freep) struct perf_map *map = NULL;
        struct perf_map_symbol symbol;

        if (perf_map_new((const char *) data, size, &map) < 0)
                return 0;
        for (size_t at = 0; at + sizeof(uint64_t) <= size && at < 4096; at++) {
                char digits[17] = "";
                uint64_t address;

                memcpy(digits, data + at, MIN(size - at, sizeof(digits) - 1));
                address = strtoull(digits, NULL, 16);
                if (perf_map_find(map, address, &symbol) == 0 &&
                    (symbol.start > address || strlen(symbol.name) > PERF_MAP_NAME_MAX))
                        abort();
        }
        return 0;
}
