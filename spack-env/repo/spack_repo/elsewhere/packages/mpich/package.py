"""MPICH as Debian 12 has it."""

from spack_repo.builtin.packages.mpich.package import Mpich as Builtin

from spack.package import *


class Mpich(Builtin):
    version(
        "4.0.2",
        sha256="b27039f964afeb6b8a3e009c56b441cbe368c26d6d6476ad3bb7190996875860",
        url="debian:pool/main/m/mpich/mpich_4.0.2.orig.tar.xz",
    )
