#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One daemon with two DPDK devices, a network of its own on each: a program on each network exchanges verified traffic
with applications of the daemon, both at the same time, in both directions. An address of the one network is not
reached by the other.

  tests/e2e/many_devices.py --perf build/tools/perf/urma_perf --softubd build/dataplane/softubd/softubd \
      --plugin build/dataplane/dpdk/libsoftub_dpdk.so.0
"""
import argparse
import os
import sys
import tempfile
import uuid

import daemons
import wires
from processes import Failure, Process, check, free_port

NETWORKS = 2


def hub_variables(plugin, directory, name):
    devices = [f"net_memif{n},role=server,socket={name}-{n}" for n in range(NETWORKS)]
    return {"SOFTUB_PORT_KINDS": "dpdk", "SOFTUB_PORT_MTU": "1024", "SOFTUB_DPDK_PLUGIN": plugin,
            "SOFTUB_DPDK_DEVICE": "; ".join(devices), "SOFTUB_DPDK_ADDRESSES": "10.1.0.1/24,10.2.0.1/24@net_memif1",
            "SOFTUB_LOG_STATS_DIR": directory}


def spoke_variables(plugin, directory, name, network):
    return {"SOFTUB_PORT_KINDS": "dpdk", "SOFTUB_PORT_MTU": "1024", "SOFTUB_DPDK_PLUGIN": plugin,
            "SOFTUB_DPDK_DEVICE": f"net_memif0,role=client,socket={name}-{network}",
            "SOFTUB_DPDK_ADDRESSES": f"10.{network + 1}.0.2/24", "SOFTUB_LOG_STATS_DIR": directory}


def start_server(args, end, address, test):
    port = free_port()
    command = [args.perf, test, "-p", port, "-s", "4096", "-n", "3000", "--verify", "-b", "-x", address]
    server = Process(command, end)
    server.wait_for_text("waiting|listening|:%d" % port)
    return port, server


def start_client(args, end, address, test, port):
    command = [args.perf, test, "-p", port, "-s", "4096", "-n", "3000", "--verify", "-b", "-x", address, "localhost"]
    return Process(command, end)


def all_at_once(args, hub, spokes):
    """Servers in the daemon's applications for one test, in the programs of the networks for the other."""
    for test, servers_in_hub in ("write_bw", True), ("read_bw", False):
        programs = []
        for network, spoke in enumerate(spokes):
            near, far = ((hub, network), (spoke, 0)) if servers_in_hub else ((spoke, 0), (hub, network))
            port, server = start_server(args, *near, test)
            programs += [server, start_client(args, *far, test, port)]
        for program in programs:
            code = program.wait(60)
            check(code == 0, f"{program.name()} ended with {code}\n{program.text()}")
        print(f"{test}: {NETWORKS} networks at once")


def other_network_is_not_reached(args, hub, spoke):
    """The daemon's application says its address in network 1, the program is in network 0."""
    port, server = start_server(args, hub, 1, "write_bw")
    client = start_client(args, spoke, 0, "write_bw", port)
    check(client.wait(60) != 0, "an address of the other network was reached")
    server.kill()
    print("the other network: not reached")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--perf", required=True)
    parser.add_argument("--softubd", required=True)
    parser.add_argument("--plugin", default="")
    args = parser.parse_args()
    if not os.path.exists(args.plugin):
        print("skipped: the DPDK port is not built")
        return 77
    plugin = os.path.abspath(args.plugin)
    with tempfile.TemporaryDirectory(prefix="softub-many-") as directory:
        name = "softub-" + uuid.uuid4().hex[:8]
        daemon = daemons.Daemon(args.softubd, directory, 0, hub_variables(plugin, directory, name))
        try:
            hub = wires.Given(daemon.variables())
            spokes = [wires.Given(spoke_variables(plugin, directory, name, n)) for n in range(NETWORKS)]
            all_at_once(args, hub, spokes)
            other_network_is_not_reached(args, hub, spokes[0])
            code = daemon.stop()
            check(code == 0, f"softubd ended with {code}")
        except Failure as failure:
            print(f"FAILED: {failure}\nsoftubd:\n{daemon.log()}")
            return 1
        finally:
            daemon.kill()
    return 0


if __name__ == "__main__":
    sys.exit(main())
