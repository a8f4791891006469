#!/usr/bin/env python3
"""Tests of the simulation: results that can be computed by hand must be exact."""
import math
import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HERE))
from model import costs as cost_sets  # noqa: E402
from model.costs import Costs  # noqa: E402
from model.engine import Link, Machine, Simulation, Worker, share_out  # noqa: E402
from model.start import spawn, start  # noqa: E402
from model.store import ADDRESS, HEAD, Store  # noqa: E402
from model.topology import Tree, runs  # noqa: E402


class Engine(unittest.TestCase):
    def test_equal_times_keep_their_order(self):
        simulation, seen = Simulation(), []
        for i in range(10):
            simulation.at(1.0, seen.append, i)
        simulation.at(0.5, seen.append, "first")
        self.assertEqual(simulation.run(), 1.0)
        self.assertEqual(seen, ["first", *range(10)])

    def test_cores_share_equal_tasks(self):
        for tasks, cores in ((1, 1), (7, 1), (7, 2), (8, 4), (9, 4), (3, 8)):
            simulation = Simulation()
            machine = Machine(simulation, cores)
            for _ in range(tasks):
                machine.run(2.0, lambda: None)
            self.assertAlmostEqual(simulation.run(), 2.0 * math.ceil(tasks / cores))
            self.assertAlmostEqual(machine.busy, 2.0 * tasks)

    def test_share_out_agrees_with_a_machine(self):
        costs, ready = [3, 1, 4, 1, 5, 9, 2, 6], [0, 0, 1, 2, 2, 7, 7, 30]
        for cores in (1, 2, 3, 8):
            simulation, ends = Simulation(), {}
            machine = Machine(simulation, cores)
            for i, cost in enumerate(costs):
                simulation.at(ready[i], machine.run, cost, lambda i=i: ends.setdefault(i, simulation.now))
            simulation.run()
            self.assertEqual(share_out(costs, cores, ready), [ends[i] for i in range(len(costs))])

    def test_a_worker_is_one_thread(self):
        simulation = Simulation()
        worker = Worker(Machine(simulation, 8))
        for _ in range(5):
            worker.run(1.0, lambda: None)
        self.assertAlmostEqual(simulation.run(), 5.0)

    def test_a_link_sends_bytes_one_after_the_other(self):
        simulation, arrivals = Simulation(), []
        link = Link(simulation, 1000.0, 0.25)
        for _ in range(3):
            link.send(500, lambda: arrivals.append(simulation.now))
        simulation.run()
        self.assertEqual(arrivals, [0.75, 1.25, 1.75])


class Topology(unittest.TestCase):
    def test_runs_cover_all_once_and_evenly(self):
        for count in (1, 2, 15, 16, 17, 1000):
            for parts in (1, 2, 16):
                pieces = runs(5, 5 + count, parts)
                self.assertEqual([h for first, end in pieces for h in range(first, end)], list(range(5, 5 + count)))
                lengths = [end - first for first, end in pieces]
                self.assertLessEqual(max(lengths) - min(lengths), 1)

    def test_every_host_has_one_parent_and_no_one_too_many_children(self):
        for hosts, fanout in ((1, 16), (2, 1), (17, 16), (64, 16), (64, 2), (1000, 7)):
            tree = Tree(hosts, fanout)
            children = [child for host in range(hosts) for child in tree.children[host]]
            self.assertEqual(sorted(children), list(range(1, hosts)))
            self.assertLessEqual(max(len(c) for c in tree.children), fanout)
            self.assertEqual(tree.end[0], hosts)

    def test_depth_is_logarithmic(self):
        for fanout in (2, 4, 16):
            for levels in (1, 2, 3):
                full = sum(fanout ** level for level in range(levels + 1))
                self.assertEqual(max(Tree(full, fanout).depth), levels)
                self.assertEqual(max(Tree(full + 1, fanout).depth), levels + 1)
        self.assertEqual(max(Tree(50, 1).depth), 49)

    def test_paths_pass_through_the_common_ancestor(self):
        tree = Tree(64, 4)
        for source in range(0, 64, 5):
            for target in range(0, 64, 7):
                path = tree.path(source, target)
                self.assertEqual((path[0], path[-1]), (source, target))
                self.assertEqual(len(path), len(set(path)))
                for a, b in zip(path, path[1:]):
                    self.assertTrue(tree.parent[a] == b or tree.parent[b] == a)


