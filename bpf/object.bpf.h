/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What a wait that was told had waited for: the file or the socket behind the descriptor of the call, told as a path
 * right behind the wait. Only at the exit of the call, where the descriptor is still the one that it had.
 */

#include "bpf/wait.bpf.h"

enum { /* asm/unistd_64.h */
       NR_READ = 0,
       NR_POLL = 7,
       NR_PREAD64 = 17,
       NR_READV = 19,
       NR_WRITEV = 20,
       NR_ACCEPT = 43,
       NR_RECVFROM = 45,
       NR_RECVMSG = 47,
       NR_GETDENTS64 = 217,
       NR_EPOLL_WAIT = 232,
       NR_PPOLL = 271,
       NR_EPOLL_PWAIT = 281,
       NR_ACCEPT4 = 288,
       NR_PREADV = 295,
       NR_RECVMMSG = 299,
       NR_SENDMMSG = 307,
};

enum { /* linux/stat.h, linux/socket.h */
       MODE_TYPE = 0170000,
       MODE_SOCKET = 0140000,
       MODE_REGULAR = 0100000,
       MODE_DIRECTORY = 0040000,
       MODE_CHARACTER = 0020000,
       MODE_FIFO = 0010000,
       FAMILY_UNIX = 1,
       FAMILY_INET = 2,
       FAMILY_INET6 = 10,
       SOCKET_STREAM = 1,
       SOCKET_DATAGRAM = 2,
       UNIX_ADDRESS_MAX = 110, /* struct sockaddr_un */
       INET_BYTES = 16, /* struct sockaddr_in, and _in6 */
       INET6_BYTES = 28,
};

/* Which argument of the call is a descriptor; poll has it in memory. False: none, or not one that matters. */
static __always_inline bool waits_on_descriptor(__u32 nr) {
        switch (nr) {
        case NR_READ:
        case NR_PREAD64:
        case NR_READV:
        case NR_PREADV:
        case NR_WRITE:
        case NR_WRITEV:
        case NR_CONNECT:
        case NR_ACCEPT:
        case NR_ACCEPT4:
        case NR_RECVFROM:
        case NR_RECVMSG:
        case NR_RECVMMSG:
        case NR_SENDTO:
        case NR_SENDMSG:
        case NR_SENDMMSG:
        case NR_FLOCK:
        case NR_FCNTL:
        case NR_FSYNC:
        case NR_FDATASYNC:
        case NR_SYNCFS:
        case NR_GETDENTS64:
        case NR_EPOLL_WAIT:
        case NR_EPOLL_PWAIT: return true;
        default: return false;
        }
}

static __always_inline struct file *file_of(struct task_struct *task, __u32 fd) {
        struct fdtable *table = BPF_CORE_READ(task, files, fdt);
        struct file **files, *file = NULL;

        if (!table || fd >= BPF_CORE_READ(table, max_fds))
                return NULL;
        files = BPF_CORE_READ(table, fd);
        bpf_probe_read_kernel(&file, sizeof(file), files + fd);
        return file;
}

/* As struct sockaddr_in and sockaddr_in6. */
static __always_inline void describe_inet(struct event_path *event, struct sock *sk, __u16 family) {
        __u16 port = BPF_CORE_READ(sk, __sk_common.skc_dport);
        __u32 address = BPF_CORE_READ(sk, __sk_common.skc_daddr);

        __builtin_memcpy(event->path, &family, sizeof(family));
        __builtin_memcpy(event->path + 2, &port, sizeof(port));
        __builtin_memcpy(event->path + 4, &address, sizeof(address));
        event->path_size = INET_BYTES;
        if (family == FAMILY_INET6 && bpf_core_field_exists(sk->__sk_common.skc_v6_daddr)) {
                bpf_core_read(event->path + 8, 16, &sk->__sk_common.skc_v6_daddr);
                event->path_size = INET6_BYTES;
        }
}

