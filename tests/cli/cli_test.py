#!/usr/bin/env python3
"""Tests starling's command line: errors with a suggestion, exit codes (docs/exit-codes.md), `starling info`.

    cli_test.py BUILD [TestClass[.test]]...
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
ROOT = pathlib.Path(__file__).resolve().parents[2]
WRONG_USAGE = 2


def run(program, *words, cores=None, **environment):
    """Runs a program of the build, on the given cores only if there are any."""
    result = subprocess.run([BUILD / "bin" / program, *words], capture_output=True, text=True, timeout=240, check=False,
                            env={**os.environ, **environment},
                            preexec_fn=(lambda: os.sched_setaffinity(0, cores)) if cores else None)
    return result.returncode, result.stdout, result.stderr


class Usage(unittest.TestCase):
    def wrong(self, words, *wanted):
        """The command line must be refused in one line that begins with the command and names --help."""
        code, out, err = run("starling", *words)
        self.assertEqual((code, out), (WRONG_USAGE, ""), err)
        self.assertEqual(len(err.splitlines()), 1, err)
        self.assertRegex(err, r"^starling[ \w-]*: .* \(starling[ \w-]* --help lists all\)$")
        for text in wanted:
            self.assertIn(text, err)

    def test_misspelled_commands(self):
        self.wrong(["inof"], "starling: unknown command 'inof'; did you mean 'info'?")
        self.wrong(["profile", "shwo"], "starling profile: unknown command 'shwo'; did you mean 'show'?")
        self.wrong(["daemon", "stat"], "starling daemon: unknown command 'stat'; did you mean 'start'?")
        self.wrong(["nonsense"], "unknown command 'nonsense' (")

    def test_misspelled_options(self):
        self.wrong(["info", "--variabels"], "starling info: unknown option '--variabels'; did you mean '--variables'?")
        self.wrong(["top", "--intreval=3"], "unknown option '--intreval=3'; did you mean '--interval'?")
        self.wrong(["profile", "show", "--htlm", "x", "y"], "starling profile show: unknown option '--htlm'; did you mean '--html'?")
        self.wrong(["daemon", "start", "--hostflie", "x"], "unknown option '--hostflie'; did you mean '--hostfile'?")
        self.wrong(["daemon", "start", "--hostflie=x"], "unknown option '--hostflie=x'; did you mean '--hostfile'?")

    def test_values(self):
        for value in ("0", "soon", "9999"):
            self.wrong(["top", "--interval", value], f"starling top: --interval: '{value}' is not a number from 0.1 to 3600 (")
        self.wrong(["top", "--sort", "bites"], "'bites' is not rank, waiting, ", "; did you mean 'bytes'? (")
        self.wrong(["why", "--launcher", "x"], "--launcher: 'x' is not a valid value")

    def test_missing_and_superfluous_words(self):
        self.wrong(["profile"], "a command is missing: show, plan or diff")
        self.wrong(["daemon"], "a command is missing: start, stop or status")
        self.wrong(["doctor"], "an argument is missing: file")
        self.wrong(["top", "--interval"], "--interval needs a value")
        self.wrong(["profile", "diff", "a"], "file: 2 are needed, but only 1 given")
        self.wrong(["help", "hosts", "hang"], "unexpected argument 'hang'")
        self.wrong(["daemon", "stop", "now"], "unexpected argument 'now'")

    def test_control_characters_do_not_reach_the_terminal(self):
        _, _, err = run("starling", "in\033[31mfo")
        self.assertNotIn("\033", err)

    def test_help_and_version_are_no_errors(self):
        for words in ([], ["--help"], ["--version"], ["top", "--help"], ["profile", "show", "--help"]):
            code, out, err = run("starling", *words)
            self.assertEqual((code, err), (0, ""))
            self.assertIn("tarling", out)


class HelpTopics(unittest.TestCase):
    def unknown(self, topic):
        code, out, err = run("starling", "help", topic)
        self.assertEqual((code, out), (1, ""))
        return err

    def test_suggestions(self):
        self.assertIn("did you mean STARLING_WAIT", self.unknown("STARLING_WIAT"))
        self.assertIn("did you mean MPI_Send,", self.unknown("MPI_Sned"))
        self.assertIn("did you mean hosts?", self.unknown("hsots"))
        self.assertIn("did you mean info?", self.unknown("infoo"))
        self.assertNotIn("did you mean", self.unknown("nonsensical"))

    def test_each_suggestion_appears_once(self):
        names = re.search(r"did you mean (.*)\?", self.unknown("barrier")).group(1)
        names = re.split(", | or ", names)
        self.assertIn("MPI_Barrier", names)
        self.assertEqual(len(names), len(set(names)))

    def test_variables_need_no_prefix(self):
        self.assertEqual(run("starling", "help", "wait"), run("starling", "help", "STARLING_WAIT"))


class ExitCodes(unittest.TestCase):
    def test_failures(self):
        self.assertEqual(run("starling", "profile", "show", "/nowhere/at/all")[0], 1)
        self.assertEqual(run("starling", "doctor", "/nowhere/at/all")[0], 1)
        for command in (["why"], ["top", "--once", "--interval", "0.1"]):
            code, _, err = run("starling", *command, "no-such-job")
            self.assertEqual(code, 1)
            self.assertIn("no-such-job", err)
        self.assertEqual(run("starling", "top", "--once", "--json", "--interval", "0.1", "no-such-job")[0], 1)

    def test_lost_output_is_a_failure(self):
        for words in (["info"], ["info", "--json"], ["help", "MPI_Send"], ["doctor", "/bin/sh"], ["--version"], []):
            with open("/dev/full", "w", encoding="utf-8") as full:
                result = subprocess.run([BUILD / "bin" / "starling", *words], stdout=full, stderr=subprocess.PIPE, text=True, timeout=240,
                                        check=False)
            self.assertEqual(result.returncode, 1, words)
            self.assertIn("No space left on device", result.stderr, words)
            self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)

    def test_mpiexec(self):
        self.assertEqual(run("mpiexec", "--no-such-option")[0], 1)
        self.assertEqual(run("mpiexec", "-n", "2", "sh", "-c", "exit 3")[0], 3)
        self.assertEqual(run("mpiexec", "-n", "1", "sh", "-c", "kill -9 $$")[0], 128 + 9)
        self.assertEqual(run("mpiexec", "-n", "1", "/nowhere/at/all")[0], 127)
        self.assertEqual(run("mpiexec", "--timeout", "1", "-n", "1", "sleep", "60")[0], 124)
        self.assertEqual(run("mpiexec", "-n", "1", "sleep", "60", MPIEXEC_TIMEOUT="1")[0], 124)

    def test_one_table(self):
        """docs/exit-codes.md and the manual pages have the rows of tools/manual/exit-codes.tsv."""
        lines = (ROOT / "tools/manual/exit-codes.tsv").read_text().splitlines()
        rows = [line.split("\t") for line in lines if not line.startswith("#")]
        table = [f"| `{command.replace('-', ' ', 1)}` | {code} | {meaning} |" for command, code, meaning in rows]
        shown = [line for line in (ROOT / "docs/exit-codes.md").read_text().splitlines() if line.startswith("| `")]
        self.assertEqual(shown, table)
        for command, _, meaning in rows:
            page = BUILD / "share/man/man1" / f"{command}.1"
            text = page.read_text().replace("\\-", "-")
            self.assertIn("EXIT STATUS", text, page)
            self.assertIn(meaning, text, page)


class Info(unittest.TestCase):
    def test_summary(self):
        code, out, _ = run("starling", "info", STARLING_CONFIG="none")
        self.assertEqual(code, 0)
        self.assertLessEqual(len(out.splitlines()), 15)
        for line in (f"  prefix: {BUILD}\n", f"  launcher: {BUILD}/bin/mpiexec\n", "  configuration file: none is read\n",
                     "  settings: all at their defaults\n"):
            self.assertIn(line, out)
        missing = len(run("starling", "info", "--missing")[1].splitlines())
        self.assertEqual(missing, 0)
        self.assertRegex(out, r"\n  MPI functions: all \d+\n")

    def test_networks_are_those_that_messages_use(self):
        _, out, _ = run("starling", "info", STARLING_IP_INTERFACES="127.0.0.0/8")
        self.assertRegex(out, r"\n  networks: lo 127\.0\.0\.1/8")
        _, out, _ = run("starling", "info", "--json", STARLING_IP_INTERFACES="^lo")
        lo = [one for one in json.loads(out)["networks"] if one["interface"] == "lo"]
        self.assertEqual([(one["address"], one["used"]) for one in lo], [("127.0.0.1/8", False)])

    def test_settings_name_their_source(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "starling.conf")
            file.write_text("wait = poll\n")
            _, out, _ = run("starling", "info", STARLING_CONFIG=str(file), STARLING_SPIN_US="7")
            self.assertIn(f"  configuration file: {file}\n", out)
            self.assertIn("STARLING_WAIT=poll (file), STARLING_SPIN_US=7 (environment)", out)
            _, out, _ = run("starling", "info", STARLING_CONFIG=f"{file}.old")
            self.assertIn(f"  configuration file: {file}.old (does not exist)\n", out)

    def test_all_and_json_have_everything(self):
        _, out, _ = run("starling", "info", "--all")
        self.assertGreater(len(out.splitlines()), 300)
        for heading in ("Transports", "Networks", "Protocols", "Collectives", "MPI functions", "Variables", "Counters"):
            self.assertIn(f"\n{heading}", out)
        parts = json.loads(run("starling", "info", "--json")[1])
        self.assertEqual(set(parts), {"installation", "transports", "networks", "protocols", "collectives", "functions",
                                      "shmem_functions", "variables", "counters"})

    def copies(self, **settings):
        code, out, err = run("starling", "info", "--copies", "--json", **settings)
        self.assertEqual((code, err), (0, ""))
        self.assertEqual(set(json.loads(out)), {"copies"})
        return json.loads(out)["copies"]

    @unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "copies between two cores need two")
    def test_copies_are_measured_for_each_pair_of_cores(self):
        cores = os.sched_getaffinity(0)
        found = self.copies()
        self.assertNotIn("problem", found)
        self.assertGreaterEqual(len(found["pairs"]), 1)
        for pair in found["pairs"]:
            self.assertNotIn("problem", pair)
            self.assertLessEqual(set(pair["cores"]), cores)
            self.assertGreater(pair["line_ns"], 0)
            self.assertEqual([row["bytes"] for row in pair["sizes"]], [1 << power for power in range(14, 21)])
            for row in pair["sizes"]:
                times = {way: row[f"{way}_us"] for way in ("ordinary", "past_caches", "kernel")}
                times = {way: value for way, value in times.items() if value is not None}
                self.assertEqual(row["fastest"], min(times, key=times.get))
                self.assertGreater(min(times.values()), 0)
        self.assertEqual([row["class"] for row in found["rule"]], ["close", "near", "far"])

    @unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "copies between two cores need two")
    def test_chosen_copies_follow_the_settings(self):
        def chosen(**settings):
            rows = self.copies(**settings)["pairs"][0]["sizes"]
            return {row["bytes"]: row["chosen"] if row["kernel_us"] is not None else "forbidden" for row in rows}

        limits = chosen(STARLING_EAGER_LIMIT="32768", STARLING_STREAM_LIMIT="0", STARLING_SPLIT_LIMIT="262144")
        if "forbidden" in limits.values():
            self.skipTest("a container forbids the copies of the kernel, between which the settings choose")
        self.assertEqual((limits[32768], limits[131072], limits[262144]), ("eager", "kernel", "both"))
        self.assertEqual(chosen(STARLING_LONG_PROTOCOL="kernel")[1 << 20], "kernel")
        self.assertEqual(chosen(STARLING_STREAM_LIMIT="0", STARLING_SINGLE_COPY="off")[1 << 20], "pieces")

    def test_one_core_has_no_copies_to_measure(self):
        core = {min(os.sched_getaffinity(0))}
        found = self.copies(cores=core)
        self.assertEqual(found["pairs"], [])
        self.assertIn("one core only", found["problem"])
        _, out, _ = run("starling", "info", "--copies", cores=core)
        self.assertIn(found["problem"], out)


unittest.main()
