"""scikit-build-core 1.1, which Spack's own packages lack."""

from spack_repo.builtin.packages.py_scikit_build_core.package import PyScikitBuildCore as Builtin

from spack.package import *


class PyScikitBuildCore(Builtin):
    version("1.1.2", sha256="7893709119c5ab1be75cd10442383132c9433b9f104dacef5185949efbea7974")
