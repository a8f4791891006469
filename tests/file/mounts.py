"""Mounts for the tests of this folder, in a mount namespace that ends with the test."""
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
BIN = Path(os.environ.get("TEST_BIN", HERE.parent.parent / "build"))
SKIPPED = 77


def enter_namespace():
    """Continues this program in a mount namespace of its own. Exits with 77 if the rights for that are missing."""
    if os.environ.get("TEST_NAMESPACE") == str(os.getpid()):
        return
    if os.geteuid() != 0 or not shutil.which("unshare"):
        print("needs root and the program unshare, for mounts; left out")
        sys.exit(SKIPPED)
    environment = os.environ | {"TEST_NAMESPACE": str(os.getpid())}  # exec keeps the process number
    command = ["unshare", "--mount", "--propagation", "private", sys.executable, "-B", *sys.argv]
    os.execvpe(command[0], command, environment)


def network_program():
    """Returns the path of the file system for tests, or fails with the reason why it cannot run."""
    program = BIN / "tests" / "file" / "network_fs"
    if not program.exists():
        raise AssertionError(f"{program} is missing: install libfuse3-dev (tools/install-packages test) and build again")
    if not os.path.exists("/dev/fuse"):
        raise AssertionError("/dev/fuse is missing: load the kernel's module fuse, or give the container this device")
    return program


class Folder:
    """A temporary folder with mounts in it, which are unmounted at the end."""

    def __init__(self):
        self.path = Path(tempfile.mkdtemp(prefix="starling-tests-file-"))
        self.path.chmod(0o755)
        self.servers = []
        self.mounted = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for server in self.servers:
            server.terminate()
            server.wait(timeout=240)
        for mount in reversed(self.mounted):
            subprocess.run(["umount", "--lazy", mount], check=True)
        shutil.rmtree(self.path)

    def make(self, name):
        folder = self.path / name
        folder.mkdir(exist_ok=True)
        folder.chmod(0o777)
        return folder

    def network(self, name, *options):
        """Mounts the file system for tests on `name`. All mounts of a Folder show the same files."""
        target = self.make(name)
        server = subprocess.Popen([network_program(), self.make("backing"), target, *options])
        self.servers.append(server)
        deadline = time.monotonic() + 240
        while not os.path.ismount(target):
            if server.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"the mount at {target} has failed")
            time.sleep(0.01)
        return target

    def memory(self, name, bytes_):
        """Mounts a tmpfs of that size."""
        target = self.make(name)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={bytes_},mode=777", "tmpfs", target], check=True)
        self.mounted.append(target)
        return target

    def read_only(self, name):
        """Shows a folder without the right to write."""
        source, target = self.make(name), self.make(name + "-read-only")
        subprocess.run(["mount", "--bind", source, target], check=True)
        self.mounted.append(target)
        subprocess.run(["mount", "-o", "remount,bind,ro", target], check=True)
        return target


def control(mount, name, value):
    """Sets a value of the file system for tests: fail_at or space."""
    os.setxattr(mount, f"user.{name}", str(value).encode())


def program(name):
    return BIN / "tests" / "file" / name


def job(ranks, *command, seconds=400, environment=None):
    """Runs an MPI job and returns its exit code and output."""
    whole = [BIN / "bin" / "mpiexec", "--timeout", str(seconds), "-n", str(ranks), *command]
    done = subprocess.run([str(word) for word in whole], capture_output=True, text=True, timeout=seconds + 30, check=False,
                          env=os.environ | (environment or {}))
    return done.returncode, done.stdout + done.stderr
