#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What users and administrators do wrong with softubd, and what it and liburma say: each mistake ends with the right
exit code and a sentence that tells what, where and what to do.

  tests/e2e/daemon_bad_input.py --build build
"""
import argparse
import contextlib
import os
import pwd
import random
import re
import resource
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

import kill_four

NOBODY = {"user": "nobody", "group": "nogroup", "extra_groups": []}
MAGIC, HEAD = 0x53_4f_46_54_55_42_61_70, struct.Struct("=QII")  # lib/ipc/app_call.h


class Failure(Exception):
    pass


def check(condition, text):
    if not condition:
        raise Failure(text)


def says(text, *patterns):
    for pattern in patterns:
        check(re.search(pattern, text), f"does not say '{pattern}':\n{text}")


class Test:
    def __init__(self, args, directory):
        self.args, self.directory = args, directory
        self.number = 0
        self.dice = random.Random(1)
        self.plain = {"SOFTUB_DEVICE_EIDS": "127.0.0.1", "SOFTUB_PORT_KINDS": "shm", "SOFTUB_PORT_SHM_DIR": directory,
                      "SOFTUB_LOG_STATS_DIR": directory, "HOME": directory, "XDG_CONFIG_HOME": directory}

    def path(self, name):
        self.number += 1
        return os.path.join(self.directory, f"{self.number}.{name}")

    # ---- daemons ----
    @contextlib.contextmanager
    def softubd(self, variables=None, files=(), **options):
        """A running daemon; its log is what log() reads."""
        path, log = self.path("sock"), self.path("log")
        environment = {**os.environ, **self.plain, "SOFTUB_DAEMON_SOCKET": path, **(variables or {})}
        with open(log, "w") as file:
            daemon = subprocess.Popen([self.args.softubd, *files], env=environment, stdout=file, stderr=file, **options)
        daemon.path = environment["SOFTUB_DAEMON_SOCKET"]
        daemon.log = lambda: read(log)
        daemon.ends_with = None  # nobody else ends it
        try:
            wait_for(lambda: "serving" in daemon.log() or daemon.poll() is not None, "softubd")
            check(daemon.poll() is None, f"softubd does not start:\n{daemon.log()}")
            yield daemon
            if daemon.ends_with is None:
                check(daemon.poll() is None, f"softubd ended with {daemon.poll()}:\n{daemon.log()}")
                daemon.send_signal(signal.SIGTERM)
            check(daemon.wait(10) == (daemon.ends_with or 0), f"softubd ends with {daemon.returncode}:\n{daemon.log()}")
        finally:
            daemon.kill()
            daemon.wait()

    def refuses_to_start(self, variables, *patterns, files=(), **options):
        environment = {**os.environ, **self.plain, "SOFTUB_DAEMON_SOCKET": self.path("sock"), **variables}
        done = subprocess.run([self.args.softubd, *files], env=environment, stdout=subprocess.PIPE, text=True,
                              stderr=subprocess.STDOUT, timeout=20, **options)
        check(done.returncode == 1, f"softubd ends with {done.returncode}:\n{done.stdout}")
        says(done.stdout, *patterns)

    # ---- applications ----
    def app(self, path, *args, mode="daemon", code=0, variables=None, **options):
        """What it says."""
        environment = {**os.environ, **self.plain, "SOFTUB_PLACEMENT_MODE": mode, "SOFTUB_DAEMON_SOCKET": path,
                       **(variables or {})}
        done = subprocess.run([self.args.app, *(args or ["none"])], env=environment, stdout=subprocess.PIPE, text=True,
                              stderr=subprocess.STDOUT, timeout=60, **options)
        check(done.returncode == code, f"the application ends with {done.returncode}, not {code}:\n{done.stdout}")
        return done.stdout


def read(path):
    with open(path, errors="replace") as file:
        return file.read()


def wait_for(condition, what, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        check(time.monotonic() < end, f"waited in vain for {what}")
        time.sleep(0.01)


def logs(daemon, *patterns):
    """Says them within a while: the answer to an application may be out before the line about it."""
    try:
        wait_for(lambda: all(re.search(pattern, daemon.log()) for pattern in patterns), "a line of the log", 10)
    except Failure:
        says(daemon.log(), *patterns)


# ---- places ----------------------------------------------------------------------------------------------------

def no_daemon(t):
    path = t.path("sock")
    out = t.app(path, code=1)
    says(out, re.escape(path), "No such file", "start softubd", "daemon.socket", "placement.mode")
    out = t.app(path, mode="auto")
    says(out, "placement.mode = auto", "embedded", re.escape(path), "init 0")


def stale_socket(t):
    path = t.path("sock")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as dead:
        dead.bind(path)
    says(t.app(path, code=1), re.escape(path), "Connection refused", "start softubd")
    with t.softubd({"SOFTUB_DAEMON_SOCKET": path}) as daemon:
        says(t.app(path), "init 0")


def wrong_things_at_socket(t):
    path = t.path("sock")
    with open(path, "w") as file:
        file.write("precious")
    t.refuses_to_start({"SOFTUB_DAEMON_SOCKET": path}, "exists and is no socket", "remove it, or set daemon.socket")
    check(open(path).read() == "precious", "the file was changed")
    says(t.app(path, code=1), re.escape(path))
    with t.softubd() as daemon:
        t.refuses_to_start({"SOFTUB_DAEMON_SOCKET": daemon.path}, "another softubd listens on " + re.escape(daemon.path),
                           "stop it, or set daemon.socket")
        says(t.app(daemon.path), "init 0")
    check(not os.path.exists(daemon.path), "the socket is left after SIGTERM")


def wrong_paths(t):
    file = t.path("file")
    open(file, "w").close()
    t.refuses_to_start({"SOFTUB_DAEMON_SOCKET": file + "/softubd.sock"}, "cannot (make|open) " + re.escape(file),
                       "set daemon.socket")
    t.refuses_to_start({"SOFTUB_DAEMON_SOCKET": "/proc/softub/softubd.sock"}, "cannot make /proc/softub",
                       "set daemon.socket")
    long = os.path.join(t.directory, "x" * 120)
    t.refuses_to_start({"SOFTUB_DAEMON_SOCKET": long}, "too long", "108|107")
    says(t.app(long, code=1), "too long")
    t.refuses_to_start({"SOFTUB_DAEMON_SOCKET": "softubd.sock"}, "daemon.socket|DAEMON_SOCKET", "absolute")


def directory_is_made(t):
    path = os.path.join(t.directory, "new", "deep", "softubd.sock")
    with t.softubd({"SOFTUB_DAEMON_SOCKET": path}):
        says(t.app(path), "init 0")
        check(os.stat(os.path.dirname(path)).st_mode & 0o777 == 0o700, "others may look into the directory")


def silent_listener(t):
    path = t.path("sock")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(path)
        listener.listen(4)
        says(t.app(path, code=1), re.escape(path), "did not answer for 10000 ms")


# ---- configuration ---------------------------------------------------------------------------------------------

def wrong_files(t):
    t.refuses_to_start({}, "/nonexistent/softub.toml", "does not exist", files=["/nonexistent/softub.toml"])
    bad = t.path("toml")
    for text, *patterns in (("[daemon]\nidle = \"never\"\n", "daemon.idle", "poll"), ("[daemon\n", "syntax error", ":1:"),
                            ("[daemon]\nmax_app = 3\n", "max_app", "did you mean"),
                            ("[daemon]\nmax_apps = 0\n", "max_apps", "1..16384")):
        with open(bad, "w") as file:
            file.write(text)
        t.refuses_to_start({}, re.escape(bad), *patterns, files=[bad])
    t.refuses_to_start({"SOFTUB_DAEMON_CORES": "many"}, "DAEMON_CORES", "many")


def unknown_core(t):
    with t.softubd({"SOFTUB_DAEMON_CORES": "9999"}) as daemon:
        logs(daemon, "daemon.cores: the worker stays where it was", "nproc")
        says(t.app(daemon.path), "init 0")


def dpdk(t):
    variables = {"SOFTUB_PORT_KINDS": "dpdk", "SOFTUB_DPDK_ADDRESSES": "10.9.0.1/24", "SOFTUB_DEVICE_EIDS": ""}
    t.refuses_to_start({**variables, "SOFTUB_DPDK_DEVICE": "net_ring0", "SOFTUB_DPDK_PLUGIN": "/nonexistent/plugin.so"},
                       "its plugin cannot be loaded", "/nonexistent/plugin.so", "dpdk.plugin")
    if os.path.exists(t.args.plugin):
        t.refuses_to_start({**variables, "SOFTUB_DPDK_DEVICE": "net_nonsense0", "SOFTUB_DPDK_PLUGIN": t.args.plugin},
                           '"net_nonsense0" cannot be opened', "check dpdk.device")


# ---- applications ----------------------------------------------------------------------------------------------

def hello(path, version):
    """What the daemon answers to a hello of that version."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as app:
        app.settimeout(10)
        app.connect(path)
        app.send(HEAD.pack(MAGIC, version, 136) + struct.pack("=II", 1, 1).ljust(120, b"\0"))
        answer = app.recv(65536)
        try:
            check(app.recv(10) == b"", "the daemon does not hang up")
        except ConnectionResetError:
            pass
        return answer.decode(errors="replace")


