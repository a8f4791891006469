"""Costs: the numbers that the models use, and their sources (costs.json).

All are seconds of processor time of one core, except those marked as latencies (no processor is busy) or bytes.
"""
import dataclasses
import json
import math
from pathlib import Path

FILE = Path(__file__).resolve().parent.parent / "costs.json"


@dataclasses.dataclass(frozen=True)
class Costs:
    mpiexec: float = 0.0         # from its exec to the first agent or order
    agent_fork: float = 0.0      # the daemon's part in starting an agent
    agent_local: float = 0.0     # of the agent itself, on the host that starts it (the ssh client)
    agent_wait: float = 0.0      # latency of logging in: median
    agent_spread: float = 0.0    # sigma of the logarithm of that latency
    agent_remote: float = 0.0    # on the new host, before the daemon (sshd, shell)
    node_start: float = 0.0      # starlingd node, from its exec to the connection
    handshake: float = 0.0       # authentication of a connection, at each end
    frame: float = 0.0           # sending or receiving one frame between daemons, at each end
    byte: float = 0.0            # per byte of a frame, at each end: seal and copy
    place: float = 0.0           # per process of the job, at the root: placement
    order_bytes: float = 0.0     # bytes of a start order without its tables
    host_bytes: float = 0.0      # bytes per host in it
    host_entry: float = 0.0      # per host of the job, on each host: reading the table and writing it into the segment
    grow_bytes: float = 0.0      # bytes per host in the order to a new daemon that names the hosts it has to start
    report_bytes: float = 0.0    # bytes of a host's report
    report: float = 0.0          # a host's report, at the root, beyond its frame
    segment: float = 0.0         # creating a job segment, beyond its tables
    rank_start: float = 0.0      # vfork and exec of one process, at its daemon
    rank_init: float = 0.0       # of the process itself, from its exec to the end of MPI_Init
    symmetric: float = 0.0       # of the process itself, in shmem_init beyond MPI_Init
    connection: float = 0.0      # TCP between two processes, at each end, requested by a packet
    rank_exit: float = 0.0       # of the process itself, from MPI_Finalize to its end
    reap: float = 0.0            # its daemon's part in the exit
    rtt: float = 0.0             # latency: round trip between hosts
    bandwidth: float = math.inf      # bytes per second between hosts

    def with_(self, **changes):
        return dataclasses.replace(self, **changes)


def load(file=FILE):
    """Returns the sets of costs by name, each merged with the one it is based on."""
    sets = json.loads(Path(file).read_text(encoding="utf-8"))["sets"]

    def resolve(name):
        base = resolve(sets[name]["based_on"]) if "based_on" in sets[name] else Costs()
        return base.with_(**{key: cost["value"] for key, cost in sets[name]["costs"].items()})

    return {name: resolve(name) for name in sets}
