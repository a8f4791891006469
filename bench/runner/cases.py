"""The measurements: a case is one command line; a row is one of the values that it prints."""
import os
from dataclasses import dataclass, field


@dataclass
class Case:
    name: str
    group: str  # see GROUPS
    program: str
    ranks: int
    arguments: list
    timeout: float
    keep: dict = field(default_factory=dict)  # {operation: sizes to keep, or None for all}; empty: all rows
    wall: bool = False  # the time of the whole command (ms) is a row without a name
    plain: bool = False  # the program is not one of the suite: no common options, no rows
    larger_is_better: bool = False
    note: str = ""
    turns: int = 0  # number of turns; 0: the number set for the run
    repeats: int = 4  # number of turns of each value per start of a command, if its program asks for turns
    strangers: int = 0  # busy loops that simulate other programs, each bound to a core
    placed: bool = True  # whether values belong to classes of placement (classes.py); not if they take longer than a placement lasts
    goal: dict = field(default_factory=dict)  # {(operation, size): goal for the ratio to the best peer}
    limit: list = field(default_factory=list)  # arguments of limits; {} is the program as built with the first library
    limit_rows: dict = field(default_factory=dict)  # {(operation, size) printed by limits: the corresponding row}

    def processes(self):
        """Returns the number of processes that run at the same time, spawned ones included."""
        spawns = self.program == "spawn"
        counts = {"--spawn": True, "--workers": True, "-k": spawns, "-w": spawns}
        return self.ranks + sum(int(value) for option, value in zip(self.arguments, self.arguments[1:])
                                if counts.get(option))

    def keeps(self, what, size):
        if not self.keep:
            return True
        return what in self.keep and (self.keep[what] is None or size in self.keep[what])


GROUPS = {"p2p": "two processes of a job", "inter": "parents and children", "spawn": "spawned processes",
          "connect": "ports, names and sockets", "groups": "creation of communicators", "coll": "two processes, collectives",
          "strangers": "with busy loops of other programs, each bound to a core",
          "oversubscribed": "collectives of more processes than cores", "overlap": "overlap of communication and computation",
          "progress": "waiting in Starling's wait modes, and with more processes than cores",
          "partners": "changing partners", "one-sided": "access to other processes' memory", "applications": "whole programs", "startup": "starting a job",
          "memory": "resources of an idle process"}
POOL_SIZES = tuple(1 << power for power in range(11, 21))
LATENCY_SIZES = (8, 64, 512, 1024) + POOL_SIZES
BANDWIDTH_SIZES = (65536, 1 << 18, 1 << 20, 4 << 20)
MEDIUM_SIZES = (16384, 65536, 1 << 18, 1 << 20)
RATE_SIZES = (8, 1024, 2048, 4096, 8192, 16384)
COLLECTIVE_SIZES = (8, 4096, 65536, 1 << 20)
PAIR_SIZES = (8, 4096) + MEDIUM_SIZES  # of collectives of two processes
COLLECTIVES = ("barrier", "bcast", "allreduce", "reduce", "allgather", "alltoall")
ALL_COLLECTIVES = ("barrier", "bcast", "reduce", "allreduce", "gather", "scatter", "allgather", "alltoall", "reduce_scatter", "scan")
BETWEEN_GROUPS = ("barrier", "bcast", "allreduce", "alltoall", "reduce", "reduce_scatter", "allgather")
OVERLAPS = ("isend-irecv", "ibarrier", "ibcast", "ireduce", "iallreduce", "iallgather", "ialltoall")
ONE_SIDED = ("put", "get", "accumulate", "accumulate-double", "fetch_and_op", "compare_and_swap", "puts", "gets")
ONE_SIDED_SIZES = (8, 64, 1024, 8192, 65536, 1 << 20)
SCENE = "/usr/share/doc/povray/examples/advanced/chess2.pov"
CORES = len(os.sched_getaffinity(0))
UNPLACED_GROUPS = ("spawn", "startup", "memory", "groups", "overlap", "applications")
# The cases for which Starling has goals.
TARGETS = ("latency", "bandwidth", "message-rate", "latency-parent-child", "bandwidth-parent-child", "spawn-1",
           "spawn-8", "spawn-32", "spawn-50-in-a-row", "connect", "hello-64", "memory-16", "barrier-2", "bcast-2",
           "allreduce-2", "alltoall-2", "barrier-4", "bcast-4", "allreduce-4", "alltoall-4", "barrier-16", "bcast-16",
           "allreduce-16", "alltoall-16", "barrier-1+7", "allreduce-1+7", "barrier-4+4", "allreduce-4+4")
