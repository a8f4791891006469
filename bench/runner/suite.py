"""Prepares the libraries, runs the cases in turns and keeps the results."""
import datetime
import math
import os
import platform
import sys
import time
from contextlib import contextmanager

from . import report
from .cases import SETS
from .classes import Row, classes_of
from .execute import Beside, Value, as_in_case, command_of, execute, execute_limit, limit_command, wait_for_calm
from .libraries import build, install_wheel, version_of
from .placement import Looker
from .report import LIMIT, OWN
from .stage import Command, Stage

BUSY = 0.1  # a larger share of the cores used by other programs disturbs a run


def choose_cases(cases, only):
    """Returns the cases that a comma separated list names: by name, group, program or set."""
    if not only:
        return cases
    words = only.split(",")
    for word in words:
        if not any(word in names_of(case) for case in cases):
            sys.exit(f"compare: unknown case, group or program {word}; see --list with the same options: --quick has fewer cases")
    return [case for case in cases if any(word in names_of(case) for word in words)]


def names_of(case):
    return (case.name, case.group, case.program) + tuple(name for name, cases in SETS.items() if case.name in cases)


def choose_libraries(libraries, wanted, without):
    known = {library.key for library in libraries}
    for word in (wanted or "").split(",") + (without or "").split(","):
        if word and word not in known:
            sys.exit(f"compare: unknown library {word}; known are {', '.join(sorted(known))}")
    chosen = [library for library in libraries if not wanted or library.key in wanted.split(",")]
    return [library for library in chosen if library.key not in (without or "").split(",")]


def prepare(libraries, cases, download):
    """Installs and builds the files that the cases need; returns the usable libraries."""
    programs = sorted({case.program for case in cases})
    ready, built = [], {}
    for library in libraries:
        problem = ""
        for wheel in filter(None, (library.wheel, library.also_needs)):
            if download:
                problem = problem or install_wheel(wheel)
        problem = problem or library.missing()
        if not problem:
            base = library.same_programs_as or library.key
            if base not in built:
                built[base] = build(library, programs)
            library.unbuilt = built[base]
            if len(library.unbuilt) == len(programs):
                problem = f"no program builds: {next(iter(library.unbuilt.values()))}"
        if problem:
            print(f"without {library.key}: {problem}", file=sys.stderr)
        else:
            library.version = version_of(library)
            ready.append(library)
    return ready


def kind_of(library):
    return "own" if library.own else "peer"


class Run:
    """One run of the comparison: its parameters and its results."""

    def __init__(self, libraries, rounds, calm, spread, patience=0, limits=None, minutes=None):
        self.libraries, self.rounds, self.calm, self.spread, self.patience = libraries, rounds, calm, spread, patience
        self.limits, self.looker = limits, Looker(limits)
        self.deadline = time.monotonic() + minutes * 60 if minutes else math.inf
        self.looks = []  # all placements that were measured
        described = {library.key: {"title": library.title, "version": library.version, "kind": kind_of(library),
                                   "settings": library.environment} for library in libraries}
        if limits:
            described[LIMIT] = {"title": "limit of the machine", "version": "", "kind": "limit", "settings": {}}
        self.results = {"date": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
                        "machine": describe_machine(), "rounds": rounds, "spread": spread, "runs": 0, "disturbed": 0,
                        "libraries": described, "cases": {}, "classes": [], "kept": 0, "dropped": 0, "shared": {}}

    def run(self, cases, path):
        all_turns = [Turns(self, case) for case in cases]
        try:
            self.take_turns(all_turns, path)
        except (SystemExit, KeyboardInterrupt):  # ended by a signal: what has been measured is kept
            self.store(all_turns, path)
            raise
        return self.results

    def take_turns(self, all_turns, path):
        for number in range(1, self.rounds + self.patience + 1):
            wanted = [turns for turns in all_turns if turns.wanted(number)]
            for place, turns in enumerate(wanted, 1):
                if self.over():
                    break
                print(f"turn {number} [{place}/{len(wanted)}] {turns.case.name}", end="", file=sys.stderr, flush=True)
                turns.take(number)
                print(file=sys.stderr)
            self.store(all_turns, path)
            if self.over():
                break

    def store(self, all_turns, path):
        self.collect(all_turns)
        report.save(self.results, path)

    def over(self):
        return time.monotonic() >= self.deadline

    def classes(self):
        return classes_of(self.looks)

    def collect(self, all_turns):
        """Sorts all values measured so far into the classes of placements that the whole run has shown."""
        results, classes = self.results, self.classes()
        results["classes"] = [{"name": one.name, "low": one.low, "high": one.high, "looks": one.count}
                              for one in classes]
        results["cases"] = {turns.case.name: turns.result(classes) for turns in all_turns if turns.status}
        all_rows = [row for turns in all_turns for row in turns.rows(classes).values()]
        results["kept"] = sum(row.kept for row in all_rows)
        results["dropped"] = sum(turns.taken + turns.dropped for turns in all_turns) - results["kept"]


