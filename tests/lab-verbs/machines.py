"""Virtual machines lab1, lab2, ... with Soft-RoCE on every rail: a lab (tests/lab/kit/lab.py) of virtual machines in place of namespaces.

    with Machines.temporary(2) as lab:
        lab.run(1, ["ibv_devinfo"])
"""
import contextlib
import fcntl
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
import uuid
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "lab"))
from kit import places  # noqa: E402
from kit.places import Problem  # noqa: E402

import kernel  # noqa: E402

LABS = Path("/run/starling-lab-verbs")
MOST = 4
BOOT_SECONDS = 240  # an emulated processor, on a busy machine
DOWN_SECONDS = 20


def check_machine():
    """Raises Problem if machines cannot run here."""
    if os.geteuid() != 0:
        raise Problem("virtual machines with this machine's file system need root", places.SKIPPED)
    for command in ("qemu-system-x86_64", "cpio", "modprobe", "dpkg", "apt-get", "setpriv"):
        if shutil.which(command) is None:
            raise Problem(f"lab-verbs needs the command {command}; install it with tools/install-packages verbs")
    if not Path("/bin/busybox").exists():
        raise Problem("lab-verbs needs /bin/busybox; install it with tools/install-packages verbs")


def lock_of(state):
    """Returns the lock file of a lab's state, locked, or None if another process holds it. The lock ends with the process."""
    lock = open(state / "lock", "wb")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        return None
    return lock


def remove_orphans():
    """Removes the remains of labs whose creators were killed, which no longer hold the lock. Process ids could not show that: a container
    that shares /run has others."""
    for state in LABS.glob("*-*"):
        with contextlib.suppress(FileNotFoundError):
            lock = lock_of(state)
            if lock is not None:
                shutil.rmtree(state, ignore_errors=True)
                lock.close()


