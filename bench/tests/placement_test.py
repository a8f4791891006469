#!/usr/bin/env python3
"""Tests of placement classes: which values belong together, which are dropped, which are compared and which are still missing;
all with made-up figures."""
import os
import random
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from runner import report, scheduling
from runner.classes import ANYWHERE, Row, agree, by_class, classes_of
from runner.placement import TRIES, Judge, Looker
from runner.stage import Command, Stage

NEAR, COMMON, FAR = 24.0, 50.0, 210.0


def looks(*values):
    return [value * factor for value in values for factor in (0.96, 1.0, 1.04)]


class Classes(unittest.TestCase):
    def test_each_placement_that_recurs_is_a_class(self):
        found = classes_of(looks(FAR, NEAR, COMMON))
        self.assertEqual([one.name for one in found], ["24 ns", "50 ns", "210 ns"])
        self.assertTrue(found[1].holds(53) and not found[1].holds(100) and not found[1].holds(0))

    def test_one_placement_is_one_class_despite_variation(self):
        self.assertEqual(len(classes_of([45, 50, 55, 60, 48, 52])), 1)
        self.assertEqual(classes_of([0.0, 0.0]), [])

    def test_rare_placements_between_two_classes_do_not_join_them(self):
        random.seed(1)
        wavering = [random.gauss(COMMON, 2) for _ in range(1000)] + [random.gauss(FAR, 8) for _ in range(1000)]
        on_the_way = [60 * 1.1 ** step for step in range(13)]  # rare placements that form a chain from one class to the other
        self.assertEqual(len(classes_of(wavering + on_the_way)), 2)

    def test_agreement_is_by_ratio_and_needs_both(self):
        self.assertTrue(agree(50, 60) and agree(60, 50))
        self.assertFalse(agree(50, 70) or agree(70, 50) or agree(0, 50) or agree(0, 0))


class Dropping(unittest.TestCase):
    def test_turn_is_kept_while_the_cores_stay(self):
        judge = Judge(2)
        self.assertEqual([judge.decide(50, 51), judge.decide(51, 49)], [(51, True), (49, False)])
        self.assertEqual((judge.kept, judge.dropped), (2, 0))

    def test_turn_is_taken_again_when_they_have_moved(self):
        judge = Judge(1)
        self.assertEqual(judge.decide(50, 210), (0.0, True))
        self.assertEqual(judge.decide(210, 210), (210, False))  # the second try begins and ends at the placement at which the first ended
        self.assertEqual((judge.kept, judge.dropped), (1, 1))

    def test_tries_are_limited(self):
        judge = Judge(2)
        answers = [judge.decide(50, 210)[1] for _ in range(TRIES + 2)]
        self.assertEqual(answers, [True] * (TRIES + 1) + [False])

    def test_a_failed_measurement_of_the_placement_keeps_no_value(self):
        self.assertEqual(Judge(1).decide(0.0, 50), (0.0, True))
        self.assertEqual(Judge(1).decide(50, 0.0), (0.0, True))

    def test_dropped_values_and_strays_are_in_no_class(self):
        classes = classes_of(looks(COMMON, FAR))
        found = by_class({"starling": [(1, 50), (2, 0.0), (3, 110), (4, 212), (5, None)]}, classes)
        self.assertEqual(found, {classes[0]: {"starling": [1]}, classes[1]: {"starling": [4]},
                                 ANYWHERE: {"starling": [5]}})


