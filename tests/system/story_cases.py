# SPDX-License-Identifier: GPL-2.0-or-later
"""The story that startprof began with, on the real binary: a natively compiled .NET worker service in /."""

import importlib.machinery
import importlib.util
import os
import shutil

from cases import case, check, equal, service
from jit_cases import need

HERE = os.path.dirname(os.path.abspath(__file__))

# From the entry point inwards, as the C# names begin.
PATH = ("Program.<Main>$", "HostApplicationBuilder..ctor", "JsonConfigurationSource.Build", "PhysicalFilesWatcher",
        "FileSystemWatcher.StartRaisingEvents")
FASTER = 10


def load(path):
    """A test program of another tier as a module."""
    loader = importlib.machinery.SourceFileLoader("nativeaot_programs", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


def binds():
    """The stripped program alone, without its debug file; nothing without the .NET 10 SDK."""
    programs = load(os.path.join(HERE, "../nativeaot/run"))
    if not programs.has_sdk():
        return ()
    folder = os.path.join(os.path.abspath(os.environ.get("BUILD", "build")), "tests/system/nativeaot")
    os.makedirs(folder, exist_ok=True)
    shutil.copy(programs.publish("service"), os.path.join(folder, "service"))
    return ((folder, "/nativeaot"),)


@case()
def nativeaot_watches_the_whole_machine(c):
    """Nothing is configured and no debug file is anywhere: the verdict, the C# path to it, and a drop-in that cures."""
    need(c, "/nativeaot", "the .NET 10 SDK")
    c.run("/services/tree", "/srv/tree", "40", "32", "31")
    try:
        # Globalization data would be a package more, and is not what this is about.
        service(c, "case-aot.service", "/nativeaot/service", extra="Environment=DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1")
        _, slow, _ = c.profile("case-aot.service")
        equal(slow["verdict"]["cause"], "inotify-watch-storm", f"cause ({slow['verdict']['summary']})")
        functions = [frame["function"] or "" for frame in reversed(slow["findings"][0]["stack"])]
        at = 0
        for wanted in PATH:
            found = next((i for i in range(at, len(functions)) if wanted in functions[i]), None)
            check(found is not None, f"no {wanted} behind number {at} of {functions}")
            at = found + 1
        dropin = next(a["dropin"] for a in slow["verdict"]["advice"] if a["dropin"])
        c.write("/etc/systemd/system/case-aot.service.d/cure.conf", dropin)
        c.run("systemctl", "daemon-reload")
        _, fast, _ = c.profile("--restart", "case-aot.service")
        ratio = slow["start"]["duration_usec"] / fast["start"]["duration_usec"]
        check(ratio >= FASTER, f"with {dropin!r} the start is only {ratio:.1f} times faster")
        check(fast["verdict"]["cause"] != "inotify-watch-storm", "the cured start is accused")
    finally:
        c.run("rm", "-rf", "/srv/tree", "/etc/systemd/system/case-aot.service.d")
