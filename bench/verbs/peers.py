"""Open MPI and MPICH on the virtual machines: launch commands for Soft-RoCE, for the components of each that work there."""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from runner import libraries  # noqa: E402
from kit.places import Problem  # noqa: E402

PROGRAMS = "latency", "one-sided", "startup", "footprint"


def give_addresses(lab):
    """UCX drops datagrams whose GID is an IPv4 address: Soft-RoCE's device counts them as received and its completion channel reports each,
    but no reply is sent until the endpoint times out. With an IPv6 address they arrive. Returns its index in the table of GIDs."""
    for machine in range(1, lab.size() + 1):
        lab.must(machine, ["sh", "-c", "echo 0 > /proc/sys/net/ipv6/conf/rail0/disable_ipv6 && "
                                       f"ip -6 addr add fd77::{machine}/64 dev rail0 nodad && sleep 1"])
    return lab.must(1, ["sh", "-c", "cd /sys/class/infiniband/rxe0/ports/1/gids && grep -l ^fd77 *"]).strip()


def commands(lab):
    """Returns by name the commands that start a job, with datagrams alone or with connections (None: not available)."""
    found = {library.key: library for library in libraries.debian()}
    for key in "openmpi4", "mpich4":
        if problems := libraries.build(found[key], PROGRAMS):
            raise Problem(f"{found[key].title}: {problems}")
    agent, gid = str(lab.agent()), give_addresses(lab)

    def of_ucx(datagrams):
        return {"UCX_NET_DEVICES": "rxe0:1", "UCX_IB_GID_INDEX": gid, "UCX_TLS": "ud_v,self" if datagrams else "rc_v,ud_v,self"}

    def openmpi(program, processes, settings, *words):
        return ["mpirun.openmpi", "--allow-run-as-root", "--mca", "plm_rsh_agent", agent, "--host", "lab1:8,lab2:8", "--map-by", "node",
                "-n", str(processes), *words, *(w for item in settings.items() for w in ("-x", "=".join(item))), found["openmpi4"].program(program)]

    def openmpi_ucx(program, processes, datagrams):
        return openmpi(program, processes, of_ucx(datagrams), "--mca", "pml", "ucx", "--mca", "osc", "ucx")

    def openmpi_ofi(program, processes, datagrams):
        # For its default of 256 processes the provider would create a larger completion queue than Soft-RoCE allows.
        settings = {"FI_PROVIDER": "verbs,ofi_rxm", "FI_UNIVERSE_SIZE": "8"}
        return None if datagrams else openmpi(program, processes, settings, "--mca", "pml", "cm", "--mca", "mtl", "ofi")

    def mpich_ucx(program, processes, datagrams):
        settings = (word for name, value in of_ucx(datagrams).items() for word in ("-genv", name, value))
        return ["mpiexec.mpich", "-launcher", "ssh", "-launcher-exec", agent, "-hosts", "lab1,lab2", "-n", str(processes), *settings,
                found["mpich4"].program(program)]

    return {"Open MPI, UCX": openmpi_ucx, "Open MPI, OFI": openmpi_ofi, "MPICH, UCX": mpich_ucx}
