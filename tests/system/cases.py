# SPDX-License-Identifier: GPL-2.0-or-later
"""The cases of the system tier. Each takes a container with startprof installed and raises when wrong.

They wait for events, never for fixed times, and assert counts, shares and orders, not seconds.
"""

import json
import os
import re
import subprocess
import time

CASES = []
WAIT_SECONDS = 30



class Skip(Exception):
    """What a case needs is not on this machine."""


def case(*suites):
    def register(function):
        function.suites = suites or ("bookworm", "trixie")
        CASES.append(function)
        return function
    return register


def build_services():
    """Compiles services/*.c with the machine's compiler; the directory with the programs."""
    here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "services")
    out = os.path.join(os.path.abspath(os.environ.get("BUILD", "build")), "tests/services")
    os.makedirs(out, exist_ok=True)
    for source in sorted(os.listdir(here)):
        if source.endswith(".c"):
            subprocess.run(["gcc", "-std=gnu11", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra", "-Werror",
                            "-o", os.path.join(out, source[:-2]), os.path.join(here, source)], check=True)
    return out


def tidy(c):
    """Stops what cases started."""
    c.run("sh", "-c", "systemctl stop 'case-*' 'memory.service' 2>/dev/null; systemctl reset-failed; "
                      "rm -f /etc/systemd/system/case-* /etc/systemd/system/memory.service; systemctl daemon-reload",
          check=False)


def check(condition, what):
    if not condition:
        raise AssertionError(what)


def equal(got, wanted, what):
    check(got == wanted, f"{what}: {got!r}, not {wanted!r}")


def wait_until(what, condition):
    deadline = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < deadline:
        if condition():
            return
        time.sleep(0.02)
    raise AssertionError(f"never happened: {what}")


def service(c, name, start, kind="notify", extra=""):
    c.unit(name, f"[Service]\nType={kind}\nExecStart={start}\n{extra}\n")


def processes(report, comm):
    return [p for p in report["processes"] if p["comm"] == comm]


def folded(c, report, *options):
    c.run("startprof", "export", report["recording"], "--format=folded", *options, "-o", "/tmp/out.folded")
    return c.run("cat", "/tmp/out.folded").stdout


def fails(c, arguments, status, pattern, **options):
    """startprof with these arguments says one line that matches, and exits so."""
    done = c.run("startprof", *arguments, check=False, **options)
    line = done.stderr.strip()
    equal(done.returncode, status, f"exit status of startprof {' '.join(arguments)} ({line})")
    check(re.search(pattern, line, re.I), f"{line!r} does not match {pattern!r}")
    equal(len(line.splitlines()), 1, f"lines of {line!r}")


# ---- what is captured ----

@case()
def first_exec(c):
    """The first 50 ms after the first exec have samples, with names."""
    service(c, "case-burn.service", "/services/burn 50")
    _, report, _ = c.profile("case-burn.service")
    equal(report["result"], "active", "result")
    burn = processes(report, "burn")[0]
    check(burn["samples"] >= 2, f"{burn['samples']} samples of 50 ms")
    check(report["stacks"]["samples"] >= burn["samples"], "samples add up")
    check("main;burn_cpu" in folded(c, report), "no burn_cpu below main")


@case()
def slots_and_children(c):
    """ExecStartPre= and the children of both are in, each with its command."""
    service(c, "case-slots.service", "/services/spawn 2 /services/burn 30 exit", extra="ExecStartPre=/services/burn 60 exit")
    _, report, _ = c.profile("case-slots.service")
    burns = processes(report, "burn")
    equal([p["command"] for p in burns if p["command"] == "ExecStartPre"], ["ExecStartPre"], "ExecStartPre process")
    equal(len(burns), 3, "burn processes")
    check(all(p["samples"] >= 1 for p in burns), f"samples {[p['samples'] for p in burns]}")
    milestones = [m["name"] for m in report["milestones"]]
    check("active" in milestones and "exec" in milestones, f"milestones {milestones}")


