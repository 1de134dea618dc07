/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "bpf/sample.bpf.h"
#include "tests/bpf_native/host.h"

enum { USER64_CS = 0x33, KERNEL_CS = 0x10, STACK_BYTES = 128 * 1024 };

static struct {
        struct task_struct task;
        struct pid pid;
        struct mm_struct mm;
        _Alignas(8) uint8_t stack[THREAD_SIZE];
} process;

_Alignas(STACK_PAGE) static uint8_t memory[STACK_BYTES];

static int setup(void **state) {
        uint32_t key = 100;
        struct member member = { .tgid = 100, .session = 2 };

        host_reset();
        memset(stats, 0, sizeof(stats));
        memset(&process, 0, sizeof(process));
        process.pid.numbers[0].nr = 100;
        process.task.pid = process.task.tgid = 100;
        process.task.thread_pid = &process.pid;
        process.task.group_leader = &process.task;
        process.task.stack = process.stack;
        process.task.mm = &process.mm;
        host.task = &process.task;
        host.tgid = host.tid = 100;
        host.comm = "main";
        host.now_ns = 1000;
        for (size_t i = 0; i < sizeof(memory); i++)
                memory[i] = (uint8_t) (i * 7 + i / 256);
        assert_int_equal(bpf_map_update_elem(&members, &key, &member, BPF_ANY), 0);
        return 0;
}

static const struct event_sample *tick_at(const void *sp, uint64_t cs) {
        struct saved_regs regs = {
                .sp = (uintptr_t) sp, .cs = cs, .ip = 0x1234, .ax = 1, .dx = 2, .orig_ax = UINT64_MAX
        };

        host.n_records = 0;
        on_tick(&regs);
        assert_int_equal(host.n_records, 1);
        return (const struct event_sample *) host.records[0].data;
}

static void expect_copy(const struct event_sample *event, const uint8_t *from, uint32_t bytes) {
        assert_int_equal(event->stack_bytes, bytes);
        assert_int_equal(host.records[0].bytes, sizeof(*event) + bytes);
        assert_memory_equal(event + 1, from, bytes);
}

static void registers_are_in_dwarf_order(void **state) {
        const struct event_sample *event = tick_at(memory, USER64_CS);

        assert_int_equal(event->regs[DWARF_RAX], 1);
        assert_int_equal(event->regs[DWARF_RDX], 2);
        assert_int_equal(event->regs[DWARF_RIP], 0x1234);
        assert_int_equal(event->regs[DWARF_RSP], (uintptr_t) memory);
        assert_int_equal(event->flags & SAMPLE_USER, SAMPLE_USER);
        assert_int_equal(event->syscall, SYSCALL_NONE);
        assert_string_equal(event->comm, "main");
        assert_int_equal(stats[2].samples, 1);
}

/* There lies the number of arguments; above it they and the environment. */
static void the_copy_ends_where_the_program_began(void **state) {
        process.mm.start_stack = (uintptr_t) memory + 10000;
        expect_copy(tick_at(memory + 100, USER64_CS), memory + 100, 9908);
        assert_int_equal(tick_at(memory + 100, USER64_CS)->flags & (SAMPLE_STACK_CUT | SAMPLE_STACK_FAULT),
                         0);
}

static void of_a_program_that_has_just_begun_only_the_number_of_arguments_is_copied(void **state) {
        process.mm.start_stack = (uintptr_t) memory + 64;
        expect_copy(tick_at(memory + 64, USER64_CS), memory + 64, 8);
}

static void deep_stacks_are_cut(void **state) {
        process.mm.start_stack = (uintptr_t) memory + STACK_BYTES;
        expect_copy(tick_at(memory + 8, USER64_CS), memory + 8, STACK_COPY_MAX);
        assert_int_equal(tick_at(memory + 8, USER64_CS)->flags & SAMPLE_STACK_CUT, SAMPLE_STACK_CUT);
}

static void a_missing_page_is_a_hole_in_the_copy(void **state) {
        static const uint8_t zeros[STACK_PAGE];
        const struct event_sample *event;
        const uint8_t *copy;

        for (uint32_t at = 0; at < 4; at++) {
                host.hole_begin = (uintptr_t) memory + at * STACK_PAGE;
                host.hole_end = host.hole_begin + STACK_PAGE;
                process.mm.start_stack = (uintptr_t) memory + 5 * STACK_PAGE;
                event = tick_at(memory + 24, USER64_CS);
                copy = (const uint8_t *) (event + 1) - 24;
                assert_int_equal(event->flags & SAMPLE_STACK_FAULT, 0);
                assert_int_equal(event->stack_bytes, 5 * STACK_PAGE - 24 + 8);
                assert_int_equal(event->holes, 1U << at);
                for (uint32_t page = 0; page < 5; page++) {
                        uint32_t begin = page == 0 ? 24 : page * STACK_PAGE;

                        assert_memory_equal(copy + begin, page == at ? zeros : memory + begin,
                                            (page + 1) * STACK_PAGE - begin);
                }
        }
}

static void what_is_missing_at_the_end_is_not_sent(void **state) {
        host.hole_begin = (uintptr_t) memory + 3 * STACK_PAGE;
        host.hole_end = host.hole_begin + 8 * STACK_PAGE;
        process.mm.start_stack = (uintptr_t) memory + 5 * STACK_PAGE;
        expect_copy(tick_at(memory + 24, USER64_CS), memory + 24, 3 * STACK_PAGE - 24);
        assert_int_equal(tick_at(memory + 24, USER64_CS)->flags & SAMPLE_STACK_FAULT, SAMPLE_STACK_FAULT);
}