/* Who listens there: the peer's address, or, of the accepting side, its own. */
static __always_inline void describe_unix(struct event_path *event, struct unix_sock *sk) {
        struct unix_sock *peer = (void *) BPF_CORE_READ(sk, peer);
        struct unix_address *address = peer ? BPF_CORE_READ(peer, addr) : NULL;
        int length;

        if (!address)
                address = BPF_CORE_READ(sk, addr);
        if (!address)
                return;
        length = BPF_CORE_READ(address, len);
        if (length <= 0 || length > UNIX_ADDRESS_MAX)
                return;
        bpf_probe_read_kernel(event->path, UNIX_ADDRESS_MAX, &address->name);
        event->path_size = length;
}

static __always_inline enum object_kind describe_socket(struct event_path *event, struct file *file,
                                                        __u8 *state) {
        struct socket *socket = BPF_CORE_READ(file, private_data);
        struct sock *sk = socket ? BPF_CORE_READ(socket, sk) : NULL;
        __s16 type = socket ? BPF_CORE_READ(socket, type) : 0;
        __u16 family;

        if (!sk)
                return OBJECT_SOCKET;
        family = BPF_CORE_READ(sk, __sk_common.skc_family);
        *state = BPF_CORE_READ(sk, __sk_common.skc_state);
        if (family == FAMILY_UNIX) {
                describe_unix(event, (void *) sk);
                return OBJECT_UNIX;
        }
        if (family != FAMILY_INET && family != FAMILY_INET6)
                return OBJECT_SOCKET;
        describe_inet(event, sk, family);
        return type == SOCKET_STREAM ? OBJECT_TCP : type == SOCKET_DATAGRAM ? OBJECT_UDP : OBJECT_SOCKET;
}

static __always_inline void describe_name(struct event_path *event, struct file *file) {
        const unsigned char *name = BPF_CORE_READ(file, f_path.dentry, d_name.name);
        long n = bpf_probe_read_kernel_str(event->path, sizeof(event->path), name);

        event->path_size = n > 0 ? n : 0;
}

/* The scratch has the call. A function of its own without pointers, so that the verifier reads it once. */
__noinline int handle_object(__u32 nr) {
        struct path_scratch *scratch = get_path_scratch();
        struct task_struct *task = (void *) bpf_get_current_task();
        enum object_kind kind = OBJECT_OTHER;
        struct event_path *event;
        struct file *file;
        __u32 fd = 0;
        __u8 state = 0;
        __u16 mode;

        if (!scratch)
                return 0;
        event = &scratch->event;
        __builtin_memset(event->path, 0, UNIX_ADDRESS_MAX);
        event->path_size = 0;
        if (nr == NR_OPEN ||
            nr == NR_OPENAT) { /* of a FIFO, or on a file system that hangs: it is known if it ended */
                file = event->result >= 0 ? file_of(task, event->result) : NULL;
                kind = file && (BPF_CORE_READ(file, f_inode, i_mode) & MODE_TYPE) == MODE_FIFO ? OBJECT_PIPE
                                                                                               : OBJECT_FILE;
                event->argument = (__u64) kind << OBJECT_KIND_SHIFT;
                read_path(event, scratch->arguments[nr == NR_OPEN ? 0 : 1]);
                tell_path(scratch);
                return 0;
        }
        if (nr == NR_POLL || nr == NR_PPOLL) { /* struct pollfd begins with its descriptor */
                if (scratch->arguments[1] == 0 ||
                    bpf_probe_read_user(&fd, sizeof(fd), (void *) scratch->arguments[0]) < 0)
                        return 0;
        } else if (waits_on_descriptor(nr))
                fd = scratch->arguments[0];
        else
                return 0;

        file = file_of(task, fd);
        if (!file)
                return 0;
        mode = BPF_CORE_READ(file, f_inode, i_mode) & MODE_TYPE;
        if (mode == MODE_SOCKET)
                kind = describe_socket(event, file, &state);
        else {
                kind = mode == MODE_REGULAR     ? OBJECT_FILE
                       : mode == MODE_DIRECTORY ? OBJECT_DIRECTORY
                       : mode == MODE_FIFO      ? OBJECT_PIPE
                       : mode == MODE_CHARACTER ? OBJECT_DEVICE
                                                : OBJECT_OTHER;
                describe_name(event, file);
        }
        event->argument = (__u64) kind << OBJECT_KIND_SHIFT | (__u64) state << OBJECT_STATE_SHIFT | fd;
        tell_path(scratch);
        return 0;
}