def other_version(t):
    with t.softubd() as daemon:
        says(hello(daemon.path, 77), "its liburma speaks version 77", r"this softubd version \d+:", "one release")
        logs(daemon, r"process \d+ \(python3?[^)]*\), user 0|process \d+ \(.*\), user \d+", "version 77")
    path = t.path("sock")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(path)
        listener.listen(4)
        pid = os.fork()
        if pid == 0:
            peer, _ = listener.accept()
            peer.recv(65536)
            peer.send(HEAD.pack(MAGIC, 77, 1000).ljust(1000, b"\0"))
            time.sleep(20)
            os._exit(0)
        try:
            says(t.app(path, code=1), "it speaks version 77", r"this liburma version \d+", "one release")
        finally:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def permission(t):
    if os.geteuid() != 0:
        return ": not run, needs root"
    os.chmod(t.directory, 0o755)
    own = os.path.join(t.directory, "of-nobody")
    os.mkdir(own)
    os.chown(own, pwd.getpwnam("nobody").pw_uid, -1)
    elsewhere = {"SOFTUB_PORT_SHM_DIR": own, "SOFTUB_LOG_STATS_DIR": own}
    with t.softubd({"SOFTUB_DAEMON_ACCESS": "user"}) as daemon:
        says(t.app(daemon.path, code=1, variables=elsewhere, **NOBODY), re.escape(daemon.path), "Permission denied",
             "whoever runs softubd decides")
        os.chmod(daemon.path, 0o666)  # an administrator who thinks that this is enough
        says(t.app(daemon.path, code=1, variables=elsewhere, **NOBODY), "daemon.access = user")
        logs(daemon, r"process \d+ \(quota_app\), user " + str(pwd.getpwnam("nobody").pw_uid) + ": refused")
    with t.softubd({"SOFTUB_DAEMON_ACCESS": "group"}) as daemon:
        check(os.stat(daemon.path).st_mode & 0o777 == 0o660, "the mode of the socket")
        says(t.app(daemon.path, code=1, variables=elsewhere, **NOBODY), "Permission denied")
        says(t.app(daemon.path, variables=elsewhere, user="nobody", group="root", extra_groups=[]), "init 0")
    with t.softubd({"SOFTUB_DAEMON_ACCESS": "all"}) as daemon:
        says(t.app(daemon.path, variables=elsewhere, **NOBODY), "init 0")
    os.chown(t.directory, pwd.getpwnam("nobody").pw_uid, -1)
    try:
        with t.softubd({**elsewhere, "SOFTUB_DAEMON_ACCESS": "user"}, **NOBODY) as daemon:  # root may everywhere
            says(t.app(daemon.path, variables=elsewhere), "init 0")
    finally:
        os.chown(t.directory, 0, -1)


