#!/usr/bin/env python3
"""Tests how many processes a job without -n has, and that mpiexec sees the hosts of batch jobs. The agent pretends the hosts.

    count_test.py BUILD [TestClass[.test]]...
"""

import json
import os
import pathlib
import re
import unittest

from hosts_test import STARLING, HostsCase

MANAGERS = ("SLURM_", "PBS_", "LSB_", "PE_HOSTFILE", "COBALT_", "FLUX_")
SHOW = ("sh", "-c", "echo ${FAKE_HOST:-here}")


class CountCase(HostsCase):
    def setUp(self):
        super().setUp()
        for name in [name for name in self.environment if name.startswith(MANAGERS)]:
            del self.environment[name]

    def write(self, name, text):
        path = pathlib.Path(self.directory, name)
        path.write_text(text)
        return str(path)

    def where(self, *options, **variables):
        """Returns the host of each process, as one sorted word list."""
        code, out, err = self.mpiexec(*options, *SHOW, env=dict(self.environment, **variables))
        self.assertEqual((code, err), (0, ""), options)
        return " ".join(sorted(out.split()))

    def refused(self, part, *options, **variables):
        code, out, err = self.mpiexec(*options, *SHOW, env=dict(self.environment, **variables))
        self.assertNotEqual(code, 0)
        self.assertEqual((out, err.count("\n")), ("", 1), err)
        self.assertRegex(err, part)


class Counting(CountCase):
    def test_a_command_without_hosts_has_one_process(self):
        self.assertEqual(self.where(), "here")
        self.assertEqual(self.where("-ppn", 3), "here here here")
        self.assertEqual(self.where("-q", "-N", 2), "here here")

    def test_named_hosts_have_a_process_per_slot(self):
        self.assertEqual(self.where("--host", "a:2,b:1"), "a a b")
        self.assertEqual(self.where("--host", "a,b"), "a b")
        self.assertEqual(self.where("--host", "a,b,a"), "a a b")
        self.assertEqual(self.where("--host", "localhost:3"), "here here here")
        self.assertEqual(self.where("--host", "a:1,b:4", "-ppn", 2), "a a b b")
        self.assertEqual(self.where("--host", "a:3,b:3", "--map-by", "node"), "a a a b b b")
        self.assertEqual(self.where("--host", "a:2,b:2", "-n", 1), "a")

    def test_a_hostfile_has_a_process_per_slot(self):
        file = self.write("hosts", "a:2\nb slots = 1\nhead slots=0\n")
        self.assertEqual(self.where("--hostfile", file), "a a b")
        self.assertEqual(self.where("-f", file, "-ppn", 1), "a b")
        cores = len(os.sched_getaffinity(0))
        self.assertEqual(self.where("--hostfile", self.write("hosts", "localhost\n")), " ".join(["here"] * cores))

    def test_a_debugged_job_keeps_its_plan(self):
        plan = self.write("plan", json.dumps({"starling_plan": 1, "application": "echo", "size": 2, "phases": []}))
        for options in (("-n", 2), ("-ppn", 2), ()):
            code, out, err = self.mpiexec("--dry-run", "--debug", "--plan", plan, *options, "echo", env=self.environment)
            self.assertEqual((code, err), (0, ""), options)
            self.assertIn("ranks 0-1", out)

    def test_several_commands_share_the_slots(self):
        show = ("sh", "-c", "echo $0 $FAKE_HOST")
        code, out, err = self.mpiexec("--host", "a:2,b:2", "-n", 1, *show, "master", ":", "--host", "a:2,b:2", *show, "worker")
        self.assertEqual((code, err), (0, ""))
        self.assertEqual(sorted(out.splitlines()), ["master a", "worker a", "worker b", "worker b"])
        self.refused("several commands without -n .*host a; give", "--host", "a:2", "true", ":", "--host", "a:2")

    def test_standing_daemons_of_other_hosts(self):
        self.assertEqual(self.run_command(STARLING, "daemon", "start", "--host", "a:2,b:2")[0], 0)
        try:
            self.assertEqual(self.where("--host", "a:2,b:1"), "a a b")
            self.assertEqual(self.where("-ppn", 3), "a a a b b b")
            self.assertEqual(self.where(), "a a b b")
            self.assertEqual(self.where("-n", 1), "a")
            self.assertEqual(self.where("--via", "direct"), "here")
            code, out, err = self.mpiexec("-n", 1, *SHOW, ":", *SHOW)
            self.assertEqual((code, sorted(out.split()), err), (0, ["a", "a", "b", "b"], ""))
            code, out, err = self.mpiexec("-n", 1, "--host", "a:2", *SHOW, ":", *SHOW)
            self.assertEqual((code, sorted(out.split()), err), (0, ["a", "a"], ""))
            self.refused("several commands without -n would fill the slots of host a", "true", ":")
        finally:
            self.run_command(STARLING, "daemon", "stop")


