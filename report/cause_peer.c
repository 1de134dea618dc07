/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdlib.h>

#include "common/text.h"
#include "report/cause.h"
#include "report/names.h"
#include "report/peer.h"
#include "report/storm.h"

/* Waits for somebody else, told apart by whom: a name server, a directory of users, the bus, a service that does not
 * accept or does not answer, a FIFO, the source of random numbers. */

/* Waits for one kind of peer: in all of the calls of a process, part of the time that the path has for them. */
struct waits {
        uint64_t time_ns;
        uint32_t longest; /* sample; REC_NONE: none */
        uint32_t count, unanswered;
        int error; /* errno of the last one that failed */
};

/* What part of the waits in this call, by this process, was for the peer. */
static double part_of(const struct analysis *a, const struct breakdown_row *row, enum peer peer) {
        uint64_t all = 0, those = 0;

        for (uint32_t i = 0; i < a->recording->n_samples; i++) {
                const struct rec_sample *s = a->recording->samples + i;

                if (s->kind != REC_SAMPLE_WAIT || s->process != row->process || s->syscall != row->syscall)
                        continue;
                all += s->weight_ns;
                those += a->peers.kinds[i] == peer ? s->weight_ns : 0;
        }
        return all > 0 ? (double) those / (double) all : 0;
}

static void count_wait(const struct analysis *a, uint32_t sample, struct waits *w) {
        const struct rec_sample *s = a->recording->samples + sample;
        struct wait_object o;

        wait_object_get(a->recording, a->peers.objects[sample], &o);
        w->count++;
        w->unanswered +=
                o.result == 0 && (peer_sample_is_call(s, "poll") || peer_sample_is_call(s, "ppoll"));
        if (o.result < 0)
                w->error = -o.result;
        if (w->longest == REC_NONE || s->blocked_ns > a->recording->samples[w->longest].blocked_ns)
                w->longest = sample;
}

static void find_waits(const struct analysis *a, enum peer peer, struct finding *f, struct waits *w) {
        uint64_t most = 0;

        for (size_t i = 0; i < a->breakdown.n_rows; i++) {
                const struct breakdown_row *row = a->breakdown.rows + i;
                uint64_t ns;

                if (row->kind != PIECE_WAIT || row->process >= a->recording->n_processes)
                        continue;
                ns = (uint64_t) ((double) row->duration_ns * part_of(a, row, peer));
                w->time_ns += ns;
                if (ns > most) {
                        most = ns;
                        f->process = row->process;
                }
        }
        for (uint32_t i = 0; i < a->recording->n_samples && w->time_ns > 0; i++)
                if (a->peers.kinds[i] == peer)
                        count_wait(a, i, w);
}

/* Fills all but the advice. 1: there are such waits. */
static int peer_find(const struct analysis *a, enum peer peer, const char *title, const char *verb,
                     struct finding *f) {
        struct waits w = { .longest = REC_NONE };
        _cleanup_(buf_done) struct buf b = BUF_NULL, function = BUF_NULL;
        const struct rec_sample *s;
        struct wait_object o;

        if (a->peers.counts[peer] == 0)
                return 0;
        find_waits(a, peer, f, &w);
        if (w.longest == REC_NONE || f->process == REC_NONE)
                return 0;
        s = a->recording->samples + w.longest;
        wait_object_get(a->recording, a->peers.objects[w.longest], &o);
        f->duration_ns = w.time_ns;
        f->stack = s->stack;

        buf_printf(&b, "%s waited ", process_name(a->recording, f->process));
        put_time_and_share(&b, a, w.time_ns);
        buf_printf(&b, " %s %s", verb, wait_object_address(&o));
        if (w.unanswered > 0)
                buf_printf(&b, ", which did not answer %u %s", w.unanswered,
                           w.unanswered == 1 ? "time" : "times");
        else if (w.error > 0 && strerrorname_np(w.error))
                buf_printf(&b, " (%s)", strerrorname_np(w.error));
        if (stack_function(a->recording, f->stack, &function))
                buf_printf(&b, ", in %s", buf_text(&function));
        finding_summary(f, "%s: %s", title, buf_text(&b));
        finding_text(f, "process", process_name(a->recording, f->process));
        finding_number(f, "pid", a->recording->processes[f->process].pid);
        finding_text(f, "peer", wait_object_address(&o));
        finding_text(f, "call", syscall_name(s->syscall) ?: "");
        finding_number(f, "waits", w.count);
        finding_number(f, "unanswered", w.unanswered);
        finding_number(f, "errno", (uint64_t) w.error);
        finding_number(f, "longest_usec", s->blocked_ns / NSEC_PER_USEC);
        return buf_error(&b) < 0 ? -ENOMEM : 1;
}

int cause_dns_find(const struct analysis *a, struct finding *f) {
        int r = peer_find(a, PEER_DNS, "DNS", "for the name server", f);

        if (r > 0)
                finding_advice(f, NULL,
                               "Repair the name server (resolv.conf, `resolvectl status`), put the name "
                               "into /etc/hosts, or "
                               "bound the wait with `options timeout:1 attempts:1`. With a resolver on this "
                               "machine, "
                               "After=nss-lookup.target.");
        return r;
}

int cause_names_find(const struct analysis *a, struct finding *f) {
        int r = peer_find(a, PEER_NAMES, "name service", "for users and groups from", f);

        if (r > 0)
                finding_advice(f, NULL,
                               "Look at the service behind it (nscd, SSSD, LDAP), and order after "
                               "nss-user-lookup.target; "
                               "User= and Group= of the system are best local ones.");
        return r;
}

int cause_dbus_find(const struct analysis *a, struct finding *f) {
        int r = peer_find(a, PEER_DBUS, "D-Bus", "for an answer on", f);

        if (r > 0)
                finding_advice(f, NULL,
                               "See who is slow to answer: `busctl monitor` while it starts, and whether "
                               "that service "
                               "is started by this very call.");
        return r;
}

int cause_entropy_find(const struct analysis *a, struct finding *f) {
        int r = peer_find(a, PEER_ENTROPY, "entropy", "for random numbers from", f);

        if (r > 0)
                finding_advice(
                        f, NULL,
                        "Read /dev/urandom or getrandom(2) instead (Java: "
                        "-Djava.security.egd=file:/dev/./urandom); a virtual machine needs virtio-rng.");
        return r;
}

int cause_connect_find(const struct analysis *a, struct finding *f) {
        int r = peer_find(a, PEER_CONNECT, "connect", "to be connected to", f);

        if (r > 0)
                finding_advice(f, NULL,
                               "Is it there, and does a firewall drop packets to it? If the service can "
                               "start without "
                               "it, connect later, or with a short time-out.");
        return r;
}

int cause_socket_find(const struct analysis *a, struct finding *f) {
        int r = peer_find(a, PEER_SOCKET, "socket", "for an answer of", f);

        if (r > 0)
                finding_advice(f, NULL,
                               "It was connected, and did not answer: look there, or ask with a time-out.");
        return r;
}

int cause_fifo_find(const struct analysis *a, struct finding *f) {
        int r = peer_find(a, PEER_FIFO, "FIFO", "for the other end of", f);

        if (r > 0)
                finding_advice(f, NULL, "Start what writes to it first (After=, Requires=).");
        return r;
}
