#!/usr/bin/env python3
"""Tests the profiles that `mpiexec --profile` writes for programs with known traffic (pattern.c).

    profile_test.py BUILD [TestClass[.test]]...
"""
import gzip
import json
import pathlib
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "launch"))
from launcher_test import BUILD, LIMIT, MPIEXEC, Case, gone  # noqa: E402
from hosts_test import STARLING, HostsCase  # noqa: E402

PATTERN = str(BUILD / "tests" / "profile" / "pattern")
SHMEM = str(BUILD / "tests" / "shmem" / "collectives")
ACCESSES = str(BUILD / "tests" / "profile" / "accesses")
RING = [4, 400, 2, 8000, 1, 100000]  # messages and bytes, by size, to the right neighbour


class Profile:
    """A parsed profile, with sums over the occurrences of each phase."""

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
        """Returns the numbers of the occurrences in the file; each must appear once."""
        return sorted(n for p in self.of(phase, rank, job) for n in range(p["from"], p["to"] + 1))

    def sent(self, phase, rank, job=0):
        """Returns {(job, rank) of the receiver: messages and bytes by size}."""
        sums = {}
        for line in self.of(phase, rank, job):
            for peer in line["peers"]:
                row = sums.setdefault((peer[0], peer[1]), [0] * 6)
                for i in range(6):
                    row[i] += peer[2 + i]
        return sums

    def calls(self, phase, rank):
        """Returns {(kind, size class): calls and bytes}."""
        sums = {}
        for line in self.of(phase, rank):
            for site, communicator, size, kind, size_class, algorithm, calls, of_bytes, *_ in line["collectives"]:
                before = sums.get((kind, size_class, communicator), (0, 0))
                sums[kind, size_class, communicator] = (before[0] + calls, before[1] + of_bytes)
        return sums


    def sizes(self, phase, rank):
        """Returns {largest size: messages and bytes}."""
        sums = {}
        for line in self.of(phase, rank):
            for most, messages, of_bytes in line.get("sizes", []):
                before = sums.get(most, (0, 0))
                sums[most] = (before[0] + messages, before[1] + of_bytes)
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
        self.assertEqual(profile.sizes("ring", rank), {128: (times * 4, times * 400), 4096: (times * 2, times * 8000),
                                                       131072: (times, times * 100000)})
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
        """Two places in the program must be two call sites."""
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
        """With direct rings from the fourth message on, all long messages of a phase must use them; without rings, none."""
        with_rings = self.profile("--set", "direct_threshold=4", "-n", 4, PATTERN, "ring")
        opened = {(p["rank"], c[2]) for p in with_rings.phases for c in p["connections"] if c[3] == "opened"}
        self.assertLessEqual({(r, (r + 1) % 4) for r in range(4)}, opened)
        self.assertGreater(sum(peer[8] for p in with_rings.phases for peer in p["peers"]), 0)
        without = self.profile("--set", "max_direct=0", "-n", 4, PATTERN, "ring")
        self.assertEqual([c for p in without.phases for c in p["connections"]], [])
        self.assertEqual({(peer[8], peer[9]) for p in without.phases for peer in p["peers"]}, {(0, 0)})

    def test_waits_are_told_by_call_site(self):
        """Rank 1 sends late at one call site; rank 0 waits for it at another, by far the longest wait."""
        for _ in range(20):  # on a busy machine, rank 0 may be as late
            profile = self.profile("-n", 2, PATTERN, "late")
            [told] = [p["waiting"] for p in profile.of("late", 0)]
            [barrier] = [p for p in profile.of("together", 0)]
            site, function, late_sender, *_ = max(told, key=lambda row: sum(row[2:]), default=("", "", 0))
            if late_sender > 0.1 and barrier["waits"]["collective"] > 0.1:
                break
        self.assertRegex(site, r"^pattern\+0x[0-9a-f]+$")
        self.assertEqual(function, "MPI_Recv")
        self.assertGreater(late_sender, 0.1)
        for p in profile.phases:
            for i, cause in enumerate(("late sender", "late receiver", "collective", "other")):
                self.assertAlmostEqual(sum(row[2 + i] for row in p["waiting"]), p["waits"][cause], delta=1e-6)
        # The tables of waits and of collectives must use the same name for a call site.
        self.assertEqual({row[0] for row in barrier["waiting"]}, {c[0] for c in barrier["collectives"]})
        self.assertGreater(barrier["waits"]["collective"], 0.1)

    def test_files_are_counted_by_call_site(self):
        """Three writes at one place are one row. Non-blocking and split accesses count when their data have been moved."""
        profile = self.profile("-n", 2, PATTERN, "files")
        for rank in range(2):
            [phase] = profile.of("files", rank)
            rows = {function: (file, calls, number) for file, site, function, calls, number, seconds in phase["files"]}
            self.assertEqual(rows, {
                "MPI_File_open": ("files.dat", 1, 0), "MPI_File_write_at_all": ("files.dat", 3, 3000),
                "MPI_File_iread_at": ("files.dat", 1, 500), "MPI_File_read_ordered_begin": ("files.dat", 1, 200),
                "MPI_File_close": ("files.dat", 1, 0)})
            self.assertEqual(len({row[1] for row in phase["files"]}), 5)
            for file, site, function, calls, number, seconds in phase["files"]:
                self.assertRegex(site, r"^pattern\+0x[0-9a-f]+$")
                self.assertGreater(seconds, 0)
            self.assertEqual([p for p in profile.phases if p["phase"] != "files" and "files" in p], [])
        code, out, err = self.run_command(STARLING, "profile", "show", pathlib.Path(self.directory, "p.jsonl.gz"))
        self.assertEqual((code, err), (0, ""))
        self.assertRegex(out, r"\n  files.dat +2 +1.40 KB +6.00 KB ")
        self.assertRegex(out, r"pattern.c:\d+ \(files\) +MPI_File_write_at_all +files.dat +6 +6.00 KB ")

    def test_pcontrol_flushes(self):
        """MPI_Pcontrol(2) must write the counts to the file at once, and the phase continues as its next occurrence."""
        for mode, phase in (("flush", ""), ("flush in", "ring")):
            path, file = pathlib.Path(self.directory, "flush.jsonl"), pathlib.Path(self.directory, "go on")
            job = self.popen(MPIEXEC, f"--profile={path}", "-n", 2, PATTERN, *mode.split(), file)

            def told():
                text = path.read_text() if path.exists() else ""
                return [l for l in map(json.loads, text[:text.rfind("\n") + 1].splitlines())
                        if l["kind"] == "phase" and l["phase"] == phase]

            self.wait_for(lambda: len(told()) == 2, "the phase does not come")
            self.assertEqual({(l["rank"], l["from"], l["to"], l["peers"][0][2]) for l in told()}, {(0, 1, 1, 3), (1, 1, 1, 3)})
            file.touch()
            self.assertEqual(job.wait(timeout=240), 0)
            profile = Profile(path)
            for rank in range(2):
                self.assertEqual(profile.occurrences(phase, rank), [1, 2])
                self.assertEqual(profile.sent(phase, rank)[0, 1 - rank][0], 5)
            path.unlink(), file.unlink()

    def test_many_short_phases(self):
        """Occurrences may be summed up, but each occurrence and its message must be in exactly one line."""
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
        # Connecting and disconnecting take some additional messages without data.
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
            self.assertEqual(code, 0, err)
            [file] = pathlib.Path(self.directory).iterdir()
            self.assertEqual(err, f"mpiexec: the profile is in {file.name}; to read it: starling profile show {file.name}\n")
            self.assertRegex(file.name, r"^starling-profile-pattern-\d+\.jsonl\.gz$")
            self.check_ring(Profile(file), 1, 2)
            file.unlink()


