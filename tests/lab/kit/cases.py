"""The base of the tests that run jobs over the hosts of a lab."""
import sys
import unittest

from . import places
from .jobs import GRACE, WITHIN, Build, Job
from .lab import Lab
from .places import Problem


class HostsTest(unittest.TestCase):
    """Creates one lab for all tests of a class. A job must leave nothing on any host."""

    hosts, rails = 2, 1

    @classmethod
    def setUpClass(cls):
        cls.build = Build()
        cls.traffic = cls.build.program("lab/traffic")
        cls.lab = cls.enterClassContext(Lab.temporary(cls.hosts, rails=cls.rails))

    def end_file(self):
        """Returns the path of a file that does not exist yet, for programs that last until they see it."""
        file = self.lab.shared() / "end"
        file.unlink(missing_ok=True)
        return file

    def start_job(self, words, hosts=2, ranks=2, **options):
        return Job(self.lab, self.build, words, hosts, ranks, **options)

    def end_job(self, job, within=WITHIN, grace=GRACE):
        outcome = job.end(within, grace)
        self.assertIsNotNone(outcome.code, outcome)
        self.assertEqual(outcome.left, [], outcome)
        return outcome

    def run_job(self, words, hosts=2, ranks=2, within=WITHIN, grace=GRACE, **options):
        return self.end_job(self.start_job(words, hosts, ranks, **options), within, grace)


def main():
    try:
        places.check_machine()
        missing = Build().missing()
        if missing:
            raise Problem(missing)
    except Problem as reason:
        print(f"{'skipped' if reason.code == places.SKIPPED else 'failed'}: {reason}")
        sys.exit(reason.code)
    unittest.main(verbosity=2)
