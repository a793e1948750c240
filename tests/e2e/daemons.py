# SPDX-License-Identifier: Apache-2.0
"""Two softubd with a wire between them: programs run on either in turn, and know nothing but a socket."""
import os
import signal
import subprocess
import tempfile
import time

from processes import check


class Daemon:
    """One softubd, with its log."""

    def __init__(self, softubd, directory, number, variables=None, command=()):
        self.softubd = softubd
        self.socket = os.path.join(directory, f"softubd{number}.sock")
        self.log_path = os.path.join(directory, f"softubd{number}.log")
        self.command = list(command)
        self.environment = {**os.environ, **(variables or {}), "SOFTUB_DAEMON_SOCKET": self.socket}
        self.environment.setdefault("SOFTUB_DEVICE_EIDS", "127.0.0.1")
        if "SOFTUB_DPDK_ADDRESSES" in self.environment:
            self.environment.pop("SOFTUB_DEVICE_EIDS")
        self.process = None
        self.start()

    def start(self):
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(self.command + [self.softubd], env=self.environment, stderr=log, stdout=log)
        end = time.monotonic() + 20
        while not os.path.exists(self.socket):
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"softubd does not start:\n{self.log()}")
            time.sleep(0.01)

    def log(self):
        with open(self.log_path, errors="replace") as log:
            return log.read()

    def wait_for_log(self, text, times=1):
        end = time.monotonic() + 20
        while self.log().count(text) < times:
            check(time.monotonic() < end, f"the log of softubd lacks {text!r}\n{self.log()}")
            time.sleep(0.02)

    def reload(self):
        self.process.send_signal(signal.SIGHUP)

    def variables(self):
        """For a program that is to use it."""
        return {"SOFTUB_PLACEMENT_MODE": "daemon", "SOFTUB_DAEMON_SOCKET": self.socket}

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        """Its exit code; it must end by itself."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(20)


class Daemons:
    """Stands for a wire in tests that start programs (wires.py)."""

    def __init__(self, wire, softubd):
        self.wire = wire
        self.name = f"daemon over {wire.name}"
        self.directory = tempfile.TemporaryDirectory(prefix="softub-daemons-")
        self.programs = []
        try:
            self.daemons = [Daemon(softubd, self.directory.name, end, wire.environment(end), wire.command(end))
                            for end in range(2)]
        except RuntimeError:
            wire.close()
            raise

    def environment(self, end):
        return self.daemons[end].variables()

    def command(self, end):
        return self.wire.command(end)

    def network_namespace(self, end):
        return self.wire.network_namespace(end)

    def host(self):
        return self.wire.host()

    def free_end(self):
        """The one with fewer programs."""
        self.programs = [(end, program) for end, program in self.programs if program.poll() is None]
        ends = [end for end, _ in self.programs]
        return min(range(2), key=ends.count)

    def start(self, args, **options):
        end = self.free_end()
        program = subprocess.Popen(self.command(end) + args, env={**os.environ, **self.environment(end)}, **options)
        self.programs.append((end, program))
        return program

    def log(self):
        return "\n".join(f"--- softubd {end}:\n{d.log()}" for end, d in enumerate(self.daemons))

    def close(self):
        """The daemons end well, whatever the programs did to them."""
        codes = [daemon.stop() for daemon in self.daemons]
        log = self.log()
        self.wire.close()
        self.directory.cleanup()
        if codes != [0, 0]:
            raise RuntimeError(f"softubd ended with {codes}\n{log}")