static void every_offset_in_a_page_is_copied_right(void **state) {
        for (uint32_t offset = 0; offset < STACK_PAGE; offset += 509) {
                process.mm.start_stack = (uintptr_t) memory + 2 * STACK_PAGE + 17;
                expect_copy(tick_at(memory + offset, USER64_CS), memory + offset,
                            2 * STACK_PAGE + 25 - offset);
        }
}

/* Where the C library keeps the thread's descriptor, its stack ends. */
static void a_threads_stack_ends_below_its_descriptor(void **state) {
        host.tid = 101;
        process.task.pid = 101;
        process.task.thread.fsbase = (uintptr_t) memory + 5000;
        process.mm.start_stack = (uintptr_t) memory + 100; /* of the main thread: of no meaning here */
        expect_copy(tick_at(memory + 16, USER64_CS), memory + 16, 4984);
}

static void in_a_call_the_registers_are_those_at_its_entry(void **state) {
        struct saved_regs *saved = (struct saved_regs *) (process.stack + THREAD_SIZE - sizeof(*saved));
        const struct event_sample *event;

        *saved =
                (struct saved_regs){ .sp = (uintptr_t) memory, .ip = 0x99, .cs = USER64_CS, .orig_ax = 254 };
        process.mm.start_stack = (uintptr_t) memory + 64;
        event = tick_at((void *) 0xffff8000, KERNEL_CS);
        assert_int_equal(event->flags & (SAMPLE_USER | SAMPLE_SYSCALL | SAMPLE_NO_REGS), SAMPLE_SYSCALL);
        assert_int_equal(event->syscall, 254);
        assert_int_equal(event->regs[DWARF_RIP], 0x99);
        expect_copy(event, memory, 72);

        saved->orig_ax = UINT64_MAX;
        event = tick_at((void *) 0xffff8000, KERNEL_CS);
        assert_int_equal(event->syscall, SYSCALL_NONE);
        assert_int_equal(event->flags & SAMPLE_ON_FAULT, SAMPLE_ON_FAULT);
}

static void compat_code_and_missing_registers_have_no_stack(void **state) {
        struct saved_regs *saved = (struct saved_regs *) (process.stack + THREAD_SIZE - sizeof(*saved));
        const struct event_sample *event;

        event = tick_at(memory, USER32_CS);
        assert_int_equal(event->flags & SAMPLE_COMPAT, SAMPLE_COMPAT);
        expect_copy(event, memory, 0);

        saved->cs = 0; /* exec has not set them yet */
        event = tick_at((void *) 0xffff8000, KERNEL_CS);
        assert_int_equal(event->flags & SAMPLE_NO_REGS, SAMPLE_NO_REGS);
        expect_copy(event, memory, 0);
}

/* FRED keeps other things in the upper bits of the cs slot. */
static void only_16_bits_of_cs_count(void **state) {
        const struct event_sample *event = tick_at(memory, UINT64_C(0xabcd0000) << 16 | USER64_CS);

        assert_int_equal(event->flags & (SAMPLE_USER | SAMPLE_COMPAT | SAMPLE_NO_REGS), SAMPLE_USER);
}

static void a_stack_pointer_of_nonsense_copies_nothing(void **state) {
        host.hole_begin = 0;
        host.hole_end = UINTPTR_MAX;
        expect_copy(tick_at((void *) UINTPTR_MAX, USER64_CS), memory, 0);
        expect_copy(tick_at(NULL, USER64_CS), memory, 0);
}

static void strangers_are_not_sampled(void **state) {
        struct saved_regs regs = { .sp = (uintptr_t) memory, .cs = USER64_CS };

        host.tgid = host.tid = 101;
        on_tick(&regs);
        assert_int_equal(host.n_records, 0);
}

static void a_full_ring_is_counted(void **state) {
        struct saved_regs regs = { .sp = (uintptr_t) memory, .cs = USER64_CS };

        host.n_records = host.records_limit = HOST_RECORDS_MAX;
        on_tick(&regs);
        assert_int_equal(stats[2].lost[LOSS_SAMPLE], 1);
        assert_int_equal(stats[2].samples, 1);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(registers_are_in_dwarf_order, setup),
                cmocka_unit_test_setup(the_copy_ends_where_the_program_began, setup),
                cmocka_unit_test_setup(
                        of_a_program_that_has_just_begun_only_the_number_of_arguments_is_copied, setup),
                cmocka_unit_test_setup(deep_stacks_are_cut, setup),
                cmocka_unit_test_setup(a_missing_page_is_a_hole_in_the_copy, setup),
                cmocka_unit_test_setup(what_is_missing_at_the_end_is_not_sent, setup),
                cmocka_unit_test_setup(every_offset_in_a_page_is_copied_right, setup),
                cmocka_unit_test_setup(a_threads_stack_ends_below_its_descriptor, setup),
                cmocka_unit_test_setup(in_a_call_the_registers_are_those_at_its_entry, setup),
                cmocka_unit_test_setup(compat_code_and_missing_registers_have_no_stack, setup),
                cmocka_unit_test_setup(only_16_bits_of_cs_count, setup),
                cmocka_unit_test_setup(a_stack_pointer_of_nonsense_copies_nothing, setup),
                cmocka_unit_test_setup(strangers_are_not_sampled, setup),
                cmocka_unit_test_setup(a_full_ring_is_counted, setup),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
