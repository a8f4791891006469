"""Where the cores are: a look at it, and what a value is worth between two looks."""
import json
import os
import subprocess

from .classes import agree

SECONDS = "0.005"  # for one look: hundreds of short batches, whose median counts
TRIES = 3  # how many turns of a value more than wanted are taken, if the cores move


class Looker:
    """Measures half a round trip of a cache line between two cores, with the program limits."""

    def __init__(self, limits, cores=None):
        self.limits, self.cores = limits, sorted(cores or os.sched_getaffinity(0))
        self.possible = limits is not None and len(self.cores) >= 2

    def pair(self, cores=()):
        """The cores to look at for processes that run on these: two of them, or one and another one, or any two."""
        return tuple((sorted(set(cores)) + [core for core in self.cores if core not in cores])[:2])

    def look(self, pair):
        """In ns; 0: not known."""
        if not self.possible:
            return 0.0
        try:
            result = subprocess.run([str(self.limits), "placement", f"{pair[0]},{pair[1]}", SECONDS],
                                    capture_output=True, text=True, timeout=20)
            return float(json.loads(result.stdout)["rows"][0]["value"])
        except (OSError, ValueError, LookupError, subprocess.TimeoutExpired):
            return 0.0


class Judge:
    """Decides on the turns of one value of one program."""

    def __init__(self, turns):
        self.left, self.tries = turns, turns + TRIES
        self.kept = self.dropped = 0

    def decide(self, before, after):
        """(the turn's placement, 0 if the cores have moved meanwhile; whether to take another one)"""
        stayed = agree(before, after)
        self.tries -= 1
        self.left -= stayed
        self.kept += stayed
        self.dropped += not stayed
        return after if stayed else 0.0, self.left > 0 and self.tries > 0
