# SPDX-License-Identifier: GPL-2.0-or-later
"""Cases of the system tier with run-times that make their code while they run.

Node, .NET and Java come from this machine: the first with its libraries, the others with a program that is
compiled here. Python is the container's own.
"""

import os
import re
import shutil
import subprocess

from cases import WAIT_SECONDS, Skip, case, check, equal, fails, folded, wait_until

NODE_SCRIPT = """
function collatzUntil(time) {
  let steps = 0;
  while (Date.now() < time)
    for (let n = 27; n !== 1; steps++) n = n % 2 === 0 ? n / 2 : 3 * n + 1;
  return steps;
}
collatzUntil(Date.now() + Number(process.argv[2]));
"""
PYTHON_SCRIPT = """
import sys, time
def collatz_steps(n):
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps
until = time.monotonic() + int(sys.argv[1]) / 1000
while time.monotonic() < until:
    collatz_steps(27)
"""
BURN_MSEC = 400
LIBC = ("ld-linux", "libc.so", "libm.so", "libdl.so", "libpthread.so", "librt.so", "linux-vdso")


def build_directory(name):
    directory = os.path.join(os.path.abspath(os.environ.get("BUILD", "build")), "tests/jit", name)
    os.makedirs(directory, exist_ok=True)
    return directory


def copy_node():
    """node and what it needs but the C library; None without node."""
    node = shutil.which("node") or shutil.which("nodejs")
    if not node:
        return None
    directory = build_directory("node")
    shown = subprocess.run(["ldd", os.path.realpath(node)], capture_output=True, text=True, check=True).stdout
    libraries = [path for path in re.findall(r"=> (/\S+)", shown) if not os.path.basename(path).startswith(LIBC)]
    for source, name in [(node, "node")] + [(path, os.path.basename(path)) for path in libraries]:
        target = os.path.join(directory, name)
        if not os.path.exists(target) or os.path.getmtime(target) < os.path.getmtime(os.path.realpath(source)):
            shutil.copy2(os.path.realpath(source), target)
            os.utime(target)
    return directory


def publish_dotnet():
    """A program for the shared framework, and where that lies; None without the .NET 10 SDK."""
    dotnet = shutil.which("dotnet")
    if not dotnet or not re.search(r"^10\.", subprocess.run([dotnet, "--list-sdks"], capture_output=True,
                                                            text=True).stdout, re.M):
        return None
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "services/jit")
    directory, home = build_directory("dotnet"), build_directory("dotnet-home")
    if not os.path.exists(os.path.join(directory, "jit")):
        subprocess.run([dotnet, "publish", source, "-v", "q", "-o", directory,
                        f"-p:BaseIntermediateOutputPath={home}/obj/", f"-p:BaseOutputPath={home}/bin/"],
                       check=True, stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL,
                       env=dict(os.environ, DOTNET_CLI_HOME=home, DOTNET_NOLOGO="1", DOTNET_CLI_TELEMETRY_OPTOUT="1"))
    return directory, os.path.dirname(os.path.realpath(dotnet))


def compile_java():
    """A class, where the JDK lies, and what its links need; None without a JDK."""
    jcmd, javac = shutil.which("jcmd"), shutil.which("javac")
    if not jcmd or not javac:
        return None
    directory = build_directory("java")
    subprocess.run([javac, "-d", directory, "--release", "11",
                    os.path.join(os.path.dirname(os.path.abspath(__file__)), "services/jit/Burn.java")], check=True)
    home = os.path.dirname(os.path.dirname(os.path.realpath(jcmd)))
    configuration = os.path.join("/etc", "-".join(os.path.basename(home).split("-")[:3]))
    return directory, home, configuration if os.path.isdir(configuration) else directory


def binds():
    """What the containers of these cases need from here, as pairs of directories."""
    node, dotnet, java = copy_node(), publish_dotnet(), compile_java()
    return ((((node, "/jit/node"),) if node else ()) +
            (((dotnet[0], "/jit/dotnet"), (dotnet[1], "/jit/framework")) if dotnet else ()) +
            (((java[0], "/jit/java"), (java[1], "/jit/jdk"), (java[2], java[2])) if java else ()))


