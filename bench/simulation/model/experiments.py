"""The experiments. Each returns rows: dictionaries with the inputs and the results."""
from .meeting import ready
from .start import Start, Shape, spawn
from .store import Store

PER_HOST = 64  # processes, and cores, of the cluster's hosts


def _start(costs, **shape):
    model = Start(costs, Shape(**shape))
    times = model.run()
    row = {key: value for key, value in shape.items() if key in ("hosts", "per_host", "fanout", "standing")}
    row["processes"] = shape["hosts"] * shape["per_host"]
    row["depth"] = max(model.tree.depth)
    row.update(times.__dict__)
    return row


def in_the_lab(costs, measured):
    """The lab, where all hosts share this machine's two cores. The measured values are added to the rows."""
    per_host = measured["per_host"]
    rows = []
    for hosts in (1, 4, 16, 64):
        row = _start(costs["lab"], hosts=hosts, per_host=per_host, shared_cores=2)
        row["measured"] = measured["points"].get(str(row["processes"]))
        rows.append(row)
    return rows


def start_by_size(costs, sizes):
    """Starts from one host to a million processes, with ssh and with standing daemons."""
    return [_start(costs["cluster"], hosts=hosts, per_host=PER_HOST, cores=PER_HOST, standing=standing)
            for standing in (False, True) for hosts in sizes]


def start_by_fanout(costs, sizes, fanouts):
    rows = []
    for hosts in sizes:
        for fanout in fanouts:
            for standing in (False, True):
                rows.append(_start(costs["cluster"], hosts=hosts, per_host=PER_HOST, cores=PER_HOST, fanout=fanout,
                                   standing=standing))
    return rows


def finding(costs, sizes, most_random):
    """Addresses: the next process of each; five random peers, each fetched separately and as implemented; all by all-gather."""
    rows = []
    for hosts in sizes:
        row = {"hosts": hosts, "processes": hosts * PER_HOST}
        cluster = costs["cluster"]
        row["neighbours"] = Store(cluster, hosts, PER_HOST).neighbours().seconds
        row["all_gather"] = Store(cluster, hosts, PER_HOST).all_gather().seconds
        row["random"] = Store(cluster, hosts, PER_HOST).on_demand(5).seconds if hosts <= most_random else None
        row["as_built"] = Store(cluster, hosts, PER_HOST).as_built(5).seconds
        rows.append(row)
    return rows


def spawning(costs, sizes):
    """Children over as many hosts as they need at 8 each, in a universe of 16,384 hosts."""
    rows = []
    for hosts in sizes:
        children = hosts * 8
        seconds = spawn(costs["cluster"], children, hosts, 16384, cores=PER_HOST)
        rows.append({"children": children, "hosts": hosts, "seconds": seconds})
    return rows


def meeting(costs, sizes):
    """OpenSHMEM: time until all PEs have left shmem_init, on demand and with all connections."""
    return [ready(costs["cluster"], hosts, PER_HOST) for hosts in sizes]


def all_of(costs, measured, quick):
    sizes = (1, 2, 4) if quick else (1, 4, 16, 64, 256, 1024, 4096, 15625)
    fanouts = (2, 16) if quick else (2, 4, 8, 16, 32, 64, 128, 256)
    return {
        "lab": in_the_lab(costs, measured),
        "start": start_by_size(costs, sizes),
        "fanout": start_by_fanout(costs, (4,) if quick else (64, 1024, 4096), fanouts),
        "finding": finding(costs, (2, 4) if quick else (2, 16, 64, 256, 1024, 4096, 15625), 4 if quick else 256),
        "shmem": meeting(costs, (1, 2) if quick else (1, 4, 16, 128, 1024, 15625)),
        "spawn": spawning(costs, (1, 2) if quick else (1, 8, 64, 512, 4096, 16384)),
    }
