#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Installs the build into a directory of its own, and has CMake find the library there, build a program, and run it.

usage: installed.py --build BUILD

Exit code 77: skipped, with the cause.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77

# What follows find_package(urma ...), and whether it is to be found.
VERSIONS = (
    ("", True),
    ("0.0.3", True),
    ("0.0.3 EXACT", True),
    ("0.0.2", True),
    ("0", True),
    ("0.0.1...0.0.9", True),
    ("0.0.1...0.0.3", True),
    ("0.0.2 EXACT", False),
    ("0.0.4", False),
    ("0.1", False),
    ("1.0", False),
    ("0.0.1...<0.0.3", False),
    ("0.0.4...1", False),
)

PROGRAM = """
#include <stdio.h>
#include <urma_api.h>
int main(void) {
  printf("API %d, level %d\\n", URMA_API_VERSION, (int)urma_log_get_level());
  return 0;
}
"""


def cmake_lists():
    lines = ["cmake_minimum_required(VERSION 3.19)", "project(uses_urma C)"]
    for arguments, _ in VERSIONS:
        lines += ["unset(urma_DIR CACHE)", f"find_package(urma {arguments} QUIET CONFIG)",
                  f'message(STATUS "[{arguments}] ${{urma_FOUND}}")']
    lines += ["unset(urma_DIR CACHE)", "find_package(urma 0.0.3 REQUIRED)", "add_executable(program program.c)",
              "target_link_libraries(program urma::urma)"]
    return "\n".join(lines) + "\n"


def run(*command, **options):
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout}")
    return done.stdout


def prefix_under(root):
    """The folder that holds include/, above the configuration for CMake."""
    found = [directory for directory, _, files in os.walk(root) if "urma-config.cmake" in files]
    if not found:
        sys.exit("urma-config.cmake is not installed")
    directory = found[0]
    while not os.path.isdir(os.path.join(directory, "include")):
        if directory == root:
            sys.exit("no headers are installed")
        directory = os.path.dirname(directory)
    return directory


def check_versions(output):
    faults = 0
    for arguments, wanted in VERSIONS:
        line = next((line for line in output.split("\n") if f"[{arguments}]" in line), f"no line of [{arguments}]")
        if line.rstrip().endswith("] 1") != wanted:
            print(f"find_package(urma {arguments}) should be {'found' if wanted else 'refused'}: {line}")
            faults += 1
    return faults


def reason_not_to(build):
    for tool in ("cmake", "meson", "ninja"):
        if shutil.which(tool) is None:
            return f"there is no {tool} on this machine"
    if not os.access(os.path.join(build, "meson-logs"), os.W_OK):
        return f"meson install writes a log into {build}, which belongs to another user"
    with open(os.path.join(build, "meson-info/intro-buildoptions.json")) as file:
        sanitizer = next(option["value"] for option in json.load(file) if option["name"] == "b_sanitize")
    if sanitizer != "none":
        return f"a library built with b_sanitize={sanitizer} does not go into programs without it"
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    build = os.path.abspath(parser.parse_args().build)
    reason = reason_not_to(build)
    if reason:
        print("skipped:", reason)
        return SKIPPED
    with tempfile.TemporaryDirectory() as directory:
        root, source, made = (os.path.join(directory, name) for name in ("root", "source", "made"))
        run("meson", "install", "-C", build, "--no-rebuild", "--destdir", root)
        os.mkdir(source)
        for name, text in (("CMakeLists.txt", cmake_lists()), ("program.c", PROGRAM)):
            with open(os.path.join(source, name), "w") as file:
                file.write(text)
        output = run("cmake", "-S", source, "-B", made, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix_under(root)}")
        faults = check_versions(output)
        run("cmake", "--build", made)
        print(run(os.path.join(made, "program")), end="")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
