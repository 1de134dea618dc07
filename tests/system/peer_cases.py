# SPDX-License-Identifier: GPL-2.0-or-later
"""Services that wait for somebody who does not answer: FC-03, FC-10 and FC-12, and others of their kinds."""

from cases import case, check, equal, service

# Names of the peers that each step waits for; nothing answers there. The container shares the host's network, so ports
# are those of sockets that the service itself holds open and never serves.
PROGRAM = """
import os, select, socket, sys

def dns():
    # As a resolver does: asks, and waits for each of its attempts. The server takes the questions, and that is all.
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(("127.0.0.77", 53))
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.connect(("127.0.0.77", 53))
    for _ in range(2):
        s.send(bytes(12))
        p = select.poll(); p.register(s, select.POLLIN); p.poll(400)

def full():
    # A backlog that is full: further connections are not answered.
    l = socket.socket(); l.bind(("127.0.0.1", 0)); l.listen(0)
    held = []
    for _ in range(4):
        s = socket.socket(); s.setblocking(False); s.connect_ex(l.getsockname()); held.append(s)
    return l, held

def connect():
    l, held = full()
    s = socket.socket(); s.settimeout(0.8)
    try: s.connect(l.getsockname())
    except OSError: pass

def answer():
    l = socket.socket(); l.bind(("127.0.0.1", 0)); l.listen(1)
    s = socket.create_connection(l.getsockname())
    s.settimeout(0.8)
    try: s.recv(1)
    except OSError: pass

def fifo(path):
    r = os.open(path, os.O_RDWR)
    p = select.poll(); p.register(r, select.POLLIN); p.poll(800)

def late(path):
    # The other end is opened after a while, by another process.
    if os.fork() == 0:
        select.select([], [], [], 0.8)
        os.open(path, os.O_WRONLY); os._exit(0)
    os.open(path, os.O_RDONLY)
    os.wait()

def child():
    if os.fork() == 0:
        dns(); os._exit(0)
    os.wait()

{ "dns": dns, "connect": connect, "answer": answer, "child": child,
  "fifo": lambda: fifo("/run/case-peer.fifo"), "open": lambda: late("/run/case-peer.fifo"), "random": lambda: fifo("/dev/random") }[sys.argv[1]]()
"""


def wait_for(c, what, extra=""):
    c.write("/srv/peer.py", PROGRAM)
    unit = f"case-peer-{what}.service"
    service(c, unit, f"/usr/bin/python3 -S /srv/peer.py {what}", kind="oneshot", extra=extra)
    _, report, _ = c.profile(unit)
    return report["verdict"]


def expect(verdict, cause, peer):
    equal(verdict["cause"], cause, f"cause of {verdict['summary']}")
    check(peer in verdict["evidence"]["peer"], f"peer {verdict['evidence']}")
    equal(verdict["evidence"]["process"], "python3", "process")
    check(verdict["share"] > 0.5, f"share {verdict['share']}")
    check(peer in verdict["summary"], verdict["summary"])


@case()
def a_silent_name_server(c):
    """FC-03, also in a child that the main process waits for."""
    for what in ("dns", "child"):
        verdict = wait_for(c, what)
        expect(verdict, "dns-wait", "127.0.0.77:53")
        equal(verdict["evidence"]["unanswered"], 2, "unanswered")


@case()
def a_connection_that_is_not_accepted(c):
    """FC-10: no answer to the first packet."""
    expect(wait_for(c, "connect"), "connect-wait", "127.0.0.1:")


@case()
def a_peer_that_does_not_answer(c):
    """FC-10, second flavour."""
    expect(wait_for(c, "answer"), "socket-wait", "127.0.0.1:")


@case()
def a_fifo_without_a_writer(c):
    c.run("mkfifo", "/run/case-peer.fifo")
    try:
        for what in ("fifo", "open"):
            expect(wait_for(c, what), "pipe-wait", "/run/case-peer.fifo")
    finally:
        c.run("rm", "-f", "/run/case-peer.fifo")


@case()
def random_numbers_that_do_not_come(c):
    """FC-12: by the path, even if it is a FIFO."""
    c.run("mkfifo", "/run/case-random")
    try:
        expect(wait_for(c, "random", "BindPaths=/run/case-random:/dev/random"), "entropy-wait", "/dev/random")
    finally:
        c.run("rm", "-f", "/run/case-random")