@case()
def short_processes(c):
    """200 processes of 5 ms: all seen, their samples named."""
    service(c, "case-short.service", "/services/spawn 200 /services/burn 5 exit")
    _, report, _ = c.profile("case-short.service")
    burns = processes(report, "burn")
    equal(len(burns), 200, "processes seen")
    check(sum(p["samples"] for p in burns) >= 40, f"{sum(p['samples'] for p in burns)} samples of 1 s")
    equal(report["stacks"]["lost"], 0, "lost samples")
    lines = folded(c, report).splitlines()
    named = sum(int(line.split()[-1]) for line in lines if "main;burn_cpu" in line)
    check(named >= 40, f"{named} samples name burn_cpu")
    check(not any("burn+0x" in line for line in lines), "a frame of a process that is gone has no name")


@case()
def stacks_of_young_processes(c):
    """What is in ld.so, on a stack that nobody has touched yet, in execve or about to end has no gaps either."""
    service(c, "case-young.service", "/bin/sh -c 'for i in $$(seq 100); do python3 -S -c 1; done'", kind="oneshot")
    _, report, _ = c.profile("case-young.service")
    got = report["stacks"]
    check(got["samples"] >= 100, f"samples {got}")
    check(got["complete"] >= 0.99 * got["samples"], f"stacks {got}")
    check("[ld.so]" in folded(c, report), "no sample in ld.so")


@case()
def a_stack_that_is_too_deep_says_what_was_kept(c):
    """5,000 frames of a kilobyte: as many as fit into a copy are kept, and that is said."""
    service(c, "case-deep.service", "/services/stack 5000 300", extra="LimitSTACK=64M")
    _, report, _ = c.profile("case-deep.service")
    cut = {i["reason"]: i for i in report["stacks"]["incomplete"]}
    check("stack copy ended" in cut, f"incomplete: {cut}")
    kept = cut["stack copy ended"]
    check(kept["samples"] >= 20 and 50 <= kept["frames"] <= 70, f"incomplete: {cut}")
    screen = c.run("startprof", "info", report["recording"]).stdout
    check(f"{kept['samples']} stack copy ended (up to {kept['frames']} frames)" in " ".join(screen.split()), screen)
    check("descend" in folded(c, report), "no frame of the recursion")


@case()
def sibling_is_not_in(c):
    """A unit beside it burns CPU all the time and is in no process list and in no count."""
    service(c, "case-sibling.service", "/services/leave")
    c.run("systemctl", "start", "case-sibling.service")
    service(c, "case-alone.service", "/services/burn 300")
    _, report, _ = c.profile("case-alone.service")
    comms = {p["comm"] for p in report["processes"]}
    check(not comms & {"leave", "leftover"}, f"the sibling's processes are in: {comms}")
    check(processes(report, "burn")[0]["samples"] >= 15, "its own samples are")


@case()
def restart_is_a_new_capture(c):
    service(c, "case-again.service", "/services/burn 50")
    _, first, _ = c.profile("case-again.service")
    _, second, _ = c.profile("--restart", "case-again.service")
    check(first["invocation_id"] != second["invocation_id"], "same invocation")
    check(first["recording"] != second["recording"], "same recording")
    pids = [processes(r, "burn")[0]["pid"] for r in (first, second)]
    check(pids[0] != pids[1] and len(processes(second, "burn")) == 1, f"pids {pids}")


@case()
def escaped_cgroup_and_alias(c):
    """memory.service lives in _memory.service; an alias is resolved."""
    c.unit("memory.service", "[Unit]\n[Service]\nType=notify\nExecStart=/services/burn 50\n[Install]\nAlias=case-alias.service\n")
    c.run("systemctl", "enable", "memory.service")
    try:
        _, report, _ = c.profile("case-alias")
        equal(report["unit"], "memory.service", "unit")
        check(processes(report, "burn"), "its process is in")
    finally:
        c.run("systemctl", "disable", "memory.service", check=False)


