"""The paths of a lab's state and programs, and a check whether this machine can run a lab."""
import os
import shutil
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
ROOT = HERE.parent.parent
LABS = Path("/run/starling-lab")
SKIPPED = 77


class Problem(Exception):
    """An error for the user: one sentence."""

    def __init__(self, sentence, code=1):
        super().__init__(sentence)
        self.code = code


def check_machine():
    """Raises Problem if no lab can be created. The exit code means `skipped` if rights are missing, and `failed` if programs are."""
    if os.geteuid() != 0:
        raise Problem("creating hosts needs root (network and mount namespaces)", SKIPPED)
    for command in ("ip", "tc", "ethtool"):
        if shutil.which(command) is None:
            raise Problem(f"creating hosts needs the command {command}; install it with tools/install-packages test")
    for kind in ("net", "mnt", "uts", "ipc", "pid", "time"):
        if not os.path.exists(f"/proc/self/ns/{kind}"):
            raise Problem(f"this kernel has no {kind} namespaces", SKIPPED)


def programs():
    """Returns the directory of lab-hosts and the other programs: LAB_BIN, or that of the newest build."""
    if "LAB_BIN" in os.environ:
        return Path(os.environ["LAB_BIN"])
    built = sorted(ROOT.glob("build*/tests/lab/lab-hosts"), key=lambda path: path.stat().st_mtime)
    if not built:
        raise Problem("the lab's programs are not built; build them with: ninja -C build lab-hosts lab-enter lab-wire agent")
    return built[-1].parent