class Rows(unittest.TestCase):
    classes = classes_of(looks(NEAR, COMMON, FAR))

    def row(self, values, larger=False):
        return Row(values, self.classes, "starling", report.is_peer, larger, 0.15)

    def test_values_are_compared_only_within_a_class(self):
        # Over all repetitions the peer's median is better, but within each class of placements Starling's is.
        values = {"starling": [(1, 50), (1, 50), (4, 210), (4, 210), (4, 210)],
                  "peer": [(2, 50), (2, 50), (2, 50), (8, 210), (8, 210)]}
        row = self.row(values)
        case = {"larger_is_better": False}
        for cells in row.classes.values():
            self.assertEqual(report.ratio(case, {"values": cells}), 0.5)

    def test_chosen_class_has_most_values_of_both(self):
        values = {"starling": [(1, 50)] * 9 + [(4, 210)] * 3, "peer": [(2, 50)] + [(8, 210)] * 3}
        self.assertEqual(self.row(values).chosen().name, "210 ns")

    def test_best_peer_is_chosen_per_class(self):
        values = {"starling": [(1, 50), (4, 210)], "one": [(2, 50), (9, 210)], "two": [(3, 50), (8, 210)],
                  "limit": [(0.1, 50), (0.1, 210)]}
        for larger, expected in ((False, ["one", "two"]), (True, ["two", "one"])):
            row = self.row(values, larger)
            self.assertEqual([row.best_peer(one) for one in row.classes], expected)

    def test_differences_between_classes_are_not_noise(self):
        values = {"starling": [(1, 50), (4, 210)] * 3, "peer": [(2, 50), (8, 210)] * 3}
        self.assertEqual(self.row(values).missing(3, 2, values), set())

    def test_settled_needs_turns_of_both_and_some_of_the_others(self):
        values = {"starling": [(1, 50)] * 3, "best": [(2, 50)] * 2, "slow": [(9, 50)] * 2, "unseen": [(9, 210)] * 5}
        self.assertEqual(self.row(values).missing(3, 2, values), {"best", "unseen"})
        values["best"].append((2, 50))
        values["unseen"] += [(9, 50)] * 2
        self.assertEqual(self.row(values).missing(3, 2, values), set())

    def test_a_noisy_library_takes_another_turn(self):
        values = {"starling": [(1, 50), (1, 50), (3, 50)], "best": [(2, 50)] * 3, "slow": [(9, 50), (20, 50), (40, 50)]}
        self.assertEqual(self.row(values).missing(3, 2, values), {"starling"})
        values["starling"] += [(1, 50), (1, 50)]
        self.assertEqual(self.row(values).missing(3, 2, values), set())


# Simulates a benchmark: two processes that ask the runner for their turn, and a report of the values that were kept.
PROGRAM = """
import os, socket, sys
def process(core, turns):
    runner = socket.socket(socket.AF_UNIX)
    runner.connect(os.environ["BENCH_PLACEMENT"])
    def ask():
        runner.sendall(f"2 {core}\\n".encode())
        placement, word = runner.recv(64).decode().split()
        return float(placement), word == "again"
    ask()
    for size in (8, 64):
        again = True
        while again:
            open(sys.argv[1], "a").write(f"{core} {sys.argv[2]} {size}\\n")
            placement, again = ask()
            if placement:
                turns.setdefault(size, []).append([size + 0.5, placement])
other, turns = os.fork(), {}
process(int(other > 0), turns)
if other:
    os.waitpid(other, 0)
    print('{"benchmark": "x", "unit": "us", "rows": [' + ", ".join(
        '{"what": "", "size": %d, "value": 1, "turns": %s}' % (size, turns.get(size, [])) for size in (8, 64)) + "]}")
"""


