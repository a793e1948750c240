#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""(EID, id) names one object of a host: many processes (identity.cc), embedded and at daemons under one EID, exchange
through this driver nothing but EID and ids, and address and token of segments; everything is imported with uasid 0.

  tests/e2e/identity.py --build build --where namespaces --processes 12 --seconds 60 --seed 7

Where: shm, udp: one host; namespaces: half of the processes in each of two network namespaces, with another EID there
(needs root); users: three users on one host, over UDP (needs root). Parts of each, in this order:

  ids      no two objects of different processes have the same id, nor two token ids
  self     every process with itself: SEND, WRITE, READ in RM, RC and UM
  traffic  every process with every one; every byte, and who sent it
  numbers  an id asked for by number belongs to one on the whole host, until it is destroyed
  many     as ids, with many jettys in every process, 10 000 in two of them, that come and go
  crossed  target of one process, segment of another: refused, and nobody's memory is touched
  absent   an import of what nobody holds fails soon, and the log names EID and id
  kills    processes and daemons are killed under load, the first one that was started, too: the others import each
           other afresh; who comes back gets its number again, and is not reached by old imports

One seed draws everything but what the system schedules. A failure prints the line that runs its part again.
"""
import argparse
import os
import random
import re
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time

import daemons
import wires
from processes import Failure, check

SKIPPED = 77
PLACES = ("shm", "udp", "namespaces", "users")
PARTS = ("ids", "self", "traffic", "numbers", "many", "crossed", "absent", "kills")
ADDRESS = "7e9000000000"  # of the segments of all; sanitizers have their own memory elsewhere
USERS = (65534, 65533, 0)
PATIENCE = 150.0  # seconds for an answer: some of what a process waits for takes 30
SOON = 20.0       # for an import of what nobody holds: promised are 10, of a machine that is not starved
NUMBERS = range(3, 1025)  # nobody gets one of these who did not ask for it
LOTS = 10_000  # jettys of one process of each placement in the part many
REM_ACCESS_ABORT = "8"


class Host:
    """A network namespace, or all there is: its EID, its daemons, and where its instances meet."""

    def __init__(self, name, directory, eid, kinds, command=()):
        self.name = name
        self.eid = eid
        self.command = list(command)
        self.directory = os.path.join(directory, "h" + name[-1])  # short, for paths of sockets are limited
        os.mkdir(self.directory)
        os.chmod(self.directory, 0o711)
        self.kinds = kinds
        self.daemons = []

    def variables(self, user=None):
        user = os.geteuid() if user is None else user
        runtime = os.path.join(self.directory, f"u{user}")
        if not os.path.isdir(runtime):
            os.mkdir(runtime, 0o700)
            os.chown(runtime, user, -1)
        return {"XDG_RUNTIME_DIR": runtime, "SOFTUB_PORT_KINDS": self.kinds, "SOFTUB_DEVICE_EIDS": self.eid}


class Worker:
    """One process, through all its lives."""

    def __init__(self, world, index, host, daemon, user):
        self.world = world
        self.index = index
        self.host = host
        self.daemon = daemon  # its number, or None: embedded
        self.user = user
        self.life = 0
        self.number = None  # of the jetty whose id it asks for
        self.popen = None

    def name(self):
        where = "embedded" if self.daemon is None else f"at daemon {self.daemon}"
        user = "" if self.user is None else f", user {self.user}"
        life = "" if self.life == 1 else f", life {self.life}"
        return f"process {self.index} ({where} on {self.host.name}{user}{life})"

    def start(self):
        self.life += 1
        self.objects, self.tokens, self.rc, self.log, self.buffer = {}, {}, {}, [], b""
        if self.daemon is None:
            variables = self.host.variables(self.user)
        else:
            variables = {**self.host.daemons[self.daemon].variables(), "XDG_RUNTIME_DIR": self.host.variables()["XDG_RUNTIME_DIR"]}
        command = [self.world.args.identity, "--index", self.index, "--count", self.world.count, "--life", self.life,
                   "--address", ADDRESS, *([] if self.user is None else ["--uid", self.user])]
        self.errors = open(os.path.join(self.world.directory, f"process{self.index}.log"), "ab+")
        self.popen = subprocess.Popen([*self.host.command, *map(str, command)], env={**os.environ, **variables},
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors)

    def opened(self):
        """Reads what it says first."""
        said = self.fields(self.answer())
        self.eid, self.uasid = said["eid"], int(said["uasid"])
        self.ids = {kind: int(said[kind]) for kind in ("rm", "rm_jfr", "rc_jfr", "um_jfr", "um", "jfs")}
        for kind, number in self.ids.items():
            self.has(kind, number)
        self.token = int(said["token"])
        for token in said["tokens"].split(","):
            self.tokens[int(token)] = "segment"

    def has(self, kind, number):
        self.objects.setdefault(number, kind)

    @staticmethod
    def fields(answer):
        check(answer.startswith("ok"), answer)
        return dict(word.split("=", 1) for word in answer.split()[1:] if "=" in word)

    def order(self, text):
        self.log = []
        self.said = text
        try:
            self.popen.stdin.write(text.encode() + b"\n")
            self.popen.stdin.flush()
        except BrokenPipeError:
            pass  # the answer says so

    def line(self, end):
        while b"\n" not in self.buffer:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.popen.stdout], [], [], left)[0]:
                raise Failure(f"{self.name()} gave no answer in {PATIENCE:.0f} s")
            got = os.read(self.popen.stdout.fileno(), 1 << 16)
            if not got:
                raise Failure(f"{self.name()} ended with {self.popen.wait()}\n{self.text()}")
            self.buffer += got
        line, self.buffer = self.buffer.split(b"\n", 1)
        return line.decode(errors="replace")

    def answer(self):
        end = time.monotonic() + PATIENCE
        while True:
            line = self.line(end)
            if line.startswith("log "):
                self.log.append(line[4:])
            elif line.startswith("violation"):
                raise Failure(f"{self.name()}: {line[10:]}" + "".join(f"\n  {text}" for text in self.log))
            else:
                return line

    def ask(self, text):
        self.order(text)
        return self.answer()

    def must(self, text):
        """The fields of the answer, which has to be "ok"."""
        answer = self.ask(text)
        self.check(answer.startswith("ok"), answer)
        return self.fields(answer)

    def check(self, condition, text):
        if not condition:
            log = "".join(f"\n  {line}" for line in self.log[-5:])
            raise Failure(f"{self.name()}: {text}{log}")

    def text(self):
        self.errors.seek(0)
        return self.errors.read().decode(errors="replace")[-2000:]

    def kill(self):
        if self.popen is not None and self.popen.poll() is None:
            self.popen.send_signal(signal.SIGKILL)
            self.popen.wait()

    def finish(self):
        self.popen.stdin.close()
        try:
            return self.popen.wait(30)
        except subprocess.TimeoutExpired:
            return "no end"


def ask_all(orders):
    """Orders for many at a time: {worker: text}. Their answers."""
    for worker, text in orders.items():
        worker.order(text)
    return {worker: worker.answer() for worker in orders}


def must_all(orders):
    answers = ask_all(orders)
    for worker, answer in answers.items():
        worker.check(answer.startswith("ok"), answer)
    return {worker: worker.fields(answer) for worker, answer in answers.items()}


def indices(workers):
    return " ".join(str(worker.index) for worker in workers)


class World:
    """Processes and daemons of one place."""

    def __init__(self, args, where, directory):
        self.args = args
        self.where = where
        self.directory = directory
        os.chmod(directory, 0o711)
        self.dice = random.Random(f"{args.seed} {where}")
        self.count = args.processes
        self.round_number = 0
        self.namespaces = None
        self.hosts = self.make_hosts()
        self.workers = [self.make_worker(index) for index in range(self.count)]
        self.first = "daemon" if where == "namespaces" else "embedded"  # who is started first
        numbers = self.dice.sample(NUMBERS, self.count + 40)
        self.free_numbers = numbers[self.count:]
        for worker, number in zip(self.workers, numbers):
            worker.number = number

    def make_hosts(self):
        if self.where == "users" and os.geteuid() != 0:
            raise wires.Skip("only root starts processes of other users")
        if self.where == "namespaces":
            self.namespaces = wires.Namespaces()
            return [Host(f"host{end}", self.directory, self.namespaces.address(end), "shm,udp",
                         self.namespaces.command(end)) for end in range(2)]
        return [Host("host", self.directory, wires.Addresses.address(0), "shm" if self.where == "shm" else "udp")]

    def make_worker(self, index):
        if self.where == "users":
            at_daemon = index % 4 == 3
            return Worker(self, index, self.hosts[0], 0 if at_daemon else None, 0 if at_daemon else USERS[index % 4])
        host = self.hosts[index * len(self.hosts) // self.count]
        before = index - -(-self.count * self.hosts.index(host) // len(self.hosts))
        return Worker(self, index, host, before // 2 % self.daemons_each() if before % 2 else None, None)

    def daemons_each(self):
        return 2 if self.where in ("shm", "udp") else 1

    def start_daemon(self, host, number):
        # Its log and its socket are where no other user comes.
        return daemons.Daemon(self.args.softubd, host.variables()["XDG_RUNTIME_DIR"], number,
                              {**host.variables(), "SOFTUB_DAEMON_APP_JETTIES": "65535"}, host.command)

    def start(self):
        early = self.workers[:1] if self.first == "embedded" else []
        self.open(early)
        for host in self.hosts:
            host.daemons = [self.start_daemon(host, number) for number in range(self.daemons_each())]
        self.open([worker for worker in self.workers if worker not in early])
        print(f"{self.where}: {self.count} processes, first an {self.first} one" if early else
              f"{self.where}: {self.count} processes, first a daemon", flush=True)

    def open(self, workers):
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.opened()
        for worker in workers:
            self.take_number(worker)

    def take_number(self, worker):
        """The id that it wants, or had in its last life; what a dead process held may take a while."""
        patience = 0 if worker.life == 1 else 30
        check(self.own_until(worker, "jetty", worker.number, patience) is not None,
              f"{worker.name()} does not get jetty id {worker.number}, which nobody holds")

    def own_until(self, worker, kind, number, patience=30):
        """The handle of an object with this id, or None."""
        end = time.monotonic() + patience
        while True:
            got = self.own(worker, kind, number)
            if got["id"] == number:
                return got["handle"]
            self.drop(worker, got)
            if time.monotonic() > end:
                return None
            time.sleep(0.1)

    @staticmethod
    def own(worker, kind, number):
        said = worker.must(f"own {kind} {number}")
        got = {"handle": said["handle"], "id": int(said["id"]), "kind": kind}
        if kind == "token":
            worker.tokens[got["id"]] = kind
        else:
            worker.has(kind, got["id"])
        return got

    @staticmethod
    def drop(worker, got):
        worker.must(f"drop {got['handle']}")
        worker.objects.pop(got["id"], None)

    # ---- ids ----
    def check_unique(self):
        clashes = []
        for what in ("objects", "tokens"):
            seen = {}
            for worker in self.workers:
                for number, kind in getattr(worker, what).items():
                    other, of = seen.setdefault((worker.host, number), (worker, kind))
                    if other is not worker:
                        name = "token id" if what == "tokens" else "id"
                        clashes.append(f"{name} {number} is {kind} of {worker.name()} and {of} of {other.name()}")
        check(not clashes, f"{len(clashes)} numbers name two objects of one EID: " + "; ".join(clashes[:4]))

    def ids(self):
        for worker in self.workers:
            for kind in ("group", "token", "jfr"):
                self.own(worker, kind, 0)
        self.renew(self.workers, self.workers)
        self.check_unique()

    def many(self):
        lots = []
        if self.where == "udp" or self.args.seconds:
            lots = [self.workers[0], next(worker for worker in self.workers if worker.daemon is not None)]
        for _ in range(2):
            counts = {worker: LOTS if worker in lots else self.args.jettys for worker in self.workers}
            for worker, said in must_all({w: f"many {count}" for w, count in counts.items()}).items():
                worker.objects = {n: kind for n, kind in worker.objects.items() if kind != "one of many"}
                for number in said["ids"].split(","):
                    if number:
                        worker.has("one of many", int(number))
            self.check_unique()

    # ---- traffic ----
    def renew(self, workers, others):
        for worker, said in must_all({w: f"renew {indices(others)}" for w in workers}).items():
            for entry in filter(None, said["rc"].split(",")):
                index, number = map(int, entry.split(":"))
                worker.objects.pop(worker.rc.get(index), None)
                worker.rc[index] = number
                worker.has("RC jetty", number)

    def entry(self, of, reader):
        """What a process is told of another one."""
        return (f"{of.index} {of.life} {of.eid} {of.ids['rm']} {of.ids['rm_jfr']} {of.number} {of.ids['um']} "
                f"{of.rc[reader.index]} {of.token}")

    def connect(self, pairs):
        """{worker: those that it imports}; both sides of a pair must."""
        for worker, others in pairs.items():
            self.renew([worker], others)
        must_all({worker: "peers " + " ".join(self.entry(other, worker) for other in others)
                  for worker, others in pairs.items()})

    def prepare(self, pairs):
        self.round_number += 1
        must_all({worker: f"prepare {self.round_number} {indices(others)}" for worker, others in pairs.items()})

    def judge(self, worker, answer, dead=()):
        """Of an exchange: only what went to the dead may have failed."""
        worker.check(answer.startswith("ok"), answer)
        lost = [word for word in answer.split()[1:] if int(word.split(":")[0]) not in {d.index for d in dead}]
        worker.check(not lost, f"requests to living processes failed (INDEX:KIND:STATUS): {' '.join(lost)}")

    def verify(self, pairs):
        """All arrived. Datagrams are sent until one of each pair did."""
        for tries in range(30):
            said = must_all({worker: f"verify {indices(others)}" for worker, others in pairs.items()})
            again = {}
            for worker, fields in said.items():
                for index in filter(None, fields["um"].split(",")):
                    again.setdefault(self.workers[int(index)], []).append(worker)
            if not again:
                return
            for worker, answer in ask_all({w: f"datagrams {indices(to)}" for w, to in again.items()}).items():
                self.judge(worker, answer)
            time.sleep(0.02 * tries)
        sender, to = next(iter(again.items()))
        raise Failure(f"no datagram of {sender.name()} arrives at {to[0].name()}")

    def round(self, pairs):
        self.prepare(pairs)
        for worker, answer in ask_all({w: f"exchange {indices(others)}" for w, others in pairs.items()}).items():
            self.judge(worker, answer)
        self.verify(pairs)

    def self(self):
        for workers in (self.workers[:1], self.workers):  # the first one alone: nobody else takes or answers anything
            pairs = {worker: [worker] for worker in workers}
            self.connect(pairs)
            self.round(pairs)

    def all_pairs(self, workers=None):
        workers = workers or self.workers
        return {worker: workers for worker in workers}

    def traffic(self):
        self.connect(self.all_pairs())
        for _ in range(3):
            self.round(self.all_pairs())

    # ---- ids by number ----
    def probe(self, sender, holder, number):
        """A message to (EID, number) reaches this one."""
        self.round_number += 1
        answer = sender.ask(f"probe {holder.index} {holder.life} {holder.eid} {number} {self.round_number}")
        sender.check(answer == "ok", f"a message to id {number} of {holder.name()}: {answer}")
        said = holder.must(f"expect {sender.index} {self.round_number}")
        holder.check(int(said["id"]) == number, f"a message to id {number} came to id {said['id']}")

    def numbers(self):
        self.connect(self.all_pairs())
        cases = []
        for host in self.hosts:
            group = [worker for worker in self.workers if worker.host is host]
            for kind in ("jetty", "jetty", "jfr", "group"):
                cases.append((kind, self.free_numbers.pop(), *self.dice.sample(group, 3), self.dice.choice(self.workers)))
        for case in cases:
            self.number_of_one(*case)
        # All were given back before the first is taken again: a number may rest for a while.
        for case in cases:
            self.number_of_next(*case)
        for host in self.hosts:
            self.number_of_all(self.dice.randrange(300_000, 1_000_000), [w for w in self.workers if w.host is host])

    def number_of_one(self, kind, number, first, second, third, sender):
        """The first gets it, nobody else."""
        held = self.own(first, kind, number)
        first.check(held["id"] == number, f"asks for {kind} id {number}, which nobody has, and gets {held['id']}")
        others = {worker: self.own(worker, kind, number) for worker in (second, third)}
        for worker, got in others.items():
            worker.check(got["id"] != number, f"gets {kind} id {number}, which {first.name()} has")
        again = self.own(first, kind, number)
        first.check(again["id"] != number, f"has {kind} id {number}, asks for it again, and gets it again")
        self.check_unique()
        if kind == "jetty":
            self.probe(sender, first, number)
        self.drop(first, again)
        self.drop(first, held)
        for worker, got in others.items():
            self.drop(worker, got)

    def number_of_next(self, kind, number, first, second, _, sender):
        """It was given back: another one gets it."""
        handle = self.own_until(second, kind, number)
        second.check(handle is not None, f"does not get {kind} id {number}, which {first.name()} has given back")
        self.check_unique()
        if kind == "jetty":
            self.probe(sender, second, number)
        self.drop(second, {"handle": handle, "id": number})

    def number_of_all(self, number, group):
        """Out of the numbers that are given to anybody: one has it at most."""
        got = {worker: self.own(worker, "jetty", number) for worker in group}
        holders = [worker.name() for worker, object in got.items() if object["id"] == number]
        check(len(holders) <= 1, f"jetty id {number} was asked for and is held by {', '.join(holders)}")
        self.check_unique()
        for worker, object in got.items():
            self.drop(worker, object)

    # ---- what must not work ----
    @staticmethod
    def one_instance(b, c):
        return b.daemon is not None and b.daemon == c.daemon and b.host is c.host

    def crossed_pairs(self):
        """Target and segment of two instances of a host, some of each sort. Applications of one daemon are one instance:
        what they have is told apart by ids, and memory is named by its token id alone (docs/daemon.md)."""
        sorts = {}
        for b in self.workers:
            for c in self.workers:
                if b is not c and b.host is c.host and not self.one_instance(b, c):
                    sort = (b is self.workers[0], b.daemon is None, c.daemon is None)
                    sorts.setdefault(sort, []).append((b, c))
        return [pair for pairs in sorts.values() for pair in self.dice.sample(pairs, min(2, len(pairs)))]

    def crossed(self):
        self.connect(self.all_pairs())
        wrong = []
        for b, c in self.crossed_pairs():
            a = self.dice.choice([worker for worker in self.workers if worker not in (b, c)])
            ended = a.must(f"crossed {b.index} {c.index} {c.uasid}")
            bad = [f"{way} {status}" for way, status in ended.items() if status not in ("refused", REM_ACCESS_ABORT)]
            if bad:
                wrong.append(f"{a.name()} to target of {b.name()} with segment of {c.name()}: {', '.join(bad)}")
        check(not wrong, "target of one process, segment of another: expected was a refusal by post or status "
              "REM_ACCESS_ABORT (8), but\n  " + "\n  ".join(wrong))
        must_all({worker: "verify" for worker in self.workers})

    def absent(self):
        eid = self.workers[0].eid
        nobody = socket.inet_aton(".".join([*wires.Addresses.address(0).split(".")[:3], "251"])).hex()
        holes = [("jetty", eid, self.free_numbers.pop()), ("jfr", eid, self.free_numbers.pop()),
                 ("jetty", eid, self.number_of_nobody()), ("jetty", eid[:24] + nobody, 5000)]
        # Of two neighbours one is embedded.
        self.nobody_has({worker: holes[worker.index // 2 % len(holes)] for worker in self.workers})

    def number_of_nobody(self):
        """One out of the blocks, which instances take at random: after `many` a random number may be somebody's."""
        held = {number for worker in self.workers for number in worker.objects}
        return next(n for n in iter(lambda: self.dice.randrange(300_000, 1_000_000), None) if n not in held)

    @staticmethod
    def try_imports(imports):
        return ask_all({worker: "absent " + " ".join(map(str, what)) for worker, what in imports.items()})

    def soon_nobody_has(self, imports):
        """A daemon frees what a dead application had when it sees that its connection has ended, not at once."""
        end = time.monotonic() + SOON
        while "imported" in " ".join(self.try_imports(imports).values()) and time.monotonic() < end:
            time.sleep(0.05)
        self.nobody_has(imports)

    def nobody_has(self, imports):
        """{worker: (kind, EID, id)}"""
        for worker, answer in self.try_imports(imports).items():
            kind, eid, number = imports[worker]
            text = f"importing {kind} {number} of EID {eid}, which nobody holds: "
            worker.check(answer.startswith("refused"), text + answer)
            said = dict(word.split("=") for word in answer.split()[1:])
            worker.check(int(said["errno"]) != 0, text + "errno is 0")
            worker.check(float(said["seconds"]) < SOON, text + f"took {said['seconds']} s")
            groups = ":".join(re.findall("....", eid))
            dotted = ".".join(str(byte) for byte in bytes.fromhex(eid[24:]))
            named = [line for line in worker.log if re.search(rf"\b{number}\b", line) and (groups in line or dotted in line)]
            worker.check(named, text + "no line of the log names both")

    # ---- kills ----
    def victims(self, cycle):
        """Processes that die, and a daemon with all its own."""
        embedded = [w for w in self.workers if w.daemon is None]
        at_daemons = [w for w in self.workers if w.daemon is not None]
        if (cycle == 0 and self.first == "daemon") or (cycle > 0 and self.dice.random() < 0.3):
            of = at_daemons[0] if cycle == 0 else self.dice.choice(at_daemons)
            group = [w for w in at_daemons if w.host is of.host and w.daemon == of.daemon]
            return group + [self.dice.choice(embedded)], of
        first = self.workers[0] if cycle == 0 else self.dice.choice(embedded)
        return [first, self.dice.choice(at_daemons)], None

    def kills(self):
        self.connect(self.all_pairs())
        begin, cycle = time.monotonic(), 0
        while cycle == 0 or time.monotonic() - begin < self.args.seconds:
            victims, daemon = self.victims(cycle)
            self.kill_cycle(victims, daemon)
            cycle += 1
        print(f"{self.where}: {cycle} times some were killed", flush=True)

    def kill_cycle(self, victims, daemon):
        print(f"{self.where}: killing " + ", ".join(v.name() for v in victims) + (" and that daemon" if daemon else ""),
              flush=True)
        live = [worker for worker in self.workers if worker not in victims]
        pairs = self.all_pairs()
        self.prepare(pairs)
        for worker, others in pairs.items():
            worker.order(f"exchange {indices(others)}")
        time.sleep(self.dice.random() * 0.02)
        if daemon:
            daemon.host.daemons[daemon.daemon].kill()
        for victim in victims:
            victim.kill()
        for worker in live:
            self.judge(worker, worker.answer(), victims)
        self.verify(self.all_pairs(live))
        self.soon_nobody_has({worker: ("jetty", victim.eid, victim.number) for worker, victim in zip(live, victims)})
        self.connect(self.all_pairs(live))  # whoever died, the others find each other
        self.round(self.all_pairs(live))
        if self.where != "namespaces" or self.args.seconds:
            self.inherit(live, self.dice.choice(victims))
        if daemon:
            daemon.host.daemons[daemon.daemon] = self.start_daemon_again(daemon)
        self.open(victims)
        self.check_unique()
        # A daemon that lives is the instance that was imported: what has the number there now is reached.
        gone = [v for v in victims if daemon or v.daemon is None]
        must_all({worker: f"stale {indices(gone)}" for worker in live})
        must_all({victim: "untouched" for victim in victims})
        self.connect(self.all_pairs())
        self.round(self.all_pairs())

    def inherit(self, live, victim):
        """Somebody else takes the number of a dead process: whoever imported it before does not reach him."""
        heir, sender = self.dice.sample([w for w in live if w.host is victim.host], 2)
        handle = self.own_until(heir, "jetty", victim.number)
        heir.check(handle is not None, f"does not get jetty id {victim.number}, which {victim.name()} held when it died")
        self.probe(sender, heir, victim.number)
        if not self.one_instance(heir, victim):
            must_all({worker: f"stale {victim.index}" for worker in live})
        heir.must("verify")
        self.drop(heir, {"handle": handle, "id": victim.number})

    def start_daemon_again(self, worker):
        old = worker.host.daemons[worker.daemon]
        os.unlink(old.socket)  # so that its return shows that the new one serves
        old.start()
        return old

    # ---- all of it ----
    def run(self):
        self.start()
        for part in self.args.only or PARTS:
            if part == "kills" and self.where == "users" and not self.args.seconds:
                continue
            begin = time.monotonic()
            self.part = part
            getattr(self, part)()
            print(f"{self.where}: {part} in {time.monotonic() - begin:.1f} s", flush=True)
        self.part = "end"
        ends = {worker.name(): worker.finish() for worker in self.workers}
        bad = {name: code for name, code in ends.items() if code != 0}
        check(not bad, f"processes did not end well: {bad}")
        for host in self.hosts:
            for daemon in host.daemons:
                check(daemon.stop() == 0, f"a daemon did not end well:\n{daemon.log()}")

    part = "start"

    def close(self):
        for worker in self.workers:
            worker.kill()
        for host in self.hosts:
            for daemon in host.daemons:
                daemon.kill()
        if self.namespaces:
            self.namespaces.close()


