/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * Unit names as systemd 252 to 257 treats them (systemd.unit(5); src/basic/unit-name.c and
 * cgroup-util.c for what the manual leaves out).
 */

enum { UNIT_NAME_MAX = 255 };

/* What the user typed → a unit name, as systemctl does: a path becomes a mount or device name, a name
 * without a suffix gets ".service", odd characters are escaped (\x2d). *ret is malloc()ed.
 * -EINVAL: cannot be a unit name (empty, too long, "/" unescapable). */
int unit_name_mangle(const char *typed, char **ret);
bool unit_name_is_valid(const char *name); /* plain, template or instance */
bool unit_name_is_template(const char *name); /* "foo@.service" */
bool unit_name_is_service(const char *name);
/* Name of the cgroup directory of a unit: escaped with "_" where it would clash with a kernel file
 * ("memory.service" → "_memory.service"). systemd 254 began to escape also what has more behind the
 * controller's name: "io.podman.service" is in "_io.podman.service" since (its pull request 27356).
 * systemd_version: of the manager, 252 or 257. *ret is malloc()ed. */
int unit_name_cgroup(const char *name, unsigned systemd_version, char **ret);
/* "a-b.slice" → "/a.slice/a-b.slice", "-.slice" → "". *ret is malloc()ed. -EINVAL: no slice. */
int unit_slice_cgroup(const char *slice, unsigned systemd_version, char **ret);
