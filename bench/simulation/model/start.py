"""Start and end of a job over many hosts: agents, the tree of daemons, the order down, processes, reports up.

Host 0 is the root: mpiexec, or the first of the standing daemons. It has processes of the job like the others.
"""
import dataclasses
import math
import random

from .engine import Link, Machine, Simulation, Worker, share_out
from .topology import Tree

SMALL_FRAME = 64  # bytes
PATIENCE = 0.05   # seconds that a daemon waits for its children before it forwards the messages it has (tree/gathering.cpp)


@dataclasses.dataclass
class Shape:
    """The size and the kind of a start."""
    hosts: int
    per_host: int
    fanout: int = 16
    cores: int = 64            # number of cores of each host
    shared_cores: int = 0      # cores of the one machine that all hosts share, as in the lab; 0: each host is a machine
    standing: bool = False     # whether the daemons are running and connected already
    seed: int = 1


@dataclasses.dataclass
class Times:
    """Seconds since mpiexec's start."""
    daemons_up: float = 0.0    # time at which the root knows that all daemons run
    ordered: float = 0.0       # time at which the last host has its order
    executed: float = 0.0      # time at which the last process has been exec'ed
    initialized: float = 0.0   # time at which the last process is at the end of MPI_Init
    known: float = 0.0         # time at which the root knows that all processes are initialized
    ended: float = 0.0         # time at which mpiexec ends, if all processes end directly after MPI_Init
    events: int = 0
    root_busy: float = 0.0     # processor time of the root's daemon
    agent_processor: float = 0.0


