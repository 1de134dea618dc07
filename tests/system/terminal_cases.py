# SPDX-License-Identifier: GPL-2.0-or-later
"""Cases of the system tier with a person at a terminal: questions, progress, Ctrl-C."""

import errno
import json
import os
import pty
import re
import select
import time

from cases import WAIT_SECONDS, case, check, equal, processes, sessions, service, wait_until

CTRL_C = b"\x03"


class Terminal:
    """startprof in the container, with a terminal of its own."""

    def __init__(self, c, *arguments):
        # A session of its own: else what entered the container would hear Ctrl-C, too, and die of it.
        command = c.command("setsid", "--ctty", "--wait", "env", "TERM=xterm", "COLUMNS=200", "startprof", *arguments)
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execvp(command[0], command)
        self.text = ""

    def read(self):
        """Appends what comes; False at the end."""
        if not select.select([self.fd], [], [], 0.2)[0]:
            return True
        try:
            data = os.read(self.fd, 65536)
        except OSError as e:            # how a terminal says that nobody has it open any more
            if e.errno != errno.EIO:
                raise
            data = b""
        self.text += data.decode(errors="replace")
        return bool(data)

    def expect(self, pattern):
        deadline = time.monotonic() + WAIT_SECONDS
        while not re.search(pattern, self.text):
            check(time.monotonic() < deadline and self.read(), f"{pattern!r} never came: {self.text!r}")

    def type(self, data):
        os.write(self.fd, data)

    def finish(self):
        """Exit status."""
        deadline = time.monotonic() + WAIT_SECONDS
        while self.read():
            check(time.monotonic() < deadline, f"it does not end: {self.text!r}")
        os.close(self.fd)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def state(c, unit):
    return c.run("systemctl", "is-active", unit, check=False).stdout.strip()


def invocation(c, unit):
    return c.run("systemctl", "show", "-P", "InvocationID", unit).stdout.strip()


@case()
def asks_before_a_restart(c):
    """The question names who restarts, too; no leaves all as it is, yes restarts."""
    service(c, "case-asked.service", "/services/burn 20")
    c.unit("case-part.service", "[Unit]\nPartOf=case-asked.service\n[Service]\nExecStart=/bin/sleep infinity\n")
    c.unit("case-idle.service", "[Unit]\nPartOf=case-asked.service\n[Service]\nExecStart=/bin/sleep infinity\n")
    c.run("systemctl", "start", "case-asked.service", "case-part.service")
    before = invocation(c, "case-asked.service")

    terminal = Terminal(c, "case-asked.service")
    terminal.expect(r"case-asked.service is active. Restart it, and with it case-part.service\? \[y/N\] ")
    terminal.type(b"\n")
    equal(terminal.finish(), 3, "exit status after no")
    equal(invocation(c, "case-asked.service"), before, "invocation after no")

    terminal = Terminal(c, "case-asked.service")
    terminal.expect(r"\[y/N\] ")
    terminal.type(b"y\n")
    equal(terminal.finish(), 0, f"exit status after yes ({terminal.text})")
    check("case-asked.service took" in terminal.text, terminal.text)
    check(invocation(c, "case-asked.service") != before, "invocation after yes")
    equal(state(c, "case-part.service"), "active", "the other one")


@case()
def progress_and_ctrl_c(c):
    """A line that moves; Ctrl-C ends the capture, not the start, and the report appears."""
    service(c, "case-slow.service", "/bin/sleep infinity", extra="TimeoutStartSec=60")
    terminal = Terminal(c, "case-slow.service")
    terminal.expect(r"case-slow.service: starting for [0-9.]+")
    terminal.type(CTRL_C)
    equal(terminal.finish(), 3, f"exit status ({terminal.text})")
    check("ending the capture of case-slow.service; its start goes on" in terminal.text, terminal.text)
    check("Where the time went" in terminal.text, terminal.text)
    equal(state(c, "case-slow.service"), "activating", "the start goes on")
    wait_until("nothing is armed", lambda: sessions(c) == 0)


