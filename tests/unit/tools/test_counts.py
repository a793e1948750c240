#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What tools/test counts, of one run and of two, and how it goes on as an ordinary user; what test_times.py sums up."""
import contextlib
import io
import json
import os
import pwd
import stat
import sys
import tempfile
import unittest
from unittest import mock

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
sys.path.insert(0, os.path.join(ROOT, "tools"))
import test_as_user  # noqa: E402
import test_summary  # noqa: E402
import test_times  # noqa: E402

GTEST = """[ RUN      ] A.Good
[       OK ] A.Good (0 ms)
[ RUN      ] A.Absent
a.cc:3: Skipped
no such CPU
[  SKIPPED ] A.Absent (0 ms)
"""
ME = pwd.getpwuid(os.geteuid())


def test(name, result="OK", stdout="", returncode=0):
    return {"name": name, "result": result, "stdout": stdout, "returncode": returncode}


class Directory(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="softub-counts-")
        self.addCleanup(directory.cleanup)
        self.directory = directory.name
        os.chmod(self.directory, 0o755)

    def path(self, name):
        return os.path.join(self.directory, name)

    def log(self, name, *tests):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.writelines(json.dumps(one) + "\n" for one in tests)
        return self.path(name)


class Counts(Directory):
    def summary(self, *runs):
        """(status, lines)"""
        with contextlib.redirect_stdout(io.StringIO()) as output:
            status = test_summary.main(*runs)
        return status, output.getvalue().splitlines()

    def test_one_run(self):
        log = self.log("one", test("unit", stdout=GTEST), test("e2e"), test("absent", "SKIP", "x\nnot run: no kernel\n"))
        status, lines = self.summary(log, "0")
        self.assertEqual((status, lines[-1]), (0, "2 passed, 0 failed, 2 skipped"))
        self.assertIn("skipped: unit: A.Absent: no such CPU", lines)
        self.assertIn("skipped: absent: not run: no kernel", lines)

    def test_two_runs_have_one_last_line(self):
        first = self.log("one", test("unit", stdout=GTEST))
        second = self.log("two", test("as nobody: unit", stdout=GTEST), test("as nobody: e2e", "FAIL", "wrong", 1))
        status, lines = self.summary(first, "0", second, "1")
        self.assertEqual((status, lines[-1]), (1, "2 passed, 1 failed, 2 skipped"))
        self.assertIn("FAILED: as nobody: e2e: fail, status 1", lines)
        self.assertEqual(sum(line.endswith("skipped") for line in lines), 1)

    def test_a_second_run_that_breaks_is_a_failure(self):
        first = self.log("one", test("unit"))
        for second in self.path("none"), self.log("empty"):
            status, lines = self.summary(first, "0", second, "2")
            self.assertEqual((status, lines[-1]), (1, "1 passed, 1 failed, 0 skipped"))

    def test_a_failure_of_the_first_run_does_not_hide_that_of_the_second(self):
        first = self.log("one", test("unit", "FAIL", "wrong", 1))
        status, lines = self.summary(first, "1", self.path("none"), "2")
        self.assertEqual((status, lines[-1]), (1, "0 passed, 2 failed, 0 skipped"))

    def test_what_a_passed_test_ran_decides_nothing(self):
        log = self.log("one", test("outer", stdout=GTEST + "[  FAILED  ] A.Planted (3 ms)\n"))
        self.assertEqual(self.summary(log, "0")[1][-1], "1 passed, 0 failed, 1 skipped")