class Start:
    def __init__(self, costs, shape):
        self.costs = costs
        self.shape = shape
        self.times = Times()
        self.simulation = Simulation()
        self.tree = Tree(shape.hosts, shape.fanout)
        self.random = random.Random(shape.seed)
        hosts = range(shape.hosts)
        if shape.shared_cores:
            machine = Machine(self.simulation, shape.shared_cores)
            self.machines = [machine] * shape.hosts
        else:
            self.machines = [Machine(self.simulation, shape.cores) for _ in hosts]
        self.daemons = [Worker(self.machines[h]) for h in hosts]
        self.links = [Link(self.simulation, costs.bandwidth, costs.rtt / 2) for _ in hosts]
        self.to_finish = [shape.per_host] * shape.hosts
        self.below = [len(self.tree.children[h]) for h in hosts]  # children that have not sent their farewell
        self.left = {}
        self.gatherings = {}

    def run(self):
        self.daemons[0].run(self.costs.mpiexec, self.begin)
        self.simulation.run()
        self.times.events = self.simulation.events
        self.times.root_busy = self.daemons[0].busy
        return self.times

    # Counts expected events: `then` is called after `number` of them.

    def count(self, what, number, then):
        self.left[what] = (number, then)
        if number == 0:
            self.simulation.after(0, then)

    def tick(self, what, times=1):
        number, then = self.left[what]
        self.left[what] = (number - times, then)
        if number == times:
            then()

    # Frames

    def send(self, source, target, size, then, *arguments):
        cost = self.costs.frame + size * self.costs.byte
        self.daemons[source].run(cost, self.links[source].send, size, self.receive, target, cost, then, arguments)

    def receive(self, target, cost, then, arguments):
        self.daemons[target].run(cost, then, *arguments)

    def report(self, host, what, at=None):
        """Sends a message from a host to the root, from daemon to daemon."""
        at = host if at is None else at
        if at == 0:
            self.daemons[0].run(self.costs.report if host else 0.0, self.tick, what)
        else:
            self.send(at, self.tree.parent[at], self.costs.report_bytes, self.report, host, what, self.tree.parent[at])

    def gather(self, what, at, hosts=1):
        """Sends the same message from many hosts to the root. Each daemon waits for the messages of all its children, but for PATIENCE at
        most, and forwards them together."""
        if at == 0:
            self.daemons[0].run(self.costs.report, self.tick, what, hosts)
            return
        key = (what, at)
        missing, held = self.gatherings.get(key, (self.tree.end[at] - at, 0))
        if held == 0 and missing > hosts:
            self.simulation.after(PATIENCE, self.gather_up, what, at)
        self.gatherings[key] = (missing - hosts, held + hosts)
        if missing == hosts:
            self.gather_up(what, at)

    def gather_up(self, what, at):
        missing, held = self.gatherings[(what, at)]
        if held == 0:
            return
        self.gatherings[(what, at)] = (missing, 0)
        parent = self.tree.parent[at]
        self.send(at, parent, self.costs.report_bytes, self.gather, what, parent, held)

    def order(self, host, size, then):
        """Sends a message from the root to all hosts; `then` handles it on each, after it has been forwarded."""
        for child in self.tree.children[host]:
            self.send(host, child, size, self.order, child, size, then)
        self.daemons[host].run(0.0, then, host)

    # Daemons

    def begin(self):
        self.count("up", 0 if self.shape.standing else self.shape.hosts - 1, self.all_up)
        if not self.shape.standing:
            self.grow(0)

    def grow(self, host):
        for child in self.tree.children[host]:
            self.daemons[host].run(self.costs.agent_fork, self.agent, host, child)

    def agent(self, parent, host):
        self.times.agent_processor += self.costs.agent_local + self.costs.agent_remote
        self.machines[parent].run(self.costs.agent_local, self.login, parent, host)

    def login(self, parent, host):
        wait = self.costs.agent_wait
        if self.costs.agent_spread:
            wait *= math.exp(self.random.gauss(0, self.costs.agent_spread))
        self.simulation.after(wait, self.machines[host].run, self.costs.agent_remote, self.node, parent, host)

    def node(self, parent, host):
        self.daemons[host].run(self.costs.node_start, self.connect, parent, host)

    def connect(self, parent, host):
        # A handshake: TCP's own exchange, followed by hello, challenge and proof.
        self.daemons[host].run(self.costs.handshake, self.simulation.after, 2.5 * self.costs.rtt, self.accept, parent,
                               host)

    def accept(self, parent, host):
        self.daemons[parent].run(self.costs.handshake, self.attached, parent, host)

    def attached(self, parent, host):
        below = self.tree.end[host] - host - 1
        if below:
            self.send(parent, host, SMALL_FRAME + below * self.costs.grow_bytes, self.grow, host)
        self.report(host, "up")

    # The start of the job

    def all_up(self):
        costs, shape = self.costs, self.shape
        self.times.daemons_up = self.simulation.now
        self.count("arrived", shape.hosts, self.all_arrived)
        self.count("started", shape.hosts, lambda: None)
        self.count("gone", shape.hosts, self.all_gone)
        size = costs.order_bytes + shape.hosts * costs.host_bytes
        processes = shape.hosts * shape.per_host
        self.daemons[0].run(processes * costs.place + shape.hosts * costs.host_entry, self.order, 0, size, self.take_order)

    def take_order(self, host):
        self.times.ordered = self.simulation.now
        cost = self.costs.segment + self.shape.hosts * self.costs.host_entry
        self.daemons[host].run(cost, self.start_all if not self.shape.shared_cores else self.start_one, host, 0)

    def start_one(self, host, index):
        """Starts a host's processes one by one, if all hosts share one machine's cores; each process uses a core from its start on."""
        def started():
            self.times.executed = self.simulation.now
            self.machines[host].run(self.costs.rank_init, self.initialized, host)
            if index + 1 < self.shape.per_host:
                self.start_one(host, index + 1)
            else:
                self.gather("started", host)
        self.daemons[host].run(self.costs.rank_start, started)

    def start_all(self, host, _):
        """Starts the processes of a host that is a separate machine: no other host uses its cores."""
        costs, shape = self.costs, self.shape
        ready = [costs.rank_start * (i + 1) for i in range(shape.per_host)]
        begin = self.simulation.now
        others = max(shape.cores - 1, 1)  # the daemon uses one core
        last = max(share_out([costs.rank_init] * shape.per_host, others, ready))
        self.daemons[host].run(ready[-1], self.executed, host)
        for _ in range(shape.per_host - 1):
            self.to_finish[host] -= 1
        self.simulation.at(begin + last, self.initialized, host)

    def executed(self, host):
        self.times.executed = self.simulation.now
        self.gather("started", host)

    def initialized(self, host):
        self.to_finish[host] -= 1
        if self.to_finish[host] == 0:
            self.times.initialized = self.simulation.now
            self.gather("arrived", host)

    def all_arrived(self):
        self.times.known = self.simulation.now
        self.count("ending", 1, lambda: None)
        self.order(0, SMALL_FRAME, self.end)

    # The end of the job: processes end when they learn that all have arrived, as after a barrier

    def end(self, host):
        shape, costs = self.shape, self.costs
        rounds = math.ceil(shape.per_host / (shape.shared_cores or shape.cores))
        self.machines[host].run(costs.rank_exit * (shape.per_host if shape.shared_cores else rounds), self.reap, host)

    def reap(self, host):
        self.daemons[host].run(self.costs.reap * self.shape.per_host, self.gather, "gone", host)

    def all_gone(self):
        if self.shape.standing:
            self.times.ended = self.simulation.now
        else:
            self.order(0, SMALL_FRAME, self.leave)

    def leave(self, host):
        if self.below[host] == 0:
            self.farewell(host)

    def farewell(self, host):
        if host == 0:
            self.times.ended = self.simulation.now
        else:
            self.send(host, self.tree.parent[host], SMALL_FRAME, self.bye, self.tree.parent[host])

    def bye(self, host):
        self.below[host] -= 1
        if self.below[host] == 0:
            self.farewell(host)


def start(costs, **shape):
    """Simulates one start. Returns its Times."""
    return Start(costs, Shape(**shape)).run()


def spawn(costs, children, hosts, universe, **shape):
    """Returns the seconds until `children` processes, over `hosts` of a universe's hosts with standing daemons, are at the end of
    MPI_Init and their parent knows it. The parent's request to the root and the reply pass through its daemon."""
    fanout = shape.get("fanout", 16)
    depth = max(Tree(universe, fanout).depth)
    small = costs.frame + costs.report_bytes * costs.byte
    way = (depth + 1) * (2 * small + costs.rtt / 2 + costs.report_bytes / costs.bandwidth)  # +1 for the hop between process and daemon
    quiet = costs.with_(mpiexec=0.0)
    times = start(quiet, hosts=hosts, per_host=math.ceil(children / hosts), standing=True, **shape)
    # The hosts of the job are nodes of the whole tree of daemons, so orders and reports travel further than in a tree of these hosts alone.
    own_depth = max(Tree(hosts, fanout).depth)
    extra = (depth - own_depth) * (2 * small + costs.rtt / 2) if depth > own_depth else 0.0
    return way + times.known + 2 * extra + way