@case()
def ctrl_c_before_the_start_that_is_waited_for(c):
    service(c, "case-never.service", "/services/burn 20")
    terminal = Terminal(c, "--wait", "case-never.service")
    terminal.expect("case-never.service: waiting for its start")
    terminal.type(CTRL_C)
    equal(terminal.finish(), 3, f"exit status ({terminal.text})")
    check("no longer waiting for the start of case-never.service" in terminal.text, terminal.text)
    check("case-never.service did not start: there is nothing to show" in terminal.text, terminal.text)
    equal(state(c, "case-never.service"), "inactive", "it was not started")
    wait_until("nothing is armed", lambda: sessions(c) == 0)


@case()
def second_ctrl_c_gives_up(c):
    """Also while the daemon is stuck."""
    service(c, "case-slow.service", "/bin/sleep infinity", extra="TimeoutStartSec=60")
    terminal = Terminal(c, "case-slow.service")
    terminal.expect("starting for")
    c.run("systemctl", "kill", "-s", "STOP", "startprofd.service")
    try:
        terminal.type(CTRL_C)
        terminal.expect("ending the capture")
        terminal.type(CTRL_C)
        equal(terminal.finish(), 130, f"exit status ({terminal.text})")
    finally:
        c.run("systemctl", "kill", "-s", "CONT", "startprofd.service")
    wait_until("nothing is armed", lambda: sessions(c) == 0)


@case()
def timeout_ends_the_capture(c):
    service(c, "case-slow.service", "/bin/sleep infinity", extra="TimeoutStartSec=60")
    status, report, said = c.profile("--timeout=300ms", "case-slow.service", check=False)
    equal((status, report["result"]), (3, "interrupted"), "outcome")
    check("--timeout is over" in said, said)
    equal(state(c, "case-slow.service"), "activating", "the start goes on")


@case()
def until_listen_and_exit(c):
    """--until=listen ends at the socket, --until=exit with the last process."""
    c.write("/usr/local/bin/case-listen", "import socket, time\ns = socket.create_server(('127.0.0.1', 0))\n"
            "time.sleep(1000)\n")
    service(c, "case-listen.service", "/usr/bin/python3 /usr/local/bin/case-listen", kind="exec")
    status, report, _ = c.profile("--until=listen", "case-listen.service")
    check([m for m in report["milestones"] if m["name"] == "listen"], f"milestones {report['milestones']}")
    equal(state(c, "case-listen.service"), "active", "it goes on")
    service(c, "case-short.service", "/services/burn 60 exit", kind="exec")
    status, report, _ = c.profile("--until=exit", "case-short.service")
    equal((status, report["result"]), (0, "exited"), "outcome")
    check(processes(report, "burn")[0]["samples"] >= 3, "it was watched to its end")


@case()
def outputs_of_a_run(c):
    """The recording of -o reads the same elsewhere, and replaces what was there."""
    c.run("sh", "-c", "id stranger || useradd stranger")
    service(c, "case-out.service", "/services/burn 60")
    c.write("/tmp/case.startprof", "old")
    _, report, _ = c.profile("-o", "/tmp/case.startprof", "--flamegraph=/tmp/case.svg", "case-out.service")
    again = json.loads(c.run("startprof", "info", "--json=short", "/tmp/case.startprof", user="stranger").stdout)
    equal(dict(again, recording=""), dict(report, recording=""), "the report of the file")
    check("<svg" in c.run("cat", "/tmp/case.svg").stdout, "flame graph")
    c.run("rm", "-f", "/tmp/case.startprof", "/tmp/case.svg")


@case()
def an_unprivileged_member_may_profile_but_not_start(c):
    """polkit, or its absence, decides about the start; --wait needs no right to start."""
    c.run("sh", "-c", "id member || useradd -G startprof member")
    service(c, "case-theirs.service", "/services/burn 20")
    done = c.run("startprof", "case-theirs.service", user="member", check=False)
    equal(done.returncode, 1, f"exit status ({done.stderr})")
    check("you may not start case-theirs.service" in done.stderr, done.stderr)
    wait_until("nothing is armed", lambda: sessions(c) == 0)