def oneshot(c, name, start, *lines):
    c.unit(name, f"[Service]\nType=oneshot\nExecStart={start}\n" + "".join(f"{line}\n" for line in lines))


def need(c, directory, what):
    if c.run("test", "-d", directory, check=False).returncode != 0:
        raise Skip(f"needs {what}")


def node_service(c, name, *lines, before=""):
    need(c, "/jit/node", "node")
    c.write("/srv/case-jit/app.js", NODE_SCRIPT)
    c.write("/srv/case-jit/environment", "LD_LIBRARY_PATH=/jit/node\n")
    oneshot(c, name, f"{before}/jit/node/node /srv/case-jit/app.js {BURN_MSEC}",
            "EnvironmentFile=/srv/case-jit/environment", *lines)


def dotnet_service(c, name, *lines):
    need(c, "/jit/dotnet", "the .NET 10 SDK")
    oneshot(c, name, f"/jit/dotnet/jit {BURN_MSEC}", "Environment=DOTNET_ROOT=/jit/framework", *lines)


def python_service(c, name, *lines):
    c.write("/srv/case-jit/app.py", PYTHON_SCRIPT)
    oneshot(c, name, f"/usr/bin/python3 /srv/case-jit/app.py {BURN_MSEC}", *lines)


def expect_names(c, report, name):
    """Most samples have the function, and most stacks are complete."""
    lines = [line.rsplit(" ", 1) for line in folded(c, report).splitlines()]
    total = sum(int(count) for _, count in lines)
    named = sum(int(count) for stack, count in lines if re.search(name, stack))
    check(named * 2 > total, f"{named} of {total} samples name {name}")
    stacks = report["stacks"]
    check(stacks["complete"] * 5 >= stacks["samples"] * 4, f"complete stacks: {stacks}")
    check(any(m["symbols"] == "perf-map" for m in report["modules"]), f"no module with a perf map: {report['modules']}")


@case()
def node_functions(c):
    """A JavaScript function is named from the map in the service's own /tmp, after the process is gone."""
    node_service(c, "case-node.service", "Environment=NODE_OPTIONS=--perf-basic-prof", "PrivateTmp=yes")
    _, report, _ = c.profile("case-node.service")
    expect_names(c, report, r";JS:.?collatzUntil")
    equal(c.run("sh", "-c", "ls /tmp/perf-*.map", check=False).stdout, "", "maps outside of the service's /tmp")


@case("bookworm")
def dotnet_methods(c):
    """A method that .NET compiled while it ran is named."""
    dotnet_service(c, "case-dotnet.service", "Environment=DOTNET_PerfMapEnabled=1", "PrivateTmp=yes")
    _, report, _ = c.profile("case-dotnet.service")
    expect_names(c, report, r";Program\.<Main>\$;Numbers\.CollatzSteps")


