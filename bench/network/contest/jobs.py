"""Jobs of several processes over the lab's hosts, under each launcher."""
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent


def compile_job(library, name):
    """Compiles a program of bench/network that has one source file. Compiles it in every run, because it is linked with a particular build
    of a library."""
    program, source = library.program(name), HERE / f"{name}.c"
    program.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(library.compiler + ["-O2", "-w", "-o", str(program), str(source)], check=True)
    return program


def host_file(lab, who, hosts, per_host):
    """Writes a file of the first `hosts` hosts of the lab, with `per_host` processes each, in the launcher's format."""
    file = lab.shared() / f"hosts-{who}-{hosts}-{per_host}"
    slot = ":{}" if who.startswith("mpich") else " slots={}"
    file.write_text("".join(f"lab{i + 1}{slot.format(per_host)}\n" for i in range(hosts)))
    return file


def launcher_words(who, lab, hosts, per_host):
    """Returns the arguments between mpiexec, which is started on host 1, and the program."""
    agent, file, ranks = lab.agent(), host_file(lab, who, hosts, per_host), hosts * per_host
    if who.startswith("starling"):
        return ["--launcher-agent", agent, "--hostfile", file, "-n", ranks]
    if who.startswith("openmpi"):
        return ["--mca", "plm_rsh_agent", agent, "--mca", "pml", "ob1", "--mca", "btl", "self,vader,tcp", "--mca",
                "btl_tcp_if_include", "rail0", "--mca", "oob_tcp_if_include", "rail0", "--hostfile", file, "-n", ranks]
    return ["-launcher", "ssh", "-launcher-exec", agent, "-iface", "rail0", "-f", file, "-ppn", per_host, "-n", ranks]
