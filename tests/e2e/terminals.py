# SPDX-License-Identifier: Apache-2.0
"""A program in a terminal of its own, and what its screen shows."""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

from processes import Failure

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    def __init__(self, args, environment, columns=80, rows=24):
        self.master, self.slave = pty.openpty()
        self.set_size(columns, rows)
        self.before = termios.tcgetattr(self.slave)
        self.output = ""
        # Tests that nohup runs ignore SIGHUP, and so would the program.
        self.popen = subprocess.Popen([str(a) for a in args], env=environment, stdin=self.slave, stdout=self.slave,
                                      stderr=self.slave, start_new_session=True,
                                      preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL))

    def set_size(self, columns, rows):
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def resize(self, columns, rows):
        self.set_size(columns, rows)
        self.popen.send_signal(signal.SIGWINCH)  # its controlling terminal is another one, or none

    def press(self, keys):
        os.write(self.master, keys.encode())

    def read(self, seconds):
        while select.select([self.master], [], [], seconds)[0]:
            self.output += os.read(self.master, 65536).decode(errors="replace")
            seconds = 0

    def screen(self):
        """The lines of the last page that was drawn whole; empty: none was."""
        pages = self.output.split("\x1b[H")[1:]
        whole = [page for page in pages if "\x1b[J" in page]
        lines = whole[-1].split("\x1b[J")[0].split("\n") if whole else []
        return [ESCAPES.sub("", line).rstrip("\r") for line in lines]

    def wait_for(self, is_good, what, patience=20):
        """Until the screen is good: a function of its lines."""
        end = time.monotonic() + patience
        while time.monotonic() < end:
            self.read(0.1)
            if is_good(self.screen()):
                return self.screen()
            if self.popen.poll() is not None:
                break
        raise Failure(f"the screen never had {what}:\n" + "\n".join(self.screen()) + self.output[-500:])

    def end(self, patience=10):
        """Its exit code; it must end by itself."""
        end = time.monotonic() + patience
        while self.popen.poll() is None:
            self.read(0.05)
            if time.monotonic() > end:
                raise Failure(f"{self.popen.args} does not end")
        self.read(0)
        return self.popen.returncode

    def is_as_before(self):
        """Are its settings, its screen and its cursor those that the program found?"""
        return (termios.tcgetattr(self.slave) == self.before and self.output.rstrip().endswith("\x1b[?1049l")
                and "\x1b[?25h" in self.output[-40:])

    def close(self):
        if self.popen.poll() is None:
            self.popen.kill()
        self.popen.wait()
        os.close(self.master)
        os.close(self.slave)
