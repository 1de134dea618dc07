/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/described.h"

/* Causes that are a wait for somebody: dns-wait, name-service-wait, dbus-wait, entropy-wait, connect-wait, socket-wait,
 * pipe-wait. Objects: 1 a file, 3 a FIFO, 4 a device, 5 TCP, 6 UDP, 7 a unix socket. */

#define ONE "start begin=0 until=1s\nprocess 1 begin=0 exec=0 comm=app slot=ExecStart exe=/opt/app/app\n"

/* A wait of so long in a call, and what it was for. */
static void expect(const char *call, const char *ms, const char *path, const char *more, const char *cause) {
        char text[1024];
        struct described d;
        unsigned long rest = 1000 - strtoul(ms, NULL, 10);

        snprintf(text, sizeof(text),
                 "wait 1 %s blocked=%s\nwait 1 pause blocked=%lums\nsamples 1 wait call=%s from=901ms "
                 "to=902ms count=1 weight=%s "
                 "blocked=%s\npath object 1 %s call=%s at=902ms %s\n",
                 call, ms, rest, call, ms, ms, path, call, more);
        d = describe(ONE, text, NULL);
        assert_string_equal(analysis_cause(d.analysis), cause);
        described_done(&d);
}

static void each_is_the_verdict_from_a_quarter(void **state) {
        static const struct {
                const char *call, *path, *more, *cause;
        } waits[] = {
                { "poll", "inet:127.0.0.53:53", "object=6 state=7", "dns-wait" },
                { "recvfrom", "inet6:[fd00::1]:53", "object=6", "dns-wait" },
                { "read", "inet:192.0.2.1:853", "object=5 state=1", "dns-wait" },
                { "recvmsg", "unix:/run/systemd/resolve/io.systemd.Resolve", "object=7", "dns-wait" },
                { "poll", "unix:/run/nscd/socket", "object=7", "name-service-wait" },
                { "poll", "unix:/var/lib/sss/pipes/nss", "object=7", "name-service-wait" },
                { "poll", "inet:192.0.2.7:636", "object=5 state=1", "name-service-wait" },
                { "ppoll", "unix:/run/dbus/system_bus_socket", "object=7", "dbus-wait" },
                { "read", "/dev/random", "object=4", "entropy-wait" },
                { "read", "/dev/random", "object=3", "entropy-wait" },
                { "openat", "/dev/random", "object=1", "entropy-wait" },
                { "connect", "inet:192.0.2.1:80", "object=5 state=7 result=-110", "connect-wait" },
                { "poll", "inet:192.0.2.1:80", "object=5 state=2", "connect-wait" },
                { "connect", "unix:/run/app.sock", "object=7", "connect-wait" },
                { "recvfrom", "inet:192.0.2.1:80", "object=5 state=1", "socket-wait" },
                { "read", "unix:/run/app.sock", "object=7", "socket-wait" },
                { "openat", "/run/app.fifo", "object=3", "pipe-wait" },
                { "read", "/run/app.fifo", "object=3", "pipe-wait" },
        };

        for (size_t i = 0; i < sizeof(waits) / sizeof(*waits); i++) {
                expect(waits[i].call, "249ms", waits[i].path, waits[i].more, "none");
                expect(waits[i].call, "251ms", waits[i].path, waits[i].more, waits[i].cause);
        }
}

static void servers_that_wait_for_work_are_not_accused(void **state) {
        expect("accept4", "900ms", "inet:0.0.0.0:0", "object=5 state=10", "none");
        expect("poll", "900ms", "inet:0.0.0.0:0", "object=5 state=10", "none");
        expect("recvfrom", "900ms", "inet:0.0.0.0:0", "object=6 state=7", "none");
        expect("poll", "900ms", "unix:", "object=7", "none");
        expect("read", "900ms", "pipe:[123]", "object=3", "none"); /* a child's output */
        expect("epoll_wait", "900ms", "anon_inode:[eventpoll]", "object=0", "none");
        expect("read", "900ms", "/etc/app.conf", "object=1", "none");
        expect("openat", "900ms", "/mnt/far/app.conf", "object=1", "none"); /* a file system that is slow */
}

/* Half of the waits in poll were for the name server: half of the time in poll is its. */
static void time_is_shared_among_peers(void **state) {
        _described_ d =
                describe(ONE,
                         "wait 1 poll blocked=800ms\nwait 1 pause blocked=200ms\n"
                         "samples 1 wait call=poll from=100ms to=101ms count=1 weight=400ms blocked=400ms\n"
                         "samples 1 wait call=poll from=500ms to=501ms count=1 weight=400ms blocked=400ms\n"
                         "path object 1 inet:192.0.2.1:53 call=poll at=101ms object=6\n"
                         "path object 1 inet:192.0.2.9:80 call=poll at=501ms object=5 state=1\n",
                         NULL);

        assert_int_equal(d.analysis->n_findings, 2);
        for (size_t i = 0; i < 2; i++)
                assert_in_range(d.analysis->findings[i].duration_ns, 399 * NSEC_PER_MSEC,
                                401 * NSEC_PER_MSEC);
}

/* The last part of a name, as the kernel tells it, is completed by the open that returned the descriptor. */
static void a_name_is_completed_by_its_open(void **state) {
        _described_ d =
                describe(ONE,
                         "wait 1 read blocked=900ms\n"
                         "samples 1 wait call=read from=901ms to=902ms count=1 weight=900ms blocked=900ms\n"
                         "path open 1 /srv/app/fifo at=1ms result=8\n"
                         "path object 1 fifo call=read at=902ms object=3 argument=8\n",
                         NULL);

        assert_cause(d, "pipe-wait");
        assert_string_equal(evidence_text(d.analysis->findings, "peer"), "/srv/app/fifo");
        assert_string_equal(evidence_text(d.analysis->findings, "call"), "read");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(each_is_the_verdict_from_a_quarter),
                cmocka_unit_test(servers_that_wait_for_work_are_not_accused),
                cmocka_unit_test(time_is_shared_among_peers),
                cmocka_unit_test(a_name_is_completed_by_its_open),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