def quotas(t):
    limits = {"jettys": 3, "jfrs": 4, "jfcs": 5, "segments": 6, "targets": 7}
    variables = {"SOFTUB_DAEMON_APP_JETTIES": "3", "SOFTUB_DAEMON_APP_JFRS": "4", "SOFTUB_DAEMON_APP_JFCS": "5",
                 "SOFTUB_DAEMON_APP_SEGMENTS": "6", "SOFTUB_DAEMON_APP_TARGETS": "7", "SOFTUB_DAEMON_APP_MEMORY": "16MiB"}
    kinds = {"jfs": ("app_jetties", 3), "jetty": ("app_jetties", 3), "jfr": ("app_jfrs", 3), "jfc": ("app_jfcs", 4),
             "segment": ("app_segments", limits["segments"]), "target": ("app_targets", limits["targets"])}
    with t.softubd(variables) as daemon:
        for kind, (key, made) in kinds.items():
            says(t.app(daemon.path, kind, "100", code=3), f"made {made} {kind}: ENOMEM",
                 f"the daemon's limit daemon.{key} = .* per application is reached")
        says(t.app(daemon.path, "memory", "100", code=3), r"made \d+ memory: ENOMEM",
             "the daemon's limit daemon.app_memory = 16777216")
        says(t.app(daemon.path, "jetty", "3"), "made 3 jetty")