@case("bookworm")
def java_methods(c):
    """A method that Java compiled is named when jcmd makes it write its map during the start, and else jcmd is told."""
    need(c, "/jit/java", "a JDK")
    unit = ("[Service]\nType=exec\nRuntimeDirectory=case-java\n"
            f"ExecStart=/jit/jdk/bin/java -XX:+PreserveFramePointer -cp /jit/java Burn {BURN_MSEC} /run/case-java/warm\n"
            "ExecStartPost=/bin/sh -c 'until [ -e /run/case-java/warm ]; do sleep 0.02; done; %s'\n")
    c.unit("case-java.service", unit % "/jit/jdk/bin/jcmd $MAINPID Compiler.perfmap")
    _, report, _ = c.profile("case-java.service")
    lines = folded(c, report).splitlines()
    named = sum(int(line.split()[-1]) for line in lines if re.search(r"Burn\.collatz", line))
    check(named >= BURN_MSEC // 20, f"{named} samples name Burn.collatz…: {lines}")
    c.run("systemctl", "stop", "case-java.service")

    c.unit("case-java.service", unit % "true")
    _, report, _ = c.profile("case-java.service")
    told = [a for m in report["modules"] for a in m.get("advice", ())]
    pid = c.run("systemctl", "show", "-P", "MainPID", "case-java.service").stdout.strip()
    check([a["dropin"] for a in told if f"`jcmd {pid} Compiler.perfmap`" in a["text"]] == [None],
          f"what Java needs: {told}")


@case("trixie")
def python_functions(c):
    """A function of CPython 3.13 is named."""
    python_service(c, "case-python.service", "Environment=PYTHONPERFSUPPORT=1", "PrivateTmp=yes")
    _, report, _ = c.profile("case-python.service")
    expect_names(c, report, r";py::<module>:.*;py::collatz_steps:")


@case()
def pid_namespace(c):
    """SY-06: in a pid namespace of its own the process is 1 and writes perf-1.map."""
    node_service(c, "case-inner.service", "Environment=NODE_OPTIONS=--perf-basic-prof", "PrivateTmp=yes",
                 before="/usr/bin/unshare --pid --fork --mount-proc ")
    _, report, _ = c.profile("case-inner.service")
    expect_names(c, report, r";JS:.?collatzUntil")


def advice(report):
    return {a["dropin"] for m in report["modules"] for a in m.get("advice", ()) if a["dropin"]}


@case()
def switches_are_told(c):
    """Without a map the report says which switch makes the run-time write one."""
    node_service(c, "case-node.service")
    _, report, _ = c.profile("case-node.service")
    equal(advice(report), {"[Service]\nEnvironment=NODE_OPTIONS=--perf-basic-prof\n"}, "what node needs")
    text = c.run("startprof", "info", report["recording"]).stdout
    check("startprof --perf-map case-node.service" in text, f"the screen does not say it: {text}")
    if c.suite == "bookworm":
        dotnet_service(c, "case-dotnet.service")
        wanted = "[Service]\nEnvironment=DOTNET_PerfMapEnabled=1\n"
        _, report, _ = c.profile("case-dotnet.service")
    else:
        python_service(c, "case-python.service")
        wanted = "[Service]\nEnvironment=PYTHONPERFSUPPORT=1\n"
        _, report, _ = c.profile("case-python.service")
    equal(advice(report), {wanted}, "what the other needs")


def drop_ins(c):
    return c.run("sh", "-c", "ls -d /run/systemd/system/*.service.d 2>/dev/null", check=False).stdout


def environment(c, unit):
    return c.run("systemctl", "show", "-p", "Environment,NeedDaemonReload", unit).stdout


def expect_clean(c, unit):
    wait_until(f"the drop-in of {unit} is gone", lambda: not drop_ins(c))
    wait_until("systemd has read that", lambda: environment(c, unit) == "Environment=NODE_OPTIONS=--trace-warnings\n"
                                                                        "NeedDaemonReload=no\n")


@case()
def perf_map_for_one_start(c):
    """--perf-map sets the switches for one start, beside what the unit sets, and takes them away again."""
    node_service(c, "case-once.service", "Environment=NODE_OPTIONS=--trace-warnings")
    _, report, _ = c.profile("--perf-map", "case-once.service")
    expect_names(c, report, r";JS:.?collatzUntil")
    expect_clean(c, "case-once.service")


@case()
def perf_map_whatever_happens(c):
    """The drop-in of --perf-map goes with a client that is killed or interrupted, and a left one with the next."""
    node_service(c, "case-once.service", "Environment=NODE_OPTIONS=--trace-warnings")
    for signal in ("KILL", "INT"):
        client = c.popen("setsid", "--wait", "startprof", "--perf-map", "--wait", "case-once.service",
                         stderr=subprocess.DEVNULL)
        wait_until("it is set", lambda: "--trace-warnings --perf-basic-prof" in environment(c, "case-once.service"))
        # Two Ctrl-C give up; what is in the terminal's process group hears them all.
        c.run("pkill", f"-{signal}", "-x", "startprof", check=False)
        if signal == "INT":
            c.run("pkill", "-INT", "-x", "startprof", check=False)
        client.wait(WAIT_SECONDS)
        expect_clean(c, "case-once.service")

    c.write("/run/systemd/system/case-once.service.d/zz-startprof.conf",
            "# Made by startprof for one start; it removes this file again.\n[Service]\nEnvironment=LEFT=1\n")
    c.run("systemctl", "daemon-reload")
    c.profile("case-once.service")
    expect_clean(c, "case-once.service")
    fails(c, ("--perf-map", "case-once.service"), 5, "only root", user="daemon")
