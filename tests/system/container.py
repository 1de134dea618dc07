# SPDX-License-Identifier: GPL-2.0-or-later
"""Throw-away systemd containers of Debian releases, with the current build installed.

A root file system is made once by mmdebstrap from the machine's own apt configuration and kept outside the
tree; each container runs on a volatile overlay of it, inside a cgroup of its own, with BPF and perf events
allowed. Everything that is started here is ended by stop(), also when a test fails or Ctrl-C comes.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

CACHE = os.environ.get("STARTPROF_TEST_CACHE", "/var/cache/startprof-tests")
PACKAGES = {
    "bookworm": "systemd,systemd-sysv,dbus,libbpf1,libelf1,libdw1,libjansson4,libzstd1,libseccomp2,libcap2,"
                "libdebuginfod1,python3,procps,bash",
    "trixie": "systemd,systemd-sysv,dbus,libbpf1,libelf1t64,libdw1t64,libjansson4,libzstd1,libseccomp2,libcap2,"
              "libdebuginfod1t64,python3,procps,bash",
}
# Sessions of logind, which most cases must not depend on.
PACKAGES["session"] = PACKAGES["bookworm"] + ",libpam-systemd"
RELEASES = {"session": "bookworm"}              # where it is not the suite's name
BOOT_SECONDS = 60
COMMAND_SECONDS = 120
UNIFIED = dict(os.environ, SYSTEMD_NSPAWN_UNIFIED_HIERARCHY="1")
CGROUP_SECONDS = 5


class ContainerError(Exception):
    pass


def clean_up_when_told_to_end():
    """SIGTERM ends a program as Ctrl-C does: by an exception, so that containers are stopped."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))


def mirrors(release):
    """Lines for sources.list, from where this machine gets its own release; none when apt has no such mirror, which
    leaves the choice to mmdebstrap."""
    with open("/etc/os-release") as f:
        ours = dict(line.rstrip().split("=", 1) for line in f if "=" in line).get("VERSION_CODENAME", "")
    shown = subprocess.run(["apt-get", "indextargets", "--format", "$(RELEASE) $(COMPONENT) $(REPO_URI)",
                            "Created-By: Packages"], stdin=subprocess.DEVNULL, capture_output=True, text=True).stdout
    places = {}
    for target, component, uri in (line.split() for line in shown.splitlines() if len(line.split()) == 3):
        if component == "main" and uri.startswith("http"):
            places.setdefault(target, uri)
    if ours not in places:
        return []
    parts = [part for part in ("", "-updates", "-security") if ours + part in places]
    return [f"deb {places[ours + part]} {release}{part} main" for part in parts]


def download_options():
    """The machine's proxy and certificate settings for apt, as options of mmdebstrap, which reads none of them."""
    shown = subprocess.run(["apt-config", "dump"], stdin=subprocess.DEVNULL, capture_output=True, text=True).stdout
    return [f"--aptopt={line}" for line in shown.splitlines()
            if line.startswith(("Acquire::http::", "Acquire::https::")) and not line.endswith(' "";')]


