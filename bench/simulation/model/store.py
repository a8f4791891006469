"""How processes find each other: addresses fetched on demand, or gathered for all in advance.

A fetch passes from the requesting host's daemon through the tree to the daemon of the host in question and back, with
the addresses of all processes of that host. The all-gather passes up the tree and down again. As implemented, a host that
needs many others fetches from a few and asks the root for all; the first request makes the root gather them.
"""
import dataclasses
import random

from .engine import Link, Machine, Simulation, Worker
from .topology import Tree

HEAD = 64      # bytes of a frame without the addresses
ADDRESS = 4    # bytes of one process's address

# Constants of src/launch/port_search and src/launch/tree/gathering.
FEW = 8                # hosts that are fetched one by one
SHORT_PATIENCE = 0.002  # minimum time between two requests for the table by one daemon, s


def window(hosts):
    """Returns the number of concurrent fetches of one host."""
    return max(1, min(4, 256 // hosts))


@dataclasses.dataclass
class Outcome:
    seconds: float = 0.0      # time until the last process has its addresses
    root_seconds: float = 0.0  # processor time at the root's daemon
    busiest: float = 0.0      # processor time at the busiest daemon
    frames: int = 0


class Store:
    def __init__(self, costs, hosts, per_host, fanout=16, seed=1):
        self.costs = costs
        self.per_host = per_host
        self.simulation = Simulation()
        self.tree = Tree(hosts, fanout)
        self.random = random.Random(seed)
        self.daemons = [Worker(Machine(self.simulation, 1)) for _ in range(hosts)]
        self.links = [Link(self.simulation, costs.bandwidth, costs.rtt / 2) for _ in range(hosts)]
        self.outcome = Outcome()
        self.found_at = 0.0

    def found(self, *_):
        self.found_at = self.simulation.now

    def send(self, source, target, size, then, *arguments):
        self.outcome.frames += 1
        cost = self.costs.frame + size * self.costs.byte
        self.daemons[source].run(cost, self.links[source].send, size, self.receive, target, cost, then, arguments)

    def receive(self, target, cost, then, arguments):
        self.daemons[target].run(cost, then, *arguments)

    def finish(self):
        self.simulation.run()
        self.outcome.seconds = self.found_at
        self.outcome.root_seconds = self.daemons[0].busy
        self.outcome.busiest = max(daemon.busy for daemon in self.daemons)
        return self.outcome

    # On demand

    def fetch(self, host, target):
        path = self.tree.path(host, target)
        self.step(path, 0, HEAD, self.answer)

    def step(self, path, at, size, then):
        if at + 1 == len(path):
            then(path)
        else:
            self.send(path[at], path[at + 1], size, self.step, path, at + 1, size, then)

    def answer(self, path):
        self.step(path[::-1], 0, HEAD + ADDRESS * self.per_host, self.found)

    def on_demand(self, peers):
        """Simulates that every process needs the addresses of `peers` random others at the same instant. A host asks once for each other
        host."""
        hosts = self.tree.hosts
        for host in range(hosts):
            wanted = {self.random.randrange(hosts) for _ in range(self.per_host * peers)} - {host}
            for target in wanted:
                self.fetch(host, target)
        return self.finish()

    def neighbours(self):
        """Simulates that every process needs only the next process's address, so each host asks for one other host."""
        hosts = self.tree.hosts
        for host in range(hosts):
            if hosts > 1:
                self.fetch(host, (host + 1) % hosts)
        return self.finish()

    # All-gather

    def all_gather(self):
        self.missing = [len(children) for children in self.tree.children]
        for host in range(self.tree.hosts):
            if self.missing[host] == 0:
                self.gathered(host)
        return self.finish()

    def gathered(self, host):
        parent = self.tree.parent[host]
        if parent < 0:
            self.spread(0)
            return
        size = HEAD + ADDRESS * self.per_host * (self.tree.end[host] - host)
        self.send(host, parent, size, self.collect, parent)

    def collect(self, host):
        self.missing[host] -= 1
        if self.missing[host] == 0:
            self.gathered(host)

    def spread(self, host):
        self.found()
        size = HEAD + ADDRESS * self.per_host * self.tree.hosts
        for child in self.tree.children[host]:
            self.send(host, child, size, self.spread, child)

    # As implemented

    def as_built(self, peers):
        """Simulates the implementation: every process needs the addresses of `peers` random others at the same instant."""
        hosts = self.tree.hosts
        self.asked = [False] * hosts
        self.waiting = [False] * hosts
        self.gathering = False
        self.missing = [len(children) for children in self.tree.children]
        for host in range(hosts):
            wanted = list({self.random.randrange(hosts) for _ in range(self.per_host * peers)} - {host})
            many = len(wanted) > FEW
            for target in wanted[:window(hosts)] if many else wanted:
                self.fetch(host, target)
            if many:
                self.daemons[host].run(0.0, self.want, host)
        return self.finish()

    def want(self, host):
        if host == 0:
            if not self.gathering:
                self.gathering = True
                self.tell_all(0)
        elif not self.asked[host]:
            self.asked[host] = True
            self.send(host, self.tree.parent[host], HEAD, self.want, self.tree.parent[host])
        elif not self.waiting[host]:
            self.waiting[host] = True
            self.simulation.after(SHORT_PATIENCE, self.want_again, host)

    def want_again(self, host):
        self.waiting[host] = False
        self.send(host, self.tree.parent[host], HEAD, self.want, self.tree.parent[host])

    def tell_all(self, host):
        for child in self.tree.children[host]:
            self.send(host, child, HEAD, self.tell_all, child)
        if self.missing[host] == 0:
            self.gathered(host)
