"""What is measured: one case is one command line, one row per value it prints that is kept."""
from dataclasses import dataclass, field


@dataclass
class Case:
    name: str
    group: str  # p2p, inter, spawn, connect, coll, oversubscribed, overlap, startup, memory
    program: str
    ranks: int
    arguments: list
    timeout: float
    keep: dict = field(default_factory=dict)  # "what" -> sizes to keep (None: all); empty: everything
    wall: bool = False  # the time of the whole command is the value (ms)
    larger_is_better: bool = False
    note: str = ""
    turns: int = 0  # 0: as the run says

    def keeps(self, what, size):
        if not self.keep:
            return True
        return what in self.keep and (self.keep[what] is None or size in self.keep[what])


LATENCY_SIZES = (8, 1024, 8192, 65536, 1 << 20)
BANDWIDTH_SIZES = (65536, 1 << 20, 4 << 20)
COLLECTIVE_SIZES = (8, 4096, 65536, 1 << 20)
COLLECTIVES = ("barrier", "bcast", "allreduce", "reduce", "allgather", "alltoall")
# The cases that Starling's goals speak of.
TARGETS = ("latency", "bandwidth", "latency-parent-child", "bandwidth-parent-child", "spawn-1", "spawn-32",
           "spawn-50-in-a-row", "hello-64", "memory-16", "barrier-16", "allreduce-16", "barrier-1+7", "allreduce-1+7",
           "barrier-4+4", "allreduce-4+4")


def sizes(numbers):
    return ",".join(map(str, numbers))


def all_cases(quick):
    time = "0.06" if quick else "0.3"
    cases = point_to_point(time) + dynamic(quick) + collectives(time, quick)
    kinds = ("isend-irecv", "ibarrier", "iallreduce", "ibcast")
    cases.append(Case("overlap", "overlap", "overlap", 2, ["-t", time], 60, larger_is_better=True,
                      keep={kind + "-overlap": None for kind in kinds}))
    for ranks in (1, 8, 64):
        cases.append(Case(f"hello-{ranks}", "startup", "startup", ranks, [], 60, wall=True,
                          note="the whole mpiexec command"))
    cases.append(Case("memory-16", "memory", "footprint", 16, [], 60, turns=2,
                      keep={"pss-kB": None, "private-kB": None, "descriptors": None, "after-alltoall-pss-kB": None}))
    return cases


def point_to_point(time):
    cases = []
    for name, group, ranks, extra in (("", "p2p", 2, []), ("-parent-child", "inter", 1, ["--spawn", "1"])):
        cases.append(Case("latency" + name, group, "latency", ranks, ["-t", time, "-s", sizes(LATENCY_SIZES)] + extra, 60))
        cases.append(Case("bandwidth" + name, group, "bandwidth", ranks, ["-t", time, "-s", sizes(BANDWIDTH_SIZES)] + extra,
                          60, keep={"": BANDWIDTH_SIZES}, larger_is_better=True))
    cases.append(Case("bandwidth-both", "p2p", "bandwidth", 2, ["--both", "-t", time, "-s", sizes(BANDWIDTH_SIZES)], 60,
                      larger_is_better=True))
    cases.append(Case("message-rate", "p2p", "message-rate", 2, ["-t", time], 30, larger_is_better=True))
    return cases


def dynamic(quick):
    cases = []
    spawns = "3" if quick else "5"
    for children in (1, 2, 4, 8, 16, 32):
        if quick and children in (2, 16):
            continue
        cases.append(Case(f"spawn-{children}", "spawn", "spawn", 1, ["-o", "spawn", "-k", str(children), "-i", spawns],
                          60, keep={"spawn": None, "first-message": None, "disconnect": None}))
    cases.append(Case("spawn-50-in-a-row", "spawn", "spawn", 1, ["-o", "rate"], 120, turns=2,
                      note="per spawn, with disconnect"))
    cases.append(Case("connect", "connect", "connect", 2, ["-o", "connect"], 30))
    cases.append(Case("names", "connect", "connect", 2, [], 30,
                      keep={"publish": None, "lookup": None, "unpublish": None}))
    return cases


def collectives(time, quick):
    """One command per operation: where one hangs, the others still have their values."""
    cases = []
    for ranks in (2, 4, 16):
        group = "coll" if ranks == 2 else "oversubscribed"
        for operation in COLLECTIVES:
            if quick and operation in ("reduce", "allgather"):
                continue
            largest = 4096 if operation in ("alltoall", "allgather") else 65536 if ranks > 2 and quick else 1 << 20
            wanted = [size for size in COLLECTIVE_SIZES if size <= largest]
            cases.append(Case(f"{operation}-{ranks}", group, "collectives", ranks,
                              ["-o", operation, "-t", time, "-s", sizes(wanted)], 30))
    for parents, children in ((1, 7), (4, 4)):
        for operation in ("barrier", "bcast", "allreduce", "alltoall"):
            if quick and operation == "alltoall":
                continue
            cases.append(Case(f"{operation}-{parents}+{children}", "inter", "collectives", parents,
                              ["-o", operation, "-t", time, "-s", "8,65536", "--spawn", str(children)], 30))
    return cases