MESSAGES = ("latency", "latency-written", "bandwidth", "bandwidth-both", "message-rate", "burst", "late-receiver", "allreduce-2",
            "alltoall-2")
# The cases with data of 16 KB to 1 MB within a host.
MEDIUM = MESSAGES + ("latency-exchanged", "latency-parent-child", "bandwidth-parent-child", "bcast-2", "allgather-2", "all-4",
                     "one-sided-allocated", "one-sided-exchanged", "strangers-0-latency", "strangers-1-latency", "strangers-2-latency")
SETS = {"targets": TARGETS, "messages": MESSAGES, "medium": MEDIUM}


def sizes(numbers):
    return ",".join(map(str, numbers))


def all_cases(quick):
    time = "0.06" if quick else "0.3"
    cases = (point_to_point(time) + strangers() + dynamic(quick) + ports() + communicators(time, quick) +
             collectives(time, quick) + between_groups(time, quick) + overlap(time, quick) + progress(time) +
             partners(quick) + one_sided(time) + applications(quick) + startup(quick) + memory(quick))
    for case in cases:
        case.placed = case.group not in UNPLACED_GROUPS
        case.goal = goal_of(case)
    return cases


def goal_of(case):
    """Returns Starling's goals: {(operation, size): limit of the ratio of its value to the best peer's}."""
    if case.group == "strangers":
        return {("", 8): 1.1, ("", 65536): 1.1, ("barrier", 0): 0.5, ("allreduce", 8): 0.5}
    if case.name == "latency-exchanged":
        return {("", size): 0.7 for size in POOL_SIZES if size >= MEDIUM_SIZES[0]}
    if case.name == "all-4":
        return {(what, size): 0.8 for what in ALL_COLLECTIVES for size in (0, 8, 4096, 65536)}
    if case.name in ("latency", "latency-written"):
        return {("", size): 0.9 for size in POOL_SIZES}
    if case.name in ("bandwidth", "bandwidth-both"):
        return {("", size): 1.1 for size in BANDWIDTH_SIZES}
    if case.group == "one-sided":
        goals = {(what, size): 0.8 if size <= 1024 else 1.0 for what in ONE_SIDED for size in ONE_SIDED_SIZES}
        goals |= {(what, size): 0.9 for what in ("put", "get") for size in ONE_SIDED_SIZES if size >= 65536}
        return {(prefix + what, size): goals[what, size] for prefix in ("", "create-", "exchanged-") for what, size in goals}
    if case.name.startswith("planned"):
        goals = {("neighbor-alltoall", size): 0.7 for size in (8, 1024, 16384)}
        return goals | {("neighbor-alltoall-start", size): 0.7 for size in (8, 1024, 16384)}
    if case.name == "message-rate":
        return {("", size): 1.2 for size in RATE_SIZES[1:]}
    if case.name in ("allreduce-2", "alltoall-2", "bcast-2", "allgather-2"):
        return {(case.name[:-2], size): 0.9 for size in MEDIUM_SIZES}
    return {}


