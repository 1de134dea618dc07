/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Macros of the libraries whose headers cppcheck does not read. */
#define json_array_foreach(array, index, value) for ((index) = 0, (value) = (array); (value);)
#define json_object_foreach(object, key, value) for ((key) = "", (value) = (object); (value);)
#define LIBBPF_OPTS(type, name, ...)            struct type name = { .sz = sizeof(struct type), __VA_ARGS__ }
