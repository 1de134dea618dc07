/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Attaches a program that does nothing to sys_exit, says so, and holds it until standard input ends: the least
 * that any counting of system calls costs, and what ours is measured against. */

#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <unistd.h>

int main(void) {
        static const struct bpf_insn program[] = {
                { .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
                { .code = BPF_JMP | BPF_EXIT },
        };
        int program_fd, link_fd;
        char c;

        program_fd = bpf_prog_load(BPF_PROG_TYPE_RAW_TRACEPOINT, "empty", "GPL", program, 2, NULL);
        if (program_fd < 0) {
                perror("bpf_prog_load");
                return 1;
        }
        link_fd = bpf_raw_tracepoint_open("sys_exit", program_fd);
        if (link_fd < 0) {
                perror("bpf_raw_tracepoint_open");
                return 1;
        }
        puts("attached");
        fflush(stdout);
        while (read(STDIN_FILENO, &c, 1) > 0)
                ;
        return 0;
}