class Machines:
    def __init__(self, name):
        self.name = name
        self.state = LABS / name
        self.running = []  # QEMU processes, machine 1 first
        self.consoles = []
        self.rail_count = 0
        self.lock = None

    @classmethod
    @contextlib.contextmanager
    def temporary(cls, machines, **options):
        """Creates machines that end with the block, or with this process if it is killed."""
        lab = cls(f"{os.getpid()}-{uuid.uuid4().hex[:6]}")
        try:
            lab.up(machines, **options)
            yield lab
        finally:
            lab.down()

    # --- Starting and ending the machines ---

    def up(self, machines, rails=1, mtu=4200, memory=768, processors=1):
        check_machine()
        if not 1 <= machines <= MOST or not 1 <= rails <= 2:
            raise Problem(f"{machines} machines with {rails} rails are not possible; use 1 to {MOST} machines with 1 or 2 rails")
        place = kernel.prepare()
        self.rail_count = rails
        LABS.mkdir(exist_ok=True)
        with open(LABS / ".lock", "wb") as creating:  # no state is without its lock while another lab removes orphans
            fcntl.flock(creating, fcntl.LOCK_EX)
            remove_orphans()
            self.state.mkdir()
            self.lock = lock_of(self.state)
        self.shared().mkdir()
        for index in range(1, machines + 1):
            self._start(index, machines, rails, mtu, memory, processors, place)
        deadline = time.monotonic() + BOOT_SECONDS
        for index in range(1, machines + 1):
            self._wait_for(index, "lab-machine: ready", deadline)

    def _start(self, index, machines, rails, mtu, memory, processors, place):
        said = {"index": index, "machines": machines, "rails": rails, "mtu": mtu, "modules": place,
                "machine": places.programs() / "lab-machine", "shared": self.shared()}
        # no_timer_check: the kernel otherwise panics if a busy machine delays the first timer interrupts of the emulated processor.
        words = ["setpriv", "--pdeathsig", "KILL", "qemu-system-x86_64", "-accel", "tcg", "-cpu", "max", "-smp", str(processors),
                 "-m", str(memory), "-nodefaults", "-display", "none", "-no-reboot", "-serial", "stdio",
                 "-qmp", f"unix:{self.state}/qmp{index},server=on,wait=off",
                 "-kernel", str(place / "vmlinuz"), "-initrd", str(place / "initramfs"),
                 "-append", "console=ttyS0 quiet panic=-1 mitigations=off tsc=reliable clocksource=tsc no_timer_check " + " ".join(f"{k}={v}" for k, v in said.items()),
                 "-virtfs", "local,path=/,mount_tag=root,security_model=none,readonly=on,multidevs=remap",
                 "-virtfs", f"local,path={self.shared()},mount_tag=shared,security_model=none"]
        words += ["-netdev", f"user,id=way-in,restrict=on,hostfwd=tcp:{self.address(index)}:514-:514",
                  "-device", f"virtio-net-pci,netdev=way-in,mac=02:77:01:00:00:{index:02x}"]
        for rail in range(rails):
            words += self._cables(index, machines, rail)
            words += ["-device", f"virtio-net-pci,id=rail{rail},netdev=rail{rail},host_mtu={mtu},"
                                 f"mac=02:77:00:00:{rail:02x}:{index:02x}"]
        with open(self.state / f"errors{index}", "wb") as errors:
            process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors,
                                       start_new_session=True)
        self.running.append(process)
        self.consoles.append("")

    def _cables(self, index, machines, rail):
        """Returns QEMU's options for a rail: a hub in machine 1, with a socket for each other machine."""
        path = f"{self.state}/cable{rail}-"
        if index > 1:
            self._wait_for_file(Path(f"{path}{index}"))
            return ["-netdev", f"stream,id=rail{rail},server=off,addr.type=unix,addr.path={path}{index}"]
        hub = 1 + rail
        words = ["-netdev", f"hubport,id=rail{rail},hubid={hub}"]
        for other in range(2, machines + 1):
            words += ["-netdev", f"stream,id=cable{rail}-{other},server=on,addr.type=unix,addr.path={path}{other}",
                      "-netdev", f"hubport,id=port{rail}-{other},hubid={hub},netdev=cable{rail}-{other}"]
        return words

    def _wait_for_file(self, path):
        deadline = time.monotonic() + DOWN_SECONDS
        while not path.exists():
            if self.running[0].poll() is not None or time.monotonic() > deadline:
                raise Problem(f"machine 1 did not start: {self._errors(1)}")
            time.sleep(0.01)

    def _wait_for(self, index, text, deadline):
        """Waits until the console shows the text."""
        process = self.running[index - 1]
        while text not in self.consoles[index - 1]:
            readable, _, _ = select.select([process.stdout], [], [], max(0, deadline - time.monotonic()))
            data = os.read(process.stdout.fileno(), 65536) if readable else b""
            if not data:
                how = "has ended" if readable else f"was not ready within {BOOT_SECONDS} s"
                raise Problem(f"machine {index} {how}: {self._errors(index)} {self.consoles[index - 1][-2000:].strip()}")
            self.consoles[index - 1] += data.decode(errors="replace")

    def _errors(self, index):
        return (self.state / f"errors{index}").read_text(errors="replace").strip()

    def console(self, index):
        """Returns the kernel's console output so far."""
        process = self.running[index - 1]
        while select.select([process.stdout], [], [], 0)[0]:
            data = os.read(process.stdout.fileno(), 65536)
            if not data:
                break
            self.consoles[index - 1] += data.decode(errors="replace")
        return self.consoles[index - 1]

    def down(self):
        for process in self.running:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
        for process in self.running:
            process.wait(DOWN_SECONDS)
            process.stdout.close()
        self.running.clear()
        shutil.rmtree(self.state, ignore_errors=True)
        if self.lock is not None:
            self.lock.close()

    # Machines

    def size(self):
        return len(self.running)

    def rails(self):
        return self.rail_count

    def alive(self, machine):
        return self.running[machine - 1].poll() is None

    def crash(self, machine):
        os.killpg(self.running[machine - 1].pid, signal.SIGKILL)
        self.running[machine - 1].wait(DOWN_SECONDS)

    def address(self, machine):
        """Returns the address by which this machine reaches the virtual machine; no other lab uses it."""
        number = os.getpid() % 65536
        return f"127.{128 + number // 256 % 64}.{number % 256}.{machine}"

    def entering(self, machine, command):
        """Returns a command that runs `command` on a machine, in this directory and with this environment's STARLING_ variables."""
        return [sys.executable, "-B", str(HERE / "enter"), self.address(machine)] + [str(word) for word in command]

    def run(self, machine, command, **options):
        """Runs a command on a machine, as subprocess.run() does, with its output as text."""
        options = {"capture_output": True, "text": True, "timeout": 240, "stdin": subprocess.DEVNULL} | options
        return subprocess.run(self.entering(machine, command), check=False, **options)

    def must(self, machine, command):
        result = self.run(machine, command)
        if result.returncode != 0:
            raise Problem(f"'{' '.join(map(str, command))}' failed on machine {machine}: {result.stdout.strip()} {result.stderr.strip()}")
        return result.stdout

    def plug(self, machine, rail, connected):
        """Pulls the cable, so that the interface loses its carrier, or reconnects it."""
        with socket.socket(socket.AF_UNIX) as monitor:
            monitor.settimeout(DOWN_SECONDS)
            monitor.connect(f"{self.state}/qmp{machine}")
            lines = monitor.makefile("rw")
            for command, arguments in (("qmp_capabilities", {}), ("set_link", {"name": f"rail{rail}", "up": connected})):
                lines.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
                lines.flush()
                for line in lines:
                    said = json.loads(line)
                    if "error" in said:
                        raise Problem(f"QEMU: {said['error']['desc']}")
                    if "return" in said:
                        break

    def agent(self):
        """Returns the path of the agent, which replaces ssh in mpiexec --launcher-agent on a machine."""
        return places.programs() / "agent"

    def shared(self):
        """Returns a directory that has the same path on all machines and on this one."""
        return self.state / "shared"
