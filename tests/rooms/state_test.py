#!/usr/bin/env python3
"""Checks the library's variables against src/base/state.h: every variable that changes must be marked, so that all are in one section.
Tests the check itself on small sources with known faults. The argument is the file that lists the library's objects."""
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SECTION = "starling_state"
CURE = "mark it STARLING_STATE (src/base/state.h)"
CURE_GUARD = "make it a STARLING_STATE Lazy<T> or NoDestroy<T>: nothing is made behind a guard"
CURE_THREAD = "a thread's own variable is not part of the state: give the reason in tests/rooms/state_test.py, or make it one of the process"

# Variables that change and are not part of the state, each with the reason.
ALLOWED = {
    "starling::calling": "which MPI function a thread is in",
    "starling::profile::watched": "which collective call a thread is in",
    "starling::(anonymous namespace)::last_failure": "the sentence of a thread's last error, until it is reported",
    "std::__n4861::coroutine_handle<std::__n4861::noop_coroutine_promise>::_S_fr":
        "libstdc++'s frame of the coroutine that does nothing; nobody writes it",
}

# Matches a line of objdump's symbol table, for example:
# 0000000000000000 l     O .bss   0000000000000008 starling::(anonymous namespace)::owner
ROW = re.compile(r"[0-9a-f]+ (.{7}) (\S+)\t[0-9a-f]+ +(?:\.(?:hidden|internal|protected) )?(.+)$")


def is_written(section):
    """Returns whether variables in this section may change while the process runs. .data.rel.ro does not change after loading."""
    return section == "*COM*" or (re.match(r"\.(data|bss|tdata|tbss|ldata|lbss)\b", section) and not section.startswith(".data.rel.ro"))


def faults(objects):
    """Returns a sentence for each variable that changes and is neither part of the state nor in ALLOWED."""
    listing = subprocess.run([os.environ.get("OBJDUMP") or "objdump", "-t", "-C", *objects], check=True, capture_output=True, text=True)
    found, file = [], ""
    for line in listing.stdout.splitlines():
        if match := re.match(r"(.+): +file format", line):
            # build/CMakeFiles/objects_link.dir/src/link/wires.cpp.o
            file = re.sub(r"^.*\.dir/|\.o$", "", match[1])
            continue
        match = ROW.match(line)
        if not match or "d" in match[1] or "f" in match[1] or not is_written(match[2]):
            continue
        name = match[3]
        if name in ALLOWED or name.startswith("DW.ref."):
            continue
        cure = CURE_GUARD if name.startswith("guard variable") else CURE_THREAD if match[2].startswith(".t") else CURE
        found.append(f"{file}: {name} changes outside of the process's state; {cure}")
    return found


def marked(objects):
    """Returns the number of marked variables."""
    listing = subprocess.run([os.environ.get("OBJDUMP") or "objdump", "-t", *objects], check=True, capture_output=True, text=True)
    return sum(bool((match := ROW.match(line)) and match[2] == SECTION and "O" in match[1]) for line in listing.stdout.splitlines())


class Starling(unittest.TestCase):
    objects = []

    def test_state(self):
        self.assertEqual(faults(self.objects), [])

    def test_something_was_looked_at(self):
        self.assertGreater(marked(self.objects), 50)


class TheCheck(unittest.TestCase):
    """Each source has one fault, which the check must find."""

    def faults_of(self, text):
        source = Path(__file__).resolve().parents[2] / "src"
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "a.cpp"
            file.write_text('#include "base/state.h"\n#include "base/no_destroy.h"\n#include <vector>\n' + text)
            subprocess.run([os.environ.get("CXX") or "c++", "-std=c++20", "-O2", "-fPIC", "-I", source, "-c", file, "-o", f"{file}.o"],
                           check=True)
            return [fault.removeprefix(f"{folder}/") for fault in faults([f"{file}.o"])]

    def test_marked(self):
        self.assertEqual(self.faults_of("""
            constexpr const char* kNames[] = {"a", "b"};
            STARLING_STATE int number = 1;
            STARLING_STATE starling::NoDestroy<std::vector<int>> storage;
            constinit auto& numbers = storage.value;
            int next() { STARLING_STATE static int last; numbers.push_back(number); return ++last + kNames[number][0]; }
            """), [])

    def test_a_variable(self):
        self.assertEqual(self.faults_of("int number = 1;"), [f"a.cpp: number changes outside of the process's state; {CURE}"])

    def test_one_that_nobody_else_sees_and_that_begins_as_zero(self):
        self.assertEqual(self.faults_of("namespace { int number; } int next() { return ++number; }"),
                         [f"a.cpp: (anonymous namespace)::number changes outside of the process's state; {CURE}"])

    def test_a_pointer_to_constants(self):
        self.assertEqual(self.faults_of('const char* name = "a";'), [f"a.cpp: name changes outside of the process's state; {CURE}"])

    def test_one_within_a_function(self):
        self.assertEqual(self.faults_of("int next() { static int last; return ++last; }"),
                         [f"a.cpp: next()::last changes outside of the process's state; {CURE}"])

    def test_a_guard(self):
        self.assertEqual(set(self.faults_of("int& next() { static auto* last = new int(1); return *last; }")),
                         {f"a.cpp: next()::last changes outside of the process's state; {CURE}",
                          f"a.cpp: guard variable for next()::last changes outside of the process's state; {CURE_GUARD}"})

    def test_one_of_a_template(self):
        # GCC ignores STARLING_STATE on a static variable of a function template, so the check must report it.
        text = "template <class T> T next() { STARLING_STATE static T last; return ++last; } int two() { return next<int>(); }"
        self.assertEqual(self.faults_of(text), [f"a.cpp: next<int>()::last changes outside of the process's state; {CURE}"])

    def test_a_constructor_at_load(self):
        self.assertEqual(self.faults_of("int f(); const int number = f(); const int* one() { return &number; }"),
                         [f"a.cpp: number changes outside of the process's state; {CURE}"])

    def test_one_of_a_thread(self):
        self.assertEqual(self.faults_of("thread_local int number;"), [f"a.cpp: number changes outside of the process's state; {CURE_THREAD}"])


if __name__ == "__main__":
    if len(sys.argv) > 1 and not sys.argv[1].startswith("-"):
        Starling.objects = Path(sys.argv.pop(1)).read_text().split()
    else:
        del Starling
    unittest.main()