def strangers():
    """Returns cases that show the effect of other programs ("strangers") on the same cores, for two ranks and for more ranks than cores. A
    batch must last longer than the time slices of some milliseconds in which the other programs run."""
    cases, time = [], "0.3"
    for loops in (0, 1, 2):
        note = f"with {loops} busy loops of other programs"
        cases.append(Case(f"strangers-{loops}-latency", "strangers", "latency", 2, ["-t", time, "-s", "8,65536"], 60,
                          strangers=loops, repeats=2, note=note))
        cases.append(Case(f"strangers-{loops}-16-ranks", "strangers", "collectives", 16,
                          ["-t", time, "-o", "barrier,allreduce", "-s", "8"], 60, strangers=loops, repeats=2,
                          note=note))
    return cases


def point_to_point(time):
    cases = []
    for name, group, ranks, extra in (("", "p2p", 2, []), ("-written", "p2p", 2, ["--write"]),
                                      ("-exchanged", "p2p", 2, ["--exchanged"]),
                                      ("-parent-child", "inter", 1, ["--spawn", "1"])):
        lengths = POOL_SIZES if "--write" in extra else LATENCY_SIZES
        cases.append(Case("latency" + name, group, "latency", ranks, ["-t", time, "-s", sizes(lengths)] + extra, 60,
                          limit=["latency", sizes(lengths), time] if "--write" not in extra else []))
        if name in ("-written", "-exchanged"):
            continue
        cases.append(Case("bandwidth" + name, group, "bandwidth", ranks,
                          ["-t", time, "-s", sizes(BANDWIDTH_SIZES)] + extra, 60, larger_is_better=True,
                          limit=["bandwidth", sizes(BANDWIDTH_SIZES), time]))
        cases.append(Case("bandwidth-both" + name, group, "bandwidth", ranks,
                          ["--both", "-t", time, "-s", sizes(BANDWIDTH_SIZES)] + extra, 60, larger_is_better=True,
                          limit=["bandwidth-both", sizes(BANDWIDTH_SIZES), time]))
        cases.append(Case("message-rate" + name, group, "message-rate", ranks,
                          ["-t", time, "-s", sizes(RATE_SIZES)] + extra, 30,
                          larger_is_better=True, limit=["message-rate", "8", time]))
    cases.append(Case("burst", "p2p", "burst", 2, ["-t", time, "-s", sizes(MEDIUM_SIZES)], 60,
                      note="per message; 64 are started at once"))
    cases.append(Case("late-receiver", "p2p", "late-receiver", 2, ["-t", time, "-s", sizes(MEDIUM_SIZES)], 60,
                      note="from the end of the receiver's computation of 100 us"))
    return cases


def dynamic(quick):
    cases = []
    spawns = "3" if quick else "5"
    for children in (1, 8, 32) if quick else (1, 2, 4, 8, 16, 32):
        cases.append(Case(f"spawn-{children}", "spawn", "spawn", 1,
                          ["-o", "spawn", "-k", str(children), "-i", spawns], 30,
                          limit=["spawn", str(children), "{}"]))
    for parents, children in ((2, 4), (4, 4)):
        cases.append(Case(f"spawn-{children}-by-{parents}", "spawn", "spawn", parents,
                          ["-o", "spawn", "-k", str(children), "-i", spawns], 30, limit=["spawn", str(children), "{}"]))
    for name, operation in (("in-a-row", "rate"), ("staying", "staying")):
        note = "with disconnect" if operation == "rate" else "no child ends before the last one has started"
        cases.append(Case(f"spawn-50-{name}", "spawn", "spawn", 1, ["-o", operation, "-w", "50"], 90, turns=2,
                          note="per spawn, " + note,
                          limit=["spawn", "1", "{}"], limit_rows={("spawn", 1): (name, 50)}))
    return cases


def ports():
    cases = [Case("connect", "connect", "connect", 2, ["-o", "connect"], 30),
             Case("connect-2+2", "connect", "connect", 4, ["-o", "connect"], 30)]
    cases.append(Case("names", "connect", "connect", 2, ["-o", "names"], 30))
    cases.append(Case("join", "connect", "connect", 2, ["-o", "join"], 30))
    return cases


