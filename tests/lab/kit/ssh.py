"""Runs real sshd on the hosts of a lab, with private keys: no file of the machine or the user is read or changed."""
import subprocess

from .places import Problem

SSHD = "/usr/sbin/sshd"


def _make_key(path):
    result = subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", path.name, "-f", str(path)],
                            capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise Problem(f"ssh-keygen: {result.stderr.strip()}")
    return path.with_name(path.name + ".pub").read_text().strip()


def start(lab, hosts=None):
    """Starts sshd on the hosts (default: all). Returns the path of a script that calls ssh with the hosts' and the user's keys, for use
    as a launcher's agent."""
    try:
        subprocess.run([SSHD, "-V"], capture_output=True, check=False)
    except FileNotFoundError:
        raise Problem(f"{SSHD} is not installed; it is in the package openssh-server") from None
    folder = lab.state / "ssh"
    folder.mkdir(mode=0o700, exist_ok=True)
    if not (folder / "user").exists():
        (folder / "authorized").write_text(_make_key(folder / "user") + "\n")
        _write_configuration(folder)
    for host in hosts or range(1, lab.size() + 1):
        _start_on(lab, folder, host)
    return folder / "ssh"


def _write_configuration(folder):
    (folder / "sshd_config").write_text(
        f"AuthorizedKeysFile {folder}/authorized\nStrictModes no\nUsePAM no\nPasswordAuthentication no\n"
        "KbdInteractiveAuthentication no\nPermitRootLogin yes\nUseDNS no\nPrintMotd no\nMaxStartups 200\n"
        "PidFile /run/sshd.pid\n")
    (folder / "config").write_text(
        f"IdentityFile {folder}/user\nIdentitiesOnly yes\nUserKnownHostsFile {folder}/known_hosts\n"
        "GlobalKnownHostsFile /dev/null\nStrictHostKeyChecking yes\nBatchMode yes\nConnectTimeout 10\nUser root\n")
    script = folder / "ssh"
    script.write_text(f'#!/bin/sh\nexec ssh -F {folder}/config "$@"\n')
    script.chmod(0o755)


def _start_on(lab, folder, host):
    key = folder / f"lab{host}"
    if not key.exists():
        public = " ".join(_make_key(key).split()[:2])
        with open(folder / "known_hosts", "a", encoding="ascii") as known:
            known.write(f"lab{host} {public}\n")
    lab.must(host, ["mkdir", "-p", "/run/sshd"])
    lab.must(host, [SSHD, "-f", folder / "sshd_config", "-h", key])


def forge_host_key(lab, host):
    """Replaces a host's known key with another one, as in a man-in-the-middle attack."""
    known = lab.state / "ssh" / "known_hosts"
    other = _make_key(lab.state / "ssh" / f"forged-{host}")
    lines = [line for line in known.read_text().splitlines() if line.split()[0] != f"lab{host}"]
    known.write_text("\n".join(lines + [f"lab{host} " + " ".join(other.split()[:2])]) + "\n")
