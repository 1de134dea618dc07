# SPDX-License-Identifier: GPL-2.0-or-later
"""The cases of the vm tier: the heart of the system tier, and what a container does not have.

An emulated machine is slow and uneven: counts, shares and orders only. A case may return what is worth a reader's eye.
"""

import json
import re

import cases
import kernel_cases
from cases import check, equal, processes, service


def features(c):
    """The programs load; what this kernel has is told."""
    release = c.run("uname", "-r").stdout.strip()
    check(release.startswith(c.suite + "."), f"the kernel is {release}")
    status = json.loads(c.run("startprof", "--json=short", "status").stdout)
    by_name = {f["name"]: f for f in status["features"]}
    check(by_name["BPF programs with BTF"]["available"], f"features {status['features']}")
    for f in status["features"]:
        check(f["available"] or f["reason"], f"{f['name']} is off for no reason")
    return release + ": " + ", ".join(f"{name} {'on' if f['available'] else 'off'}" for name, f in by_name.items())


def notify(c):
    cases.first_exec(c)


def oneshot(c):
    """Both commands of a oneshot, each with its samples."""
    service(c, "case-one.service", "/services/burn 300 exit", kind="oneshot", extra="ExecStartPre=/services/burn 100 exit")
    _, report, _ = c.profile("case-one.service")
    equal((report["result"], report["start"]["type"]), ("exited", "oneshot"), "how it ended")
    by_command = {p["command"]: p["samples"] for p in processes(report, "burn")}
    equal(sorted(by_command), ["ExecStart", "ExecStartPre"], "commands")
    check(by_command["ExecStart"] > by_command["ExecStartPre"] > 0, f"samples {by_command}")


def stacks(c):
    """Stacks of work are complete, of a program of ours and of a stripped one of Debian that loads much."""
    service(c, "case-work.service", "/services/burn 3000 exit", kind="oneshot",
            extra="ExecStartPre=/usr/bin/python3 -c 'sum(i * i for i in range(1000000))'")
    _, report, _ = c.profile("case-work.service")
    got = report["stacks"]
    check(got["samples"] >= 100, f"samples {got}")
    check(got["complete"] >= 0.99 * got["samples"], f"{got['complete']} of {got['samples']} stacks are complete")
    equal(got["lost"], 0, "lost samples")
    lines = cases.folded(c, report)
    check("main;burn_cpu" in lines and "_start" in lines, "no burn_cpu below main")
    return f"{got['complete']} of {got['samples']} complete"


def storm(c):
    """FC-01: a service that watches every folder of the machine, because units run in /."""
    cases.inotify(c)


def short_processes(c):
    cases.short_processes(c)


def waits(c):
    """A wait that ended, one that a signal ended, and one that had not ended when the capture did."""
    asleep = r"^sleep;.*__libc_start_main;.*(?:clock_nanosleep|pause);.*\[waiting\\x20in\\x20(?:clock_nanosleep|pause)\] \d+$"
    service(c, "case-nap.service", "/bin/sleep 1", kind="oneshot")
    service(c, "case-late.service", "/bin/sleep infinity", extra="TimeoutStartSec=5")
    service(c, "case-open.service", "/bin/sleep infinity", kind="simple")
    for unit, options in (("case-nap", ()), ("case-late", ()), ("case-open", ("--until=5s",))):
        _, report, _ = c.profile(*options, f"{unit}.service", check=False)
        lines = cases.folded(c, report, "--view=waits")
        check(re.search(asleep, lines, re.M), f"{unit}: {lines}")


def kernel_frames(c):
    kernel_cases.kernel_frames(c)


def quota(c):
    """FC-20: CPUQuota= makes the start wait for its own budget."""
    service(c, "case-quota.service", "/services/burn 500", extra="CPUQuota=20%")
    _, report, _ = c.profile("case-quota.service")
    rows = {}
    for row in report["breakdown"]:
        rows[row["kind"]] = rows.get(row["kind"], 0) + row["share"]
    stat = c.run("cat", "/sys/fs/cgroup/system.slice/case-quota.service/cpu.stat").stdout
    check(int(re.search(r"nr_throttled (\d+)", stat)[1]) >= 10, f"the kernel throttled nothing: {stat}")
    check(rows.get("throttled", 0) > 0.4, f"shares {rows}")
    verdict = report["verdict"]
    equal((verdict["cause"], verdict["evidence"]["quota"]), ("cpu-throttled", "CPUQuota=20%"), "verdict")
    return f"throttled {rows['throttled']:.0%}"


CASES = (features, notify, oneshot, stacks, storm, short_processes, waits, kernel_frames, quota)
