# SPDX-License-Identifier: GPL-2.0-or-later
"""Cases of the system tier about what code lies where: whatever happens to files and processes, a sample has the
name of the file that was mapped or none.

Each program is built twice, with one function called differently, so that a wrong file gives a wrong name.
"""

import json
import os
import re
import shutil
import signal
import subprocess

from cases import WAIT_SECONDS, case, check, equal, folded, processes, service, wait_until

SOURCES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "services/mapped")
NAMELESS = ("-Wl,--build-id=none",)     # no build-id: only the inode tells files apart


def compile_one(directory, name, source, *options):
    subprocess.run(["gcc", "-std=gnu11", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra", "-Werror", *options,
                    "-o", os.path.join(directory, name), os.path.join(SOURCES, source)], check=True)


def binds():
    """What run binds into the containers: /mapped, with pairs of files of equal layout."""
    directory = os.path.join(os.path.abspath(os.environ.get("BUILD", "build")), "tests/mapped")
    os.makedirs(directory, exist_ok=True)
    for which in ("first", "second"):
        work = f"-DWORK=work_of_{which}"
        compile_one(directory, which, "program.c", work)
        compile_one(directory, f"{which}.nameless", "program.c", work, *NAMELESS)
        compile_one(directory, f"{which}.so", "library.c", work, "-shared", "-fPIC")
        compile_one(directory, f"{which}.nameless.so", "library.c", work, "-shared", "-fPIC", *NAMELESS)
    compile_one(directory, "remap", "remap.c")
    far = ('-DSECTION=".far"', "-DWORK=work_of_far")
    compile_one(directory, "far", "program.c", *far, "-no-pie", "-Wl,--section-start=.far=0x900000")
    if shutil.which("ld.lld"):
        compile_one(directory, "lld", "program.c", "-DWORK=work_of_lld", "-fuse-ld=lld")
        compile_one(directory, "lld-fixed", "program.c", "-DWORK=work_of_lld", "-fuse-ld=lld", "-no-pie")
        compile_one(directory, "lld-far", "program.c", *far, "-fuse-ld=lld", "-no-pie",
                    "-Wl,--section-start=.far=0x900000")
    return ((directory, "/mapped"),)


def lines_with(text, name):
    """(stack, samples) of the folded lines that have it."""
    pairs = [line.rsplit(" ", 1) for line in text.splitlines()]
    return [(stack, int(count)) for stack, count in pairs if name in stack]


def count(text, name):
    return sum(samples for _, samples in lines_with(text, name))


def names_only(c, report, right, wrong=None, least=10):
    """The work has its right name in nearly all samples of it, and never the other's."""
    text = folded(c, report)
    check(count(text, right) >= least, f"{count(text, right)} samples in {right}:\n{text}")
    check(not wrong or wrong not in text, f"samples in {wrong}:\n{text}")


# ---- processes ----

@case()
def thousand_short_processes(c):
    """1,000 processes of 2 ms: each is seen, and no sample is without the right file."""
    service(c, "case-thousand.service", "/services/spawn 1000 /services/burn 2 exit")
    _, report, _ = c.profile("--frequency=499", "case-thousand.service")
    equal(len(processes(report, "burn")), 1000, "processes seen")
    equal(report["stacks"]["lost"], 0, "lost samples")
    text = folded(c, report)
    check(count(text, "main;burn_cpu") >= 400, f"{count(text, 'main;burn_cpu')} samples of 2 s name burn_cpu")
    # An entry of the PLT has no name, but its file.
    equal([line for line in text.splitlines() if re.search(r"\[unknown|\[anonymous", line)], [],
          "samples without a file")


@case()
def exec_in_place(c):
    """The samples before an exec are those of the old image, the ones after it those of the new."""
    service(c, "case-exec.service", "/mapped/first exec /mapped/second")
    _, report, _ = c.profile("case-exec.service")
    text = folded(c, report)
    for name in ("work_of_first", "work_of_second"):
        check(count(text, name) >= 10, f"{count(text, name)} samples in {name}:\n{text}")
    both = [stack for stack, _ in lines_with(text, "work_of_first") if "work_of_second" in stack]
    equal(both, [], "stacks of two images")


