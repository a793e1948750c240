#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two network namespaces joined by four veth pairs, and a channel with a path over each. One pair is cut under load, and
comes back: nothing fails, the others carry the load meanwhile, and urma_perf --trace and urma_admin tell of it. Once with
the path of the set-up. Then programs begin while that one is cut. Without root or user namespaces it ends with exit code 77 and the cause.

  tests/e2e/paths.py --build build
  tests/e2e/paths.py --build build --only another --keep directory
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

import traces
import wires
from network_namespaces import NetworkNamespace, Unavailable
from processes import Failure, Process, check, free_port

LINKS = range(1, 5)
FIRST = 1      # the link of the EIDs, hence of the set-up
CONTROL = 4    # the link of the programs' TCP connection, which is never cut
PATIENCE = 60  # seconds until packets flow: urma_perf measures the CPUs first, which takes long on a busy machine
BEFORE, CUT, BACK = 1.5, 2, 0.5  # seconds: of load, without the link, until its path carries load again
MOST_SILENCE = 1


def address(link, end):
    """Of end 1 or 2."""
    return f"10.66.{link}.{end}"


class Hosts:
    """Both namespaces, and what programs in them need."""

    def __init__(self, directory):
        self.directory = directory
        self.ends = [NetworkNamespace()]
        try:
            self.ends.append(NetworkNamespace(beside=self.ends[0]))
            for end in self.ends:
                end.ip("link", "set", "lo", "up")
            for link in LINKS:
                self.join(link)
        except Unavailable:
            self.close()
            raise

    def join(self, link):
        name, (first, second) = f"path{link}", self.ends
        first.ip("link", "add", name, "type", "veth", "peer", "name", name, "netns", str(second.holder.pid))
        for number, end in enumerate(self.ends, 1):
            end.ip("addr", "add", f"{address(link, number)}/24", "dev", name)
            end.ip("link", "set", name, "up")

    def set_link(self, link, state):
        """At the first end, where the client is."""
        self.ends[0].ip("link", "set", f"path{link}", state)

    def variables(self, end):
        names = {"SOFTUB_PORT_KINDS": "udp", "SOFTUB_DEVICE_EIDS": address(FIRST, end),
                 "SOFTUB_PORT_UDP_BIND": ",".join(address(link, end) for link in LINKS),
                 "SOFTUB_LOG_STATS_DIR": self.directory}
        if end == 1:
            peer = address(FIRST, 2)
            names["SOFTUB_TRANSPORT_PATH_MAP"] = ",".join(f"{peer}={address(link, 1)}>{address(link, 2)}"
                                                          for link in LINKS if link != FIRST)
        return names

    def start(self, end, args):
        return Process(args, Inside(self.ends[end - 1].command(), self.variables(end)))

    def close(self):
        for end in self.ends:
            end.close()


class Inside(wires.Wire):
    """A network namespace, and an environment."""

    def __init__(self, command, variables):
        super().__init__()
        self.prefix, self.variables = command, variables

    def start(self, args, **options):
        return subprocess.Popen([*self.prefix, *args], env={**os.environ, **self.variables}, **options)


# ---- what urma_admin shows -----------------------------------------------------------------------------------------


def show_channels(admin, process, hosts, *options):
    """Empty: not yet."""
    shown = subprocess.run([admin, "show", "channels", "-i", str(process.popen.pid), *options], stdout=subprocess.PIPE,
                           stderr=subprocess.DEVNULL, text=True, env={**os.environ, **hosts.variables(1)})
    return shown.stdout if shown.returncode == 0 else ""


def busiest_channel(admin, process, hosts):
    """With its paths; None: there is no channel yet."""
    shown = show_channels(admin, process, hosts, "--json")
    channels = json.loads(shown)["channels"] if shown else []
    return max(channels, key=lambda channel: channel["tx_packets"], default=None)


def wait_for_channel(admin, process, hosts, good, what):
    end, channel = time.monotonic() + PATIENCE, None
    while time.monotonic() < end:
        channel = busiest_channel(admin, process, hosts)
        if channel and good(channel):
            return channel
        check(process.popen.poll() is None, f"{process.name()} ended before {what}\n{process.text()}")
        time.sleep(0.05)
    raise Failure(f"not within {PATIENCE} s: {what}; {channel}")


def check_lines(text, dead):
    """Each link has a line, and that one says that its path is dead."""
    for link in LINKS:
        wanted = f"{address(link, 1)}:4792 > {address(link, 2)}:4792  {'dead' if link == dead else 'live'} "
        check(any(line.startswith("    ") and wanted in line for line in text.splitlines()), f"no line with {wanted}\n{text}")


def path_over(channel, link):
    return next((path for path in channel["paths"] if path["local"].startswith(address(link, 1) + ":")), None)


def live_links(channel):
    return {link for link in LINKS if (path_over(channel, link) or {}).get("live")}


# ---- what the trace shows ------------------------------------------------------------------------------------------


