"""Looks where the cores are: for programs that ask between two values, and around whole commands."""
import json
import os
import selectors
import signal
import socket
import subprocess
import tempfile
import threading
import time
from contextlib import contextmanager

from .classes import agree

VARIABLE = "BENCH_PLACEMENT"  # names the socket, see common/placement.h
SECONDS = "0.005"  # for one look: hundreds of short batches, whose median counts
TRIES = 3  # how often a value is taken again, if the cores have moved meanwhile
PATIENCE = 5.0  # seconds until all processes of a program must have asked


class Judge:
    """Decides on the values of one command, from the placements before and after each."""

    def __init__(self):
        self.before, self.tries = None, 0
        self.kept, self.dropped, self.shared, self.placements = 0, 0, 0, []

    def look(self, placement, same_core=False):
        """(placement of the value that has ended, whether to take it again). The first look is before any value."""
        before, self.before = self.before, placement
        self.placements.append(placement)
        if before is None:
            return placement, False
        self.shared += same_core
        if agree(before, placement):
            self.kept, self.tries = self.kept + 1, 0
            return placement, False
        self.dropped += 1
        self.tries += 1
        if self.tries <= TRIES:
            return 0.0, True
        self.tries = 0
        return 0.0, False


class Watch:
    """Answers programs that ask where the cores are. One command at a time; a thread of its own."""

    def __init__(self, limits, cores=None):
        self.limits, self.cores = limits, sorted(cores or os.sched_getaffinity(0))
        self.judge, self.strangers, self.waiting, self.since = Judge(), [], [], 0.0
        self.possible = limits is not None and len(self.cores) >= 2
        self.directory = tempfile.TemporaryDirectory(prefix="bench-")
        self.path = os.path.join(self.directory.name, "placement")
        self.selector = selectors.DefaultSelector()
        if self.possible:
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(self.path)
            listener.listen(128)
            self.selector.register(listener, selectors.EVENT_READ)
            threading.Thread(target=self.serve, args=(listener,), daemon=True).start()

    def close(self):
        self.possible = False  # ends the thread, within a second
        self.directory.cleanup()

    def environment(self):
        return {VARIABLE: self.path} if self.possible else {}

    def look(self, cores=()):
        """Half a round trip of a cache line between two of these cores, in ns; 0: not known. Where less than two are
        given, one or two others take part. Strangers stand still meanwhile."""
        if not self.possible:
            return 0.0
        pair = (sorted(set(cores)) + [core for core in self.cores if core not in cores])[:2]
        self.tell_strangers(signal.SIGSTOP)
        try:
            result = subprocess.run([str(self.limits), "placement", f"{pair[0]},{pair[1]}", SECONDS],
                                    capture_output=True, text=True, timeout=20)
            return float(json.loads(result.stdout)["rows"][0]["value"])
        except (OSError, ValueError, LookupError, subprocess.TimeoutExpired):
            return 0.0
        finally:
            self.tell_strangers(signal.SIGCONT)

    def tell_strangers(self, number):
        for stranger in self.strangers:
            stranger.send_signal(number)

    @contextmanager
    def command(self, strangers=0):
        """While a command runs, beside so many strangers: yields what decides on its values."""
        self.judge = Judge()
        self.strangers = [subprocess.Popen([str(self.limits), "busy", str(core)]) for core in self.cores[:strangers]]
        try:
            yield self.judge
        finally:
            for stranger in self.strangers:
                stranger.kill()
                stranger.wait()
            self.strangers = []

    def serve(self, listener):
        while self.possible:
            for key, _ in self.selector.select(1.0):
                if key.fileobj is listener:
                    self.selector.register(listener.accept()[0], selectors.EVENT_READ)
                else:
                    self.hear(key.fileobj)
            if self.waiting and time.monotonic() - self.since > PATIENCE:
                self.answer(0.0, False)  # somebody is missing: who asked goes on, and nothing is known

    def hear(self, connection):
        try:
            words = connection.recv(64).split()
        except OSError:
            words = []
        if len(words) != 2:
            self.selector.unregister(connection)
            connection.close()
            self.waiting = [one for one in self.waiting if one[0] is not connection]
            return
        if not self.waiting:
            self.since = time.monotonic()
        self.waiting.append((connection, int(words[1])))
        if len(self.waiting) >= int(words[0]):
            cores = {core for _, core in self.waiting}
            self.answer(*self.judge.look(self.look(cores), len(self.waiting) > 1 and len(cores) == 1))

    def answer(self, placement, again):
        waiting, self.waiting = self.waiting, []
        for connection, _ in waiting:
            try:
                connection.sendall(f"{placement:.1f} {'again' if again else 'keep'}\n".encode())
            except OSError:
                pass  # has ended: its command tells
