"""Open MPI as Debian 13 has it: packed anew, without files that Debian may not distribute."""

from spack_repo.builtin.packages.openmpi.package import Openmpi as Builtin

from spack.package import *


class Openmpi(Builtin):
    version(
        "5.0.7",
        sha256="97f10c04e9b9a1771db3fd005009e4c07afa3ce739f940e41eb0fc7397cb9473",
        url="debian:pool/main/o/openmpi/openmpi_5.0.7.orig.tar.xz",
    )