@case()
def name_that_begins_like_a_controller(c):
    """io.case.service lives in _io.case.service since systemd 254, and in io.case.service before."""
    c.unit("io.case.service", "[Service]\nType=notify\nExecStart=/services/burn 50\n")
    try:
        _, report, _ = c.profile("io.case.service")
        check(processes(report, "burn"), "its process is in")
    finally:
        c.run("systemctl", "stop", "io.case.service", check=False)
        c.run("rm", "-f", "/etc/systemd/system/io.case.service")


@case()
def leftovers(c):
    """What KillMode=process left in the cgroup is not part of the next start."""
    service(c, "case-left.service", "/services/leave", extra="KillMode=process")
    c.run("systemctl", "start", "case-left.service")
    old = c.run("pgrep", "leftover").stdout.split()
    _, report, _ = c.profile("--restart", "case-left.service")
    try:
        pids = {str(p["pid"]) for p in report["processes"]}
        check(pids and not pids & set(old), f"leftover {old} among {pids}")
        check(processes(report, "leave"), "the new main process is in")
    finally:
        c.run("systemctl", "kill", "-s", "KILL", "case-left.service", check=False)


@case()
def inotify(c):
    """FC-01: a service that watches every folder of the machine, because units run in /."""
    c.run("/services/tree", "/srv/tree", "20", "30", "33")
    try:
        service(c, "case-storm.service", "/services/storm")
        _, report, _ = c.profile("--flamegraph=/tmp/storm.svg", "case-storm.service")
        verdict = report["verdict"]
        equal(verdict["cause"], "inotify-watch-storm", "cause")
        evidence = verdict["evidence"]
        watches = next(v for k, v in evidence.items() if "watch" in k and isinstance(v, int))
        check(watches >= 20421, f"watches {evidence}")
        check(verdict["share"] >= 0.25, f"share {verdict['share']}")
        check("/" in evidence.values(), f"the root is not named: {evidence}")
        check(any("WorkingDirectory=" in (a.get("dropin") or "") for a in verdict["advice"]), f"advice {verdict['advice']}")
        finding = report["findings"][0]
        names = [f["function"] for f in finding["stack"]]
        check("add_directory_watch" in names, f"the stack that did it: {names}")
        total = sum(row["duration_usec"] for row in report["breakdown"])
        check(abs(total - report["start"]["duration_usec"]) <= 10_102, f"rows add up to {total}, not {report['start']}")
        check("<svg" in c.run("cat", "/tmp/storm.svg").stdout, "flame graph")

        # The drop-in cures it, and ten watches are nobody's fault.
        c.run("mkdir", "-p", "/srv/few/a/b", "/srv/few/c")
        service(c, "case-few.service", "/services/storm", extra="WorkingDirectory=/srv/few")
        _, report, _ = c.profile("case-few.service")
        check(report["verdict"]["cause"] != "inotify-watch-storm", "ten watches accused")
    finally:
        c.run("rm", "-rf", "/srv/tree", "/srv/few")


# ---- how starts end ----

@case()
def types_of_units(c):
    """oneshot, forking, exec, simple (rest), simple (until a time)."""
    service(c, "case-one.service", "/services/burn 30 exit", kind="oneshot")
    _, report, _ = c.profile("case-one.service")
    equal((report["result"], report["start"]["type"]), ("exited", "oneshot"), "oneshot")
    service(c, "case-fork.service", "/bin/sh -c '/services/burn 20 & :'", kind="forking")
    _, report, _ = c.profile("case-fork.service")
    equal(report["result"], "active", "forking")
    service(c, "case-exec.service", "/services/burn 100", kind="exec")
    _, report, _ = c.profile("case-exec.service")
    equal(report["result"], "active", "exec")
    service(c, "case-simple.service", "/services/burn 100", kind="simple")
    _, report, _ = c.profile("case-simple.service")
    equal(report["result"], "running", "simple")
    check(processes(report, "burn")[0]["samples"] >= 5, "a simple unit is watched until it rests")
    _, report, _ = c.profile("--restart", "--until=50ms", "case-simple.service")
    check(report["start"]["duration_usec"] < 2_000_000, f"--until=50ms took {report['start']}")


