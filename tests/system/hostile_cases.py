# SPDX-License-Identifier: GPL-2.0-or-later
"""Cases of the system tier with services that map files which are no friends of those who read them."""

import time

from cases import case, check, daemon_pid, equal, processes, service

# A healthy report takes less than one, that with 2 GB of holes for symbols a few; what hangs takes for ever.
REPORT_SECONDS = 30


def profile_hostile(c, kind):
    unit = f"case-hostile-{kind}.service"
    service(c, unit, f"/services/hostile {kind} /run/case-hostile-{kind}")
    begin = time.monotonic()
    _, report, _ = c.profile(unit)
    took = time.monotonic() - begin
    c.run("systemctl", "stop", unit)
    c.run("rm", "-f", f"/run/case-hostile-{kind}")
    equal(report["result"], "active", f"result with {kind}")
    check(took < REPORT_SECONDS, f"the report with {kind} took {took:.1f} s")
    check(processes(report, "hostile")[0]["samples"] >= 4, f"samples with {kind}: {processes(report, 'hostile')}")
    return report


@case()
def hostile_files(c):
    """Files that lie, loop, are huge, or are none cost themselves their names, and nobody else."""
    gone = "file could not be opened any more"
    wanted = {"sizes": "broken ELF file", "loop": None, "sparse": None, "large": None, "fifo": gone, "device": gone}
    before = None
    for kind, reason in wanted.items():
        report = profile_hostile(c, kind)
        before = before or daemon_pid(c)
        equal(daemon_pid(c), before, f"the daemon after {kind}")
        mapped = [m for m in report["modules"] if m["path"] == f"/run/case-hostile-{kind}"]
        check(mapped and mapped[0]["samples"] >= 2, f"the module of {kind}: {report['modules']}")
        check(mapped[0]["reason"] and mapped[0]["symbols"] == "none", f"names from {kind}: {mapped}")
        if reason:
            equal(mapped[0]["reason"], reason, f"reason for {kind}")
        check(any(m["symbols"] != "none" for m in report["modules"]), f"no names elsewhere with {kind}")


@case()
def file_that_shrinks(c):
    """A file that is cut while it is read costs names at worst; the next report has them again."""
    report = profile_hostile(c, "shrink")
    check(report["breakdown"], "nothing in the breakdown")
    service(c, "case-burn.service", "/services/burn 100")
    _, report, _ = c.profile("case-burn.service")
    check(any(m["path"] == "/services/burn" and m["symbols"] == "symtab" for m in report["modules"]),
          f"no names in the next report: {report['modules']}")
