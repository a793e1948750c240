# SPDX-License-Identifier: Apache-2.0
"""Programs that tests run over a wire, and what they say."""
import os
import re
import signal
import socket
import subprocess
import tempfile
import time

import wires

FAILED, USAGE = 1, 2  # exit codes of the tools


class Failure(Exception):
    pass


def check(condition, text):
    if not condition:
        raise Failure(text)


def free_port():
    with socket.socket() as s:
        s.bind(("", 0))
        return s.getsockname()[1]


class Process:
    """A program whose output is kept."""

    wire = wires.Wire()

    def __init__(self, args, wire=None):
        self.args = [str(a) for a in args]
        self.out = tempfile.TemporaryFile()
        self.popen = (wire or self.wire).start(self.args, stdout=self.out, stderr=subprocess.STDOUT,
                                               stdin=subprocess.DEVNULL)

    def text(self):
        self.out.flush()
        return os.pread(self.out.fileno(), 1 << 20, 0).decode(errors="replace")

    def wait(self, timeout):
        try:
            return self.popen.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            raise Failure(f"{self.name()} still ran after {timeout} s\n{self.text()}")

    def wait_for_text(self, pattern, timeout=20):
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            found = re.search(pattern, self.text())
            if found:
                return found
            if self.popen.poll() is not None:
                break
            time.sleep(0.02)
        self.kill()
        raise Failure(f"{self.name()} never said {pattern!r}\n{self.text()}")

    def kill(self, sig=signal.SIGKILL):
        if self.popen.poll() is None:
            self.popen.send_signal(sig)
        if sig == signal.SIGKILL:
            self.popen.wait()

    def name(self):
        return " ".join([os.path.basename(self.args[0])] + self.args[1:])

    def expect(self, code, timeout=60):
        got = self.wait(timeout)
        check(got == code, f"{self.name()} ended with {got}, expected {code}\n{self.text()}")
        return self.text()


def pair(server_args, client_args, timeout=60, ready=r"TCP port"):
    """Server, then client; both must end well. Returns both outputs."""
    server = Process(server_args)
    client = None
    try:
        server.wait_for_text(ready)
        client = Process(client_args)
        out = client.expect(0, timeout)
        return server.expect(0, 20), out
    except Failure as failure:
        raise Failure(f"{failure}\n--- server:\n{server.text()}")
    finally:
        server.kill()
        if client:
            client.kill()