class Turns:
    """The turns that libraries take on one case."""

    def __init__(self, run, case):
        self.run, self.case = run, case
        self.libraries = [library for library in run.libraries if not library.groups or case.group in library.groups]
        self.values, self.units, self.status = {}, {}, {}
        self.taken = self.dropped = 0

    def keys(self):
        limits = [LIMIT] if self.run.limits and self.case.limit else []
        return [library.key for library in self.libraries] + limits if self.libraries else []

    def wanted(self, number):
        """Returns the libraries that take part in this turn: all or, after `rounds` turns, those whose values a row still needs."""
        rounds = min(self.run.rounds, self.case.turns) if self.case.turns else self.run.rounds
        able = [key for key in self.keys() if self.status.get(key, "ok") == "ok"]
        if number <= rounds:
            return able
        # A library that is not the best one needs few repetitions ("turns"), and so does the machine's limit.
        turns = rounds * self.case.repeats // 2 if self.case.placed and self.run.looker.possible else rounds
        missing = [row.missing(turns, min(2, turns), [key for key in able if key in self.values[name]])
                   for name, row in self.rows(self.run.classes()).items()]
        return [key for key in able if any(key in keys for keys in missing)]

    def take(self, number):
        wanted = self.wanted(number)
        if self.case.placed and self.run.looker.possible:
            self.take_together(wanted)
            return
        for key in wanted:
            with self.counted():
                if key == LIMIT:
                    one = execute_limit(self.run.limits, self.case, self.program())
                else:
                    one = execute(self.library(key), self.case)
            self.after(key, one)

    def take_together(self, wanted):
        """Lets libraries take turns value by value, as stage.py describes. Programs that don't ask for turns run one after the other."""
        commands = {}
        for key in wanted:
            if key == LIMIT:
                commands[key] = Command(limit_command(self.run.limits, self.case, self.program()), {}, turns=1)
            elif self.case.program in self.library(key).unbuilt:
                self.after(key, execute(self.library(key), self.case))
            else:
                library = self.library(key)
                commands[key] = Command(command_of(library, self.case), library.environment, self.case.plain)
        stage = Stage(self.run.looker, commands, self.case.repeats, self.case.timeout, self.case.strangers,
                      ordinary=self.case.group == "strangers")
        with self.counted():
            runs = stage.run()
        for key, one in runs.items():
            self.after(key, as_in_case(one, self.case) if key == LIMIT else one)

    def library(self, key):
        return next(library for library in self.libraries if library.key == key)

    def program(self):
        return self.libraries[0].program(self.case.program)

    @contextmanager
    def counted(self):
        """Measures other programs' use of the cores while commands run, and marks the run as disturbed if they use more than BUSY."""
        wait_for_calm(self.run.calm)
        beside = Beside()
        yield
        self.run.results["runs"] += 1
        self.run.results["disturbed"] += beside.share() > BUSY

    def after(self, key, one):
        results = self.run.results
        self.status[key] = one.status
        print(f" {key}" if one.status == "ok" else f" {key}!", end="", file=sys.stderr, flush=True)
        self.run.looks += one.looks
        if one.status != "ok":
            return
        self.dropped += one.dropped
        shared, looks = results["shared"].get(key, (0, 0))
        results["shared"][key] = (shared + one.shared, looks + len(one.looks) // 2)
        if self.case.wall and key != LIMIT:
            self.keep(key, Value("", self.case.ranks, one.wall * 1e3, "ms", None))
        for value in one.rows:
            if self.case.keeps(value.what, value.size):
                self.keep(key, value)

    def keep(self, key, value):
        of_library = self.values.setdefault((value.what, value.size), {})
        of_library.setdefault(key, []).append([value.value, value.placement])
        self.units[(value.what, value.size)] = value.unit
        # Placement 0 means that the cores still moved at the last try; such a value is already counted as dropped.
        self.taken += value.placement is None or value.placement > 0

    def rows(self, classes):
        return {name: Row(values, classes, OWN, report.is_peer, self.case.larger_is_better, self.run.spread)
                for name, values in self.values.items() if set(values) != {LIMIT}}

    def result(self, classes):
        rows = []
        for (what, size), row in self.rows(classes).items():
            one = row.chosen()
            rows.append({"what": what, "size": size, "unit": self.units[(what, size)], "class": one.name if one else "",
                         "values": row.classes.get(one, {}), "goal": self.case.goal.get((what, size)),
                         "classes": {one.name: cells for one, cells in row.classes.items()},
                         "turns": self.values[(what, size)]})
        return {"group": self.case.group, "note": self.case.note, "larger_is_better": self.case.larger_is_better,
                "status": self.status, "rows": rows}


def run(libraries, cases, rounds, calm, spread, path, patience=0, limits=None, minutes=None):
    return Run(libraries, rounds, calm, spread, patience, limits, minutes).run(cases, path)


def describe_machine():
    model = ""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            model = next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), "")
    except OSError:
        pass
    return {"processor": model, "cores": len(os.sched_getaffinity(0)), "kernel": platform.release(),
            "system": platform.platform()}
