"""Prepares the libraries, runs the cases in turns and keeps the results."""
import datetime
import os
import platform
import statistics
import sys

from . import report
from .cases import TARGETS
from .execute import execute, execute_limit, wait_for_calm
from .libraries import build, install_wheel, version_of
from .report import LIMIT

BUSY = 0.25  # a machine busier than this share before a run disturbs it



def choose_cases(cases, only):
    """The cases that a comma separated list names: by name, group or program, or "targets"."""
    if not only:
        return cases
    words = only.split(",")
    for word in words:
        if not any(word in names_of(case) for case in cases):
            sys.exit(f"compare: no case, group or program is called {word}; see --list")
    return [case for case in cases if any(word in names_of(case) for word in words)]


def names_of(case):
    return (case.name, case.group, case.program) + (("targets",) if case.name in TARGETS else ())


def choose_libraries(libraries, wanted, without):
    known = {library.key for library in libraries}
    for word in (wanted or "").split(",") + (without or "").split(","):
        if word and word not in known:
            sys.exit(f"compare: no library is called {word}; there are {', '.join(sorted(known))}")
    chosen = [library for library in libraries if not wanted or library.key in wanted.split(",")]
    return [library for library in chosen if library.key not in (without or "").split(",")]


def prepare(libraries, cases, download):
    """Installs and builds what the cases need; returns the libraries that can be used."""
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
    """One run of the comparison: how often, how patiently, and what comes out."""

    def __init__(self, libraries, rounds, calm, spread, patience=0, limits=None):
        self.libraries, self.rounds, self.calm, self.spread, self.patience = libraries, rounds, calm, spread, patience
        self.limits = limits
        described = {library.key: {"title": library.title, "version": library.version, "kind": kind_of(library),
                                   "settings": library.environment} for library in libraries}
        if limits:
            described[LIMIT] = {"title": "what the machine allows", "version": "", "kind": "limit", "settings": {}}
        self.results = {"date": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
                        "machine": describe_machine(), "rounds": rounds, "spread": spread, "runs": 0, "disturbed": 0,
                        "libraries": described, "cases": {}}

    def run(self, cases, path):
        for number, case in enumerate(cases, 1):
            print(f"[{number}/{len(cases)}] {case.name}", end="", file=sys.stderr, flush=True)
            turns = Turns(self, case)
            turns.take()
            print(file=sys.stderr)
            if turns.status:
                self.results["cases"][case.name] = turns.result()
            report.save(self.results, path)
        return self.results


class Turns:
    """The turns that libraries take on one case."""

    def __init__(self, run, case):
        self.run, self.case = run, case
        self.libraries = [library for library in run.libraries if not library.groups or case.group in library.groups]
        self.values, self.units, self.status = {}, {}, {}

    def take(self):
        if not self.libraries:
            return
        rounds = min(self.run.rounds, self.case.turns) if self.case.turns else self.run.rounds
        for number in range(rounds + self.run.patience):
            if number >= rounds and not self.noisy():
                break
            for library in self.libraries:
                self.one(library.key, lambda library=library: execute(library, self.case))
            if self.run.limits and self.case.limit:
                program = self.libraries[0].program(self.case.program)
                self.one(LIMIT, lambda: execute_limit(self.run.limits, self.case, program))

    def one(self, key, do):
        if self.status.get(key, "ok") != "ok":
            return
        results = self.run.results
        results["runs"] += 1
        results["disturbed"] += wait_for_calm(self.run.calm) > BUSY
        one = do()
        self.status[key] = one.status
        print(f" {key}" if one.status == "ok" else f" {key}!", end="", file=sys.stderr, flush=True)
        if one.status != "ok":
            return
        if self.case.wall and key != LIMIT:
            self.keep(key, "", self.case.ranks, one.wall * 1e3, "ms")
        for what, size, value, unit in one.rows:
            if self.case.keeps(what, size):
                self.keep(key, what, size, value, unit)

    def keep(self, key, what, size, value, unit):
        self.values.setdefault((what, size), {}).setdefault(key, []).append(value)
        self.units[(what, size)] = unit

    def noisy(self):
        return any(summary(numbers, self.run.spread)["noisy"] for of_library in self.values.values()
                   for numbers in of_library.values())

    def result(self):
        rows = [{"what": what, "size": size, "unit": self.units[(what, size)],
                 "values": {key: summary(numbers, self.run.spread) for key, numbers in of_library.items()}}
                for (what, size), of_library in self.values.items() if set(of_library) != {LIMIT}]
        return {"group": self.case.group, "note": self.case.note, "larger_is_better": self.case.larger_is_better,
                "status": self.status, "rows": rows}


def run(libraries, cases, rounds, calm, spread, path, patience=0, limits=None):
    return Run(libraries, rounds, calm, spread, patience, limits).run(cases, path)


def summary(numbers, spread):
    """Of five turns and more, the lowest and the highest don't count for the spread: one interruption is no noise."""
    median = statistics.median(numbers)
    inner = sorted(numbers)[1:-1] if len(numbers) >= 5 else numbers
    relative = (max(inner) - min(inner)) / median if median else 0.0
    return {"median": median, "min": min(numbers), "max": max(numbers), "turns": len(numbers),
            "spread": round(relative, 4), "noisy": relative > spread}


def describe_machine():
    model = ""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            model = next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), "")
    except OSError:
        pass
    return {"processor": model, "cores": len(os.sched_getaffinity(0)), "kernel": platform.release(),
            "system": platform.platform()}
