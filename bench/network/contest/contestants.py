"""The contestants between two hosts: plain sockets, Starling on UDP and on TCP, Open MPI and MPICH on TCP."""
import json
import os
import subprocess
import time
from dataclasses import dataclass, field

from runner import libraries

from .lab import Lab

PORT = 7000
BASE_PATH_ONLY = {"STARLING_MAX_CONNECTIONS": "0"}  # without TCP, so that all messages use UDP


@dataclass
class Contestant:
    key: str
    title: str
    kind: str  # raw, starling or peer
    cases: tuple  # names of the cases in which it takes part
    library: libraries.Library = None
    launcher: tuple = ()  # arguments that follow its mpiexec
    environment: dict = field(default_factory=dict)
    poll: bool = False  # for kind raw: polling sockets

    def prepare(self, programs):
        """Builds the contestant's programs. Returns an empty string, or the reason why it cannot be used."""
        if self.library is None:
            return ""
        return self.library.missing() or libraries.build(self.library, programs)

    def measure(self, lab: Lab, build, case):
        """Returns {size: value}, or an error message."""
        if self.library is None:
            return self._measure_sockets(lab, build, case)
        program = self.library.program(case.program)
        command = [*self.library.launcher, *self.launcher, program, "-s", case.sizes_text(), "-t", case.seconds,
                   "-b", case.batches, "--json"]
        environment = os.environ | self.library.environment | self.environment
        return run_and_read(lab.entering(1, command), environment, case)

    def _measure_sockets(self, lab, build, case):
        program = build / "bench" / "network" / case.raw
        if not program.exists():
            return f"{program} is not built"
        how = ["--poll"] if self.poll else []
        server = subprocess.Popen(lab.entering(2, [program, "--listen", PORT, *how]), stdin=subprocess.DEVNULL)
        try:
            command = [program, "--connect", f"lab2:{PORT}", *how, "-s", case.sizes_text(), "-t", case.seconds, "-b",
                       case.batches, "--json"]
            return run_and_read(lab.entering(1, command), os.environ, case)
        finally:
            server.terminate()
            server.wait()


def run_and_read(command, environment, case):
    """Returns the value of each size: the median over batches, or the best of them."""
    pick = "value" if not case.best_batch else "max" if case.larger_is_better else "min"
    timeout = case.timeout
    process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    try:
        output, errors = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.terminate()
        time.sleep(1)
        process.kill()
        process.communicate()
        return f"did not end within {timeout:.0f} s"
    start = output.find('{"benchmark"')
    if process.returncode != 0 or start < 0:
        lines = [line.strip() for line in (errors + output).splitlines() if len(line.strip()) > 8]
        return f"exit code {process.returncode}: {lines[0][:150] if lines else 'no output'}"
    rows = json.loads(output[start:].splitlines()[0])["rows"]
    return {row["size"]: row[pick] for row in rows}


def all_contestants(build, lab):
    agent = str(lab.agent())
    starling = libraries.starling(build)[0]  # with its default settings; the other modes wait differently
    peers = {one.key: one for one in libraries.debian()}
    openmpi, mpich = peers["openmpi4"], peers["mpich4"]
    on_both = ("--launcher-agent", agent, "--host", "lab1:1,lab2:1", "-n", "2")
    udp, tcp, stream = "udp-latency", "tcp-latency", "tcp-bandwidth"
    openmpi_words = ("--mca", "plm_rsh_agent", agent, "--mca", "pml", "ob1", "--mca", "btl", "self,vader,tcp", "--mca",
                     "btl_tcp_if_include", "rail0", "--mca", "oob_tcp_if_include", "rail0", "--host", "lab1,lab2",
                     "-n", "2")
    mpich_words = ("-launcher", "ssh", "-launcher-exec", agent, "-iface", "rail0", "-hosts", "lab1,lab2", "-ppn", "1",
                   "-n", "2")
    return [
        Contestant("sockets-poll", "sockets, polling", "raw", (udp, tcp, stream), poll=True),
        Contestant("sockets-block", "sockets, blocking", "raw", (udp, tcp, stream)),
        Contestant("starling-udp", "Starling, base path", "starling", (udp,), starling, on_both, BASE_PATH_ONLY),
        Contestant("starling", "Starling", "starling", (tcp, stream), starling, on_both),
        Contestant("openmpi4", "Open MPI 4 (TCP)", "peer", (udp, tcp, stream), openmpi, openmpi_words),
        Contestant("mpich4", "MPICH 4 (TCP)", "peer", (udp, tcp, stream), mpich, mpich_words,
                   {"UCX_TLS": "tcp,self,sm", "UCX_NET_DEVICES": "rail0"}),
    ]
