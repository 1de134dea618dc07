# SPDX-License-Identifier: GPL-2.0-or-later
"""Starts that are slow, or fail, because of files: what is watched."""

from cases import case, check, equal, service


@case()
def no_inotify_instance_left(c):
    """FC-15: a start that fails within milliseconds; not one that has too few descriptors."""
    service(c, "case-instances.service", "/services/instances", extra="User=daemon\nLimitNOFILE=200000")
    _, report, _ = c.profile("case-instances.service", check=False)
    verdict = report["verdict"]
    equal((report["result"], verdict["cause"]), ("failed", "inotify-limit"), f"verdict {verdict['summary']}")
    limit = int(c.run("cat", "/proc/sys/fs/inotify/max_user_instances").stdout)
    equal((verdict["evidence"]["limit"], verdict["evidence"]["limit_value"]),
          ("fs.inotify.max_user_instances", limit), "limit")

    service(c, "case-descriptors.service", "/services/instances", extra="User=daemon\nLimitNOFILE=16")
    _, report, _ = c.profile("case-descriptors.service", check=False)
    equal(report["result"], "failed", "too few descriptors")
    check(report["verdict"]["cause"] != "inotify-limit", f"accused: {report['verdict']}")
