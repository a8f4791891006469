"""Runs commands of several libraries that take turns value by value.

All commands are started, one after the other, and sleep when they ask for a turn (common/placement.h). Then each measures its
first value while the others sleep, between two measurements of the placement. This repeats for the number of turns, A B C A B C.
Then each measures its second value. So values that are compared are measured within a second or two, during which the cores
mostly stay where they are.
"""
import os
import selectors
import signal
import socket
import subprocess
import tempfile
import threading
import time
import uuid

from . import scheduling
from .execute import Run, kill_marked, run_command
from .placement import Judge

VARIABLE = "BENCH_PLACEMENT"  # names the socket
PATIENCE = 5.0  # seconds after the first process of a program asks, within which all others must ask


class Command:
    """One library's command line of a case."""

    def __init__(self, words, environment, plain=False, turns=None):
        self.words, self.environment, self.plain, self.turns = words, environment, plain, turns


class Job:
    """A running command, and its processes that have asked for a turn and sleep until they get it."""

    def __init__(self, key, command, path):
        self.key, self.command, self.path = key, command, path
        self.waiting, self.asked, self.since = [], False, 0.0
        self.partial = False  # whether some of its processes never ask for a turn
        self.answer = "0 keep"  # answer to the previous value; the first time there is none
        self.mark, self.run = uuid.uuid4().hex, None
        self.looks, self.dropped, self.shared = [], 0, 0

    def cores(self):
        return {core for _, core in self.waiting}


class Stage:
    """The commands of one case, which take turns."""

    def __init__(self, looker, commands, turns, timeout, strangers=0, ordinary=False):
        self.looker, self.turns, self.timeout, self.strangers = looker, turns, timeout, strangers
        self.commands, self.loops, self.last = commands, [], None
        self.ordinary = ordinary and scheduling.is_real_time()  # whether processes get the ordinary scheduling class
        self.selector = selectors.DefaultSelector()
        self.ended, self.tell_ended = socket.socketpair()
        self.selector.register(self.ended, selectors.EVENT_READ)

    def run(self):
        """Runs all commands to their end. Returns {key: Run}."""
        jobs = []
        with tempfile.TemporaryDirectory(prefix="bench-") as directory:
            try:
                self.bring_strangers()
                for number, (key, command) in enumerate(self.commands.items()):
                    jobs.append(Job(key, command, os.path.join(directory, str(number))))
                    self.start(jobs[-1])
                while any(job.asked for job in jobs):
                    self.one_value([job for job in jobs if job.asked])
            finally:
                for job in jobs:
                    if not job.run:
                        kill_marked(job.mark, None)
                self.send_strangers(signal.SIGKILL)
                for key in list(self.selector.get_map().values()):
                    key.fileobj.close()
                self.tell_ended.close()
                self.selector.close()
        return {job.key: job.run for job in jobs}

    def start(self, job):
        """Starts a command and waits until it asks for its first turn. If it ends without asking, the placement is measured before and
        after the whole command."""
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(job.path)
        listener.listen(128)
        self.selector.register(listener, selectors.EVENT_READ, job)
        before = self.looker.look(self.looker.pair())
        threading.Thread(target=self.execute, args=(job,), daemon=True).start()
        self.wait(job)
        if job.run:
            placement, _ = Judge(1).decide(before, self.looker.look(self.looker.pair()))
            job.run.rows = tuple(row._replace(placement=placement) for row in job.run.rows)
            job.run.dropped = 0 if placement else len(job.run.rows)

    def execute(self, job):
        run = run_command(job.command.words, job.command.environment | {VARIABLE: job.path}, None, job.command.plain,
                          job.mark)
        job.run = job.run or run
        try:
            self.tell_ended.send(b"x")
        except OSError:
            pass  # no process waits any more

    def one_value(self, jobs):
        """Lets all jobs measure their current value, as many times as needed."""
        judges = {job: Judge(job.command.turns or self.turns) for job in jobs}
        while judges:
            for job in list(judges):
                if not self.one_turn(job, judges[job]):
                    del judges[job]

    def one_turn(self, job, judge):
        """Lets a job measure its current value once. Returns whether the measurement must be repeated."""
        before = self.look(job)
        waiting, job.waiting, job.asked = job.waiting, [], False
        self.send_strangers(signal.SIGCONT)
        for connection, _ in waiting:
            try:
                connection.sendall((job.answer + "\n").encode())
            except OSError:
                pass  # the process has ended; its command reports the status
        self.wait(job)
        self.send_strangers(signal.SIGSTOP)
        self.last = None
        if not job.asked:
            return False
        if job.partial:  # its processes continue on their own, and their values don't count
            job.answer = "0 keep"
            return False
        placement, again = judge.decide(before, self.look(job))
        job.dropped += not placement
        job.shared += len(job.waiting) > 1 and len(job.cores()) == 1
        job.answer = f"{placement:.1f} {'again' if again else 'keep'}"
        return again

    def look(self, job):
        """Measures the placement. The measurement after a turn also serves as the one before the next turn on the same cores."""
        pair = self.looker.pair(job.cores())
        if not self.last or self.last[0] != pair:
            self.last = pair, self.looker.look(pair)
        job.looks.append(self.last[1])
        return self.last[1]

    def wait(self, job):
        """Waits until all processes of the job have asked for a turn, or the job has ended; ends the job if that takes too long."""
        deadline = time.monotonic() + self.timeout
        while not job.asked and not job.run:
            for key, _ in self.selector.select(1.0):
                if key.fileobj is self.ended:
                    self.ended.recv(64)
                elif key.fileobj.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                    self.selector.register(key.fileobj.accept()[0], selectors.EVENT_READ, key.data)
                else:
                    self.hear(key.fileobj, key.data)
            if job.waiting and not job.asked and time.monotonic() - job.since > PATIENCE:
                job.asked = job.partial = True
            if time.monotonic() > deadline:
                job.run = Run("hang")
                kill_marked(job.mark, None)
        if job.run:
            job.run.dropped, job.run.shared, job.run.looks = job.dropped, job.shared, job.looks

    def hear(self, connection, job):
        try:
            words = connection.recv(64).split()
        except OSError:
            words = []
        if len(words) != 2:
            self.selector.unregister(connection)
            connection.close()
            job.waiting = [one for one in job.waiting if one[0] is not connection]
            return
        if not job.waiting:
            job.since = time.monotonic()
        if self.ordinary:
            scheduling.make_ordinary(scheduling.pid_of(connection))
        job.waiting.append((connection, int(words[1])))
        job.asked = len(job.waiting) >= int(words[0])

    def bring_strangers(self):
        """Starts busy loops, each on its own core; they are stopped except while a value is measured."""
        self.loops = [subprocess.Popen([str(self.looker.limits), "busy", str(core)])
                      for core in self.looker.cores[: self.strangers]]
        if self.ordinary:
            for loop in self.loops:
                scheduling.make_ordinary(loop.pid)
        self.send_strangers(signal.SIGSTOP)

    def send_strangers(self, number):
        for loop in self.loops:
            loop.send_signal(number)
        if number == signal.SIGKILL:
            for loop in self.loops:
                loop.wait()