def remap(c, first, second):
    service(c, "case-remap.service", f"/mapped/remap {first} {second}")
    _, report, _ = c.profile("--frequency=997", "case-remap.service")
    equal(report["result"], "active", "result (exit status 3: no common address)")
    text = folded(c, report)
    for caller, callee, other in (("call_first", "work_of_first", "work_of_second"),
                                  ("call_second", "work_of_second", "work_of_first")):
        check(count(text, f"{caller};") >= 10, f"{count(text, caller)} samples below {caller}:\n{text}")
        of_caller = lines_with(text, f"{caller};")
        check(any(callee in stack for stack, _ in of_caller), f"{caller} never calls {callee}:\n{text}")
        equal([stack for stack, _ in of_caller if other in stack], [], f"{caller} calls {other}")
    copied = lines_with(text, "[generated\\x20code]")
    check(sum(samples for _, samples in copied) >= 5, f"no anonymous code:\n{text}")
    equal([stack for stack, _ in copied + lines_with(text, "call_copy") if re.search(r"work_of|\.so", stack)], [],
          "anonymous code with the name of a file")


@case()
def libraries_at_one_address(c):
    """dlopen, dlclose, and another library, then code without a file, at the same address."""
    remap(c, "/mapped/first.so", "/mapped/second.so")


@case()
def libraries_at_one_address_without_build_ids(c):
    remap(c, "/mapped/first.nameless.so", "/mapped/second.nameless.so")


@case()
def memfd(c):
    """A program that runs from memory: named by what it maps, or said to be without a file."""
    service(c, "case-memfd.service", "/mapped/first memfd")
    _, report, _ = c.profile("case-memfd.service")
    text = folded(c, report)
    named = count(text, "work_of_first") + count(text, "generated")
    check(named >= 10, f"{named} samples of the memfd:\n{text}")
    check("work_of_second" not in text, f"a name of another file:\n{text}")


# ---- files ----

def replaced(c, path, with_build_id, action):
    kind = "" if with_build_id else ".nameless"
    c.run("mkdir", "-p", "/srv/mapped")
    c.run("cp", f"/mapped/first{kind}", path)
    c.run("cp", f"/mapped/second{kind}", "/srv/mapped/other")
    start = f'"{path}" replace' + (" /srv/mapped/other" if action == "replace" else "")
    try:
        service(c, "case-replaced.service", start)
        _, report, _ = c.profile("case-replaced.service")
        names_only(c, report, "work_of_first", "work_of_second")
    finally:
        c.run("rm", "-rf", "/srv/mapped")


@case()
def replaced_program(c):
    """SY-07: a program that an upgrade replaces while it starts keeps its own names."""
    replaced(c, "/srv/mapped/program", True, "replace")


@case()
def replaced_program_without_build_id(c):
    replaced(c, "/srv/mapped/program", False, "replace")


@case()
def removed_program(c):
    replaced(c, "/srv/mapped/program", True, "remove")


@case()
def program_called_deleted(c):
    """A name that really ends so is no mark of the kernel, also when the file is there."""
    c.run("mkdir", "-p", "/srv/mapped")
    c.run("cp", "/mapped/first", "/srv/mapped/program (deleted)")
    c.run("cp", "/mapped/second", "/srv/mapped/program")
    try:
        service(c, "case-called.service", '"/srv/mapped/program (deleted)"')
        _, report, _ = c.profile("case-called.service")
        names_only(c, report, "work_of_first", "work_of_second")
    finally:
        c.run("rm", "-rf", "/srv/mapped")


