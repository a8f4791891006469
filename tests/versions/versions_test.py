#!/usr/bin/env python3
"""Combines installations of different releases: the library of one, launcher and daemons of another (docs/versions.md).

    versions_test.py BUILD [OTHER]    OTHER: an installation of another release with the same first number of its wire version

The other releases are copies of the tree with another version patched into each file, after a mark (base/version.h). OTHER, for runs by
hand, is a real release.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from releases import as_release  # noqa: E402

BUILD = pathlib.Path(sys.argv[1]).resolve()
OTHER = pathlib.Path(sys.argv[2]).resolve() if len(sys.argv) > 2 else None
ROOT = pathlib.Path(__file__).resolve().parents[2]
FILES = ("bin/mpiexec", "bin/starlingd", "bin/starling", "lib/libmpi_abi.so.1")


def copy_as(folder, release, major, minor):
    """Returns a copy of the tree that claims another release."""
    for name in FILES:
        there = folder / name
        there.parent.mkdir(parents=True, exist_ok=True)
        there.write_bytes(as_release((BUILD / name).read_bytes(), release, major, minor))
        there.chmod(0o755)
    return folder


class Versions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.kept = tempfile.TemporaryDirectory()
        root = pathlib.Path(cls.kept.name)
        shown = subprocess.run([BUILD / "bin/starling", "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout
        major, minor = map(int, re.search(r"\(wire (\d+)\.(\d+)\)", shown).groups())
        cls.this = BUILD
        cls.own = re.search(r"[\d.]+ \(wire [\d.]+\)", shown)[0]
        cls.newer = OTHER or copy_as(root / "newer", "7.8.9", major, minor + 1)
        cls.older = copy_as(root / "older", "0.0.9", major, 0)
        cls.alien = copy_as(root / "alien", "99.0.1", major + 1, 0)
        cls.alien_text = f"99.0.1 (wire {major + 1}.0)"
        cls.ring, cls.spawn, cls.pattern = root / "ring", root / "spawn", root / "pattern"
        for program, source in ((cls.ring, "tests/wrappers/ring.c"), (cls.spawn, "tests/mpi/spawn.c"), (cls.pattern, "tests/profile/pattern.c")):
            extra = ["-x", "c++"] if source.endswith(".cpp") else []
            subprocess.run([BUILD / "bin/mpicc", *extra, ROOT / source, "-o", program], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.kept.cleanup()

    def start(self, launcher, library, *arguments, **more):
        environment = {**os.environ, "LD_LIBRARY_PATH": f"{library}/lib", "STARLING_UNIVERSE": f"versions{os.getpid()}", **more}
        result = subprocess.run([launcher / "bin/mpiexec", *map(str, arguments)], env=environment, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, timeout=240, cwd=self.kept.name)
        return result.returncode, result.stdout, result.stderr

    def agent(self, tree):
        """Returns an agent that starts each daemon from another tree, on this machine, as a pretended host."""
        file = pathlib.Path(self.kept.name, f"agent-{tree.name}")
        file.write_text(f'#!/bin/sh\nhost=$1\nshift\nexec sh -c "$(echo "$*" | sed "s|[^ ]*/bin/starlingd|{tree}/bin/starlingd|") apart $host"\n')
        file.chmod(0o755)
        return file

    def test_they_say_who_they_are(self):
        self.assertEqual(self.start(self.alien, self.this, "--version")[1].splitlines()[0], f"Starling mpiexec {self.alien_text}")
        self.assertIn(self.own.split()[0], subprocess.run([BUILD / "bin/starling", "info"], stdout=subprocess.PIPE, text=True).stdout)

    def test_within_a_major_version_either_way_works(self):
        for launcher, library in ((self.this, self.newer), (self.newer, self.this)):
            self.assertEqual(self.start(launcher, library, "-n", 3, self.ring), (0, "ring of 3\n", ""))

    def test_spawning_does_too(self):
        """The library sends the spawn request to the launcher's control socket."""
        for launcher, library in ((self.this, self.newer), (self.newer, self.this)):
            code, out, err = self.start(launcher, library, "-n", 2, self.spawn)
            self.assertEqual(code, 0, out + err)

    def test_profiles_have_sizes_only_if_the_launcher_knows_them(self):
        """Releases before wire version 1.1 refuse reports with the histogram of message sizes."""
        for launcher, known in ((self.this, True), (self.newer, True), (self.older, False)):
            code, out, err = self.start(launcher, self.this, "--profile=run.jsonl", "-n", 3, self.ring)
            self.assertEqual((code, out), (0, "ring of 3\n"), err)
            lines = [json.loads(line) for line in pathlib.Path(self.kept.name, "run.jsonl").read_text().splitlines()]
            phases = [line for line in lines if line["kind"] == "phase"]
            self.assertEqual({line["rank"] for line in phases if line["peers"]}, {0, 1, 2})
            self.assertEqual({line["rank"] for line in phases if "sizes" in line}, {0, 1, 2} if known else set())

    def test_a_profile_has_the_ranks_of_hosts_with_newer_daemons(self):
        """The daemon there creates a segment of its own version. The root reads no sizes, and each rank repeats its report without them."""
        code, out, err = self.start(self.older, self.this, "--profile=hosts.jsonl", "--host", "localhost:1,b:2", "-n", 3, self.ring,
                                    STARLING_LAUNCHER_AGENT=str(self.agent(self.this)))
        self.assertEqual((code, out), (0, "ring of 3\n"), err)
        lines = [json.loads(line) for line in pathlib.Path(self.kept.name, "hosts.jsonl").read_text().splitlines()]
        phases = [line for line in lines if line["kind"] == "phase"]
        self.assertEqual({line["rank"] for line in phases if line["peers"]}, {0, 1, 2})
        self.assertFalse([line for line in phases if "sizes" in line])

    def test_refused_reports_are_repeated_in_order(self):
        """Reports of phases without messages are accepted by no root that refuses those with messages, and so do not overtake them."""
        for mode in ("short", "sparse"):
            code, _, err = self.start(self.older, self.this, f"--profile={mode}.jsonl", "--host", "localhost:1,b:1", "-n", 2, self.pattern, mode, 20,
                                      STARLING_LAUNCHER_AGENT=str(self.agent(self.this)))
            self.assertEqual((code, err.count("\n")), (0, 1), err)
            lines = [json.loads(line) for line in pathlib.Path(self.kept.name, f"{mode}.jsonl").read_text().splitlines()]
            for rank in range(2):
                steps = [n for line in lines if (line.get("phase"), line.get("rank")) == ("step", rank) for n in range(line["from"], line["to"] + 1)]
                self.assertEqual(steps, list(range(1, 21)), mode)
                self.assertEqual([line["how"] for line in lines if (line["kind"], line.get("rank")) == ("end", rank)], ["finalized"])

    def test_a_library_of_another_major_version_is_refused(self):
        for launcher, library, first, second in ((self.this, self.alien, self.own, self.alien_text),
                                                 (self.alien, self.this, self.alien_text, self.own)):
            code, _, err = self.start(launcher, library, "-n", 2, self.ring)
            self.assertNotEqual(code, 0)
            self.assertRegex(err, rf"was started by Starling {re.escape(first)}, and this is Starling {re.escape(second)}; they work together if")

    def test_daemons_on_other_hosts(self):
        code, out, err = self.start(self.this, self.this, "--host", "a,b", "-n", 2, self.ring, STARLING_LAUNCHER_AGENT=str(self.agent(self.newer)))
        self.assertEqual((code, out), (0, "ring of 2\n"), err)
        code, out, err = self.start(self.this, self.this, "--host", "a,b", "-n", 2, self.ring, STARLING_LAUNCHER_AGENT=str(self.agent(self.alien)))
        self.assertNotEqual(code, 0)
        self.assertIn(f"belongs to Starling {self.alien_text}, but this is Starling {self.own}", err)
        self.assertIn("they work together if", err)

    def test_daemons_that_list_no_processes_are_not_asked_to(self):
        """mpiexec lists the processes of a few hosts for debuggers as soon as a job has started."""
        agent = str(self.agent(self.older))
        for hosts in ("a,b", "localhost,b"):
            self.assertEqual(self.start(self.this, self.this, "--host", hosts, "-n", 2, self.ring, STARLING_LAUNCHER_AGENT=agent), (0, "ring of 2\n", ""))

    def test_standing_daemons(self):
        environment = {**os.environ, "STARLING_UNIVERSE": f"versions{os.getpid()}", "STARLING_LAUNCHER_AGENT": str(self.agent(self.this))}
        subprocess.run([self.this / "bin/starling", "daemon", "start", "--host", "a,b"], env=environment, check=True, stdout=subprocess.DEVNULL)
        try:
            self.assertEqual(self.start(self.newer, self.this, "--via", "daemons", "-n", 2, self.ring), (0, "ring of 2\n", ""))
            code, _, err = self.start(self.alien, self.this, "--via", "daemons", "-n", 2, self.ring)
            self.assertNotEqual(code, 0)
            self.assertIn(f"the standing daemons are of Starling {self.own}, and this mpiexec of Starling {self.alien_text}", err)
        finally:
            subprocess.run([self.this / "bin/starling", "daemon", "stop"], env=environment, stdout=subprocess.DEVNULL)

    def under_hydra(self, second):
        """Starts two ranks under Hydra, the second with another library. Returns exit code and output."""
        script = pathlib.Path(self.kept.name, "by-rank")
        script.write_text(f'#!/bin/sh\n[ "$PMI_RANK" = 1 ] && LD_LIBRARY_PATH={second}/lib && export LD_LIBRARY_PATH\nexec {self.ring}\n')
        script.chmod(0o755)
        result = subprocess.run(["mpiexec.hydra", "-n", "2", script], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=240,
                                env={**os.environ, "LD_LIBRARY_PATH": f"{self.this}/lib"})
        return result.returncode, result.stdout

    def test_ranks_that_another_manager_has_started(self):
        """A host's helper has the release of the rank that started first."""
        if not shutil.which("mpiexec.hydra"):
            self.fail("mpiexec.hydra is missing (Debian's package mpich)")
        self.assertEqual(self.under_hydra(self.newer), (0, "ring of 2\n"))
        wire, alien_wire = (re.search(r"wire ([\d.]+)", text)[1] for text in (self.own, self.alien_text))
        refusals = [f"run different versions of Starling: the library of this one has wire version {one}, that of the first rank on "
                    f"this host has {other}"
                    for one, other in ((alien_wire, self.own), (wire, self.alien_text))]
        code, out = self.under_hydra(self.alien)
        self.assertNotEqual(code, 0)
        self.assertTrue(any(refusal in out for refusal in refusals), out)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
