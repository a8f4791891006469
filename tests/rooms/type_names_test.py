#!/usr/bin/env python3
"""Checks that each type name in src/ is defined in one file only, nested types included, except the names in exceptions.txt. Tests the
check itself on small trees with known faults."""
import re
import tempfile
import unittest
from collections import defaultdict
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCES = HERE.parents[1] / "src"

SKIPPED = re.compile(r'R"(?P<d>[^(\s]*)\((?:.|\n)*?\)(?P=d)"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])\'|//[^\n]*|/\*(?:.|\n)*?\*/')
ATTRIBUTES = r"(?:\[\[[^\]]*\]\]\s*|alignas\((?:[^()]|\([^()]*\))*\)\s*)*"
TYPE = re.compile(rf"\b(?:class|struct|union|enum(?:\s+(?:class|struct))?)\s+{ATTRIBUTES}(?:\w+::)*(\w+)\s*(?:final\s*)?(?::(?!:)[^;{{}}]*)?\{{")
ALIAS = re.compile(r"\busing\s+(\w+)\s*(?:\[\[[^\]]*\]\]\s*)?=\s*([^;]*);")
TYPEDEF = re.compile(r"\btypedef\b[^;{}]*?(\w+)\s*\)?\s*(?:\([^;()]*\)|\[[^;\]]*\])?\s*;")


def defined_in(text):
    """Returns the names of the types that a file defines, without aliases that only repeat a name, specializations and declarations."""
    code = SKIPPED.sub(lambda skipped: '""' if skipped[0].endswith('"') else " ", text)
    names = set(TYPE.findall(code)) | set(TYPEDEF.findall(code))
    for name, meaning in ALIAS.findall(code):
        if not re.search(rf"(?:^|::){name}\s*(?:<.*>)?$", meaning.strip(), re.DOTALL):
            names.add(name)
    return names


def read_exceptions(path):
    """Returns {type name: files that may define it}."""
    exceptions = {}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line and not line.startswith("#"):
            if not (match := re.match(r"(\w+): ((?:\S+ )+)- \S", line)):
                raise ValueError(f"{path.name}:{number} is not `<name>: <files> - <reason>`")
            exceptions[match[1]] = match[2].split()
    return exceptions


def faults(sources, exceptions):
    """Returns a sentence for each name that is defined twice, and for each unnecessary exception."""
    files = defaultdict(list)
    for file in sorted(file for ending in ("h", "cpp", "inc", "def") for file in sources.rglob(f"*.{ending}")):
        for name in defined_in(file.read_text()):
            files[name].append(file.relative_to(sources).as_posix())
    listed = read_exceptions(exceptions)
    found = [f"{name} is defined in {', '.join(where)}" for name, where in sorted(files.items())
             if len(where) > 1 and not set(where) <= set(listed.get(name, ()))]
    for name, where in listed.items():
        if len(files[name]) < 2:
            found.append(f"{exceptions.name}: {name} is not defined twice")
        found += [f"{exceptions.name}: {file} does not define {name}" for file in where if file not in files[name]]
    return found


class Starling(unittest.TestCase):
    def test_names(self):
        self.assertEqual(faults(SOURCES, HERE / "exceptions.txt"), [])


class TheCheck(unittest.TestCase):
    """Each tree has one fault, which the check must find."""

    def faults_of(self, one, other, exceptions=""):
        with tempfile.TemporaryDirectory() as folder:
            sources = Path(folder)
            for name, text in ("one.h", one), ("other.cpp", other), ("exceptions.txt", exceptions):
                (sources / name).write_text(text)
            return faults(sources, sources / "exceptions.txt")

    def test_no_fault(self):
        self.assertEqual(self.faults_of("struct A {};\nclass B;\n// struct C {\n", "struct C {};\nclass B final : A {};\n"), [])

    def test_every_way_to_define_a_type(self):
        ways = ["struct A {", "class A final : public b::C<int> {", "enum class A : int {", "enum A {", "union A {", "struct b::A {", "using A = int;",
                "template <class T>\nstruct A\n{", "struct [[gnu::packed, gnu::aligned(4)]] A {", "struct alignas(sizeof(int)) A : B {",
                "using A [[gnu::may_alias]] = long;", "typedef int A;", "typedef int (*A)(int);"]
        for way in ways:
            with self.subTest(way):
                self.assertEqual(self.faults_of("struct A {};", f"    {way} }}"), ["A is defined in one.h, other.cpp"])

    def test_what_defines_no_type(self):
        for other in ["struct A;", "friend class A;", "using b::A;", "using A = b::A;", "using A = typename b<int>::A;", "struct A<int> {", "A f() {",
                      "struct A a;", 'f("struct A {");', "/* struct A {\n */", "template <class A>\nstruct B {", "enum class B { A };"]:
            with self.subTest(other):
                self.assertEqual(self.faults_of("struct A {};", other), [])

    def test_an_exception(self):
        exception = "# A comment.\nA: one.h other.cpp - the standard's name\n"
        self.assertEqual(self.faults_of("struct A {};", "struct A {};", exception), [])
        self.assertEqual(self.faults_of("struct A {};", "", exception),
                         ["exceptions.txt: A is not defined twice", "exceptions.txt: other.cpp does not define A"])

    def test_an_exception_for_other_files(self):
        self.assertEqual(self.faults_of("struct A {};\nstruct B {};\n", "struct A {};\nstruct B {};\n", "A: one.h other.cpp - the standard's name\n"),
                         ["B is defined in one.h, other.cpp"])

    def test_an_exception_without_a_reason(self):
        with self.assertRaisesRegex(ValueError, "exceptions.txt:1 is not"):
            self.faults_of("struct A {};", "struct A {};", "A: one.h other.cpp\n")


if __name__ == "__main__":
    unittest.main()
