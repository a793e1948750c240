# SPDX-License-Identifier: Apache-2.0
"""Programs of other projects, from Debian's packages, which the suite compares with. Each runs between two processes on
a CPU each: what serves on the second one, what measures on the first."""
import contextlib
import os
import shutil
import socket
import subprocess
import time

from . import parsing
from .program import Skip

SECONDS_TO_START = 10


def need(program, package):
    if shutil.which(program) is None:
        raise Skip(f"{program} is not installed (Debian's package {package})")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def is_listening(port):
    """Looks without connecting, since a server may serve but one client."""
    for name in "tcp", "tcp6":
        with open(f"/proc/net/{name}", encoding="ascii") as table:
            for line in table.readlines()[1:]:
                _, local, _, state, *_ = line.split()
                if state == "0A" and int(local.rpartition(":")[2], 16) == port:
                    return True
    return False


@contextlib.contextmanager
def server(cpu, command, port, environment):
    """Runs it on that CPU until the block ends."""
    running = subprocess.Popen(["taskset", "-c", cpu, *command], env=environment, stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + SECONDS_TO_START
        while not is_listening(port):
            if running.poll() is not None or time.monotonic() > end:
                raise ValueError(f"{' '.join(command)} does not listen on TCP port {port}")
            time.sleep(0.02)
        yield
    finally:
        running.kill()
        running.wait()


def client(cpu, command, environment=None):
    """What it prints."""
    done = subprocess.run(["taskset", "-c", cpu, *command], env=environment, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
    if done.returncode != 0:
        raise ValueError(f"{' '.join(command)}: {(done.stderr or done.stdout).strip()[-300:]}")
    return done.stdout


def ucx(cpus, arguments):
    """`arguments`: variables (UCX_TLS=posix), then those of ucx_perftest."""
    need("ucx_perftest", "ucx-utils")
    words = arguments.split()
    variables = dict(word.split("=", 1) for word in words if "=" in word)
    options = [word for word in words if "=" not in word]
    environment, port = {**os.environ, "UCX_WARN_UNUSED_ENV_VARS": "n", **variables}, free_port()
    command = ["ucx_perftest", "-p", str(port)]
    with server(cpus[1], command, port, environment):
        out = client(cpus[0], [*command, *options, "-f", "-v", "127.0.0.1"], environment)
    return parsing.ucx_values(out, any(word.endswith("_lat") for word in options))


def libfabric(cpus, arguments):
    need("fi_pingpong", "libfabric-bin")
    port, options = free_port(), arguments.split()
    with server(cpus[1], ["fi_pingpong", "-B", str(port), *options], port, None):
        return parsing.fabric_values(client(cpus[0], ["fi_pingpong", "-P", str(port), *options, "127.0.0.1"]))
