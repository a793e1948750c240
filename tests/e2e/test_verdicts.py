#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What tests say that cannot run here: that they were not run, and the true cause. A kernel without network or user
namespaces is played by an `unshare` of our own, an ordinary user by an `id`."""
import os
import subprocess
import sys
import tempfile
import types
import unittest
from unittest import mock

import matrix
import network_namespaces
import wires

HERE = os.path.dirname(os.path.abspath(__file__))
REFUSAL = "unshare: unshare failed: Operation not permitted"


def write_program(directory, name, text):
    path = os.path.join(directory, name)
    with open(path, "w", encoding="ascii") as file:
        file.write(f"#!/bin/sh\n{text}\n")
    os.chmod(path, 0o755)


class Refusing:
    """A directory for the PATH, whose `unshare` refuses everything."""

    def __enter__(self):
        self.directory = tempfile.TemporaryDirectory(prefix="softub-verdicts-")
        write_program(self.directory.name, "unshare", f"echo '{REFUSAL}' >&2; exit 1")
        write_program(self.directory.name, "id", "echo 1001")
        return {**os.environ, "PATH": self.directory.name + ":" + os.environ["PATH"]}

    def __exit__(self, *_):
        self.directory.cleanup()


def cell(test, placement, wire, code=0, output=""):
    """Of the matrix, where the program that it runs ends so."""
    combination = matrix.Combination(types.SimpleNamespace(build="build", verbose=False), placement, wire)
    with mock.patch.object(matrix, "run", return_value=(code, output)), mock.patch("builtins.print"):
        return combination.run(test)


class Cells(unittest.TestCase):
    def test_not_run_is_no_failure(self):
        for placement in matrix.PLACEMENTS:
            got = cell("tools", placement, "af_xdp", 77, "some warning\nnot run over af_xdp: needs root of the host\n")
            self.assertEqual((got.text, got.failed), ("not run: needs root of the host", False))

    def test_a_failure_is_one(self):
        got = cell("tools", "daemon", "af_packet", 1, "pass  one\nFAIL  two\n")
        self.assertEqual((got.text, got.failed), ("FAILED", True))

    def test_a_pass_is_one(self):
        got = cell("tools", "daemon", "shm", 0, "wire: shm; 15 passed, 0 failed\n")
        self.assertEqual((got.text, got.failed), ("15 pass", False))

    def test_a_wire_that_cannot_be_had(self):
        for test in matrix.TESTS:
            if test == "tools":
                continue  # a program of its own makes the wire
            with mock.patch.object(wires, "make", side_effect=wires.Skip("no such thing here")):
                got = cell(test, "daemon", "af_packet")
            self.assertEqual((got.text, got.failed), ("not run: no such thing here", False))


class Causes(unittest.TestCase):
    def test_xdp_needs_root_of_the_host(self):
        with mock.patch.object(wires, "is_root_of_host", return_value=False):
            with self.assertRaisesRegex(wires.Skip, "needs root of the host.*CAP_BPF"):
                wires.make("af_xdp", __file__)

    def test_no_user_namespaces(self):
        with Refusing() as environment, mock.patch.dict(os.environ, environment):
            with self.assertRaisesRegex(wires.Skip, f"needs root, or user namespaces.*{REFUSAL}"):
                wires.Namespaces()

    def test_no_unshare(self):
        with mock.patch.dict(os.environ, PATH="/nonexistent"):
            with self.assertRaisesRegex(network_namespaces.Unavailable, "unshare cannot be run"):
                network_namespaces.NetworkNamespace()

    def test_scripts(self):
        with Refusing() as environment:
            for script, *arguments in ("namespaces.sh", "--file-copy", "/bin/true"), ("two_hosts.sh", "--build", "/"):
                done = subprocess.run(["bash", os.path.join(HERE, script), *arguments], env=environment,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                self.assertEqual(done.returncode, 77, done.stdout)
                self.assertRegex(done.stdout, f"not run: needs root, or user namespaces .*{REFUSAL}")


class Namespaces(unittest.TestCase):
    """Where they can be had."""

    def test_two_that_see_each_other(self):
        try:
            namespaces = wires.Namespaces()
        except wires.Skip as why:
            self.skipTest(str(why))
        try:
            inside = [os.readlink("/proc/self/ns/net")]
            for end in range(2):
                command = [*namespaces.command(end), "readlink", "/proc/self/ns/net"]
                inside.append(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.strip())
                told = subprocess.run([*namespaces.command(end), "readlink", namespaces.path(end)],
                                      stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
                self.assertEqual(told, inside[-1])
            self.assertEqual(len(set(inside)), 3)
            listen = ("import socket; s = socket.create_server(('10.10.0.1', 0)); print(s.getsockname()[1], flush=True);"
                      "s.accept()[0].send(b'hello')")
            ask = ("import socket, sys;"
                   "print(socket.create_connection(('10.10.0.1', int(sys.argv[1]))).recv(9).decode())")
            with subprocess.Popen([*namespaces.command(0), sys.executable, "-c", listen], stdout=subprocess.PIPE,
                                  text=True) as server:
                port = server.stdout.readline().strip()
                answer = subprocess.run([*namespaces.command(1), sys.executable, "-c", ask, port],
                                        stdout=subprocess.PIPE, text=True, check=True).stdout
            self.assertEqual(answer.strip(), "hello")
        finally:
            namespaces.close()

    def test_nothing_is_left(self):
        try:
            namespaces = wires.Namespaces()
        except wires.Skip as why:
            self.skipTest(str(why))
        holders = [end.holder for end in namespaces.ends]
        namespaces.close()
        self.assertEqual([holder.returncode for holder in holders], [0, 0])


if __name__ == "__main__":
    unittest.main()
