#!/usr/bin/env python3
"""Tests `simulate --program`: equal runs are equal, cheap paths shorten runs, and errors are sentences."""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

OPTIONS = None
LATENCY = ["-m", "8:8", "-t", "0.0005", "-b", "1", "--json"]
PHASES = ["4", "3", "2", "200", "800"]


def simulate(program, ranks, *arguments, costs=None, options=()):
    command = [OPTIONS.simulate, "--program", program, "-n", str(ranks)]
    command += ["--costs", costs or os.path.join(OPTIONS.costs, "example.json"), *options, "--", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=240)


def settings(**variables):
    return [word for name, value in variables.items() for word in ("-x", f"STARLING_{name}={value}")]


def without_real_time(text):
    return re.sub(r"[\d.]+ real s \([\d.]+ per virtual second\)", "", text)


def seconds_of_phases(run):
    return json.loads(run.stdout.splitlines()[0])["seconds"]


class Programs(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()

    def tearDown(self):
        self.folder.cleanup()

    def changed_costs(self, like="example.json", **sections):
        """Returns a cost file like another one, with other values: changed_costs(ud={"post": 1})."""
        with open(os.path.join(OPTIONS.costs, like)) as file:
            costs = json.load(file)
        for section, figures in sections.items():
            if figures is None:
                costs[section] = None
            for key, value in (figures or {}).items():
                costs[section][key]["value"] = value
        path = os.path.join(self.folder.name, f"costs-{len(os.listdir(self.folder.name))}.json")
        with open(path, "w") as file:
            json.dump(costs, file)
        return path

    def ran(self, run):
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        return run

    def test_two_equal_runs_print_the_same_times_and_hash(self):
        first = self.ran(simulate("phases", 6, *PHASES, options=["--per-host", "2"]))
        second = self.ran(simulate("phases", 6, *PHASES, options=["--per-host", "2"]))
        self.assertEqual(without_real_time(first.stdout), without_real_time(second.stdout))
        self.assertIn("hash ", first.stdout)

    def test_a_learned_plan_beats_static_connections_when_rings_are_cheap(self):
        limits = settings(MAX_CONNECTIONS=2, MAX_DIRECT=2, CONNECT_MESSAGES=8, WAIT="poll", MULTICAST="off")
        static, learned = (
            self.ran(simulate("phases", 8, *PHASES, options=[*limits, *settings(PLAN=plan)])) for plan in ("static", "learn")
        )
        self.assertLess(seconds_of_phases(learned), seconds_of_phases(static))

    def test_the_price_of_datagrams_determines_the_time_without_connections(self):
        options = settings(MAX_CONNECTIONS=0, WAIT="poll", MULTICAST="off")
        cheap = self.changed_costs(ud={"post": 100, "receive": 100, "latency": 1000})
        first = self.ran(simulate("phases", 4, *PHASES, options=options))
        second = self.ran(simulate("phases", 4, *PHASES, options=options, costs=cheap))
        self.assertLess(2 * seconds_of_phases(second), seconds_of_phases(first))

    def test_every_mpi_function_has_its_price(self):
        options = settings(MAX_CONNECTIONS=0, WAIT="poll", MULTICAST="off")
        dear = self.changed_costs(processor={"mpi_call": 100000})
        first = self.ran(simulate("phases", 2, "1", "1", "1", "160", "8", options=options))
        second = self.ran(simulate("phases", 2, "1", "1", "1", "160", "8", options=options, costs=dear))
        # 160 MPI_Isend and as many MPI_Irecv, 10 MPI_Waitall, MPI_Allreduce.
        added = seconds_of_phases(second) - seconds_of_phases(first)
        self.assertGreater(added, 330 * 99e-6)
        self.assertLess(added, 400 * 100e-6)

    def test_each_ring_makes_polls_dearer(self):
        options = settings(CONNECT_MESSAGES=8, WAIT="poll", MULTICAST="off")
        latencies = []
        for poll in (0, 2000):
            costs = self.changed_costs(ring={"poll": poll})
            run = self.ran(simulate("latency", 2, *LATENCY, options=options, costs=costs))
            latencies.append(json.loads(run.stdout.splitlines()[0])["rows"][0]["value"])
        self.assertGreater(latencies[1], latencies[0] + 1)

    def test_a_message_to_many_waits_in_the_adapter_of_its_sender(self):
        options = settings(MAX_CONNECTIONS=0, WAIT="poll", MULTICAST="off")
        slow = self.changed_costs(adapter={"bytes_per_ns": 0.1})
        fast = self.ran(simulate("phases", 4, *PHASES, options=options))
        queued = self.ran(simulate("phases", 4, *PHASES, options=options, costs=slow))
        bytes_sent = 12 * 200 * 800
        self.assertGreater(seconds_of_phases(queued), bytes_sent / 0.1 * 1e-9)
        self.assertGreater(seconds_of_phases(queued), 2 * seconds_of_phases(fast))

    def phase_ms(self, costs, rings):
        """Returns the median phase of four processes in a circle, none of which receives from the one that it sends to."""
        options = settings(MAX_DIRECT=rings, MAX_CONNECTIONS=64, PLAN="static", WAIT="poll", MULTICAST="off")
        run = self.ran(simulate("phases", 4, "1", "6", "1", "320", "800", "mark", "1", "4", options=options, costs=costs))
        return json.loads(run.stdout.splitlines()[0])["phase_ms"]

    def test_rings_that_cost_as_much_as_the_queue_take_as_long(self):
        with open(os.path.join(OPTIONS.costs, "infiniband-2026.json")) as file:
            queue = json.load(file)["rc"]
        ring = {"write": queue["post"]["value"], "receive": queue["receive"]["value"], "byte": queue["byte"]["value"], "poll": 0}
        equal = self.changed_costs("infiniband-2026.json", ring=ring)
        self.assertLess(self.phase_ms(equal, 64), 1.05 * self.phase_ms(equal, 0))

    def broadcast_us(self, costs, **variables):
        options = settings(MAX_CONNECTIONS=0, WAIT="poll", **variables)
        run = self.ran(simulate("broadcast", 16, "65536", "3", "1", options=options, costs=costs))
        return json.loads(run.stdout.splitlines()[0])["us"]

    def test_a_group_beats_trees_unless_encryption_is_dear(self):
        join = {"join": 100000, "udp_join": 100000}
        free = self.broadcast_us(self.changed_costs("infiniband-2026.json", groups={**join, "seal": 0, "byte": 0}), MULTICAST="lazy")
        costs = self.changed_costs("infiniband-2026.json", groups=join)
        for tree in ("binomial", "scatter_allgather"):
            self.assertLess(2 * free, self.broadcast_us(costs, MULTICAST="off", COLL_BCAST=tree))
        # 64 KB are 47 datagrams of 1,400 B.
        self.assertGreater(self.broadcast_us(costs, MULTICAST="lazy"), free + 47)

    def test_spawned_processes_count(self):
        report = os.path.join(self.folder.name, "report.json")
        self.ran(simulate("spawn", 2, "-k", "3", "-i", "1", "-x", "0", "-w", "1", "-o", "spawn", options=["--report", report]))
        with open(report) as file:
            self.assertEqual(json.load(file)["spawned"], 3)

    def counters_of(self, program, ranks, *arguments, **how):
        report = os.path.join(self.folder.name, "report.json")
        how["options"] = [*how.get("options", ()), "--report", report]
        self.ran(simulate(program, ranks, *arguments, **how))
        with open(report) as file:
            return json.load(file)["counters"]

    def test_a_plan_from_a_file_opens_its_connections(self):
        never = settings(DIRECT_THRESHOLD=1000000, CONNECT_MESSAGES=1000000, CONNECT_BYTES=1000000000)
        plan = {"starling_plan": 1, "application": "cycle", "size": 4, "from": [], "max_direct": 2, "max_connections": 2}
        peers = {str(rank): [[(rank + 1) % 4, 100], [(rank + 3) % 4, 100]] for rank in range(4)}
        plan["phases"] = [{"name": "a", "from": 1, "to": None, "peers": peers}]
        path = os.path.join(self.folder.name, "plan.json")
        with open(path, "w") as file:
            json.dump(plan, file)
        without = self.counters_of("cycle", 4, "3", "50", options=never)
        with_plan = self.counters_of("cycle", 4, "3", "50", options=[*never, "--plan", path])
        self.assertEqual(without["opened"], 0)
        self.assertGreaterEqual(with_plan["opened"], 4)
        other = simulate("cycle", 3, "3", "50", options=["--plan", path])
        self.assertEqual(other.returncode, 2)
        self.assertIn("is for 4 processes of cycle, and these are 3", other.stderr)

    def test_hosts_without_devices_use_udp(self):
        report = os.path.join(self.folder.name, "report.json")
        costs = self.changed_costs(ud=None, rc=None, ring=None, rdma=None)
        self.ran(simulate("phases", 4, *PHASES, costs=costs, options=["--report", report, *settings(MAX_CONNECTIONS=0)]))
        with open(report) as file:
            messages = json.load(file)["messages"]
        self.assertGreater(messages["udp"], 0)
        self.assertEqual(messages["ud"] + messages["rc"] + messages["ring"], 0)

    def test_ranks_of_one_host_use_shared_memory_and_share_its_cores(self):
        options = ["--hosts", "1"]
        many = self.ran(simulate("phases", 4, *PHASES, options=options))
        one_core = self.changed_costs(processor={"cores": 1})
        few = self.ran(simulate("phases", 4, *PHASES, options=options, costs=one_core))
        self.assertIn("shared_memory 100.0 %", many.stdout)
        self.assertLess(2 * seconds_of_phases(many), seconds_of_phases(few))

    def test_the_exit_code_of_a_rank_is_that_of_the_run(self):
        run = simulate("phases", 4, "0")
        self.assertEqual(run.returncode, 2)
        self.assertIn("ended with code 2", run.stderr)

    def test_a_wrong_command_line_is_explained(self):
        for options, text in (
            (["--program", "phases"], "--costs"),
            (["--program", "nothing", "--costs", "x"], "no program is named nothing in "),
            (["--program", "phases", "--costs", "/nowhere.json"], "/nowhere.json: No such file or directory"),
            (["--program", "phases", "--costs", "x", "-x", "NAME"], "-x NAME is not NAME=VALUE"),
            (["--program", "phases", "--costs", "x", "-n", "2", "--hosts", "3"], "--hosts 3 is more than the 2 ranks"),
        ):
            run = subprocess.run([OPTIONS.simulate, *options], capture_output=True, text=True, timeout=240)
            self.assertEqual(run.returncode, 2, run.stderr)
            self.assertIn(text, run.stdout + run.stderr)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulate", required=True)
    parser.add_argument("--costs", required=True, help="folder of the cost files")
    OPTIONS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
