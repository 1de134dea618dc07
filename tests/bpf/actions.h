/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What the "services" of the kernel-side tests do: the harness executes itself with --do ACTION NUMBER inside
 * the cgroup under test. The exit status; 127 for an unknown action.
 */
int actions_run(const char *action, unsigned long number);
