#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs tests once more, as root becomes an ordinary user: with a home of his own, and a build that he can only read.

usage: test_as_user.py USER BUILD LOG [arguments of `meson test`]
LOG gets what `meson test` logs as JSON, with "as USER: " before the names; where nothing can be run, a skipped test
with the cause. The status is that of `meson test`. The user may belong to nobody here: `nobody` does.
"""
import json
import os
import pwd
import shutil
import stat
import subprocess
import sys
import tempfile

# As a login shell of an ordinary user has it, without what is for root.
USER_PATH = "/usr/local/bin:/usr/bin:/bin"


class NotRun(Exception):
    """Why not."""


def may(user, mode, path):
    """Asks the kernel, as that user."""
    return subprocess.run(["test", f"-{mode}", path], user=user.pw_uid, group=user.pw_gid, extra_groups=[],
                          cwd="/").returncode == 0


def check_open(user, path):
    """That the user can get to a directory and read it; else NotRun with what stops him."""
    parts = os.path.realpath(path).strip("/").split("/")
    for length in range(len(parts) + 1):
        part = "/" + "/".join(parts[:length])
        mode = "r" if length == len(parts) else "x"
        if not may(user, "x", part) or not may(user, mode, part):
            bits = stat.S_IMODE(os.stat(part).st_mode)
            raise NotRun(f"{user.pw_name} cannot use {path}: {part} is closed to other users than its own "
                         f"(mode {bits:04o}); put the checkout where others can read it, or: chmod o+rx {part}")


def user_named(name):
    if os.geteuid() != 0:
        raise NotRun(f"only root can become {name}")
    try:
        user = pwd.getpwnam(name)
    except KeyError:
        raise NotRun(f"there is no user {name} here") from None
    if user.pw_uid == 0:
        raise NotRun(f"{name} is root")
    return user


def run(user, build, home, arguments):
    """The status of `meson test`."""
    runtime = os.path.join(home, "run")
    os.mkdir(runtime, mode=0o700)
    for directory in (home, runtime):
        os.chown(directory, user.pw_uid, user.pw_gid)
    root = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    for directory in (root, build, home):
        check_open(user, directory)
    meson = shutil.which("meson")
    if not meson:
        raise NotRun("there is no meson")
    keep = {name: os.environ[name] for name in ("LANG", "LC_ALL", "TERM") if name in os.environ}
    environment = {**keep, "PATH": USER_PATH, "HOME": home, "XDG_RUNTIME_DIR": runtime,
                   "USER": user.pw_name, "LOGNAME": user.pw_name}
    # `meson test` joins the name of its log to that of its directory: a whole path stays what it is.
    command = [meson, "test", "-C", build, "--no-rebuild", "--logbase", os.path.join(home, "testlog"), *arguments]
    return subprocess.run(command, env=environment, user=user.pw_uid, group=user.pw_gid, extra_groups=[],
                          umask=0o022).returncode


def log_of(home, name):
    """What was logged, with the user in front of each name."""
    try:
        with open(os.path.join(home, "testlog.json"), encoding="utf-8") as file:
            tests = [json.loads(line) for line in file if line.strip()]
    except FileNotFoundError:
        return []
    return [{**test, "name": f"as {name}: {test['name']}"} for test in tests]


def main(name, build, log, *arguments):
    home = tempfile.mkdtemp(prefix="softub-user-")
    try:
        status = run(user_named(name), os.path.abspath(build), home, arguments)
        tests = log_of(home, name)
    except NotRun as why:
        status, tests = 0, [{"name": f"as {name}", "result": "SKIP", "stdout": f"not run: {why}"}]
        print(f"test: not run as {name}: {why}")
    finally:
        shutil.rmtree(home, ignore_errors=True)
    with open(log, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(test) + "\n" for test in tests)
    return status


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