@case()
def library_called_deleted(c):
    """A library of such a name is no less a file."""
    c.run("mkdir", "-p", "/srv/mapped")
    c.run("cp", "/mapped/first.so", "/srv/mapped/a.so (deleted)")
    c.run("cp", "/mapped/second.so", "/srv/mapped/a.so")
    try:
        remap(c, '"/srv/mapped/a.so (deleted)"', "/mapped/second.so")
    finally:
        c.run("rm", "-rf", "/srv/mapped")


@case()
def same_path_elsewhere(c):
    """SY-05: where the unit sees another file at a path than the machine does, its own counts."""
    c.run("mkdir", "-p", "/opt")
    for kind in ("", ".nameless"):
        c.run("cp", f"/mapped/first{kind}", "/opt/program")
        try:
            service(c, "case-elsewhere.service", "/opt/program",
                    extra=f"PrivateTmp=yes\nBindReadOnlyPaths=/mapped/second{kind}:/opt/program")
            _, report, _ = c.profile("--restart", "case-elsewhere.service")
            names_only(c, report, "work_of_second", "work_of_first")
        finally:
            c.run("rm", "-f", "/opt/program")


@case()
def same_path_in_a_root_directory(c):
    """The same in a root of its own."""
    c.run("mkdir", "-p", "/opt", "/srv/root/opt")
    for directory in ("usr", "lib", "lib64", "proc", "run", "dev", "sys"):
        c.run("mkdir", "-p", f"/srv/root/{directory}")
    c.run("cp", "/mapped/first", "/opt/program")
    c.run("cp", "/mapped/second", "/srv/root/opt/program")
    try:
        service(c, "case-root.service", "/opt/program",
                extra="RootDirectory=/srv/root\nMountAPIVFS=yes\nBindReadOnlyPaths=/usr /lib /lib64\n"
                      "BindPaths=/run/systemd/notify")
        _, report, _ = c.profile("case-root.service")
        names_only(c, report, "work_of_second", "work_of_first")
    finally:
        c.run("rm", "-rf", "/opt/program", "/srv/root")


@case()
def overlay(c):
    """A program of the lower and one of the upper layer of an overlay have their names."""
    equal(c.run("stat", "-f", "-c", "%T", "/opt").stdout.strip(), "overlayfs", "file system of /opt")
    for kind in ("", ".nameless"):
        c.run("cp", f"/mapped/first{kind}", "/opt/program")
        try:
            service(c, "case-overlay.service", "/opt/program",
                    extra="ExecStartPre=/usr/bin/python3 -c 'sum(i * i for i in range(2000000))'")
            _, report, _ = c.profile("--restart", "case-overlay.service")
            names_only(c, report, "work_of_first")
            check(lines_with(folded(c, report), "python3"), "no sample of the lower layer's python3")
        finally:
            c.run("rm", "-f", "/opt/program")


@case()
def linker_layouts(c):
    """SY-10: addresses that differ from offsets, fixed addresses, two segments of code far from each other."""
    programs = [("far", "work_of_far")]
    if c.run("test", "-e", "/mapped/lld", check=False).returncode == 0:
        programs += [("lld", "work_of_lld"), ("lld-fixed", "work_of_lld"), ("lld-far", "work_of_far")]
    for program, name in programs:
        service(c, "case-layout.service", f"/mapped/{program}")
        _, report, _ = c.profile("--restart", "case-layout.service")
        names_only(c, report, f"main;{name}")


@case()
def another_profiler(c):
    """Somebody else who asks for build-ids changes the records of all; ours are still read right."""
    service(c, "case-other.service", "/services/ask_build_ids")
    c.run("systemctl", "start", "case-other.service")
    for kind in ("", ".nameless"):
        service(c, "case-beside.service", f"/mapped/first{kind}")
        _, report, _ = c.profile("--restart", "case-beside.service")
        names_only(c, report, "main;work_of_first")


# ---- losses ----

