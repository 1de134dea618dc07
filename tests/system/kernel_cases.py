# SPDX-License-Identifier: GPL-2.0-or-later
"""Cases of the system tier about the kernel's own functions."""

import re

from cases import case, check, service


def folded(c, report, *options):
    c.run("startprof", "export", report["recording"], "--view=waits", "--format=folded", "-o", "/tmp/out.folded", *options)
    return c.run("cat", "/tmp/out.folded").stdout.replace("\\x20", " ")


# nspawn gives its container a boot id of its own, which the daemon in the sandbox of systemd 252 does not see.
@case("trixie")
def kernel_frames(c):
    """Where a thread waited in the kernel is named, and shown, when --kernel asks for it."""
    service(c, "case-sleep.service", "/bin/sleep 0.3", kind="oneshot")
    _, report, _ = c.profile("case-sleep.service")
    check("[waiting in clock_nanosleep]" in folded(c, report), f"no wait: {folded(c, report)}")
    check("hrtimer_nanosleep" not in folded(c, report), f"the kernel without --kernel: {folded(c, report)}")
    lines = folded(c, report, "--kernel")
    check(re.search(r"\[waiting in clock_nanosleep\];.*do_syscall_64;.*hrtimer_nanosleep", lines),
          f"the kernel with --kernel: {lines}")
