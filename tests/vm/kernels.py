# SPDX-License-Identifier: GPL-2.0-or-later
"""Debian's kernels for the vm tier: fetched by apt once, kept, and taken apart in memory.

Each is pinned by the hash of its package, so that a run is the same everywhere. A mirror keeps only the newest of a
release: when the pinned one has gone, the release's present kernel is taken, which apt has checked against the signed
index, and the run says so.
"""

import collections
import hashlib
import io
import lzma
import os
import re
import shutil
import subprocess
import tarfile
import tempfile

import container

Kernel = collections.namedtuple("Kernel", "series release package version sha256")
KERNELS = [
    Kernel("5.10", "bullseye", "linux-image-5.10.0-32-cloud-amd64", "5.10.223-1",
           "fb4a1229952d892138532c1d9f40a7fd0bd408e4dcf969c12e4524b6a89fdcb8"),
    Kernel("6.1", "bookworm", "linux-image-6.1.0-50-cloud-amd64", "6.1.176-1",
           "efe19f605b6f54a8352e68d85a629abb2d30b72a085faef603a9152590baa791"),
    Kernel("6.12", "trixie", "linux-image-6.12.117+deb13-cloud-amd64", "6.12.117-1",
           "e9893e5295d0549b8852611f12a4b8b5f6cc4b8128dcc2086b9847793b904ab7"),
]
NEWEST = "linux-image-cloud-amd64"
# What systemd's root needs before anything can load modules. They and what they depend on may be built in.
MODULES = ("virtio_pci", "virtio_blk", "virtio_console", "autofs4")


class KernelError(Exception):
    pass


class Apt:
    """apt with the packages of another release, in a directory of its own."""

    def __init__(self, directory, release):
        lines = container.mirrors(release)
        if not lines:
            raise KernelError("apt has no mirror of this machine's own release")
        self.directory = directory
        for inner in ("state/lists/partial", "cache/archives/partial"):
            os.makedirs(os.path.join(directory, inner))
        sources = os.path.join(directory, "sources.list")
        with open(sources, "w") as f:
            f.write(lines[0] + "\n")
        self.options = [option for pair in (
            f"Dir::Etc::SourceList={sources}", "Dir::Etc::SourceParts=-", f"Dir::State={directory}/state",
            f"Dir::Cache={directory}/cache", "Dir::State::Status=/dev/null", "APT::Architecture=amd64",
            "APT::Architectures::=amd64", "APT::Sandbox::User=root") for option in ("-o", pair)]

    def run(self, program, *arguments):
        return subprocess.run([program, *self.options, *arguments], stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, cwd=self.directory)

    def download(self, what):
        """Path of the package, or None."""
        if self.run("apt-get", "-qq", "download", what).returncode != 0:
            return None
        return next(os.path.join(self.directory, f) for f in os.listdir(self.directory) if f.endswith(".deb"))

    def newest(self):
        shown = self.run("apt-cache", "depends", NEWEST).stdout
        found = re.search(r"Depends: (linux-image-\S+)", shown)
        return found[1] if found else None


def sha256(path):
    digest = hashlib.sha256()
    with open(path, "rb") as f:
        for block in iter(lambda: f.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def fetch(kernel):
    """Path of the kernel's package in the cache."""
    directory = os.path.join(container.CACHE, "kernels")
    pinned = os.path.join(directory, f"{kernel.package}_{kernel.version}.deb")
    os.makedirs(directory, exist_ok=True)
    if os.path.exists(pinned) and sha256(pinned) == kernel.sha256:
        return pinned
    with tempfile.TemporaryDirectory(dir=directory, prefix="half.") as half:
        apt = Apt(half, kernel.release)
        updated = apt.run("apt-get", "-qq", "update")
        got = apt.download(f"{kernel.package}={kernel.version}")
        if got:
            if sha256(got) != kernel.sha256:
                raise KernelError(f"{kernel.package} {kernel.version} is not the package that tests/vm/kernels.py pins")
            shutil.move(got, pinned)
            return pinned
        newest = apt.newest()
        got = apt.download(newest) if newest else None
        if not got:
            raise KernelError(f"no kernel of {kernel.release} to be had: {updated.stderr.strip()[-300:]}")
        print(f"# {kernel.series}: the mirror has {newest}, not {kernel.package} {kernel.version} any more", flush=True)
        kept = os.path.join(directory, os.path.basename(got))
        shutil.move(got, kept)
        return kept


def module_name(path):
    found = re.search(r"/([^/]+)\.ko(\.xz)?$", path)
    return found[1].replace("-", "_") if found else None


def depends(module):
    found = re.search(rb"\0depends=([^\0]*)\0", module)
    return [n.replace("-", "_") for n in found[1].decode().split(",") if n] if found else []


def in_order(files, names, done):
    """Appends the named modules to the list of (name, bytes), each behind what it depends on."""
    for name in names:
        if name not in files or name in [n for n, _ in done]:
            continue
        module = files[name]()
        in_order(files, depends(module), done)
        done.append((name, module))


def take_apart(package):
    """(kernel image, [(module, its bytes)] in the order in which to load them)."""
    with tempfile.TemporaryFile() as archive:
        subprocess.run(["dpkg-deb", "--fsys-tarfile", package], stdin=subprocess.DEVNULL, stdout=archive, check=True)
        archive.seek(0)
        tar = tarfile.open(fileobj=archive)
        image, files = None, {}
        for member in tar.getmembers():
            if member.isfile() and member.name.startswith("./boot/vmlinuz-"):
                image = tar.extractfile(member).read()
            elif member.isfile() and module_name(member.name):
                opener = lzma.open if member.name.endswith(".xz") else (lambda f: f)
                files[module_name(member.name)] = \
                    lambda member=member, opener=opener: opener(tar.extractfile(member)).read()
        modules = []
        in_order(files, MODULES, modules)
    if image is None:
        raise KernelError(f"{package} holds no kernel")
    return image, modules


def cpio_entry(number, name, mode, data, device=(0, 0)):
    """A file of the kernel's "newc" format (Documentation/driver-api/early-userspace/buffer-format.rst)."""
    path = name.encode() + b"\0"
    fields = (number, mode, 0, 0, 1, 0, len(data), 0, 0, *device, len(path), 0)
    head = b"070701" + b"".join(b"%08x" % field for field in fields) + path
    return head + bytes(-len(head) % 4) + data + bytes(-len(data) % 4)


def initramfs(init, modules):
    """The bytes of one that runs a static program, which finds /modules/NN-NAME in the order in which to load them."""
    out, number = io.BytesIO(), 1
    entries = [("dev", 0o040755, b""), ("root", 0o040755, b""), ("modules", 0o040755, b""), ("init", 0o100755, init)]
    entries += [(f"modules/{i:02}-{name}", 0o100644, data) for i, (name, data) in enumerate(modules)]
    for name, mode, data in entries:
        out.write(cpio_entry(number, name, mode, data))
        number += 1
    out.write(cpio_entry(number, "dev/console", 0o020600, b"", (5, 1)))
    out.write(cpio_entry(0, "TRAILER!!!", 0, b""))
    return out.getvalue()