def max_apps(t):
    with t.softubd({"SOFTUB_DAEMON_MAX_APPS": "2"}) as daemon:
        environment = {**os.environ, **t.plain, "SOFTUB_PLACEMENT_MODE": "daemon", "SOFTUB_DAEMON_SOCKET": daemon.path}
        holders = [subprocess.Popen([t.args.hello], env=environment, stdout=subprocess.PIPE) for _ in range(2)]
        try:
            for holder in holders:
                holder.stdout.readline()
            says(t.app(daemon.path, code=1), "daemon.max_apps = 2", "already")
            logs(daemon, r"process \d+ \(quota_app\), user \d+: .*daemon.max_apps = 2")
            says(t.app(daemon.path, mode="auto"), "embedded", "daemon.max_apps = 2", "init 0")
            holders[0].kill()
            holders[0].wait()
            wait_for(lambda: ": gone" in daemon.log(), "the end of an application")
            says(t.app(daemon.path), "init 0")
        finally:
            for holder in holders:
                holder.kill()
                holder.communicate()


# ---- signals ---------------------------------------------------------------------------------------------------

def reload(t):
    path = t.path("toml")

    def write(text):
        with open(path, "w") as file:
            file.write(text)

    write("[daemon]\napp_jfcs = 3\n")
    with t.softubd(files=[path]) as daemon:
        says(t.app(daemon.path, "jfc", "20", code=3), "daemon.app_jfcs = 3")
        write("[daemon]\napp_jfcs = 8\nmax_apps = 9\n[port]\nshm_mtu = 2048\n")
        daemon.send_signal(signal.SIGHUP)
        wait_for(lambda: "needs a restart" in daemon.log(), "the reload")
        logs(daemon, "taken over", "needs a restart to change: .*daemon.max_apps", "restart to change: .*port.shm_mtu")
        says(t.app(daemon.path, "jfc", "20", code=3), "daemon.app_jfcs = 8")
        write("[daemon]\napp_jfcs = 12\nidle = 7\n")
        daemon.send_signal(signal.SIGHUP)
        wait_for(lambda: "not taken over" in daemon.log(), "the refusal")
        logs(daemon, "configuration not taken over: " + re.escape(path), "daemon.idle")
        says(t.app(daemon.path, "jfc", "20", code=3), "daemon.app_jfcs = 8")
        os.unlink(path)
        daemon.send_signal(signal.SIGHUP)
        wait_for(lambda: daemon.log().count("not taken over") == 2, "the refusal")


