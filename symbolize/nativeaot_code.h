/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "symbolize/elf_image.h"

/*
 * The pieces of code that the .NET native compiler made, as the unwinder sees them: each method and each of its
 * exception handlers has an FDE, whose language data says what it is; stubs in front of the methods of value
 * types have none and are known by their instructions.
 */
struct nativeaot_piece {
        uint64_t start, end; /* virtual addresses, start < end */
        uint64_t entry; /* of the method that it is a part of, or that the stub leads to; of methods start */
        uint32_t name; /* for the owner of the table; 0 here */
};

struct nativeaot_code {
        struct nativeaot_piece *pieces; /* owned; sorted by start, without overlap */
        size_t count;
};

/* -ENODATA: no section of managed code; -EBADMSG: no frame information, pieces overlap; -E2BIG; -ENOMEM. */
int nativeaot_code_init(const struct elf_image *image, struct nativeaot_code *ret);
void nativeaot_code_done(struct nativeaot_code *code);

/* The piece that holds the address, NULL. */
struct nativeaot_piece *nativeaot_code_find(const struct nativeaot_code *code, uint64_t vaddr);
/* The method that begins at the address, NULL. */
struct nativeaot_piece *nativeaot_code_method(const struct nativeaot_code *code, uint64_t vaddr);
