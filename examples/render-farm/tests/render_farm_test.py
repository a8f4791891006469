#!/usr/bin/env python3
"""Renders a scene with the farm and with one povray call and compares the pictures pixel by pixel.

Cases: plain; members (the workers are part of the job); killed (workers get SIGKILL at random times); grow_and_shrink.
"""
import argparse
import json
import os
import random
import re
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import zlib

SIZE = (160, 120)
TIMEOUT = 240


def unfilter(kind, line, before, step):
    """Undoes the filter of one row of a PNG in place."""
    for i in range(len(line)):
        left = line[i - step] if i >= step else 0
        up = before[i]
        corner = before[i - step] if i >= step else 0
        if kind == 1:
            line[i] = (line[i] + left) & 255
        elif kind == 2:
            line[i] = (line[i] + up) & 255
        elif kind == 3:
            line[i] = (line[i] + (left + up) // 2) & 255
        elif kind == 4:
            guess = left + up - corner
            nearest = min((abs(guess - left), 0, left), (abs(guess - up), 1, up), (abs(guess - corner), 2, corner))
            line[i] = (line[i] + nearest[2]) & 255
    return line


def read_png(path):
    """Returns (width, height, RGB bytes) of an 8-bit RGB PNG without interlace."""
    with open(path, "rb") as file:
        data = file.read()
    assert data[:8] == b"\x89PNG\r\n\x1a\n", f"{path} is not a PNG file"
    position, body, header = 8, b"", None
    while position < len(data):
        length, kind = struct.unpack(">I4s", data[position : position + 8])
        chunk = data[position + 8 : position + 8 + length]
        assert zlib.crc32(kind + chunk) == struct.unpack(">I", data[position + 8 + length :][:4])[0], kind
        if kind == b"IHDR":
            header = struct.unpack(">IIBBBBB", chunk)
        elif kind == b"IDAT":
            body += chunk
        position += 12 + length
    width, height, depth, color, _, _, interlace = header
    assert (depth, color, interlace) == (8, 2, 0), header
    rows, raw, step = [], zlib.decompress(body), 3
    before = bytearray(width * step)
    for y in range(height):
        start = y * (width * step + 1)
        line = bytearray(raw[start + 1 : start + 1 + width * step])
        before = unfilter(raw[start], line, before, step)
        rows.append(bytes(before))
    return width, height, b"".join(rows)


def render_with_povray(scene, directory):
    """Returns the picture that one call of POV-Ray renders, read from its PNG."""
    path = os.path.join(directory, "expected.png")
    command = ["povray", "+I" + scene, f"+W{SIZE[0]}", f"+H{SIZE[1]}", "+FN", "+O" + path, "-D", "-V", "-J", "-A"]
    result = subprocess.run(command, cwd=directory, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                            stderr=subprocess.PIPE, timeout=TIMEOUT)
    assert result.returncode == 0, result.stderr.decode(errors="replace")
    return read_png(path)


class Farm:
    """A run of the render farm that records the workers' pids as they report them."""

    def __init__(self, arguments, scene, directory, extra):
        self.picture = os.path.join(directory, "picture.png")
        self.report = os.path.join(directory, "report.json")
        launcher = arguments.mpiexec.split()
        if os.path.exists(launcher[0]):
            launcher[0] = os.path.abspath(launcher[0])
        ranks = "3" if arguments.case == "members" else "1"
        command = launcher + ["-n", ranks, os.path.abspath(arguments.render_farm), "--scene", scene, "--size",
                                               "%dx%d" % SIZE, "--output", self.picture, "--json", self.report,
                                               "--verbose"] + extra
        self.pids, self.log = [], []
        self.process = subprocess.Popen(command, cwd=directory, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True, start_new_session=True)
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            self.log.append(line)
            found = re.search(r"worker \d+ is process (\d+)", line)
            if found:
                self.pids.append(int(found.group(1)))

    def finish(self):
        try:
            code = self.process.wait(TIMEOUT)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            code = "timeout"
        self.reader.join(TIMEOUT)
        print("".join(self.log), end="")
        assert code == 0, f"mpiexec ended with {code}"
        with open(self.report, encoding="utf-8") as file:
            return json.load(file)


def kill_at_random(farm, seed, wanted):
    """Kills workers at random moments while the farm runs; returns how many it has killed."""
    dice = random.Random(seed)
    killed, tried = 0, set()
    while farm.process.poll() is None and killed < wanted:
        time.sleep(dice.uniform(0.2, 1.0))
        candidates = [pid for pid in list(farm.pids) if pid not in tried]
        if candidates:
            victim = dice.choice(candidates)
            tried.add(victim)
            try:
                os.kill(victim, signal.SIGKILL)
                killed += 1
                print(f"killed {victim}")
            except ProcessLookupError:
                pass
    return killed


def run_farm(arguments, directory, extra):
    """Returns the farm, the number of workers that were killed, and the farm's report."""
    for attempt in range(10):
        farm, killed = Farm(arguments, arguments.scene, directory, extra), 0
        if arguments.case == "killed":
            print(f"seed {arguments.seed + attempt}")
            killed = kill_at_random(farm, arguments.seed + attempt, wanted=4)
        report = farm.finish()
        # A worker may be killed after its last tile, when its death is not noticed any more. At least one kill must have been noticed.
        if arguments.case != "killed" or report["lost"] > 0:
            break
    return farm, killed, report


def is_running(pid):
    """Returns whether a process exists and is not a zombie."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--case", choices=["plain", "members", "killed", "grow_and_shrink"], required=True)
    parser.add_argument("--mpiexec", required=True)
    parser.add_argument("--render-farm", required=True)
    parser.add_argument("--scene", required=True)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    arguments = parser.parse_args()
    extra = {"plain": ["--workers", "2", "--tile", "48x40"], "members": ["--tile", "48x40"],
             "killed": ["--workers", "3", "--tile", "32x30"],
             "grow_and_shrink": ["--workers", "1", "--grow", "2", "--shrink", "2", "--tile", "32x30"]}[arguments.case]
    with tempfile.TemporaryDirectory() as directory:
        expected = render_with_povray(arguments.scene, directory)
        farm, killed, report = run_farm(arguments, directory, extra)
        picture = read_png(farm.picture)
    assert picture[:2] == expected[:2], f"size {picture[:2]} instead of {expected[:2]}"
    different = sum(picture[2][i : i + 3] != expected[2][i : i + 3] for i in range(0, len(expected[2]), 3))
    assert different == 0, f"{different} pixels differ"
    if arguments.case in ("plain", "members"):
        assert (report["spawned"], report["lost"], report["let_go"]) == (2, 0, 0), report
    elif arguments.case == "killed":
        assert killed >= 1 and report["lost"] >= 1, f"{killed} killed, {report}"
        assert report["spawned"] > 3, report
    else:
        assert (report["spawned"], report["lost"], report["let_go"]) == (3, 0, 2), report
    deadline = time.monotonic() + TIMEOUT
    while any(map(is_running, farm.pids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    left = [pid for pid in farm.pids if is_running(pid)]
    assert not left, f"workers left behind: {left}"
    print("the pictures are equal:", report)


if __name__ == "__main__":
    try:
        main()
    except AssertionError as problem:
        sys.exit(f"FAILED: {problem}")