class Accesses(ProfileCase):
    """Accesses through OpenSHMEM and in windows, by partner."""

    def check(self, profile, ranks):
        for rank in range(ranks):
            [row] = [a for p in profile.of("accesses", rank) for a in p["accesses"]]
            self.assertEqual(row[:2], [0, (rank + 1) % ranks])
            self.assertEqual(row[2:8], [4 + 1, 100 + 100 + 50 + 8 + 64, 3 + 1, 40 + 20 + 8 + 16, 3 + 2, 24 + 16])
            yield row[8:]

    def shown(self, path):
        result = subprocess.run([STARLING, "profile", "show", path], text=True, capture_output=True, timeout=240)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def test_on_one_host(self):
        """Accesses of mapped memory send no packets. If variables are private, the owner stores the variable's single word."""
        for ranks, wait, expected in ((2, "adaptive", [0, 0]), (4, "adaptive", [0, 0]), (2, "thread", [1, 8])):
            profile = self.profile("--set", f"wait={wait}", "-n", ranks, ACCESSES, name=f"{ranks}.jsonl")
            for by_packets in self.check(profile, ranks):
                self.assertEqual(by_packets[:2], expected)
        text = self.shown(pathlib.Path(self.directory, "4.jsonl"))
        for name, number, size in ("puts", 20, "1.29 KB"), ("gets", 16, "336 B"), ("updates", 20, "160 B"), ("of these in mapped memory", 56, ""):
            self.assertRegex(text, rf"(?m)^  {name} +{number} +\d+ % +{size}")
        self.assertRegex(text, r"(?m)^  2 - 3 ")
        self.assertNotIn("No messages", text)

    def test_with_checks(self):
        list(self.check(self.profile("--set", "check=on", "-n", 3, ACCESSES), 3))

    def test_who_accesses_nobody_has_none(self):
        for line in self.profile("-n", 2, PATTERN, "ring").phases:
            self.assertNotIn("accesses", line)


