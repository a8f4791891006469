"""A discrete-event simulator: a clock, processors that run one task after the other, and links.

Times are seconds. Nothing is random here: models use their own generator, so a seed fixes a run.
"""
import heapq
from collections import deque


class Simulation:
    """Runs the scheduled events in the order of time; at equal times in the order of scheduling."""

    def __init__(self):
        self.now = 0.0
        self.events = 0
        self._queue = []
        self._count = 0

    def at(self, time, action, *arguments):
        self._count += 1
        heapq.heappush(self._queue, (time, self._count, action, arguments))

    def after(self, delay, action, *arguments):
        self.at(self.now + delay, action, *arguments)

    def run(self):
        """Runs until no event is left. Returns the time of the last event."""
        queue = self._queue
        while queue:
            self.now, _, action, arguments = heapq.heappop(queue)
            self.events += 1
            action(*arguments)
        return self.now


class Machine:
    """Cores that run tasks in the order of arrival, each to its end."""

    def __init__(self, simulation, cores):
        self.simulation = simulation
        self.free = cores
        self.busy = 0.0  # core seconds
        self._waiting = deque()

    def run(self, cost, then, *arguments):
        if self.free > 0:
            self.free -= 1
            self.busy += cost
            self.simulation.after(cost, self._end, then, arguments)
        else:
            self._waiting.append((cost, then, arguments))

    def _end(self, then, arguments):
        if self._waiting:
            cost, next_then, next_arguments = self._waiting.popleft()
            self.busy += cost
            self.simulation.after(cost, self._end, next_then, next_arguments)
        else:
            self.free += 1
        then(*arguments)


class Worker:
    """A single-threaded process on a machine, which runs one task after the other."""

    __slots__ = ("machine", "busy", "_idle", "_waiting")

    def __init__(self, machine):
        self.machine = machine
        self.busy = 0.0
        self._idle = True
        self._waiting = deque()

    def run(self, cost, then, *arguments):
        self._waiting.append((cost, then, arguments))
        if self._idle:
            self._idle = False
            self._next()

    def _next(self):
        cost, then, arguments = self._waiting.popleft()
        self.busy += cost
        self.machine.run(cost, self._end, then, arguments)

    def _end(self, then, arguments):
        then(*arguments)
        if self._waiting:
            self._next()
        else:
            self._idle = True


class Link:
    """A host's outgoing link: bytes are sent one after the other and arrive a latency later."""

    __slots__ = ("simulation", "seconds_per_byte", "latency", "_free_at")

    def __init__(self, simulation, bytes_per_second, latency):
        self.simulation = simulation
        self.seconds_per_byte = 1 / bytes_per_second
        self.latency = latency
        self._free_at = 0.0

    def send(self, size, then, *arguments):
        start = max(self.simulation.now, self._free_at)
        self._free_at = start + size * self.seconds_per_byte
        self.simulation.at(self._free_at + self.latency, then, *arguments)


def share_out(costs, cores, ready=None):
    """Returns a list of the end times of tasks that arrive in order at times `ready` (default: all at 0) at `cores` free cores.

    The result is that of Machine, but without events: for hosts on which nothing else runs.
    """
    free = [0.0] * cores
    ends = []
    for index, cost in enumerate(costs):
        begin = heapq.heappop(free)
        if ready is not None and ready[index] > begin:
            begin = ready[index]
        heapq.heappush(free, begin + cost)
        ends.append(begin + cost)
    return ends
