"""When OpenSHMEM's PEs are ready: on demand, or after all have connected to all (STARLING_CONNECT=all, the usual start-up).

On demand, shmem_init is MPI_Init's part and opening the symmetric memory; the hello is a barrier over a tree of hosts. With all connections
there are two barriers, the gathering of addresses through the daemons, the all-gather of every PE's segment, and a connection of each PE to
every PE of another host, one after the other on its own core. So all values are lower bounds.
"""
import math

from .start import Shape, Start
from .store import Store

SEGMENT = 24  # bytes: address, length and key


def barrier(costs, hosts):
    """Returns the time of a barrier among hosts; within a host its time is negligible."""
    return math.ceil(math.log2(hosts)) * (costs.rtt / 2 + 2 * costs.frame) if hosts > 1 else 0.0


def all_gather(costs, hosts, per_host):
    """Returns the time of an all-gather of the segments by doubling: all arrive over each host's link, and each PE copies them out of
    its host's memory."""
    bytes_of_all = hosts * per_host * SEGMENT
    return barrier(costs, hosts) + bytes_of_all / costs.bandwidth + bytes_of_all * costs.byte


def ready(costs, hosts, per_host):
    """Returns seconds from mpiexec's start, with standing daemons, until all PEs have left shmem_init and the hello, on demand and with all."""
    start = Start(costs, Shape(hosts=hosts, per_host=per_host, cores=per_host, standing=True)).run().initialized
    demand = start + costs.symmetric
    others = (hosts - 1) * per_host
    # Both ends spend time on a connection, and each end belongs to one PE, so a PE pays for all of its connections.
    meet = (2 * barrier(costs, hosts) + Store(costs, hosts, per_host).all_gather().seconds + all_gather(costs, hosts, per_host) +
            others * costs.connection + (costs.rtt if others else 0.0))
    return {"hosts": hosts, "processes": hosts * per_host, "launched": start, "demand": demand, "all": demand + meet,
            "hello_demand": demand + barrier(costs, hosts), "hello_all": demand + meet + barrier(costs, hosts),
            "meeting": meet, "init_demand": costs.rank_init + costs.symmetric,
            "init_all": costs.rank_init + costs.symmetric + meet}
