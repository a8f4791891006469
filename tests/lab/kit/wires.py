"""The cable between a host's rail and the switch, and its faults."""
import json
import re
import subprocess

from . import places
from .places import Problem

FAULTS = ("drop", "duplicate", "reorder", "delay", "jitter")
NO_SEGMENTS = "tso off gso off tx-udp-segmentation off"
SEGMENTS = "tso on gso on tx-udp-segmentation on"


def probability(text):
    """Returns the probability, from 0 to 1, that "5%" or "0.05" means."""
    match = re.fullmatch(r"([0-9.]+)(%?)", text)
    if not match or not 0 <= float(match[1]) / (100 if match[2] else 1) <= 1:
        raise Problem(f"'{text}' is not a probability; use 5% or 0.05")
    return float(match[1]) / (100 if match[2] else 1)


def milliseconds(text):
    """Returns the milliseconds that "20ms", "20" or "1s" means."""
    match = re.fullmatch(r"([0-9.]+)(ms|s|us|)", text)
    if not match:
        raise Problem(f"'{text}' is not a time; use 20ms")
    return float(match[1]) * {"s": 1000, "us": 0.001}.get(match[2], 1)


def bits_per_second(text):
    match = re.fullmatch(r"([0-9.]+)([kmg]?)bit", text)
    if not match:
        raise Problem(f"'{text}' is not a rate; use 10mbit")
    return float(match[1]) * {"k": 1e3, "m": 1e6, "g": 1e9, "": 1}[match[2]]


class Wire:
    def __init__(self, lab, host, rail):
        self.lab, self.host, self.rail = lab, host, rail
        self.end = f"rail{rail}"  # on the host
        self.port = f"h{host}r{rail}"  # on the switch
        self.bridge = f"bridge{rail}"
        self.file = lab.state / f"wire-{self.port}.json"
        self.pid_file = lab.state / f"wire-{self.port}.pid"

    def state(self):
        """Returns the cable's faults: {"cut": true, "slow": "10mbit", "drop": 0.05, ...}; {} if there is none."""
        return json.loads(self.file.read_text()) if self.file.exists() else {}

    def _remember(self, changes):
        state = {key: value for key, value in (self.state() | changes).items() if value not in (None, False, 0)}
        self.file.write_text(json.dumps(state))
        return state

    def _on_switch(self, *commands):
        self.lab.must(0, ["sh", "-ec", "\n".join(commands)])

    def _on_host(self, *commands):
        if self.lab.alive(self.host):
            self.lab.must(self.host, ["sh", "-ec", "\n".join(commands)])

    def cut(self):
        """Pulls the cable: both ends lose their carrier."""
        self._on_switch(f"ip link set {self.port} down")
        self._remember({"cut": True})

    def slow(self, rate):
        """Limits both directions to this rate (\"10mbit\"), with a queue of 50 ms. None: no limit."""
        if rate is None:
            self._on_switch(f"tc qdisc del dev {self.port} root 2>/dev/null || true")
            self._on_host(f"tc qdisc del dev {self.end} root 2>/dev/null || true")
        else:
            burst = max(int(bits_per_second(rate) / 8 / 250), 16384)
            shape = f"root tbf rate {rate} burst {burst} latency 50ms"
            self._on_switch(f"tc qdisc replace dev {self.port} {shape}")
            self._on_host(f"tc qdisc replace dev {self.end} {shape}")
        self._remember({"slow": rate})

    def trouble(self, **faults):
        """Changes the cable's faults: drop, duplicate, reorder (0 to 1), delay, jitter (ms), only (\"toward-host\" or
        \"from-host\"), seed."""
        state = self._remember(faults)
        wanted = any(state.get(key) for key in FAULTS)
        if wanted and not self.pid_file.exists():
            self._insert()
        self._stop()
        if wanted:
            self._start(state)
        else:
            self._remove()

    def mend(self):
        """Removes all faults."""
        self.trouble(**{key: None for key in FAULTS + ("only", "seed")})
        self.slow(None)
        self._on_switch(f"ip link set {self.port} up")
        self.file.unlink(missing_ok=True)

    # Inserts the relay between the host's port and a new pair of interfaces; the pair's other end replaces the port in the bridge.

    def _insert(self):
        inner, outer = f"w{self.host}r{self.rail}", f"b{self.host}r{self.rail}"
        self._on_host(f"ethtool -K {self.end} {NO_SEGMENTS}")
        self._on_switch(f"ip link del {inner} 2>/dev/null || true",
                        f"mtu=$(cat /sys/class/net/{self.port}/mtu)",
                        f"ip link add {inner} mtu $mtu type veth peer name {outer} mtu $mtu",
                        f"ethtool -K {outer} {NO_SEGMENTS}",
                        f"ip link set {self.port} nomaster",
                        f"ip link set {outer} master {self.bridge} up",
                        f"ip link set {inner} up")

    def _start(self, state):
        command = [places.programs() / "lab-wire", self.port, f"w{self.host}r{self.rail}", "--pid", self.pid_file]
        for key in FAULTS + ("seed",):
            if state.get(key):
                command += [f"--{key}", state[key]]
        if state.get("only"):
            command.append("--" + state["only"])
        self.lab.must(0, command)
        self.lab.wait_for_background(self.pid_file)

    def _stop(self):
        if self.pid_file.exists():
            self.lab.run(0, ["kill", self.pid_file.read_text().strip()])
            self.pid_file.unlink()

    def _remove(self):
        inner = f"w{self.host}r{self.rail}"
        self._on_switch(f"[ ! -e /sys/class/net/{inner} ] || ip link del {inner}",
                        f"ip link set {self.port} master {self.bridge}")
        self._on_host(f"ethtool -K {self.end} {SEGMENTS}")

    def carries(self):
        """Returns whether the host's interface on this cable has a carrier."""
        shown = self.lab.run(self.host, ["cat", f"/sys/class/net/{self.end}/carrier"], stderr=subprocess.DEVNULL,
                             capture_output=False, stdout=subprocess.PIPE)
        return shown.stdout.strip() == "1"
