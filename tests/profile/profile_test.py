#!/usr/bin/env python3
"""What `mpiexec --profile` writes of programs whose traffic is known (pattern.c).

    profile_test.py BUILD [TestClass[.test]]...
"""
import gzip
import json
import pathlib
import signal
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "launch"))
from launcher_test import BUILD, MPIEXEC, Case  # noqa: E402
from hosts_test import STARLING, HostsCase  # noqa: E402

PATTERN = str(BUILD / "tests" / "profile" / "pattern")
RING = [4, 400, 2, 8000, 1, 100000]  # messages and bytes, by size, to the right neighbour


class Profile:
    """A file as its reader sees it: sums over the occurrences of each phase."""

    def __init__(self, path):
        path = pathlib.Path(path)
        with (gzip.open if path.name.endswith(".gz") else open)(path, "rt") as stream:
            self.lines = [json.loads(line) for line in stream]
        self.jobs = [line for line in self.lines if line["kind"] == "job"]
        self.phases = [line for line in self.lines if line["kind"] == "phase"]
        self.ends = {(line["job"], line["rank"]): line["how"] for line in self.lines if line["kind"] == "end"}

    def of(self, phase, rank, job=0):
        return [p for p in self.phases if (p["phase"], p["rank"], p["job"]) == (phase, rank, job)]

    def occurrences(self, phase, rank, job=0):
        """Each of them, once: the numbers of the occurrences that lines tell of."""
        return sorted(n for p in self.of(phase, rank, job) for n in range(p["from"], p["to"] + 1))

    def sent(self, phase, rank, job=0):
        """(job, rank) of the receiver → messages and bytes by size."""
        sums = {}
        for line in self.of(phase, rank, job):
            for peer in line["peers"]:
                row = sums.setdefault((peer[0], peer[1]), [0] * 6)
                for i in range(6):
                    row[i] += peer[2 + i]
        return sums

    def calls(self, phase, rank):
        """(kind, size class) → calls, bytes."""
        sums = {}
        for line in self.of(phase, rank):
            for site, communicator, size, kind, size_class, algorithm, calls, of_bytes, _ in line["collectives"]:
                before = sums.get((kind, size_class, communicator), (0, 0))
                sums[kind, size_class, communicator] = (before[0] + calls, before[1] + of_bytes)
        return sums


