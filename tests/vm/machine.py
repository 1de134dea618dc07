# SPDX-License-Identifier: GPL-2.0-or-later
"""Virtual machines with another kernel: what container.Container is, by qemu without KVM.

The disk is the root file system that the containers of Debian 12 use, with the current build; an initramfs of ours
mounts it. What machines write goes into a temporary file, so that all share one disk. Everything is ended by stop().
"""

import json
import os
import shutil
import socket
import subprocess
import tempfile
import time

import container
import kernels

HERE = os.path.dirname(os.path.abspath(__file__))
SUITE = "bookworm"
DISK_BYTES = "2G"
DISK_INODES = "200000"
MEMORY_MIB = "1024"
CPUS = "2"
BOOT_SECONDS = 300
COMMAND_SECONDS = 300
REPLY_SECONDS = 30                  # what the agent may take beyond the command's own time
AGENT_UNIT = """[Unit]
After=basic.target
[Service]
ExecStart=/usr/bin/python3 /opt/agent.py
"""
# The storm of FC-01 is about watches that are made, not about those that 5.10 refuses a small machine.
SYSCTL = "fs.inotify.max_user_watches = 100000\n"
WANTS = "etc/systemd/system/multi-user.target.wants"
COMMAND_LINE = "console=ttyS0 quiet panic=-1 systemd.unit=multi-user.target systemd.mask=getty.target systemd.show_status=no"


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write(text)


def make_disk(directory, binds):
    """A disk with the root file system and copies of the bound directories (pairs of source, target)."""
    disk, stage = os.path.join(directory, "disk"), os.path.join(directory, "stage")
    subprocess.run(["cp", "-a", "--reflink=auto", container.make_root(SUITE), stage], check=True)
    for source, target in binds:
        subprocess.run(["cp", "-a", source, stage + target], check=True)
    shutil.copy(os.path.join(HERE, "agent.py"), os.path.join(stage, "opt/agent.py"))
    write(os.path.join(stage, "etc/systemd/system/agent.service"), AGENT_UNIT)
    write(os.path.join(stage, "etc/sysctl.d/50-tests.conf"), SYSCTL)
    os.makedirs(os.path.join(stage, WANTS), exist_ok=True)
    os.symlink("/etc/systemd/system/agent.service", os.path.join(stage, WANTS, "agent.service"))
    environment = dict(os.environ, PATH=os.environ.get("PATH", "") + ":/usr/sbin")
    subprocess.run(["mke2fs", "-q", "-t", "ext4", "-N", DISK_INODES, "-d", stage, disk, DISK_BYTES], check=True,
                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=environment)
    shutil.rmtree(stage)
    return disk


def build_init(directory):
    program = os.path.join(directory, "init")
    subprocess.run(["gcc", "-std=gnu11", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra", "-Werror", "-static", "-o", program,
                    os.path.join(HERE, "init.c")], check=True)
    with open(program, "rb") as f:
        return f.read()


class Machine(container.Container):
    """A kernel of kernels.KERNELS on a disk of make_disk()."""

    def __init__(self, kernel, disk, init, console):
        self.suite = kernel.series
        self.kernel, self.disk, self.init, self.console_path = kernel, disk, init, console
        self.qemu = self.channel = None
        self.received = b""

    def start(self):
        image, modules = kernels.take_apart(kernels.fetch(self.kernel))
        # The names of sockets are short: the build directory's may not be.
        self.directory = tempfile.TemporaryDirectory(prefix="startprof-vm.")
        paths = {name: os.path.join(self.directory.name, name) for name in ("kernel", "initramfs")}
        for name, data in (("kernel", image), ("initramfs", kernels.initramfs(self.init, modules))):
            with open(paths[name], "wb") as f:
                f.write(data)
        ours, theirs = socket.socketpair()
        with open(self.console_path, "wb") as console, theirs:
            # It dies with us, even if we are killed.
            self.qemu = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max,la57=off",
                 "-smp", CPUS, "-m", MEMORY_MIB, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
                 "-serial", "stdio", "-kernel", paths["kernel"], "-initrd", paths["initramfs"], "-append", COMMAND_LINE,
                 "-drive", f"file={self.disk},format=raw,if=virtio,snapshot=on",
                 "-device", "virtio-serial-pci", "-chardev", f"socket,id=agent,fd={theirs.fileno()}",
                 "-device", "virtserialport,chardev=agent"],
                stdin=subprocess.DEVNULL, stdout=console, stderr=subprocess.STDOUT, pass_fds=(theirs.fileno(),),
                start_new_session=True, env=dict(os.environ, TMPDIR=self.directory.name))
        self.channel = ours
        try:
            self._wait_for_boot()
        except BaseException:
            self.stop()
            raise
        return self

    def _wait_for_boot(self):
        state = self.run("systemctl", "is-system-running", "--wait", check=False, timeout=BOOT_SECONDS).stdout.strip()
        if state not in ("running", "degraded"):
            raise container.ContainerError(f"{self.suite} did not boot: {state}")

    def _reply(self, seconds):
        deadline = time.monotonic() + seconds
        while b"\n" not in self.received:
            self.channel.settimeout(max(deadline - time.monotonic(), 0.001))
            try:
                data = self.channel.recv(1 << 16)
            except TimeoutError:
                raise container.ContainerError(f"{self.suite} does not answer; see {self.console_path}") from None
            if not data:
                raise container.ContainerError(f"{self.suite} is gone; see {self.console_path}")
            self.received += data
        line, _, self.received = self.received.partition(b"\n")
        return json.loads(line)

    def run(self, *arguments, check=True, user=None, timeout=COMMAND_SECONDS, input=None):
        if user:
            arguments = ("setpriv", "--reuid", user, "--regid", user, "--init-groups", *arguments)
        request = {"arguments": arguments, "input": input or "", "timeout": timeout}
        self.channel.settimeout(timeout)
        self.channel.sendall(json.dumps(request).encode() + b"\n")
        reply = self._reply(timeout + REPLY_SECONDS)
        if reply["status"] is None:
            raise container.ContainerError(f"{' '.join(arguments)} in {self.suite}: not done in {timeout} s")
        done = subprocess.CompletedProcess(arguments, reply["status"], reply["stdout"], reply["stderr"])
        if check and done.returncode != 0:
            raise container.ContainerError(f"{' '.join(arguments)} in {self.suite}: exit status {done.returncode}\n"
                                           f"{done.stdout}{done.stderr}")
        return done

    def profile(self, *arguments, check=True, timeout=COMMAND_SECONDS):
        return super().profile(*arguments, check=check, timeout=timeout)

    def stop(self):
        if self.qemu:
            self.qemu.kill()
            self.qemu.wait()
            self.channel.close()
            self.directory.cleanup()
            self.qemu = None
