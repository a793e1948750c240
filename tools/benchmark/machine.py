# SPDX-License-Identifier: Apache-2.0
"""What a report says of where it was measured."""
import json
import os
import platform
import re
import subprocess

PACKAGES = ("ucx-utils", "libfabric-bin", "redis-server", "memcached", "libdpdk-dev", "valgrind")
PORTS = ("shm: rings in shared memory, packets of 4 KiB", "memif: DPDK's memif, without hugepages, packets of 4 KiB",
         "udp: sockets at 127.0.0.1, packets of 4 KiB")


def output(*command, cwd=None):
    """What it prints; "" if it fails or is not there."""
    try:
        return subprocess.run(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=20,
                              check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def read(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError:
        return ""


def first(pattern, text):
    found = re.search(pattern, text, re.MULTILINE)
    return found[1].strip() if found else "unknown"


def package_versions():
    lines = output("dpkg-query", "-W", "-f", "${Package} ${db:Status-Status} ${Version}\n", *PACKAGES).splitlines()
    return {name: version for name, status, version in (line.split(None, 2) for line in lines if len(line.split()) == 3)
            if status == "installed"}


def build_facts(build):
    """Compiler and build type, as Meson has written them down."""
    try:
        with open(os.path.join(build, "meson-info/intro-targets.json"), encoding="utf-8") as file:
            sources = [source for target in json.load(file) for source in target.get("target_sources", ())]
        command = next(source["compiler"] for source in sources if source.get("language") == "cpp")
        with open(os.path.join(build, "meson-info/intro-buildoptions.json"), encoding="utf-8") as file:
            options = {option["name"]: option["value"] for option in json.load(file)}
    except (OSError, ValueError, KeyError, StopIteration):
        return {"compiler": "unknown", "build type": "unknown"}
    return {"compiler": output(*command, "--version").split("\n")[0], "build type": options["buildtype"]}


def facts(build, cpus, root):
    """Sentences by name."""
    cpuinfo = read("/proc/cpuinfo")
    commit = output("git", "describe", "--always", "--dirty", cwd=root) or "unknown"
    virtual = " (virtual machine)" if re.search(r"^flags.*\bhypervisor\b", cpuinfo, re.MULTILINE) else ""
    packages = package_versions()
    model = first(r"^model name\s*:(.*)$", cpuinfo)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
    return {
        "CPU": f"{model}, {os.cpu_count()} CPUs{virtual}",
        "memory": f"{memory} MiB",
        "kernel": f"{platform.system()} {platform.release()}",
        "system": first(r'^PRETTY_NAME="?([^"\n]*)', read("/etc/os-release")),
        "SoftUB": commit,
        **build_facts(build),
        "pinning": f"what measures on CPU {cpus[0]}, what answers on CPU {cpus[1]}",
        "ports": "; ".join(PORTS),
        "packages": ", ".join(f"{name} {packages[name]}" for name in PACKAGES if name in packages) or "none",
        "load before": " ".join(read("/proc/loadavg").split()[:3]),
    }
