"""Runs one command of a library, with a time limit, and cleans up whatever it leaves."""
import json
import os
import signal
import subprocess
import time
import uuid
from dataclasses import dataclass

MARK = "BENCH_COMPARE_RUN"


@dataclass
class Run:
    status: str  # "ok", "hang", "crash (signal ...)", "refuses: ..."
    wall: float = 0.0
    rows: tuple = ()  # (what, size, value, unit)


def busy_share(seconds=0.2):
    """The share of all cores' time that was used during some time: how busy the machine is without us."""

    def read():
        with open("/proc/stat", encoding="ascii") as file:
            numbers = [int(word) for word in file.readline().split()[1:9]]
        return sum(numbers), numbers[3] + numbers[4]

    all_before, idle_before = read()
    time.sleep(seconds)
    all_after, idle_after = read()
    return 1 - (idle_after - idle_before) / max(all_after - all_before, 1)


def wait_for_calm(limit, threshold=0.05):
    """Waits up to limit seconds for an idle machine; returns how busy it is."""
    deadline = time.monotonic() + limit
    while True:
        busy = busy_share()
        if busy <= threshold or time.monotonic() >= deadline:
            return busy
        time.sleep(0.5)


def execute(library, case):
    if case.program in library.unbuilt:
        return Run(f"refuses: does not build: {library.unbuilt[case.program]}")
    command = library.launcher + ["-n", str(case.ranks), str(library.program(case.program))] + case.arguments
    return run_command(command + ([] if case.plain else ["--json"]), library.environment, case.timeout, case.plain)


def execute_limit(limits, case, program):
    """The rows of what the machine allows for a case; program takes the place of {}."""
    run = run_command([str(limits)] + [word.replace("{}", str(program)) for word in case.limit], {}, case.timeout)
    run.rows = tuple((*case.limit_rows.get((what, size), (what, size)), value, unit)
                     for what, size, value, unit in run.rows)
    return run


def run_command(command, environment, timeout, plain=False):
    mark = uuid.uuid4().hex
    started = time.monotonic()
    process = subprocess.Popen(command, env=os.environ | environment | {MARK: mark}, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    try:
        output, errors = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        kill_marked(mark, process.pid)
        process.communicate()
        return Run("hang")
    except BaseException:
        kill_marked(mark, process.pid)
        raise
    wall = time.monotonic() - started
    kill_marked(mark, None)
    return judge(process.returncode, output.decode(errors="replace"), errors.decode(errors="replace"), wall, plain)


def judge(code, output, errors, wall, plain=False):
    """plain: a program that prints no rows has done well if it says so by its exit code."""
    parsed = {"rows": []} if plain else None
    for line in output.splitlines():
        start = line.find('{"benchmark"')
        if start >= 0:
            try:
                parsed = json.loads(line[start:])
            except ValueError:
                return Run("crash (output cut short)")
    if code != 0 or parsed is None:
        if code < 0:
            return Run(f"crash ({signal.Signals(-code).name})")
        if "egmentation fault" in errors + output:
            return Run("crash (segmentation fault)")
        return Run(f"refuses: {first_reason(errors + output)} (exit code {code})")
    rows = tuple((row["what"], row["size"], row["value"], parsed["unit"]) for row in parsed["rows"])
    return Run("ok", wall, rows)


def first_reason(text):
    """The most telling line of an error output."""
    lines = [line.strip(" *-=|") for line in text.splitlines()]
    lines = [line for line in lines if len(line) > 8]
    for number, line in enumerate(lines[:-1]):
        if line.endswith("error stack:"):  # of MPICH: the cause comes last
            lines = lines[number + 1 : number + 3][-1:]
            break
    for word in ("rror", "ailed", "not supported", "annot"):
        for line in lines:
            if word in line:
                return line[:100]
    return lines[0][:100] if lines else "no output"


def kill_marked(mark, leader):
    """Ends every process of this run that is still there, wherever it went: they carry a mark in the environment."""
    wanted = f"{MARK}={mark}".encode()
    for _ in range(3):
        found = [leader] if leader else []
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                try:
                    with open(f"/proc/{entry}/environ", "rb") as file:
                        if wanted in file.read():
                            found.append(int(entry))
                except OSError:
                    pass
        for pid in found:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        leader = None
        if not found:
            return
        time.sleep(0.05)
