"""Plumbline's own MPI kernels, from the checkout that this recipe lies in."""

import os
from pathlib import Path

from spack_repo.builtin.build_systems.cmake import CMakePackage

from spack.package import *

#: custom-kernels/ beside spack-env/
SOURCES = Path(__file__).resolve().parents[6] / "custom-kernels"


class PlumblineKernels(CMakePackage):
    """MPI and OpenMP kernels with a checked result each: pi, heat equation, Jacobi, message patterns, bandwidth."""

    has_code = False  # nothing is fetched: the sources are in the checkout

    license("Apache-2.0")

    version("1.0")

    variant("dgemm", default=True, description="Build dgemm, which needs a BLAS with 32-bit integers")

    depends_on("c", type="build")
    depends_on("cmake@3.20:", type="build")
    depends_on("gmake", type="build")
    depends_on("mpi")
    depends_on("blas", when="+dgemm")
    depends_on("openblas~fortran", when="+dgemm ^[virtuals=blas] openblas")

    @property
    def root_cmakelists_dir(self):
        return str(SOURCES / "kernels")

    def cmake_args(self):
        # Spack's compiler wrapper adds the flags of the target.
        return [
            self.define("PLUMB_NATIVE", False),
            self.define("MPI_C_COMPILER", self.spec["mpi"].mpicc),
            self.define("CMAKE_DISABLE_FIND_PACKAGE_BLAS", self.spec.satisfies("~dgemm")),
        ]

    def test_pi(self):
        """two ranks compute pi; the program itself checks the result and fails when it is not correct"""
        self._launch("pi", "--intervals", "1M", "--repetitions", "1")

    def test_rank_ring(self):
        """a token passes through two ranks and comes back as what was sent"""
        self._launch("rank_ring")

    def _launch(self, program, *arguments):
        # Open MPI refuses root, which is who a container runs as, and `spack test` starts with a clean environment.
        os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        # A host with one core has no two slots.
        os.environ["PRTE_MCA_rmaps_default_mapping_policy"] = ":oversubscribe"  # noqa: SIM112
        folder = os.path.dirname(self.spec["mpi"].mpicc)
        launcher = which("mpiexec", "mpirun", path=folder, required=True)
        launcher("-n", "2", os.path.join(self.prefix.bin, program), *arguments)
