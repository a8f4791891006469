#!/usr/bin/env python3
"""manual_test.py BUILD [GROUP...]: the manual pages' tables, the pages, `starling help`, and completion in shells."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "manual"))

import mpi  # noqa: E402
import shmem  # noqa: E402

BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
MAN = BUILD / "share" / "man"


def run(*command, code=0, **options):
    result = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=240, **options)
    if code is not None and result.returncode != code:
        raise AssertionError(f"{' '.join(map(str, command))}: exit {result.returncode}\n{result.stdout}{result.stderr}")
    return result.stdout if code == 0 else result.stdout + result.stderr


class Tables(unittest.TestCase):
    def test_every_function_has_its_line(self):
        self.assertEqual(set(mpi.all_functions()) ^ set(mpi.summaries()), set())
        self.assertEqual(set(shmem.families()) ^ set(shmem.summaries()), set())

    def test_lines_are_lines(self):
        for name, summary in {**mpi.summaries(), **shmem.summaries()}.items():
            self.assertRegex(summary, r"^[a-z].{8,119}$", name)
            self.assertNotRegex(summary, r"\.$", name)
            self.assertEqual(summary.count("("), summary.count(")"), name)

    def test_lines_tell_functions_apart(self):
        seen = {}
        for name, summary in mpi.summaries().items():
            self.assertNotIn(summary, seen, f"{name} and {seen.get(summary)}")
            seen[summary] = name

    def test_every_parameter_is_described_and_every_description_used(self):
        used = set()
        for group in mpi.all_functions().values():
            for function in group:
                for argument in function.arguments:
                    row = mpi.parameter_row(function, argument)
                    self.assertIsNotNone(row, f"{function.name}: {argument}")
                    used.add(id(row))
        unused = [row for row in mpi.rules("manual-parameters.tsv") if id(row) not in used]
        self.assertEqual(unused, [])

    def test_notes_and_errors_are_of_functions_that_there_are(self):
        names = list(mpi.all_functions())
        classes = {c["name"] for c in mpi.table.constants() + mpi.table.extension_constants()}
        for row in [*mpi.rules("manual-notes.tsv"), *mpi.rules("manual-errors.tsv")]:
            self.assertTrue(any(row["functions"].fullmatch(name) for name in names), row)
            if "class" in row:
                self.assertIn(row["class"], classes)
                self.assertTrue(any(row["class"] in dict(mpi.errors(group[0])) for group in mpi.all_functions().values()), row)

    def test_what_a_call_makes_goes_out(self):
        for group in mpi.all_functions().values():
            for function in group:
                ways = dict(mpi.arguments([function]))
                for name, _ in function.makes:
                    if not function.name.endswith("_free"):
                        self.assertRegex(ways[name], "^(out|in and out):", function.name)

    def test_variables_that_are_named_exist(self):
        known = set(re.findall(r'"(STARLING_\w+)"', (ROOT / "src/base/variables.def").read_text()))
        for file in [*(ROOT / "tools/starling/help").glob("*.txt"), *(ROOT / "tools/abi").glob("manual*.tsv")]:
            for name in re.findall(r"\bSTARLING_[A-Z_]*[A-Z]\b", file.read_text()):
                self.assertIn(name, known, file.name)

    def test_topics_fit_a_terminal(self):
        for file in (ROOT / "tools/starling/help").glob("*.txt"):
            for line in file.read_text().splitlines():
                self.assertLessEqual(len(line), 80, f"{file.name}: {line}")

    def test_options_that_topics_name_exist(self):
        tables = json.loads(run(BUILD / "bin/starling", "help", "--tables"))
        known = {name for row in tables["mpiexec"]["options"] for name in row["names"].split(",")}
        for file in (ROOT / "tools/starling/help").glob("*.txt"):
            for line in re.findall(r"mpiexec ([^#`\n]*)", file.read_text()):
                for option in re.findall(r"(?<!\S)--?([a-z][\w-]*)", re.split(r" \./| apptainer| python", line)[0]):
                    self.assertIn(option, known, f"{file.name}: {line}")


class Pages(unittest.TestCase):
    def pages(self):
        found = [file for file in MAN.rglob("*.[137]") if not file.is_symlink()]
        self.assertGreater(len(found), 600)
        return found

    def test_each_name_has_a_page(self):
        names = [prefix + f.name for f in mpi.table.functions() + mpi.table.extensions() for prefix in ("", "P")]
        names += [f.name for f in shmem.table.functions() if not f.type] + list(shmem.families())
        for name in names:
            self.assertTrue((MAN / "man3" / f"{name}.3").is_file(), name)
        for file in (BUILD / "bin").iterdir():
            if file.name.startswith(("mpi", "osh", "starling")):
                self.assertTrue((MAN / "man1" / f"{file.name}.1").is_file(), file.name)
        for command in json.loads(run(BUILD / "bin/starling", "help", "--tables"))["starling"]["commands"]:
            self.assertTrue((MAN / "man1" / f"starling-{command['name']}.1").is_file(), command["name"])

    def test_groff_has_nothing_to_say(self):
        self.assertEqual(run("groff", "-man", "-ww", "-z", "-Tutf8", *self.pages(), code=None), "")

    def test_mandoc_has_nothing_to_say(self):
        self.assertEqual(run("mandoc", "-T", "lint", "-W", "warning", *self.pages(), code=None), "")

    def test_man_shows_one(self):
        shown = run("man", "--warnings", "-l", MAN / "man3" / "PMPI_Send_c.3", env={**os.environ, "MANWIDTH": "80", "LC_ALL": "C.UTF-8"})
        self.assertIn("send a message", shown)
        self.assertIn("int MPI_Send(const void *buf, int count", shown)
        self.assertIn("subroutine MPI_Send(buf, count", shown)
        self.assertIn("MPI_ERR_TAG", shown)

    def test_what_is_not_built_is_said(self):
        missing = run(BUILD / "bin/starling", "info", "--missing")
        told = [f.name for f in mpi.table.functions() if re.search(rf"\b{f.name}\b", missing)]
        said = [page.names for page in mpi.pages() if "Not built yet" in str(page.parts)]
        self.assertEqual(sorted(told), sorted(name for names in said for name in names))

    def test_see_also_leads_somewhere(self):
        for page in mpi.pages() + shmem.pages():
            for name, section in page.see:
                self.assertTrue((MAN / f"man{section}" / f"{name}.{section}").is_file(), f"{page.name}: {name}")


class Examples(unittest.TestCase):
    rows = [line.split("\t") for line in (ROOT / "tools/manual/examples.tsv").read_text().splitlines() if not line.startswith("#")]

    def test_each_page_of_a_command_has_examples_and_exit_codes(self):
        pages = {file for file in (MAN / "man1").iterdir() if not file.is_symlink()}
        self.assertEqual({file.stem for file in pages} - {"starlingd"}, {name for name, *_ in self.rows})
        for file in pages:
            if file.stem != "starlingd":
                self.assertIn("\n.SH EXAMPLES\n", file.read_text(), file.name)
                self.assertIn("\n.SH EXIT STATUS\n", file.read_text(), file.name)

    def test_their_options_exist(self):
        tables = json.loads(run(BUILD / "bin/starling", "help", "--tables"))
        mpiexec = {name for row in tables["mpiexec"]["options"] for name in row["names"].split(",")}
        for _, example, *_ in self.rows:
            if example.startswith("mpiexec "):
                for option in re.findall(r"(?<!\S)--?([a-z][\w-]*)", example.split(" ./")[0]):
                    self.assertIn(option, mpiexec, example)
            elif example.startswith("starling ") and not example.startswith(("starling daemon", "starling help")):
                usage = run(BUILD / "bin/starling", *example.split()[1:3 if "profile" in example else 2], "--help")
                for option in re.findall(r"(?<!\S)(--?[a-z][\w-]*)", example):
                    self.assertIn(option, usage, example)

    def test_they_run(self):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(ROOT / "tests/manual/program.c", folder)
            environment = {**os.environ, "PATH": f"{BUILD}/bin:{os.environ['PATH']}", "STARLING_UNIVERSE": f"manual{os.getpid()}"}
            run("mpicc", "program.c", "-o", "program", cwd=folder, env=environment)
            tried = [example for _, example, _, how in self.rows if how == "run"]
            self.assertGreater(len(tried), 20)
            try:
                for example in tried:
                    run("sh", "-c", example, cwd=folder, env=environment)
            finally:
                run("starling", "daemon", "stop", cwd=folder, env=environment, code=None)


class Help(unittest.TestCase):
    def help(self, *topic, code=0):
        return run(BUILD / "bin/starling", "help", *topic, code=code)

    def test_it_lists_what_there_is(self):
        shown = self.help()
        for file in (ROOT / "tools/starling/help").glob("*.txt"):
            self.assertIn(f"  {file.stem} ", shown)
            self.assertIn(file.read_text().split("\n", 1)[1].strip(), self.help(file.stem))
        self.assertIn("mpiexec", shown)

    def test_functions(self):
        page = self.help("MPI_Send")
        self.assertIn("MPI_Send, MPI_Send_c - send a message", page)
        self.assertLessEqual(max(map(len, page.splitlines())), 80)
        for name in ("mpi_send", "PMPI_Send", "MPI_Send_c", "MPI_Send()"):
            self.assertEqual(self.help(name), page)
        self.assertEqual(self.help("shmem_int_put"), self.help("shmem_put"))

    def test_commands_and_variables(self):
        self.assertEqual(self.help("mpiexec"), run(BUILD / "bin/mpiexec", "--help"))
        self.assertIn("--interval", self.help("top"))
        self.assertIn("adaptive", self.help("STARLING_WAIT"))

    def test_what_is_not_known(self):
        self.assertIn("MPI_Send", self.help("MPI_Sendd", code=1))
        self.assertIn("starling help lists all", self.help("nonsensical", code=1))


BASH = """
source {library}
source {file}
COMP_WORDS=({words}); COMP_CWORD={last}; COMP_LINE={line!r}; COMP_POINT={point}
compopt() {{ :; }}
$(complete -p {command} | sed 's/.*-F \\([^ ]*\\).*/\\1/')
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


