"""The multicast groups of a lab's switch: their members, the delay of joins, and the frames on each cable."""
import json
import re
import sys
import time

from . import places
from .places import Problem

# Sends a number of datagrams, given in hexadecimal, from an address to a group.
CAST = """
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(0, socket.IP_MULTICAST_IF, socket.inet_aton(sys.argv[1]))
for text in sys.argv[5:]:
    for _ in range(int(sys.argv[4])): s.sendto(bytes.fromhex(text), (sys.argv[2], int(sys.argv[3])))
"""


class Groups:
    def __init__(self, lab):
        self.lab = lab
        self.pid_file = lab.state / "manager.pid"

    def cast(self, host, group, port, data, count=1):
        """Sends `count` datagrams to a group from a host, member or not."""
        self.lab.must(host, [sys.executable, "-c", CAST, f"10.77.0.{host}", group, port, count, data.hex()])

    def cast_all(self, host, group, port, texts, count):
        """Sends several datagrams from one process: a running job would not wait for one process per datagram."""
        self.lab.must(host, [sys.executable, "-c", CAST, f"10.77.0.{host}", group, port, count, *[text.hex() for text in texts]])

    def snoop(self):
        """Waits until the switch forwards a group's frames only to its members. For about a second before, it floods all frames, and
        hosts that receive another's report suppress their own."""
        last, deadline = self.lab.size(), time.monotonic() + 240
        while time.monotonic() < deadline:
            before = self.frames()[last]["frames_toward"]
            self.cast(1, "239.77.0.1", 7001, b"x", 3)
            if self.frames()[last]["frames_toward"] == before:
                return
            time.sleep(0.1)
        raise Problem("the switch still floods groups; its IGMP snooping does not work")

    # While lab-manager runs, a firewall rule drops IGMP reports after lab-manager has read them, so that the bridges do not get them.

    def price(self, least, most, seed=1):
        """Delays each later join or leave by `least` to `most` milliseconds, like a subnet manager that programs the switches. Affects
        groups joined after this call."""
        self.free()
        self.lab.must(0, ["sh", "-ec", "nft add table bridge manager; "
                          "nft 'add chain bridge manager reports { type filter hook prerouting priority -300; }'; "
                          "nft add rule bridge manager reports ip protocol igmp drop"])
        self.lab.must(0, [places.programs() / "lab-manager", least, most, "--seed", seed, "--pid", self.pid_file])
        self.lab.wait_for_background(self.pid_file)

    def free(self):
        """Ends lab-manager, so that joins take effect at once again. The entries that it made in the bridges' tables stay."""
        if self.pid_file.exists():
            self.lab.run(0, ["kill", self.pid_file.read_text().strip()])
            self.pid_file.unlink()
            self.lab.must(0, ["nft", "delete", "table", "bridge", "manager"])

    def filter(self, host, wanted=True):
        """Drops the host's reports before the switch, so that the host receives nothing of a group."""
        word = "add rule netdev filter{0}" if wanted else "delete table netdev filter{0}"
        command = word.format(host)
        if wanted:
            command = (f"add table netdev filter{host}; add chain netdev filter{host} in "
                       f"{{ type filter hook ingress device h{host}r0 priority 0; }}; {command} in ip protocol igmp drop")
        self.lab.must(0, ["nft", command])

    def members(self, rail=0):
        """Returns {group: hosts whose ports receive it}."""
        shown = self.lab.must(0, ["bridge", "-j", "mdb", "show", "dev", f"bridge{rail}"])
        found = {}
        for entry in (json.loads(shown) or [{}])[0].get("mdb", []):
            port = re.fullmatch(r"[hb](\d+)r\d+", entry["port"])
            if port and entry["grp"].count(".") == 3:
                found.setdefault(entry["grp"], set()).add(int(port[1]))
        return found

    def frames(self, rail=0):
        """Returns for each host the frames and bytes that its bridge port has carried so far, from the host and toward it."""
        lines = self.lab.must(0, ["cat", "/proc/net/dev"]).splitlines()
        counted = {}
        for line in lines:
            port = re.match(rf"\s*h(\d+)r{rail}:\s*(.*)", line)
            if port:
                n = [int(word) for word in port[2].split()]
                counted[int(port[1])] = {"frames_from": n[1], "bytes_from": n[0], "frames_toward": n[9], "bytes_toward": n[8]}
        return counted