class Starting(unittest.TestCase):
    def test_zero_costs_take_no_time(self):
        for shared in (0, 2):
            times = start(Costs(), hosts=50, per_host=4, shared_cores=shared)
            self.assertEqual(times.ended, 0.0)
            self.assertGreater(times.events, 50)

    def test_one_host_starts_its_processes_one_after_the_other(self):
        costs = Costs(mpiexec=1.0, rank_start=0.5, rank_init=2.0, reap=0.25, rank_exit=3.0)
        times = start(costs, hosts=1, per_host=8, cores=64)
        self.assertAlmostEqual(times.daemons_up, 1.0)
        self.assertAlmostEqual(times.executed, 1.0 + 8 * 0.5)
        self.assertAlmostEqual(times.initialized, 1.0 + 8 * 0.5 + 2.0)
        self.assertAlmostEqual(times.ended, 1.0 + 8 * 0.5 + 2.0 + 3.0 + 8 * 0.25)

    def test_one_level_of_agents(self):
        # The root forks one agent (ssh) after the other; their logins overlap.
        costs = Costs(agent_fork=0.01, agent_wait=1.0)
        for hosts in (2, 5, 17):
            times = start(costs, hosts=hosts, per_host=1, fanout=16)
            self.assertAlmostEqual(times.daemons_up, 0.01 * (hosts - 1) + 1.0)

    def test_a_chain_takes_a_login_per_host(self):
        costs = Costs(agent_fork=0.1, agent_wait=1.0, agent_remote=0.2, node_start=0.3, handshake=0.05, rtt=0.02)
        times = start(costs, hosts=11, per_host=1, fanout=1)
        self.assertAlmostEqual(times.daemons_up, 10 * (0.1 + 1.0 + 0.2 + 0.3 + 0.05 + 2.5 * 0.02 + 0.05 + 0.01) -
                               0.01 + 10 * 0.01, places=9)

    def test_levels_of_a_full_tree_add_up(self):
        costs = Costs(agent_wait=1.0)
        for fanout in (2, 3, 8):
            for levels in (1, 2, 3):
                hosts = sum(fanout ** level for level in range(levels + 1))
                self.assertAlmostEqual(start(costs, hosts=hosts, per_host=1, fanout=fanout).daemons_up, levels)

    def test_an_agent_busy_on_its_host_waits_for_cores(self):
        costs = Costs(agent_local=1.0)
        self.assertAlmostEqual(start(costs, hosts=9, per_host=1, fanout=8, cores=2).daemons_up, 4.0)
        self.assertAlmostEqual(start(costs, hosts=9, per_host=1, fanout=2, shared_cores=2).daemons_up, 4.0)

    def test_the_order_is_sent_child_by_child(self):
        # In a tree of one level, the last child gets the bytes of the order after all others.
        costs = Costs(order_bytes=1000.0, bandwidth=1000.0, rtt=0.5)
        times = start(costs, hosts=5, per_host=1, fanout=4, standing=True)
        self.assertAlmostEqual(times.ordered, 4 * 1.0 + 0.25)

    def test_the_root_gets_one_report_per_branch(self):
        # The root gets three reports (processes have started, have arrived, have ended) from each of ten branches and from itself.
        costs = Costs(report=0.001)
        times = start(costs, hosts=101, per_host=1, fanout=10, standing=True)
        self.assertAlmostEqual(times.ended, 0.033)
        self.assertAlmostEqual(times.root_busy, 0.033)

    def test_a_late_host_does_not_delay_reports_for_long(self):
        # A chain of three hosts. Each gets its order a second after the host above it, and the last message arrives long after the others.
        costs = Costs(order_bytes=1000.0, bandwidth=1000.0, report=0.001)
        times = start(costs, hosts=3, per_host=1, fanout=1, standing=True)
        self.assertAlmostEqual(times.ordered, 2.0)
        # The reports arrive so far apart that the root gets each one separately, of each kind. The end waits for none of them again.
        self.assertAlmostEqual(times.root_busy, 0.001 * 3 * 3)
        self.assertAlmostEqual(times.known, 2.0 + 0.003)

    def test_shared_cores_do_all_work(self):
        costs = Costs(rank_start=0.01, rank_init=0.1)
        times = start(costs, hosts=8, per_host=4, shared_cores=2, standing=True)
        self.assertAlmostEqual(times.initialized, 32 * 0.11 / 2, delta=0.11)

    def test_a_separate_machine_equals_an_unshared_one(self):
        costs = Costs(rank_start=0.01, rank_init=0.1, segment=0.02)
        alone = start(costs, hosts=1, per_host=6, cores=64)
        shared = start(costs, hosts=1, per_host=6, shared_cores=64)
        self.assertAlmostEqual(alone.initialized, shared.initialized)
        self.assertAlmostEqual(alone.executed, shared.executed)

    def test_a_seed_fixes_a_run_and_another_changes_it(self):
        costs = Costs(agent_wait=1.0, agent_spread=0.3)
        results = [start(costs, hosts=100, per_host=1, seed=seed).daemons_up for seed in (1, 1, 2)]
        self.assertEqual(results[0], results[1])
        self.assertNotEqual(results[0], results[2])

    def test_more_hosts_never_start_sooner(self):
        costs = cost_sets.load()["cluster"].with_(agent_spread=0.0)
        for standing in (False, True):
            ends = [start(costs, hosts=hosts, per_host=8, standing=standing).known for hosts in (1, 2, 8, 32, 128, 512)]
            self.assertEqual(ends, sorted(ends))

    def test_spawn_is_no_faster_than_its_parts(self):
        costs = Costs(rank_start=0.001, rank_init=0.01, frame=1e-5, rtt=1e-4, report_bytes=100.0)
        few, many = spawn(costs, 8, 8, 8), spawn(costs, 64, 8, 8)
        self.assertGreater(few, 0.011)
        self.assertAlmostEqual(many - few, 7 * 0.001)
        self.assertGreater(spawn(costs, 64, 8, 1000), many)


