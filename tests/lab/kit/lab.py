"""A lab: hosts lab1, lab2, ... and the switch between them, for use in tests and benchmarks.

    with Lab.temporary(4, rails=2) as lab:
        lab.run(1, ["hostname"])
        lab.wire(3, 0).cut()
"""
import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import time
import uuid
from pathlib import Path

from . import places
from .groups import Groups
from .places import Problem
from .wires import Wire, bits_per_second

SWITCH = 0
UP_SECONDS = 240


class Lab:
    def __init__(self, name):
        if not name or "/" in name or name.startswith("."):
            raise Problem(f"'{name}' is not a valid lab name; use one without '/' that does not begin with '.'")
        self.name = name
        self.state = places.LABS / name
        self.supervisor = None  # set if the lab ends with this process

    @classmethod
    @contextlib.contextmanager
    def temporary(cls, hosts, **options):
        """Creates a lab with a unique name that ends with the block, or with this process if it is killed."""
        lab = cls(f"run-{os.getpid()}-{uuid.uuid4().hex[:6]}")
        lab.up(hosts, tied=True, **options)
        try:
            yield lab
        finally:
            lab.down()

    # --- Starting and ending the lab ---

    def is_up(self):
        """Returns whether the lab's supervisor runs, which holds the lab's lock."""
        try:
            with open(self.state / "lock", "rb") as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                return False
        except BlockingIOError:
            return True
        except FileNotFoundError:
            return False

    def up(self, hosts, rails=1, mtu=1500, shared_tmp=False, tied=False):
        places.check_machine()
        places.LABS.mkdir(mode=0o755, exist_ok=True)
        if self.is_up():
            raise Problem(f"the lab '{self.name}' is already up; end it with: lab --name {self.name} down")
        shutil.rmtree(self.state, ignore_errors=True)
        self.state.mkdir()
        command = [str(places.programs() / "lab-hosts"), "--state", str(self.state), "--hosts", str(hosts),
                   "--rails", str(rails), "--mtu", str(mtu)]
        command += ["--shared-tmp"] * shared_tmp + ["--tied"] * tied
        process = subprocess.Popen(command, stdin=subprocess.PIPE if tied else subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, start_new_session=True)
        if process.stdout.readline() != b"ready\n":
            process.kill()
            process.wait()
            shutil.rmtree(self.state, ignore_errors=True)
            raise Problem("the hosts did not start; the reason is printed above")
        process.stdout.close()
        self.supervisor = process if tied else None

    def down(self):
        """Ends the lab in any state, and removes the remains of a killed one."""
        if self.is_up():
            supervisor = self.pids()[0] if (self.state / "pids").exists() else None
            if supervisor:
                os.kill(supervisor, signal.SIGTERM)
        deadline = time.monotonic() + UP_SECONDS
        while self.is_up():
            if time.monotonic() > deadline:
                raise Problem(f"the lab '{self.name}' did not end within {UP_SECONDS} s")
            time.sleep(0.005)
        if self.supervisor:
            self.supervisor.wait()
            self.supervisor.stdin.close()
            self.supervisor = None
        shutil.rmtree(self.state, ignore_errors=True)

    # Hosts

    def pids(self):
        """Returns the process ids, in this machine's namespace, of supervisor, switch, lab1, ..."""
        try:
            return [int(line) for line in (self.state / "pids").read_text().split()]
        except FileNotFoundError:
            raise Problem(f"there is no lab '{self.name}'; start it with: lab --name {self.name} up 4") from None

    def size(self):
        return len(self.pids()) - 2

    def rails(self):
        lines = (self.state / "hosts").read_text().splitlines()
        return sum(1 for line in lines if line.split()[1].split("-")[0] == "lab1")

    def pid(self, host):
        pids = self.pids()
        if not 0 <= host <= len(pids) - 2:
            raise Problem(f"there is no host {host}; there are 1 to {len(pids) - 2}")
        return pids[host + 1]

    def alive(self, host):
        try:
            return b"lab-hosts" in Path(f"/proc/{self.pid(host)}/cmdline").read_bytes()
        except OSError:
            return False

    def entering(self, host, command):
        """Returns a command that runs `command` on a host (host 0: on the switch)."""
        return [str(places.programs() / "lab-enter"), str(self.pid(host))] + [str(word) for word in command]

    def run(self, host, command, **options):
        """Runs a command on a host, as subprocess.run() does, with its output as text."""
        options = {"capture_output": True, "text": True, "timeout": 240, "stdin": subprocess.DEVNULL} | options
        return subprocess.run(self.entering(host, command), check=False, **options)

    def must(self, host, command):
        result = self.run(host, command)
        if result.returncode != 0:
            raise Problem(f"'{' '.join(map(str, command))}' failed on host {host}: {result.stderr.strip()}")
        return result.stdout

    def processes(self, host):
        """Returns the processes of a host except its process 1: {process id on the host: command line}."""
        script = 'cd /proc; for p in [0-9]*; do [ $p = 1 ] || [ $p = $$ ] || ' \
                 '{ printf "%s " $p; tr "\\0" " " < $p/cmdline; echo; }; done 2>/dev/null'
        found = {}
        for line in self.must(host, ["sh", "-c", script]).splitlines():
            number, _, command = line.partition(" ")
            if number.isdigit() and command.strip() and not command.startswith(("sh -c cd /proc", "tr ")):
                found[int(number)] = command.strip()
        return found

    def crash(self, host):
        """Crashes the host: kills all its processes at once, and its cables lose their carrier."""
        os.kill(self.pid(host), signal.SIGKILL)

    def wire(self, host, rail):
        self.pid(host)
        if not 0 <= rail < self.rails():
            raise Problem(f"there is no rail{rail}; there are rail0 to rail{self.rails() - 1}")
        return Wire(self, host, rail)

    def second_switch(self, first, rate):
        """Moves the hosts from `first` on to a second switch. One cable of the given rate joins the two switches of rail 0."""
        burst = max(int(bits_per_second(rate) / 8 / 250), 16384)
        self.must(0, ["sh", "-ec", "\n".join([
            "ip link add far0 type bridge stp_state 0 mcast_snooping 1 mcast_query_response_interval 10",
            "ip link set far0 type bridge mcast_querier 1", "ip link set far0 up",
            "ip link add near-end type veth peer name far-end",
            "ip link set near-end master bridge0 up", "ip link set far-end master far0 up",
            # Both ends count as routers, so that a group's frames cross the cable, whichever switch asks for members.
            "bridge link set dev near-end mcast_router 2", "bridge link set dev far-end mcast_router 2",
            *(f"tc qdisc replace dev {end} root tbf rate {rate} burst {burst} latency 50ms" for end in ("near-end", "far-end")),
            *(f"ip link set h{host}r0 master far0" for host in range(first, self.size() + 1))])])

    def groups(self):
        return Groups(self)

    def wait_for_background(self, pid_file):
        """Waits until a program that goes to the background has written its process id, which it does after its parent has ended."""
        deadline = time.monotonic() + UP_SECONDS
        while not pid_file.exists() or not pid_file.read_text().endswith("\n"):
            if time.monotonic() > deadline:
                raise Problem(f"'{pid_file}' was not written within {UP_SECONDS} s")
            time.sleep(0.005)

    def agent(self):
        """Returns the path of the agent, which replaces ssh in mpiexec --launcher-agent."""
        return places.programs() / "agent"

    def shared(self):
        """Returns a directory that has the same path on all hosts and on the machine."""
        return self.state / "shared"
