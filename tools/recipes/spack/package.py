# Spack package; its place in a package repository is packages/starling/package.py.
try:
    from spack_repo.builtin.build_systems.cmake import CMakePackage, generator
except ImportError:
    pass  # Spack before 1.0 has them in spack.package

from spack.package import *


class Starling(CMakePackage):
    """An MPI and OpenSHMEM runtime for jobs that change while they run: processes come and go, start-up waits for no one."""

    homepage = "https://example.org/starling"
    git = "https://example.org/starling.git"

    license("BSD-3-Clause")

    version("main", branch="main")
    version("0.1.0", tag="v0.1.0")

    variant("pmix", default=True, description="Find jobs of PMIx servers")

    # Starling provides the standard ABI: programs that are built with another library's mpi_abi run with this one, and vice versa.
    provides("mpi@:5.0")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("python@3.9:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("hwloc@2:")
    depends_on("libsodium")
    depends_on("zlib-api")
    depends_on("scotch~mpi")
    depends_on("cli11", type="build")
    depends_on("fmt", type="build")
    depends_on("nlohmann-json", type="build")
    depends_on("pmix@4:", when="+pmix")

    conflicts("%gcc@:11", msg="C++20 as of GCC 12")
    conflicts("platform=darwin", msg="Linux only")

    generator("ninja")

    def cmake_args(self):
        return [self.define("STARLING_TESTS", False), self.define("STARLING_WERROR", False), self.define("CMAKE_INSTALL_LIBDIR", "lib")]

    @property
    def build_targets(self):
        return ["starling_installed"]

    @property
    def headers(self):
        return find_headers("mpi", self.prefix.include)

    @property
    def libs(self):
        return find_libraries("libmpi_abi", root=self.prefix.lib, shared=True)

    def setup_run_environment(self, env):
        env.set("MPICC", join_path(self.prefix.bin, "mpicc"))
        env.set("MPICXX", join_path(self.prefix.bin, "mpicxx"))
        env.set("MPIFC", join_path(self.prefix.bin, "mpifort"))

    def setup_dependent_build_environment(self, env, dependent_spec):
        self.setup_run_environment(env)
        # Use Spack's compiler, not the wrapper with which Starling was built. Languages that were not requested have no compiler.
        module = dependent_spec.package.module
        for variable, name in (("STARLING_CC", "spack_cc"), ("STARLING_CXX", "spack_cxx"), ("STARLING_FC", "spack_fc")):
            if hasattr(module, name):
                env.set(variable, getattr(module, name))

    def setup_dependent_package(self, module, dependent_spec):
        self.spec.mpicc = join_path(self.prefix.bin, "mpicc")
        self.spec.mpicxx = join_path(self.prefix.bin, "mpicxx")
        self.spec.mpifc = self.spec.mpif77 = join_path(self.prefix.bin, "mpifort")
