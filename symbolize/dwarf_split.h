/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdint.h>

#include "symbolize/dwarf_index.h"
#include "symbolize/dwarf_unit.h"

/*
 * Split DWARF: the file that was linked holds a skeleton of each unit, the rest is in a .dwo file, or all of
 * them are in one .dwp. Which belongs to which says a number that both hold.
 */

/* A .dwp. */
struct dwarf_package;

/* Asks for NAME.dwp beside the module. -ENOENT: none; -ENOMEM. */
int dwarf_package_new(const struct dwarf_companions *companions, struct dwarf_package **ret);
struct dwarf_package *dwarf_package_free(struct dwarf_package *p);
DEFINE_CLEANUP(struct dwarf_package *, dwarf_package_free);

/* The other half of one unit. */
struct dwarf_split {
        struct dwarf_unit unit;

        /* owned, of a .dwo; of a .dwp all is the package's */
        struct elf_image *image;
        struct dwarf_file file;
};

/*
 * Finds the half that belongs to a skeleton, which is borrowed and must outlive it; package: or NULL.
 * -ENOENT: none, or of another build; -EBADMSG, -ENOTSUP, -E2BIG: it cannot be read; -ENOMEM.
 */
int dwarf_split_new(const struct dwarf_unit *skeleton, struct dwarf_package *package,
                    const struct dwarf_companions *companions, struct dwarf_split **ret);
struct dwarf_split *dwarf_split_free(struct dwarf_split *s);
DEFINE_CLEANUP(struct dwarf_split *, dwarf_split_free);