def communicators(time, quick):
    cases = []
    for ranks in (1, 4):
        cases.append(Case(f"merge-{ranks}+{ranks}", "groups", "merge", ranks, ["-i", "20" if quick else "100"], 30))
    for ranks in (2, 16) if quick else (2, 16, 32):
        cases.append(Case(f"comm-bcast-{ranks}", "groups", "comm-bcast", ranks,
                          ["-t", time, "-k", "1,100" if quick else "1,10,100,1000", "--compute",
                           "0,100" if quick else "0,100,1000"], 60))
    return cases


def collectives(time, quick):
    """Returns one case per operation, so that the others still get their values if one hangs."""
    cases = []
    for ranks in (2, 4, 16):
        group = "coll" if ranks <= CORES else "oversubscribed"
        for operation in COLLECTIVES:
            if quick and (operation == "reduce" or (operation == "allgather" and ranks > 2)):
                continue
            largest = 1 << 20
            if ranks > 2:
                largest = 4096 if operation in ("alltoall", "allgather") else 65536 if quick else largest
            wanted = [size for size in (PAIR_SIZES if ranks == 2 else COLLECTIVE_SIZES) if size <= largest]
            case = Case(f"{operation}-{ranks}", group, "collectives", ranks,
                        ["-o", operation, "-t", time, "-s", sizes(wanted)], 30)
            if operation == "barrier":
                case.limit = ["barrier", str(ranks), time]
            elif operation == "bcast" and ranks == 2:
                case.limit = ["latency", sizes(wanted), time]
                case.limit_rows = {("", size): ("bcast", size) for size in wanted}
            elif operation in ("alltoall", "allreduce") and ranks == 2:
                case.limit = [operation, sizes(wanted), time]
            cases.append(case)
        cases.append(Case(f"outstanding-{ranks}", group, "outstanding", ranks,
                          ["-t", time, "-k", "1,8,32", "-o", "ibarrier,ibcast,iallreduce"], 30))
        cases.append(Case(f"planned-{ranks}", group, "planned", ranks, ["-t", time], 30))
    cases.append(Case("all-4", "oversubscribed", "collectives", 4,
                      ["-o", ",".join(ALL_COLLECTIVES), "-t", time, "-s", sizes((8, 4096, 65536))], 60, note="every operation"))
    return cases


def between_groups(time, quick):
    cases = []
    for parents, children in ((1, 7), (4, 4)):
        for operation in BETWEEN_GROUPS[:3] if quick else BETWEEN_GROUPS:
            case = Case(f"{operation}-{parents}+{children}", "inter", "collectives", parents,
                        ["-o", operation, "-t", time, "-s", "8,65536", "--spawn", str(children)], 30)
            if operation == "barrier":
                case.limit = ["barrier", str(parents + children), time]
            cases.append(case)
    return cases


def overlap(time, quick):
    kinds = OVERLAPS[:5] if quick else OVERLAPS
    cases = []
    for name, ranks, extra in (("overlap-2", 2, []), (f"overlap-{4 * CORES}", 4 * CORES, []),
                               ("overlap-1+1", 1, ["--spawn", "1"])):
        if quick and name != "overlap-2":
            continue
        cases.append(Case(name, "overlap", "overlap", ranks, ["-t", time, "-o", ",".join(kinds)] + extra, 120,
                          larger_is_better=True, keep={kind + "-overlap": None for kind in kinds}))
    return cases


def progress(time):
    """Returns the same cases with 1, 2, 8 and 32 processes per core. In these groups the libraries include Starling's other wait modes."""
    cases = [Case("latency-modes", "progress", "latency", 2, ["-t", time, "-s", "8,65536"], 30)]
    cases.append(Case("overlap-modes", "progress", "overlap", 2,
                      ["-t", time, "-o", "isend-irecv,iallreduce", "-s", "1048576"], 60, larger_is_better=True,
                      keep={"isend-irecv-overlap": None, "iallreduce-overlap": None}))
    for factor in (1, 2, 8, 32):
        cases.append(Case(f"progress-{factor}x", "progress", "progress", max(factor * CORES, 2), ["-t", time], 60))
    return cases


