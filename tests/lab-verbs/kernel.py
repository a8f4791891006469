"""Prepares the machines' kernel, from Debian's package, and the initramfs that it boots from. Both are made once and cached."""
import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "lab"))
from kit.places import Problem  # noqa: E402

# The newest version is used. The cloud kernel (linux-image-cloud-amd64) has neither Soft-RoCE nor 9p.
PACKAGE = "linux-image-amd64"
FIRST_MODULES = ("virtio_pci", "9p", "9pnet_virtio", "overlay")


def output_of(*words, **options):
    result = subprocess.run(words, capture_output=True, text=True, check=False, timeout=600, **options)
    if result.returncode != 0:
        raise Problem(f"'{' '.join(words)}' failed: {result.stderr.strip() or result.stdout.strip()}")
    return result.stdout


def package():
    """Returns the package of the newest kernel, which the metapackage names."""
    for line in output_of("apt-cache", "depends", PACKAGE).splitlines():
        kind, _, name = line.strip().partition(": ")
        if kind == "Depends" and name.startswith("linux-image-"):
            return name
    raise Problem(f"apt knows no package on which {PACKAGE} depends; run apt-get update")


def unpack(name, place):
    """Downloads and unpacks the kernel, and indexes its modules."""
    for file in place.glob("*.deb"):
        file.unlink()
    output_of("apt-get", "download", "-qq", "-o", "APT::Sandbox::User=root", name, cwd=place)
    found = list(place.glob("*.deb"))
    if len(found) != 1:
        raise Problem(f"apt-get download {name} downloaded {len(found)} packages in place of one")
    output_of("dpkg", "-x", str(found[0]), str(place))
    found[0].unlink()
    version = name.removeprefix("linux-image-")
    output_of("depmod", "-b", str(place), version)
    shutil.copy(place / "boot" / f"vmlinuz-{version}", place / "vmlinuz")
    return version


def first_modules(place, version):
    """Returns the modules needed to mount this machine's file system, in loading order."""
    paths = []
    for module in FIRST_MODULES:
        for line in output_of("modprobe", "-d", str(place), "-S", version, "--show-depends", module).splitlines():
            path = Path(line.split()[1])
            if path not in paths:
                paths.append(path)
    return paths


def make_initramfs(place, version):
    tree = place / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    (tree / "bin").mkdir(parents=True)
    (tree / "modules").mkdir()
    shutil.copy("/bin/busybox", tree / "bin" / "busybox")
    shutil.copy(HERE / "init", tree / "init")
    modules = first_modules(place, version)
    for path in modules:
        shutil.copy(path, tree / "modules" / path.name)
    (tree / "modules" / "order").write_text("".join(f"{path.name}\n" for path in modules))
    archive = subprocess.run(["cpio", "-o", "-H", "newc", "--quiet"], cwd=tree, check=True, timeout=240, capture_output=True,
                             input="\n".join(str(path.relative_to(tree)) for path in [*tree.rglob("*")]).encode()).stdout
    (place / "initramfs.new").write_bytes(archive)
    os.replace(place / "initramfs.new", place / "initramfs")


def prepare():
    """Returns the directory of vmlinuz, initramfs and lib/modules. Downloads some 70 MB the first time."""
    top = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "starling" / "lab-verbs"
    top.mkdir(parents=True, exist_ok=True)
    with open(top / "lock", "wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        kept = sorted(top.glob("linux-image-*/vmlinuz"))
        name = kept[-1].parent.name if kept else package()
        place = top / name
        place.mkdir(exist_ok=True)
        version = name.removeprefix("linux-image-") if kept else unpack(name, place)
        initramfs = place / "initramfs"
        if not initramfs.exists() or initramfs.stat().st_mtime < (HERE / "init").stat().st_mtime:
            make_initramfs(place, version)
    return place
