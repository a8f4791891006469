"""Attacks, as another user of the host, all objects of the victim that it finds listed. Prints its successes in words that `run` counts.

    intruder.py doors SEED          sends garbage to every Unix socket
    intruder.py ports SEED PORT...  UDP and TCP ports of this host
    intruder.py groups SEED         every multicast group of this host: receives, replays, alters and forges datagrams
    intruder.py squat UID NAME...   holds these abstract names, with full queues, until it is killed
    intruder.py forge SEED MPIEXEC  exposes memory that looks like a job's, until it is killed
"""
import os
import random
import re
import socket
import struct
import subprocess
import sys
import time

MINE = 0x5a


def unix_sockets():
    with open("/proc/net/unix") as f:
        names = [line.split()[7] for line in f.readlines()[1:] if len(line.split()) > 7]
    return sorted({name for name in names if "starling" in name})


def garbage(draw):
    return draw.choice([draw.randbytes(draw.choice([1, 7, 64, 1400])), bytes(64), b"\xff" * 300, b"STRL" + bytes(200)])


def talk(family, kind, address, draw):
    """Sends garbage. Returns whether a reply arrived."""
    with socket.socket(family, kind) as s:
        s.settimeout(0.1)
        try:
            s.connect(address)
            for _ in range(3):
                s.send(garbage(draw))
            return len(s.recv(100)) > 0
        except OSError:
            return False


def doors(draw):
    answered = 0
    for name in unix_sockets():
        address = "\0" + name[1:] if name[0] == "@" else name
        for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET, socket.SOCK_DGRAM):
            answered += sum(talk(socket.AF_UNIX, kind, address, draw) for _ in range(4))
    print("answered", answered)


def ports(draw, numbers):
    answered = 0
    for port in numbers:
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
            answered += sum(talk(socket.AF_INET, kind, ("127.0.0.1", port), draw) for _ in range(8))
    print("answered", answered)


def member_of():
    with open("/proc/net/igmp") as f:
        words = [re.match(r"\s+([0-9A-F]{8})\s", line) for line in f]
    found = {socket.inet_ntoa(struct.pack("<I", int(word[1], 16))) for word in words if word}
    return sorted(address for address in found if address.startswith("239."))


def groups(draw):
    """The victim repeatedly sends one fixed double."""
    port, plain = int(os.environ.get("STARLING_MULTICAST_PORT", "29573")), struct.pack("<d", 1.0) * 8
    ear, heard, read = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), 0, 0
    ear.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    ear.bind(("", port))
    ear.settimeout(0.2)
    known = member_of()
    for group in known:
        for mine in ("127.0.0.1", "0.0.0.0"):
            try:
                ear.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(group) + socket.inet_aton(mine))
            except OSError:
                pass
    ear.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("127.0.0.1"))
    start = time.monotonic()
    while known and time.monotonic() < start + (1.5 if heard else 200):
        try:
            data = ear.recv(65536)
        except socket.timeout:
            continue
        if data[8:] == bytes([MINE]) * len(data[8:]):
            continue
        heard += 1
        read += plain in data
        at = draw.randrange(len(data))
        late = struct.pack("<HBBHHQIIIIQQQ", 0x4d53, 2, 2, 0, 0, 1 << 63, 9, 9, 0, 64, 0, 0, 0)
        huge = struct.pack("<HBBHHQIIIIQQQ", 0x4d53, 2, 1, 0, 0, 50, 9, 0, 0, 64, 5, 5, 1 << 40) + bytes(40)
        for forged in (data, data[:at] + bytes([data[at] ^ 1]) + data[at + 1:], data[:8] + late, data[:8] + huge, data[:at]):
            try:
                ear.sendto(forged, (draw.choice(known), port))
            except OSError:
                pass
        if heard > 300:
            break
    print("groups", len(known), "heard", heard, "read", read)


def squat(names):
    kept = []
    for name in names:
        ear = socket.socket(socket.AF_UNIX)
        kept.append(ear)
        try:
            ear.bind("\0" + name)
        except OSError:
            continue
        ear.listen(0)
        try:
            while True:
                one = socket.socket(socket.AF_UNIX)
                one.setblocking(False)
                one.connect("\0" + name)
                kept.append(one)
        except BlockingIOError:
            pass
    print("ready", flush=True)
    time.sleep(1000)


def forge(draw, mpiexec):
    own = subprocess.Popen([mpiexec, "-n", "1", "sleep", "1000"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    image = None
    while image is None and own.poll() is None:
        for fd in os.listdir(f"/proc/{own.pid}/fd"):
            path = f"/proc/{own.pid}/fd/{fd}"
            try:
                if os.readlink(path).startswith("/memfd:starling-job") and os.stat(path).st_size > 0:
                    with open(path, "rb") as file:
                        image = file.read(64 << 10)
            except OSError:  # the victim may have closed the descriptor meanwhile
                continue
    own.kill()
    own.wait()
    image = struct.pack("<Q", 0x31676e696c726174) + image[8:]
    kept = []
    for i in range(40):
        fd = os.memfd_create("starling-job", os.MFD_ALLOW_SEALING)
        text = bytearray(image)
        for _ in range(draw.randrange(1, 4)):
            word = draw.choice([0, 1, 0xffffffff, 1 << 28, draw.getrandbits(64)])
            at = draw.choice([draw.randrange(12, 500), draw.randrange(4096, 5000)])
            struct.pack_into("<Q", text, at, word)
        text[312:340] = b"\x1b]0;owned\x07\x1b[31mred" + bytes(9)
        os.ftruncate(fd, draw.choice([len(text), 40 << 20, 1 << 36]))
        os.pwrite(fd, bytes(text), 0)
        if i % 2:
            import fcntl
            fcntl.fcntl(fd, 1033, 2)  # F_ADD_SEALS, F_SEAL_SHRINK
        kept.append(fd)
    name = socket.socket(socket.AF_UNIX)
    name.bind(f"\0starling-0-{os.getpid()}-x")
    print("ready", flush=True)
    time.sleep(1000)


def main():
    what, words = sys.argv[1], sys.argv[2:]
    if what == "squat":
        return squat(words)
    draw = random.Random(int(words[0]))
    if what == "ports":
        return ports(draw, [int(word) for word in words[1:]])
    return {"doors": doors, "groups": groups, "forge": forge}[what](draw, *words[1:])


main()