def partners(quick):
    arguments = ["-i", "5", "-b", "4"] if quick else []
    return [Case(f"partners-{ranks}", "partners", "partners", ranks, arguments, 60) for ranks in (4, 16)]


def one_sided(time):
    """Returns one case per kind of memory, so that the others still get their values if one kind fails."""
    return [Case(f"one-sided-{kind}", "one-sided", "one-sided", 2,
                 ["-t", time, "-s", sizes(ONE_SIDED_SIZES), "-o", ",".join(prefix + what for what in ONE_SIDED)], 60,
                 note=note)
            for kind, prefix, note in (("allocated", "", "memory of MPI_Win_allocate"),
                                       ("created", "create-", "memory of malloc"),
                                       ("exchanged", "exchanged-", "memory of MPI_Alloc_mem"))]


def applications(quick):
    time, spawned = "0.1" if quick else "0.5", ["--spawn", "4"]
    farm = ["-k", "10,100" if quick else "10,100,1000", "-i", "3" if quick else "5"]
    mesh = ["-i", "100"] if quick else []
    cases = [Case("task-farm-1+4", "applications", "task-farm", 1, farm + spawned, 60, note="four workers, spawned"),
             Case("task-farm-5", "applications", "task-farm", 5, farm, 60, note="four workers, in the job"),
             Case("heat2d-2", "applications", "heat2d", 2, ["-t", time], 60),
             Case("heat2d-8", "applications", "heat2d", 8, ["-t", time], 60),
             Case("heat2d-2+2", "applications", "heat2d", 2, ["-t", time, "--spawn", "2"], 60)]
    moving = {"step": None, "border": None, "regrid": None}
    for ranks in (2, 8):
        cases.append(Case(f"adaptive-mesh-{ranks}", "applications", "adaptive-mesh", ranks, mesh, 60, keep=moving))
    cases.append(Case("adaptive-mesh-2+2", "applications", "adaptive-mesh", 2, mesh + ["--spawn", "2"], 60,
                      keep=moving))
    picture = ["--scene", SCENE, "--size", "160x120", "--tile", "40x30", "--quiet", "--output", "/dev/null"]
    cases.append(Case("render-farm-1+2", "applications", "render-farm", 1, picture + ["--workers", "2"], 120, wall=True,
                      plain=True, turns=2, note="two workers, spawned; the whole command"))
    cases.append(Case("render-farm-3", "applications", "render-farm", 3, picture, 120, wall=True, plain=True, turns=2,
                      note="two workers, in the job; the whole command"))
    words, branches = ("200000", "2000") if quick else ("1000000", "8000")
    for ranks in (2, 8):
        cases.append(Case(f"hash-table-{ranks}", "applications", "hash-table", ranks, [words], 60, wall=True, plain=True,
                          note=f"examples/hash-table.c, {words} words each; the whole command"))
        cases.append(Case(f"work-stealing-{ranks}", "applications", "work-stealing", ranks, [branches], 60, wall=True, plain=True,
                          note=f"examples/work-stealing.c, {branches} branches; the whole command"))
    return cases


def startup(quick):
    cases = []
    for ranks in (1, 8, 64) if quick else (1, 2, 4, 8, 16, 32, 64, 128):
        cases.append(Case(f"hello-{ranks}", "startup", "startup", ranks, [], 60, wall=True,
                          limit=["hello", str(ranks), "{}"],
                          note="the whole mpiexec command; MPI_Init and the first message are medians over processes"))
    return cases


def memory(quick):
    cases = []
    for ranks in (16,) if quick else (1, 16, 64):
        keep = {prefix + what: None for prefix in ("", "after-alltoall-") for what in
                ("pss-kB", "private-kB", "descriptors", "sockets", "shared-mappings")}
        cases.append(Case(f"memory-{ranks}", "memory", "footprint", ranks, [], 60, turns=2, keep=keep,
                          limit=["footprint", str(ranks)]))
    return cases