def run_place(args, where, directory):
    """"ok", "skipped", or why it failed."""
    try:
        world = World(args, where, directory)
    except wires.Skip as why:
        print(f"{where}: not run: {why}", flush=True)
        return "skipped"
    try:
        world.run()
        return "ok"
    except (Failure, RuntimeError, OSError) as failure:
        again = f"identity.py --where {where} --processes {args.processes} --seed {args.seed}"
        part = f" --only {world.part}" if world.part in PARTS else ""
        return f"{where}: FAIL in {world.part}: {failure}\nagain: {again}{part}"
    finally:
        world.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build", help="build directory")
    parser.add_argument("--where", choices=PLACES, action="append", help="may be repeated; default: all")
    parser.add_argument("--only", choices=PARTS, action="append", help="may be repeated; default: all")
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--jettys", type=int, default=300, help="of all others in the part many")
    parser.add_argument("--seconds", type=float, default=0, help="of kills at each place; default: once")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31))
    args = parser.parse_args()
    if args.processes < 8:
        parser.error("at least 8 processes are needed, so that every place has enough of each kind")
    args.identity = os.path.abspath(os.path.join(args.build, "tests/e2e/identity"))
    args.softubd = os.path.abspath(os.path.join(args.build, "dataplane/softubd/softubd"))
    print(f"seed {args.seed}", flush=True)
    results = []
    for where in args.where or PLACES:
        with tempfile.TemporaryDirectory(prefix="softub-id-") as directory:
            begin = time.monotonic()
            results.append(run_place(args, where, directory))
            if results[-1] == "ok":
                print(f"{where}: ok in {time.monotonic() - begin:.1f} s", flush=True)
            elif results[-1] != "skipped":
                print(f"{where}: failed, see the end", flush=True)
    # What failed comes last, for a log of which only the end is kept.
    failures = [result for result in results if result not in ("ok", "skipped")]
    print("\n".join(failures), end="\n" if failures else "", flush=True)
    return 1 if failures else SKIPPED if "skipped" in results else 0


if __name__ == "__main__":
    sys.exit(main())