class Finding(unittest.TestCase):
    COSTS = Costs(frame=0.001, rtt=0.01)

    def test_one_fetch_takes_both_ways(self):
        outcome = Store(self.COSTS, 2, 4).neighbours()
        self.assertEqual(outcome.frames, 4)  # each of the two hosts asks the other
        self.assertAlmostEqual(outcome.seconds, 2 * (0.005 + 0.002))

    def test_siblings_meet_at_their_parent(self):
        store = Store(self.COSTS, 5, 1, fanout=4)
        store.fetch(1, 2)
        outcome = store.finish()
        self.assertEqual(outcome.frames, 4)
        self.assertAlmostEqual(outcome.seconds, 4 * (0.005 + 0.002))

    def test_a_host_requests_each_other_host_once(self):
        outcome = Store(self.COSTS, 3, 1000, fanout=2).on_demand(10)
        # The root and each child ask each other: 4 requests of 2 frames. Each child asks the other one through the root: 2 of 4 frames.
        self.assertEqual(outcome.frames, 4 * 2 + 2 * 4)

    def test_all_gather_moves_every_address_up_once_and_down_to_all(self):
        costs = Costs(byte=1e-6)
        outcome = Store(costs, 5, 8, fanout=4).all_gather()
        self.assertEqual(outcome.frames, 8)
        up, down = HEAD + ADDRESS * 8, HEAD + ADDRESS * 40
        self.assertAlmostEqual(outcome.root_seconds, 4 * (up + down) * 1e-6)

    def test_few_addresses_are_fetched_singly(self):
        few = Store(self.COSTS, 5, 1, fanout=4).as_built(3)
        self.assertEqual(few.frames, Store(self.COSTS, 5, 1, fanout=4).on_demand(3).frames)

    def test_many_addresses_take_few_frames_per_connection(self):
        hosts = 64
        built = Store(self.COSTS, hosts, 64, fanout=4).as_built(5)
        alone = Store(self.COSTS, hosts, 64, fanout=4).on_demand(5)
        # The order to report, the reports and the table take three frames per edge. The first request and some more take four. Each of the
        # four fetches of a host travels at most twice the depth down and up.
        self.assertLess(built.frames, 63 * 3 + 63 * 4 + hosts * 4 * 2 * 6)
        self.assertLess(built.seconds, alone.seconds)

    def test_a_single_host_fetches_nothing(self):
        for outcome in (Store(self.COSTS, 1, 8).all_gather(), Store(self.COSTS, 1, 8).on_demand(3),
                        Store(self.COSTS, 1, 8).as_built(3)):
            self.assertEqual((outcome.seconds, outcome.frames), (0.0, 0))


class Numbers(unittest.TestCase):
    def test_measured_points_are_read(self):
        import importlib.machinery
        run = importlib.machinery.SourceFileLoader("run", str(HERE / "run")).load_module()
        keys = ("first_allreduce_ms", "allreduce_ms", "ring_ms", "exchange_ms", "command_ms", "init_ms")
        job = {key: [0.5, 1.0] for key in keys}
        points = run.points_of({"4x16": job, "64x16": "did not end", "16x1": job})
        self.assertEqual(points, {"64": {"whole_ms": 1.0, "job_ms": 4.0, "init_ms": 0.5}})

    def test_every_cost_has_a_value_and_a_source(self):
        import dataclasses
        import json
        sets = json.loads(cost_sets.FILE.read_text(encoding="utf-8"))["sets"]
        names = {field.name for field in dataclasses.fields(Costs)}
        given = set()
        for costs in sets.values():
            for name, cost in costs["costs"].items():
                self.assertIn(name, names)
                self.assertGreaterEqual(cost["value"], 0)
                self.assertTrue(cost["source"], name)
                given.add(name)
        self.assertEqual(given, names)


if __name__ == "__main__":
    unittest.main()