@case()
def failing(c):
    service(c, "case-fail.service", "/bin/sh -c 'exit 3'")
    status, report, _ = c.profile("case-fail.service", check=False)
    equal((status, report["result"]), (1, "failed"), "failing unit")
    service(c, "case-late.service", "/bin/sleep infinity", extra="TimeoutStartSec=2")
    status, report, _ = c.profile("case-late.service", check=False)
    equal((status, report["result"]), (1, "timeout"), "unit that times out")
    c.unit("case-skip.service", "[Unit]\nConditionPathExists=/nowhere\n[Service]\nType=oneshot\nExecStart=/bin/true\n")
    status, report, _ = c.profile("case-skip.service", check=False)
    equal((status, report["result"]), (1, "skipped"), "skipped unit")
    c.unit("case-need.service", "[Unit]\nRequires=case-fail.service\nAfter=case-fail.service\n[Service]\nExecStart=/bin/true\n")
    status, report, _ = c.profile("case-need.service", check=False)
    equal((status, report["result"]), (1, "dependency"), "dependency failed")


@case()
def waits_have_their_stacks(c):
    """A wait that ended, one that a signal ended, and one that had not ended when the capture did."""
    asleep = r"^sleep;.*__libc_start_main;.*(?:clock_nanosleep|pause);.*\[waiting\\x20in\\x20(?:clock_nanosleep|pause)\] (\d+)$"
    service(c, "case-nap.service", "/bin/sleep 0.5", kind="oneshot")
    service(c, "case-late.service", "/bin/sleep infinity", extra="TimeoutStartSec=1")
    service(c, "case-open.service", "/bin/sleep infinity", kind="simple")
    for unit, least_usec, options in (("case-nap", 450_000, ()), ("case-late", 900_000, ()),
                                      ("case-open", 200_000, ("--until=400ms",))):
        _, report, _ = c.profile(*options, f"{unit}.service", check=False)
        lines = folded(c, report, "--view=waits")
        found = re.search(asleep, lines, re.M)
        check(found and int(found[1]) >= least_usec, f"{unit}: {lines}")


@case("bookworm")
def tables_are_made_once(c):
    """The unwinder's table of a large library is kept, and taken by the next capture."""
    tables = lambda: c.run("sh", "-c", "cd /var/lib/startprof/tables && stat -c '%n %i' *", check=False).stdout.split("\n")
    service(c, "case-table.service", "/usr/bin/perl -e 'for my $$i (1 .. 3000000) { $$x .= $$i }'", kind="oneshot")
    c.profile("case-table.service")
    first = tables()
    check(re.fullmatch(r"[0-9a-f]{40}-[0-9a-f]{64} \d+", first[0]), f"tables {first}")
    _, report, _ = c.profile("case-table.service")
    equal(tables(), first, "tables after the second start")
    check(report["stacks"]["complete"] >= report["stacks"]["samples"] * 0.99 > 10, f"stacks {report['stacks']}")


@case()
def activation_time_agrees_with_systemd(c):
    service(c, "case-time.service", "/services/burn 200")
    _, report, _ = c.profile("case-time.service")
    shown = c.run("systemctl", "show", "-P", "InactiveExitTimestampMonotonic", "-P", "ActiveEnterTimestampMonotonic",
                  "case-time.service").stdout.split()
    start = report["start"]
    ours = start["duration_usec"] - start["queue_usec"]
    systemd = abs(int(shown[1]) - int(shown[0]))
    check(abs(ours - systemd) <= 10_000, f"ours {ours} µs, systemd's {systemd} µs")


