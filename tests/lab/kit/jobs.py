"""Jobs of Starling in a lab: started on a host like a user would, and watched until nothing of them is left."""
import os
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from . import places
from .lab import Lab

WITHIN = 240  # seconds for anything on a busy machine
GRACE = 60.0  # seconds after mpiexec's end within which nothing of a job may be left on the hosts


@dataclass
class Outcome:
    code: int  # None: killed because it did not end in time
    output: str
    errors: str
    seconds: float
    left: list = field(default_factory=list)  # descriptions of everything left on the hosts

    def __str__(self):
        end = "did not end" if self.code is None else f"exit code {self.code}"
        return f"{end} after {self.seconds:.1f} s\n--- output\n{self.output[-3000:]}\n--- errors\n{self.errors[-12000:]}\n" + \
            "".join(f"left: {line}\n" for line in self.left)


class Build:
    def __init__(self, folder=None):
        self.folder = Path(folder).resolve() if folder else places.programs().parent.parent
        self.mpiexec = self.folder / "bin" / "mpiexec"

    def program(self, name):
        return self.folder / "tests" / name

    def missing(self):
        return "" if self.mpiexec.exists() else f"{self.mpiexec} is not built"


def host_list(hosts, ranks):
    """Returns a host list, "lab1:2,lab2:1", that spreads the ranks evenly over the first hosts."""
    numbers = list(hosts) if not isinstance(hosts, int) else list(range(1, hosts + 1))
    shares = [ranks // len(numbers) + (i < ranks % len(numbers)) for i in range(len(numbers))]
    return ",".join(f"lab{host}:{share}" for host, share in zip(numbers, shares) if share > 0)


def handed_on():
    """Returns mpiexec's options that export the delay settings (src/base/delay.h), because a host's login has a minimal environment, as
    with ssh."""
    return ["-x", "TEST_DELAYS"] if "TEST_DELAYS" in os.environ else []


class Job:
    """A running mpiexec. `words` are its arguments after the agent and the hosts."""

    def __init__(self, lab: Lab, build: Build, words, hosts=None, ranks=None, on=1, agent=None, environment=None,
                 stdin=subprocess.DEVNULL):
        self.lab = lab
        self.before = remains(lab)
        agent = agent or lab.agent()
        command = [build.mpiexec, "--launcher-agent", agent]
        if hosts is not None:
            command += ["--host", host_list(hosts, ranks), "-n", ranks]
        command += handed_on()
        self.files = tempfile.TemporaryFile(), tempfile.TemporaryFile()
        self.started = time.monotonic()
        self.process = subprocess.Popen(lab.entering(on, command + list(words)), stdin=stdin, stdout=self.files[0],
                                        stderr=self.files[1], env=os.environ | (environment or {}))

    def output(self):
        """Returns the job's output so far."""
        return os.pread(self.files[0].fileno(), 1 << 24, 0).decode(errors="replace")

    def errors(self):
        return os.pread(self.files[1].fileno(), 1 << 24, 0).decode(errors="replace")

    def wait_for(self, text, seconds=WITHIN, where=None):
        """Waits until the output, or what `where` returns, contains the text. Returns False after `seconds`."""
        where, deadline = where or self.output, time.monotonic() + seconds
        while text not in where():
            if time.monotonic() > deadline or self.process.poll() is not None:
                return text in where()
            time.sleep(0.02)
        return True

    def end(self, within=WITHIN, grace=GRACE):
        """Waits for mpiexec's end, then for the end of everything that it has started on any host."""
        code, stacks = None, ""
        try:
            code = self.process.wait(timeout=within)
        except subprocess.TimeoutExpired:
            stacks = stacks_of(self.lab)
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
        seconds = time.monotonic() - self.started
        left = self._left(grace)
        outcome = Outcome(code, self.output(), self.errors() + stacks, seconds, left)
        for file in self.files:
            file.close()
        return outcome

    def _left(self, grace):
        deadline = time.monotonic() + grace
        while True:
            left = sorted(remains(self.lab) - self.before)
            if not left or time.monotonic() > deadline:
                return left
            time.sleep(0.1)


LOOK = r"""
cd /proc; for p in [0-9]*; do
  if [ $p != 1 ] && [ $p != $$ ] && [ -r $p/cmdline ]; then
    c=$(tr '\0\n' '  ' < $p/cmdline) && [ -n "$c" ] && echo "process $p: $c"; fi; done
for f in /dev/shm/* /tmp/*; do [ -e "$f" ] && echo "file $f"; done
grep -o '@.*starling.*' /proc/net/unix | sed 's/^/socket /'
true
"""


def remains(lab):
    """Returns all processes, files in /dev/shm and /tmp, and Starling's named sockets on the hosts that are up."""
    found = set()
    for host in range(1, lab.size() + 1):
        if not lab.alive(host):
            continue
        shown = lab.run(host, ["sh", "-c", LOOK]).stdout
        found |= {f"lab{host}: {line}" for line in shown.splitlines() if "sh -c  cd /proc" not in line}
    # The lab's own processes: a session whose agent was cut off in mid-connection still waits for the agent.
    own = " sshd", "/usr/sbin/sshd", "/lab-hosts --state", "/lab-machine"
    return {line for line in found if not any(word in line for word in own)}


# Prints the stacks of all processes of a hanging job, for debugging.
STACKS = r"""
cd /proc; for p in [0-9]*; do
  if [ $p != 1 ] && [ $p != $$ ] && [ "$(tr -d '\0' < $p/cmdline)" ] && ! grep -q '^sh\|gdb' $p/comm; then
    echo "--- $(hostname) $p $(tr '\0' ' ' < $p/cmdline | cut -c1-100)"
    timeout 20 gdb -batch -nx -p $p -ex 'thread apply all bt 12' 2>/dev/null | grep '^#\|^Thread' | cut -c1-160; fi; done
"""


def stacks_of(lab):
    hosts = [host for host in range(1, lab.size() + 1) if lab.alive(host)]
    return "".join(stacks_on(lab, host) for host in hosts)


def stacks_on(lab, host):
    try:
        return lab.run(host, ["sh", "-c", STACKS], timeout=300).stdout
    except subprocess.TimeoutExpired as late:
        return (late.stdout or b"").decode(errors="replace") + f"(more of host {host} was not to be had within 300 s)\n"


def run(lab, build, words, hosts=2, ranks=2, within=WITHIN, grace=GRACE, **options):
    return Job(lab, build, words, hosts, ranks, **options).end(within, grace)
