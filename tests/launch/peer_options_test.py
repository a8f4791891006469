#!/usr/bin/env python3
"""Tests mpiexec with command lines that are written for other launchers.

    peer_options_test.py BUILD [TestClass[.test]]...

The table src/launch/client/peer_options.def is compared with the help of the launchers that are installed here.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(sys.argv[1]).resolve()
MPIEXEC = str(BUILD / "bin" / "mpiexec")
SOURCE = pathlib.Path(__file__).resolve().parents[2]
TABLE = SOURCE / "src/launch/client/peer_options.def"
sys.path.insert(0, str(SOURCE / "tools/manual"))
import peer_options  # noqa: E402

LIMIT = 240  # seconds for anything


def run(*command, **options):
    result = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=LIMIT,
                            stdin=subprocess.DEVNULL, **options)
    return result.returncode, result.stdout, result.stderr


def mpiexec(*arguments):
    return run(MPIEXEC, *arguments)


def table():
    """Returns (peers, names, sample, answer, text) of each row."""
    return [(row.peers, row.names, row.sample.split(), row.answer, row.text) for row in peer_options.rows()]


def row_of(name):
    return next((row for row in table() if name in row[1]), None)


class Table(unittest.TestCase):
    def check(self, peer, options):
        """Checks that each (name, number of values) of a launcher's help has a row that names the launcher."""
        self.assertGreater(len(options), 30, "the help was not understood")
        for name, values in sorted(options):
            with self.subTest(option=name):
                row = row_of(name)
                self.assertIsNotNone(row, f"--{name} of {peer} has no row in {TABLE.name}")
                self.assertIn(peer, row[0], f"the row of {name}")
                if row[3] in ("ignored", "translated") and values is not None:
                    self.assertEqual(len(row[2]), values, f"the number of values of {name}")

    def test_every_row_is_read(self):
        self.assertEqual(len(table()) + len(peer_options.shared_names()), len(re.findall(r"^(?:PEER_OPTION|SHARED_NAME)\(", TABLE.read_text(), re.M)))

    def test_options_of_the_installed_open_mpi(self):
        code, out, err = run("mpirun.openmpi", "--allow-run-as-root", "--help", "all")
        self.assertEqual(code, 0, err)
        self.assertIn("4.", out.splitlines()[0])
        options = set()
        for line in re.findall(r"^ {0,3}(-\S+(?: <arg0>)?(?: <arg1>)?)", out, re.M):
            for name in re.findall(r"(?:^|\|)--?([\w-]+)", line.split()[0]):
                options.add((name, len(re.findall(r"<arg\d>", line)) if name not in ("h", "help") else None))
        self.check("ompi4", options)

    def test_options_of_the_installed_mpich(self):
        code, out, err = run("mpiexec.mpich", "-help")
        self.assertIn("Hydra", out, err)
        options = set()
        for line in re.findall(r"^    -(\S+(?: \{.*?\})*)", out, re.M):
            for name in line.split()[0].split("/"):
                options.add((name.lstrip("-"), len(re.findall(r"\{", line)) or None))
        self.check("mpich", options)

    def test_common_options_of_srun(self):
        """srun prints its help only where Slurm is configured."""
        for name in ("ntasks cpus-per-task nodes nodelist ntasks-per-node distribution cpu-bind mpi label export output error input chdir "
                     "multi-prog kill-on-bad-exit overcommit exclusive time partition gres gpus mem job-name exclude verbose quiet "
                     "unbuffered overlap exact mem-bind hint").split():
            with self.subTest(option=name):
                self.assertIn("srun", row_of(name)[0])

    def test_the_page_is_that_of_the_table(self):
        page = SOURCE / "docs/options.md"
        self.assertEqual(page.read_text(), peer_options.page(), "run tools/manual/peer_options.py > docs/options.md")