class Teams(ProfileCase):
    """Collective operations of OpenSHMEM teams."""

    def test_by_place_and_operation(self):
        profile = self.profile("-n", 3, SHMEM)
        for rank in range(3):
            rows = [row for line in profile.of("", rank) for row in line.get("collectives", [])]
            for row in rows:
                self.assertRegex(row[0], r"^collectives\+0x[0-9a-f]+$")
            self.assertEqual({row[3] for row in rows}, {"barrier", "bcast", "allgather", "alltoall", "allreduce", "scan"})


class Explore(ProfileCase):
    COLLECTIVES = str(BUILD / "tests" / "mpi" / "collectives")

    def test_alternatives_take_turns(self):
        """All alternatives are used equally often, the table's choice first, and alike on all ranks."""
        times = 2 * 24
        profile = self.profile("--set", "profile_explore=on", "-n", 4, PATTERN, "reduce", times)
        counts = []
        for rank in range(4):
            counts.append({})
            for c in (c for p in profile.phases if p["rank"] == rank for c in p["collectives"]):
                self.assertEqual(c[3:5], ["allreduce", "<=64"])
                counts[-1][c[5], c[10]] = counts[-1].get((c[5], c[10]), 0) + c[6]
        self.assertEqual(counts[1:], counts[:1] * 3)
        self.assertIn(("node", False), counts[0])
        self.assertLess({"recursive_doubling", "reduce_bcast", "rabenseifner", "ring", "linear"}, {name for name, _ in counts[0]})
        self.assertEqual(sum(counts[0].values()), times)
        self.assertEqual(set(counts[0].values()), {8})
        for p in profile.phases:
            for _, _, _, _, _, _, calls, _, seconds, squares, _ in p["collectives"]:
                self.assertGreaterEqual(squares * calls * 1.01, seconds * seconds)

    def test_what_the_user_has_chosen_stays(self):
        profile = self.profile("--set", "profile_explore=on", "--set", "coll_allreduce=ring", "-n", 4, PATTERN, "reduce", 60)
        self.assertEqual({c[5] for p in profile.phases for c in p["collectives"]}, {"ring"})

    def test_results_are_right(self):
        tried = set()
        for ranks in (2, 3, 4, 7, 16):
            profile = self.profile("--set", "profile_explore=on", "-n", ranks, self.COLLECTIVES)
            tried |= {c[3] for p in profile.phases for c in p["collectives"] if c[10]}
        self.assertLessEqual({"barrier", "bcast", "reduce", "allreduce", "scatter", "allgather", "reduce_scatter", "scan"}, tried)

    def test_two_groups_and_jobs_that_have_met(self):
        for program in ("intercollectives", "spawn_traffic"):
            self.profile("--set", "profile_explore=on", "-n", 4, str(BUILD / "tests" / "mpi" / program))

    def planned(self, *arguments, ranks=4, algorithm="linear", mode=("reduce", 20), problem=""):
        """Returns the allreduce algorithms used with a plan that selects one; they must be equal on all ranks."""
        plan = pathlib.Path(self.directory, "plan")
        plan.write_text(json.dumps({"starling_plan": 1, "application": "pattern", "size": ranks, "phases": [], "collectives": [
            {"kind": "allreduce", "size": "<=64", "processes": ranks, "algorithm": algorithm}]}))
        path = pathlib.Path(self.directory, "p.jsonl.gz")
        code, _, err = self.mpiexec("--plan", plan, f"--profile={path}", *arguments, "-n", ranks, PATTERN, *mode)
        self.assertEqual(code, 0, err)
        self.assertIn(problem, err)
        named = [{(c[4], c[5], c[10]) for p in Profile(path).phases if p["rank"] == rank for c in p["collectives"] if c[3] == "allreduce"}
                 for rank in range(ranks)]
        self.assertEqual(named[1:], named[:1] * (ranks - 1))
        return named[0]

    def test_a_plans_algorithm_is_taken_from_the_first_call_on(self):
        self.assertEqual(self.planned(), {("<=64", "linear", True)})
        self.assertEqual(self.planned(mode=["ring"]), {("<=64", "linear", True), ("<=1K", "node", False)})
        self.assertEqual(self.planned(algorithm="node"), {("<=64", "node", False)})

    def test_what_the_user_sets_wins_over_the_plan(self):
        self.assertEqual({name for _, name, _ in self.planned("--set", "coll_allreduce=ring")}, {"ring"})
        self.assertEqual({name for _, name, _ in self.planned("-x", "STARLING_PLAN=demand")}, {"node"})

    def test_an_algorithm_that_there_is_not_is_told(self):
        self.assertEqual({name for _, name, _ in self.planned(algorithm="magic", problem='"allreduce/<=64/4=magic"')}, {"node"})

    def test_from_the_profile_to_the_plan_and_back(self):
        path, plan = pathlib.Path(self.directory, "e.jsonl.gz"), pathlib.Path(self.directory, "e.plan")
        code, _, err = self.mpiexec("--set", "profile_explore=on", f"--profile={path}", "-n", 4, PATTERN, "explored", 480)
        self.assertEqual(code, 0, err)
        made = subprocess.run([STARLING, "profile", "plan", "-o", plan, path], text=True, capture_output=True, timeout=240)
        self.assertEqual(made.returncode, 0, made.stderr)
        code, _, err = self.mpiexec("--plan", plan, "-n", 4, PATTERN, "explored", 100)
        self.assertEqual(code, 0, err)

    def test_without_a_profile_nothing_is_tried(self):
        self.assertEqual(self.mpiexec("--set", "profile_explore=on", "-n", 4, PATTERN, "reduce", 60), (0, "", ""))