@case()
def greedy_service(c):
    """A service that is before everybody else at every CPU cannot keep its samples from being collected."""
    service(c, "case-greedy.service", "/bin/sh -c 'for i in $(seq 32); do /services/burn 60 exit & done; wait'",
            kind="oneshot", extra="Nice=-20\nCPUWeight=10000")
    _, report, _ = c.profile("--frequency=999", "case-greedy.service")
    equal(report["stacks"]["lost"], 0, "lost samples")
    samples = sum(p["samples"] for p in processes(report, "burn"))
    check(samples >= 1000, f"{samples} samples of 2 s")


@case()
def client_that_stops_reading(c):
    """A client that does not run costs nothing of its capture, and nothing of another's."""
    service(c, "case-stopped.service", "/services/spawn 100 /services/burn 5 exit")
    service(c, "case-free.service", "/services/burn 50")
    client = c.popen("startprof", "--json=short", "case-stopped.service", stdout=subprocess.PIPE,
                     stderr=subprocess.PIPE)
    try:
        wait_until("the start began", lambda: c.run("systemctl", "show", "-P", "ActiveState",
                                                    "case-stopped.service").stdout.strip() != "inactive")
        c.run("pkill", "-STOP", "-x", "startprof")
        wait_until("it is active", lambda: c.run("systemctl", "is-active", "case-stopped.service",
                                                 check=False).returncode == 0)
        _, other, _ = c.profile("case-free.service")
        check(processes(other, "burn"), "the other's capture is there")
    finally:
        client.send_signal(signal.SIGCONT)      # nsenter stops with its child, and continues it
        c.run("pkill", "-CONT", "-x", "startprof", check=False)
    out, err = client.communicate(timeout=WAIT_SECONDS)
    equal(client.returncode, 0, f"exit status ({err})")
    report = json.loads(out)
    equal(len(processes(report, "burn")), 100, "processes seen")
    equal(report["stacks"]["lost"], 0, "lost samples")


# ---- processes that leave ----

@case()
def moved_by_itself(c):
    """A helper that goes to another cgroup, and its children there, stay in; who was there does not enter."""
    away = "/sys/fs/cgroup/case-away"
    service(c, "case-stranger.service", "/services/leave")
    c.run("systemctl", "start", "case-stranger.service")
    strangers = c.run("pgrep", "leftover").stdout.split()
    check(strangers, "there is a stranger")
    c.run("sh", "-c", f'mkdir -p {away} && for p in $(pgrep leftover); do echo $p >{away}/cgroup.procs; done')
    try:
        service(c, "case-away.service", f"/services/away {away}")
        _, report, _ = c.profile("case-away.service")
        equal(report["result"], "active", "result")
        away_processes = processes(report, "away")
        equal(len(away_processes), 3, "main process, mover and its child")
        check(all(p["samples"] >= 8 for p in away_processes[1:]), f"samples {[p['samples'] for p in away_processes]}")
        check(not {str(p["pid"]) for p in report["processes"]} & set(strangers), f"a stranger of {strangers} is in")
    finally:
        c.run("sh", "-c", f"pkill -KILL leftover; while [ -s {away}/cgroup.procs ]; do :; done; rmdir {away}",
              check=False)


@case("session")
def moved_by_logind(c):
    """runuser -l makes a session: logind moves the process to a scope; it and its children stay in."""
    check(c.run("sh", "-c", "ls /usr/lib/*/security/pam_systemd.so").stdout, "pam_systemd is there")
    c.run("systemctl", "start", "systemd-logind.service")
    c.write("/usr/local/bin/session", "#!/bin/sh\nexec runuser -l daemon -s /bin/sh -c "
            "'cat /proc/self/cgroup >/tmp/session-cgroup; exec /services/burn 200 exit'\n", mode="755")
    service(c, "case-session.service", "/usr/local/bin/session", kind="oneshot")
    _, report, _ = c.profile("case-session.service")
    where = c.run("cat", "/tmp/session-cgroup").stdout
    check("/user.slice/" in where, f"it was never moved: {where}")
    burn = processes(report, "burn")
    check(burn and burn[0]["samples"] >= 8, f"what was moved is not in: {[p['comm'] for p in report['processes']]}")
    check(not processes(report, "systemd-logind"), "logind is in")
