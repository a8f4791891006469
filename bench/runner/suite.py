"""Prepares the libraries, runs the cases in turns and keeps the results."""
import datetime
import os
import platform
import statistics
import sys

from . import report
from .cases import TARGETS, all_cases
from .execute import execute, wait_for_calm
from .libraries import build, install_wheel, version_of

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


def prepare(libraries, download):
    """Installs and builds; returns the libraries that can be used."""
    programs = sorted({case.program for case in all_cases(False)})
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
            problem = built[base]
        if problem:
            print(f"without {library.key}: {problem}", file=sys.stderr)
        else:
            library.version = version_of(library)
            ready.append(library)
    return ready


def run(libraries, cases, rounds, calm, spread, path):
    results = {"date": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
               "machine": describe_machine(), "rounds": rounds, "spread": spread, "runs": 0, "disturbed": 0,
               "libraries": {library.key: {"title": library.title, "version": library.version,
                                           "settings": library.environment} for library in libraries},
               "cases": {}}
    for number, case in enumerate(cases, 1):
        taking_part = [library for library in libraries if not library.groups or case.group in library.groups]
        if not taking_part:
            continue
        print(f"[{number}/{len(cases)}] {case.name}", end="", file=sys.stderr, flush=True)
        results["cases"][case.name] = run_case(case, taking_part, rounds, calm, spread, results)
        print(file=sys.stderr)
        report.save(results, path)
    return results


def run_case(case, libraries, rounds, calm, spread, results):
    values, status = {}, {}
    units = {}
    for _ in range(min(rounds, case.turns) if case.turns else rounds):
        for library in libraries:
            if status.get(library.key, "ok") != "ok":
                continue
            results["runs"] += 1
            results["disturbed"] += wait_for_calm(calm) > BUSY
            one = execute(library, case)
            status[library.key] = one.status
            print(f" {library.key}" if one.status == "ok" else f" {library.key}!", end="", file=sys.stderr, flush=True)
            rows = [("", case.ranks, one.wall * 1e3, "ms")] if case.wall and one.status == "ok" else one.rows
            for what, size, value, unit in rows:
                if case.wall or case.keeps(what, size):
                    values.setdefault((what, size), {}).setdefault(library.key, []).append(value)
                    units[(what, size)] = unit
    rows = [{"what": what, "size": size, "unit": units[(what, size)],
             "values": {key: summary(numbers, spread) for key, numbers in of_library.items()}}
            for (what, size), of_library in values.items()]
    return {"group": case.group, "note": case.note, "larger_is_better": case.larger_is_better,
            "status": status, "rows": rows}


def summary(numbers, spread):
    median = statistics.median(numbers)
    relative = (max(numbers) - min(numbers)) / median if median else 0.0
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
