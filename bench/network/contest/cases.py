"""The measurements between two hosts, and the project's goals for them."""
from dataclasses import dataclass


@dataclass
class Case:
    name: str
    title: str
    program: str  # name of the program in bench/
    raw: str  # name of the plain-socket program in bench/network/
    sizes: tuple
    larger_is_better: bool = False
    seconds: str = "0.3"
    timeout: float = 60
    batches: int = 10
    best_batch: bool = False  # whether to use the best batch instead of the median, for a machine with other work

    def sizes_text(self):
        return ",".join(map(str, self.sizes))

    def best(self, values):
        return max(values) if self.larger_is_better else min(values)

    def advantage(self, ours, theirs):
        """Returns the factor by which Starling's value is better than that of a peer."""
        return ours / theirs if self.larger_is_better else theirs / ours


@dataclass
class Goal:
    case: str
    size: int
    key: str  # the contestant that the goal applies to
    raw_ratio: float  # goal for the ratio to the best plain sockets: upper limit, or lower limit if larger is better
    advantage: float = 1.2  # goal for the factor over the best of the other libraries


def all_cases(quick, best_batch=False):
    seconds = "0.1" if quick else "0.5"
    cases = [Case("udp-latency", "half a round trip, us", "latency", "udp-latency", (8, 1024), seconds=seconds),
             Case("tcp-latency", "half a round trip, us", "latency", "tcp-latency", (8, 1024, 65536), seconds=seconds),
             Case("tcp-bandwidth", "bandwidth, MB/s", "bandwidth", "tcp-bandwidth", (65536, 1 << 20, 4 << 20), True,
                  seconds)]
    for case in cases:
        case.best_batch = best_batch
        if best_batch:
            case.batches = 20 if case.larger_is_better else 100
    return cases


GOALS = [Goal("udp-latency", 8, "starling-udp", 1.25), Goal("tcp-latency", 8, "starling", 1.25),
         Goal("tcp-bandwidth", 1 << 20, "starling", 0.95)]
