# SPDX-License-Identifier: Apache-2.0
"""Network namespaces without a name, each held open by a child process: it ends with its holder, hence with us.

Who may, makes them as they are; everybody else makes them in a user namespace, where an ordinary user is root: programs
there may do with these networks what they like, and nothing else that they could not do before.
"""
import os
import re
import subprocess

# Debian keeps ip, tc and their like where an ordinary user's PATH does not look.
SYSTEM_PATH = ":".join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
AS_ORDINARY_USER = ["--user", "--map-root-user"]
CAP_SYS_ADMIN = 21


class Unavailable(Exception):
    """Why there can be none here."""


def is_root_of_host():
    """Root outside of every user namespace, with its capabilities: drivers and BPF programs ask for that."""
    with open("/proc/self/uid_map", encoding="ascii") as file:
        everybody = file.read().split() == ["0", "0", "4294967295"]
    with open("/proc/self/status", encoding="ascii", errors="replace") as file:
        effective = int(re.search(r"(?m)^CapEff:\s*(\w+)$", file.read())[1], 16)
    return everybody and bool(effective >> CAP_SYS_ADMIN & 1)


def system_command(args):
    """Runs it, with its output kept."""
    return subprocess.run(args, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                          env={**os.environ, "PATH": SYSTEM_PATH})


class NetworkNamespace:
    """One. beside: another one, whose user namespace this one shares. Raises Unavailable."""

    def __init__(self, beside=None):
        self.own_user = beside.own_user if beside else False
        self.holder = None
        if beside:
            self.hold(beside.enter(), [])
            return
        try:
            self.hold([], [])
        except Unavailable as why:
            self.own_user = True
            try:
                self.hold([], AS_ORDINARY_USER)
            except Unavailable as why_not_user:
                raise Unavailable("needs root, or user namespaces for ordinary users, which cannot be made here: "
                                  f"{why_not_user}" + ("" if os.geteuid() else f"; as root: {why}")) from None

    def hold(self, command, options):
        try:  # the holder ends when its pipe is closed, however we end
            self.holder = subprocess.Popen([*command, "unshare", *options, "--net", "sh", "-c", "echo here; exec cat"],
                                           stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                           start_new_session=True)
        except OSError as error:
            raise Unavailable(f"{(command or ['unshare'])[0]} cannot be run: {error.strerror}") from None
        if self.holder.stdout.readline() != b"here\n":
            reason = self.holder.communicate()[1].decode(errors="replace").strip()
            raise Unavailable(reason or "unshare said nothing")

    def enter(self, *options):
        user = ["--user", "--preserve-credentials"] if self.own_user else []
        return ["nsenter", "--target", str(self.holder.pid), *user, *options] if user or options else []

    def command(self):
        """What a command line in the namespace begins with."""
        return self.enter("--net")

    def path(self):
        """A file that setns() takes, for processes that run in the same user namespace."""
        return f"/proc/{self.holder.pid}/ns/net"

    def ip(self, *args):
        """Its output. Raises Unavailable."""
        done = system_command([*self.command(), "ip", *args])
        output = done.stdout.decode(errors="replace").strip()
        if done.returncode != 0:
            raise Unavailable(f"ip {' '.join(args)}: {output}")
        return output

    def close(self):
        self.holder.stdin.close()
        self.holder.wait()
        self.holder.stdout.close()
        self.holder.stderr.close()
