# SPDX-License-Identifier: Apache-2.0
"""The kernel and the initramfs of the guest, made of Debian packages that are downloaded and unpacked, not installed.

Everything lies in a cache: the packages, what is in them, and the image, whose name is a sum of all it is made of. So
the second run takes no time, and a changed script or kernel makes a new image.
"""
import fcntl
import glob
import hashlib
import lzma
import os
import re
import shutil
import stat
import subprocess
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SCRIPTS = {"init": "guest_init.sh", "sbin/serve": "guest_serve.sh"}
LIBRARIES = "usr/lib/x86_64-linux-gnu"

# Debian 12. Those below the first line bring libraries.
PACKAGES = """
    busybox-static iproute2 ethtool ibverbs-utils ibverbs-providers rdmacm-utils perftest libc6
    libibverbs1 librdmacm1 libibumad3 libnl-3-200 libnl-route-3-200 libpci3 libudev1 zlib1g libgcc-s1
    libmnl0 libcap2 libbpf1 libelf1 libbsd0 libmd0
""".split()
MODULES = ["virtio_pci", "virtio_net", "virtio_console", "crc32_generic", "ib_uverbs", "rdma_ucm", "rdma_rxe"]
PROGRAMS = ["ip", "rdma", "ethtool", "ibv_*", "ib_*", "rping", "ucmatose", "udaddy", "cmtime"]


class Skip(Exception):
    """Why there can be no guest here."""


def cache_directory():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(base, "softub", "roce-guest")


