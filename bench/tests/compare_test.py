#!/usr/bin/env python3
"""Tests compare with runs that work, hang, crash and refuse, and its statistics of their values."""
import json
import os
import re
import stat
import sys
import tempfile
import unittest
import xml.dom.minidom
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from runner import classes, markdown, page, plots, report, suite, words
from runner.cases import GROUPS, TARGETS, Case, all_cases
from runner.execute import command_of, execute, execute_limit, judge
from runner.libraries import Library, all_libraries, build_limits, compile_command, sources_of

ROOT = Path(__file__).resolve().parents[2]
GOOD = '{"benchmark": "x", "unit": "us", "ranks": "2", "rows": [{"what": "", "size": 8, "value": %s}]}'


def processes_with(variable):
    """Returns the pids of processes that have this NAME=value in their environment."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/environ", "rb") as file:
                    if variable.encode() in file.read():
                        found.append(int(entry))
            except OSError:
                pass
    return found


class Launchers(unittest.TestCase):
    """Runs a shell script in place of mpiexec."""

    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)

    def library(self, key, script):
        path = Path(self.directory.name) / key
        path.write_text("#!/bin/sh\n" + script + "\n", encoding="utf-8")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        library = Library(key, key, ["true"], [str(path)], {"COMPARE_TEST": self.directory.name})
        library.version = ""
        return library

    def run_script(self, script, timeout=200):
        return execute(self.library("one", script), Case("x", "p2p", "x", 2, [], timeout))

    def test_values_are_read(self):
        run = self.run_script("echo noise; echo '" + GOOD % "1.5" + "'")
        self.assertEqual((run.status, run.rows), ("ok", (("", 8, 1.5, "us", None),)))

    def test_hang_ends_with_all_its_processes(self):
        # One child creates a session, as daemons do, so that it is not in the command's process group.
        run = self.run_script("setsid sleep 60 & sleep 60", timeout=1)
        self.assertEqual(run.status, "hang")
        self.assertEqual(processes_with("COMPARE_TEST=" + self.directory.name), [])

    def test_crash_and_refusal_are_distinguished(self):
        self.assertEqual(self.run_script("kill -SEGV $$").status, "crash (SIGSEGV)")
        refusal = self.run_script("echo 'Error: spawn is not supported here' >&2; exit 5").status
        self.assertEqual(refusal, "refuses: Error: spawn is not supported here (exit code 5)")

    def test_cause_at_the_end_of_an_error_stack_is_reported(self):
        stack = "Abort(1): Fatal error in f: Other MPI error, error stack:\nf(1): f() failed\ng(2)...: no room\n"
        self.assertEqual(judge(15, "", stack, 1.0).status, "refuses: g(2)...: no room (exit code 15)")

    def test_success_without_values_is_a_failure(self):
        self.assertNotEqual(self.run_script("exit 0").status, "ok")
        self.assertEqual(judge(0, GOOD[:40], "", 1.0).status, "crash (output cut short)")

    def test_program_of_another_kind_is_judged_by_its_exit_code(self):
        case = Case("x", "p2p", "x", 2, [], 20, wall=True, plain=True)
        self.assertEqual(execute(self.library("good", "echo done"), case).status, "ok")
        self.assertNotEqual(execute(self.library("bad", "exit 1"), case).status, "ok")

    def test_build_failures_are_recorded(self):
        library = self.library("one", "true")
        library.unbuilt = {"x": "no such function"}
        self.assertIn("does not build: no such function", execute(library, Case("x", "p2p", "x", 2, [], 20)).status)

    def test_run_that_is_ended_keeps_its_values(self):
        """A signal raises SystemExit in whatever the run does; here the second case raises it."""
        path = os.path.join(self.directory.name, "ended.json")
        cases = [Case(name, "p2p", "x", 2, [], 20, placed=False) for name in ("one", "two")]
        take = suite.Turns.take

        def ended(turns, number):
            if turns.case.name == "two":
                sys.exit(143)
            take(turns, number)

        with mock.patch.object(suite.Turns, "take", ended), self.assertRaises(SystemExit):
            suite.run([self.library("starling", "echo '" + GOOD % "1.5" + "'")], cases, 1, 0, 0.15, path)
        stored = report.load(path)
        self.assertEqual(list(stored["cases"]), ["one"])
        self.assertEqual(stored["cases"]["one"]["rows"][0]["values"]["starling"]["median"], 1.5)

    def test_noise_takes_more_turns_up_to_a_limit(self):
        counter = Path(self.directory.name) / "count"
        script = f"echo x >>{counter}; n=$(wc -l <{counter}); echo '{GOOD}' | sed s/%s/$n/"
        path = os.path.join(self.directory.name, "out.json")
        noisy = suite.run([self.library("starling", script)], [Case("x", "p2p", "x", 2, [], 20)], 2, 0, 0.01, path, 3)
        self.assertEqual(noisy["cases"]["x"]["rows"][0]["values"]["starling"]["turns"], 5)
        steady = self.library("starling", "echo '" + GOOD % "2" + "'")
        calm = suite.run([steady], [Case("x", "p2p", "x", 2, [], 20)], 2, 0, 0.01, path, 3)
        self.assertEqual(calm["cases"]["x"]["rows"][0]["values"]["starling"]["turns"], 2)

    def test_wall_time_is_an_additional_row(self):
        row = GOOD.replace('"what": ""', '"what": "init"') % "2"
        library = self.library("starling", f"sleep 0.1; echo '{row}'")
        case = Case("x", "startup", "x", 4, [], 20, wall=True)
        results = suite.run([library], [case], 1, 0, 0.15, os.path.join(self.directory.name, "out.json"))
        rows = results["cases"]["x"]["rows"]
        self.assertEqual({(row["what"], row["size"]) for row in rows}, {("", 4), ("init", 8)})
        self.assertGreater([row for row in rows if not row["what"]][0]["values"]["starling"]["median"], 100)

    def test_turns_and_failures_in_a_whole_run(self):
        libraries = [self.library("starling", "echo '" + GOOD % "2" + "'"),
                     self.library("peer", "echo '" + GOOD % "4" + "'"),
                     self.library("broken", "exit 1")]
        path = os.path.join(self.directory.name, "out.json")
        results = suite.run(libraries, [Case("x", "p2p", "x", 2, [], 20)], 3, 0, 0.15, path)
        case = results["cases"]["x"]
        row = case["rows"][0]
        self.assertEqual(row["values"]["peer"]["turns"], 3)
        self.assertNotIn("broken", row["values"])
        self.assertTrue(case["status"]["broken"].startswith("refuses"))
        self.assertEqual(report.ratio(case, row), 0.5)
        self.assertEqual(report.load(path)["cases"]["x"]["rows"], case["rows"])


class Judgement(unittest.TestCase):
    def results(self, own, peer, larger=False, disturbed=0):
        values = {"starling": classes.summary(own, 0.15), "peer": classes.summary(peer, 0.15)}
        return {"date": "", "spread": 0.15, "rounds": 3, "runs": 10, "disturbed": disturbed,
                "machine": {"cores": 2}, "classes": [], "kept": 6, "dropped": 0, "shared": {},
                "libraries": {key: {"title": key, "version": ""} for key in values},
                "cases": {"c": {"group": "p2p", "note": "", "larger_is_better": larger,
                                "status": {"starling": "ok", "peer": "ok"},
                                "rows": [{"what": "", "size": 8, "unit": "us", "class": "", "values": values,
                                          "classes": {"": values}}]}}}

    def test_noise_is_detected(self):
        self.assertFalse(classes.summary([10, 10.5, 11], 0.15)["noisy"])
        self.assertTrue(classes.summary([10, 10, 13], 0.15)["noisy"])
        self.assertEqual(report.verdict(self.results([1, 1, 1], [2, 2, 2])), "")
        self.assertIn("between turns", report.verdict(self.results([1, 2, 3], [2, 2, 2])))
        self.assertIn("other work", report.verdict(self.results([1], [2], disturbed=5)))

    def test_best_peer_depends_on_direction(self):
        for larger, mark in ((False, "+"), (True, "-")):
            results = self.results([1], [2], larger)
            case = results["cases"]["c"]
            header = report.header_of(results, wide=True)
            texts = report.wide_texts(results, "c", case, case["rows"][0])
            self.assertEqual(texts[header.index("ratio")], f"0.50 {mark}")

    def test_columns_of_an_earlier_run_are_marked(self):
        now, earlier = self.results([1], [2]), self.results([1], [2])
        del now["libraries"]["peer"], now["cases"]["c"]["status"]["peer"]
        del now["cases"]["c"]["rows"][0]["values"]["peer"]
        report.add_columns(now, earlier)
        self.assertEqual(now["cases"]["c"]["rows"][0]["values"]["peer"]["median"], 2)
        self.assertIn("earlier run", report.verdict(now))

    def test_only_other_libraries_are_peers(self):
        results = self.results([1], [4])
        values = results["cases"]["c"]["rows"][0]["values"]
        values["starling-poll"] = values["limit"] = classes.summary([0.5], 0.15)
        row = results["cases"]["c"]["rows"][0]
        self.assertEqual(report.best_peer(results["cases"]["c"], row), ("peer", 4))
        self.assertEqual(report.distance(results["cases"]["c"], row), 2)
        self.assertEqual(report.distance(results["cases"]["c"] | {"larger_is_better": True}, row), 0.5)

    def test_single_outliers_among_many_turns_are_not_noise(self):
        self.assertFalse(classes.summary([10, 10, 10, 10, 30], 0.15)["noisy"])
        self.assertTrue(classes.summary([10, 10, 10, 30, 30], 0.15)["noisy"])

    def test_many_turns_make_a_median_more_certain(self):
        # The expected values are from tables of the sign test. A 95 % interval of the median extends from the 6th of 20 values, the 10th of
        # 30, the 18th of 50, the 40th of 100, counted from each end.
        self.assertEqual([classes.left_aside(count) for count in (4, 5, 9, 20, 30, 50, 100)], [0, 1, 1, 5, 9, 17, 39])
        scattered = [9, 9, 9.5, 10.5, 11, 11]
        self.assertTrue(classes.summary(scattered, 0.15)["noisy"])
        self.assertTrue(classes.summary(scattered * 3, 0.15)["noisy"])
        self.assertFalse(classes.summary([8, 9, 10, 10, 11, 12] * 12, 0.15)["noisy"])
        self.assertTrue(classes.summary([8, 12] * 40, 0.15)["noisy"], "two places are no scatter")

    def page_of(self, results, **options):
        with tempfile.TemporaryDirectory() as directory:
            page.write(results, os.path.join(directory, "page.html"), **options)
            return Path(directory, "page.html").read_text(encoding="utf-8")

    def test_page_needs_no_external_resources(self):
        results = self.results([1, 1, 1], [2, 2, 2])
        case = results["cases"].pop("c")
        for size in (8, 1024):
            row = case["rows"][0] | {"size": size}
            results["cases"]["latency" if size == 8 else "spawn-<b>"] = case | {"rows": [row, row | {"size": size * 2}]}
        results["cases"]["hang"] = case | {"rows": [], "status": {"peer": "hang", "starling": "refuses: <script>"}}
        text = self.page_of(results)
        self.assertNotIn("src=", text)
        self.assertNotIn("href=", text)
        self.assertNotIn("spawn-<b>", text)  # names are escaped in elements and in the data
        self.assertNotIn("refuses: <script>", text)
        data = json.loads(re.search('id="data">(.*?)</script>', text, re.DOTALL).group(1))
        self.assertEqual([chart["title"] for chart in data["charts"]], ["Half a round trip by size"])
        self.assertEqual({line["key"]: line["points"] for line in data["charts"][0]["series"]},
                         {"starling": [[8, 1], [16, 1]], "peer": [[8, 2], [16, 2]]})
        [group] = data["ratios"]
        self.assertEqual([(row["label"], row["value"], row["peer"]) for row in group["rows"]],
                         [("half a round trip, 8", 2, "peer"), ("half a round trip, 16", 2, "peer"),
                          ("spawn-<b>, 1K", 2, "peer"), ("spawn-<b>, 2K", 2, "peer")])
        self.assertLess(group["low"], 1)
        self.assertGreater(group["high"], 2)
        for name in ("lines0", "ratios0"):  # each chart has its element
            self.assertEqual(text.count(f'id="{name}"'), 1)

    def test_page_has_the_profile_pages_style_and_helpers(self):
        """Both pages are made of the files in tools/page, for a light and a dark theme."""
        text = self.page_of(self.results([1, 1, 1], [2, 2, 2]))
        for name in ("style.css", "helpers.js"):
            self.assertIn((ROOT / "tools" / "page" / name).read_text(encoding="utf-8"), text)
        self.assertIn("prefers-color-scheme: dark", text)
        self.assertNotIn("Not to be trusted", text)
        self.assertIn("1 of 1</b><span>rows at least as good as the best peer", text)
        heads = re.findall("<th[^>]*>(.*?)</th>", text)
        self.assertEqual(heads, ["", "unit", "starling", "peer", "against the best", "best peer", "× limit", "goal"])

    def test_page_without_chart_js_has_the_tables(self):
        text = self.page_of(self.results([1, 1, 1], [2, 2, 2]), chart=Path("/no/such/chart.js"))
        self.assertNotIn("<script", text)
        self.assertNotIn("<canvas", text)
        self.assertIn("install libjs-chart.js", text)
        self.assertIn('<td class="n good">0.50 +</td>', text)

    def test_two_classes_have_a_ratio_each(self):
        results = self.results([1, 1, 1], [2, 2, 2])
        row = results["cases"]["c"]["rows"][0]
        results["classes"] = [{"name": "near", "looks": 3}, {"name": "far", "looks": 3}]
        slow = {key: classes.summary([4] * 3, 0.15) for key in row["values"]} | {"starling": classes.summary([8] * 3, 0.15)}
        row["classes"] = {"near": row["values"], "far": slow}
        text = self.page_of(results)
        self.assertEqual(re.findall("<th[^>]*>(against.*?)</th>", text),
                         ["against the best", "against the best, near", "against the best, far"])
        self.assertEqual(re.findall('<td class="n (good|bad)">', text), ["good", "good", "bad"])

    def test_cases_have_words(self):
        """Every case has words instead of its name, different from those of all others."""
        for quick in (False, True):
            named = [words.of_case(case.name) for case in all_cases(quick)]
            self.assertEqual(len(named), len(set(named)))
            for case, text in zip(all_cases(quick), named):
                self.assertTrue(text != case.name or case.name in ("join", "names"), case.name)
        self.assertEqual(words.of_row("spawn-8", {"what": "first-message", "size": 8}), "spawn of 8 children, first message")
        self.assertEqual(words.of_row("spawn-1", {"what": "spawn", "size": 1}), "spawn of 1 child")
        self.assertEqual(words.of_row("memory-16", {"what": "after-alltoall-pss-kB", "size": 16}),
                         "an idle process of 16, memory in its share after an alltoall")
        self.assertEqual(words.of_row("unknown", {"what": "", "size": 2048}), "unknown, 2K")

    def test_markdown_has_every_row_and_lists_missed_goals(self):
        results = self.results([1, 1, 1], [2, 2, 2])
        results["cases"]["c"]["rows"][0]["goal"] = 0.4
        text = markdown.text(results)
        self.assertIn("| c 8, us | 1, 2 (peer), **0.50** |  | <= 0.4, missed |", text)
        self.assertIn("0 of 1 rows are noisy", text)

    def test_plots_leave_out_values_that_do_not_fit_the_axis(self):
        self.assertEqual(plots.lines("t", {"a": [(0, 1), (8, 0)]}, "x", "y"), "")
        self.assertEqual(plots.lines("t", {"a": []}, "x", "y"), "")
        picture = plots.lines("<t>", {"a": [(8, 3.0), (8, 3.0)]}, "x", "y")
        self.assertIn("polyline", picture)
        xml.dom.minidom.parseString(picture)

    def test_targets_exist(self):
        for quick in (False, True):
            names = [case.name for case in all_cases(quick)]
            self.assertEqual(set(TARGETS) - set(names), set())
            self.assertEqual(len(names), len(set(names)))

    def test_another_build_is_compared_as_a_peer(self):
        found = [library for library in all_libraries("build", "/other/build") if library.key == "before"]
        self.assertEqual([library.launcher for library in found], [["/other/build/bin/mpiexec"]])
        self.assertTrue(report.is_peer("before"))
        self.assertNotIn("before", [library.key for library in all_libraries("build")])

    def test_launchers_oversubscribe_only_where_there_are_too_many(self):
        with_option = Library("one", "one", ["true"], ["echo"], crowded=["--crowded"])
        for case, crowded in ((Case("x", "p2p", "x", 1, [], 20, plain=True), False),
                              (Case("x", "p2p", "x", 4096, [], 20, plain=True), True),
                              (Case("x", "p2p", "x", 1, ["--spawn", "4096"], 20, plain=True), True)):
            self.assertEqual(command_of(with_option, case)[1] == "--crowded", crowded)

    def test_entries_do_not_set_a_binding(self):
        for library in all_libraries("build"):
            words = " ".join(library.launcher + library.crowded + list(library.environment)).lower()
            self.assertNotIn("bind", words)
            self.assertNotIn("pin", words)

    def test_every_case_has_a_group_and_a_program(self):
        groups = {group for library in all_libraries("build") for group in library.groups}
        for case in all_cases(False) + all_cases(True):
            self.assertIn(case.group, GROUPS)
            directory, own, _, _ = sources_of(case.program)
            self.assertTrue(own and all(path.exists() for path in own), case.program)
        self.assertEqual(groups - set(GROUPS), set())

    def test_cpp_programs_get_the_cpp_compiler(self):
        library = Library("one", "one", ["/x/mpicc.openmpi"], [])
        self.assertEqual(compile_command(library, "render-farm", "out")[0], "/x/mpicxx.openmpi")
        self.assertEqual(compile_command(library, "latency", "out")[0], "/x/mpicc.openmpi")


class Limits(unittest.TestCase):
    """Tests the program limits: the rows of each operation, not their values."""

    @classmethod
    def setUpClass(cls):
        cls.limits = build_limits()

    def rows(self, *arguments):
        run = execute_limit(self.limits, Case("x", "p2p", "x", 2, [], 240, limit=list(arguments)), "/bin/echo")
        self.assertEqual(run.status, "ok")
        self.assertTrue(all(row[2] > 0 for row in run.rows), run.rows)
        return [row[:2] for row in run.rows]

    def test_memory(self):
        self.assertEqual(self.rows("latency", "0,8,4096", "0.01"), [("", 0), ("", 8), ("", 4096)])
        self.assertEqual(self.rows("bandwidth", "65536", "0.01"), [("", 65536)])
        self.assertEqual(self.rows("bandwidth-both", "65536", "0.01"), [("", 65536)])
        self.assertEqual(self.rows("alltoall", "0,8", "0.01"), [("alltoall", 0), ("alltoall", 8)])
        self.assertEqual(self.rows("allreduce", "8,4096", "0.01"), [("allreduce", 8), ("allreduce", 4096)])
        self.assertEqual(self.rows("message-rate", "8", "0.01"), [("", 8)])
        self.assertEqual(self.rows("barrier", "2,3", "0.01"), [("barrier", 0), ("barrier", 0)])

    def test_placement(self):
        cores = sorted(os.sched_getaffinity(0))
        if len(cores) >= 2:  # with one core the program does not ask for turns, because there is no placement
            self.assertEqual(self.rows("placement", f"{cores[0]},{cores[1]}", "0.005"), [("", 0)])

    def test_processes(self):
        # echo stands in for the program: it writes more than one byte, which is all that is needed
        self.assertEqual(self.rows("hello", "3", "{}"), [("", 3)])
        self.assertEqual(self.rows("spawn", "1,4", "{}"),
                         [("spawn", 1), ("first-message", 1), ("spawn", 4), ("first-message", 4)])
        self.assertEqual(self.rows("footprint", "2"), [("pss-kB", 2), ("private-kB", 2), ("descriptors", 2)])

    def test_rows_take_the_names_of_the_case(self):
        case = Case("x", "p2p", "x", 2, [], 240, limit=["message-rate", "8", "0.01"], limit_rows={("", 8): ("rate", 1)})
        self.assertEqual(execute_limit(self.limits, case, "").rows[0][:2], ("rate", 1))


if __name__ == "__main__":
    unittest.main()
