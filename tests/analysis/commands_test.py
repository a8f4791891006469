#!/usr/bin/env python3
"""Tests the commands of starling profile: exit codes, messages, files.

    commands_test.py BUILD [TestClass[.test]]...
"""

import gzip
import html.parser
import json
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(sys.argv[1]).resolve()
STARLING = str(BUILD / "bin" / "starling")


def profile(size, occurrences, per_host=None, application="mesh"):
    """Returns the lines of a run in which each rank sends to the next rank, and to another that changes with every occurrence."""
    per_host = per_host or size
    hosts = [f"host{n}" for n in range((size + per_host - 1) // per_host)]
    yield {"kind": "profile", "version": 1, "application": application, "command": ["./" + application, "-i", "4"],
           "started": "2026-11-22T10:00:00Z", "starling": "1.0"}
    yield {"kind": "job", "job": 0, "parent": None, "size": size, "hosts": hosts,
           "places": [[n, n * per_host, min(per_host, size - n * per_host)] for n in range(len(hosts))]}
    for nth in range(1, occurrences + 1):
        for rank in range(size):
            peers = [[0, (rank + d) % size, 100 - d, (100 - d) * 64, 3, 9000, 1, 65536, 40, 40 * 64]
                     for d in (1, size - 1, 2 + nth % 3)]
            yield {"kind": "phase", "job": 0, "rank": rank, "phase": "step", "from": nth, "to": nth, "mark": "program",
                   "began": nth * 0.5, "seconds": 0.5, "peers": peers,
                   "collectives": [["mesh+0x12a0", "world", size, "allreduce", "<=64", "node", 10, 80, 0.05]],
                   "waits": {"late sender": 0.1, "late receiver": 0.02, "collective": 0.05, "other": 0},
                   "waiting": [["mesh+0x13b0", "MPI_Recv", 0.1, 0.02, 0, 0], ["mesh+0x12a0", "MPI_Allreduce", 0, 0, 0.05, 0]],
                   "sizes": [[64, 290, 290 * 60], [4096, 3, 9000]],
                   "connections": [[0.001, 0, peers[0][1], "opened"], [0.4, 0, peers[0][1], "closed"]]}
    for rank in range(size):
        yield {"kind": "end", "job": 0, "rank": rank, "how": "finalized"}


def write(path, lines):
    opened = gzip.open(path, "wt") if str(path).endswith(".gz") else open(path, "w")
    with opened as file:
        for line in lines:
            file.write(json.dumps(line) + "\n")
    return str(path)


class Page(html.parser.HTMLParser):
    """Parses a page: collects its scripts, and checks that every element is closed and nothing is fetched."""
    EMPTY = {"meta", "input", "br", "link", "img", "!doctype"}

    def __init__(self, text):
        super().__init__()
        self.open, self.scripts, self.fetched, self.wrong = [], {}, [], []
        self.ids = set()
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.ids |= {attributes["id"]} if "id" in attributes else set()
        self.fetched += [value for name, value in attributes.items() if name in ("src", "href")]
        if tag not in self.EMPTY:
            self.open.append((tag, attributes.get("id", "")))

    def handle_endtag(self, tag):
        if not self.open or self.open.pop()[0] != tag:
            self.wrong.append(tag)

    def handle_data(self, text):
        if self.open and self.open[-1][0] == "script":
            key = self.open[-1][1]
            self.scripts[key] = self.scripts.get(key, "") + text
        else:
            self.text += text


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name)

    def starling(self, *arguments, code=0):
        done = subprocess.run([STARLING, "profile", *arguments], capture_output=True, text=True, cwd=self.path, timeout=240)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout if code == 0 else done.stderr

    def refused(self, *arguments):
        text = self.starling(*arguments, code=1)
        self.assertEqual(text.count("\n"), 1, text)
        self.assertTrue(text.startswith("starling: "), text)
        return text


class Commands(Case):
    def test_show(self):
        file = write(self.path / "run.jsonl.gz", profile(8, 3, per_host=4))
        text = self.starling("show", file)
        for part in ("mesh: 8 processes on 2 hosts", "./mesh -i 4", "host0 - host1", "mesh+0x12a0", "max_direct",
                     "a message that was sent late"):
            self.assertIn(part, text)
        one = self.starling("show", file, "--phase", "step", "--top", "1")
        self.assertIn("1 of ", one)
        self.assertIn("started 2026-11-22T10:00:00Z with Starling 1.0", text)
        self.assertIn("hosts (processes): host0 (4), host1 (4)", text)
        self.check_order(text, ("Where the time goes", "Waits by call site", "Collective calls", "Phases (", "Messages by size", "Pairs with",
                                "Traffic by path", "What if"))
        self.assertRegex(text, r"\n +64 B +6960 +99 % +█{30} +418 KB +66 %\n +4 KB +72 +1 % +216 KB +34 %\n")

    def test_the_headline_of_one_phase(self):
        """Rank 3 is late in one phase and waits for the others in another, so that over both no rank is late."""
        def waits(phase, rank):
            return 0.01 if (rank == 3) == (phase == "slow") else 0.4

        lines = [line for line in profile(4, 0) if line["kind"] != "end"]
        for nth, phase in enumerate(("slow", "other", "even")):
            for rank in range(4):
                waited = 0.01 if phase == "even" else waits(phase, rank)
                lines.append({"kind": "phase", "job": 0, "rank": rank, "phase": phase, "from": 1, "to": 1, "mark": "program", "began": nth * 0.5,
                              "seconds": 0.5, "peers": [], "collectives": [], "connections": [],
                              "waits": {"late sender": waited, "late receiver": 0, "collective": 0, "other": 0},
                              "waiting": [["mesh+0x13b0", "MPI_Recv", waited, 0, 0, 0]]})
        file = write(self.path / "run", lines)
        headlines = {phase: json.loads(self.starling("show", "--json", "--phase", phase, file))["headline"] for phase in ("slow", "even")}
        self.assertTrue(headlines["slow"].startswith("Rank 3 is late: the others wait 78 % of their time for it"), headlines)
        self.assertTrue(headlines["even"].startswith("The ranks compute 98 % of the time"), headlines)
        self.assertIn(headlines["slow"], self.starling("show", "--phase", "slow", file))
        self.assertNotIn(headlines["slow"], self.starling("show", file))

    def check_order(self, text, parts):
        places = [text.find(part) for part in parts]
        self.assertNotIn(-1, places, parts)
        self.assertEqual(places, sorted(places))

    def test_json(self):
        """All numbers of the text are in the JSON, which has all rows unless --top is given."""
        file = write(self.path / "run.jsonl.gz", profile(8, 3, per_host=4))
        data = json.loads(self.starling("show", "--json", file))
        self.assertEqual((data["report"], data["application"], data["command"], data["processes"]), (1, "mesh", ["./mesh", "-i", "4"], 8))
        self.assertEqual((data["started"], data["starling"]), ("2026-11-22T10:00:00Z", "1.0"))
        self.assertEqual(data["hosts"], [{"host": "host0", "processes": 4}, {"host": "host1", "processes": 4}])
        self.assertAlmostEqual(data["process_seconds"], 8 * 3 * 0.5)
        self.assertAlmostEqual(data["waits"]["late_sender"], 8 * 3 * 0.1)
        self.assertAlmostEqual(data["waited_seconds"], 8 * 3 * 0.17)
        [step] = data["phases"]
        self.assertEqual((step["phase"], step["times"], step["mark"]), ("step", 3, "program"))
        [call] = data["collectives"]
        self.assertEqual((call["site"], call["call"], call["size"], call["calls"]), ("mesh+0x12a0", "allreduce", "<=64", 240))
        self.assertEqual([place["call"] for place in data["waiting"]], ["MPI_Recv", "MPI_Allreduce"])
        self.assertEqual(len(data["pairs"]), data["rows"]["pairs"])
        self.assertGreater(len(data["pairs"]), 10)
        self.assertEqual({row["most"]: row["messages"] for row in data["sizes"]}, {64: 8 * 3 * 290, 4096: 8 * 9})
        self.assertEqual(data["connections"]["plan"][0], 0)
        few = json.loads(self.starling("show", "--json", "--top", "2", file))
        self.assertEqual((len(few["pairs"]), few["rows"]["pairs"]), (2, data["rows"]["pairs"]))
        self.assertEqual([(rank["rank"], rank["host"]) for rank in data["timeline"]], [(n, f"host{n // 4}") for n in range(8)])
        for rank in data["timeline"]:
            self.assertEqual([(p["phase"], p["from"], p["began"], p["seconds"]) for p in rank["phases"]],
                             [("step", n, n * 0.5, 0.5) for n in (1, 2, 3)])
            self.assertAlmostEqual(rank["phases"][0]["waited"], 0.17)
        merged = json.loads(self.starling("show", "--json", file, file))
        self.assertAlmostEqual(merged["waited_seconds"], data["waited_seconds"])
        self.assertAlmostEqual(merged["timeline"][0]["phases"][0]["waited"], 0.17)

    def test_json_of_one_phase(self):
        lines = list(profile(4, 2))
        for line in lines:
            if line.get("from") == 2:
                line.update(phase="other", to=1, **{"from": 1})
        data = json.loads(self.starling("show", "--json", "--phase", "other", write(self.path / "run", lines)))
        self.assertEqual([row["phase"] for row in data["phases"]], ["other"])
        self.assertNotIn("collectives", data)  # recorded by call site, not by phase

    def test_sizes_are_checked(self):
        lines = list(profile(2, 1))
        for wrong, why in (([[64, 1]], "a size has 2 numbers instead of 3"), ([[-1, 1, 1]], "a size of messages is not a whole number"),
                           (3, "\"sizes\" is not a list")):
            lines[2]["sizes"] = wrong
            self.assertIn(why, self.refused("show", write(self.path / "run", lines)))

    def test_merged_is_the_mean(self):
        file = write(self.path / "run.jsonl", profile(8, 3))
        once, twice = self.starling("show", file), self.starling("show", file, file)
        self.assertIn("the mean of 2 runs", twice)
        self.assertEqual(once.splitlines()[2:], twice.splitlines()[2:])

    def test_plan(self):
        file = write(self.path / "run.jsonl.gz", profile(8, 3))
        said = self.starling("plan", file)
        self.assertIn("mpiexec -n 8 --plan mesh.plan ./mesh -i 4", said)
        plan = json.loads((self.path / "mesh.plan").read_text())
        self.assertEqual((plan["starling_plan"], plan["application"], plan["size"]), (1, "mesh", 8))
        self.assertEqual(plan["from"], [file])
        self.assertIsNone(plan["phases"][-1]["to"])
        self.starling("plan", "--max-direct", "1", "-o", "other", file)
        for phase in json.loads((self.path / "other").read_text())["phases"]:
            self.assertTrue(all(len(peers) == 1 for peers in phase["peers"].values()))

    def test_plan_for_other_sizes_and_hosts(self):
        file = write(self.path / "run.jsonl.gz", profile(8, 3))
        said = self.starling("plan", file, "--size", "32", "--host", "a:8,b:8,c:8,d:8")
        self.assertIn("scaled from 8 processes", said)
        self.assertIn("mpiexec -n 32", said)
        plan = json.loads((self.path / "mesh.plan").read_text())
        self.assertEqual(plan["size"], 32)
        self.assertTrue(all(int(rank) < 32 for phase in plan["phases"] for rank in phase["peers"]))

    def test_placement(self):
        lines = list(profile(16, 1, per_host=4))
        for line in lines:  # ranks with equal numbers modulo 4 communicate
            if line["kind"] == "phase":
                line["peers"] = [[0, (line["rank"] + 4) % 16, 100, 100000, 0, 0, 0, 0, 0, 0]]
        said = self.starling("plan", write(self.path / "run", lines))
        self.assertIn("(100 % less)", said)
        self.assertIn("--rankfile mesh.plan.ranks", said)
        ranks = [line for line in (self.path / "mesh.plan.ranks").read_text().splitlines() if not line.startswith("#")]
        self.assertEqual(ranks[0], "rank 0=host0 slot=0")
        self.assertEqual(ranks[4], "rank 4=host0 slot=1")
        placement = json.loads((self.path / "mesh.plan").read_text())["placement"]
        self.assertEqual([rank for _, rank in placement], list(range(16)))
        self.assertEqual(len({host for host, rank in placement if rank % 4 == 1}), 1)

    def test_page_on_a_narrow_screen(self):
        """A wide table scrolls, and labels of call sites have two lines: in one line their first letters were cut."""
        self.starling("show", "--html", "narrow.html", write(self.path / "run", profile(8, 3)))
        text = (self.path / "narrow.html").read_text()
        self.assertRegex(text, r"\.wide \{ overflow-x: auto; \}")
        self.assertEqual(text.count("<table"), text.count('<div class="wide"><table'))
        self.assertEqual(text.count("map(siteLabel)"), 1)
        self.assertEqual(text.count("map(callLabel)"), 1)
        self.assertIn("const callLabel = s => siteLabel(", text)
        self.assertNotIn('.call + "  " + p.site)', text)

    def test_page(self):
        lines = list(profile(8, 3, per_host=4))
        lines[0]["application"] = lines[2]["phase"] = "</script><b>&"
        self.starling("show", "--html", "page.html", write(self.path / "run", lines))
        page = Page((self.path / "page.html").read_text())
        self.assertEqual((page.open, page.wrong, page.fetched), ([], [], []))
        used = set(re.findall(r'\$\("(\w+)"\)|stacked\("(\w+)"', page.scripts[""]))
        self.assertLessEqual({one or other for one, other in used}, page.ids)  # a missing element would end the script
        self.assertGreater(len(used), 20)
        self.assertNotIn("{{", page.scripts[""].split('"use strict"')[-1])
        data = json.loads(page.scripts["data"])
        self.assertEqual((data["application"], data["processes"], len(data["pictures"]["frames"])), ("</script><b>&", 8, 4))
        self.assertEqual([(host["first"], host["count"]) for host in data["pictures"]["blocks"]], [(0, 4), (4, 4)])
        sent = {}
        for frame in data["pictures"]["frames"]:
            cells = frame["cells"]
            self.assertEqual(len(cells) % 5, 0)
            for i in range(0, len(cells), 5):
                key = (cells[i], cells[i + 1])
                sent[key] = sent.get(key, 0) + cells[i + 2]
        real = {}
        for line in lines:
            for peer in line.get("peers", []):
                key = (line["rank"], peer[1])
                real[key] = real.get(key, 0) + peer[2] + peer[4] + peer[6]
        self.assertEqual(sent, real)
        self.assertEqual(data["pictures"]["connections"]["open"][-1], 0)
        self.assertEqual(sum(data["pictures"]["connections"]["opened"]), 24)
        self.assertIn("Chart.js", page.scripts[""])
        self.check_order(page.text, ("Where the time goes", "Waiting by call site", "Phases of each rank", "Messages by size",
                                     "Messages between processes", "Connections by time", "Gain of a plan"))

    def test_rows_of_ranks_in_the_page(self):
        """Each rank has a row, whose pieces have the phases in their order and the share of time waited."""
        lines = list(profile(4, 2))
        for line in lines:
            if line.get("from") == 2:
                line.update(phase="other", to=1, **{"from": 1})
        lines[2]["waits"] = {"late sender": 0.45}
        self.starling("show", "--html", "page.html", write(self.path / "run", lines))
        ranks = json.loads(Page((self.path / "page.html").read_text()).scripts["data"])["pictures"]["ranks"]
        self.assertEqual(ranks["phases"], ["step", "other"])
        for rank, row in enumerate(ranks["rows"]):
            pieces = [tuple(row[i:i + 3]) for i in range(0, len(row), 3)]
            self.assertEqual(sum(piece[0] for piece in pieces), 240)
            self.assertAlmostEqual(ranks["step"] * 240, 1.5)
            # Nothing before 0.5 s, then one phase of 0.5 s and the other.
            self.assertEqual(pieces, [(80, -1, 0), (80, 0, 90 if rank == 0 else 34), (80, 1, 34)])

    def test_ten_thousand_ranks(self):
        size, wide = 10000, 100
        with gzip.open(self.path / "large.jsonl.gz", "wt", compresslevel=1) as file:
            for line in list(profile(size, 0, per_host=100))[:2]:
                file.write(json.dumps(line) + "\n")
            for nth in range(1, 6):
                for rank in range(size):
                    peers = ",".join(f"[0,{(rank + d * (1 + nth % 2)) % size},50,5000,0,0,0,0,25,2500]"
                                     for d in (1, -1, wide, -wide, wide + 1, wide - 1, -wide - 1, -wide + 1))
                    file.write(f'{{"kind":"phase","job":0,"rank":{rank},"phase":"step","from":{nth},"to":{nth},"began":{nth},'
                               f'"seconds":1,"peers":[{peers}]}}\n')
        self.assertIn("10000 processes on 100 hosts", self.starling("show", "large.jsonl.gz"))
        self.starling("show", "--html", "large.html", "large.jsonl.gz")
        self.assertLess((self.path / "large.html").stat().st_size, 3e6)  # binned
        self.starling("plan", "-o", "large.plan", "large.jsonl.gz")
        self.assertEqual(json.loads((self.path / "large.plan").read_text())["size"], size)
        if b"libasan" not in subprocess.run(["ldd", STARLING], capture_output=True).stdout:
            self.assertLess(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, 600 * 1024)  # KB, of the largest

    def test_diff(self):
        lines = list(profile(8, 3))
        before = write(self.path / "before", lines)
        self.assertIn("There is no significant difference", self.starling("diff", before, before))
        for line in lines:
            if line["kind"] == "phase":
                line["seconds"] *= 2
                for peer in line["peers"]:
                    peer[8] = 0
        after = write(self.path / "after", lines)
        rows = self.starling("diff", before, after).splitlines()
        first = next(row for row in rows if "time, all processes" in row)
        self.assertRegex(first, r"step +time, all processes +12.0 s +24.0 s +\+100 % +100 %")
        self.assertLess(rows.index(first), rows.index(next(row for row in rows if "on connections  " in row)))
        other = write(self.path / "other", profile(8, 3, application="other"))
        self.assertTrue(self.starling("diff", before, other).startswith(f"mesh: {before} -> other: {other}\n"))

    def test_diff_of_two_builds(self):
        """Call sites of two builds are different addresses of the same calls: they are compared by call."""
        lines = list(profile(8, 3, application="mesh"))
        before = write(self.path / "before", lines)
        for line in lines:
            if line["kind"] == "profile":
                line["application"] = "mesh-fast"
            for row in line.get("collectives", []):
                row[0], row[8] = "mesh-fast+0x9999", 0.2
        after = write(self.path / "after", lines)
        text = self.starling("diff", before, after)
        self.assertIn(f"mesh: {before} -> mesh-fast: {after}\n", text)
        self.assertIn("note: two programs or builds: call sites differ, so collective calls are compared by operation", text)
        self.assertRegex(text, r"\n  allreduce <=64: node +time in the call +1.20 s +4.80 s +\+300 % ")
        self.assertNotIn("new", text)
        self.assertNotIn("gone", text)
        one = self.starling("diff", before, before)
        self.assertNotIn("note:", one)

    def test_refusals(self):
        whole = (json.dumps(line) + "\n" for line in profile(4, 1))
        text = "".join(whole)
        (self.path / "cut.jsonl.gz").write_bytes(gzip.compress(text.encode())[:-30])
        self.assertIn("cut.jsonl.gz is truncated within its compressed data", self.refused("show", "cut.jsonl.gz"))
        (self.path / "empty").write_text("")
        self.assertIn("empty is empty", self.refused("show", "empty"))
        self.assertIn("cannot read nowhere: No such file", self.refused("show", "nowhere"))
        self.assertIn("cannot read .: Is a directory", self.refused("show", "."))
        (self.path / "wrong").write_text(text.replace('"rank": 3', '"rank": 4'))
        self.assertRegex(self.refused("plan", "wrong"), "wrong, line 6: a rank is not a whole number from 0 to 3")
        (self.path / "right").write_text(text)
        self.assertIn("has no phase 'hop'; it has 'step'", self.refused("show", "right", "--phase", "hop"))
        self.assertIn("cannot write nowhere/plan", self.refused("plan", "right", "-o", "nowhere/plan"))
        other = write(self.path / "other", profile(4, 1, application="other"))
        self.assertIn("runs of one application can be merged", self.refused("show", "right", other))

    def test_help(self):
        text = self.starling("--help")
        for part in ("show", "plan", "diff"):
            self.assertIn(part, text)


class Real(Case):
    def test_a_real_run(self):
        file = str(self.path / "real.jsonl.gz")
        subprocess.run([BUILD / "bin" / "mpiexec", f"--profile={file}", "-n", "8", BUILD / "tests" / "profile" / "pattern", "ring"],
                       check=True, capture_output=True, timeout=240)
        text = self.starling("show", file)
        self.assertIn("pattern: 8 processes on 1 host", text)
        self.assertRegex(text, r"\n  ring +program ")
        self.starling("show", "--html", "real.html", file)
        page = Page((self.path / "real.html").read_text())
        self.assertEqual((page.open, page.wrong), ([], []))
        ring = [frame for frame in json.loads(page.scripts["data"])["pictures"]["frames"] if frame["phase"] == "ring"]
        for rank in range(8):  # messages per rank; collectives may send more
            sent = sum(frame["cells"][i + 2] for frame in ring for i in range(0, len(frame["cells"]), 5)
                       if frame["cells"][i:i + 2] == [rank, (rank + 1) % 8])
            self.assertGreaterEqual(sent, 21)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