class CommandLines(unittest.TestCase):
    """Whole command lines, as scripts have them."""

    def cpus(self, *options):
        """Returns the processors of each rank."""
        code, out, err = mpiexec("-q", *options, "sh", "-c", "echo $STARLING_RANK $(grep Cpus_allowed_list /proc/self/status)")
        self.assertEqual(code, 0, err)
        return [cpus for _, _, cpus in sorted((line.split() for line in out.splitlines()), key=lambda words: int(words[0]))]

    def test_processing_elements_are_cores_of_each_process(self):
        usable = sorted(os.sched_getaffinity(0))
        self.assertGreaterEqual(len(usable), 2, "this needs two cores")
        for options in (("--map-by", "slot:PE=2", "--bind-to", "core"), ("--map-by", ":PE=2"), ("--cpus-per-rank", "2"),
                        ("-bind-to", "core:2")):
            code, out, err = mpiexec(*options, "-n", 1, "nproc")
            self.assertEqual(code, 0, err)
            self.assertGreaterEqual(int(out), 2, options)
        code, _, err = mpiexec("--map-by", f"slot:PE={len(usable) + 1}", "-n", 1, "true")
        self.assertEqual(code, 127)
        self.assertIn(f"each process needs {len(usable) + 1} cores", err)

    def test_processes_are_bound_to_parts_and_lists(self):
        usable = sorted(os.sched_getaffinity(0))
        one = str(usable[1])
        threads = self.cpus("--bind-to", "hwthread", "-n", len(usable))
        self.assertEqual(sorted(map(int, threads)), usable)
        self.assertEqual(self.cpus("--cpu-list", one, "-n", 2), [one, one])
        self.assertEqual(self.cpus("--cpu-set", one, "--bind-to", "hwthread", "-n", 1), [one])
        self.assertEqual(self.cpus("-bind-to", f"user:{usable[1]},{usable[0]}", "-n", 3), [str(usable[i]) for i in (1, 0, 1)])
        whole = self.cpus("--bind-to", "machine", "-n", 1)
        self.assertEqual(whole, self.cpus("--bind-to", "none", "-n", 1))
        for part in ("socket", "package", "numa", "l3cache"):
            self.assertEqual(len(self.cpus("--bind-to", part, "-n", 2)), 2)
            self.assertEqual(len(self.cpus("--map-by", part, "-n", 2)), 2)
        code, _, err = mpiexec("--cpu-list", "1023", "-n", 1, "true")
        self.assertEqual(code, 127)
        self.assertIn("none of the cpus 1023", err)

    def test_report_and_map(self):
        code, _, err = mpiexec("--report-bindings", "--bind-to", "machine", "-n", 2, "true")
        self.assertEqual(len(re.findall(r"rank \d on \S+ is bound to (?:cpus [\d,-]+ \(package|core)", err)), 2, err)
        code, _, err = mpiexec("--display-map", "-n", 3, "true")
        self.assertRegex(err, r"^mpiexec: host \S+ has ranks 0-2 of 3\n$")
        self.assertEqual(code, 0)

    def test_ranks_do_not_see_the_placement_that_mpiexec_asks_for(self):
        show = ("-n", 1, "sh", "-c", "echo [$STARLING_PROCESSORS]")
        for words in (("--cpu-list", min(os.sched_getaffinity(0))), ("--host", "localhost", "--via", "agent", "--bind-to", "machine"),
                      ("env", "STARLING_PROCESSORS=bind=core", MPIEXEC)):
            code, out, err = mpiexec(*words, *show)
            self.assertEqual((code, out), (0, "[]\n"), err)

    def test_dry_run_starts_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            mark = pathlib.Path(folder, "mark")
            code, out, err = mpiexec("--dry-run", "--host", "a:2,b:2", "--rank-by", "node", "touch", mark, ":", "-n", 1, "-wdir", "/", "x y")
            self.assertEqual((code, err), (0, ""))
            self.assertEqual(out, f"host a would have ranks 0,2\nhost b would have ranks 1,3\nranks 0-2: touch {mark}\nrank 3: 'x y' (in /)\n")
            self.assertFalse(mark.exists())
            self.assertEqual(mpiexec("--dry-run", "--profile", "-n", 2, "true")[0], 0)
            code, out, err = mpiexec("--dry-run", "--host", "a,b", "-n", 4, "true")
            self.assertEqual(out.splitlines()[-1], "ranks 0-3: true")
            self.assertIn("host a is not asked for its cores", err)

    def test_nolocal_leaves_out_this_machine(self):
        for option in (("--nolocal",), ("-skip-launch-node",), ("--map-by", "slot:NOLOCAL")):
            code, out, err = mpiexec(*option, "--dry-run", "--host", "localhost:2,b:2", "-n", 2, "true")
            self.assertEqual((code, out), (0, "host b would have ranks 0-1\nranks 0-1: true\n"), err)
        code, _, err = mpiexec("--nolocal", "-n", 2, "true")
        self.assertEqual(code, 1)
        self.assertIn("no host is left for 'true' without this machine", err)

    def test_commands_from_a_file(self):
        with tempfile.NamedTemporaryFile("w", prefix="starling-tests-") as file:
            file.write('# two commands\n-n 1 sh -c "echo one $STARLING_RANK"\n\n-n 2 \\\n  sh -c \'echo two\'\n')
            file.flush()
            for option in ("-configfile", "--app"):
                code, out, err = mpiexec(option, file.name)
                self.assertEqual((code, sorted(out.splitlines())), (0, ["one 0", "two", "two"]), err)
        code, _, err = mpiexec("-configfile", "/nosuch/file")
        self.assertEqual(code, 1)
        self.assertIn("/nosuch/file", err)

    def test_ignored_options_explain_themselves_with_verbose(self):
        code, _, err = mpiexec("-rmk", "user", "--noprefix", "true")
        self.assertEqual((code, err), (0, ""))
        code, _, err = mpiexec("-rmk", "user", "--verbose", "true")
        self.assertIn("'-rmk' is ignored: mpiexec finds allocations by their variables", err)

    def test_an_option_with_several_meanings_is_announced(self):
        code, out, err = mpiexec("-N", 2, "-n", 2, "echo", "ran")
        self.assertEqual((code, out), (0, "ran\nran\n"))
        self.assertIn("'-N' is taken as the number of processes on each host, as in Open MPI; srun means --nodes", err)
        self.assertEqual(mpiexec("-q", "-N", 2, "-n", 2, "true"), (0, "", ""))
        code, out, err = mpiexec("--output", "tag", "-n", 1, "echo", "ran")
        self.assertEqual((code, out), (0, "[0] ran\n"))
        self.assertIn("'--output' is taken as words such as tag and dir=DIR, as in Open MPI 5; srun means a file", err)

    def test_refused_options_name_their_counterpart(self):
        code, _, err = mpiexec("--xterm", "0", "true")
        self.assertEqual(code, 1)
        self.assertRegex(err, "^mpiexec: '--xterm' is an option of Open MPI that mpiexec does not have; instead: start xterm")

    def test_variables_in_one_word_or_two(self):
        for options in (("-genv", "A=b=c"), ("-genv", "A", "b=c"), ("-env", "A=b=c"), ("-x", "A=b=c")):
            self.assertEqual(mpiexec(*options, "-n", 1, "printenv", "A")[:2], (0, "b=c\n"), options)
        os.environ["PEER_TEST"] = "set"
        self.assertEqual(mpiexec("-n", 1, "printenv", "PEER_TEST")[1], "set\n")
        self.assertEqual(mpiexec("-genvexcl", "PEER_TEST", "-n", 1, "sh", "-c", "echo [$PEER_TEST]")[1], "[]\n")
        self.assertEqual(mpiexec("-envlist", "PEER_TEST", "-n", 1, "/usr/bin/env")[1].count("PEER_TEST"), 1)
        self.assertNotIn("HOME=", mpiexec("-envlist", "PEER_TEST", "-n", 1, "/usr/bin/env")[1])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]] + sys.argv[2:], verbosity=2)