class Trace:
    def __init__(self, path):
        self.rows = traces.read(path)

    def longest_silence(self):
        """Seconds between samples with completions, from the first to the last of them."""
        times = [float(row["time_s"]) for row in self.rows if row["row"] == "program" and int(row["completions"])]
        check(len(times) > 10, f"completions in {len(times)} samples only")
        return max(after - before for before, after in zip(times, times[1:]))

    def path(self, channel, link):
        """Its lines."""
        return [row for row in self.rows if row["row"] == "path" and int(row["tpn"]) == channel["tpn"]
                and row["local"].startswith(address(link, 1) + ":")]

    def packets_between(self, channel, link, begin, end):
        sent = [int(row["tx_packets"]) for row in self.path(channel, link) if begin <= float(row["unix_s"]) <= end]
        check(sent, f"no samples of link {link} from {begin} to {end}")
        return sent[-1] - sent[0]


def check_trace(trace, channel, link, begin, end):
    silence = trace.longest_silence()
    check(silence <= MOST_SILENCE, f"{silence:.2f} s without completions")
    rows = trace.path(channel, link)
    live = [row["live"] for row in rows if begin + CUT / 2 <= float(row["unix_s"]) <= end]
    check(live and set(live) == {"0"}, f"link {link} was cut, but its path says {live}")
    back = [row["live"] for row in rows if float(row["unix_s"]) > end + BACK]
    # Where there is little CPU, a path may be silent for a moment though its link is whole.
    check(back.count("1") * 2 > len(back), f"link {link} is whole again, but its path says {back}")
    check(int(rows[-1]["deaths"]) >= 1, f"the path was never dead: {rows[-1]}")
    for other in LINKS:
        check(trace.packets_between(channel, other, 0, begin) > 0, f"link {other} carried nothing before the cut")
        packets = trace.packets_between(channel, other, begin + CUT / 2, end)
        check((packets > 0) == (other != link), f"link {link} was cut, and link {other} carried {packets} packets")
    after = trace.packets_between(channel, link, end + BACK, float("inf"))
    check(after > 0, "the path carried nothing after it had come back")
    print(f"  at most {1000 * silence:.0f} ms without completions; the path carried {after} packets after the cut")


# ---- the tests -----------------------------------------------------------------------------------------------------


def run_pair(args, hosts, options, of_client=(), meanwhile=lambda client: None):
    """urma_perf write_bw from the first host to the second one. Returns what `meanwhile` does."""
    perf = [os.path.join(args.build, "tools/perf/urma_perf"), "write_bw", "-e", "--verify", "-p", str(free_port()), *options]
    server = hosts.start(2, [*perf, "--target-mode", "block"])
    client = None
    try:
        server.wait_for_text("TCP port")
        client = hosts.start(1, [*perf, *of_client, address(CONTROL, 2)])
        result = meanwhile(client)
        client.expect(0, PATIENCE)
        server.expect(0, PATIENCE)
        return result
    except Failure as failure:
        raise Failure(f"{failure}\n--- server:\n{server.text()}") from None
    finally:
        for process in filter(None, (server, client)):
            process.kill()


def cut_and_heal(admin, client, hosts, link):
    """Returns the channel, and when the link was cut and whole again."""
    wait_for_channel(admin, client, hosts, lambda c: live_links(c) == set(LINKS), "all paths live")
    time.sleep(BEFORE)
    hosts.set_link(link, "down")
    begin = time.time()
    wait_for_channel(admin, client, hosts, lambda c: live_links(c) == set(LINKS) - {link}, "the path is dead")
    check_lines(show_channels(admin, client, hosts), link)
    time.sleep(max(begin + CUT - time.time(), 0))
    end = time.time()
    hosts.set_link(link, "up")
    channel = wait_for_channel(admin, client, hosts, lambda c: live_links(c) == set(LINKS), "the path lives again")
    return channel, begin, end


def cut_under_load(args, hosts, directory, link):
    admin = os.path.join(args.build, "tools/admin/urma_admin")
    trace = os.path.join(directory, f"cut{link}.csv")
    channel, begin, end = run_pair(args, hosts, ["-s", "16384", "-t", "64", "-Q", "8"], ["-D", "8", "--trace", trace],
                                   lambda client: cut_and_heal(admin, client, hosts, link))
    check_trace(Trace(trace), channel, link, begin, end)


def another(args, hosts, directory):
    """A path that joined later."""
    cut_under_load(args, hosts, directory, 2)


def first(args, hosts, directory):
    """That of the set-up, whose addresses are those of the channel."""
    cut_under_load(args, hosts, directory, FIRST)


def set_up(args, hosts, directory):
    """The path of the EIDs is cut, and programs that begin find each other by the others."""
    hosts.set_link(FIRST, "down")
    run_pair(args, hosts, ["-n", "1000"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--only", help="the name of a test")
    parser.add_argument("--keep", metavar="DIRECTORY", help="where traces stay")
    args = parser.parse_args()
    for test in (another, first, set_up):
        if args.only not in (None, test.__name__):
            continue
        begun = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="softub-paths-") as directory:
            try:
                hosts = Hosts(directory)
            except Unavailable as why:
                print(f"not run: {why}")
                return 77
            try:
                test(args, hosts, args.keep or directory)
            except Failure as failure:
                print(f"{test.__name__}: {failure}", file=sys.stderr)
                return 1
            finally:
                hosts.close()
        print(f"{test.__name__}: {time.monotonic() - begun:.1f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
