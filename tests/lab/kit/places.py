"""Where a lab keeps its state and its programs, and whether this machine can have one at all."""
import os
import shutil
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
ROOT = HERE.parent.parent
LABS = Path("/run/starling-lab")
SKIPPED = 77


class Problem(Exception):
    """Something the user should read: one sentence."""

    def __init__(self, sentence, code=1):
        super().__init__(sentence)
        self.code = code


def check_machine():
    """Complains where no lab can be had; for want of rights the exit code says `skipped`, for want of programs `failed`."""
    if os.geteuid() != 0:
        raise Problem("making hosts needs root (network and mount namespaces)", SKIPPED)
    for command in ("ip", "tc", "ethtool"):
        if shutil.which(command) is None:
            raise Problem(f"making hosts needs the command {command}: tools/install-packages test")
    for kind in ("net", "mnt", "uts", "ipc", "pid", "time"):
        if not os.path.exists(f"/proc/self/ns/{kind}"):
            raise Problem(f"this kernel has no {kind} namespaces", SKIPPED)


def programs():
    """The directory of lab-hosts and the others: LAB_BIN, or that of the newest build."""
    if "LAB_BIN" in os.environ:
        return Path(os.environ["LAB_BIN"])
    built = sorted(ROOT.glob("build*/tests/lab/lab-hosts"), key=lambda path: path.stat().st_mtime)
    if not built:
        raise Problem("the lab's programs are not built: ninja -C build lab-hosts lab-enter lab-wire agent")
    return built[-1].parent