class AsUser(Directory):
    def not_run(self, *arguments):
        """The cause that is counted."""
        log = self.path("log")
        with contextlib.redirect_stdout(io.StringIO()):
            self.assertEqual(test_as_user.main(*arguments, self.directory, log), 0)
        with open(log, encoding="utf-8") as file:
            only, = [json.loads(line) for line in file]
        self.assertEqual(only["result"], "SKIP")
        return only["stdout"]

    def test_nobody_but_root_becomes_another(self):
        with mock.patch.object(os, "geteuid", return_value=1001):
            self.assertIn("only root can become nobody", self.not_run("nobody"))

    def test_a_user_that_is_not_here(self):
        with mock.patch.object(os, "geteuid", return_value=0):
            self.assertIn("there is no user softub-none here", self.not_run("softub-none"))
            self.assertIn("root is root", self.not_run("root"))

    def test_a_closed_checkout_is_named(self):
        os.makedirs(self.path("closed/checkout"))
        os.chmod(self.path("closed"), 0o700)
        closed = os.path.realpath(self.path("closed"))
        with mock.patch.object(test_as_user, "may", lambda user, mode, path: path != closed):
            with self.assertRaisesRegex(test_as_user.NotRun, f"{closed} is closed to other users.*mode 0700"):
                test_as_user.check_open(ME, self.path("closed/checkout"))

    def nobody(self):
        if os.geteuid() != 0:
            self.skipTest("needs root, to become another user")
        try:
            user = test_as_user.user_named("nobody")
            test_as_user.check_open(user, self.directory)
        except test_as_user.NotRun as why:
            self.skipTest(str(why))
        return user

    def test_the_kernel_is_asked(self):
        nobody = self.nobody()
        os.makedirs(self.path("parent/checkout"))
        test_as_user.check_open(nobody, self.path("parent/checkout"))
        for closed, mode in ("parent", 0o700), ("parent/checkout", 0o711):
            os.chmod(self.path(closed), mode)
            with self.assertRaisesRegex(test_as_user.NotRun, f"{closed} is closed.*mode 0{mode:o}"):
                test_as_user.check_open(nobody, self.path("parent/checkout"))
            os.chmod(self.path(closed), 0o755)

    def test_meson_runs_as_the_user_in_a_build_that_is_only_read(self):
        """A `meson` of our own says who it is, and logs where it is told."""
        nobody = self.nobody()
        os.mkdir(self.path("bin"))
        os.mkdir(self.path("build"))
        with open(self.path("bin/meson"), "w", encoding="ascii") as file:
            file.write('#!/bin/sh\nwhile [ "$1" != --logbase ]; do [ "$1" != -C ] || build=$2; shift; done\n'
                       '! touch "$build/mine" 2>/dev/null && touch "$HOME/mine" || exit 3\n'
                       'cd "$XDG_RUNTIME_DIR" && mode=$(stat -c %a .) || exit 4\n'
                       r'''printf '{"name": "who", "result": "OK", "stdout": "%s %s %s"}\n' '''
                       '"$(id -u)" "$(id -G)" "$mode" >"$2.json"\nexit 5\n')
        os.chmod(self.path("bin/meson"), 0o755)
        with mock.patch.dict(os.environ, PATH=self.path("bin") + ":" + os.environ["PATH"]), \
                mock.patch.object(test_as_user, "check_open"):
            self.assertEqual(test_as_user.main("nobody", self.path("build"), self.path("log"), "--suite", "user"), 5)
        with open(self.path("log"), encoding="utf-8") as file:
            only, = [json.loads(line) for line in file]
        self.assertEqual(only["name"], "as nobody: who")
        self.assertEqual(only["stdout"], f"{nobody.pw_uid} {nobody.pw_gid} 700")
        self.assertEqual(stat.S_IMODE(os.stat(self.path("build")).st_mode), 0o755)


class Times(Directory):
    def test_sums_of_suites_and_the_slowest_first(self):
        log = self.log("one", {"name": "softub:unit / wire", "duration": 0.5},
                       {"name": "softub:sim+check / sim-directed", "duration": 6.0},
                       {"name": "softub:unit / ta", "duration": 1.5})
        with contextlib.redirect_stdout(io.StringIO()) as output:
            test_times.main(log)
        self.assertEqual([line.split() for line in output.getvalue().splitlines() if line],
                         [["6.0", "s", "check,", "1", "tests"], ["6.0", "s", "sim,", "1", "tests"],
                          ["2.0", "s", "unit,", "2", "tests"],
                          ["6.0", "s", "sim-directed"], ["1.5", "s", "ta"], ["0.5", "s", "wire"]])


if __name__ == "__main__":
    unittest.main()
