#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What docs/from-a-fake.md says for programs that look for a directory under /sys/class: its shell function, taken out
of the document, shows one, keeps the rest of /sys/class and the user, and lets programs inside and outside meet.

usage: class_directory.py --build BUILD

Exit code 77: skipped, with the cause.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
LOOK = 'test -d /sys/class/ubcore/softub0 && test -e /sys/class/net/lo && test ! -d /sys/class/ubcore/other && id -u'


def function_of_document():
    with open(os.path.join(ROOT, "docs/from-a-fake.md")) as file:
        found = re.search(r"^with_class\(\) \{\n.*?^\}\n", file.read(), re.M | re.S)
    if found is None:
        sys.exit("docs/from-a-fake.md has no with_class()")
    return found[0]


def with_class(*command, **options):
    script = function_of_document() + 'with_class ubcore/softub0 "$@"'
    return subprocess.run(["bash", "-c", script, "bash", *command], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=30, **options)


def reason_not_to():
    if shutil.which("unshare") is None:
        return "there is no unshare on this machine"
    trial = subprocess.run(["unshare", "-rm", "true"], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return None if trial.returncode == 0 else "user namespaces are not allowed here: " + trial.stdout.strip()


def check(condition, what, output):
    if not condition:
        sys.exit(f"{what}:\n{output}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    hello = os.path.join(os.path.abspath(parser.parse_args().build), "apps/hello_write/hello_write")
    reason = reason_not_to()
    if reason:
        print("skipped:", reason)
        return SKIPPED
    look = with_class("sh", "-c", LOOK)
    check(look.returncode == 0, "the directory is not shown, or the others are gone", look.stdout)
    check(look.stdout.strip() == str(os.getuid()), "another user inside", look.stdout)
    check(not os.path.exists("/sys/class/ubcore/softub0"), "it can be seen outside", "")
    with tempfile.TemporaryDirectory() as directory:
        environment = {**os.environ, "XDG_RUNTIME_DIR": directory, "SOFTUB_PORT_KINDS": "shm"}
        with subprocess.Popen([hello], env=environment, text=True, stdout=subprocess.PIPE) as outside:
            try:
                where = outside.stdout.readline().split()
                inside = with_class(hello, "hello from inside", *where, env=environment)
                check("read back: hello from inside" in inside.stdout, "they do not meet", inside.stdout)
            finally:
                outside.kill()
    print("ok")
    return 0


if __name__ == "__main__":
    sys.exit(main())
