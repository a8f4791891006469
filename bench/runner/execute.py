"""Runs one command of a library, with a time limit, and ends all processes that it leaves."""
import json
import os
import signal
import subprocess
import time
import uuid
from dataclasses import dataclass, field
from typing import NamedTuple, Optional

from .cases import CORES

MARK = "BENCH_COMPARE_RUN"


class Value(NamedTuple):
    what: str
    size: int
    value: float
    unit: str
    placement: Optional[float]  # ns; 0: unknown, or the cores have moved; None: not observed


@dataclass
class Run:
    status: str  # "ok", "hang", "crash (signal ...)", "refuses: ..."
    wall: float = 0.0
    rows: tuple = ()  # of Value
    dropped: int = 0  # number of values during which the cores have moved
    shared: int = 0  # number of values after which all processes were on one core
    looks: list = field(default_factory=list)  # all placements that were measured


def busy_share(seconds=0.1):
    """Measures for `seconds` which share of all cores' time is used, that is how busy the machine is with other work."""

    def read():
        with open("/proc/stat", encoding="ascii") as file:
            numbers = [int(word) for word in file.readline().split()[1:9]]
        return sum(numbers), numbers[3] + numbers[4]

    all_before, idle_before = read()
    time.sleep(seconds)
    all_after, idle_after = read()
    return 1 - (idle_after - idle_before) / max(all_after - all_before, 1)


class Beside:
    """Measures how much core time other programs use while our commands run: the total minus that of our child processes."""

    def __init__(self):
        self.before, self.own, self.began = processor_seconds(), children_seconds(), time.monotonic()

    def share(self):
        """Returns the share of all cores' time since the start; the commands must have ended."""
        passed = (time.monotonic() - self.began) * os.cpu_count()
        others = processor_seconds() - self.before - (children_seconds() - self.own)
        return max(others / max(passed, 1e-3), 0.0)


def processor_seconds():
    """Returns the core time that all processes and the kernel have used."""
    with open("/proc/stat", encoding="ascii") as file:
        numbers = [int(word) for word in file.readline().split()[1:9]]
    return (sum(numbers) - numbers[3] - numbers[4]) / os.sysconf("SC_CLK_TCK")


def children_seconds():
    times = os.times()
    return times.children_user + times.children_system + times.user + times.system


def wait_for_calm(limit, threshold=0.05):
    """Waits up to limit seconds for an idle machine; returns how busy it is."""
    deadline = time.monotonic() + limit
    while True:
        busy = busy_share()
        if busy <= threshold or time.monotonic() >= deadline:
            return busy
        time.sleep(0.5)


def command_of(library, case):
    launcher = library.launcher + (library.crowded if case.processes() > CORES else [])
    command = launcher + ["-n", str(case.ranks), str(library.program(case.program))] + case.arguments
    return command + ([] if case.plain else ["--json"])


def execute(library, case):
    """Runs the command of a case without observing the placement of the cores."""
    if case.program in library.unbuilt:
        return Run(f"refuses: does not build: {library.unbuilt[case.program]}")
    run = run_command(command_of(library, case), library.environment, case.timeout, case.plain)
    run.rows = tuple(row._replace(placement=None) for row in run.rows)
    return run


def limit_command(limits, case, program):
    """Returns the command that measures the machine's limit for a case; program replaces {}."""
    return [str(limits)] + [word.replace("{}", str(program)) for word in case.limit]


def as_in_case(run, case):
    """Renames the rows that the program limits printed to the names of the case's rows."""
    run.rows = tuple(row._replace(**dict(zip(("what", "size"), case.limit_rows.get(row[:2], row[:2]))))
                     for row in run.rows)
    return run


def execute_limit(limits, case, program):
    run = as_in_case(run_command(limit_command(limits, case, program), {}, case.timeout), case)
    run.rows = tuple(row._replace(placement=None) for row in run.rows)
    return run


def run_command(command, environment, timeout, plain=False, mark=None):
    """Runs a command. The environment of all its processes contains the mark: see kill_marked."""
    mark = mark or uuid.uuid4().hex
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
    """Determines the status of a run. plain: a program without rows reports success by its exit code only."""
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
    rows = tuple(Value(row["what"], row["size"], value, parsed["unit"], placement)
                 for row in parsed["rows"] for value, placement in row.get("turns") or [(row["value"], 0.0)])
    return Run("ok", wall, rows)


def first_reason(text):
    """Returns the line of an error output that most likely names the cause."""
    lines = [line.strip(" *-=|") for line in text.splitlines()]
    lines = [line for line in lines if len(line) > 8]
    for number, line in enumerate(lines[:-1]):
        if line.endswith("error stack:"):  # MPICH: the cause is last
            lines = lines[number + 1 : number + 3][-1:]
            break
    for word in ("rror", "ailed", "not supported", "annot"):
        for line in lines:
            if word in line:
                return line[:100]
    return lines[0][:100] if lines else "no output"


def kill_marked(mark, leader):
    """Ends every remaining process of this run, in any session: their environment contains the mark."""
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
