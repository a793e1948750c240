#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kill_peer over memif: A, the survivor, talks to B over memif and to C over shared memory; B is killed again and
again. Once with A as the server of the memif socket, once as the client.

  tests/e2e/kill_peer_memif.py --kill-peer build/tests/e2e/kill_peer --plugin build/dataplane/dpdk/libsoftub_dpdk.so.0
"""
import argparse
import os
import subprocess
import sys
import tempfile

import wires


def run(args, survivor_end):
    wire = wires.make("memif", args.plugin)
    with tempfile.TemporaryDirectory(prefix="softub-kill-") as shm_dir:
        of_a, of_b = wire.environment(survivor_end), wire.environment(1 - survivor_end)
        of_a["SOFTUB_PORT_KINDS"] = "shm,dpdk"
        of_c = {"SOFTUB_PORT_KINDS": "shm", "SOFTUB_DEVICE_EIDS": "127.0.0.1"}
        for variables in (of_a, of_b, of_c):
            variables["SOFTUB_PORT_SHM_DIR"] = shm_dir
        command = [args.kill_peer, "--slow-wire", "--rounds", str(args.rounds)]
        if args.seed is not None:
            command += ["--seed", str(args.seed)]
        for who, variables in (("A", of_a), ("B", of_b), ("C", of_c)):
            for name, value in variables.items():
                command += ["--set", who, f"{name}={value}"]
        print(f"the survivor is the {('server', 'client')[survivor_end]}", flush=True)
        try:
            return subprocess.run(command, timeout=60 + 20 * args.rounds).returncode
        except subprocess.TimeoutExpired:
            print("kill_peer hangs")
            return 1
        finally:
            wire.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kill-peer", required=True)
    parser.add_argument("--plugin", default="")
    parser.add_argument("--rounds", type=int, default=25, help="kills for each role")
    parser.add_argument("--seed", type=int)
    args = parser.parse_args()
    args.plugin = os.path.abspath(args.plugin) if args.plugin else ""
    try:
        return max(abs(run(args, survivor)) for survivor in (0, 1))
    except wires.Skip as why:
        print(f"not run over memif: {why}")
        return 77


if __name__ == "__main__":
    sys.exit(main())
