#!/usr/bin/env python3
"""The error texts for erroneous programs: wrong_test.py OSHRUN PROGRAM"""
import os
import re
import subprocess
import sys
import unittest

OSHRUN, PROGRAM = sys.argv[1:3]
DEATHS = ["dies-" + what for what in ("barrier", "wait", "lock", "get", "atomic", "put", "test", "test-lock", "wait-any", "signal", "reduce",
                                      "collect", "malloc", "sync", "finalize")]


def run(*arguments, pes=2, **environment):
    environment = {**os.environ, **environment}
    return subprocess.run([OSHRUN, "-n", str(pes), PROGRAM, *arguments], capture_output=True, text=True, timeout=240, env=environment)


class Wrong(unittest.TestCase):
    def expect(self, what, sentence, **environment):
        result = run(what, **environment)
        self.assertNotEqual(result.returncode, 0, f"{what}: {result.stdout}{result.stderr}")
        self.assertRegex(result.stderr, sentence, what)

    def expect_nothing(self, what, **environment):
        result = run(what, **environment)
        self.assertEqual((result.returncode, result.stdout), (0, "went on\n" * 2), result.stderr)

    def test_nothing_is_wrong(self):
        self.expect_nothing("nothing")
        self.expect_nothing("nothing", STARLING_CHECK="on")

    def test_before_and_after(self):
        self.expect("before-init", r"shmem_barrier_all: OpenSHMEM is not initialized")
        self.expect("put-before-init", r"shmem_long_p: OpenSHMEM is not initialized")
        self.expect("after-finalize", r"shmem_quiet: OpenSHMEM is finalized already")
        self.expect("twice", r"PE \d of 2: shmem_init: OpenSHMEM is initialized already")

    def test_addresses(self):
        for check in ("off", "on"):
            self.expect("stack", r"PE \d of 2: shmem_long_p: dest, 8 bytes at 0x\w+, is not symmetric", STARLING_CHECK=check)
            self.expect("malloc", r"PE \d of 2: shmem_long_g: source, 8 bytes at 0x\w+, is not symmetric", STARLING_CHECK=check)
            self.expect("beyond", r"shmem_long_p: dest, 8 bytes at 0x\w+, is not all in allocated", STARLING_CHECK=check)
            self.expect("pe", r"shmem_long_p: PE 2 is not in a team of 2 PEs", STARLING_CHECK=check)
            self.expect("negative-pe", r"shmem_long_atomic_inc: PE -1 is not in a team of 2 PEs", STARLING_CHECK=check)
        self.expect("freed", r"shmem_long_p: dest, 8 bytes at 0x\w+, is not all in allocated", STARLING_CHECK="on")
        self.expect("overrun", r"shmem_long_p: dest, 8 bytes at 0x\w+, is not all in allocated", STARLING_CHECK="on")
        self.expect("free-twice", r"shmem_free: 0x\w+ is not the start of an allocation")
        self.expect("free-inside", r"shmem_free: 0x\w+ is not the start of an allocation")

    def test_every_address_is_looked_at(self):
        for what, sentence in {
                "wait-stack": r"shmem_long_wait_until: ivar, 8 bytes at 0x\w+, is not symmetric",
                "test-freed": r"shmem_long_test_any: ivar, 16 bytes at 0x\w+, is not all in allocated",
                "get-freed": r"shmem_long_g: source, 8 bytes at 0x\w+, is not all in allocated",
                "atomic-freed": r"shmem_long_atomic_fetch_add: dest, 8 bytes at 0x\w+, is not all in allocated",
                "strided-freed": r"shmem_long_iput: dest, 16 bytes at 0x\w+, is not all in allocated",
                "signal-freed": r"shmem_putmem_signal: sig_addr, 8 bytes at 0x\w+, is not all in allocated",
                "lock-freed": r"shmem_set_lock: lock, 8 bytes at 0x\w+, is not all in allocated",
                "own-freed": r"shmem_long_p: dest, 8 bytes at 0x\w+, is not all in allocated",
                "reduce-stack": r"shmem_long_sum_reduce: dest, 8 bytes at 0x\w+, is not symmetric",
                "reduce-source": r"shmem_long_sum_reduce: source, 8 bytes at 0x\w+, is not symmetric",
                "alltoall-overrun": r"shmem_long_alltoall: dest, 112 bytes at 0x\w+, is not all in allocated"}.items():
            self.expect(what, r"PE \d of 2: " + sentence, STARLING_CHECK="on")

    def test_unequal_arguments(self):
        for what, sentence in {
                "unequal-root": r"shmem_long_broadcast: the root is not the same on all PEs: \d here, and from 0 to 1",
                "unequal-collect": r"shmem_long_fcollect: the number of bytes is not the same on all PEs: \d+ here, and from 8 to 16",
                "unequal-align": r"shmem_align: the alignment is not the same on all PEs: \d+ here, and from 64 to 128",
                "unequal-calloc": r"shmem_calloc: the number of bytes is not the same on all PEs: \d+ here, and from 8 to 16",
                "unequal-realloc": r"shmem_realloc: the number of bytes is not the same on all PEs: \d+ here, and from 8 to 16",
                "unequal-split": r"shmem_team_split_strided: the stride is not the same on all PEs: -?1 here, and from -1 to 1",
                "unequal-split-2d": r"shmem_team_split_2d: xrange is not the same on all PEs: \d here, and from 1 to 2",
                "unequal-free": r"shmem_free: the offset of the freed block in the heap is not the same on all PEs"}.items():
            self.expect(what, r"PE \d of 2: " + sentence, STARLING_CHECK="on")

    def test_calls(self):
        self.expect("root", r"shmem_long_broadcast: the root, PE 2, is not in a team of 2 PEs")
        self.expect("unequal-malloc", r"shmem_malloc: the number of bytes is not the same on all PEs: \d+ here, and from 1000 to 2000",
                    STARLING_CHECK="on")
        self.expect("unequal-reduce", r"shmem_long_sum_reduce: the number of elements is not the same on all PEs", STARLING_CHECK="on")
        self.expect("comparison", r"shmem_long_wait_until: the comparison is not one of")
        self.expect("signal-operation", r"shmem_putmem_signal: the operation is neither")
        self.expect("context", r"shmem_ctx_long_p: the context is SHMEM_CTX_INVALID")
        self.expect("world-destroyed", r"shmem_team_destroy: the predefined teams can't be destroyed")
        self.expect("clear-lock", r"shmem_clear_lock: this PE does not hold the lock at 0x\w+")
        self.expect("active-set", r"shmem_barrier: an active set of 2 PEs from PE 0 on with a stride of 2\^1 does not fit in 2 PEs")
        self.expect("stride", r"shmem_long_iput: the stride of 0 bytes is less than the block size")

    def test_exhausted_heap(self):
        self.expect_nothing("exhausted")
        self.assertNotIn("do not fit", run("exhausted").stderr)
        told = run("exhausted", STARLING_VERBOSE="1")
        self.assertEqual((told.returncode, told.stdout), (0, "went on\n" * 2), told.stderr)
        self.assertRegex(told.stderr, r"PE \d of 2: shmem_malloc: \d+ bytes do not fit in the symmetric heap of \d+")

    def test_exhausted_at_one(self):
        self.expect_nothing("exhausted-one")
        told = run("exhausted-one", STARLING_VERBOSE="1")
        for pe in (0, 1):
            self.assertIn(f"PE {pe} of 2: shmem_malloc: a PE's host does not have enough memory for {64 << 20} more bytes", told.stderr)

    def test_settings(self):
        self.expect("nothing", r"SHMEM_SYMMETRIC_SIZE=12q is not a valid size", SHMEM_SYMMETRIC_SIZE="12q")
        self.expect_nothing("nothing", SHMEM_SYMMETRIC_SIZE="1.5m")
        self.expect_nothing("nothing", SMA_SYMMETRIC_SIZE="2M")
        told = run("nothing", SHMEM_VERSION="1", SHMEM_INFO="1").stdout
        self.assertRegex(told, r"Starling .*OpenSHMEM 1\.5")
        self.assertIn("SHMEM_SYMMETRIC_SIZE", told)

    def test_a_pe_dies(self):
        """If a PE dies, the other PEs must end too, in whatever call they are."""
        for what in DEATHS:
            for pes in (2, 4):
                result = run(what, pes=pes)
                self.assertEqual((result.returncode, result.stdout), (128 + 9, ""), (what, result.stderr))
                self.assertIn(f"rank {pes - 1}", result.stderr)

    def test_global_exit(self):
        for code in (0, 1, 7):
            result = run("exit", str(code), pes=3)
            self.assertEqual(result.returncode, code, result.stderr)
            said = re.search(r"called shmem_global_exit with code (\d+)", result.stderr)
            self.assertEqual(said and int(said[1]), code or None, result.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
