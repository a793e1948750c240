# SPDX-License-Identifier: Apache-2.0
"""YCSB-A by urma_ycsb, at SoftUB's store and at others: the same generator, keys, values of 64 B and clocks. The store is
loaded first; then operations run for a second."""
import json
import os
import tempfile

from . import parsing
from .foreign import client, free_port, need, server
from .plan import PERCENTS
from .program import Skip

WORKLOAD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../ycsb/workloads/workloada")
RECORDS, SECONDS = 10000, 1


def server_of(store, build, port):
    """The command that serves it. Raises Skip."""
    if store == "urma":
        return [os.path.join(build, "apps/kv_store/kv_store"), "serve", "-p", port, "-m", "64m"]
    if store == "redis":
        need("redis-server", "redis-server")
        return ["redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
    need("memcached", "memcached")
    user = ["-u", "nobody"] if os.geteuid() == 0 else []
    return ["memcached", "-l", "127.0.0.1", "-p", port, "-U", "0", "-t", "1", *user]


def run(build, cpus, arguments):
    """`arguments`: the store, and properties (window=1)."""
    program = os.path.join(build, "tools/ycsb/urma_ycsb")
    if not os.path.exists(program):
        raise Skip("urma_ycsb is not in the build (tools/ycsb/urma_ycsb)")
    store, *properties = arguments.split()
    port = str(free_port())
    properties += [f"{store}.port={port}", f"recordcount={RECORDS}", "fieldcount=1", "fieldlength=64",
                   f"hdrhistogram.percentiles={','.join(f'{percent:g}' for percent in PERCENTS)}"]
    environment = {**os.environ, "SOFTUB_PORT_KINDS": "shm"}
    command = [program, "-db", store, "-P", WORKLOAD, *(word for pair in properties for word in ("-p", pair))]
    with tempfile.NamedTemporaryFile() as report:
        with server(cpus[1], server_of(store, build, port), int(port), environment):
            client(cpus[0], [*command, "-load", "-p", "window=16"], environment)
            client(cpus[0], [*command, "-run", "-p", "operationcount=0", "-p", f"maxexecutiontime={SECONDS}", "--json",
                             report.name], environment)
        with open(report.name, encoding="utf-8") as file:
            return parsing.ycsb_values(json.load(file))