class Completion(unittest.TestCase):
    completions = BUILD / "share" / "bash-completion" / "completions"

    def complete(self, line, folder=None):
        """Returns bash's completions at the end of the line."""
        words = line.split(" ")
        script = BASH.format(library="/usr/share/bash-completion/bash_completion", file=self.completions / words[0], last=len(words) - 1,
                             words=" ".join("'" + word + "'" for word in words), line=line, point=len(line), command=words[0])
        shown = run("bash", "--norc", "-c", script, cwd=folder, code=None, env={**os.environ, "PATH": f"{BUILD}/bin:{os.environ['PATH']}"})
        return [word for word in shown.split("\n") if word]

    def test_options_of_mpiexec(self):
        self.assertEqual(self.complete("mpiexec --host"), ["--host", "--hosts", "--hostfile"])
        self.assertIn("--timeout", self.complete("mpirun -n 4 --t"))
        self.assertEqual(self.complete("oshrun --bind-to "),
                         ["auto", "none", "core", "hwthread", "l2cache", "l3cache", "numa", "package", "machine"])
        self.assertEqual(self.complete("mpiexec --via d"), ["direct", "daemons"])
        self.assertEqual(self.complete("mpiexec --set eager"), ["eager-limit="])
        self.assertIn("PATH", self.complete("mpiexec -x PA"))

    def test_values_are_not_taken_for_the_program(self):
        self.assertIn("--wdir", self.complete("mpiexec -genv A B --wd"))
        self.assertIn("--wdir", self.complete("mpiexec -n 2 true : -n 3 --wd"))

    def test_files_and_programs(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "my-hosts").write_text("")
            pathlib.Path(folder, "my-program").write_text("")
            self.assertEqual(self.complete("mpiexec --hostfile my-h", folder), ["my-hosts"])
            self.assertIn("./my-program", self.complete("mpiexec -n 2 ./my", folder))
            self.assertIn("my-hosts", self.complete("mpiexec -n 2 cat my-h", folder))
            self.assertEqual(self.complete("starling why --host", folder), ["--host"])

    def test_starling(self):
        self.assertEqual(self.complete("starling to"), ["top"])
        self.assertEqual(self.complete("starling top --sort w"), ["waiting"])
        self.assertEqual(self.complete("starling profile sh"), ["show"])
        self.assertIn("--html", self.complete("starling profile show --"))
        self.assertEqual(self.complete("starling help MPI_Sendrecv_"), ["MPI_Sendrecv_replace"])
        self.assertIn("hosts", self.complete("starling help ho"))
        self.assertEqual(self.complete("starling daemon sta"), ["start", "status"])

    def test_it_is_what_bash_loads_by_itself(self):
        """Presses Tab in an interactive shell with bash-completion on a terminal."""
        with tempfile.TemporaryDirectory() as folder:
            rc = pathlib.Path(folder, "rc")
            rc.write_text(f"PATH={BUILD}/bin:$PATH\nXDG_DATA_DIRS={BUILD}/share\nPS1='$ '\nsource /usr/share/bash-completion/bash_completion\n")
            shown = type_into(["bash", "--rcfile", str(rc), "-i"], "mpiexec --report-b\t--help | head -1\nexit\n")
            self.assertIn("mpiexec: start an MPI program", shown)
            self.assertIn("--report-bindings", shown)

    def test_other_shells_can_read_theirs(self):
        for file in (BUILD / "share/zsh/site-functions").iterdir():
            run("zsh", "-n", file)
        for file in (BUILD / "share/fish/vendor_completions.d").iterdir():
            run("fish", "--no-execute", file)
        with tempfile.TemporaryDirectory() as home:  # for bash's history file
            shown = run("fish", "-c", f"source {BUILD}/share/fish/vendor_completions.d/mpiexec.fish; complete -C 'mpiexec --report'",
                        env={**os.environ, "PATH": f"{BUILD}/bin:{os.environ['PATH']}", "HOME": home})
        self.assertIn("--report-bindings", shown)


def type_into(command, keys):
    """Runs a program on a new terminal, types keys and returns the terminal's output."""
    import pty
    import select
    import time
    child, terminal = pty.fork()
    if child == 0:
        os.environ["TERM"] = "dumb"
        os.execvp(command[0], command)
    shown, end = b"", time.monotonic() + 240
    while b"$ " not in shown and time.monotonic() < end:
        if select.select([terminal], [], [], 0.1)[0]:
            shown += os.read(terminal, 4096)
    os.write(terminal, keys.encode())
    while time.monotonic() < end:
        try:
            if select.select([terminal], [], [], 0.1)[0]:
                piece = os.read(terminal, 4096)
                if not piece:
                    break
                shown += piece
        except OSError:
            break
    os.close(terminal)
    os.waitpid(child, 0)
    return shown.decode(errors="replace")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]])