def make_root(suite, release=None):
    """Directory of the release's root file system; made when the package list changed. `suite` names the list in
    PACKAGES, and the release unless another is given."""
    os.makedirs(CACHE, exist_ok=True)
    with open(os.path.join(CACHE, "lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return make_root_locked(suite, release or suite)


def make_root_locked(suite, release):
    key = hashlib.sha256(PACKAGES[suite].encode()).hexdigest()[:12]
    directory = os.path.join(CACHE, f"{suite}-{key}")
    if os.path.isdir(directory):
        return directory
    for old in os.listdir(CACHE):
        if old.rpartition("-")[0] == suite or old.startswith("half."):
            shutil.rmtree(os.path.join(CACHE, old), ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=CACHE, prefix="half.", ignore_cleanup_errors=True) as half:
        os.chmod(half, 0o755)           # apt downloads as a user of its own
        archive, root = os.path.join(half, "root.tar"), os.path.join(half, "root")
        # Killed, it would leave mounts behind; in namespaces that die with it, it cannot.
        made = subprocess.run(["setpriv", "--pdeathsig", "KILL",
                               "unshare", "--pid", "--fork", "--kill-child", "--mount-proc",
                               "mmdebstrap", "--variant=minbase", f"--include={PACKAGES[suite]}", *download_options(),
                               release, archive, *mirrors(release)], stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, env=dict(os.environ, TMPDIR=half))
        if made.returncode != 0:
            raise ContainerError(f"mmdebstrap {suite} failed:\n{made.stderr[-2000:]}")
        os.mkdir(root)
        subprocess.run(["tar", "-C", root, "-xf", archive], check=True)
        os.rename(root, directory)
    return directory


def cgroup2_root():
    for line in open("/proc/self/mounts"):
        fields = line.split()
        if fields[2] == "cgroup2":
            return fields[1]
    raise ContainerError("no cgroup v2 hierarchy is mounted")


def in_cgroup(directory, command):
    """The command, run inside a new cgroup: nspawn makes its own below where it is, and must not do so in ours."""
    os.mkdir(directory)
    return ["sh", "-c", 'echo $$ > "$1/cgroup.procs"; shift; exec "$@"', "sh", directory, *command]


def remove_cgroup(directory):
    """With all below it; waits for the last processes, which are still being reaped."""
    deadline = time.monotonic() + CGROUP_SECONDS
    while os.path.isdir(directory) and time.monotonic() < deadline:
        for inner, _, _ in os.walk(directory, topdown=False):
            with contextlib.suppress(OSError):
                os.rmdir(inner)
        if os.path.isdir(directory):
            time.sleep(0.05)


def remove_cgroups_of_killed_runs():
    for name in os.listdir(cgroup2_root()):
        run = re.fullmatch(r"startprof-\w+-(\d+)-\d+", name)
        if run and not os.path.exists(f"/proc/{run[1]}"):
            remove_cgroup(os.path.join(cgroup2_root(), name))


def mount_tracefs():
    if not any(line.split()[1] == "/sys/kernel/tracing" for line in open("/proc/self/mounts")):
        subprocess.run(["mount", "-t", "tracefs", "tracefs", "/sys/kernel/tracing"], check=True)


def installed_tree():
    """Directory with what `make install DESTDIR=… prefix=/usr` gives, from the build in $BUILD."""
    build = os.path.abspath(os.environ.get("BUILD", "build"))
    tree = os.path.join(build, "root")
    subprocess.run(["make", "-s", f"O={build}", "install", f"DESTDIR={tree}", "prefix=/usr"], check=True,
                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    return tree


class Container:
    def __init__(self, suite, binds=()):
        self.suite = suite
        self.name = f"startprof-{suite}-{os.getpid()}-{int(time.monotonic() * 1000) % 100000}"
        self.binds = binds
        self.cgroup = os.path.join(cgroup2_root(), self.name)
        self.nspawn, self.leader = None, 0

    def start(self):
        root = make_root(self.suite, RELEASES.get(self.suite))
        mount_tracefs()
        remove_cgroups_of_killed_runs()
        self.console = tempfile.TemporaryFile()
        # It dies with us, even if we are killed.
        command = ["setpriv", "--pdeathsig", "TERM",
                   "systemd-nspawn", "-D", root, "--volatile=overlay", "-b", "--keep-unit", "--register=no",
                   "--capability=all", "--system-call-filter=bpf perf_event_open", "--bind=/sys/kernel/tracing",
                   "-M", self.name] + [f"--bind-ro={source}:{target}" for source, target in self.binds]
        try:
            self.nspawn = subprocess.Popen(in_cgroup(self.cgroup, command), stdin=subprocess.DEVNULL,
                                           stdout=self.console, stderr=subprocess.STDOUT, start_new_session=True,
                                           env=UNIFIED)
            self._wait_for_boot()
        except BaseException:
            self.stop()
            raise
        return self

    def _children(self):
        path = f"/proc/{self.nspawn.pid}/task/{self.nspawn.pid}/children"
        with contextlib.suppress(OSError):
            return [int(pid) for pid in open(path).read().split()]
        return []

    def _wait_for_boot(self):
        deadline = time.monotonic() + BOOT_SECONDS
        while time.monotonic() < deadline and self.nspawn.poll() is None:
            children = self._children()
            if children:
                self.leader = children[0]
                state = self.run("systemctl", "is-system-running", check=False).stdout.strip()
                if state in ("running", "degraded"):
                    return
            time.sleep(0.05)
        self.console.seek(0)
        text = self.console.read().decode(errors="replace")
        raise ContainerError(f"{self.suite} did not boot:\n{text[-2000:]}")

    def command(self, *arguments, user=None):
        # TERM and the like of the machine must not decide what tests see.
        prefix = ["nsenter", "-t", str(self.leader), "-a", "env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
                  "HOME=/root", "LANG=C.UTF-8"]
        if user:
            prefix += ["setpriv", "--reuid", user, "--regid", user, "--init-groups"]
        return prefix + list(arguments)

    def run(self, *arguments, check=True, user=None, timeout=COMMAND_SECONDS, input=None):
        done = subprocess.run(self.command(*arguments, user=user), text=True, capture_output=True, errors="replace",
                              timeout=timeout, input=input or "")
        if check and done.returncode != 0:
            raise ContainerError(f"{' '.join(arguments)} in {self.suite}: exit status {done.returncode}\n"
                                 f"{done.stdout}{done.stderr}")
        return done

    def popen(self, *arguments, user=None, **options):
        options.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.Popen(self.command(*arguments, user=user), text=True, **options)

    def write(self, path, text, mode="644"):
        self.run("sh", "-c", 'mkdir -p "$(dirname "$1")" && cat > "$1" && chmod "$2" "$1"', "sh", path, mode, input=text)

    def unit(self, name, text):
        self.write(f"/etc/systemd/system/{name}", text)
        self.run("systemctl", "daemon-reload")

    def install(self):
        """What `make install` put into the bound tree, switched on as the README says."""
        # tar: /lib is a link here, which cp would not follow.
        self.run("sh", "-c", "tar -C /startprof-root -cf - . | tar -C / -xf - --keep-directory-symlink --no-same-owner")
        self.run("systemd-sysusers")
        self.run("systemctl", "daemon-reload")
        self.run("systemctl", "enable", "--now", "startprofd.socket")

    def profile(self, *arguments, check=True, timeout=COMMAND_SECONDS):
        """startprof --json=short ARGUMENTS → (exit status, report or None, standard error)."""
        done = self.run("startprof", "--json=short", *arguments, check=False, timeout=timeout)
        report = json.loads(done.stdout) if done.stdout.strip() else None
        if check and done.returncode != 0:
            raise ContainerError(f"startprof {' '.join(arguments)}: exit status {done.returncode}\n{done.stderr}")
        return done.returncode, report, done.stderr

    def stop(self):
        if self.nspawn and self.nspawn.poll() is None:
            self.nspawn.send_signal(signal.SIGTERM)
            try:
                self.nspawn.wait(10)
            except subprocess.TimeoutExpired:
                self.nspawn.kill()
                self.nspawn.wait()
        remove_cgroup(self.cgroup)

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()
