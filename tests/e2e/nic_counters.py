# SPDX-License-Identifier: Apache-2.0
"""What the NICs in processes say of themselves, by urma_admin."""
import json
import os
import subprocess
import time

from processes import Failure, check


def nonzero(counters):
    return {name: value for name, value in counters.items() if value != 0}


class NicCounters:
    def __init__(self, admin, variables, patience=20):
        """The program, the environment in which it finds the NICs, and the seconds that wait() has."""
        self.program = admin
        self.environment = {**os.environ, **variables}
        self.patience = patience

    def show(self, process, what):
        """Of the NIC in that process; empty: not yet."""
        shown = subprocess.run([self.program, "show", what, "--all", "--json", "-i", str(process.popen.pid)],
                               env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        return json.loads(shown.stdout) if shown.returncode == 0 else {}

    def of(self, process):
        """Its counters; empty: not yet."""
        return self.show(process, "counters").get("counters", {})

    def wait(self, process, good):
        """Until they are good: the page is written now and then. Raises Failure."""
        end = time.monotonic() + self.patience
        counters = {}
        while time.monotonic() < end:
            counters = self.of(process)
            if counters and good(counters):
                return counters
            check(process.popen.poll() is None, f"{process.name()} ended\n{process.text()}")
            time.sleep(0.05)
        raise Failure(f"{process.name()}: its counters stayed at {nonzero(counters)}")
