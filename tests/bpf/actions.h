/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdint.h>

/*
 * What the "services" of the kernel-side tests do: the harness executes itself with --do ACTION NUMBER inside
 * the cgroup under test. The exit status; 127 for an unknown action.
 */
int actions_run(const char *action, unsigned long number);

/* ---- wait_actions.c; 0: all went well ---- */

int wait_everywhere(unsigned long msec); /* in each of a few calls */
int fault_many(unsigned long megabytes); /* of a file that has to be read from the disk */
int pause_for_ever(unsigned long unused);
int exec_leased(unsigned long msec);
int ping_pong(unsigned long count); /* between two threads */
int handle_on_alternate_stack(unsigned long msec);

/* Waits with words on its stack that hold its pid in their lower half. */
#define MARK UINT64_C(0x5eed5eed00000000)
enum { MARKS = 512 };
int wait_with_marks(unsigned long rounds);