@case()
def until_interrupted(c):
    """The first Ctrl-C ends the capture, not the job, and the report appears."""
    service(c, "case-slow.service", "/bin/sleep infinity", extra="TimeoutStartSec=60")
    client = c.popen("startprof", "--json=short", "case-slow.service", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_until("the unit is starting", lambda: c.run("systemctl", "is-active", "case-slow.service", check=False)
               .stdout.strip() == "activating")
    c.run("pkill", "-INT", "-x", "startprof")
    out, _ = client.communicate(timeout=WAIT_SECONDS)
    equal(client.returncode, 3, "exit status")
    equal(json.loads(out)["result"], "interrupted", "result")
    equal(c.run("systemctl", "is-active", "case-slow.service", check=False).stdout.strip(), "activating", "the job goes on")


@case()
def waiting(c):
    """--wait follows the next start, whoever causes it."""
    service(c, "case-wait.service", "/services/burn 50")
    c.run("systemctl", "start", "case-wait.service")
    client = c.popen("startprof", "--json=short", "--wait", "case-wait.service", stdout=subprocess.PIPE,
                     stderr=subprocess.PIPE)
    wait_until("it is armed", lambda: sessions(c) == 1)
    c.run("systemctl", "restart", "case-wait.service")
    out, err = client.communicate(timeout=WAIT_SECONDS)
    equal(client.returncode, 0, f"exit status ({err})")
    check(len(processes(json.loads(out), "burn")) == 1, "its process")


# ---- wrong input ----

@case()
def refused_units(c):
    fails(c, ["nowhere.service"], 4, "no unit nowhere.service")
    c.run("ln", "-sf", "/dev/null", "/etc/systemd/system/case-masked.service")
    c.run("systemctl", "daemon-reload")
    fails(c, ["case-masked.service"], 1, "masked")
    fails(c, ["case-template@.service"], 2, "instance")
    fails(c, ["basic.target"], 2, "service")
    c.unit("case-manual.service", "[Unit]\nRefuseManualStart=yes\n[Service]\nExecStart=/bin/true\n")
    fails(c, ["case-manual.service"], 1, "manual")
    service(c, "case-up.service", "/services/burn 10")
    c.run("systemctl", "start", "case-up.service")
    fails(c, ["case-up.service"], 2, "--restart")
    fails(c, ["-F", "0", "case-up.service"], 2, "frequency")
    fails(c, ["--user", "case-up.service"], 2, "--user")


@case()
def broken_recordings(c):
    service(c, "case-file.service", "/services/burn 50")
    c.profile("-o", "/tmp/whole.startprof", "case-file.service")
    c.run("sh", "-c", "head -c 300 /tmp/whole.startprof > /tmp/cut.startprof; head -c 4096 /dev/urandom > /tmp/garbage.startprof")
    equal(json.loads(c.run("startprof", "info", "--json=short", "/tmp/whole.startprof").stdout)["unit"],
          "case-file.service", "a whole one")
    fails(c, ["info", "/tmp/cut.startprof"], 6, "recording|truncated|damaged")
    fails(c, ["info", "/tmp/garbage.startprof"], 6, "recording")
    fails(c, ["--restart", "-o", "/nowhere/x.startprof", "case-file.service"], 6, "/nowhere")


@case()
def kernel_that_cannot(c):
    """Without BTF, and without the socket, one line says why and what to do."""
    service(c, "case-btf.service", "/services/burn 10")
    c.run("sh", "-c", "systemctl stop startprofd.service; mount -t tmpfs tmpfs /sys/kernel/btf")
    try:
        fails(c, ["case-btf.service"], 5, "BTF")
        shown = c.run("startprof", "status", check=False).stdout
        check("BTF" in shown, f"status tells no reason: {shown}")
    finally:
        c.run("sh", "-c", "umount /sys/kernel/btf; systemctl stop startprofd.service", check=False)
    c.run("systemctl", "stop", "startprofd.socket")
    try:
        fails(c, ["case-btf.service"], 5, "systemctl enable --now startprofd.socket")
    finally:
        c.run("systemctl", "start", "startprofd.socket")


@case()
def permission(c):
    """A stranger gets a reason; a member of the group gets answers."""
    c.run("sh", "-c", "id stranger || useradd stranger; id member || useradd -G startprof member")
    fails(c, ["list"], 5, "group", user="stranger")
    equal(c.run("startprof", "list", user="member", check=False).returncode, 0, "exit status for a member")


# ---- the daemon ----

def sessions(c):
    status = c.run("startprof", "--json=short", "status", check=False)
    return json.loads(status.stdout)["sessions"] if status.returncode == 0 else -1


def daemon_pid(c):
    return int(c.run("systemctl", "show", "-P", "MainPID", "startprofd.service").stdout)


@case()
def listed_and_in_the_journal(c):
    service(c, "case-journal.service", "/services/burn 50")
    _, report, _ = c.profile("case-journal.service")
    listed = json.loads(c.run("startprof", "list", "--json=short", "case-journal.service").stdout)
    check(report["recording"] in json.dumps(listed), f"{report['recording']} is not in {listed}")
    entries = c.run("journalctl", "-o", "json", "-u", "case-journal.service", "STARTPROF_UNIT=case-journal.service").stdout
    entry = json.loads(entries.splitlines()[-1])
    equal(entry["STARTPROF_RECORDING"], report["recording"], "recording in the journal")
    equal(entry["_UID"], "0", "uid of the entry")
    equal(int(entry["STARTPROF_DURATION_USEC"]), report["start"]["duration_usec"], "duration in the journal")
    check(entry["MESSAGE"].startswith("case-journal.service took "), entry["MESSAGE"])
    check(entry["STARTPROF_CAUSE"], "cause in the journal")


@case()
def two_clients(c):
    for name in ("case-left1.service", "case-right.service"):
        service(c, name, "/services/burn 400")
    clients = [c.popen("startprof", "--json=short", name, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
               for name in ("case-left1.service", "case-right.service")]
    reports = [json.loads(client.communicate(timeout=WAIT_SECONDS)[0]) for client in clients]
    equal([r["unit"] for r in reports], ["case-left1.service", "case-right.service"], "units")
    for report in reports:
        equal(len(processes(report, "burn")), 1, "only its own process")


@case()
def armed_by_another(c):
    service(c, "case-both.service", "/services/burn 50")
    client = c.popen("startprof", "--wait", "case-both.service", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until("the first is armed", lambda: sessions(c) == 1)
    fails(c, ["case-both.service"], 5, "already|another")
    c.run("pkill", "-KILL", "-x", "startprof")
    client.wait()
    wait_until("the session ended with its client", lambda: sessions(c) == 0)


@case()
def stopped_before_a_start(c):
    """--wait that ends without a start leaves nothing in the store."""
    service(c, "case-unstarted.service", "/services/burn 10")
    done = c.run("startprof", "--wait", "--timeout=200ms", "case-unstarted.service", check=False)
    equal(done.returncode, 3, f"exit status ({done.stderr})")
    equal(json.loads(c.run("startprof", "list", "--json=short", "case-unstarted.service").stdout), [], "recordings")
    wait_until("the session ended", lambda: sessions(c) == 0)


@case()
def full_disk(c):
    """A store that takes nothing costs the store's copy, not the answer."""
    service(c, "case-full.service", "/services/burn 50")
    c.run("sh", "-c", "systemctl stop startprofd.service; mkdir -p /var/lib/startprof; "
                      "mount -t tmpfs -o size=4k,nr_inodes=3 tmpfs /var/lib/startprof; "
                      "head -c 4096 /dev/zero > /var/lib/startprof/fill")
    try:
        _, report, _ = c.profile("case-full.service")
        equal(report["result"], "active", "result")
        equal(c.run("sh", "-c", "find /var/lib/startprof -type f -printf '%f\\n'").stdout.split(), ["fill"], "half files")
    finally:
        c.run("sh", "-c", "systemctl stop startprofd.service; umount /var/lib/startprof", check=False)


@case()
def client_killed(c):
    """Nothing stays armed when the client dies."""
    service(c, "case-gone.service", "/bin/sleep infinity", extra="TimeoutStartSec=60")
    client = c.popen("startprof", "case-gone.service", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until("it is armed", lambda: sessions(c) == 1)
    c.run("pkill", "-KILL", "-x", "startprof")
    client.wait()
    wait_until("the session ended", lambda: sessions(c) == 0)


@case()
def client_killed_while_it_is_written(c):
    """A client that dies late, with a worker that hangs, keeps nobody waiting, and the recording comes all the same."""
    service(c, "case-written.service", "/services/burn 1500")
    client = c.popen("startprof", "case-written.service", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until("it is starting", lambda: c.run("systemctl", "is-active", "case-written.service", check=False)
               .stdout.strip() == "activating")
    # Of another user: it is in its sandbox, and has said so.
    wait_until("its worker is ready", lambda: c.run("pgrep", "-u", "startprof", "startprof-worke", check=False)
               .returncode == 0)
    c.run("sh", "-c", "kill -STOP $(pidof startprof-worker)")
    wait_until("it is up", lambda: c.run("systemctl", "is-active", "case-written.service", check=False).returncode == 0)
    c.run("pkill", "-KILL", "-x", "startprof")
    client.wait()
    begin = time.monotonic()
    equal(sessions(c), 1, "sessions while the worker hangs")
    check(time.monotonic() - begin < 5, "others are answered")
    c.run("sh", "-c", "kill -CONT $(pidof startprof-worker)")
    wait_until("the session ended", lambda: sessions(c) == 0)
    equal(len(json.loads(c.run("startprof", "list", "--json=short", "case-written.service").stdout)), 1, "recordings")


@case()
def systemd_executed_anew(c):
    """daemon-reexec closes systemd's connections: the daemon makes a new one."""
    service(c, "case-reexec.service", "/services/burn 20")
    c.profile("case-reexec.service")
    before = daemon_pid(c)
    c.run("systemctl", "daemon-reexec")
    _, report, _ = c.profile("--restart", "case-reexec.service")
    equal(report["result"], "active", "result")
    equal(daemon_pid(c), before, "the daemon")


@case()
def daemon_killed(c):
    """The client says so, and the next start works."""
    service(c, "case-kill.service", "/bin/sleep infinity", extra="TimeoutStartSec=60")
    client = c.popen("startprof", "case-kill.service", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_until("it is armed", lambda: sessions(c) == 1)
    c.run("kill", "-KILL", str(daemon_pid(c)))
    _, err = client.communicate(timeout=WAIT_SECONDS)
    equal(client.returncode, 5, f"exit status ({err})")
    check(err.strip(), "a line that says so")
    service(c, "case-next.service", "/services/burn 20")
    _, report, _ = c.profile("case-next.service")
    equal(report["result"], "active", "the next start")


def attached(c):
    """Programs that something in the container holds attached to the kernel: id → name."""
    programs = {p["id"]: p.get("name", "") for p in bpftool("prog")}
    return {held["prog_id"]: programs.get(held["prog_id"]) for held in bpftool("perf") if in_container(c, held["pid"])}


def bpftool(kind):
    # In sbin, which is not in everybody's PATH.
    environment = dict(os.environ, PATH=os.environ.get("PATH", "") + ":/usr/sbin")
    return json.loads(subprocess.run(["bpftool", "-j", kind, "show"], capture_output=True, text=True, check=True,
                                     env=environment).stdout or "[]")


def in_container(c, pid):
    try:
        with open(f"/proc/{pid}/cgroup") as f:
            return c.name in f.read()
    except OSError:
        return False


@case()
def idle_exit(c):
    """A profiled start leaves nothing attached but what waits for cgroups; without clients the daemon goes, and all
    with it; the socket brings it back."""
    service(c, "case-slow.service", "/bin/sleep infinity", extra="TimeoutStartSec=60")
    client = c.popen("startprof", "case-slow.service", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until("it is armed", lambda: "sched_switch" in attached(c).values())
    armed = attached(c)
    c.run("pkill", "-KILL", "-x", "startprof")
    client.wait()
    wait_until("nothing taxes other processes", lambda: set(attached(c).values()) <= {"cgroup_mkdir"})
    check(daemon_pid(c) > 0, "runs")
    wait_until("the daemon left", lambda: daemon_pid(c) == 0)
    wait_until("its programs are gone", lambda: not armed.keys() & {p["id"] for p in bpftool("prog")})
    equal(c.run("startprof", "status").returncode, 0, "it comes back")


@case("trixie")
def varlinkctl(c):
    """systemd's own Varlink client understands the interface and calls it."""
    socket = "/run/startprof/org.startprof.Profiler"
    shown = c.run("varlinkctl", "introspect", socket, "org.startprof.Profiler").stdout
    check("method Profile" in shown and "error AlreadyArmed" in shown, shown)
    status = json.loads(c.run("varlinkctl", "call", "--json=short", socket, "org.startprof.Profiler.Status", "{}").stdout)
    equal(status["sessions"], 0, "sessions")
    check(any(f["available"] for f in status["features"]), f"features {status['features']}")
    info = json.loads(c.run("varlinkctl", "info", "--json=short", socket).stdout)
    check("org.startprof.Profiler" in json.dumps(info), f"info {info}")


def kallsyms_are_open():
    """Where performance counters are for everybody, so are the addresses of the kernel."""
    return int(open("/proc/sys/kernel/perf_event_paranoid").read()) <= 1


def works(c):
    """A start by another user, from a file that only that user may read, is profiled as it should be."""
    status, report, _ = c.profile("--restart", "case-caps.service", check=False)
    tasks = c.run("sh", "-c", "for t in /proc/$(pidof startprofd)/task/*; do chrt -p ${t##*/}; done", check=False).stdout
    return (status == 0 and "main;burn_cpu" in folded(c, report) and "SCHED_FIFO" in tasks
            and (kallsyms_are_open() or "do_syscall_64" in folded(c, report, "--kernel", "--view=waits")))


@case("bookworm")
def capabilities(c):
    """Each capability of the service is needed: without it something fails."""
    c.run("sh", "-c", "install -m 500 -o nobody /services/burn /usr/local/bin/burn")
    service(c, "case-caps.service", "/usr/local/bin/burn 200",
            extra="User=nobody\nExecStartPre=/bin/sleep 0.1")
    names = c.run("systemctl", "show", "-P", "CapabilityBoundingSet", "startprofd.service").stdout.split()
    check(len(names) > 0, "a bounding set")
    check(works(c), "with all of them it works")
    try:
        for name in names:
            c.write("/run/systemd/system/startprofd.service.d/drop.conf", f"[Service]\nCapabilityBoundingSet=~{name}\n")
            c.run("sh", "-c", "systemctl daemon-reload; systemctl stop startprofd.service")
            check(not works(c), f"{name.upper()} is not needed")
    finally:
        c.run("sh", "-c", "rm -r /run/systemd/system/startprofd.service.d; systemctl daemon-reload; "
                          "systemctl stop startprofd.service", check=False)
    check(works(c), "and again with all of them")


@case("bookworm")
def try_a_unit_of_this_machine(c):
    """make try UNIT=: a daemon from the build tree, of which nothing stays but the journal entry."""
    service(c, "case-try.service", "/services/burn 50")
    done = c.run("/src/scripts/try-unit", "/build", "case-try.service")
    check("case-try.service took" in done.stdout, done.stdout)
    equal(c.run("sh", "-c", "ls -d /run/startprof-try.* 2>/dev/null; pgrep -f 'startprofd --sock[e]t'", check=False)
          .stdout, "", "what it left")
    entries = c.run("journalctl", "-o", "cat", "-u", "case-try.service").stdout
    check("case-try.service took" in entries, f"no entry in {entries!r}")


@case("trixie")
def security_score(c):
    done = c.run("systemd-analyze", "security", "--offline=yes", "--threshold=35", "/usr/lib/systemd/system/startprofd.service",
                 check=False)
    equal(done.returncode, 0, done.stdout[-300:])