class Endings(ProfileCase):
    def test_a_rank_that_is_killed(self):
        profile = self.profile("-n", 4, PATTERN, "killed", code=128 + signal.SIGKILL)
        for rank in range(4):
            self.check_ring(profile, rank, 4)
            self.assertEqual(profile.ends[0, rank], "ended early")

    def test_a_rank_that_is_killed_before_its_first_report_is_answered(self):
        """mpiexec is stopped while rank 1 passes through its phases and kills itself."""
        process = self.popen(MPIEXEC, "--profile=p.jsonl", "-n", 2, "sh", "-c",
                             f"echo $$ > up$STARLING_RANK; until [ -e go ]; do sleep 0.01; done; exec {PATTERN} killed")
        _, killed = self.files("up0", "up1")
        process.send_signal(signal.SIGSTOP)
        pathlib.Path(self.directory, "go").touch()
        self.wait_for(lambda: gone({killed}), "rank 1 does not end")
        process.send_signal(signal.SIGCONT)
        self.assertEqual(process.wait(LIMIT), 128 + signal.SIGKILL)
        self.check_ring(Profile(pathlib.Path(self.directory, "p.jsonl")), 1, 2)

    def test_abort(self):
        profile = self.profile("-n", 2, PATTERN, "abort", code=3)
        self.check_ring(profile, 0, 2)
        self.assertEqual(profile.ends[0, 0], "ended early")

    def test_mpiexec_is_killed(self):
        """The file's lines must be complete, and the ranks end as usual."""
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
        """mpiexec is stopped: the ranks still pass through their phases, and MPI_Finalize waits a bounded time."""
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
        self.assertEqual(err, "mpiexec: the profile '/dev/full' is incomplete, because writing to it failed: No space left on device\n")

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
        """Each host's records arrive through the daemons' tree; the ranks' hosts are those of the first lines."""
        profile = self.profile("--host", "a:2,b:2", "-n", 4, "sh", "-c", "true")
        self.assertEqual([j["places"] for j in profile.jobs], [[[0, 0, 2], [1, 2, 2]]])
        self.assertEqual(len(profile.jobs[0]["hosts"]), 2)
        by_node = self.profile("--host", "a:2,b:2", "--map-by", "node", "-n", 4, "sh", "-c", "true")
        self.assertEqual([j["places"] for j in by_node.jobs], [[[0, 0, 1], [1, 1, 1], [0, 2, 1], [1, 3, 1]]])

    def test_through_standing_daemons(self):
        """The daemons create the lines, and mpiexec writes them."""
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
            # Between hosts collectives send small messages too, so only the two larger sizes are compared.
            self.assertEqual(profile.sent("ring", rank)[0, (rank + 1) % 4][2:], [3 * n for n in RING[2:]])
            self.assertEqual(profile.occurrences("ring", rank), [1, 2, 3])
        self.assertEqual(set(profile.ends.values()), {"finalized"})


if __name__ == "__main__":
    groups = sys.argv[2:]
    unittest.main(argv=[sys.argv[0], *groups], verbosity=1)
