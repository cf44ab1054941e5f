"""libfabric as Debian 13 has it: the files of its repository, without a configure."""

from spack_repo.builtin.packages.libfabric.package import Libfabric as Builtin

from spack.package import *


class Libfabric(Builtin):
    version(
        "2.1.0",
        sha256="1a66369772d5bb151737214af1c478993e969cf298e8f9ed369e7a2ab8d8c6df",
        url="debian:pool/main/libf/libfabric/libfabric_2.1.0.orig.tar.xz",
    )

    depends_on("autoconf", type="build")
    depends_on("automake", type="build")
    depends_on("libtool", type="build")
    depends_on("m4", type="build")

    def autoreconf(self, spec, prefix):
        Executable("./autogen.sh")()