def few_descriptors(t):
    """Out of descriptors: newcomers are refused or wait, nobody spins, and it goes on when there are some again."""
    with t.softubd(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))) as daemon:
        many = []
        try:
            for _ in range(60):
                many.append(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
                many[-1].settimeout(1)
                many[-1].connect(daemon.path)
            time.sleep(0.5)
            before = cpu_seconds(daemon.pid)
            time.sleep(1)
            used = cpu_seconds(daemon.pid) - before
            check(used < 0.5, f"softubd burns {used:.2f} s in a second while it is out of descriptors")
        finally:
            for one in many:
                one.close()
        says(t.app(daemon.path), "init 0")


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Pair:
    """Two survivors at the socket of a daemon that comes and goes (the world of kill_four.Survivor)."""

    def __init__(self, t, path):
        self.directory, self.survivor, self.dice, self.path, self.plain = t.directory, t.args.survivor, t.dice, path, t.plain
        self.wire, self.daemons = self, [self, self]
        self.apps = [kill_four.Survivor(self, n, 1 - n, n) for n in range(2)]

    def command(self, end):
        return []

    def variables(self):
        return {**self.plain, "SOFTUB_DAEMON_SOCKET": self.path, "SOFTUB_PLACEMENT_MODE": "daemon"}

    def wait_for_traffic(self):
        rounds = [a.page.rounds for a in self.apps]
        dead = lambda: any(a.process.poll() is not None for a in self.apps)
        wait_for(lambda: dead() or all(a.page.rounds > n + 20 for a, n in zip(self.apps, rounds)), "traffic", 60)
        for a in self.apps:
            check(a.process.poll() is None, f"{a.name}: {a.page.violation.decode()}")


def end_under_load(t, how, code, reason):
    """The daemon goes: all that was posted ends, and the applications attach to the next one. survivor.cc checks."""
    pair = Pair(t, t.path("sock"))
    where = {"SOFTUB_DAEMON_SOCKET": pair.path}
    try:
        with t.softubd(where) as daemon:
            for a in pair.apps:
                a.start()
            pair.wait_for_traffic()
            daemon.ends_with = code
            daemon.send_signal(how)
            begin = time.monotonic()
            daemon.wait(10)
            check(time.monotonic() - begin < 5, "it takes its time")
        with t.softubd(where):
            pair.wait_for_traffic()
            for a in pair.apps:
                check(a.page.losses == 1, f"{a.name} lost its daemon {a.page.losses} times")
                says(read(a.log_path), "the daemon at .* is gone: " + reason, "urma_uninit.* urma_init attach again")
                a.stop()
        return daemon.log()
    finally:
        for a in pair.apps:
            if a.process is not None and a.process.poll() is None:
                a.kill()


def terminated_under_load(t):
    says(end_under_load(t, signal.SIGTERM, 0, "softubd ends"), "stopping on signal 15", "stopped")


def killed_under_load(t):
    end_under_load(t, signal.SIGKILL, -signal.SIGKILL, "it hung up")


CASES = (no_daemon, stale_socket, wrong_things_at_socket, wrong_paths, directory_is_made, silent_listener, wrong_files,
         unknown_core, dpdk, other_version, permission, quotas, max_apps, reload, few_descriptors,
         terminated_under_load, killed_under_load)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build", help="build directory, for the programs that are not named")
    for program in ("softubd", "app", "hello", "survivor", "plugin"):
        parser.add_argument("--" + program)
    parser.add_argument("--only", action="append", choices=[case.__name__ for case in CASES])
    args = parser.parse_args()
    places = {"softubd": "dataplane/softubd/softubd", "app": "tests/e2e/quota_app", "survivor": "tests/e2e/survivor",
              "hello": "apps/hello_write/hello_write", "plugin": "dataplane/dpdk/libsoftub_dpdk.so.0"}
    for name, place in places.items():
        setattr(args, name, os.path.abspath(getattr(args, name) or os.path.join(args.build, place)))
    failed = 0
    with tempfile.TemporaryDirectory(prefix="softub-bad-") as directory:
        test = Test(args, directory)
        for case in CASES:
            if args.only and case.__name__ not in args.only:
                continue
            try:
                result = f"pass  {case.__name__}{case(test) or ''}"
            except (Failure, kill_four.Failure, OSError, subprocess.TimeoutExpired) as error:
                failed += 1
                result = f"FAIL  {case.__name__}\n      " + str(error).strip().replace("\n", "\n      ")
            print(result, flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
