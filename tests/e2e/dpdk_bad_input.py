#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a DPDK port says when it cannot open: each mistake ends with a sentence that tells what, where and what to do,
and never with a crash. The program is hello_write, which starts a NIC first of all.

  tests/e2e/dpdk_bad_input.py --hello build/apps/hello_write/hello_write --plugin build/dataplane/dpdk/libsoftub_dpdk.so.0
"""
import argparse
import os
import signal
import subprocess
import sys
import tempfile

RING = {"SOFTUB_DPDK_DEVICE": "net_ring0"}
MEMIF = "net_memif0,bsize=8192"


def environment(plugin, directory, variables):
    return {
        **os.environ,
        "SOFTUB_PORT_KINDS": "dpdk",
        "SOFTUB_DPDK_PLUGIN": plugin,
        "SOFTUB_DPDK_ADDRESSES": "10.9.0.1/24",
        "SOFTUB_LOG_STATS_DIR": directory,
        **variables,
    }


def start(args, directory, variables, as_nobody=False):
    user = {"user": "nobody", "group": "nogroup", "extra_groups": []} if as_nobody else {}
    return subprocess.Popen([args.hello], env=environment(args.plugin, directory, variables), stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", **user)


def ends_with(args, directory, variables, *words, as_nobody=False):
    """The program ends by itself, and says all the words."""
    process = start(args, directory, variables, as_nobody)
    try:
        out = process.communicate(timeout=20)[0]
    except subprocess.TimeoutExpired:
        process.kill()
        return "it still runs\n" + process.communicate()[0]
    if process.returncode < 0:
        return f"killed by {signal.Signals(-process.returncode).name}\n{out}"
    if process.returncode == 0:
        return f"it ends well\n{out}"
    missing = [word for word in words if word not in out]
    return f"does not say {missing}:\n{out}" if missing else ""


def cases(args, directory):
    def case(name, variables, *words, **options):
        return name, lambda: ends_with(args, directory, variables, *words, **options)

    yield case("no device", {}, "dpdk.device and dpdk.addresses must say")
    two = {"SOFTUB_DPDK_DEVICE": "net_ring0;net_ring1"}
    yield case("two devices, addresses of one", two, "net_ring1 has no address", "10.1.0.2/24@net_ring1")
    yield case("an address of no device", {**two, "SOFTUB_DPDK_ADDRESSES": "10.9.0.1/24,10.8.0.1/24@net_ring7"},
               "10.8.0.1/24@net_ring7", "no device of the name net_ring7")
    yield case("no plugin", {**RING, "SOFTUB_DPDK_PLUGIN": "/nonexistent/plugin.so"}, "its plugin cannot be loaded",
               "/nonexistent/plugin.so", "dpdk.plugin")
    yield case("another library as plugin", {**RING, "SOFTUB_DPDK_PLUGIN": "libc.so.6"},
               "libc.so.6 is no port plugin", "dpdk.plugin")
    yield case("unknown driver", {"SOFTUB_DPDK_DEVICE": "net_nonsense0"}, '"net_nonsense0" cannot be opened',
               "check dpdk.device")
    yield case("unknown PCI device", {"SOFTUB_DPDK_DEVICE": "0000:ff:1f.7"}, '"0000:ff:1f.7" cannot be opened',
               "check dpdk.device")
    yield case("wrong value of a driver's argument", {"SOFTUB_DPDK_DEVICE": MEMIF + ",role=nonsense"},
               "cannot be opened", "nonsense")
    yield case("interface that does not exist", {"SOFTUB_DPDK_DEVICE": "net_af_packet0,iface=softub-none"},
               "cannot be opened", "softub-none")
    yield case("socket in no folder",
               {"SOFTUB_DPDK_DEVICE": MEMIF + ",role=server,socket=/nonexistent/memif.sock,socket-abstract=no"},
               "/nonexistent", "check dpdk.device")
    yield case("unknown argument of DPDK", {**RING, "SOFTUB_DPDK_ARGUMENTS": "--nonsense"}, "DPDK does not start",
               "check dpdk.arguments")
    yield case("argument that ends the program", {**RING, "SOFTUB_DPDK_ARGUMENTS": "--help"},
               "dpdk.arguments has --help")
    yield case("buffers of memif that are too small",
               {"SOFTUB_DPDK_DEVICE": "net_memif0,role=server,socket=softub-none", "SOFTUB_PORT_MTU": "4096"},
               "buffers of 2048 bytes", "add bsize=8192 to dpdk.device")
    yield case("too little memory", {**RING, "SOFTUB_DPDK_ARGUMENTS": "-m,16"}, "no memory for", "dpdk.arguments, -m")
    yield case("secondary process", {**RING, "SOFTUB_DPDK_ARGUMENTS": "--proc-type=secondary"},
               "dpdk.arguments has --proc-type=secondary")
    yield case("no hugepages", {**RING, "SOFTUB_DPDK_ARGUMENTS": "--socket-mem=1048576"}, "DPDK does not start",
               "check dpdk.arguments: memory")
    if os.geteuid() == 0:
        yield case("MTU that the device refuses",
                   {"SOFTUB_DPDK_DEVICE": "net_af_packet0,iface=lo", "SOFTUB_PORT_MTU": "8192"},
                   "does not take 8342", "lower port.mtu")
        yield case("no permission", {"SOFTUB_DPDK_DEVICE": "net_af_packet0,iface=lo"}, "cannot be opened",
                   "Operation not permitted", as_nobody=True)
    yield "file prefix in use", lambda: prefix_in_use(args, directory)


def prefix_in_use(args, directory):
    variables = {**RING, "SOFTUB_DPDK_ARGUMENTS": f"--no-huge,-m,256,--file-prefix=softub-test-{os.getpid()}"}
    first = start(args, directory, variables)
    try:
        first.stdout.readline()  # it runs
        return ends_with(args, directory, variables, "DPDK does not start", "--file-prefix", "lock")
    finally:
        first.kill()
        first.communicate()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hello", required=True)
    parser.add_argument("--plugin", default="")
    args = parser.parse_args()
    if not os.path.exists(args.plugin):
        print("not run: the DPDK port is not built")
        return 77
    args.hello, args.plugin = os.path.abspath(args.hello), os.path.abspath(args.plugin)
    failed = 0
    with tempfile.TemporaryDirectory(prefix="softub-bad-") as directory:
        os.chmod(directory, 0o777)
        for name, test in cases(args, directory):
            error = test()
            failed += bool(error)
            print(f"{'FAIL' if error else 'pass'}  {name}", flush=True)
            if error:
                print("      " + error.strip().replace("\n", "\n      "), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