class Allocations(CountCase):
    def test_slurm(self):
        job = {"SLURM_JOB_ID": "1", "SLURM_JOB_NODELIST": "n[1-2]", "SLURM_NTASKS": "3", "SLURM_TASKS_PER_NODE": "2,1"}
        self.assertEqual(self.where(**job), "n1 n1 n2")
        self.assertEqual(self.where("-ppn", 1, **job), "n1 n2")
        self.assertEqual(self.where("-n", 1, **job), "n1")
        self.assertEqual(self.where("--host", "x", **job), "x")
        self.assertEqual(self.where("--via", "direct", **job), "here")
        self.assertEqual(self.where(**dict(job, SLURM_JOB_NODELIST="localhost", SLURM_TASKS_PER_NODE="3")), "here here here")
        self.refused(r"Slurm job, and SLURM_JOB_NODELIST='n\[1-' is not understood; name the hosts with --host",
                     **dict(job, SLURM_JOB_NODELIST="n[1-"))
        self.refused("SLURM_TASKS_PER_NODE='two' is not understood", **dict(job, SLURM_TASKS_PER_NODE="two"))
        _, _, err = self.mpiexec("-v", "true", env=dict(self.environment, **job))
        self.assertIn("using the 2 hosts of this Slurm job", err)

    def test_pbs(self):
        job = {"PBS_JOBID": "7.server", "PBS_NODEFILE": self.write("nodes", "p1\np1\np2\n")}
        self.assertEqual(self.where(**job), "p1 p1 p2")
        self.assertEqual(self.where("-n", 2, "-ppn", 1, **job), "p1 p2")
        self.refused("PBS, and PBS_NODEFILE='/no/file' is not understood: cannot read .*No such file or directory; name the hosts", PBS_NODEFILE="/no/file")
        self.refused("PBS, .*line 2: 'p;2' is not the name of a host", PBS_NODEFILE=self.write("nodes", "p1\np;2\n"))
        self.refused("it names no host", PBS_NODEFILE=self.write("nodes", "\n"))
        self.refused(r"job of PBS \(PBS_JOBID is set\) without PBS_NODEFILE, so its hosts are unknown", PBS_JOBID="7.server")

    def test_lsf(self):
        self.assertEqual(self.where(LSB_JOBID="8", LSB_MCPU_HOSTS="l1 2 l2 1"), "l1 l1 l2")
        self.assertEqual(self.where(LSB_JOBID="8", LSB_HOSTS="l1 l2 l1"), "l1 l1 l2")
        self.assertEqual(self.where(LSB_JOBID="8", LSB_DJOB_HOSTFILE=self.write("nodes", "l1\nl2\nl2\n")), "l1 l2 l2")
        self.refused("LSB_MCPU_HOSTS='l1 two' is not understood: 'two' is not a number of slots", LSB_MCPU_HOSTS="l1 two")
        self.refused("without LSB_MCPU_HOSTS, LSB_HOSTS or LSB_DJOB_HOSTFILE", LSB_JOBID="8")

    def test_grid_engine(self):
        hosts = "s1 2 all.q@s1 UNDEFINED\ns2 1 all.q@s2 UNDEFINED\n"
        self.assertEqual(self.where(PE_HOSTFILE=self.write("pe", hosts)), "s1 s1 s2")
        self.refused("Grid Engine.*PE_HOSTFILE=.*line 1: '' is not a number of slots", PE_HOSTFILE=self.write("pe", "s1\n"))

    def test_cobalt(self):
        self.assertEqual(self.where(COBALT_JOBID="9", COBALT_NODEFILE=self.write("nodes", "c1\nc2\n")), "c1 c2")
        self.refused("job of Cobalt .* without COBALT_NODEFILE", COBALT_JOBID="9")

    def flux(self, answer, code=0):
        self.script(f"echo \"$@\" >> {self.directory}/asked\ncat << 'END'\n{answer}\nEND\nexit {code}", "flux")
        return {"FLUX_URI": "local:///run/flux/local", "PATH": self.directory + ":" + self.environment["PATH"]}

    def test_flux(self):
        resources = {"version": 1, "execution": {"nodelist": ["f[1-2]", "f9"], "R_lite": [
            {"rank": "2", "children": {"core": "7"}}, {"rank": "0-1", "children": {"core": "0,4-4"}}]}}
        self.assertEqual(self.where(**self.flux(json.dumps(resources))), "f1 f1 f2 f2 f9")
        self.assertEqual(self.where(FLUX_JOB_ID="f1x", **self.flux(json.dumps(resources))), "f1 f1 f2 f2 f9")
        self.assertEqual(pathlib.Path(self.directory, "asked").read_text(), "resource R\njob info f1x R\n")
        for answer, code, why in (("nothing", 0, "not a description"), ("{}", 0, "not a description"), ("", 1, "the command fails"),
                                  (json.dumps(resources).replace("f9", "f[9"), 0, "list of hosts is malformed"),
                                  (json.dumps(resources).replace("f9", "f;9"), 0, "'f;9' is not the name"),
                                  (json.dumps(resources).replace('"0-1"', '"0"'), 0, "3 hosts and cores of 2")):
            self.refused("Flux .*flux resource R.*" + why, **self.flux(answer, code))

    def test_a_manager_s_own_agent(self):
        for name, variables in (("blaunch", {"LSB_MCPU_HOSTS": "l1 1"}),
                                ("qrsh", {"PE_HOSTFILE": self.write("pe", "l1 1 q x\n")}),
                                ("srun", {"SLURM_JOB_ID": "5", "SLURM_JOB_NODELIST": "l1", "SLURM_JOB_CPUS_PER_NODE": "1"})):
            self.script(f"echo $0 $* >> {self.directory}/asked; while case $1 in -*) true ;; *) false ;; esac; do shift; done\n"
                        f"exec {self.agent} \"$@\"", name)
            del self.environment["STARLING_LAUNCHER_AGENT"]
            self.assertEqual(self.where(PATH=self.directory + ":" + self.environment["PATH"], **variables), "l1")
            self.environment["STARLING_LAUNCHER_AGENT"] = self.agent
            asked = pathlib.Path(self.directory, "asked").read_text()
            self.assertRegex(asked, re.compile(rf"^{self.directory}/{name} .*l1 ", re.M))


if __name__ == "__main__":
    import sys
    unittest.main(argv=[sys.argv[0]] + sys.argv[2:])