def call(*args, cwd=None):
    """Output of a program that must succeed."""
    try:
        done = subprocess.run(args, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                              env={**os.environ, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"})
    except OSError as error:
        raise Skip(f"{args[0]} cannot be run: {error.strerror}") from None
    if done.returncode != 0:
        last = (done.stderr.decode(errors="replace").strip().splitlines() or ["no word why"])[-1]
        raise Skip(f"{' '.join(args[:2])} failed: {last}")
    return done.stdout.decode(errors="replace")


def newest_kernel():
    """The package that linux-image-amd64 stands for, after an update of the lists where there are none."""
    for attempt in range(2):
        try:
            found = re.search(r"Depends: (linux-image-\S+)", call("apt-cache", "depends", "linux-image-amd64"))
        except Skip:
            found = None
        if found:
            return found[1]
        if attempt == 0:
            call("apt-get", "update")
    raise Skip("apt knows no package linux-image-amd64")


# ---- packages ---------------------------------------------------------------------------------------------------


def unpack(cache, package):
    """The directory of what is in a package."""
    target = os.path.join(cache, "unpacked", package)
    if os.path.isdir(target):
        return target
    debs = os.path.join(cache, "debs")
    os.makedirs(debs, exist_ok=True)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    pattern = os.path.join(debs, glob.escape(package) + "_*.deb")
    if not glob.glob(pattern):
        try:
            download(package, debs)
        except Skip:  # lists that name a version which is not there any more
            if os.geteuid() != 0:
                raise  # only root may update them: what has failed is the cause
            call("apt-get", "update")
            download(package, debs)
    new = target + ".new"
    shutil.rmtree(new, ignore_errors=True)
    call("dpkg-deb", "-x", sorted(glob.glob(pattern))[-1], new)
    os.rename(new, target)
    return target


def download(package, directory):
    # apt wants to be another user for that, who cannot write everywhere.
    call("apt-get", "-o", "APT::Sandbox::User=root", "download", package, cwd=directory)


# ---- the tree ---------------------------------------------------------------------------------------------------


class Tree:
    """Files of the initramfs: name > (mode, bytes)."""

    def __init__(self):
        self.files = {}

    def add(self, name, data, mode=0o644):
        directory = os.path.dirname(name)
        if directory and directory not in self.files:
            self.add_directory(directory)
        self.files[name] = (stat.S_IFREG | mode, data)

    def add_directory(self, name):
        parent = os.path.dirname(name)
        if parent and parent not in self.files:
            self.add_directory(parent)
        self.files[name] = (stat.S_IFDIR | 0o755, b"")

    def add_link(self, name, target):
        self.files[name] = (stat.S_IFLNK | 0o777, target.encode())

    def add_copy(self, name, path, mode=0o755):
        with open(path, "rb") as file:
            self.add(name, file.read(), mode)

    def archive(self):
        """In the format newc of cpio: 13 numbers of 8 hex digits, the name, the bytes, each padded to 4."""
        parts = []
        for number, (name, (mode, data)) in enumerate([*sorted(self.files.items()), ("TRAILER!!!", (0, b""))], 1):
            raw = name.encode() + b"\0"
            fields = [number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(raw), 0]
            head = b"070701" + b"".join(b"%08x" % field for field in fields) + raw
            parts += [head, b"\0" * (-len(head) % 4), data, b"\0" * (-len(data) % 4)]
        return b"".join(parts)


def read_module(path):
    with open(path, "rb") as file:
        data = file.read()
    return lzma.decompress(data) if path.endswith(".xz") else data


def add_modules(tree, kernel_root):
    """With those they need, and a list of the order in which they are to be loaded."""
    paths = {}
    for path in glob.glob(os.path.join(kernel_root, "**", "*.ko*"), recursive=True):
        paths[os.path.basename(path).split(".")[0].replace("-", "_")] = path
    order = []

    def add(name):
        if name in order:
            return
        if name not in paths:
            raise Skip(f"the kernel package has no module {name}")
        data = read_module(paths[name])
        needed = re.search(rb"\0depends=([^\0]*)\0", data)[1].decode()
        for other in filter(None, needed.split(",")):
            add(other.replace("-", "_"))
        order.append(name)
        tree.add(f"modules/{name}.ko", data)

    for module in MODULES:
        add(module)
    tree.add("modules/order", "".join(f"{name}\n" for name in order).encode())


def add_programs(tree, roots):
    for root in roots:
        for directory in ("bin", "sbin", "usr/bin", "usr/sbin"):
            for pattern in PROGRAMS:
                for path in glob.glob(os.path.join(root, directory, pattern)):
                    tree.add_copy("usr/bin/" + os.path.basename(path), os.path.realpath(path))
        for directory in ("lib", "usr/lib"):
            for path in glob.glob(os.path.join(root, directory, "x86_64-linux-gnu", "*.so*")):
                tree.add_copy(f"{LIBRARIES}/{os.path.basename(path)}", path)
            for path in glob.glob(os.path.join(root, directory, "x86_64-linux-gnu/libibverbs/librxe-*.so")):
                tree.add_copy(f"{LIBRARIES}/libibverbs/{os.path.basename(path)}", path)


def make_archive(roots, kernel_root):
    tree = Tree()
    for name in ("dev", "proc", "sys", "tmp", "run", "root", "bin", "sbin"):
        tree.add_directory(name)
    tree.add_directory(LIBRARIES)
    tree.add_link("lib", "usr/lib")
    tree.add_link("lib64", LIBRARIES)
    tree.add("etc/libibverbs.d/rxe.driver", b"driver rxe\n")
    tree.add("etc/passwd", b"root:x:0:0:root:/root:/bin/sh\n")
    tree.add("etc/group", b"root:x:0:\n")
    tree.add("etc/hosts", b"127.0.0.1 localhost\n")
    for name, script in SCRIPTS.items():
        tree.add_copy(name, os.path.join(HERE, script))
    busybox = [path for root in roots for path in glob.glob(os.path.join(root, "bin/busybox"))]
    tree.add_copy("bin/busybox", busybox[0])
    add_modules(tree, kernel_root)
    add_programs(tree, roots)
    return tree.archive()


def bare_kernel(packed):
    """The ELF file in a bzImage: without hardware virtualisation it starts seconds sooner than what unpacks itself."""
    for found in re.finditer(rb"\xfd7zXZ\0", packed):
        try:
            data = lzma.LZMADecompressor().decompress(packed[found.start():])
        except lzma.LZMAError:
            continue
        if data.startswith(b"\x7fELF"):
            return data
    return None


# ---- all of it --------------------------------------------------------------------------------------------------


def sum_of(packages):
    digest = hashlib.sha256(" ".join(packages + MODULES + PROGRAMS).encode())
    for script in [os.path.basename(__file__), *SCRIPTS.values()]:
        with open(os.path.join(HERE, script), "rb") as file:
            digest.update(file.read())
    return digest.hexdigest()[:16]


def write_whole(path, data):
    with open(path + ".new", "wb") as file:
        file.write(data)
    os.rename(path + ".new", path)


def remove_old(cache, keep):
    """Images that were made more than a day ago: nobody boots from them any more."""
    for directory in glob.glob(os.path.join(cache, "image-*")):
        if directory != keep and time.time() - os.path.getmtime(directory) > 86400:
            shutil.rmtree(directory, ignore_errors=True)


def build(cache=None, say=lambda sentence: None):
    """(kernel, initramfs); raises Skip."""
    cache = cache or cache_directory()
    kernel_package = newest_kernel()
    packages = [kernel_package, *PACKAGES]
    directory = os.path.join(cache, "image-" + sum_of(packages))
    kernel, initramfs = os.path.join(directory, "kernel"), os.path.join(directory, "initramfs")
    try:
        os.makedirs(directory, exist_ok=True)
    except OSError as error:
        raise Skip(f"no cache: {error}") from None
    with open(os.path.join(cache, "lock"), "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.path.exists(initramfs):
            return kernel, initramfs
        say("making the guest's image of Debian packages, some 75 MB")
        started = time.monotonic()
        roots = [unpack(cache, package) for package in PACKAGES]
        kernel_root = unpack(cache, kernel_package)
        with open(glob.glob(os.path.join(kernel_root, "boot", "vmlinuz-*"))[0], "rb") as file:
            packed = file.read()
        write_whole(kernel, bare_kernel(packed) or packed)
        write_whole(initramfs, make_archive(roots, kernel_root))
        remove_old(cache, directory)
        say(f"made in {time.monotonic() - started:.0f} s: {initramfs}")
    return kernel, initramfs
