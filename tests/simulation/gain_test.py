#!/usr/bin/env python3
"""Tests on the virtual clock what a plan saves in a program whose partners change: time at the prices of 2006, but not at equal prices of all
paths, where a slow base path would pass for a gain. The clock is deterministic, so equal builds print equal times."""
import argparse
import json
import os
import subprocess
import sys
import unittest

OPTIONS = None
RANKS = 16
# Four kinds of phases, three cycles, two partners, 2,000 messages of 1 KB in a phase, seed 1, four messages at a time.
PHASES = ["4", "3", "2", "2000", "1024", "mark", "1", "4"]


def run(costs, plan):
    """Returns the seconds of a run, and its share of messages through rings."""
    command = [OPTIONS.simulate, "--program", "phases", "-n", str(RANKS), "--costs", os.path.join(OPTIONS.costs, costs + ".json")]
    for setting in ("MAX_DIRECT=4", "MAX_CONNECTIONS=4096", "WAIT=poll", "MULTICAST=off", f"PLAN={plan}"):
        command += ["-x", "STARLING_" + setting]
    done = subprocess.run([*command, "--", *PHASES], capture_output=True, text=True, timeout=240)
    if done.returncode:
        raise AssertionError(done.stdout + done.stderr)
    lines = done.stdout.splitlines()
    seconds = json.loads(next(line for line in lines if line.startswith("{")))["seconds"]
    words = next(line for line in lines if "messages by path" in line).split()
    return seconds, float(words[words.index("ring") + 1])


def saved(costs):
    """Returns the percentage of the time of static rings that learned ones save, and both shares."""
    static, learned = run(costs, "static"), run(costs, "learn")
    return 100 * (1 - learned[0] / static[0]), static[1], learned[1]


class Gain(unittest.TestCase):
    def test_a_learned_plan_saves_much_where_rings_cost_half(self):
        gain, static, learned = saved("infiniband-2006")
        print(f"2006: {gain:.1f} % less time; {static:.0f} and {learned:.0f} % of the messages through rings")
        self.assertGreater(gain, OPTIONS.least)
        self.assertGreater(learned, 80)

    def test_little_is_left_where_rings_cost_as_much_as_datagrams(self):
        gain = saved("equal-paths")[0]
        print(f"equal prices: {gain:.1f} % less time")
        self.assertTrue(-20 < gain < 5, gain)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--simulate", required=True)
    parser.add_argument("--costs", required=True)
    parser.add_argument("--least", type=float, default=5, help="least gain at the prices of 2006, percent")
    OPTIONS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)
