"""Jobs of this build and what they leave behind: shared by the groups of faults."""

import importlib.machinery
import importlib.util
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import uuid

HERE = pathlib.Path(__file__).resolve().parent
loader = importlib.machinery.SourceFileLoader("runner", str(HERE.parent / "run"))
runner = importlib.util.module_from_spec(importlib.util.spec_from_loader("runner", loader))
loader.exec_module(runner)

HANGS = 240.0  # seconds after which a job counts as hanging
GRACE = 120.0  # seconds within which nothing of it may be left
UNTIL_TOLD = {"TEST_SECONDS": "1000"}  # the victim works until end_work(); the seconds only bound a test that fails


class Failure(Exception):
    pass


def expect(condition, sentence):
    if not condition:
        raise Failure(sentence)


class Build:
    def __init__(self, folder):
        self.folder = folder.resolve()
        self.mpiexec = self.folder / "bin" / "mpiexec"
        self.victim = self.folder / "tests" / "faults" / "victim"
        self.programs = {str(p) for p in [*(self.folder / "bin").glob("*"), self.victim]}

    def processes(self):
        """Returns {pid: command} of the processes from this build directory, because the guard and the daemon do not carry a job's mark."""
        found = {}
        for entry in os.listdir("/proc"):
            if not entry.isdigit():
                continue
            try:
                if os.readlink(f"/proc/{entry}/exe").removesuffix(" (deleted)") in self.programs:
                    found[int(entry)] = pathlib.Path(f"/proc/{entry}/cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
            except OSError:
                continue
        return found


class Job:
    """One mpiexec with its output, and all processes that it started."""

    def __init__(self, build, *arguments, environment=None, prepare=None, mpiexec=True):
        self.build = build
        self.mark = uuid.uuid4().hex
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="fault-"))
        self.end_file = self.scratch.with_name(self.scratch.name + "-end")
        self.before = runner.named_things()
        self.others = set(build.processes())
        self.output = tempfile.TemporaryFile()
        env = dict(os.environ, TMPDIR=str(self.scratch), TEST_END=str(self.end_file), **(environment or {}))
        env[runner.MARK] = self.mark
        head = [build.mpiexec] if mpiexec else []
        self.process = subprocess.Popen([str(a) for a in [*head, *arguments]], env=env, cwd=self.scratch,
                                        stdin=subprocess.DEVNULL, stdout=self.output, stderr=subprocess.STDOUT,
                                        start_new_session=True, preexec_fn=prepare)

    def text(self):
        # Reads by pread: the processes write at this descriptor's file position, which seek and read would move.
        return os.pread(self.output.fileno(), 1 << 24, 0).decode(errors="replace")

    def own(self):
        found = {p: c for p, c in self.build.processes().items()
                 if p not in self.others and c.startswith(("starling-guard", str(self.build.folder / "bin" / "starlingd")))}
        found.update(runner.processes(self.mark))
        return found

    def end_work(self):
        """Lets the victim's ranks end their work."""
        self.end_file.touch()

    def wait(self, limit):
        """Returns the exit code, or None if it still runs."""
        try:
            return self.process.wait(limit)
        except subprocess.TimeoutExpired:
            return None

    def left(self, patience=GRACE):
        deadline = time.monotonic() + patience
        while True:
            left = [f"process {p}: {c}" for p, c in self.own().items()]
            left += sorted(runner.named_things() - self.before)
            left += [f"file {p}" for p in self.scratch.rglob("*") if not p.is_dir()]
            if not left or time.monotonic() > deadline:
                return left
            time.sleep(0.01)

    def close(self):
        for _ in range(20):
            own = self.own()
            for pid in own:
                try:
                    os.kill(pid, signal.SIGKILL)
                except OSError:
                    pass
            if not own:
                break
            time.sleep(0.05)
        self.process.wait()
        self.output.close()
        self.end_file.unlink(missing_ok=True)
        shutil.rmtree(self.scratch, ignore_errors=True)


def finish(job, limit=HANGS):
    """Waits for a job that ends by itself and returns its exit code and output. It may leave nothing behind."""
    try:
        code = job.wait(limit)
        if code is None:
            runner.print_stacks(job.mark)
        expect(code is not None, f"the job hangs; its output so far:\n{job.text()}")
        left = job.left()
        expect(not left, f"left behind: {left}")
        return code, job.text()
    finally:
        job.close()