class Stages(unittest.TestCase):
    """Scripts replace limits (each call returns the next of the placements) and the libraries' commands."""

    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.log = Path(self.directory.name, "log")

    def looker(self, *placements):
        script, state = Path(self.directory.name, "limits"), Path(self.directory.name, "state")
        state.write_text("\n".join(map(str, placements)) + "\n", encoding="utf-8")
        row = '{"rows": [{"what": "", "size": 0, "value": %s}]}'
        script.write_text(f"#!/bin/sh\n[ $1 = busy ] && exec sleep 60\necho '{row}' | sed s/%s/$(head -1 {state})/\n"
                          f"[ $(wc -l <{state}) = 1 ] || sed -i 1d {state}\n", encoding="utf-8")
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        return Looker(script, cores=[0, 1])

    def command(self, name):
        return Command([sys.executable, "-c", PROGRAM, str(self.log), name], {})

    def test_libraries_take_turns_value_by_value(self):
        commands = {name: self.command(name) for name in ("one", "two")}
        runs = Stage(self.looker(50), commands, 2, 200).run()
        for run in runs.values():
            self.assertEqual([row[:3] + row[4:] for row in run.rows], [("", 8, 8.5, 50)] * 2 + [("", 64, 64.5, 50)] * 2)
            self.assertEqual((run.dropped, run.shared), (0, 0))
        order = [line[2:] for line in self.log.read_text(encoding="utf-8").splitlines() if line[0] == "0"]
        self.assertEqual(order, ["one 8", "two 8"] * 2 + ["one 64", "two 64"] * 2)

    def test_turn_is_taken_again_by_all_processes(self):
        # Placements that the runner measures: before the start, before the first turn, and after each turn.
        run = Stage(self.looker(50, 50, 210, 212), {"one": self.command("one")}, 1, 200).run()["one"]
        self.assertEqual([row[:3] + row[4:] for row in run.rows], [("", 8, 8.5, 212), ("", 64, 64.5, 212)])
        self.assertEqual(run.dropped, 1)
        turns = self.log.read_text(encoding="utf-8").split("\n")
        self.assertEqual((turns.count("0 one 8"), turns.count("1 one 8"), turns.count("0 one 64")), (2, 2, 1))

    def test_placement_of_a_command_that_does_not_ask_is_measured_around_it(self):
        line = '{"benchmark": "x", "unit": "us", "rows": [{"what": "", "size": 8, "value": 1}]}'
        for placements, expected in (((50, 52), (52, 0)), ((50, 210), (0.0, 1))):
            run = Stage(self.looker(*placements), {"one": Command(["echo", line], {})}, 4, 200).run()["one"]
            self.assertEqual((run.rows[0].placement, run.dropped), expected)

    def test_a_hanging_command_is_ended_and_the_others_continue(self):
        commands = {"hangs": Command(["sleep", "60"], {}), "one": self.command("one")}
        runs = Stage(self.looker(50), commands, 1, 10).run()
        self.assertEqual((runs["hangs"].status, runs["one"].status), ("hang", "ok"))

    def test_strangers_end_with_the_commands(self):
        stage = Stage(self.looker(50), {"one": self.command("one")}, 1, 200, strangers=2)
        self.assertEqual(stage.run()["one"].status, "ok")
        self.assertEqual([loop.returncode for loop in stage.loops], [-signal.SIGKILL] * 2)

    def ordinary_ones(self, real_time, **arguments):
        """Runs one command of two processes beside two strangers. Returns the stage and the processes that were made ordinary ones."""
        with mock.patch.object(scheduling, "is_real_time", return_value=real_time), \
                mock.patch.object(scheduling, "make_ordinary") as make_ordinary:
            stage = Stage(self.looker(50), {"one": self.command("one")}, 1, 200, strangers=2, **arguments)
            self.assertEqual(stage.run()["one"].status, "ok")
        return stage, {call.args[0] for call in make_ordinary.call_args_list}

    def test_processes_and_strangers_are_made_ordinary_in_a_real_time_run(self):
        stage, made = self.ordinary_ones(True, ordinary=True)
        self.assertLess({loop.pid for loop in stage.loops}, made)
        self.assertEqual(len(made), 4)

    def test_processes_of_other_cases_and_other_runs_keep_their_class(self):
        self.assertEqual(self.ordinary_ones(True)[1], set())
        self.assertEqual(self.ordinary_ones(False, ordinary=True)[1], set())


class Scheduling(unittest.TestCase):
    def test_every_thread_gets_the_ordinary_class(self):
        done = threading.Event()
        thread = threading.Thread(target=done.wait)
        thread.start()
        threads = set(map(int, os.listdir("/proc/self/task")))
        with mock.patch("os.sched_setscheduler") as set_class, mock.patch("os.setpriority"), mock.patch.object(scheduling, "open",
                                                                                                              create=True):
            scheduling.make_ordinary(os.getpid())
        done.set()
        thread.join()
        self.assertGreater(len(threads), 1)
        self.assertEqual({call.args[0] for call in set_class.call_args_list}, threads)
        self.assertEqual({call.args[1] for call in set_class.call_args_list}, {os.SCHED_OTHER})

    def test_a_process_that_has_ended_is_left_alone(self):
        child = subprocess.Popen(["true"])
        child.wait()
        scheduling.make_ordinary(child.pid)

    def test_the_other_end_of_a_socket_is_known(self):
        ends = socket.socketpair()
        self.assertEqual(scheduling.pid_of(ends[0]), os.getpid())
        for end in ends:
            end.close()


if __name__ == "__main__":
    unittest.main()
