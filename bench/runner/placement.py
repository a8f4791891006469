"""Measures the placement of the cores, and decides whether a value between two measurements counts."""
import json
import os
import subprocess

from .classes import agree

SECONDS = "0.005"  # for one measurement: hundreds of short batches, whose median counts
TRIES = 3  # maximum number of extra turns of a value if the cores move


class Looker:
    """Measures half a round trip of a cache line between two cores, with the program limits."""

    def __init__(self, limits, cores=None):
        self.limits, self.cores = limits, sorted(cores or os.sched_getaffinity(0))
        self.possible = limits is not None and len(self.cores) >= 2

    def pair(self, cores=()):
        """Returns two cores whose placement to measure for processes on `cores`: two of `cores` if possible, otherwise one of them and
        another core, otherwise any two."""
        return tuple((sorted(set(cores)) + [core for core in self.cores if core not in cores])[:2])

    def look(self, pair):
        """Measures and returns the placement of two cores, ns; 0 if it is unknown."""
        if not self.possible:
            return 0.0
        try:
            result = subprocess.run([str(self.limits), "placement", f"{pair[0]},{pair[1]}", SECONDS],
                                    capture_output=True, text=True, timeout=20)
            return float(json.loads(result.stdout)["rows"][0]["value"])
        except (OSError, ValueError, LookupError, subprocess.TimeoutExpired):
            return 0.0


class Judge:
    """Decides which measurements ("turns") of one value of one program count and are repeated."""

    def __init__(self, turns):
        self.left, self.tries = turns, turns + TRIES
        self.kept = self.dropped = 0

    def decide(self, before, after):
        """Judges a turn by the placements before and after it. Returns (the turn's placement or 0 if the cores have moved, whether to
        repeat the turn)."""
        stayed = agree(before, after)
        self.tries -= 1
        self.left -= stayed
        self.kept += stayed
        self.dropped += not stayed
        return after if stayed else 0.0, self.left > 0 and self.tries > 0