class ProfileCase(Case):
    def profile(self, *arguments, name="p.jsonl.gz", code=0):
        path = pathlib.Path(self.directory, name)
        got, out, err = self.mpiexec(f"--profile={path}", *arguments)
        self.assertEqual(got, code, err)
        return Profile(path)

    def check_ring(self, profile, rank, size, times=3):
        one = [times * n for n in RING]
        self.assertEqual(profile.occurrences("ring", rank), list(range(1, times + 1)))
        self.assertEqual(profile.sent("ring", rank), {(0, (rank + 1) % size): one})
        self.assertEqual(profile.occurrences("far", rank), [1, 2])
        self.assertEqual(profile.sent("far", rank), {(0, (rank + size // 2) % size): [2, 16, 0, 0, 0, 0]})
        self.assertEqual(profile.calls("ring", rank), {("allreduce", "<=64", "world"): (times, times * 8),
                                                       ("allreduce", "<=1K", "world"): (times, times * 512)})


class Matrices(ProfileCase):
    def test_a_ring(self):
        for name in ("p.jsonl", "p.jsonl.gz"):
            profile = self.profile("-n", 6, PATTERN, "ring", name=name)
            first = profile.lines[0]
            self.assertEqual((first["kind"], first["version"], first["application"], first["command"]),
                             ("profile", 1, "pattern", [PATTERN, "ring"]))
            self.assertEqual([(j["job"], j["parent"], j["size"], j["places"]) for j in profile.jobs], [(0, None, 6, [[0, 0, 6]])])
            for rank in range(6):
                self.check_ring(profile, rank, 6)
                self.assertEqual(profile.sent("last", rank), {(0, (rank + 1) % 6): [1, 8, 0, 0, 0, 0]})
                self.assertEqual(profile.calls("last", rank), {("barrier", "<=64", "world"): (2, 0)})
            self.assertEqual(profile.ends, {(0, rank): "finalized" for rank in range(6)})

    def test_call_sites_are_the_same_in_all_processes(self):
        """And two places in the program are two."""
        profile = self.profile("-n", 4, PATTERN, "ring")
        sites = [{c[0] for p in profile.of(phase, rank) for c in p["collectives"]} for rank in range(4) for phase in ("ring", "last")]
        self.assertEqual(sites[0::2], [sites[0]] * 4)
        self.assertEqual(sites[1::2], [sites[1]] * 4)
        self.assertEqual((len(sites[0]), len(sites[1])), (1, 2))
        for site in sites[0] | sites[1]:
            self.assertRegex(site, r"^pattern\+0x[0-9a-f]+$")

    def test_algorithms_are_named_as_they_are_chosen(self):
        for algorithm in ("node", "ring"):
            profile = self.profile("--set", f"coll_allreduce={algorithm}", "-n", 4, PATTERN, "ring")
            named = {c[5] for p in profile.of("ring", 0) for c in p["collectives"]}
            self.assertEqual(named, {algorithm})

    def test_connections(self):
        """With direct rings at the fourth message, all of a phase's that are long go on them; without, none does."""
        with_rings = self.profile("--set", "direct_threshold=4", "-n", 4, PATTERN, "ring")
        opened = {(p["rank"], c[2]) for p in with_rings.phases for c in p["connections"] if c[3] == "opened"}
        self.assertLessEqual({(r, (r + 1) % 4) for r in range(4)}, opened)
        self.assertGreater(sum(peer[8] for p in with_rings.phases for peer in p["peers"]), 0)
        without = self.profile("--set", "max_direct=0", "-n", 4, PATTERN, "ring")
        self.assertEqual([c for p in without.phases for c in p["connections"]], [])
        self.assertEqual({(peer[8], peer[9]) for p in without.phases for peer in p["peers"]}, {(0, 0)})

    def test_many_short_phases(self):
        """However they are summed up, each occurrence is in one line, and its message too."""
        profile = self.profile("-n", 2, PATTERN, "short", 20000)
        for rank in range(2):
            self.assertEqual(profile.occurrences("step", rank), list(range(1, 20001)))
            self.assertEqual(profile.sent("step", rank), {(0, 1 - rank): [20000, 160000, 0, 0, 0, 0]})

    def test_many_ranks_with_few_partners_have_few_rows(self):
        profile = self.profile("-n", 24, PATTERN, "ring")
        self.assertLessEqual(max(len(p["peers"]) for p in profile.phases), 2)

    def test_spawn(self):
        profile = self.profile("-n", 1, PATTERN, "spawn")
        self.assertEqual([(j["job"], j["parent"], j["size"]) for j in profile.jobs], [(0, None, 1), (1, 0, 2)])
        # Some messages without data besides, of connecting and parting.
        self.assertEqual({peer: row[1] for peer, row in profile.sent("", 0).items() if peer[0] == 1}, {(1, 0): 48, (1, 1): 48})
        for child in range(2):
            self.assertEqual(profile.sent("", child, job=1)[0, 0][1], 48)
        self.assertEqual(profile.ends, {(0, 0): "finalized", (1, 0): "finalized", (1, 1): "finalized"})

    def test_without_the_option_nothing_is_written(self):
        self.assertEqual(self.mpiexec("-n", 2, PATTERN, "ring"), (0, "", ""))
        self.assertEqual(list(pathlib.Path(self.directory).iterdir()), [])

    def test_the_variable_and_the_name_of_the_file(self):
        for command in (["--profile"], []):
            environment = self.environment if command else dict(self.environment, STARLING_PROFILE="on")
            code, _, err = self.mpiexec(*command, "-n", 2, PATTERN, "ring", env=environment)
            self.assertEqual((code, err), (0, ""))
            [file] = pathlib.Path(self.directory).iterdir()
            self.assertRegex(file.name, r"^starling-profile-pattern-\d+\.jsonl\.gz$")
            self.check_ring(Profile(file), 1, 2)
            file.unlink()


class Endings(ProfileCase):
    def test_a_rank_that_is_killed(self):
        profile = self.profile("-n", 4, PATTERN, "killed", code=128 + signal.SIGKILL)
        for rank in range(4):
            self.check_ring(profile, rank, 4)
            self.assertEqual(profile.ends[0, rank], "ended early")

    def test_abort(self):
        profile = self.profile("-n", 2, PATTERN, "abort", code=3)
        self.check_ring(profile, 0, 2)
        self.assertEqual(profile.ends[0, 0], "ended early")

    def test_mpiexec_is_killed(self):
        """What was written is whole; the ranks end as ever."""
        path = pathlib.Path(self.directory, "p.jsonl.gz")
        process = self.popen(MPIEXEC, f"--profile={path}", "-n", 4, PATTERN, "wait", "never")

        def all_there():
            return path.exists() and path.stat().st_size and all(len(Profile(path).of("far", r)) > 0 for r in range(4)) and \
                all(Profile(path).occurrences("ring", r) == [1, 2, 3] for r in range(4))

        self.wait_for(all_there, "the phases do not come")
        process.kill()
        process.wait()
        profile = Profile(path)
        for rank in range(4):
            self.check_ring(profile, rank, 4)
        self.assertEqual(profile.ends, {})

    def test_a_launcher_that_does_not_answer_holds_nobody_up_for_long(self):
        """mpiexec is stopped: the ranks go through their phases, and MPI_Finalize waits a bounded time."""
        up, done = pathlib.Path(self.directory, "up"), pathlib.Path(self.directory, "done")
        lines = lambda path: path.read_text().count("\n") if path.exists() else 0
        process = self.popen(MPIEXEC, "--profile=p.jsonl", "-n", 2, "sh", "-c",
                             f"echo up >> up; until [ -e go ]; do sleep 0.01; done; {PATTERN} short 2000; echo done >> done")
        self.wait_for(lambda: lines(up) == 2, "the ranks do not start")
        process.send_signal(signal.SIGSTOP)
        pathlib.Path(self.directory, "go").touch()
        self.wait_for(lambda: lines(done) == 2, "the ranks do not end")
        process.send_signal(signal.SIGCONT)
        self.assertEqual(process.wait(), 0)


class Files(ProfileCase):
    def test_a_full_disk(self):
        code, out, err = self.mpiexec("--profile=/dev/full", "-n", 2, PATTERN, "ring")
        self.assertEqual((code, out), (0, ""))
        self.assertEqual(err, "mpiexec: the profile '/dev/full' ends here: No space left on device\n")

    def test_a_file_that_can_t_be_written(self):
        for name, why in (("/no/such/folder/p", "No such file or directory"), (self.directory, "Is a directory")):
            code, out, err = self.mpiexec(f"--profile={name}", "-n", 2, "echo", "ran")
            self.assertEqual((code, out), (1, ""))
            self.assertEqual(err, f"mpiexec: can't write the profile '{name}': {why}\n")

    def test_no_name(self):
        code, _, err = self.mpiexec("--profile=", "-n", 2, "true")
        self.assertEqual((code, err), (1, "mpiexec: option '--profile=' has an empty value\n"))

    def test_programs_without_mpi(self):
        profile = self.profile("-n", 2, "true")
        self.assertEqual((len(profile.jobs), profile.phases), (1, []))
        self.assertEqual(profile.ends, {(0, 0): "ended early", (0, 1): "ended early"})


class Hosts(HostsCase, ProfileCase):
    def test_over_hosts(self):
        """Each host's records come through the daemons' tree; ranks are where the first lines say."""
        profile = self.profile("--host", "a:2,b:2", "-n", 4, "sh", "-c", "true")
        self.assertEqual([j["places"] for j in profile.jobs], [[[0, 0, 2], [1, 2, 2]]])
        self.assertEqual(len(profile.jobs[0]["hosts"]), 2)
        by_node = self.profile("--host", "a:2,b:2", "--map-by", "node", "-n", 4, "sh", "-c", "true")
        self.assertEqual([j["places"] for j in by_node.jobs], [[[0, 0, 1], [1, 1, 1], [0, 2, 1], [1, 3, 1]]])

    def test_through_standing_daemons(self):
        """The daemons make the lines, and mpiexec writes them."""
        self.assertEqual(self.run_command(STARLING, "daemon", "start", "--host", "a:2,b:2")[0], 0)
        try:
            profile = self.profile("-v", "-n", 4, PATTERN, "ring")
            for rank in range(4):
                self.assertEqual(profile.sent("ring", rank)[0, (rank + 1) % 4][2:], [3 * n for n in RING[2:]])
            self.assertEqual(profile.ends, {(0, rank): "finalized" for rank in range(4)})
            killed = self.profile("-n", 2, PATTERN, "killed", code=128 + signal.SIGKILL)
            self.assertEqual(killed.occurrences("ring", 1), [1, 2, 3])
            self.assertEqual(killed.ends, {(0, 0): "ended early", (0, 1): "ended early"})
        finally:
            self.run_command(STARLING, "daemon", "stop")

    def test_messages_over_hosts(self):
        profile = self.profile("--host", "a:2,b:2", "-n", 4, PATTERN, "ring")
        for rank in range(4):
            # The collectives are small messages there, too.
            self.assertEqual(profile.sent("ring", rank)[0, (rank + 1) % 4][2:], [3 * n for n in RING[2:]])
            self.assertEqual(profile.occurrences("ring", rank), [1, 2, 3])
        self.assertEqual(set(profile.ends.values()), {"finalized"})


if __name__ == "__main__":
    groups = sys.argv[2:]
    unittest.main(argv=[sys.argv[0], *groups], verbosity=1)
