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
    mpiexec: float = 0.0         # mpiexec, from its exec to the first agent or order
    agent_fork: float = 0.0      # starting an agent (ssh), at the daemon
    agent_local: float = 0.0     # the agent itself, on the host that starts it (the ssh client)
    agent_wait: float = 0.0      # latency of a login through the agent: median
    agent_spread: float = 0.0    # sigma of the logarithm of the login latency
    agent_remote: float = 0.0    # the agent on the new host, before the daemon starts (sshd, shell)
    node_start: float = 0.0      # starlingd node, from its exec to the connection
    handshake: float = 0.0       # authentication of a connection, at each end
    frame: float = 0.0           # sending or receiving one frame between daemons, at each end
    byte: float = 0.0            # encrypting and copying one byte of a frame, at each end
    place: float = 0.0           # placement of one process, at the root
    order_bytes: float = 0.0     # bytes of a start order without its tables
    host_bytes: float = 0.0      # bytes per host in a start order
    host_entry: float = 0.0      # one row of the table of hosts, on each host: reading it and writing it into the segment
    grow_bytes: float = 0.0      # bytes per host in the order that names the hosts which a new daemon must start
    report_bytes: float = 0.0    # bytes of a host's report
    report: float = 0.0          # handling a host's report, at the root, without the cost of its frame
    segment: float = 0.0         # creating a job segment, without its tables
    rank_start: float = 0.0      # vfork and exec of one process, at its daemon
    rank_init: float = 0.0       # one process, from its exec to the end of MPI_Init
    symmetric: float = 0.0       # one process, in shmem_init, in addition to MPI_Init
    connection: float = 0.0      # opening a TCP connection between two processes on request by a packet, at each end
    rank_exit: float = 0.0       # one process, from MPI_Finalize to its end
    reap: float = 0.0            # handling the exit of one process, at its daemon
    rtt: float = 0.0             # latency: round trip between hosts
    bandwidth: float = math.inf      # bytes per second between hosts

    def with_(self, **changes):
        return dataclasses.replace(self, **changes)


def load(file=FILE):
    """Returns the sets of costs by name. A set that is based on another one has the other's values for those that it lacks."""
    sets = json.loads(Path(file).read_text(encoding="utf-8"))["sets"]

    def resolve(name):
        base = resolve(sets[name]["based_on"]) if "based_on" in sets[name] else Costs()
        return base.with_(**{key: cost["value"] for key, cost in sets[name]["costs"].items()})

    return {name: resolve(name) for name in sets}
