"""The base of the tests of multicast groups: runs of tests/lab/casts.c and gathers.c on hosts behind a switch with IGMP snooping."""
import re
import time

from .cases import HostsTest
from .jobs import GRACE, WITHIN

SCHEMES = ("basic", "lazy", "pool")


class GroupsTest(HostsTest):
    hosts = 6

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.casts = cls.build.program("lab/casts")
        cls.gathers = cls.build.program("lab/gathers")
        cls.lab.groups().snoop()

    def tearDown(self):
        self.lab.groups().free()

    def start_cast(self, *words, scheme="lazy", ranks=None, environment=None, options=(), program=None):
        environment = {"STARLING_MULTICAST": scheme} | (environment or {})
        return self.start_job([*options, program or self.casts, *words], self.hosts, ranks or self.hosts, environment=environment)

    def cast(self, *words, within=WITHIN, **options):
        """Runs the program with one rank per host, or with the given number of ranks."""
        outcome = self.end_job(self.start_cast(*words, **options), within=within)
        self.assertEqual(outcome.code, 0, outcome)
        return outcome

    def gather(self, *words, **options):
        """Runs tests/lab/gathers.c instead."""
        return self.cast(*words, program=self.gathers, **options)

    def start_lasting(self, **options):
        """Starts broadcasts that last until finish(). Returns the job when it uses a group."""
        self.end = self.end_file()
        job = self.start_cast("until", self.end, **options)
        self.wait_until(job, lambda: self.progress(job)[1] > 0)
        return job

    def progress(self, job):
        """Returns the number of rank 0's broadcasts so far, and of those by a group among them."""
        lines = re.findall(r"^rank 0: (\d+) broadcasts, (\d+) by a group$", job.output(), re.M)
        return [int(number) for number in lines[-1]] if lines else [0, 0]

    def broadcast(self, job, count):
        """Waits for `count` further broadcasts of rank 0."""
        wanted = self.progress(job)[0] + count
        self.wait_until(job, lambda: self.progress(job)[0] >= wanted)

    def wait_until(self, job, condition):
        deadline = time.monotonic() + WITHIN
        while not condition():
            self.assertIsNone(job.process.poll(), job.errors())
            self.assertLess(time.monotonic(), deadline, job.output()[-1000:] + job.errors())
            time.sleep(0.02)

    def finish(self, job, grace=GRACE):
        self.end.touch()
        outcome = self.end_job(job, grace=grace)
        self.assertEqual(outcome.code, 0, outcome)
        return outcome

    def sent(self, rails=1):
        """Returns the bytes that all hosts together have sent so far."""
        return [sum(host["bytes_from"] for host in self.lab.groups().frames(rail).values()) for rail in range(rails)]

    def bytes_of(self, *words, **options):
        """Returns the bytes that all hosts together have sent during a run."""
        before = self.sent()[0]
        self.cast(*words, **options)
        return self.sent()[0] - before

    def check_fewest(self, bytes_per_byte, most):
        """On a machine with many other processes, heartbeats and repeats add bytes. So one of three counts suffices."""
        counts = [bytes_per_byte()]
        while min(counts) >= most and len(counts) < 3:
            counts.append(bytes_per_byte())
        self.assertLess(min(counts), most, counts)

    def counted(self, outcome):
        """Returns the counters that the program printed: {name: number}."""
        return {name: int(number) for name, number in re.findall(r"^(\w+): (\d+)$", outcome.output, re.M)}
