"""Jobs whose launcher, daemon or rank is refused one system call: strace injects an error into the N-th call of a kind of the process and of
each of its forks (such as the guard), for each N in turn.

A job must end in time. Either it succeeds with the whole output, or a sentence reports the reason. Nothing may be left behind."""

import collections
import pathlib
import re
import signal
import tempfile

from jobs import Failure, Job, expect, finish

SENTENCE = re.compile(r"^(mpiexec|starling|starlingd)\b.*: .*\w|: error while loading shared libraries: ", re.M)
SOON = 20.0  # seconds; more than any deadline of the launcher that these jobs can reach
BEGIN = "munmap"  # the loader's last call: it unmaps its cache

# Errors that the kernel can give. A call that does not wait can give no EINTR.
ERRORS = {
    "accept4": ["EMFILE", "ECONNABORTED"], "bind": ["EADDRINUSE"], "clone": ["EAGAIN"], "clone3": ["EAGAIN"], "connect": ["EAGAIN", "EINTR"],
    "dup": ["EMFILE"], "epoll_create1": ["EMFILE"], "epoll_ctl": ["ENOSPC", "ENOMEM"], "epoll_wait": ["EINTR"],
    "eventfd2": ["EMFILE"], "fallocate": ["ENOSPC"], "fcntl": ["EMFILE"], "ftruncate": ["ENOSPC"], "getdents64": ["ENOMEM"],
    "getrandom": ["EINTR"], "getsockname": ["ENOBUFS"], "ioctl": ["EIO"], "kill": ["EPERM"], "listen": ["EADDRINUSE"],
    "memfd_create": ["EMFILE"], "mmap": ["ENOMEM"], "mprotect": ["ENOMEM"], "newfstatat": ["ENOMEM"], "openat": ["EMFILE"],
    "pidfd_open": ["EMFILE"], "pidfd_send_signal": ["EPERM"], "pipe2": ["EMFILE"], "poll": ["ENOMEM", "EINTR"], "ppoll": ["ENOMEM", "EINTR"],
    "prlimit64": ["EPERM"], "read": ["EIO", "EINTR"], "readlink": ["ENOMEM"], "recvfrom": ["ENOMEM", "EINTR"],
    "recvmmsg": ["ENOMEM", "ECONNREFUSED"], "recvmsg": ["ENOMEM", "EINTR"], "sched_getaffinity": ["EPERM"], "sched_setaffinity": ["EPERM"],
    "sendmmsg": ["ENOBUFS", "EPERM"], "sendmsg": ["ENOBUFS", "EINTR"], "sendto": ["ENOBUFS", "EINTR"], "setpgid": ["EPERM"],
    "setsid": ["EPERM"], "setsockopt": ["ENOMEM"], "shutdown": ["ENOTCONN"], "signalfd4": ["EMFILE"], "socket": ["EMFILE", "ENOBUFS"],
    "socketpair": ["EMFILE"], "splice": ["ENOMEM", "EINTR"], "tee": ["ENOMEM"], "timerfd_create": ["EMFILE"], "unlink": ["EPERM"],
    "vfork": ["EAGAIN"], "wait4": ["EINTR"], "waitid": ["EINTR"], "write": ["EINTR", "ENOSPC"], "writev": ["EINTR", "ENOSPC"],
}


AGENT = """#!/bin/sh
host=$1
shift
[ "$host" != b ] || exec sh -c "exec {strace} $* apart b"
exec sh -c "$* apart $host"
"""


class Launch:
    """Starts jobs of two ranks in which `who` runs under strace: mpiexec on one host (mpiexec) or of two pretended hosts (root), the daemon of
    host b (starlingd), or the rank there (rank)."""

    def __init__(self, build, who, folder, verbose):
        self.build, self.who, self.folder, self.verbose = build, who, pathlib.Path(folder), verbose

    def job(self, *options):
        strace = ["strace", "-D", "-f", "-b", "execve", "-qq", "-o", str(self.folder / "calls"), "-e", "signal=none", *options]
        victim, environment = [str(self.build.victim), "reduce"], {"TEST_SECONDS": "0.02", "STARLING_IP_INTERFACES": "lo"}
        if self.who == "mpiexec":
            return Job(self.build, *strace, self.build.mpiexec, "-n", "2", *victim, environment=environment, mpiexec=False)
        agent = self.folder / "agent"
        agent.write_text(AGENT.format(strace=" ".join(strace) if self.who == "starlingd" else ""))
        agent.chmod(0o755)
        prefix = strace if self.who == "rank" else []
        words = ["--launcher-agent", agent, "--host", "a", "-n", "1", *victim, ":", "--host", "b", "-n", "1", *prefix, *victim]
        if self.who == "root":
            return Job(self.build, *strace, self.build.mpiexec, *words, environment=environment, mpiexec=False)
        return Job(self.build, *words, environment=environment)

    def calls(self):
        """Returns {system call: numbers of the calls to refuse}: those of the first process from main() on, and those of its forks."""
        code, text = finish(self.job())
        expect(code == 0, f"{self.who}: the job failed under strace alone: {code}\n{text}")
        counts, numbers, first, begun = collections.Counter(), collections.defaultdict(set), None, False
        for line in (self.folder / "calls").read_text().splitlines():
            pid, _, call = line.partition(" ")
            first = first or pid
            name = call.lstrip().partition("(")[0]
            begun = begun or name == BEGIN
            counts[pid, name] += 1
            if begun or pid != first:
                numbers[name].add(counts[pid, name])
        expect(begun, f"{self.who}: the trace does not show where main() begins")
        return numbers

    def refuse(self, call, error, number):
        """Returns what is wrong with the job, or an empty string."""
        job = self.job("-e", f"inject={call}:error={error}:when={number}")
        try:
            code, text = finish(job, SOON)
        except Failure as failure:
            return str(failure)
        if self.verbose:
            print(f"{self.who}, {call} {number}, {error}: {code}, {(SENTENCE.search(text) or [''])[0]}", flush=True)
        if code == 0:
            missing = [f"rank {rank}" for rank in (0, 1) if not re.search(rf"^rank {rank} pid", text, re.M)]
            return f"exit code 0, but no output of {' and '.join(missing)}:\n{text}" if missing else ""
        if code < 0 or code in (128 + number for number in (signal.SIGSEGV, signal.SIGABRT)):
            return f"crashed ({code}):\n{text}"
        return "" if SENTENCE.search(text) else f"exit code {code} without a sentence:\n{text}"


def sample(numbers, most):
    """Returns at most `most` of the numbers (0: all), evenly spread."""
    ordered = sorted(numbers)
    return ordered if most == 0 or len(ordered) <= most else [ordered[i * len(ordered) // most] for i in range(most)]


def refusals(build, options):
    failures, tries = [], 0
    only = set(filter(None, options.calls.split(",")))
    for who in filter(lambda one: one in options.who.split(","), ("mpiexec", "root", "starlingd", "rank")):
        with tempfile.TemporaryDirectory(prefix="fault-") as folder:
            launch = Launch(build, who, folder, options.verbose)
            for call, numbers in sorted(launch.calls().items()):
                own = who == "rank" and call == "write"  # the output of the test program
                if call not in ERRORS or own or (only and call not in only):
                    continue
                for number in sample(numbers, options.most):
                    for error in ERRORS[call]:
                        tries += 1
                        if problem := launch.refuse(call, error, number):
                            failures.append(f"{who}, {call} {number}, {error}: {problem}")
                            print(failures[-1], flush=True)
    print(f"{tries} system calls refused")
    expect(not failures, f"{len(failures)} of {tries} refused calls")
