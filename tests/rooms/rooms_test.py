#!/usr/bin/env python3
"""Checks the #includes of src/ against src/rooms.txt, the names of unit tests against the rooms, and that docs/rooms.svg is current. Tests
the checks themselves on small trees with known faults."""
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "src"


def read_table(path):
    """Returns the table's rooms in order, each with the rooms that it may include."""
    table = {}
    for line in path.read_text().splitlines():
        if match := re.match(r"([a-z/]+): *([a-z/ ]*)$", line):
            table[match[1]] = match[2].split()
        elif line and not line.startswith("#"):
            raise ValueError(f"{path.name}: {line!r} is not a row of the table")
    return table


def faults(sources):
    """Returns one sentence per error in the table or in the includes."""
    table = read_table(sources / "rooms.txt")
    rooms = list(table)

    def room_of(folder):
        names = folder.split("/")
        return next((name for n in range(len(names), 0, -1) if (name := "/".join(names[:n])) in table), None)

    found = []
    for room, needs in table.items():
        for need in needs:
            if need not in table:
                found.append(f"rooms.txt: {room} stands on {need}, which is no room")
            elif rooms.index(need) >= rooms.index(room):
                found.append(f"rooms.txt: {room} stands on {need}, which does not lie below it")
        if not (sources / room).is_dir():
            found.append(f"rooms.txt: {room} is no folder")
    used = set()
    for file in sorted(file for ending in ("h", "cpp") for file in sources.rglob(f"*.{ending}")):
        name = file.relative_to(sources).as_posix()
        room = room_of(name)
        if not room:
            found.append(f"{name} is in no room")
            continue
        for number, line in enumerate(file.read_text().splitlines(), 1):
            match = re.match(r'\s*#\s*include\s*"([^"]+)"', line)
            if not match or not (other := room_of(match[1])) or other == room:
                continue
            used.add((room, other))
            if other not in table[room]:
                found.append(f"{name}:{number} includes {match[1]}: {room} may not include {other}")
    found += [f"rooms.txt: {room} stands on {need}, but includes nothing of it"
              for room, needs in table.items() for need in needs if need in table and (room, need) not in used]
    return found


def misnamed(tests, sources):
    """Returns the unit tests that are not named <room>_<what>_test.cpp or <room>_test.cpp, after a room whose header they include."""
    found = []
    for file in sorted(tests.glob("*.cpp")):
        rooms = [room for room in read_table(sources / "rooms.txt") if re.match(room.replace("/", "_") + "_(.+_)?test$", file.stem)]
        text = file.read_text()
        if not rooms:
            found.append(f"{file.name} is not called <room>_<what>_test.cpp")
        elif not any(re.search(rf'^#include "{room}/', text, re.MULTILINE) for room in rooms):
            found.append(f"{file.name} includes nothing of {' or '.join(rooms)}")
    return found


def named_functions(sources, functions):
    """Returns the places in src/ that contain an MPI function's name, which only generated entries may know (base/current_function.h)."""
    names = {line.split("\t")[0] for line in functions.read_text().splitlines()[1:]}
    return [f"{file.relative_to(sources).as_posix()}:{number} writes {literal}"
            for file in sorted([*sources.rglob("*.h"), *sources.rglob("*.cpp")])
            for number, line in enumerate(file.read_text().splitlines(), 1)
            for literal in re.findall(r'"(MPI_\w+)"|(__builtin_FUNCTION)', line.split("//")[0])
            for literal in literal if literal in names or literal.startswith("__")]


class Starling(unittest.TestCase):
    def test_arrows(self):
        self.assertEqual(faults(SOURCES), [])

    def test_picture_is_current(self):
        with tempfile.TemporaryDirectory() as folder:
            drawn = Path(folder) / "rooms.svg"
            subprocess.run([ROOT / "tools" / "rooms-picture", "--out", drawn], check=True)
            self.assertEqual(drawn.read_text(), (ROOT / "docs" / "rooms.svg").read_text(), "run tools/rooms-picture")

    def test_names_of_unit_tests(self):
        self.assertEqual(misnamed(ROOT / "tests" / "unit", SOURCES), [])

    def test_names_of_functions(self):
        self.assertEqual(named_functions(SOURCES, ROOT / "tools" / "abi" / "functions.tsv"), [])


class TheCheck(unittest.TestCase):
    """Each tree has one fault, which the check must find."""

    def faults_of(self, table, **files):
        with tempfile.TemporaryDirectory() as folder:
            sources = Path(folder)
            (sources / "rooms.txt").write_text(table)
            for line in table.splitlines():
                (sources / line.split(":")[0]).mkdir(parents=True, exist_ok=True)
            for name, text in files.items():
                path = sources / (name.replace("_", "/") + ".h")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            return faults(sources)

    def test_no_fault(self):
        self.assertEqual(self.faults_of("low:\nhigh: low\n", high_a='#include "low/b.h"\n#include <vector>\n#include "mpi.h"\n'), [])

    def test_an_arrow_that_is_not_in_the_table(self):
        self.assertEqual(self.faults_of("low:\nhigh:\n", high_a='\n  # include "low/b.h"\n'),
                         ["high/a.h:2 includes low/b.h: high may not include low"])

    def test_a_room_within_a_room(self):
        table = "net/low:\nnet/high: net/low\n"
        self.assertEqual(self.faults_of(table, net_high_a='#include "net/low/b.h"\n'), [])
        self.assertEqual(self.faults_of(table, net_high_a='#include "net/low/b.h"\n', net_low_b='#include "net/high/a.h"\n'),
                         ["net/low/b.h:1 includes net/high/a.h: net/low may not include net/high"])

    def test_an_arrow_that_nobody_uses(self):
        self.assertEqual(self.faults_of("low:\nhigh: low\n", high_a=""), ["rooms.txt: high stands on low, but includes nothing of it"])

    def test_a_circle(self):
        found = self.faults_of("one: two\ntwo: one\n", one_a='#include "two/b.h"\n', two_b='#include "one/a.h"\n')
        self.assertEqual(found, ["rooms.txt: one stands on two, which does not lie below it"])

    def test_names_of_unit_tests(self):
        files = {"net_low_ring_test": '#include "net/low/ring.h"\n', "net_low_test": '#include "net/low/ring.h"\n',
                 "net_low_ring": '#include "net/low/ring.h"\n', "ring_test": '#include "net/low/ring.h"\n', "high_test": ""}
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "rooms.txt").write_text("net/low:\nhigh: net/low\n")
            for name, text in files.items():
                (Path(folder) / f"{name}.cpp").write_text(text)
            self.assertEqual(misnamed(Path(folder), Path(folder)), [
                "high_test.cpp includes nothing of high", "net_low_ring.cpp is not called <room>_<what>_test.cpp",
                "ring_test.cpp is not called <room>_<what>_test.cpp"])

    def test_names_of_functions(self):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "functions.tsv").write_text("name\ttopic\nMPI_Send\tp2p\n")
            (Path(folder) / "a.cpp").write_text('fail("MPI_Send"); name("MPI_INT");\nint f(const char* = __builtin_FUNCTION());  // "MPI_Send"\n')
            self.assertEqual(named_functions(Path(folder), Path(folder) / "functions.tsv"),
                             ["a.cpp:1 writes MPI_Send", "a.cpp:2 writes __builtin_FUNCTION"])

    def test_a_file_of_no_room(self):
        self.assertEqual(self.faults_of("low:\n", other_a=""), ["other/a.h is in no room"])


if __name__ == "__main__":
    unittest.main()
